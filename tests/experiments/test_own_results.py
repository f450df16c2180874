"""The simulations of the project's own results: the kept tables agree with theory, and the command makes them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from experiments import own_results

TABLES = Path(__file__).parents[2] / "docs" / "theory" / "tables"
if not TABLES.exists():
    pytest.skip("the tables lie in the repository", allow_module_level=True)


def rows(text):
    return [[cell.strip() for cell in line.strip("| ").split("|")] for line in text.splitlines() if line[:1] == "|"]


def kept(name):
    return rows((TABLES / f"{name}.md").read_text())[2:]


def test_random_projections_have_their_law_at_four_sizes():
    found = kept("law")
    assert len(found) == len(own_results.LAW_SIZES) == 4
    assert all(abs(float(cells[-1])) < 4 for cells in found)
    assert all(float(cells[4].split("±")[1]) < 0.02 for cells in found)


def test_directions_have_their_expected_errors_at_four_sizes():
    cells = [cell for line in kept("expectations") for cell in line[1:]]
    ratios = np.array([[float(number) for number in re.findall(r"[\d.]+", cell)[1:]] for cell in cells])
    assert ratios.shape == (16, 2)
    assert np.all(np.abs(ratios[:, 0] - 1) < 4 * ratios[:, 1] + 0.0005)  # half a unit of the last digit


def test_worst_noise_attains_the_formulas_at_four_sizes():
    for kind, _, measured, attained, bound, *_ in kept("worst"):
        assert float(measured) <= float(bound)
        if kind != "free, isotropic":
            assert measured == attained


def test_below_full_rank_the_range_comes_first():
    """The inverse factors of full-size matrices leave the range however small the noise is, and errors are larger."""
    for *_, noise, outside, error, _, first in kept("below_full_rank"):
        assert float(noise) < 0.01
        assert float(outside) > 0.2
        assert float(error) > 1.1
        assert abs(float(first) - 1) < 0.001


def test_full_size_diagonalization_exceeds_the_bound_below_full_rank():
    """The counterexample: errors like the root of the noise, where the bound is proportional to it."""
    for _, noise, full, root, bound, first in kept("counterexample"):
        if float(noise) < 1e-3:
            assert full == root
            assert float(full) > float(bound)
        assert float(first) <= 1e-9


def test_the_command_makes_the_tables(tmp_path, monkeypatch):
    monkeypatch.setattr(own_results, "LAW_SIZES", ((4, 3, 6),))
    monkeypatch.setattr(own_results, "RANKS", (3, 4))
    monkeypatch.setattr(own_results, "WORST_RANKS", (4,))
    monkeypatch.setattr(own_results, "GAP_SIZES", ((4, 2),))
    monkeypatch.setattr(own_results, "COUNTER_SIZES", (3,))
    own_results.main(folder=tmp_path, share=0.01)
    for name in ("law", "expectations", "methods", "worst", "below_full_rank", "counterexample"):
        made = rows((tmp_path / f"{name}.md").read_text())
        assert made[0] == rows((TABLES / f"{name}.md").read_text())[0]
        assert len(made) > 2
