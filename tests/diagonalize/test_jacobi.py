from __future__ import annotations

import numpy as np
import pytest

from assertions import assert_same_factors
from codiag.diagonalize import Jacobi, leading_rounds, round_robin
from codiag.synthetic import matrix_stack, orthonormal_factor


@pytest.mark.parametrize("size", range(2, 12))
def test_round_robin_meets_every_pair_once_in_disjoint_rounds(size):
    rounds = round_robin(size)
    pairs = [(int(p), int(q)) for first, second in rounds for p, q in zip(first, second, strict=True)]
    assert sorted(pairs) == [(p, q) for p in range(size) for q in range(p + 1, size)]
    for first, second in rounds:
        assert len({*first.tolist(), *second.tolist()}) == 2 * len(first)


@pytest.mark.parametrize(("size", "leading"), [(5, 1), (7, 3), (8, 4), (9, 2), (10, 9), (6, 4)])
def test_leading_rounds_meet_every_pair_that_touches_the_leading_rows(size, leading):
    rounds = leading_rounds(size, leading)
    pairs = [(int(p), int(q)) for first, second in rounds for p, q in zip(first, second, strict=True)]
    assert sorted(pairs) == [(p, q) for p in range(leading) for q in range(p + 1, size)]
    for first, second in rounds:
        assert len({*first.tolist(), *second.tolist()}) == 2 * len(first)


@pytest.mark.parametrize("rank", [1, 3, 7])
def test_leading_rows_hold_the_components_of_a_low_rank_stack(rank):
    """The stronger component of a pair goes to the leading row, wherever it started."""
    factor = orthonormal_factor(9, rank, rng=4)
    stack = matrix_stack(factor, 12, noise=1e-5, rng=5)
    fit = Jacobi(max_rows=rank)(stack.matrices)
    assert fit.factor.shape == (9, rank)
    assert_same_factors(fit.factor, factor, 1e-4)
    assert_same_factors(fit.factor, Jacobi(rank=rank)(stack.matrices).factor, 1e-6)


def test_more_leading_rows_than_there_are_is_all_of_them():
    matrices = matrix_stack(orthonormal_factor(4, 4, rng=0), 5, noise=0.01, rng=1).matrices
    np.testing.assert_array_equal(Jacobi(max_rows=10)(matrices).factor, Jacobi()(matrices).factor)
