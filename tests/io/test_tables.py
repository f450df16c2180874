"""Votes and edges from files: read as meant, or refused with the line."""

from __future__ import annotations

import gzip
import json
import sys

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from codiag.io import read_votes, write_table
from codiag.models.communities import read_edges, read_graph


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_votes_are_read_whatever_the_order_and_the_extra_columns(tmp_path):
    plain = read_votes(written(tmp_path / "v.csv", "worker,time,label,task\nann,9,yes,01\nbob,8,no,02\n"))
    assert plain["task"].tolist() == ["01", "02"]
    assert plain["worker"].tolist() == ["ann", "bob"]
    tabs = read_votes(written(tmp_path / "v.tsv", "Item\tRater\tRating\n1\t2\t3\n-4\t5\t6\n"))
    assert_array_equal(tabs["task"], [1, -4])
    bare = read_votes(written(tmp_path / "b.csv", "\ufeff1,2,3\n4,5,6\n\n"))
    assert_array_equal(bare["label"], [3, 6])
    quoted = read_votes(written(tmp_path / "q.csv", 'task,worker,label\n1,2,"a, b"\n'))
    assert quoted["label"].tolist() == ["a, b"]
    european = read_votes(written(tmp_path / "e.csv", "task;worker;label\n1;2;3\n"))
    assert_array_equal(european["label"], [3])
    with gzip.open(tmp_path / "v.csv.gz", "wt") as file:
        file.write("task,worker,label\n1,2,3\n")
    assert_array_equal(read_votes(tmp_path / "v.csv.gz")["worker"], [2])


def test_several_columns_name_a_task(tmp_path):
    path = written(tmp_path / "v.csv", "question,model,judge,score\n1,x,ann,3\n1,y,ann,4\n2,x,ann,5\n")
    assert read_votes(path, task="question,model")["task"].tolist() == ["1 / x", "1 / y", "2 / x"]
    assert read_votes(path)["task"].tolist() == [1, 1, 2]
    with pytest.raises(ValueError, match=r"task must be a column of v\.csv, .*; got 'question,answer'"):
        read_votes(path, task="question,answer")
    ragged = written(tmp_path / "r.csv", "question,model,judge,score\n1,x,ann\n")
    with pytest.raises(ValueError, match="line 2 has 3 columns, not 4"):
        read_votes(ragged, task="question,model")


@pytest.mark.parametrize("name", ["v.jsonl", "v.ndjson", "v.jsonl.gz"])
def test_json_lines_are_read_like_tables(tmp_path, name):
    objects = [
        {"id": 1, "judge": "ann", "response": "long, text", "verdict": 3.0, "usage": {"tokens": 9}},
        {"verdict": 4, "judge": "bob", "id": 1, "cost": 0.5},
        {"id": 2, "judge": "ann", "verdict": None},
    ]
    text = "\n\n".join(json.dumps(one) for one in objects) + "\n"
    (tmp_path / name).write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    votes = read_votes(tmp_path / name, skip_missing=True)
    assert [votes[key].tolist() for key in ("task", "worker", "label")] == [[1, 1], ["ann", "bob"], [3, 4]]
    with pytest.raises(ValueError, match="line 5 has no label"):
        read_votes(tmp_path / name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"id": 1}\n{"id": 2', r"line 2 of v\.jsonl is not JSON"),
        ('{"id": 1}\n[1, 2]\n', r"line 2 of v\.jsonl must be a JSON object, as \{\.\.\.\}; got \[1, 2\]"),
        ('{"id": 1}\n', "must name the columns task"),
        ("\n", "holds no votes"),
        ("{}\n", "holds no votes"),
    ],
)
def test_bad_json_lines_are_named_by_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_votes(written(tmp_path / "v.jsonl", text))


def test_columns_of_evaluations_are_known(tmp_path):
    """Judges come before the models that they judge, and verdicts before the texts that these are about."""
    header = "id,question_id,model,judge,answer,verdict,score\n"
    votes = read_votes(written(tmp_path / "v.csv", header + "9,q1,llama,gpt,some text,good,7\n"))
    assert [votes[key].tolist() for key in ("task", "worker", "label")] == [["q1"], ["gpt"], ["good"]]
    scored = written(tmp_path / "s.csv", "id,model,answer,score\nq1,gpt,some text,7\n")
    with pytest.raises(ValueError, match="both answer and score may have them; call the right one label"):
        read_votes(scored)
    assert read_votes(scored, label="score")["label"].tolist() == [7]


def test_columns_of_votes_are_named(tmp_path):
    path = written(tmp_path / "v.csv", "image,who,label,species\n7,ann,x,cat\n8,bob,y,dog\n")
    votes = read_votes(path, task="image", worker="who", label="species")
    assert [votes[name].tolist() for name in ("task", "worker", "label")] == [[7, 8], ["ann", "bob"], ["cat", "dog"]]
    assert read_votes(path, task="image", worker="who")["label"].tolist() == ["x", "y"]
    with pytest.raises(
        ValueError, match=r"task must be a column of v\.csv, one of image, who, label, species; got 'picture'"
    ):
        read_votes(path, task="picture")
    with pytest.raises(ValueError, match="must be three columns"):
        read_votes(path, task="image", worker="image")
    with pytest.raises(ValueError, match="Name others by `task`, `worker` and `label`; wide=True is for"):
        read_votes(path, task="image")


@pytest.mark.parametrize(
    "order", ["image,ann,bob,carl\n7,cat,,dog\n8,NA,dog,dog\n", "ann,bob,image,carl\ncat,,7,dog\n,dog,8,dog\n"]
)
def test_wide_tables_hold_the_votes_of_long_ones(tmp_path, order):
    votes = read_votes(written(tmp_path / "w.csv", order), wide=True, task="image")
    assert set(zip(*(votes[name].tolist() for name in ("task", "worker", "label")), strict=True)) == {
        (7, "ann", "cat"),
        (7, "carl", "dog"),
        (8, "bob", "dog"),
        (8, "carl", "dog"),
    }


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("a,b\n1,2\n", {"worker": "b"}, "must be left out of a wide table"),
        ("a,b\n1,2\n", {"task": "c"}, r"task must be a column of w\.csv, one of a, b; got 'c'"),
        ("a,b,b\n1,2,3\n", {}, "each once"),
        ("a,b,c\n1,2\n", {}, "line 2 has 2 columns, not 3"),
        ("a,b,c\n,2,3\n", {}, "line 2 has no task"),
        ("a,b,c\n1,,\n", {}, "holds no votes"),
        ("task,worker,label\n1,a,x\n1,b,y\n2,a,x\n", {}, r"each task once in w\.csv; 1 has 2 rows. Leave `wide` out"),
    ],
)
def test_bad_wide_tables_are_named_by_line(tmp_path, text, options, message):
    with pytest.raises(ValueError, match=message):
        read_votes(written(tmp_path / "w.csv", text), wide=True, **options)


def test_votes_that_lack_something_are_left_out_where_asked_for(tmp_path):
    path = written(tmp_path / "v.csv", "task,worker,label\n1,2,3\n1,,3\n4,5,NA\n,1,1\n6,7,8\n")
    votes = read_votes(path, skip_missing=True)
    assert_array_equal(np.stack([*votes.values()], axis=1), [[1, 2, 3], [6, 7, 8]])
    with pytest.raises(ValueError, match="3 lines of v"):
        read_votes(path)
    with pytest.raises(ValueError, match="line 3 has 2 columns, not 3"):
        read_votes(written(tmp_path / "s.csv", "task,worker,label\n1,2,3\n1,2\n"), skip_missing=True)


@pytest.mark.parametrize("package", ["polars", "pandas"])
def test_parquet_is_read(tmp_path, package):
    module = pytest.importorskip(package)
    if package == "pandas":
        pytest.importorskip("pyarrow")
    frame = module.DataFrame({"label": ["a", "b"], "task": [1, 2], "worker": [3, 4]})
    path = tmp_path / "v.parquet"
    frame.write_parquet(path) if package == "polars" else frame.to_parquet(path)
    votes = read_votes(path)
    assert votes["label"].tolist() == ["a", "b"]
    assert votes["worker"].tolist() == [3, 4]


def test_missing_cells_of_parquet_are_missing_votes(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"label": ["a", None], "task": [1, 2], "worker": pandas.array([3, None], dtype="Int64")})
    frame.to_parquet(tmp_path / "v.parquet")
    with pytest.raises(ValueError, match="line 3 has no"):
        read_votes(tmp_path / "v.parquet")
    assert read_votes(tmp_path / "v.parquet", skip_missing=True)["worker"].tolist() == [3]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "task,worker,label\n1,2,3\n1,2\n1,,3\n",
            "2 lines of v.csv cannot be read as votes: line 3 has 2 columns, not 3, line 4 has no w",
        ),
        ("task,worker,label\n" + "1,2\n" * 9, "9 lines .* line 6 has 2 columns, not 3, and 4 more"),
        ("user,thing\n1,2\n", "line 1 of v.csv must name the columns task .* it reads user, thing"),
        ("task,worker,label\n1,2,3\n1,2,NA\n1,2,3,4\n", "line 3 has no label, line 4 has 4 columns, not 3"),
        ("", r"v\.csv is empty"),
        ("task,worker,label\n1,2,3\n1,,3\n", "line 3 has no worker. skip_missing=True leaves these out"),
        ("task,worker,label\n", "only names of columns"),
    ],
)
def test_bad_votes_are_named_by_line(tmp_path, text, message):
    with pytest.raises(ValueError, match=message):
        read_votes(written(tmp_path / "v.csv", text))


def test_bad_files_are_named(tmp_path):
    with pytest.raises(ValueError, match="must end in"):
        read_votes(written(tmp_path / "v.xls", "1"))
    with pytest.raises(FileNotFoundError, match="does not exist"):
        read_votes(tmp_path / "v.csv")
    (tmp_path / "v.csv.gz").write_bytes(b"not gzip")
    with pytest.raises(ValueError, match="cannot be read"):
        read_votes(tmp_path / "v.csv.gz")
    (tmp_path / "v.csv").write_bytes(b"task,worker,label\n\xff\x01,1,2\n")
    with pytest.raises(
        ValueError, match=r"v\.csv cannot be read as text: it is neither UTF-8 nor Latin-1, since byte 19"
    ):
        read_votes(tmp_path / "v.csv")
    (tmp_path / "v.parquet").write_bytes(b"not parquet")
    with pytest.raises(ValueError, match=r"v\.parquet"):
        read_votes(tmp_path / "v.parquet")


def test_edges_are_read_between_anything(tmp_path):
    edges = read_edges(written(tmp_path / "e.txt", "# graph\n1 2\n3\t4 0.5\n% more\n5,6\n\n"))
    assert_array_equal(edges, [[1, 2], [3, 4], [5, 6]])
    assert read_edges(written(tmp_path / "n.txt", "ann bob\n")).tolist() == [["ann", "bob"]]
    named = written(tmp_path / "n.csv", 'id,source,target\n1,"Jean Valjean",Javert\n2,Javert,"Burgon, Mme"\n')
    assert read_edges(named).tolist() == [["Jean Valjean", "Javert"], ["Javert", "Burgon, Mme"]]
    with pytest.raises(ValueError, match=r"1 line of b\.txt cannot be read as edges: line 2 has no two nodes"):
        read_edges(written(tmp_path / "b.txt", "1 2\n3\n"))
    with pytest.raises(ValueError, match="no edges"):
        read_edges(written(tmp_path / "c.txt", "# nothing\n"))


def matrix_of(graph):
    return graph.nodes.tolist(), graph.adjacency.toarray().tolist()


WEIGHTED = ["ann", "bob", "carl"], [[0, 2, 0], [2, 0, 0.5], [0, 0.5, 0]]
PLAIN = ["ann", "bob", "carl"], [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_weights_of_edges_are_taken_or_refused(tmp_path):
    named = written(tmp_path / "n.csv", "weight,source,target,year\n2,ann,bob,7\n2,bob,ann,8\n0.5,carl,bob,9\n")
    assert matrix_of(read_graph(named)) == WEIGHTED
    assert matrix_of(read_graph(named, weight="none")) == PLAIN
    bare = written(tmp_path / "b.txt", "ann bob 2\ncarl bob 0.5\n")
    assert matrix_of(read_graph(bare, weight="3")) == WEIGHTED
    assert matrix_of(read_graph(written(tmp_path / "c.txt", "ann bob 1\ncarl bob 1\n"))) == PLAIN
    for path, weight, words in (
        (bare, None, "numbers in column 3, which may be the weights of edges; weight='3' uses them"),
        (bare, "4", "weight must be a column of b.txt"),
        (named, "year", "that of (ann and bob|bob and ann) is listed with several"),
        (written(tmp_path / "d.csv", "source,target,weight\na,b,1\nb,c,\n"), None, "line 3 has no weight"),
        (written(tmp_path / "e.csv", "source,target,weight\na,b,1\nb,c,-1\n"), None, "must not be negative"),
    ):
        with pytest.raises(ValueError, match=words):
            read_graph(path, weight=weight)


@pytest.mark.parametrize("name", ["g.graphml", "g.gml"])
@pytest.mark.parametrize("kind", ["Graph", "DiGraph"])
def test_graphs_of_networkx(tmp_path, name, kind):
    nx = pytest.importorskip("networkx")
    graph = getattr(nx, kind)([("ann", "bob", {"weight": 2}), ("carl", "bob", {"weight": 0.5})])
    getattr(nx, f"write_{name[2:]}")(graph, tmp_path / name)
    assert matrix_of(read_graph(tmp_path / name)) == WEIGHTED
    assert matrix_of(read_graph(tmp_path / name, weight="none")) == PLAIN
    with pytest.raises(
        ValueError, match=r"weight must be a number of all edges of .* 2 of 2 have none by the name year"
    ):
        read_graph(tmp_path / name, weight="year")
    written(tmp_path / name, "garbage")
    with pytest.raises(ValueError, match=rf"{name} is not a readable"):
        read_graph(tmp_path / name)


def test_graphs_without_networkx(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ValueError, match=r"g\.gml cannot be read without networkx"):
        read_graph(written(tmp_path / "g.gml", "graph []"))


def test_tables_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "t.tsv"
    write_table(path, {"a": np.array([1, 2]), "b": ["x\ty", "z"]})
    assert path.read_text() == 'a\tb\n1\t"x\ty"\n2\tz\n'
    with pytest.raises(ValueError, match="of one length; got a 2, b 1"):
        write_table(path, {"a": [1, 2], "b": [1]})
    assert path.read_text().startswith("a\tb")
    assert [file.name for file in tmp_path.iterdir()] == ["t.tsv"]
