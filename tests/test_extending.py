"""The worked examples of docs/extending run, and do what they say. Laws run on them through tests/cases.py."""

from __future__ import annotations

import doctest

import pytest

from extending import FOLDER, example


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("*.py")))
def test_the_examples_in_its_docstrings_hold(name):
    result = doctest.testmod(example(name))
    assert result.attempted > 0
    assert result.failed == 0


def test_the_diagonalizer_finds_what_the_default_finds(capsys):
    assert example("diagonalizer").main() < 1e-7
