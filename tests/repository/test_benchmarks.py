"""The benchmarks: the same tensors for everybody, and no work done twice."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))
grid_module = pytest.importorskip("benchmarks.grid", reason="benchmarks lie beside the tests, in the repository")

from benchmarks.grids import FULL, SMALL  # noqa: E402
from benchmarks.solvers import all_solvers  # noqa: E402
from codiag.synthetic import noisy_tensor  # noqa: E402
from experiments.records import combinations, select  # noqa: E402
from experiments.reports import sections  # noqa: E402
from experiments.runs import read, run, seed_of  # noqa: E402


def tiny(size, noise, seed):
    return noisy_tensor((size,) * 3, 2, noise=noise, rng=seed)


AXES = {"size": [4, 5], "noise": [0.0, 1e-3]}
GRID = grid_module.Grid("tiny", "Tiny tensors", tiny, AXES, ["auto", "als", "tpm"], 2)


def records_of(grid, solvers, folder):
    experiment = grid.experiment(solvers)
    assert run([experiment], folder) == []
    return read(experiment, folder)


def test_every_method_sees_the_same_tensors(tmp_path):
    seen: dict[str, list[np.ndarray]] = {"first": [], "second": []}
    seeds = set()

    def solver(name):
        def solve(tensor, rank, symmetric, seed):
            seen[name].append(tensor)
            seeds.add(seed)
            return [np.eye(size, rank) for size in tensor.shape]

        return solve

    solvers = {name: solver(name) for name in seen}
    for name in seen:  # in separate runs: what else runs does not matter
        records_of(dataclasses.replace(GRID, methods=[name]), solvers, tmp_path)
    assert len(seen["first"]) > 8
    for first, second in zip(seen["first"], seen["second"], strict=True):
        np.testing.assert_array_equal(first, second)
    assert not np.array_equal(seen["first"][0], seen["first"][2])
    # A start drawn like the truth would be the truth.
    assert not seeds & {seed_of("tiny", cell, index) for cell in combinations(AXES) for index in range(2)}


def test_it_resumes(tmp_path):
    solvers = all_solvers()
    first = records_of(dataclasses.replace(GRID, n_seeds=1), solvers, tmp_path)
    lines = (tmp_path / "tiny.jsonl").read_text().splitlines()
    assert len(lines) == len(first) == 4 * 3
    again = records_of(GRID, solvers, tmp_path)
    assert (tmp_path / "tiny.jsonl").read_text().splitlines()[: len(lines)] == lines
    assert len(again) == 2 * len(first)
    for record in first:
        assert select(again, **record.cell) == [record]


def test_lines_of_earlier_versions_are_read(tmp_path):
    """They had the seed and the method beside the cell, and the numbers beside these."""
    place = {"cell": {"size": 4, "noise": 0.0}, "seed": 1}
    old = [
        {**place, "method": "auto", "oracle": 0.5, "cpu": 0.1, "success": True},
        {**place, "method": "tpm", "oracle": 0.5, "refused": "not symmetric"},
    ]
    (tmp_path / "tiny.jsonl").write_text("".join(json.dumps(line) + "\n" for line in old))
    auto, tpm = read(GRID.experiment(all_solvers()), tmp_path)
    assert auto.cell == {"size": 4, "noise": 0.0, "seed": 1, "method": "auto"}
    assert auto.values == {"oracle": 0.5, "cpu": 0.1, "success": 1.0}
    assert (tpm.cell["method"], tpm.refused) == ("tpm", "not symmetric")
    records_of(GRID, all_solvers(), tmp_path)
    assert len((tmp_path / "tiny.jsonl").read_text().splitlines()) == 4 * 2 * 3


def test_tables_say_who_refused(tmp_path):
    def refuse(tensor, rank, symmetric, seed):
        raise ValueError("tensor must be another; got this")

    solvers = all_solvers() | {"tpm": refuse}
    report = GRID.experiment(solvers).report(records_of(GRID, solvers, tmp_path))
    text = "\n".join(sections(report, ["tiny.png"]))
    assert "| tpm | refuses: tensor must be another" in text
    assert text.count("| auto |") == 4
    assert [series.label for series in report.figures[0].panels[0].series] == ["auto", "als", "oracle"]


def test_baselines_are_found_by_module_and_function():
    assert "tests_peer:solve" not in all_solvers()
    assert "math:hypot" in all_solvers(["math:hypot"])


@pytest.mark.parametrize("grid", [*SMALL, *FULL], ids=lambda grid: grid.name)
def test_grids_name_methods_that_exist(grid):
    known = set(all_solvers()) | {
        "TensorLy parafac",
        "TensorLy parafac, orthogonalised",
        "pyttb cp_als",
        "pytensorlab cpd",
    }
    assert set(grid.methods) <= known
    cell = combinations(grid.axes)[0]
    assert grid.problem(**cell, seed=0).tensor.ndim >= 3


def test_baselines_get_our_functions_in_every_place(monkeypatch):
    tensorly = pytest.importorskip("tensorly.decomposition", reason="TensorLy is not installed")
    from benchmarks.baseline_tests import replace_tensorly
    from codiag import drop_in

    places = [sys.modules[f"tensorly.decomposition{name}"] for name in ("", "._cp", "._parafac2")]
    for place in places:
        for name in ("parafac", "CP"):
            if hasattr(place, name):
                monkeypatch.setattr(place, name, getattr(place, name))  # put back at the end
    replace_tensorly()
    assert all(place.parafac is drop_in.parafac for place in places)
    assert tensorly.CP is drop_in.CP


def test_outcomes_of_baselines_are_counted():
    pytest.importorskip("tensorly", reason="TensorLy is not installed")
    from benchmarks.baseline_tests import report

    outcomes = [("a.py::one", "passed", ""), ("a.py::two", "failed", "error 0.31 > 0.1"), ("b.py::x", "passed", "")]
    text = report("tensorly", [*outcomes, ("a.py::three", "failed", "error 0.42 > 0.1")])
    assert "| a.py | 1 | 3 |" in text
    assert "| all | 2 | 4 |" in text
    assert "- 2: `error # > #`" in text


@pytest.mark.slow
def test_baselines_run_in_a_process_of_their_own():
    pytest.importorskip("tensorly", reason="TensorLy is not installed")
    from benchmarks.baseline_tests import run

    outcomes = run("tensorly", ["-k", "test_parafac_linesearch or test_parafac_does_not_modify_init"])
    assert sorted(outcome for _, outcome, _ in outcomes) == ["passed", "passed"]


def test_methods_for_constraints_see_the_same_data_and_are_held_against_the_oracle(tmp_path):
    from benchmarks import constrained

    chosen = dataclasses.replace(constrained.SCENARIOS["scatter"], methods={"codiag": 9, "codiag ALS": 1})
    assert [cell["method"] for cell in chosen.cells(2)] == ["codiag", "codiag ALS", "codiag"]
    place = {"shape": "8^3", "rank": 2, "missing": 0.3, "seed": 0}
    values = {name: constrained._measured("random", place | {"method": name}, 0) for name in ("codiag", "codiag ALS")}
    assert values["codiag"]["success"] == 1
    assert values["codiag"]["error"] == pytest.approx(1, rel=1e-4)
    assert values["codiag ALS"]["objective"] == pytest.approx(1, rel=1e-4)
