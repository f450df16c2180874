"""What commands write, what they never replace, and how they show names that were chosen to do harm."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import codiag
from codiag.cli import app
from codiag.cli.commands import write_table
from codiag.synthetic import crowd_votes, noisy_tensor, worker_confusions
from commands import runner

pytest.importorskip("pandas", reason="tables need the extra 'files'")
pytestmark = pytest.mark.filterwarnings("ignore:The method of moments")  # votes here are drawn at random
FORMULA = "=cmd|'/c calc'!A0"
ESCAPE = "\x1b]0;owned\x07\x1b[31mred"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("tensor.npz", X=noisy_tensor((4, 5, 6), 2, rng=0).tensor)
    rng = np.random.default_rng(0)
    sparse.save_npz("corpus.npz", sparse.csr_array(rng.poisson(2.0, (40, 12))))
    crowd = crowd_votes(60, worker_confusions(6, 2, rng=0), rng=1)
    write_table(Path("votes.csv"), dict(zip(("task", "worker", "label"), crowd.votes, strict=True)))
    edges = np.argwhere(np.triu(rng.random((30, 30)) < 0.5, 1))
    write_table(Path("edges.csv"), {"from": edges[:, 0], "to": edges[:, 1]})
    return tmp_path


COMMANDS = {
    "factorize": (["factorize", "tensor.npz", "--rank", "2"], "tensor.npz", "--out", "new.npz"),
    "label": (["label", "votes.csv"], "votes.csv", "--out", "new.csv"),
    "label, workers": (["label", "votes.csv"], "votes.csv", "--workers", "new.csv"),
    "communities": (["communities", "edges.csv", "-k", "1"], "edges.csv", "--out", "new.csv"),
    "topics": (["topics", "corpus.npz", "-k", "1"], "votes.csv", "--out", "new.csv"),
}


def said(result):
    return " ".join(result.output.split())


@pytest.mark.parametrize("name", ["factorize", "label, workers", "communities"])
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
        assert f"{option} must not be a file that is read" in said(result)
    assert (folder / source).read_bytes() == before
    assert (folder / target).read_bytes() == before


def test_nothing_is_written_into_a_folder_that_is_read(folder):
    (folder / "tensor.zarr" / "inside").mkdir(parents=True)
    command = ["factorize", "tensor.zarr", "--rank", "2", "--out", "tensor.zarr/inside/new.npz", "--force"]
    assert "--out must not be a file that is read" in said(runner.invoke(app, command))


@pytest.mark.parametrize("name", COMMANDS)
def test_files_that_exist_are_replaced_only_by_force(name, folder):
    command, _, option, target = COMMANDS[name]
    (folder / target).write_text("precious")
    result = runner.invoke(app, [*command, option, target])
    assert result.exit_code == 2
    assert f"{option} must not be a file that exists" in said(result)
    assert (folder / target).read_text() == "precious"
    result = runner.invoke(app, [*command, option, target, "--force"])
    assert result.exit_code == 0, result.output
    assert (folder / target).read_bytes() != b"precious"


@pytest.mark.parametrize(
    ("options", "about"),
    [
        (["--out", "x.txt"], "--out must end in .csv, .tsv"),
        (["--workers", "x.npz"], "--workers must end in .csv, .tsv"),
        (["--figure", "x.gif"], "--figure must end in"),
        (["--out", "nowhere/x.csv"], "--out must be a file in a folder that can be written to"),
        (["--out", "x.csv", "--workers", "x.csv"], "outputs must be different files"),
    ],
)
def test_outputs_are_checked_before_anything_is_read(options, about, folder):
    result = runner.invoke(app, ["label", "no such file.csv", *options])
    assert result.exit_code == 2
    assert about in said(result)


def test_nothing_is_written_that_was_not_asked_for(folder):
    before = {path.name for path in folder.iterdir()}
    assert runner.invoke(app, ["label", "votes.csv", "--out", "labels.csv"]).exit_code == 0
    assert {path.name for path in folder.iterdir()} - before == {"labels.csv"}


def test_endings_in_capitals_are_the_file_that_was_checked(folder):
    assert runner.invoke(app, ["factorize", "tensor.npz", "--rank", "2", "--out", "fit.NPZ"]).exit_code == 0
    assert codiag.Factorization.load(folder / "fit.NPZ").rank == 2
    assert not (folder / "fit.NPZ.npz").exists()


def test_a_figure_is_whole_or_not_there(folder, monkeypatch):
    pytest.importorskip("matplotlib", reason="the figure needs the extra 'plot'")

    def broken(_figure, path):
        Path(path).write_bytes(b"half")
        raise OSError("disk full")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", broken)
    before = {path.name for path in folder.iterdir()}
    result = runner.invoke(app, ["factorize", "tensor.npz", "-k", "2", "--figure", "new.png"])
    assert result.exit_code == 2
    assert "disk full" in said(result)
    assert {path.name for path in folder.iterdir()} == before


def test_a_missing_library_is_reported_before_the_work(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    result = runner.invoke(app, ["label", "no such file.csv", "--figure", "x.png"])
    assert result.exit_code == 2
    assert "pip install 'codiag[" in said(result)


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


def test_names_do_not_command_the_terminal(folder):
    names = [ESCAPE, "[red]markup[/red]", "[/bold]", "line\nend", "\u202eturned"]
    result = runner.invoke(app, ["label", str(crowd_with(names, folder))])
    assert result.exit_code == 0, result.output
    assert not set(result.output) & set("\x1b\x07\u202e\r")
    for shown in (r"\x1b]0;owned\x07\x1b[31mred", "[red]markup[/red]", "[/bold]", r"line\nend", r"\u202eturned"):
        assert shown in result.output
    result = runner.invoke(app, ["communities", "\x1b[2J.csv"])
    assert result.exit_code == 2
    assert r"\x1b[2J" in result.output
