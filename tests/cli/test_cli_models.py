from __future__ import annotations

import csv
import gzip
import json
import re
import sys

import numpy as np
import pytest

from codiag.cli import app
from codiag.io import read_votes, write_table
from codiag.models import DawidSkene, MixedMembershipCommunities
from codiag.models.communities import read_edges, read_graph
from codiag.synthetic import crowd_votes, worker_confusions
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
    printed = runner.invoke(app, ["label", str(votes_file), "--sort", "accuracy"]).stdout
    sorted_by = printed.split("90 % interval")[1].split()
    assert str(worst) == next(word for word in sorted_by if word.isdigit())


def test_label_takes_columns_wide_tables_and_pipes(votes_file):
    expected = apart.invoke(app, ["label", str(votes_file), "--out", "-"])
    assert expected.exit_code == 0, expected.output
    _, *rows = [line.split(",") for line in votes_file.read_text().splitlines()]
    renamed = "\n".join(["image,who,species", *map(",".join, rows), ",1,2"])
    options = ["--task", "image", "--worker", "who", "--label", "species", "--skip-missing"]
    piped = apart.invoke(app, ["label", "-", "--out", "-", *options], input=renamed)
    assert body(piped) == body(expected)
    words = " ".join(piped.stderr.split())  # old versions of rich break lines
    assert f"Note: 1 of {len(rows) + 1} votes have no task, worker or label, and are left out" in words
    assert "standard input: 20 workers" in piped.stderr
    workers = sorted({row[1] for row in rows}, key=int)
    given = {(row[0], row[1]): row[2] for row in rows}
    tasks = sorted({row[0] for row in rows}, key=int)
    wide = [["task", *workers], *([task, *(given.get((task, worker), "") for worker in workers)] for task in tasks)]
    piped = apart.invoke(app, ["label", "-", "--wide", "--out", "-"], input="\n".join(map(",".join, wide)))
    assert piped.stdout == expected.stdout


def body(printed):
    """Return a table without the names of its columns, which are those of the votes."""
    return printed.stdout.splitlines()[1:]


JUDGES = ["ann", "bob", "carl", "dora", "eve", "fred", "zoe"]


@pytest.fixture
def jury_file(tmp_path):
    """Return votes of seven judges, the last of whom copies the first."""
    crowd = crowd_votes(300, worker_confusions(6, 2, seed=3), seed=4)
    matrix = np.array(["bad", "good"])[crowd.votes[2].reshape(300, 6)]
    matrix = np.concatenate([matrix, matrix[:, :1]], axis=1)
    task, worker = np.indices(matrix.shape).reshape(2, -1)
    judges = np.array(JUDGES)[worker]
    write_table(tmp_path / "votes.csv", {"task": task, "worker": judges, "label": matrix.ravel()})
    return tmp_path / "votes.csv"


def test_judge_says_who_is_right_who_thinks_alike_and_how_many_there_are(jury_file, tmp_path):
    pytest.importorskip("matplotlib")
    out, judges, picture = (tmp_path / name for name in ("labels.csv", "judges.csv", "alike.png"))
    options = ["--out", str(out), "--workers", str(judges), "--figure", str(picture)]
    result = runner.invoke(app, ["judge", str(jury_file), *options])
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    model = DawidSkene(random_state=0).fit(read_votes(jury_file))
    low, high = model.effective_votes_interval_
    assert "Family 1: ann and zoe are duplicates of each other" in words
    assert f"7 judges are worth {model.effective_votes_:.1f} independent ones ({low:.1f} to {high:.1f})" in words
    doubtful = model.doubt_table(1)
    assert str(doubtful["task"][0]) in words.split("Items to give to a person")[1].split()
    assert [row["label"] for row in read(out)] == model.labels_.tolist()
    rows = {row["worker"]: row for row in read(judges)}
    assert rows["ann"]["family"] == rows["zoe"]["family"] == "1"
    assert rows["bob"]["family"] == "0"
    assert float(rows["ann"]["weight"]) < float(rows["bob"]["weight"])
    assert picture.read_bytes()[:4] == b"\x89PNG"
    assert "Items to give" not in runner.invoke(app, ["judge", str(jury_file), "--doubtful", "0"]).stdout


def test_label_names_workers_who_think_alike(jury_file):
    words = " ".join(runner.invoke(app, ["label", str(jury_file)]).stdout.split())
    assert "Family 1: ann and zoe are duplicates of each other" in words
    assert "Their votes share a weight." in words


def test_votes_on_an_item_are_what_is_worth_something_if_judges_see_few_items(votes_file):
    model = DawidSkene(random_state=0).fit(read_votes(votes_file))
    mean, (low, high) = read_votes(votes_file)["label"].size / 300, model.effective_votes_interval_
    words = " ".join(runner.invoke(app, ["judge", str(votes_file)]).stdout.split())
    worth = f"are worth {model.effective_votes_:.1f} independent ones ({low:.1f} to {high:.1f})."
    assert f"The {mean:.1f} votes that an item has on average, of 20 judges, {worth}" in words


def test_judge_reads_the_same_votes_in_every_form(jury_file, tmp_path):
    expected = apart.invoke(app, ["judge", str(jury_file), "--out", "-"])
    assert expected.exit_code == 0, expected.output
    columns = read_votes(jury_file)
    rows = list(zip(*(columns[name].tolist() for name in ("task", "worker", "label")), strict=True))
    lines = [json.dumps({"id": task, "model": judge, "verdict": label}) for task, judge, label in rows]
    lines.append(json.dumps({"id": 0, "model": "bob", "verdict": None}))
    piped = apart.invoke(app, ["judge", "-", "--out", "-"], input="\n".join(lines))
    assert body(piped) == body(expected)
    assert piped.stdout.startswith("id,verdict,probability,")
    assert "1 of 2101 votes have no task, worker or label, and are left out" in " ".join(piped.stderr.split())
    given = {(task, judge): label for task, judge, label in rows}
    wide = [["image", *JUDGES], *([str(task), *(given[task, judge] for judge in JUDGES)] for task in range(300))]
    path = tmp_path / "wide.csv"
    path.write_text("\n".join(map(",".join, wide)))
    assert body(apart.invoke(app, ["judge", str(path), "--out", "-"])) == body(expected)
    assert apart.invoke(app, ["label", str(path), "--out", "-"]).exit_code == 2  # only where it is said to be wide


@pytest.mark.parametrize(
    "table",
    [
        "image,ann,bob,truth\n1,x,y,x\n2,y,y,y\n",  # is the truth a judge?
        "image,ann,bob\n1,x,y\n1,y,y\n",  # a task with two rows
        "image,width,height\n1,20,31\n2,22,35\n",  # columns that share no value
        "1,2,3,4\n5,6,7,8\n",
    ],
)
def test_tables_that_may_be_wide_are_asked_about(tmp_path, table):
    (tmp_path / "votes.csv").write_text(table)
    result = runner.invoke(app, ["judge", str(tmp_path / "votes.csv")])
    assert result.exit_code == 2
    assert "--wide is for a table with a row for each task" in " ".join(result.output.split())


def test_judge_names_invalid_votes_and_sets_them_aside(jury_file, tmp_path):
    with jury_file.open("a") as file:
        file.write("0,bob,I cannot say [red]\n")
    result = apart.invoke(app, ["judge", str(jury_file), "--out", "-"])
    assert next(csv.DictReader(result.stdout.splitlines())).keys() >= {"p(bad)", "p(good)"}
    words = " ".join(result.stderr.split())
    assert "1 of 2101 votes are invalid and set aside: 'I cannot say [red]' (1)" in words
    assert "I cannot" not in result.stdout
    kept = apart.invoke(app, ["judge", str(jury_file), "--out", "-", "--least-share", "0"])
    assert "p(I cannot say [red])" in kept.stdout
    (tmp_path / "gold.csv").write_text("task,label\n0,I cannot say [red]\n")
    known = apart.invoke(app, ["judge", str(jury_file), "--out", "-", "--gold", str(tmp_path / "gold.csv")])
    assert next(csv.DictReader(known.stdout.splitlines()))["label"] == "I cannot say [red]"


def test_judge_asks_about_items_with_many_votes_of_one_judge(jury_file):
    votes = read_votes(jury_file)
    lines = [f"all,{judge},{label}" for judge, label in zip(votes["worker"], votes["label"], strict=True)]
    jury_file.write_text("\n".join(["task,judge,label", *lines]))
    result = apart.invoke(app, ["judge", str(jury_file)])
    assert "judges have 300.0 votes on an item on average" in " ".join(result.stderr.split())
    half = votes["task"] % 2
    rows = zip(votes["task"] // 2, half, votes["worker"], votes["label"], strict=True)
    jury_file.write_text("\n".join(["item,part,judge,label", *(",".join(map(str, row)) for row in rows)]))
    gold = jury_file.with_name("gold.csv")
    gold.write_text("item,part,label\n7,1,good\n7,0,bad\n")
    named = apart.invoke(app, ["judge", str(jury_file), "--task", "item,part", "--gold", str(gold), "--out", "-"])
    labels = {row["item,part"]: row for row in csv.DictReader(named.stdout.splitlines())}
    assert len(labels) == 300
    assert [labels[task]["label"] for task in ("7 / 0", "7 / 1")] == ["bad", "good"]
    assert "votes on an item" not in named.stderr


def test_judge_measures_position_bias_in_pairs(tmp_path):
    pytest.importorskip("matplotlib")
    rng = np.random.default_rng(0)
    lines = ["question_id,judge,model_a,model_b,winner"]
    for task in range(150):
        for judge in ("ann", "bob", "carl", "dora"):
            likes = ("x", "y", "tie")[(task + (rng.random() < 0.15)) % 3]
            for sides in (("x", "y"), ("y", "x")):
                winner = {sides[0]: "model_a", sides[1]: "model_b"}.get(likes, "tie")
                if judge == "dora" and winner == "model_b" and rng.random() < 0.5:
                    winner = "model_a"
                lines.append(f"{task},{judge},{','.join(sides)},{winner}")
    path, judges, page = tmp_path / "pairs.csv", tmp_path / "judges.csv", tmp_path / "jury.html"
    path.write_text("\n".join([*lines, "3,ann,x,y,timeout", "3,ann,x,y,"]))
    result = apart.invoke(app, ["judge", str(path), "--pairs", "--workers", str(judges)])
    assert result.exit_code == 0, result.stderr
    rows = {row["worker"]: row for row in read(judges)}
    assert abs(float(rows["bob"]["position_bias"])) < 1e-9
    bias, error = (float(rows["dora"][name]) for name in ("position_bias", "bias_standard_error"))
    assert abs(bias - 0.25) < 3 * error < 0.15
    assert f"{bias:+.3f} +- {error:.3f}" in result.stdout
    words = " ".join(result.stderr.split())
    assert "1 of 1202 rows lack one of task, worker, first, second, choice, and are left out" in words
    assert "1 of 1201 votes are invalid and set aside: 'timeout' (1); they are not first, second or tie" in words
    assert "x" in result.stdout.split("Items to give to a person")[1].split()
    for options, message in (
        (["--wide"], "--pairs and --wide exclude each other"),
        (["--task", "none"], "--task must be a column of pairs.csv, one of question_id, judge, model_a, model_b"),
        (["--worker", "winner"], "must name the columns task, judge, first (or model_a)"),
    ):
        wrong = runner.invoke(app, ["judge", str(path), "--pairs", "--report", str(page), *options])
        assert wrong.exit_code == 2
        assert message in " ".join(wrong.output.split())


def test_topics_and_communities_draw_what_they_find(corpus_file, edges_file, tmp_path):
    pytest.importorskip("matplotlib")
    for name, path in (("topics", corpus_file), ("communities", edges_file)):
        picture = tmp_path / f"{name}.png"
        result = runner.invoke(app, [name, str(path), "-k", "2", "--figure", str(picture)])
        assert result.exit_code == 0, result.output
        assert picture.stat().st_size > 10_000
        assert picture.read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("command", ["label", "judge", "topics", "communities"])
def test_figures_without_matplotlib_fail_in_a_sentence_before_the_work(tmp_path, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    (tmp_path / "not read").write_bytes(b"\xff")
    number = [] if command in ("label", "judge") else ["-k", "2"]
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
