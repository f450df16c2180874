from __future__ import annotations

import csv
import gzip
import logging

import numpy as np
import pytest
from rich.progress import Progress

import codiag
from codiag.cli import app
from codiag.cli.factorization import advice_in_options
from codiag.cli.terminal import progress
from codiag.synthetic import noisy_tensor
from commands import apart, read, runner


def test_factorize_prints_and_saves(tensor_file, tmp_path):
    path = tmp_path / "factors.npz"
    result = runner.invoke(app, ["factorize", str(tensor_file), "--rank", "3", "--out", str(path), "--seed", "1"])
    assert result.exit_code == 0, result.output
    expected = codiag.factorize(np.load(tensor_file), 3, seed=1)
    fit = codiag.Factorization.load(path)
    np.testing.assert_array_equal(fit.weights, expected.weights)
    for words in ("relative error", f"{expected.weights[0]:.6g}"):
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
    assert "halves: congruence of the components of two halves of the data" in printed


def test_the_chosen_rank_is_not_fitted_twice(tensor_file, monkeypatch):
    monkeypatch.setattr("codiag.factorize", lambda *_args, **_options: pytest.fail("the rank was fitted again"))
    result = runner.invoke(app, ["factorize", str(tensor_file), "--rank", "auto", "--max-rank", "5"])
    assert result.exit_code == 0, result.output
    assert "3 components" in result.stdout


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
def test_the_chosen_rank_is_fitted_by_the_method_that_is_named(tensor_file):
    options = [str(tensor_file), "--rank", "auto", "--max-rank", "5", "--method", "nojd0"]
    printed = runner.invoke(app, ["factorize", *options]).stdout
    assert f"{codiag.factorize(np.load(tensor_file), 3, method='nojd0', seed=0).relative_error:.3e}" in printed


def test_factorize_without_a_supported_rank_writes_nothing(tmp_path):
    np.save(tmp_path / "noise.npy", np.random.default_rng(0).standard_normal((6, 7, 8)))
    options = [str(tmp_path / "noise.npy"), "--rank", "auto", "--max-rank", "3", "--out", str(tmp_path / "out.npz")]
    result = runner.invoke(app, ["factorize", *options])
    assert result.exit_code == 2
    assert "--rank auto finds none" in result.output
    assert not (tmp_path / "out.npz").exists()


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
def test_factorize_prints_errors_and_the_diagnosis(tensor_file):
    printed = runner.invoke(app, ["factorize", str(tensor_file), "--rank", "4"]).stdout
    fit = codiag.factorize(np.load(tensor_file), 4, seed=0)
    for line in str(fit.diagnose()).splitlines():
        assert advice_in_options(line) in printed
    row = next(line.split() for line in printed.splitlines() if f"{float(fit.weights[0]):.6g}" in line)
    assert row[2:] == [f"{error:.2g}" for error in (fit.weight_standard_errors[0], *fit.standard_errors[:, 0])]


@pytest.mark.parametrize("kind", ["csv", "pandas", "polars", "pyarrow.parquet"])
def test_factorize_takes_long_tables_and_answers_in_their_labels(long_table, tensor_file, kind, monkeypatch):
    if kind != "csv":
        pytest.importorskip("pyarrow")
        pytest.importorskip(kind)
        pandas = pytest.importorskip("pandas")
        parquet = long_table.with_suffix(".parquet")
        pandas.read_csv(long_table).to_parquet(parquet)
        long_table = parquet
        readers = {"pyarrow.parquet": "read_table"}
        monkeypatch.setattr("codiag._text._tables.PARQUET", {kind: readers.get(kind, "read_parquet")})
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


def test_factorize_reads_decimal_commas(long_table, tensor_file):
    text = long_table.read_text().replace(",", ";").replace(".", ",")
    long_table.write_text(text)
    options = [str(long_table), "-k", "3", "--modes", "sample,wave,day", "--value", "value"]
    result = runner.invoke(app, ["factorize", *options])
    assert result.exit_code == 0, result.output
    assert f"{codiag.factorize(np.load(tensor_file), 3, seed=0).relative_error:.3e}" in result.stdout


def test_factorize_tells_of_columns_that_are_constant(long_table):
    printed = apart.invoke(app, ["factorize", str(long_table), "-k", "3", "--value", "value"])
    assert printed.exit_code == 0, printed.output
    assert "Note: note has one label in all rows" in printed.stderr
    assert "--modes sample,wave,day leaves it out" in printed.stderr


def test_factorize_draws_components(tensor_file):
    pytest.importorskip("matplotlib")
    picture = tensor_file.with_name("fit.png")
    result = runner.invoke(app, ["factorize", str(tensor_file), "-k", "3", "--figure", str(picture)])
    assert result.exit_code == 0, result.output
    assert picture.read_bytes().startswith(b"\x89PNG")


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
    monkeypatch.setattr("codiag.tensors._sketch.SMALL_SIZE", 1000)
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
    monkeypatch.setattr("codiag.tensors._sketch.SMALL_SIZE", 100)
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


def test_nan_are_missing_unless_none_may_be(holes):
    tensor = np.load(holes / "nan.npy")
    n_missing = np.count_nonzero(np.isnan(tensor))
    said = f"over the {336 - n_missing} entries observed, of 336 ({n_missing} missing)"
    result = runner.invoke(app, ["factorize", str(holes / "nan.npy"), "-k", "2"])
    assert result.exit_code == 0, result.output
    assert said in result.stdout
    assert f"{codiag.factorize(tensor, 2, seed=0).relative_error:.3e}" in result.stdout
    refused = runner.invoke(app, ["factorize", str(holes / "nan.npy"), "-k", "2", "--missing", "none"])
    assert refused.exit_code == 2
    assert f"{n_missing} of the 336 entries are missing; leave it out" in " ".join(refused.output.split())


def test_symmetric_entries_are_counted_once_each(tmp_path):
    tensor = noisy_tensor((12, 12, 12), 2, symmetric=True, seed=0).tensor
    np.save(tmp_path / "whole.npy", tensor)
    printed = runner.invoke(app, ["factorize", str(tmp_path / "whole.npy"), "-k", "2", "--symmetric"]).stdout
    assert "relative error" in printed
    assert "observed" not in printed.split("relative error")[1].splitlines()[0]
    tensor[3, 3, 3] = np.nan
    np.save(tmp_path / "hole.npy", tensor)
    printed = runner.invoke(app, ["factorize", str(tmp_path / "hole.npy"), "-k", "2", "--symmetric"]).stdout
    assert "over the 1,727 entries observed, of 1,728 (1 missing)" in printed


def test_many_components_are_cut_short(tmp_path):
    np.save(tmp_path / "a.npy", noisy_tensor((40, 41, 42), 40, seed=0).tensor)
    result = runner.invoke(app, ["factorize", str(tmp_path / "a.npy"), "--rank", "40", "--method", "nojd0"])
    assert "10 more, down to" in result.stdout


def test_events_are_counted_and_fitted_as_counts(tmp_path):
    """A row for each event gives the fit of the counts."""
    rng = np.random.default_rng(0)
    factors = [rng.gamma(2.0, size=(size, 2)) for size in (6, 7, 8)]
    counts = rng.poisson(np.einsum("ir,jr,kr->ijk", *factors))
    rows = [f"u{i},p{j},{k}" for i, j, k in np.argwhere(counts) for _ in range(counts[i, j, k])]
    events = tmp_path / "events.csv"
    events.write_text("\n".join(["user,place,hour", *rng.permutation(rows)]) + "\n")
    result = runner.invoke(app, ["factorize", str(events), "-k", "2", "--counts", "--out", str(tmp_path / "fit.npz")])
    assert result.exit_code == 0, result.output
    assert "explained deviance" in result.stdout
    fit = codiag.Factorization.load(tmp_path / "fit.npz")
    expected = codiag.factorize(counts.astype(float), 2, loss="poisson", seed=0)
    assert fit.shape == (6, 7, 8)
    assert fit.deviance == pytest.approx(expected.deviance, rel=1e-6)
    np.save(tmp_path / "counts.npy", counts)
    array = runner.invoke(app, ["factorize", str(tmp_path / "counts.npy"), "-k", "2", "--loss", "poisson"])
    assert f"{fit.weights[0]:.4g}"[:4] in array.stdout
    assert runner.invoke(app, ["factorize", str(tmp_path / "counts.npy"), "-k", "2", "--loss", "none"]).exit_code != 0


@pytest.mark.parametrize(
    ("column", "options", "shape", "words"),
    [
        ("n", ["--counts"], (6, 7, 8), "it is read as counts, and combinations that are not listed are zero"),
        ("n", ["--counts", "--absent", "missing"], (6, 7, 8), "combinations that are not listed are missing"),
        ("n", ["--counts", "--modes", "user,place,hour,n"], None, ""),
        ("visits", ["--counts"], None, "rows are counted, and it is a mode. If it is a count, say --value visits"),
        ("visits", ["--counts", "--value", "visits"], (6, 7, 8), "are zero. If they were not observed, say --absent"),
        ("visits", [], (6, 7, 8), "are missing. If nothing was counted there, say --absent zero, or --counts"),
        ("visits", ["--absent", "missing"], (6, 7, 8), ""),
    ],
)
def test_counts_that_a_table_has_already_are_not_a_mode(tmp_path, column, options, shape, words):
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.einsum("ir,jr,kr->ijk", *[rng.gamma(2.0, size=(size, 1)) for size in (6, 7, 8)]) / 8)
    rows = [f"u{i},p{j},{k},{counts[i, j, k]}" for i, j, k in np.argwhere(counts)]
    table = tmp_path / "visits.csv"
    table.write_text("\n".join([f"user,place,hour,{column}", *rows]) + "\n")
    saved = tmp_path / "fit.npz"
    result = runner.invoke(app, ["factorize", str(table), "-k", "1", *options, "--out", str(saved)])
    assert result.exit_code == 0, result.output
    notes = " ".join(line for line in result.output.splitlines() if line.startswith("Note:"))
    assert words in notes if words else not notes
    found = codiag.Factorization.load(saved)
    assert found.shape == (shape or (6, 7, 8, np.unique(counts[counts > 0]).size))
    if words.endswith("listed are zero"):
        expected = codiag.factorize(counts.astype(float), 1, loss="poisson", seed=0)
        assert found.deviance == pytest.approx(expected.deviance, rel=1e-6)


def test_a_diagnosis_advises_options(tmp_path):
    np.save(tmp_path / "signed.npy", np.random.default_rng(0).standard_normal((6, 7, 8)) - 1)
    printed = runner.invoke(app, ["factorize", str(tmp_path / "signed.npy"), "-k", "2", "--nonnegative"]).stdout
    assert "leave --nonnegative out, or constrain some modes only, as --nn-modes 0" in " ".join(printed.split())
    assert "codiag." not in printed
    assert advice_in_options("Another seed or method=Auto(effort=...) searches on; loss='poisson' may be better.") == (
        "Another --seed searches on; --loss poisson may be better."
    )
