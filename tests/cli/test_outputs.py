"""What commands write, what they never replace, and how they show names that were chosen to do harm."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import codiag
from codiag.cli import app
from codiag.io import write_table
from codiag.synthetic import crowd_votes, noisy_tensor, worker_confusions

pytestmark = pytest.mark.filterwarnings("ignore:moments do not determine this crowd")  # votes here are drawn at random
runner = CliRunner()
FORMULA = "=cmd|'/c calc'!A0"
ESCAPE = "\x1b]0;owned\x07\x1b[31mred"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("tensor.npz", X=noisy_tensor((4, 5, 6), 2, seed=0).tensor)
    rng = np.random.default_rng(0)
    np.savez("corpus.npz", counts=rng.poisson(2.0, (40, 12)))
    crowd = crowd_votes(60, worker_confusions(6, 2, seed=0), seed=1)
    write_table("votes.csv", dict(zip(("task", "worker", "label"), crowd.votes, strict=True)))
    np.savetxt("edges.csv", np.argwhere(np.triu(rng.random((30, 30)) < 0.5, 1)), fmt="%d", delimiter=",")
    return tmp_path


COMMANDS = {
    "factorize": (["factorize", "tensor.npz", "--rank", "2"], "tensor.npz", "--out", "new.npz"),
    "topics": (["topics", "corpus.npz", "--topics", "1", "--max-iter", "0"], "corpus.npz", "--out", "new.npz"),
    "label": (["label", "votes.csv"], "votes.csv", "--out", "new.csv"),
    "label, workers": (["label", "votes.csv"], "votes.csv", "--workers", "new.csv"),
    "communities": (["communities", "edges.csv", "--k", "1"], "edges.csv", "--out", "new.csv"),
}


def said(result):
    return " ".join(result.output.split())


@pytest.mark.parametrize("source", ["tensor.zarr", "tensor.zarr:/X", "link.zarr"])
def test_nothing_is_written_into_a_folder_that_is_read(source, folder):
    (folder / "tensor.zarr" / "inside").mkdir(parents=True)
    (folder / "link.zarr").symlink_to("tensor.zarr")
    result = runner.invoke(app, ["factorize", source, "--rank", "2", "--out", "tensor.zarr/inside/new.npz", "--force"])
    assert result.exit_code == 2
    assert "--out must not lie in the folder that is read" in said(result)
    assert not list((folder / "tensor.zarr" / "inside").iterdir())


def test_a_colon_without_a_name_is_reported_in_a_sentence(folder):
    result = runner.invoke(app, ["factorize", "tensor.h5:", "--rank", "2", "--out", "new.npz"])
    assert result.exit_code == 2
    assert "Error: the path must name an array after the colon, as in tensor.h5:/group/array" in said(result)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("way", ["itself", "./", "symbolic link", "hard link"])
def test_inputs_are_never_replaced(name, way, folder):
    command, source, option, _ = COMMANDS[name]
    ending = source[source.rindex(".") :]
    target = {"itself": source, "./": f"../{folder.name}/{source}"}.get(way, f"link{ending}")
    if way == "symbolic link":
        (folder / target).symlink_to(source)
    elif way == "hard link":
        os.link(source, target)
    before = (folder / source).read_bytes()
    for force in ([], ["--force"]):
        result = runner.invoke(app, [*command, option, target, *force])
        assert result.exit_code == 2
        assert f"{option} must not be the file that is read" in said(result)
    assert (folder / source).read_bytes() == before
    assert (folder / target).read_bytes() == before


@pytest.mark.parametrize("name", COMMANDS)
def test_files_that_exist_are_replaced_only_by_force(name, folder, monkeypatch):
    command, _, option, target = COMMANDS[name]
    (folder / target).write_text("precious")
    with monkeypatch.context() as patched:  # refused before anything is read, let alone computed
        for reader in ("io.read_tensor", "models.topics.read_corpus", "io.read_votes", "io.read_edges"):
            patched.setattr(f"codiag.{reader}", lambda *_: pytest.fail("read before the outputs were checked"))
        result = runner.invoke(app, [*command, option, target])
    assert result.exit_code == 2
    assert f"{option} must not be a file that exists" in said(result)
    assert "add --force" in said(result)
    assert (folder / target).read_text() == "precious"
    result = runner.invoke(app, [*command, option, target, "--force"])
    assert result.exit_code == 0, result.output
    assert (folder / target).read_bytes() != b"precious"


def test_nothing_is_written_that_was_not_asked_for(folder):
    before = {path.name for path in folder.iterdir()}
    assert runner.invoke(app, ["label", "votes.csv", "--out", "labels.csv"]).exit_code == 0
    assert {path.name for path in folder.iterdir()} - before == {"labels.csv"}


def test_endings_in_capitals_are_the_file_that_was_checked(folder):
    assert runner.invoke(app, ["factorize", "tensor.npz", "--rank", "2", "--out", "fit.NPZ"]).exit_code == 0
    assert codiag.Factorization.load(folder / "fit.NPZ").rank == 2
    assert not (folder / "fit.NPZ.npz").exists()


def test_figures_are_refused_too_but_for_the_one_of_the_demo(folder, monkeypatch):
    pytest.importorskip("matplotlib", reason="the figure needs the extra 'plot'")
    for name, value in {"RIVALS": (), "STARTS": 1}.items():
        monkeypatch.setattr(f"codiag.cli.demo.run.{name}", value)
    (folder / "mine.png").write_text("precious")
    result = runner.invoke(app, ["label", "votes.csv", "--figure", "mine.png"])
    assert "--figure must not be a file that exists" in said(result)
    assert "--figure must not be a file that exists" in said(runner.invoke(app, ["demo", "--figure", "mine.png"]))
    assert (folder / "mine.png").read_text() == "precious"
    (folder / "codiag-demo.png").write_text("of yesterday")
    assert runner.invoke(app, ["demo", "--size", "4"]).exit_code == 0
    assert (folder / "codiag-demo.png").read_bytes().startswith(b"\x89PNG")


def test_a_figure_is_whole_or_not_there(folder, monkeypatch):
    pytest.importorskip("matplotlib", reason="the figure needs the extra 'plot'")

    def broken(figure, path):
        Path(path).write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", broken)
    before = {path.name for path in folder.iterdir()}
    result = runner.invoke(app, ["label", "votes.csv", "--figure", "new.png"])
    assert result.exit_code == 2
    assert "disk full" in said(result)
    assert {path.name for path in folder.iterdir()} == before


def crowd_with(names, folder):
    """Write votes with names for tasks, workers and classes that were chosen to do harm."""
    rows = {"task": [], "worker": [], "label": []}
    rng = np.random.default_rng(0)
    for task in (*names, *(f"t{i}" for i in range(20))):
        for worker in (*names, "ann", "bob"):
            rows["task"].append(task)
            rows["worker"].append(worker)
            rows["label"].append(names[0] if rng.random() < 0.5 else "other")
    with (folder / "bad.csv").open("w", newline="") as file:
        csv.writer(file).writerows([list(rows), *zip(*rows.values(), strict=True)])
    return folder / "bad.csv"


def test_formulas_become_text_in_tables(folder):
    names = [FORMULA, "+1+cmd", "-2+3", "@SUM(1)", "plain", "-7", "1e5"]
    path = crowd_with(names, folder)
    result = runner.invoke(app, ["label", str(path), "--out", "labels.csv", "--workers", "workers.csv"])
    assert result.exit_code == 0, result.output
    for written, column in (("labels.csv", "task"), ("workers.csv", "worker")):
        with (folder / written).open(newline="") as file:
            rows = list(csv.DictReader(file))
        found = {row[column] for row in rows}
        assert {f"'{name}" for name in names[:4]} <= found
        assert set(names[4:]) <= found  # numbers stay numbers
        cells = [cell for row in rows for cell in (*row, *row.values())]
        assert not [cell for cell in cells if cell[:1] in "=+@\t\r" or cell.startswith("-2")]
    with (folder / "labels.csv").open(newline="") as file:
        assert {row["label"] for row in csv.DictReader(file)} <= {f"'{FORMULA}", "other"}


def test_cells_that_begin_like_formulas(tmp_path):
    cells = ["\tx", "\rx", "=1", "a=1", "-1", "-1.5e-3", "--1", "", "-"]
    write_table(tmp_path / "a.csv", {"=name": cells, "number": np.linspace(-1, 1, len(cells))})
    with (tmp_path / "a.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    assert header == ["'=name", "number"]
    assert [row[0] for row in rows] == ["'\tx", "'\rx", "'=1", "a=1", "-1", "-1.5e-3", "'--1", "", "'-"]
    assert float(rows[0][1]) == -1


def test_names_do_not_command_the_terminal(folder):
    names = [ESCAPE, "[red]markup[/red]", "[/bold]", "line\nend", "\u202eturned", "日本\u3000語"]
    result = runner.invoke(app, ["label", str(crowd_with(names, folder))])
    assert result.exit_code == 0, result.output
    assert not set(result.output) & set("\x1b\x07\u202e\r")
    for shown in (
        r"\x1b]0;owned\x07\x1b[31mred",
        "[red]markup[/red]",
        "[/bold]",
        r"line\nend",
        r"\u202eturned",
        "日本",
    ):
        assert shown in result.output


def test_neither_do_words_of_topics_file_names_and_mistakes(folder):
    words = np.array([ESCAPE, "[red]", *(f"w{i}" for i in range(10))])
    np.savez("[red]\x1b[2J.npz", counts=np.random.default_rng(0).poisson(5.0, (40, 12)), vocab=words)
    command = ["topics", "[red]\x1b[2J.npz", "--topics", "1", "--words", "12", "--max-iter", "0"]
    result = runner.invoke(app, [*command, "--out", "\x1bout.npz"])
    assert result.exit_code == 0, result.output
    assert "\x1b" not in result.output
    text = "".join(result.output.split())
    assert r"\x1b]0;owned\x07\x1b[31mred" in text
    assert r"[red]\x1b[2J.npz" in text
    assert r"\x1bout.npz" in text
    for mistake in (["topics", "\x1b[2J.npz", "--topics", "1"], ["communities", "\x1b[2J.csv"]):
        result = runner.invoke(app, mistake)
        assert result.exit_code == 2
        assert "\x1b" not in result.output
        assert r"\x1b[2J" in result.output


def test_names_are_drawn_as_they_are(folder):
    pytest.importorskip("matplotlib", reason="the figure needs the extra 'plot'")
    path = crowd_with([r"$\frac$", "$$", "a$b"], folder)
    result = runner.invoke(app, ["label", str(path), "--figure", "workers.png"])
    assert result.exit_code == 0, result.output
    assert (folder / "workers.png").read_bytes().startswith(b"\x89PNG")
