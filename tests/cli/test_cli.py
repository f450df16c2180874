from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from rich.progress import Progress

import codiag
from codiag._text import read_frame
from codiag.cli import app
from codiag.cli.commands import ORDER
from codiag.cli.demo.run import RIVALS, run_spectra
from codiag.cli.factorization import compare
from codiag.cli.models import communities, topics
from codiag.cli.terminal import in_options, options_of
from codiag.io import labelled_tensor, write_table
from codiag.methods import ALS, METHODS
from commands import runner


def test_version():
    result = runner.invoke(app, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"codiag {codiag.__version__}\n"


def test_module_entry_point():
    done = subprocess.run([sys.executable, "-m", "codiag", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"codiag {codiag.__version__}"


@pytest.fixture
def one_start(monkeypatch):
    monkeypatch.setattr("codiag.cli.demo.run.STARTS", 1)
    monkeypatch.setattr("codiag.cli.demo.run.SHAPE", (6, 20, 15))
    monkeypatch.setattr("codiag.cli.demo.run.RANK", 3)


@pytest.fixture
def alone(monkeypatch, one_start):
    monkeypatch.setattr("codiag.cli.demo.run.RIVALS", ())


def test_demo_prints_tables_and_saves_a_figure(tmp_path, one_start):
    pytest.importorskip("matplotlib", reason="the figure needs the extra 'plot'")
    figure = tmp_path / "demo.png"
    result = runner.invoke(app, ["demo", "--size", "6", "--figure", str(figure)])
    assert result.exit_code == 0, result.output
    for method in ("oracle", "codiag", "method='nojd1'", "NLS()", "ALS()"):
        assert method in result.stdout
    for rival in RIVALS:
        assert result.stdout.count(f" {rival.name} ") == rival.installed * (1 + rival.seeded)
    assert figure.read_bytes().startswith(b"\x89PNG")


def test_demo_without_matplotlib_prints_and_says_how_to_get_the_picture(tmp_path, monkeypatch, alone):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = runner.invoke(app, ["demo", "--size", "4"])
    assert result.exit_code == 0, result.output
    assert "pip install 'codiag[plot]'" in result.output
    assert "for want of TensorLy" in result.output
    asked = runner.invoke(app, ["demo", "--size", "4", "--figure", "demo.png"])
    assert asked.exit_code == 2
    assert "pip install 'codiag[plot]'" in asked.output
    assert not list(tmp_path.iterdir())


def test_bands_of_the_demo_are_those_of_the_fit_in_the_order_of_the_truth(alone):
    spectra = run_spectra(seed=1)
    for mode, band in enumerate(spectra.bands()):
        ours, matched = spectra.fit.factors[mode], spectra.runs[0].factors[0][mode]
        order = np.argmax(np.abs(matched.T @ ours), axis=1)
        assert order.tolist() != list(range(spectra.fit.rank))  # or the test would not tell
        np.testing.assert_allclose(np.abs(ours[:, order]), np.abs(matched))
        np.testing.assert_allclose(band, 1.96 * spectra.fit.entry_standard_errors[mode][:, order])
    assert 0.85 < spectra.coverage() <= 1  # 95 % of 123 entries that are not independent


def test_compare_prints_all_methods_and_the_reasons_of_the_rest(tensor_file):
    result = runner.invoke(app, ["compare", str(tensor_file), "--rank", "3"])
    assert result.exit_code == 0, result.output
    for name in METHODS:
        assert name in result.stdout
    expected = codiag.factorize(np.load(tensor_file), 3, seed=0)
    assert f"{expected.relative_error:.6e}" in result.stdout


def test_compare_says_a_reason_once(tensor_file):
    np.save(tensor_file, np.abs(np.load(tensor_file)))
    printed = runner.invoke(app, ["compare", str(tensor_file), "--rank", "1", "--nonnegative"])
    assert printed.exit_code == 0, printed.output
    said = " ".join(printed.output.split())
    assert said.count("cannot take constraints into account") == 1
    assert "ojd0, ojd1, nojd0, nojd1, tpm, lathauwer, sd2 do not apply: they cannot take constraints" in said


def test_infinities_are_called_so(tmp_path):
    tensor = np.random.default_rng(0).random((3, 4, 5))
    tensor[0, 0, 1] = np.inf
    np.save(tmp_path / "inf.npy", tensor)
    printed = runner.invoke(app, ["factorize", str(tmp_path / "inf.npy"), "-k", "2"])
    assert printed.exit_code == 2
    assert "1 of 60 entries are infinite, the first at (0, 0, 1)." in " ".join(printed.output.split())


def test_warnings_are_one_line_each_on_stderr(tmp_path):
    write_table(tmp_path / "v.csv", {"task": [1, 1, 2], "worker": ["a", "b", "a"], "label": ["x", "x", "y"]})
    done = subprocess.run(
        [sys.executable, "-m", "codiag", "label", str(tmp_path / "v.csv")], capture_output=True, text=True, check=True
    )
    line = r"Warning: moments do not determine this crowd: it takes three workers, .* the majority vote instead\n"
    assert re.fullmatch(line, done.stderr)
    assert "Warning" not in done.stdout


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


def test_progress_says_what_is_done(tensor_file, monkeypatch):
    seen = []
    plain = Progress.update
    monkeypatch.setattr(Progress, "update", lambda self, *ids, **new: (seen.append(new), plain(self, *ids, **new)))
    runner.invoke(app, ["factorize", str(tensor_file), "--rank", "auto", "--max-rank", "3"])
    told = [new["description"] for new in seen if "description" in new]
    assert told.index("choosing the rank ...") < told.index("factorizing ...")
    assert all(one.endswith(" ...") for one in told)  # what goes on stays there; what was done last is beside the bar
    assert any("polish: " in new.get("detail", "") for new in seen)


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
        (["factorize", "missing.npy", "--rank", "3"], "missing.npy does not exist"),
        (["factorize", "tensor.npy"], "--rank"),
        (["compare", "missing.npy", "--rank", "3"], "missing.npy does not exist"),
        (["compare", "tensor.npy", "--rank", "0"], "Error: --rank must be positive"),
        (["factorize", "tensor.npy", "--rank", "0"], "Error: --rank must be positive"),
        (["factorize", "tensor.npy", "--rank", "2.5"], "--rank"),
        (
            ["factorize", "tensor.npy", "--rank", "3", "--method", "best"],
            "--method must be one of auto, ojd0, ojd1, nojd0, nojd1, tpm, als, nls, lathauwer, sd2 or givens; got",
        ),
        (
            ["factorize", "tensor.npy", "--rank", "3", "--nn-modes", "0,3"],
            "must be modes from 0 to 2, as in 0,2; got 0,3",
        ),
        (["factorize", "tensor.npy", "--rank", "3", "--nonnegative", "--method", "tpm"], "use ALS or NLS, or leave"),
        (["factorize", "tensor.npy", "--rank", "3", "--missing", "some"], "--missing"),
        (
            ["factorize", "tensor.npy", "--rank", "3", "--symmetric"],
            "--symmetric needs modes of one size; got shape (6, 7, 8). Leave --symmetric out",
        ),
        (["factorize", "tensor.npy", "--rank", "3", "--out", "factors.txt"], "--out must end in .csv, .npz, .tsv"),
        (["factorize", "tensor.npy", "--rank", "3", "--out", "no/where.npz"], "folder that exists"),
        (["factorize", "tensor.xls", "--rank", "3"], "the path must end in one of .npy, .npy.gz,"),
        (
            ["factorize", "tensor.csv", "--rank", "3"],
            "tensor.csv cannot be read as a tensor: tensor must have three modes",
        ),
        (["factorize", "long.csv", "--rank", "3", "--modes", "a,b,d"], "'d' is none of them"),
        (["factorize", "long.csv", "--rank", "3", "--missing", "zero"], "--absent says what combinations a table does"),
        (["factorize", "tensor.npy", "--rank", "3", "--value", "v"], "--modes and --value name columns of a table"),
        (["factorize", "-", "--rank", "3"], "the standard input is empty"),
        (["label", "tensor.csv", "--out", "-", "--workers", "-"], "must not both be -"),
        (["label", "tensor.csv", "--figure", "-"], "--figure must be a file"),
        (
            ["topics", "tensor.xls", "--topics", "2"],
            "the path must be a folder, or a file that ends in one of .npy, .npz, .txt, .csv, .tsv, .parquet, .xlsx",
        ),
        (["topics", "tensor.csv", "--topics", "2"], "--text must name the column of tensor.csv that holds"),
        (["topics", "folder", "--topics", "2"], "a folder with .txt files in it"),
        (["topics", "other.npz", "--topics", "2", "--min-df", "2"], "--stop-words and --min-df are for text"),
        (["topics", "garbage.npz", "--topics", "2"], "garbage.npz is not a readable .npz file: it does not begin like"),
        (
            ["factorize", "garbage.npz", "--rank", "2"],
            "garbage.npz is not a readable .npz file: it does not begin like",
        ),
        (["factorize", "", "--rank", "2"], "Invalid value for 'TENSOR': it must name a file"),
        (["label", ""], "it must name a file, or be - for the standard input"),
        (["label", "."], "the path must be a file; . is a folder"),
        (["topics", "missing.npz", "--topics", "2"], "does not exist"),
        (
            ["topics", "other.npz", "--topics", "2"],
            "other.npz must contain a matrix of counts, documents x words; it has shape (3,)",
        ),
        (
            ["topics", "two.npz", "--topics", "2"],
            "two.npz must contain the array counts, or doc, word and count, or one matrix alone; it contains a, b",
        ),
        (["topics", "tensor.npy", "--topics", "2"], "tensor.npy must contain a matrix of counts, documents x words"),
        (["factorize", "tensor.npy", "--rank", "3", "--variable", "X"], "leave --variable out"),
        (["label", "missing.csv"], "missing.csv does not exist"),
        (
            ["label", "tensor.npy"],
            "the path must end in .csv, .tsv, .jsonl, .ndjson, .parquet, .xlsx; .gz may follow; got",
        ),
        (["label", "other.csv"], "must name the columns task (or item, question, "),
        (["label", "tensor.csv", "--out", "labels.txt"], "--out must end in .csv, .tsv"),
        (["label", "tensor.csv", "--out", "l.csv", "--workers", "l.csv"], "must be two files"),
        (["label", "tensor.csv", "--out", "l.csv", "--workers", "./l.csv"], "must be two files"),
        (["label", "tensor.csv", "--out", "tensor.csv"], "--out must not be the file that is read"),
        (["label", "tensor.csv", "--sort", "name"], "--sort must be votes or accuracy"),
        (["communities", "tensor.csv", "--out", "tensor.csv"], "--out must not be the file that is read"),
        (["label", "tensor.csv", "--init", "best"], "--init must be 'moments' or 'majority'; got 'best'"),
        (["communities", "missing.txt"], "missing.txt does not exist"),
        (["communities", "tensor.csv", "--communities", "3"], "at least 8 nodes"),
        (["communities", "tensor.csv", "--communities", "0"], "--communities"),
        (["communities", "texts.txt"], "lines of texts.txt cannot be read as edges: line 1 has 8 fields"),
        (
            ["communities", "strong.csv"],
            "different numbers in column strength, which may be the weights of edges; --weight",
        ),
        (["communities", "strong.csv", "-k", "9", "--weight", "none"], "--communities must be at most"),
        (["topics", "texts.txt", "--topics", "0"], "--topics must be positive"),
        (["topics", "texts.txt", "-k", "2", "--alpha-0", "-1"], "--alpha-0 must not be negative"),
        (["topics", "texts.txt", "-k", "2", "--min-df", "50"], "--min-df must be at most 24, the number of documents"),
        (
            ["topics", "texts.txt", "-k", "2", "--stop-words", "texts.txt"],
            "besides --stop-words, each in at least --min-df",
        ),
        (["topics", "texts.txt", "-k", "2", "--stop-words", "no.txt"], "--stop-words must be english, none"),
        (["topics", "texts.txt", "-k", "2", "--id", "n"], "--id names a column of a table"),
        (["topics", "missing", "-k", "2"], "missing does not exist"),
        (["topics", "nothing.csv", "-k", "2"], "nothing.csv is empty"),
        (["topics", "blank.csv", "-k", "2"], "blank.csv is empty"),
        (["factorize", "nothing.npy", "-k", "2"], "nothing.npy is empty"),
        (["factorize", "blank.csv", "-k", "2"], "blank.csv is empty"),
        (["factorize", "names.csv", "-k", "2"], "tensor must not be empty; the table has no rows"),
        (["factorize", "two.npz", "-k", "2"], "--variable name one; it contains a (3, 3, 3), b (3, 3, 3)"),
        (["label", "long.csv"], "Name others by --task, --worker and --label; --wide is for a table with"),
        (["label", "long.csv", "--task", "d"], "--task must be a column of long.csv, one of a, b, c, v; got 'd'"),
        (["label", "long.csv", "--wide"], "--wide needs each task once in long.csv; 0 has 6 rows. Leave --wide out"),
        (["label", "gaps.csv"], "line 3 has no label. --skip-missing leaves these out"),
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
    (tensor_file.parent / "folder").mkdir()
    (tensor_file.parent / "tensor.xls").write_text("1")
    np.savez(tensor_file.parent / "two.npz", a=np.ones((3, 3, 3)), b=np.ones((3, 3, 3)))
    (tensor_file.parent / "texts.txt").write_text("cats purr while dogs bark and mice sleep\n" * 24)
    (tensor_file.parent / "strong.csv").write_text(
        "from,to,strength\n" + "\n".join(f"{i},{i + 1},{i % 3}" for i in range(12))
    )
    (tensor_file.parent / "names.csv").write_text("a,b,c,v\n")
    (tensor_file.parent / "gaps.csv").write_text("task,worker,label\n1,2,3\n1,3,\n")
    (tensor_file.parent / "blank.csv").write_text("\n\n")
    for name in ("nothing.csv", "nothing.npy"):
        (tensor_file.parent / name).write_text("")
    result = runner.invoke(app, options)
    assert result.exit_code == 2
    assert words in " ".join(result.output.replace("│", " ").split())
    assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("n_components must be positive", "--topics must be positive"),
        ("raise n_components, or lower alpha_0", "raise --topics, or lower --alpha-0"),
        ("c.csv cannot be read as text: text must name it", "c.csv cannot be read as text: --text must name it"),
        ("stop_words and min_df are for text; see `text`", "--stop-words and --min-df are for text; see --text"),
        ("max_iter=5 steps of n_components=3", "--max-iter 5 steps of --topics 3"),
        ("stop_words='none' keeps them, tol=1e-3 does not", "--stop-words none keeps them, tol=1e-3 does not"),
        ("path must be a file; folder/standard input.csv", "the path must be a file; the standard input"),
        ("leave method out", "leave method out"),
    ],
)
def test_messages_name_options_in_place_of_arguments(said, shown):
    assert in_options(said, options_of(topics)) == shown


def test_an_option_that_commands_call_differently_goes_by_its_short_name():
    options = options_of(topics, communities, compare)
    assert options["n_components"] == "-k"
    assert in_options("symmetric=False, or leave symmetric out", options) == "--not-symmetric, or leave --symmetric out"
    assert in_options("method=None fits it by least squares", options) == "no --method fits it by least squares"


@pytest.mark.parametrize("command", ["factorize", "compare", "label", "topics", "communities"])
def test_help_is_whole_on_a_narrow_terminal(command):
    printed = runner.invoke(app, [command, "--help"], env={"COLUMNS": "80", "TERMINAL_WIDTH": "80"}, terminal_width=80)
    assert "…" not in printed.output
    assert max(map(len, printed.output.splitlines())) <= 80
    assert not re.search(r"<(?!\w+\|)|range|TEXT|BOOLEAN|\{", printed.output)


def test_help_lists_every_command_in_whole_sentences():
    printed = runner.invoke(app, ["--help"], terminal_width=80).output
    listed = printed.split("Commands:")[1].strip().splitlines()
    assert [line.split()[0] for line in listed] == list(ORDER)
    assert all(line.endswith(".") and not line.endswith("..") for line in listed)


def test_reports_without_matplotlib_fail_in_a_sentence(tensor_file, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    options = [str(tensor_file), "-k", "2", "--report", str(tensor_file.with_name("r.html"))]
    result = runner.invoke(app, ["factorize", *options])
    assert result.exit_code == 2
    assert "pip install 'codiag[plot]'" in result.output
    assert not tensor_file.with_name("r.html").exists()


def test_compare_takes_tables_with_missing_entries(long_table):
    lines = long_table.read_text().splitlines()
    long_table.write_text("\n".join(lines[:-6]))
    options = [str(long_table), "-k", "3", "--modes", "sample,wave,day", "--value", "value"]
    result = runner.invoke(app, ["compare", *options])
    assert result.exit_code == 0, result.output
    tensor = labelled_tensor(read_frame(long_table), modes=["sample", "wave", "day"], value="value").tensor
    assert np.isnan(tensor).sum() == 6
    assert f"{codiag.factorize(tensor, 3, seed=0).relative_error:.6e}" in result.stdout


def test_no_arguments_shows_help():
    result = runner.invoke(app, [])
    assert "demo" in result.output


def test_reproduce_names_the_command_of_the_repository():
    result = runner.invoke(app, ["reproduce", "all", "--quick"])
    assert result.exit_code == 2
    assert "python -m experiments run" in " ".join(result.output.split())
    assert "reproduce" not in runner.invoke(app, ["--help"]).output
