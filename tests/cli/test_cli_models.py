from __future__ import annotations

import csv
import gzip
import re
import sys

import numpy as np
import pytest

from codiag.cli import app
from codiag.io import read_votes
from codiag.models import DawidSkene, MixedMembershipCommunities
from codiag.models.communities import read_edges, read_graph
from commands import apart, read, runner


def test_topics_prints_and_saves(corpus_file, tmp_path):
    path = tmp_path / "topics.npz"
    result = runner.invoke(app, ["topics", str(corpus_file), "--topics", "2", "--out", str(path), "--words", "3"])
    assert result.exit_code == 0, result.output
    with np.load(path) as saved:
        np.testing.assert_allclose(saved["components"].sum(axis=1), 1)
        assert str(saved["vocabulary"][saved["components"][0].argmax()]) in result.stdout
    assert "perplexity" in result.stdout


def test_topics_of_plain_text(tmp_path):
    lines = ["cats purr and cats sleep while dogs bark", "stocks fell as markets closed and stocks traded low"] * 30
    (tmp_path / "corpus.txt").write_text("\n".join(lines))
    result = runner.invoke(app, ["topics", str(tmp_path / "corpus.txt"), "--topics", "2", "--alpha-0", "0.01"])
    assert result.exit_code == 0, result.output
    rows = [line for line in result.stdout.splitlines() if "cats" in line or "stocks" in line]
    assert len(rows) == 2


TEXTS = ["cats purr and cats sleep while dogs bark", "stocks fell as markets closed and stocks traded low"] * 12


def write_texts(path):
    """Write documents as a folder, lines or a table, by the name, and return what documents are called."""
    if not path.suffix:
        (path / "old").mkdir(parents=True)
        names = [f"{'old/' * (i % 2)}{i:02d}.txt{'.gz' * (i % 3 == 0)}" for i in range(len(TEXTS))]
        for name, text in zip(names, TEXTS, strict=True):
            content = text.encode()
            (path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
        return names
    if ".csv" in path.name:
        content = "id,body\n" + "".join(f'{i},"{text}"\n' for i, text in enumerate(TEXTS)) + "99,\n"
    else:
        content = "\n\n".join(TEXTS) + "\n"
    path.write_bytes(gzip.compress(content.encode()) if path.suffix == ".gz" else content.encode())
    return [str(i) for i in (range(1, 25) if ".csv" in path.name else range(1, 49, 2))]


@pytest.mark.parametrize("name", ["folder", "lines.txt", "lines.txt.gz", "table.csv", "table.csv.gz"])
def test_topics_reads_texts_and_writes_shares(tmp_path, name):
    names = write_texts(tmp_path / name)
    out, saved = tmp_path / "shares.csv", tmp_path / "topics.npz"
    column = ["--text", "body"] if ".csv" in name else []
    options = [str(tmp_path / name), "-k", "2", "--alpha-0", "0.01", "--documents", str(out), "--out", str(saved)]
    result = runner.invoke(app, ["topics", *options, *column])
    assert result.exit_code == 0, result.output
    rows = {row["document"]: row for row in read(out)}
    assert set(rows) == set(names)
    about_cats = "cats" in TEXTS[0]
    of_cats = {rows[one]["topic"] for one, text in zip(names, TEXTS, strict=True) if ("cats" in text) == about_cats}
    assert len(of_cats) == 1
    shares = np.array([[float(row["topic_0"]), float(row["topic_1"])] for row in rows.values()])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    with np.load(saved) as file:
        np.testing.assert_allclose(file["shares"], shares)
        assert file["documents"].astype(str).tolist() == list(rows)


@pytest.mark.parametrize("name", ["folder", "table.csv"])
def test_topics_calls_documents_by_one_name(tmp_path, name):
    """In the table of shares and in the report: files by theirs, rows by what a column says."""
    pytest.importorskip("matplotlib")
    names = write_texts(tmp_path / name)
    out, page = tmp_path / "shares.csv", tmp_path / "page.html"
    columns = ["--text", "body", "--id", "id"] if ".csv" in name else []
    names = [str(i) for i in range(24)] if columns else names
    options = [str(tmp_path / name), "-k", "2", "--documents", str(out), "--report", str(page)]
    result = runner.invoke(app, ["topics", *options, *columns])
    assert result.exit_code == 0, result.output
    assert sorted(row["document"] for row in read(out)) == sorted(names)
    listed = re.findall(r"([\w./]+) \(\d\.\d\d\)", page.read_text())
    assert len(listed) == 10
    assert set(listed) <= set(names)
    assert "numbered from 0" not in page.read_text()


def test_topics_leaves_out_the_words_that_it_is_told(tmp_path):
    write_texts(tmp_path / "lines.txt")
    (tmp_path / "stop.txt").write_text("Cats\nstocks\n")
    with (tmp_path / "lines.txt").open("a") as file:
        file.write("cats purr and dogs bark while zebras sleep\n")

    def words(*options):
        saved = tmp_path / "topics.npz"
        path = str(tmp_path / "lines.txt")
        result = runner.invoke(app, ["topics", path, "-k", "2", "--out", str(saved), "--force", *options])
        assert result.exit_code == 0, result.output
        return set(np.load(saved)["vocabulary"].tolist())

    assert {"zebras", "and"} & words() == set()
    assert "cats" in words()
    assert "and" in words("--stop-words", "none")
    assert words("--stop-words", "none") - words("--stop-words", str(tmp_path / "stop.txt")) == {"cats", "stocks"}
    assert "zebras" in words("--min-df", "1")
    assert "zebras" in words("--min-df", "0.03")
    assert "zebras" not in words("--min-df", "0.05")


def test_label_writes_labels_workers_and_a_picture(votes_file, tmp_path):
    pytest.importorskip("matplotlib")
    out, picture, by_worker = (tmp_path / name for name in ("labels.csv", "confusions.png", "workers.csv"))
    options = ["--out", str(out), "--workers", str(by_worker), "--figure", str(picture)]
    result = runner.invoke(app, ["label", str(votes_file), *options])
    assert result.exit_code == 0, result.output
    model = DawidSkene(random_state=0).fit(read_votes(votes_file))
    labels, workers = read(out), read(by_worker)
    assert [int(row["label"]) for row in labels] == model.labels_.tolist()
    np.testing.assert_allclose([float(row["p(1)"]) for row in labels], model.probas_[:, 1])
    np.testing.assert_allclose([float(row["accuracy"]) for row in workers], model.worker_accuracy_)
    np.testing.assert_allclose([float(row["p(2|0)"]) for row in workers], model.confusion_[:, 2, 0])
    assert picture.stat().st_size > 10_000
    assert "20 workers" in result.stdout
    assert "... 5 more" in result.stdout
    worst = model.workers_[np.argmin(model.worker_accuracy_)]
    sorted_by = runner.invoke(app, ["label", str(votes_file), "--sort", "accuracy"]).stdout.split("right")[1].split()
    assert str(worst) == next(word for word in sorted_by if word.isdigit())


def test_label_takes_columns_wide_tables_and_pipes(votes_file):
    expected = apart.invoke(app, ["label", str(votes_file), "--out", "-"])
    assert expected.exit_code == 0, expected.output
    _, *rows = [line.split(",") for line in votes_file.read_text().splitlines()]
    renamed = "\n".join(["image,who,species", *map(",".join, rows), ",1,2"])
    options = ["--task", "image", "--worker", "who", "--label", "species", "--skip-missing"]
    piped = apart.invoke(app, ["label", "-", "--out", "-", *options], input=renamed)
    assert piped.stdout == expected.stdout
    words = " ".join(piped.stderr.split())  # old versions of rich break lines
    assert f"Note: 1 of {len(rows) + 1} votes have no task, worker or label, and are left out" in words
    assert "standard input: 20 workers" in piped.stderr
    workers = sorted({row[1] for row in rows}, key=int)
    given = {(row[0], row[1]): row[2] for row in rows}
    tasks = sorted({row[0] for row in rows}, key=int)
    wide = [["task", *workers], *([task, *(given.get((task, worker), "") for worker in workers)] for task in tasks)]
    piped = apart.invoke(app, ["label", "-", "--wide", "--out", "-"], input="\n".join(map(",".join, wide)))
    assert piped.stdout == expected.stdout


def test_topics_and_communities_draw_what_they_find(corpus_file, edges_file, tmp_path):
    pytest.importorskip("matplotlib")
    for name, path in (("topics", corpus_file), ("communities", edges_file)):
        picture = tmp_path / f"{name}.png"
        result = runner.invoke(app, [name, str(path), "-k", "2", "--figure", str(picture)])
        assert result.exit_code == 0, result.output
        assert picture.stat().st_size > 10_000
        assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("command", ["label", "topics", "communities"])
def test_figures_without_matplotlib_fail_in_a_sentence_before_the_work(tmp_path, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "not read").write_bytes(b"\xff")
    number = [] if command == "label" else ["-k", "2"]
    options = [str(tmp_path / "not read"), *number, "--figure", str(tmp_path / "picture.png")]
    result = runner.invoke(app, [command, *options])
    assert result.exit_code == 2
    assert "pip install 'codiag[plot]'" in result.output
    assert not (tmp_path / "picture.png").exists()


def test_label_writes_nothing_when_votes_are_refused(votes_file, tmp_path):
    with votes_file.open("a") as file:
        file.write("7,,1\n")
    n_lines = len(votes_file.read_text().splitlines())
    result = runner.invoke(app, ["label", str(votes_file), "--out", str(tmp_path / "labels.csv")])
    assert result.exit_code == 2
    assert f"line {n_lines} has no worker" in " ".join(result.output.split())
    assert [path.name for path in tmp_path.iterdir()] == ["votes.csv"]


def test_communities_prints_and_writes_memberships(edges_file, tmp_path):
    out = tmp_path / "m.csv"
    result = runner.invoke(app, ["communities", str(edges_file), "--communities", "3", "--out", str(out)])
    assert result.exit_code == 0, result.output
    model = MixedMembershipCommunities(3, random_state=0).fit(read_edges(edges_file))
    np.testing.assert_allclose([float(row["p0"]) for row in read(out)], model.memberships_[:, 0], atol=1e-9)
    assert "300 nodes, 3 communities" in result.stdout
    found = runner.invoke(app, ["communities", str(edges_file)])
    assert "300 nodes, 3 communities" in found.stdout


def test_communities_honors_weights(edges_file):
    rng = np.random.default_rng(0)
    pairs = {tuple(sorted(pair)) for pair in read_edges(edges_file).tolist()}
    lines = "source,target,weight\n" + "".join(f"{a},{b},{rng.integers(1, 4)}\n" for a, b in sorted(pairs))
    path = edges_file.with_name("weighted.csv")
    path.write_text(lines)
    options = ["communities", str(path), "-k", "3", "--out", "-"]
    weighted, plain = (apart.invoke(app, [*options, *more]).stdout for more in ([], ["--weight", "none"]))
    model = MixedMembershipCommunities(3, random_state=0).fit(read_graph(path).adjacency)
    rows = list(csv.DictReader(weighted.splitlines()))
    np.testing.assert_allclose([float(row["p0"]) for row in rows], model.memberships_[:, 0], atol=1e-9)
    assert weighted != plain
    assert "probability of a link" not in runner.invoke(app, options[:4]).stdout
    assert "expected weight of a link" in runner.invoke(app, options[:4]).stdout
    assert "probability of a link" in runner.invoke(app, [*options[:4], "--weight", "none"]).stdout
