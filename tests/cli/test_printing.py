"""What commands print: the result first, as JSON for programs, or nothing; and messages that speak of options."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

import codiag
from codiag.cli import app
from codiag.io import read_votes, write_table
from codiag.models import DawidSkene
from commands import apart, read, runner

RUNS = {
    "factorize": ("tensor_file", ["-k", "2"], {"rank", "weights", "modes", "relative_error", "diagnosis", "stages"}),
    "compare": ("tensor_file", ["-k", "2"], {"methods", "not_applied"}),
    "label": ("votes_file", [], {"classes", "tasks", "workers", "families"}),
    "judge": ("votes_file", [], {"classes", "tasks", "workers", "families", "effective_votes"}),
    "topics": ("corpus_file", ["-k", "2"], {"n_topics", "topics", "documents", "shares", "perplexity"}),
    "communities": ("edges_file", ["-k", "2"], {"n_communities", "connectivity", "nodes", "memberships"}),
}


@pytest.mark.parametrize("name", RUNS)
def test_results_are_json_or_silent_on_demand(name, request):
    file, options, keys = RUNS[name]
    command = [name, str(request.getfixturevalue(file)), *options]
    printed = apart.invoke(app, [*command, "--json"])
    assert printed.exit_code == 0, printed.output
    result = json.loads(printed.stdout, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert keys <= result.keys()
    assert result["codiag"] == codiag.__version__
    silent = apart.invoke(app, [*command, "--quiet"])
    assert silent.exit_code == 0, silent.output
    assert silent.stdout == ""
    assert "Note" not in silent.stderr


def test_the_json_of_a_fit_is_the_fit(tensor_file, tmp_path):
    out = tmp_path / "fit.npz"
    printed = apart.invoke(app, ["factorize", str(tensor_file), "-k", "3", "--json", "--out", str(out)])
    result, fit = json.loads(printed.stdout), codiag.factorize(np.load(tensor_file), 3, seed=0)
    np.testing.assert_array_equal(result["weights"], fit.weights)
    np.testing.assert_array_equal(result["weight_standard_errors"], fit.weight_standard_errors)
    for mode, described in enumerate(result["modes"]):
        np.testing.assert_array_equal(described["factor"], fit.factors[mode])
        np.testing.assert_array_equal(described["entry_standard_errors"], fit.entry_standard_errors[mode])
    assert result["files"] == {"--out": str(out)}
    assert out.exists()
    refused = apart.invoke(app, ["factorize", str(tensor_file), "-k", "3", "--json", "--out", "-"])
    assert refused.exit_code == 2
    assert "--out must not be -, the standard output, which --json prints to" in " ".join(refused.stderr.split())


def test_the_json_of_a_crowd_is_the_model(votes_file):
    result = json.loads(apart.invoke(app, ["label", str(votes_file), "--json", "--sort", "accuracy"]).stdout)
    model = DawidSkene(random_state=0).fit(read_votes(votes_file))
    assert [row["label"] for row in result["tasks"]] == model.labels_.tolist()
    accuracies = [row["accuracy"] for row in result["workers"]]
    np.testing.assert_allclose(accuracies, np.sort(model.worker_accuracy_))
    worst = int(np.argmin(model.worker_accuracy_))
    np.testing.assert_allclose(result["workers"][0]["confusion"], model.confusion_matrices_[worst])


def test_the_result_is_first_and_stages_are_for_those_who_ask(tensor_file):
    printed = runner.invoke(app, ["factorize", str(tensor_file), "-k", "3"]).stdout
    assert printed.startswith("Factorization(")
    assert "sweeps" not in printed
    verbose = runner.invoke(app, ["factorize", str(tensor_file), "-k", "3", "--verbose"]).stdout
    assert verbose.index("relative error") < verbose.index("well determined") < verbose.index("sweeps")


def test_topics_and_communities_choose_their_number(corpus_file, edges_file):
    result = json.loads(apart.invoke(app, ["topics", str(corpus_file), "-k", "auto", "--json"]).stdout)
    assert result["n_topics"] == len(result["topics"]) == 2
    by_default = apart.invoke(app, ["communities", str(edges_file), "--json"]).stdout
    assert apart.invoke(app, ["communities", str(edges_file), "-k", "auto", "--json"]).stdout == by_default
    for command, file in (("topics", corpus_file), ("communities", edges_file)):
        refused = runner.invoke(app, [command, str(file), "-k", "some"])
        assert f"--{command} must be an integer, or auto; got some" in " ".join(refused.output.split())


def test_the_order_of_workers_reaches_report_and_figure(votes_file, tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    orders = {}
    model = DawidSkene(random_state=0).fit(read_votes(votes_file))
    worst = str(model.workers_[np.argmin(model.worker_accuracy_)])
    busiest = str(model.workers_[np.argmax(model.worker_table()["votes"])])
    drawn = codiag.plotting.confusions
    monkeypatch.setattr(
        "codiag.plotting.confusions", lambda *of, **how: orders.setdefault(how["sort"], drawn(*of, **how))
    )
    for sort, first in (("votes", busiest), ("accuracy", worst)):
        page, figure = tmp_path / f"{sort}.html", tmp_path / f"{sort}.png"
        options = ["--sort", sort, "--report", str(page), "--figure", str(figure)]
        assert runner.invoke(app, ["label", str(votes_file), *options]).exit_code == 0
        listed = page.read_text().split('id="workers"')[1]
        assert re.search(r"<tr><td>(.*?)</td>", listed)[1] == first
        matrices = page.read_text().split('id="confusions"')[1]
        named = re.findall(r"<figcaption>(.*?): ", matrices)
        assert named[0] == first
        assert {busiest, worst} <= set(named)
        assert orders[sort].axes[0].get_title().startswith(f"{first}: ")


def test_outputs_have_the_names_of_the_users_columns(votes_file, tmp_path):
    pytest.importorskip("matplotlib", reason="the report draws, which needs the extra 'plot'")
    _, *rows = votes_file.read_text().splitlines()
    votes_file.write_text("\n".join(["image,who,species", *rows]))
    labels, workers, page = tmp_path / "l.csv", tmp_path / "w.csv", tmp_path / "p.html"
    options = ["--task", "image", "--worker", "who", "--label", "species", "--out", str(labels)]
    printed = runner.invoke(app, ["label", str(votes_file), *options, "--workers", str(workers), "--report", str(page)])
    assert printed.exit_code == 0, printed.output
    assert list(read(labels)[0])[:3] == ["image", "species", "probability"]
    assert list(read(workers)[0])[:6] == [
        "who",
        "votes",
        "accuracy",
        "standard_error",
        "accuracy_low_90",
        "accuracy_high_90",
    ]
    assert "90 % interval" in printed.stdout
    assert re.search(r"\bwho +votes +right", printed.stdout)
    assert re.search(r"\bimage +votes +species", printed.stdout)
    assert ">image</th>" in page.read_text()
    assert ">who</th>" in page.read_text()


def test_row_numbers_and_encodings_are_told_in_a_note(long_table):
    header, *rows = long_table.read_text().splitlines()
    numbered = [f",{header}", *(f"{number},{row}" for number, row in enumerate(rows))]
    long_table.write_bytes("\n".join(numbered).replace("s1", "s\xe4").encode("latin-1"))
    options = [str(long_table), "-k", "2", "--value", "value", "--json"]
    printed = apart.invoke(app, ["factorize", *options])
    assert printed.exit_code == 0, printed.output
    said = " ".join(printed.stderr.split())
    assert said.count("is read as Latin-1 (Windows-1252)") == 1
    assert (
        "Note: the first column, without a name, numbers the rows, as an index that pandas wrote; it is left out"
        in said
    )
    assert "sä" in json.loads(printed.stdout)["modes"][1]["labels"]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("id,a,b,c,v\n" + "".join(f"{i},{i % 4},{i // 4 % 3},{i // 12},1.5\n" for i in range(48)), "Use --modes a,b,c"),
        ("a,b,c,v\n1,1,1,x\n2,2,2,y\n", "Name another column by --value"),
        ("a,b,c,v\n1,1,1,1\n1,1,1,2\n", "Average or add them first"),
        ("a,b,c,v\n1,1,1,1\n2,2,2,2\n", "Name others by --modes and --value"),
    ],
)
def test_messages_speak_of_options_and_not_of_python(table, said, tmp_path):
    (tmp_path / "t.csv").write_text(table)
    printed = runner.invoke(app, ["factorize", str(tmp_path / "t.csv"), "-k", "1"])
    words = " ".join(printed.output.split())
    assert printed.exit_code == 2
    assert said in words
    assert not re.search(r"codiag\.|\w\(|\bgroupby\b|=\.\.\.", words)


def test_labels_keep_the_order_of_a_table_unless_they_are_sorted(tmp_path):
    rng = np.random.default_rng(0)
    months = ["Jan", "Feb", "Mar", "Apr"]
    rows = [(month, f"s{store}", day) for month in months for store in (2, 10) for day in range(3)]
    columns = dict(zip(("month", "store", "day"), zip(*rows, strict=True), strict=True))
    write_table(tmp_path / "t.csv", columns | {"sales": 1 + rng.random(len(rows))})
    for options, expected in (([], months), (["--sort-labels"], sorted(months))):
        printed = apart.invoke(app, ["factorize", str(tmp_path / "t.csv"), "-k", "1", "--json", *options])
        modes = json.loads(printed.stdout)["modes"]
        assert [mode["labels"] for mode in modes] == [expected, ["s2", "s10"], [0, 1, 2]]


def test_netcdf_files_are_tensors_with_labels(tmp_path):
    xarray = pytest.importorskip("xarray")
    entries = np.random.default_rng(0).random((4, 5, 6))
    entries[0, 0, 0] = np.nan
    coords = {"sample": list("abcd"), "wave": np.linspace(300.0, 400.0, 6)}
    array = xarray.DataArray(entries, dims=("sample", "time", "wave"), coords=coords, name="X")
    array.to_dataset().assign(other=("time", np.arange(5))).to_netcdf(tmp_path / "x.nc", engine="scipy")
    printed = apart.invoke(app, ["factorize", str(tmp_path / "x.nc"), "-k", "1", "--json"])
    assert printed.exit_code == 0, printed.output
    result = json.loads(printed.stdout)
    assert [mode["name"] for mode in result["modes"]] == ["sample", "time", "wave"]
    assert result["modes"][0]["labels"] == list("abcd")
    assert result["n_observed"] == 119
    np.testing.assert_allclose(result["weights"], codiag.factorize(entries, 1, seed=0).weights)
    (tmp_path / "y.nc").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(100))
    refused = runner.invoke(app, ["factorize", str(tmp_path / "y.nc"), "-k", "1"])
    assert refused.exit_code == 2
    (tmp_path / "z.nc").write_text("garbage")
    refused = runner.invoke(app, ["factorize", str(tmp_path / "z.nc"), "-k", "1"])
    assert "z.nc is not a readable .nc file: it does not begin like one" in " ".join(refused.output.split())
