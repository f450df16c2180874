"""The commands: what they read, print and write."""

from __future__ import annotations

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose

import codiag
from codiag.cli import app
from codiag.cli.commands import write_table
from codiag.synthetic import crowd_votes, mixed_membership_graph, noisy_tensor, worker_confusions
from commands import apart, read, runner

pandas = pytest.importorskip("pandas", reason="tables need the extra 'files'")


def run(*arguments):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments):
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 2, result.output
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def tensor():
    return noisy_tensor((6, 7, 8), 2, noise=1e-3, rng=0).tensor


@pytest.fixture(scope="module")
def table(tensor):
    """The entries in random order, with labels."""
    places = np.random.default_rng(0).permutation(np.argwhere(np.ones(tensor.shape)))
    columns = {"sample": [f"s{i}" for i in places[:, 0]], "wave": 300 + places[:, 1], "day": places[:, 2]}
    return pandas.DataFrame(columns | {"value": tensor[tuple(places.T)]})


def written(path, tensor, table):
    """Write a tensor in the format of a suffix."""
    if path.suffix == ".npy":
        np.save(path, tensor)
    elif path.suffix == ".npz":
        np.savez(path, X=tensor, other=np.ones(3))
    elif path.suffix == ".mat":
        pytest.importorskip("scipy.io").savemat(path, {"X": tensor})
    elif path.suffix == ".zarr":
        pytest.importorskip("zarr").save_array(str(path), tensor)
    elif path.suffix == ".h5":
        with pytest.importorskip("h5py").File(path, "w") as file:
            file["group/X"] = tensor
    elif path.suffix == ".nc":
        pytest.importorskip("xarray").DataArray(tensor, dims=("a", "b", "c"), name="X").to_netcdf(path, engine="scipy")
    elif path.suffix == ".tns":
        places = np.argwhere(np.ones(tensor.shape))
        np.savetxt(path, np.column_stack([places + 1, tensor.ravel()]), fmt=["%d"] * 3 + ["%.17g"])
    elif path.suffix == ".xlsx":
        pytest.importorskip("openpyxl")
        table.to_excel(path, index=False)
    elif path.suffix == ".parquet":
        pytest.importorskip("pyarrow")
        table.to_parquet(path)
    elif path.suffix in (".json", ".jsonl"):
        table.to_json(path, orient="records", lines=path.suffix == ".jsonl")
    else:
        table.to_csv(path, index=False, sep={".tsv": "\t", ".txt": " "}.get(path.suffix, ","))
    return path


ARRAYS = ["x.npy", "x.npz", "x.mat", "x.zarr", "x.h5", "x.nc", "x.tns"]
TABLES = ["x.csv", "x.csv.gz", "x.tsv", "x.txt", "x.xlsx", "x.parquet", "x.json", "x.jsonl"]


@pytest.mark.parametrize("name", ARRAYS + TABLES)
def test_every_format_holds_the_same_tensor(name, tensor, table, tmp_path):
    run("factorize", written(tmp_path / name, tensor, table), "--rank", 2, "--out", tmp_path / "fit.npz")
    fit, expected = codiag.Factorization.load(tmp_path / "fit.npz"), codiag.factorize(tensor, 2, rng=0)
    assert_allclose(np.asarray(fit.weights), expected.weights, rtol=1e-5)
    assert (fit.problem.labels is not None) == (name in TABLES or name == "x.nc")


def test_a_fit_is_printed_saved_drawn_and_reported(tensor, table, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    path = written(tmp_path / "x.csv", tensor, table)
    outputs = {"--out": "factors.csv", "--figure": "components.png", "--report": "page.html"}
    options = [part for option, name in outputs.items() for part in (option, tmp_path / name)]
    said = run("factorize", path, "--rank", 2, *options)
    assert "Factorization(2 components of a tensor 6 sample x 7 wave x 8 day" in said
    assert "strongest labels" in said
    fit = codiag.factorize(table, 2, rng=0)
    rows = pandas.read_csv(tmp_path / "factors.csv")
    assert len(rows) == 2 * (6 + 7 + 8)
    wave = rows[(rows["mode"] == "wave") & (rows["component"] == 1)]
    assert_allclose(wave["value"], fit.factors[1][:, 1])
    assert_allclose(wave["standard_error"], fit.entry_standard_errors[1][:, 1])
    assert wave["label"].astype(int).tolist() == list(range(300, 307))
    assert (tmp_path / "components.png").read_bytes().startswith(b"\x89PNG")
    assert "x.csv" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_columns_are_the_last_and_the_others_or_named(tensor, table, tmp_path):
    path = tmp_path / "x.csv"
    table[["day", "value", "wave", "sample"]].assign(note="n").to_csv(path, index=False)
    out = tmp_path / "fit.npz"
    run("factorize", path, "-k", 2, "--modes", "sample, wave,day", "--value", "value", "--out", out)
    assert codiag.Factorization.load(out).problem.labels.names == ("sample", "wave", "day")
    assert "--value must name" in refused("factorize", path, "-k", 2, "--modes", "sample,wave,day")
    assert "one of day, value, wave, sample, note; got val" in refused("factorize", path, "-k", 2, "--value", "val")
    assert "column note of x.csv must have numbers" in refused("factorize", path, "-k", 2)


@pytest.fixture(scope="module")
def counts():
    """A table with a column of counts, and the rows that were counted."""
    rng = np.random.default_rng(1)
    columns = {name: rng.integers(0, size, 600) for name, size in (("place", 5), ("hour", 6), ("week", 7))}
    rows = pandas.DataFrame(columns)
    return rows, rows.groupby(list(columns)).size().reset_index(name="n")


@pytest.mark.parametrize("options", [["--modes", "place,hour,week"], [], ["--value", "n"]])
def test_counts_of_a_table_are_its_column_of_counts(options, counts, tmp_path):
    counts[1].assign(n=3 * counts[1]["n"]).to_csv(tmp_path / "x.csv", index=False)
    said = run("factorize", tmp_path / "x.csv", "-k", 1, "--counts", *options, "--out", tmp_path / "fit.npz")
    assert "Note: entries are column n of x.csv by place, hour, week" in said
    assert "explained deviance" in said
    assert_allclose(codiag.Factorization.load(tmp_path / "fit.npz").to_tensor().sum(), 1800, rtol=1e-6)


@pytest.mark.parametrize("options", [["--modes", "place,hour,week"], ["--value", "none"]])
def test_rows_are_counted_only_if_all_columns_are_modes_or_it_is_said(options, counts, tmp_path):
    counts[0].to_csv(tmp_path / "x.csv", index=False)
    said = run("factorize", tmp_path / "x.csv", "-k", 1, "--counts", *options, "--out", tmp_path / "fit.npz")
    assert "Note: entries are the number of rows of x.csv by place, hour, week" in said
    assert_allclose(codiag.Factorization.load(tmp_path / "fit.npz").to_tensor().sum(), 600, rtol=1e-6)


def test_two_columns_left_over_are_not_guessed_from(counts, tmp_path):
    counts[1].assign(m=1).to_csv(tmp_path / "x.csv", index=False)
    said = refused("factorize", tmp_path / "x.csv", "-k", 1, "--counts", "--modes", "place,hour,week")
    assert said.startswith("Error: --value must name the column of the entries, since --modes leaves n, m of x.csv")


def test_rank_chooses_and_says_why(tensor, tmp_path):
    np.save(tmp_path / "x.npy", tensor)
    said = run("rank", tmp_path / "x.npy", "--max-rank", 3, "--out", tmp_path / "ranks.csv")
    assert "2" in [row["rank"] for row in read(tmp_path / "ranks.csv")]
    assert str(codiag.choose_rank(tensor, range(1, 4), rng=0).reason)[:20] in " ".join(said.split())


def test_the_rank_is_checked_before_the_file_is_read():
    for rank in ("0", "-1", "two"):
        assert f"--rank must be a positive integer, or auto; got {rank}" in refused("factorize", "none.csv", "-k", rank)


def test_quiet_prints_nothing_and_a_note_if_nothing_is_saved(tensor, tmp_path):
    np.save(tmp_path / "x.npy", tensor)
    result = apart.invoke(app, ["factorize", str(tmp_path / "x.npy"), "-k", "2", "--quiet"])
    assert result.stdout == ""
    assert "--quiet prints no result" in result.stderr
    result = apart.invoke(
        app, ["factorize", str(tmp_path / "x.npy"), "-k", "2", "-q", "--out", str(tmp_path / "x.npz")]
    )
    assert result.stdout + result.stderr == ""


def test_an_interrupt_ends_with_a_word(tensor, tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", tensor)

    def interrupted(*_args, **_more):
        raise KeyboardInterrupt

    monkeypatch.setattr(codiag, "factorize", interrupted)
    result = runner.invoke(app, ["factorize", str(tmp_path / "x.npy"), "-k", "2"])
    assert result.exit_code == 130
    assert result.output.strip() == "Interrupted"


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    crowd = crowd_votes(200, worker_confusions(8, 3, rng=0), rng=1)
    frame = pandas.DataFrame(dict(zip(("task", "worker", "label"), crowd.votes, strict=True)))
    frame["label"] = frame["label"].map({0: "good", 1: "bad", 2: "ugly"})
    path = tmp_path_factory.mktemp("votes") / "votes.csv"
    frame.loc[3, "label"] = "I cannot judge"
    frame.loc[4, "label"] = None
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("command", ["label", "judge"])
def test_label_and_judge_set_the_same_votes_aside(command, votes, tmp_path):
    options = ["--out", tmp_path / "labels.csv", "--workers", tmp_path / "workers.csv"]
    said = " ".join(run(command, votes, *options).split())
    assert "Note: 1 of 1600 cells hold no vote, and are set aside" in said
    assert "Note: 1 votes are invalid and set aside: 'I cannot judge' (1)" in said
    labels = read(tmp_path / "labels.csv")
    assert {row["label"] for row in labels} == {"good", "bad", "ugly"}
    assert len(labels) == 200
    assert len(read(tmp_path / "workers.csv")) == 8


def test_votes_have_the_columns_that_options_name(votes, tmp_path):
    frame = pandas.read_csv(votes)
    frame.set_axis(["item", "rater", "grade"], axis=1).to_csv(tmp_path / "x.csv", index=False)
    said = refused("label", tmp_path / "x.csv")
    assert "--task must name a column of x.csv, one of item, rater, grade; got task" in said
    assert "--wide" in said
    run(
        "label", tmp_path / "x.csv", "--task", "item", "--worker", "rater", "--label", "grade", "-o", tmp_path / "a.csv"
    )
    frame.pivot(index="task", columns="worker", values="label").reset_index().to_csv(tmp_path / "w.csv", index=False)
    run("label", tmp_path / "w.csv", "--wide", "-o", tmp_path / "b.csv")
    run("label", votes, "-o", tmp_path / "c.csv")
    found = [[(row["task"], row["label"]) for row in read(tmp_path / f"{name}.csv")] for name in "abc"]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("command", ["label", "judge"])
def test_known_classes_are_kept(command, votes, tmp_path):
    pandas.DataFrame({"task": [5, 6], "label": ["ugly", "bad"]}).to_csv(tmp_path / "gold.csv", index=False)
    run(command, votes, "--gold", tmp_path / "gold.csv", "-o", tmp_path / "out.csv")
    labels = {row["task"]: row["label"] for row in read(tmp_path / "out.csv")}
    assert (labels["5"], labels["6"]) == ("ugly", "bad")


def test_judge_reports_a_jury(votes, tmp_path):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    run("judge", votes, "--report", tmp_path / "jury.html", "--figure", tmp_path / "jury.svg")
    assert (tmp_path / "jury.html").stat().st_size > 1000


def test_choices_between_two_answers_are_recognized(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        (
            task,
            f"judge{judge}",
            f"model{task % 3}",
            f"model{(task + 1) % 3}",
            rng.choice(["first", "second"], p=[0.7, 0.3]),
        )
        for task in range(120)
        for judge in range(4)
    ]
    frame = pandas.DataFrame(rows, columns=["task", "judge", "first", "second", "choice"])
    frame.to_csv(tmp_path / "pairs.csv", index=False)
    said = run("judge", tmp_path / "pairs.csv")
    assert "rows are choices between two answers" in said
    assert "ranking (Bradley-Terry)" in said
    assert "ranking (Bradley-Terry)" in run("judge", tmp_path / "pairs.csv", "--pairs")
    assert "codiag judge" in refused("label", tmp_path / "pairs.csv")


@pytest.fixture(scope="module")
def corpus():
    """Counts of 400 documents on two topics."""
    rng = np.random.default_rng(0)
    mixtures = rng.dirichlet([0.5, 0.5], 400) @ rng.dirichlet(np.full(12, 0.3), 2)
    return np.stack([rng.multinomial(30, mixture) for mixture in mixtures])


@pytest.mark.parametrize("name", ["x.npz", "docword.txt", "x.txt", "x.csv"])
def test_topics_of_counts_and_texts(name, corpus, tmp_path):
    from scipy import sparse

    path, words = tmp_path / name, [f"word{number:02}" for number in range(12)]
    (tmp_path / "vocab.txt").write_text("\n".join(words))
    texts = [" ".join(np.repeat(words, row)) for row in corpus]
    options = ["--vocabulary", tmp_path / "vocab.txt"] if name in ("x.npz", "docword.txt") else []
    if name == "x.npz":
        sparse.save_npz(path, sparse.csr_array(corpus))
    elif name == "docword.txt":
        places = np.nonzero(corpus)
        lines = [f"{a + 1} {b + 1} {count}" for a, b, count in zip(*places, corpus[places], strict=True)]
        path.write_text("\n".join(["400", "12", str(len(lines)), *lines]))
    elif name == "x.txt":
        path.write_text("\n".join(texts))
    else:
        pandas.DataFrame({"text": texts}).to_csv(path, index=False)
    said = run("topics", path, "-k", 2, *options, "--out", tmp_path / "shares.csv")
    assert f"{name}: 400 documents, 12 words" in said
    shares = pandas.read_csv(tmp_path / "shares.csv")
    assert_allclose(shares["topic_0"] + shares["topic_1"], 1)
    model = codiag.models.LatentDirichlet(2, random_state=0).fit(corpus)
    if name == "x.csv":
        compared = run("topics", path, "-k", "1,2")
        assert "held-out perplexity" in compared
        assert compared.endswith(said.partition(f"{name}: 400")[2].partition("Saved")[0])
        assert "must be a positive integer" in refused("topics", path, "-k", "1,x")
    assert_allclose(shares["topic_0"], model.transform(corpus)[:, 0], atol=1e-6)


@pytest.fixture(scope="module")
def edges():
    graph = mixed_membership_graph(200, 2, alpha_0=0.1, inside=0.3, outside=0.02, rng=0)
    return np.argwhere(np.triu(graph.adjacency.toarray()))


@pytest.mark.parametrize("name", ["x.txt", "x.edges", "x.csv", "x.graphml", "x.gml"])
def test_communities_of_graphs(name, edges, tmp_path):
    nx = pytest.importorskip("networkx")
    path = tmp_path / name
    if name == "x.csv":
        pandas.DataFrame(edges, columns=["from", "to"]).to_csv(path, index=False)
    elif name in ("x.graphml", "x.gml"):
        getattr(nx, f"write_{path.suffix[1:]}")(nx.Graph(edges.tolist()), path)
    else:
        np.savetxt(path, edges, fmt="%d", header="friends")
    run("communities", path, "-k", 2, "--out", tmp_path / "out.csv")
    rows = {int(row["node"]): int(row["community"]) for row in read(tmp_path / "out.csv")}
    model = codiag.models.MixedMembershipSBM(2, random_state=0).fit(edges)
    expected = dict(zip(model.nodes_.tolist(), model.labels_.tolist(), strict=True))
    same = np.mean([rows[node] == label for node, label in expected.items()])
    assert max(same, 1 - same) > 0.95


def test_weights_of_edges_are_named(edges, tmp_path):
    pytest.importorskip("networkx")
    frame = pandas.DataFrame(edges, columns=["from", "to"]).assign(strength=1.5)
    frame.to_csv(tmp_path / "x.csv", index=False)
    run("communities", tmp_path / "x.csv", "-k", 2, "--weight", "strength")
    assert "must have two nodes" in refused("communities", tmp_path / "x.csv", "-k", 2, "--weight", "mass")
    np.savetxt(tmp_path / "x.txt", frame, fmt="%g")
    assert "x.txt" in refused("communities", tmp_path / "x.txt", "-k", 2)
    run("communities", tmp_path / "x.txt", "-k", 2, "--weight", "weight")


def test_demo_prints_a_table_and_draws_the_spectra(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    for name, value in {"SHAPE": (6, 20, 15), "RANK": 3, "STARTS": 2}.items():
        monkeypatch.setattr(f"codiag.cli.demo.{name}", value)
    monkeypatch.setattr("codiag.cli.commands.stdout.width", 120)
    said = run("demo", "--figure", tmp_path / "demo.png")
    assert "Spectra of 3 substances in 6 mixtures" in said
    shares = re.findall(r"^ *codiag.*?(\d+)%, (\d+)%, (\d+)%", said, re.MULTILINE)
    assert len(shares) == 2, said
    assert all(int(share) > 50 for row in shares for share in row)
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")
    assert "--force" in refused("demo", "--figure", tmp_path / "demo.png")


def test_help_lists_the_commands_and_version_the_version():
    said = run("--help")
    for name in ("factorize", "rank", "label", "judge", "topics", "communities", "demo"):
        assert f"\n  {name} " in said
        assert "--seed" in run(name, "--help")
    assert run("--version") == f"codiag {codiag.__version__}\n"


def test_tables_that_are_written_hold_no_formulas(tmp_path):
    write_table(tmp_path / "x.tsv", {"a": ["=1+1", "plain"], "b": np.array([-1.5, 2.0])})
    assert (tmp_path / "x.tsv").read_text() == "a\tb\n'=1+1\t-1.5\nplain\t2.0\n"
