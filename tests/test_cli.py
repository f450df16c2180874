from __future__ import annotations

import csv
import gzip
import logging
import re
import subprocess
import sys
from inspect import signature

import numpy as np
import pytest
from click.testing import CliRunner as ClickRunner
from rich.progress import Progress
from typer.testing import CliRunner

import codiag
from codiag.cli import app
from codiag.cli.terminal import progress
from codiag.experiments.paper import EXPERIMENTS
from codiag.experiments.rivals import RIVALS
from codiag.methods import ALS, METHODS
from codiag.models import DawidSkene, MixedMembershipCommunities
from codiag.synthetic import crowd_votes, mixed_membership_graph, noisy_tensor, worker_errors
from codiag.tables import read_edges, read_graph, read_votes, write_table

runner = CliRunner()
# Old versions of click mix what goes to the two streams, unless told not to; new ones keep both apart, and mixed.
APART = {"mix_stderr": False} if "mix_stderr" in signature(ClickRunner.__init__).parameters else {}
apart = CliRunner(**APART)


def test_version():
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"codiag {codiag.__version__}\n"


def test_module_entry_point():
    done = subprocess.run([sys.executable, "-m", "codiag", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"codiag {codiag.__version__}"


def test_demo_prints_a_table_and_saves_a_figure(tmp_path):
    pytest.importorskip("matplotlib", reason="the figure needs the extra 'plot'")
    figure = tmp_path / "demo.png"
    result = runner.invoke(app, ["demo", "--size", "6", "--figure", str(figure)])
    assert result.exit_code == 0, result.output
    for method in ("oracle", "codiag", "method='nojd1'", "NLS()", "ALS()"):
        assert method in result.stdout
    for rival in RIVALS:
        assert (rival.name in result.stdout) == rival.installed
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr("codiag.experiments.demo.RIVALS", ())
    result = runner.invoke(app, ["demo", "--size", "4", "--figure", str(tmp_path / "demo.png")])
    assert result.exit_code == 2
    assert "pip install 'codiag[plot]'" in result.output
    assert not (tmp_path / "demo.png").exists()


@pytest.fixture
def tensor_file(tmp_path):
    np.save(tmp_path / "tensor.npy", noisy_tensor((6, 7, 8), 3, noise=1e-3, seed=0).tensor)
    return tmp_path / "tensor.npy"


def test_factorize_prints_and_saves(tensor_file, tmp_path):
    path = tmp_path / "factors.npz"
    result = runner.invoke(app, ["factorize", str(tensor_file), "--rank", "3", "--out", str(path), "--seed", "1"])
    assert result.exit_code == 0, result.output
    expected = codiag.factorize(np.load(tensor_file), 3, seed=1)
    fit = codiag.Factorization.load(path)
    np.testing.assert_array_equal(fit.weights, expected.weights)
    for words in ("relative error", "diagonalize", "least squares", "polish", f"{expected.weights[0]:.6g}"):
        assert words in result.stdout


def test_factorize_takes_methods_and_symmetry(tmp_path):
    problem = noisy_tensor((5, 5, 5), 3, symmetric=True, seed=0)
    noise = 1e-6 * np.random.default_rng(0).standard_normal((5, 5, 5))
    np.savez(tmp_path / "two.npz", X=problem.tensor + noise, Y=noise)
    options = [str(tmp_path / "two.npz"), "-r", "3", "--method", "nojd1", "--variable", "X"]
    assert "a symmetric tensor" in runner.invoke(app, ["factorize", *options, "--symmetric"]).stdout
    assert "a symmetric tensor" not in runner.invoke(app, ["factorize", *options, "--not-symmetric"]).stdout


def test_factorize_chooses_the_rank_and_says_why(tensor_file):
    result = runner.invoke(app, ["factorize", str(tensor_file), "--rank", "auto", "--max-rank", "5"])
    assert result.exit_code == 0, result.output
    choice = codiag.choose_rank(np.load(tensor_file), range(1, 6), seed=0)
    assert choice.rank == 3
    printed = " ".join(result.stdout.split())
    assert " ".join(str(choice).split()) in printed
    assert "3 components" in printed


def test_factorize_without_a_supported_rank_writes_nothing(tmp_path):
    np.save(tmp_path / "noise.npy", np.random.default_rng(0).standard_normal((6, 7, 8)))
    options = [str(tmp_path / "noise.npy"), "--rank", "auto", "--max-rank", "3", "--out", str(tmp_path / "out.npz")]
    result = runner.invoke(app, ["factorize", *options])
    assert result.exit_code == 2
    assert "--rank auto finds none" in result.output
    assert not (tmp_path / "out.npz").exists()


def test_factorize_prints_errors_and_the_diagnosis(tensor_file):
    printed = runner.invoke(app, ["factorize", str(tensor_file), "--rank", "4"]).stdout
    fit = codiag.factorize(np.load(tensor_file), 4, seed=0)
    for line in str(fit.diagnose()).splitlines():
        assert line in printed
    row = next(line.split() for line in printed.splitlines() if f"{float(fit.weights[0]):.6g}" in line)
    assert row[2:] == [f"{error:.2g}" for error in (fit.weight_standard_errors[0], *fit.standard_errors[:, 0])]


@pytest.fixture
def long_table(tensor_file):
    """Return a table of the entries in random order, with labels and a column that is neither."""
    entries = np.load(tensor_file)
    places = np.random.default_rng(0).permutation(np.argwhere(np.ones(entries.shape)))
    columns = {"note": ["x"] * len(places), "value": entries[tuple(places.T)].tolist()}
    columns |= {"sample": [f"s{i}" for i in places[:, 0]], "wave": 300 + places[:, 1], "day": places[:, 2]}
    write_table(tensor_file.with_name("long.csv"), columns)
    return tensor_file.with_name("long.csv")


@pytest.mark.parametrize("libraries", [["pandas"], ["polars"], []], ids=str)
def test_factorize_takes_long_tables_and_answers_in_their_labels(long_table, tensor_file, libraries, monkeypatch):
    if libraries:
        pytest.importorskip(libraries[0])
    monkeypatch.setattr("codiag._frames.LIBRARIES", libraries)
    out = long_table.with_name("out.csv")
    options = [str(long_table), "-k", "3", "--modes", "sample,wave,day", "--value", "value", "--out", str(out)]
    result = runner.invoke(app, ["factorize", *options])
    assert result.exit_code == 0, result.output
    fit = codiag.factorize(np.load(tensor_file), 3, seed=0)
    rows = {(row["mode"], row["label"], row["component"]): row for row in read(out)}
    assert len(rows) == 3 * (6 + 7 + 8)
    for mode, name, label in ((0, "sample", "s4"), (1, "wave", "304"), (2, "day", "4")):
        row = rows[name, label, "1"]
        assert float(row["value"]) == pytest.approx(fit.factors[mode][4, 1], abs=1e-9)
        assert float(row["standard_error"]) == pytest.approx(fit.entry_standard_errors[mode][4, 1], rel=1e-6)
    strongest = f"s{np.argmax(np.abs(fit.factors[0][:, 0]))}"
    rows = result.stdout.split("strongest labels")[1].splitlines()
    assert next(row for row in rows if row.split()[:1] == ["0"]).split()[1].strip(",") == strongest


def test_factorize_takes_what_a_table_does_not_list_as_it_is_told(long_table):
    lines = long_table.read_text().splitlines()
    long_table.write_text("\n".join(lines[:-6]))
    options = ["factorize", str(long_table), "-k", "2", "--modes", "sample,wave,day", "--value", "value"]
    assert "over the 330 entries observed, of 336" in runner.invoke(app, options).stdout
    assert "observed" not in runner.invoke(app, [*options, "--absent", "zero"]).stdout


@pytest.mark.parametrize("name", ["tensor.npy", "tensor.npy.gz", "long.csv", "tensor.tns"])
def test_factorize_reads_pipes_and_writes_to_them(name, tensor_file, long_table):
    entries = np.load(tensor_file)
    packed = gzip.compress(tensor_file.read_bytes())
    tensor_file.with_name("tensor.npy.gz").write_bytes(packed)
    rows = np.column_stack([np.argwhere(np.ones(entries.shape)) + 1, entries.ravel()])
    np.savetxt(tensor_file.with_name("tensor.tns"), rows, fmt=["%d"] * 3 + ["%.17g"])
    columns = ["--modes", "sample,wave,day", "--value", "value"] if name == "long.csv" else []
    options = ["-k", "3", "--out", "-", *columns]
    piped = apart.invoke(app, ["factorize", "-", *options], input=tensor_file.with_name(name).read_bytes())
    assert piped.exit_code == 0, piped.output
    named = apart.invoke(app, ["factorize", str(tensor_file.with_name(name)), *options])
    assert piped.stdout == named.stdout
    found = list(csv.DictReader(piped.stdout.splitlines()))
    weights = sorted({float(row["weight"]) for row in found}, reverse=True)
    np.testing.assert_allclose(weights, codiag.factorize(entries, 3, seed=0).weights)
    assert "relative error" in piped.stderr


@pytest.mark.parametrize("name", ["x.npy", "x.zarr", "x.h5", "x.h5:/X"])
def test_factorize_reads_large_files_in_parts(tmp_path, name, monkeypatch):
    """And shows how many passes are done, of those that it takes, on a terminal."""
    entries = noisy_tensor((22, 20, 24), 3, noise=1e-2, seed=0).tensor
    path = tmp_path / name.partition(":")[0]
    write_chunks(path, entries, monkeypatch)
    monkeypatch.setattr("codiag.tensors._first_look.SMALL", 1000)
    seen = []
    plain = Progress.update
    monkeypatch.setattr(Progress, "update", lambda self, *ids, **new: (seen.append(new), plain(self, *ids, **new)))
    options = [str(tmp_path / name), "-k", "3", "--out", str(tmp_path / "out.npz")]
    result = runner.invoke(app, ["factorize", *options])
    assert result.exit_code == 0, result.output
    expected = codiag.factorize(entries, 3, seed=0)
    for found, factor in zip(codiag.Factorization.load(tmp_path / "out.npz").factors, expected.factors, strict=True):
        np.testing.assert_allclose(found, factor, atol=1e-10)
    assert all(0 < new["completed"] <= 4 for new in seen if "completed" in new)
    passes = list(dict.fromkeys(new["passes"] for new in seen if "passes" in new))
    assert passes == [f"pass {number} of 4" for number in (1, 2, 3, 4)]


def test_progress_beyond_the_usual_number_of_passes(monkeypatch):
    """No number of passes is promised that is not known, and the bar is not full while there is work."""
    shape, n_parts, seen = (8, 8, 8), 2, []
    monkeypatch.setattr("codiag.tensors._first_look.SMALL", 100)
    monkeypatch.setattr(Progress, "update", lambda *_ids, **new: seen.append(new))
    with progress("reading ...") as passes:
        passes.over(shape)
        for part in [1, 2] * 9:
            logging.getLogger("codiag.reads").debug("a part", extra={"shape": shape, "part": part, "n_parts": n_parts})
    usual = [f"pass {number} of 4" for number in range(1, 5)]
    new = [one for one in seen if "passes" in one]
    assert list(dict.fromkeys(one["passes"] for one in new)) == usual + [f"pass {number}" for number in range(5, 10)]
    assert [one["completed"] for one in new] == [part / n_parts for part in range(1, 19)]
    assert all(one["completed"] < one["total"] for one in new)


def write_chunks(path, entries, monkeypatch):
    if path.suffix == ".npy":
        np.save(path, entries)
        return
    dask = pytest.importorskip("dask", reason="dask is not installed; it is the extra 'dask'")
    monkeypatch.setitem(dask.config.config, "array", {**dask.config.config.get("array", {}), "chunk-size": "16kiB"})
    if path.suffix == ".zarr":
        pytest.importorskip("zarr", reason="zarr is not installed; it is in the extra 'files'").save(path, entries)
        return
    h5py = pytest.importorskip("h5py", reason="h5py is not installed; it is in the extra 'files'")
    with h5py.File(path, "w") as file:
        file.create_dataset("X", data=entries, chunks=(10, 10, 10))
        file.create_dataset("labels", data=np.arange(22))


@pytest.fixture
def holes(tmp_path):
    """Return non-negative components with noise, a third of their entries missing: as NaN, as zeros and as a list."""
    rng = np.random.default_rng(0)
    entries = np.einsum("ir,jr,kr->ijk", *(rng.exponential(size=(size, 2)) for size in (6, 7, 8)))
    tensor = np.where(rng.random((6, 7, 8)) < 0.3, np.nan, entries + 0.01 * rng.standard_normal((6, 7, 8)))
    np.save(tmp_path / "nan.npy", tensor)
    np.save(tmp_path / "zero.npy", np.nan_to_num(tensor))
    places = np.nonzero(~np.isnan(tensor))
    rows = np.column_stack([np.stack(places, axis=1) + 1, tensor[places]])
    np.savetxt(tmp_path / "list.tns", rows, fmt=["%d"] * 3 + ["%.17g"])
    return tmp_path


@pytest.mark.parametrize(("file", "missing"), [("nan.npy", "nan"), ("zero.npy", "zero"), ("list.tns", "zero")])
def test_factorize_takes_missing_entries_and_signs(file, missing, holes):
    path = holes / "factors.npz"
    options = [str(holes / file), "-k", "2", "--nonnegative", "--missing", missing, "--out", str(path)]
    result = runner.invoke(app, ["factorize", *options])
    assert result.exit_code == 0, result.output
    tensor = np.load(holes / "nan.npy")
    expected = codiag.factorize(tensor, 2, constraints="nonnegative", seed=0)
    fit = codiag.Factorization.load(path)
    assert all((factor >= 0).all() for factor in fit.factors)
    np.testing.assert_allclose(fit.to_tensor(), expected.to_tensor(), atol=1e-6)
    assert f"over the {np.count_nonzero(~np.isnan(tensor))} entries observed, of 336" in result.stdout


def test_factorize_takes_signs_of_some_modes(tensor_file, tmp_path):
    path = tmp_path / "factors.npz"
    options = [str(tensor_file), "-k", "1", "--nn-modes", "0,2", "--method", "nls", "--out", str(path)]
    result = runner.invoke(app, ["factorize", *options])
    assert result.exit_code == 0, result.output
    assert [bool((factor >= 0).all()) for factor in codiag.Factorization.load(path).factors] == [True, False, True]


def test_factorize_asks_what_nan_are(holes):
    result = runner.invoke(app, ["factorize", str(holes / "nan.npy"), "-k", "2"])
    assert result.exit_code == 2
    count = np.count_nonzero(np.isnan(np.load(holes / "nan.npy")))
    assert f"{count} of its 336 entries are NaN; add --missing nan" in " ".join(result.output.split())


def test_compare_prints_all_methods_and_the_reasons_of_the_rest(tensor_file):
    result = runner.invoke(app, ["compare", str(tensor_file), "--rank", "3"])
    assert result.exit_code == 0, result.output
    for name in METHODS:
        assert name in result.stdout
    assert "givens does not apply: Givens is for symmetric tensors of order three" in result.stdout
    expected = codiag.factorize(np.load(tensor_file), 3, seed=0)
    assert f"{expected.relative_error:.6e}" in result.stdout


@pytest.fixture
def corpus_file(tmp_path):
    rng = np.random.default_rng(0)
    mixtures = rng.dirichlet([0.5, 0.5], 400) @ rng.dirichlet(np.full(12, 0.3), 2)
    places = np.nonzero(counts := np.stack([rng.multinomial(30, mixture) for mixture in mixtures]))
    vocabulary = np.array([f"word{i}" for i in range(12)])
    np.savez(tmp_path / "corpus.npz", doc=places[0], word=places[1], count=counts[places], vocab=vocabulary)
    return tmp_path / "corpus.npz"


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


@pytest.fixture
def votes_file(tmp_path):
    crowd = crowd_votes(300, worker_errors(20, 3, seed=0), density=0.5, seed=1)
    write_table(tmp_path / "votes.csv", dict(zip(("task", "worker", "label"), crowd.votes, strict=True)))
    return tmp_path / "votes.csv"


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


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
    np.testing.assert_allclose([float(row["p(2|0)"]) for row in workers], model.errors_[:, 2, 0])
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
    workers = sorted({row[1] for row in rows}, key=int)
    given = {(row[0], row[1]): row[2] for row in rows}
    tasks = sorted({row[0] for row in rows}, key=int)
    wide = [["task", *workers], *([task, *(given.get((task, worker), "") for worker in workers)] for task in tasks)]
    piped = apart.invoke(app, ["label", "-", "--wide", "--out", "-"], input="\n".join(map(",".join, wide)))
    assert piped.stdout == expected.stdout


def test_label_without_matplotlib_fails_in_a_sentence(votes_file, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = runner.invoke(app, ["label", str(votes_file), "--figure", str(tmp_path / "crowd.png")])
    assert result.exit_code == 2
    assert "pip install 'codiag[plot]'" in result.output
    assert not (tmp_path / "crowd.png").exists()


def test_label_writes_nothing_when_votes_are_refused(votes_file, tmp_path):
    with votes_file.open("a") as file:
        file.write("7,,1\n")
    n_lines = len(votes_file.read_text().splitlines())
    result = runner.invoke(app, ["label", str(votes_file), "--out", str(tmp_path / "labels.csv")])
    assert result.exit_code == 2
    assert f"line {n_lines} has no worker" in " ".join(result.output.split())
    assert [path.name for path in tmp_path.iterdir()] == ["votes.csv"]


def test_warnings_are_one_line_each_on_stderr(tmp_path):
    write_table(tmp_path / "v.csv", {"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]})
    done = subprocess.run(
        [sys.executable, "-m", "codiag", "label", str(tmp_path / "v.csv")], capture_output=True, text=True, check=True
    )
    line = r"Warning: moments do not determine this crowd: it takes three workers, .* the majority vote instead\n"
    assert re.fullmatch(line, done.stderr)
    assert "Warning" not in done.stdout


@pytest.fixture
def edges_file(tmp_path):
    graph = mixed_membership_graph(300, 3, alpha_0=0.1, inside=0.3, outside=0.02, seed=0)
    np.savetxt(tmp_path / "edges.txt", np.stack(graph.adjacency.nonzero(), axis=1), fmt="%d")
    return tmp_path / "edges.txt"


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


def test_many_components_are_cut_short(tmp_path):
    np.save(tmp_path / "a.npy", noisy_tensor((40, 41, 42), 40, seed=0).tensor)
    result = runner.invoke(app, ["factorize", str(tmp_path / "a.npy"), "--rank", "40", "--method", "nojd0"])
    assert "10 more, down to" in result.stdout


def test_commands_warn_like_the_functions_they_call(tensor_file, monkeypatch):
    monkeypatch.setitem(METHODS, "als", ALS(max_sweeps=1))
    with pytest.warns(codiag.ConvergenceWarning, match="ALS did not converge in 1 sweeps"):
        result = runner.invoke(app, ["factorize", str(tensor_file), "--rank", "3", "--method", "als"])
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("command", "file", "words"),
    [
        ("factorize", "tensor_file", "2 components"),
        ("compare", "tensor_file", "rank 2"),
        ("topics", "corpus_file", "400 documents"),
        ("communities", "edges_file", "2 communities"),
    ],
)
def test_the_number_of_components_is_k_in_every_command(command, file, words, request):
    result = runner.invoke(app, [command, str(request.getfixturevalue(file)), "-k", "2"])
    assert result.exit_code == 0, result.output
    assert words in result.output


def test_help_of_reproduce_names_the_experiments():
    result = runner.invoke(app, ["reproduce", "--help"])
    assert result.exit_code == 0
    for name in EXPERIMENTS:
        assert name in result.output


def test_progress_says_what_is_done(tensor_file, monkeypatch):
    seen = []
    plain = Progress.update
    monkeypatch.setattr(Progress, "update", lambda self, *ids, **new: (seen.append(new), plain(self, *ids, **new)))
    runner.invoke(app, ["factorize", str(tensor_file), "--rank", "auto", "--max-rank", "3"])
    told = [new["description"] for new in seen if "description" in new]
    assert told.index("choosing the rank ...") < told.index("factorizing ...")


def test_progress_stays_off_pipes(tensor_file):
    done = subprocess.run(
        [sys.executable, "-m", "codiag", "factorize", str(tensor_file), "--rank", "3"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["demo", "--figure", "nowhere/at/all/demo.png"], "folder that exists"),
        (["demo", "--figure", "demo.txt"], "must end in .pdf, .png, .svg"),
        (["demo", "--size", "1"], "--size"),
        (["demo", "--noise", "-1"], "--noise"),
        (["factorize", "missing.npy", "--rank", "3"], "missing.npy is not a file"),
        (["factorize", "tensor.npy"], "--rank"),
        (["compare", "missing.npy", "--rank", "3"], "missing.npy is not a file"),
        (["compare", "tensor.npy", "--rank", "0"], "rank must be positive"),
        (["factorize", "tensor.npy", "--rank", "0"], "rank must be positive"),
        (["factorize", "tensor.npy", "--rank", "2.5"], "--rank"),
        (["factorize", "tensor.npy", "--rank", "3", "--method", "best"], "method must be one of"),
        (
            ["factorize", "tensor.npy", "--rank", "3", "--nn-modes", "0,3"],
            "must be modes from 0 to 2, as in 0,2; got 0,3",
        ),
        (["factorize", "tensor.npy", "--rank", "3", "--nonnegative", "--method", "sd2"], "use ALS or NLS, or leave"),
        (["factorize", "tensor.npy", "--rank", "3", "--missing", "some"], "--missing"),
        (["factorize", "tensor.tns", "--rank", "1", "--missing", "nan"], "--missing zero takes what a sparse file"),
        (["factorize", "tensor.npy", "--rank", "3", "--symmetric"], "symmetric=True needs modes of one size"),
        (["factorize", "tensor.npy", "--rank", "3", "--out", "factors.txt"], "--out must end in .csv, .npz, .tsv"),
        (["factorize", "tensor.npy", "--rank", "3", "--out", "no/where.npz"], "folder that exists"),
        (["factorize", "tensor.xls", "--rank", "3"], "a tensor is read from"),
        (
            ["factorize", "tensor.csv", "--rank", "3"],
            "tensor.csv cannot be read as a tensor: tensor must have three modes",
        ),
        (["factorize", "long.csv", "--rank", "3", "--modes", "a,b,d"], "'d' is none of them"),
        (["factorize", "long.csv", "--rank", "3", "--missing", "zero"], "--absent says what combinations a table does"),
        (["factorize", "tensor.npy", "--rank", "3", "--value", "v"], "modes and value name columns of a table"),
        (["factorize", "-", "--rank", "3"], "the standard input is empty"),
        (["label", "tensor.csv", "--out", "-", "--workers", "-"], "must not both be -"),
        (["label", "tensor.csv", "--figure", "-"], "--figure must be a file"),
        (
            ["topics", "tensor.xls", "--topics", "2"],
            "a corpus is read from .npz, .txt, .csv, .tsv, .parquet files and f",
        ),
        (["topics", "tensor.csv", "--topics", "2"], "text must name the column of tensor.csv that holds the documents"),
        (["topics", ".", "--topics", "2"], "a folder with .txt files in it"),
        (["topics", "other.npz", "--topics", "2", "--min-df", "2"], "stop_words and min_df are for text"),
        (["topics", "garbage.npz", "--topics", "2"], "garbage.npz is not a readable .npz file: it does not begin like"),
        (
            ["factorize", "garbage.npz", "--rank", "2"],
            "garbage.npz is not a readable .npz file: it does not begin like",
        ),
        (["factorize", "", "--rank", "2"], "path must be a file, or a folder that ends in .zarr; . is another folder"),
        (["label", ""], "path must be a file; . is a folder"),
        (["topics", "missing.npz", "--topics", "2"], "is not a file"),
        (
            ["topics", "other.npz", "--topics", "2"],
            "other.npz must hold the array counts, or doc, word and count; it holds a",
        ),
        (["factorize", "tensor.npy", "--rank", "3", "--variable", "X"], "leave the variable out"),
        (["label", "missing.csv"], "missing.csv is not a file"),
        (["label", "tensor.npy"], "path must end in .csv, .tsv, .parquet; .gz may follow; got tensor.npy"),
        (["label", "other.csv"], "must name the columns task (or item, question)"),
        (["label", "tensor.csv", "--out", "labels.txt"], "--out must end in .csv, .tsv"),
        (["label", "tensor.csv", "--out", "l.csv", "--workers", "l.csv"], "must be two files"),
        (["label", "tensor.csv", "--out", "l.csv", "--workers", "./l.csv"], "must be two files"),
        (["label", "tensor.csv", "--out", "tensor.csv"], "--out must not be the file that is read"),
        (["label", "tensor.csv", "--sort", "name"], "--sort must be votes or accuracy"),
        (["communities", "tensor.csv", "--out", "tensor.csv"], "--out must not be the file that is read"),
        (["label", "tensor.csv", "--init", "best"], "init must be 'moments', 'majority'"),
        (["communities", "missing.txt"], "missing.txt is not a file"),
        (["communities", "tensor.csv", "--communities", "3"], "at least 8 nodes"),
        (["communities", "tensor.csv", "--communities", "0"], "--communities"),
    ],
)
def test_mistakes_end_in_one_sentence(options, words, tensor_file, monkeypatch):
    monkeypatch.chdir(tensor_file.parent)
    (tensor_file.parent / "tensor.csv").write_text("1,2,3")
    (tensor_file.parent / "long.csv").write_text(
        "a,b,c,v\n" + "\n".join(f"{i % 2},{i // 2 % 3},{i // 6},1" for i in range(12))
    )
    (tensor_file.parent / "tensor.tns").write_text("1 2 3 4.0")
    (tensor_file.parent / "other.csv").write_text("who,what\n1,2")
    (tensor_file.parent / "garbage.npz").write_text("garbage")
    np.savez(tensor_file.parent / "other.npz", a=np.ones(3))
    result = runner.invoke(app, options)
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())
    assert "Traceback" not in result.output


def test_no_arguments_shows_help():
    result = runner.invoke(app, [])
    assert "demo" in result.output
