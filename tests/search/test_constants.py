"""Constants of least squares, starts and the search: few, named, and each with a mutant (`tests/mutation.py`)."""

from __future__ import annotations

from mutation import MUTANTS, constants, unnamed


def test_constants_are_few_and_have_mutants():
    names = constants()
    assert len(names) <= 30
    assert set(names) == set(MUTANTS)


def test_numbers_in_formulas_have_names():
    assert unnamed() == []
