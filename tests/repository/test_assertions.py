"""An assertion helper that cannot fail is worse than none."""

from __future__ import annotations

import numpy as np
import pytest

from assertions import assert_same_factors, assert_same_to_rounding, assert_unit_columns, largest_distance
from codiag.synthetic import unit_factor


def test_same_factors_fails_on_other_factors():
    truth = unit_factor(5, 5, rng=0)
    assert_same_factors(-truth[:, ::-1], truth, 1e-15)
    moved = truth.copy()
    moved[:, 2] += 1e-3 * unit_factor(5, 1, rng=1)[:, 0]
    with pytest.raises(AssertionError, match="a factor is"):
        assert_same_factors(moved, truth, 1e-4)
    with pytest.raises(ValueError, match="^estimate must"):
        assert_same_factors(np.full((5, 5), np.nan), truth, 1e-4)


def test_largest_distance_is_the_largest():
    assert largest_distance(np.eye(3)[:, [0, 1, 1]], np.eye(3)) == pytest.approx(np.sqrt(2))


def test_unit_columns_fails_on_others():
    with pytest.raises(AssertionError):
        assert_unit_columns(2 * np.eye(3), 1e-3)


def test_rounding_is_no_difference_and_more_is():
    values = np.array([1.0, 1e-3, np.nan])
    assert_same_to_rounding(values, values * (1 + 1e-12))
    with pytest.raises(AssertionError):
        assert_same_to_rounding(values, values * (1 + 1e-6))
    with pytest.raises(AssertionError):
        assert_same_to_rounding(np.array([1.0, np.nan, np.nan]), values)
