"""The paper's theory names the argument that makes no sense."""

from __future__ import annotations

import numpy as np
import pytest

from codiag import synthetic
from experiments import theory

FACTOR, WEIGHTS = synthetic.unit_factor(5, 3, seed=0), np.ones(3)
STACK = synthetic.matrix_stack(FACTOR, 4, seed=0)
BAD = np.where(np.eye(5, 3) > 0, np.nan, FACTOR)
CUBE = np.random.default_rng(0).standard_normal((3, 3, 3))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda: theory.projections_needed(-1, FACTOR, WEIGHTS, np.nan, orthogonal=False),
            ValueError,
            "accuracy must be",
        ),
        (
            lambda: theory.projections_needed(1, FACTOR, WEIGHTS, np.nan, orthogonal=False),
            ValueError,
            "noise must not be",
        ),
        (
            lambda: theory.projections_needed(np.nan, FACTOR, WEIGHTS, 0.1, orthogonal=True),
            ValueError,
            "accuracy must be",
        ),
        (lambda: theory.error_bound(BAD, WEIGHTS, 0.1, orthogonal=False), ValueError, "factor must be finite; 3 of 15"),
        (lambda: theory.error_bound(FACTOR, WEIGHTS[:2], 0.1, orthogonal=False), ValueError, r"shape \(3,\); got \(2,"),
        (
            lambda: theory.error_bound(FACTOR, 0 * WEIGHTS, 0.1, orthogonal=False),
            ValueError,
            "weights must not be zero",
        ),
        (lambda: theory.error_bound(FACTOR, WEIGHTS, 0.1, orthogonal="no"), TypeError, "orthogonal must be True or"),
        (lambda: theory.error_bound(FACTOR.T, np.ones(5), 0.1, orthogonal=False), ValueError, "columns than rows"),
        (
            lambda: theory.error_bound(np.ones((5, 2)), np.ones(2), 0.1, orthogonal=False),
            ValueError,
            "parallel columns",
        ),
        (
            lambda: theory.projection_concentration(FACTOR, 0, orthogonal=False),
            ValueError,
            "n_projections must be positive",
        ),
        (
            lambda: theory.projection_concentration(FACTOR, 2.5, orthogonal=False),
            TypeError,
            "n_projections must be an integer",
        ),
        (
            lambda: theory.projection_concentration(FACTOR, 5, orthogonal=True),
            ValueError,
            "factor must have orthogonal columns",
        ),
        (
            lambda: theory.minimum_projections(FACTOR[0], orthogonal=True),
            ValueError,
            r"factor must have shape \(n, n\)",
        ),
        (lambda: theory.minimum_projections(FACTOR, orthogonal=False, delta="a"), TypeError, "delta must be a number"),
        (
            lambda: theory.first_order_perturbation(FACTOR, STACK.diagonals[:, :2], STACK.matrices, orthogonal=False),
            ValueError,
            r"diagonals must have shape \(n, 3\)",
        ),
        (
            lambda: theory.first_order_perturbation(np.ones((5, 3)), STACK.diagonals, STACK.matrices, orthogonal=False),
            ValueError,
            "factor must have independent columns",
        ),
        (
            lambda: theory.afsari_bound(FACTOR, STACK.diagonals, STACK.matrices[:, :4]),
            ValueError,
            r"noise must have shape \(4, 5, 5\)",
        ),
        (lambda: theory.project_noise(CUBE, np.ones((2, 4))), ValueError, r"directions must have shape \(n, 3\)"),
        (lambda: theory.projected_diagonals(FACTOR, WEIGHTS, np.ones(5)), ValueError, r"directions must have shape"),
        (
            lambda: theory.error_bound(np.eye(3), np.ones(3), 0.1, orthogonal=True, delta=np.nan),
            ValueError,
            "delta must",
        ),
    ],
)
def test_arguments_of_the_theory(call, kind, words):
    with pytest.raises(kind, match=words):
        call()
