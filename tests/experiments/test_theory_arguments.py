"""The paper's theory names the argument that makes no sense."""

from __future__ import annotations

import numpy as np
import pytest

from codiag import synthetic
from experiments import theory

FACTOR, WEIGHTS = synthetic.unit_factor(5, 3, rng=0), np.ones(3)
STACK = synthetic.matrix_stack(FACTOR, 4, rng=0)
BAD = np.where(np.eye(5, 3) > 0, np.nan, FACTOR)
CUBE = np.random.default_rng(0).standard_normal((3, 3, 3))


@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (
            lambda: theory.projections_needed(-1, FACTOR, WEIGHTS, np.nan, orthogonal=False),
            ValueError,
            "^accuracy must",
        ),
        (
            lambda: theory.projections_needed(1, FACTOR, WEIGHTS, np.nan, orthogonal=False),
            ValueError,
            "^noise must",
        ),
        (
            lambda: theory.projections_needed(np.nan, FACTOR, WEIGHTS, 0.1, orthogonal=True),
            ValueError,
            "^accuracy must",
        ),
        (lambda: theory.error_bound(BAD, WEIGHTS, 0.1, orthogonal=False), ValueError, "^factor must"),
        (lambda: theory.error_bound(FACTOR, WEIGHTS[:2], 0.1, orthogonal=False), ValueError, r"shape \(3,\); got \(2,"),
        (
            lambda: theory.error_bound(FACTOR, 0 * WEIGHTS, 0.1, orthogonal=False),
            ValueError,
            "^weights must",
        ),
        (lambda: theory.error_bound(FACTOR, WEIGHTS, 0.1, orthogonal="no"), TypeError, "^orthogonal must"),
        (lambda: theory.error_bound(FACTOR.T, np.ones(5), 0.1, orthogonal=False), ValueError, "columns than rows"),
        (
            lambda: theory.error_bound(np.ones((5, 2)), np.ones(2), 0.1, orthogonal=False),
            ValueError,
            "parallel columns",
        ),
        (
            lambda: theory.projection_concentration(FACTOR, 0, orthogonal=False),
            ValueError,
            "^n_projections must",
        ),
        (
            lambda: theory.projection_concentration(FACTOR, 2.5, orthogonal=False),
            TypeError,
            "^n_projections must",
        ),
        (
            lambda: theory.projection_concentration(FACTOR, 5, orthogonal=True),
            ValueError,
            "^factor must",
        ),
        (
            lambda: theory.minimum_projections(FACTOR[0], orthogonal=True),
            ValueError,
            "^factor must",
        ),
        (lambda: theory.minimum_projections(FACTOR, orthogonal=False, delta="a"), TypeError, "^delta must"),
        (
            lambda: theory.first_order_perturbation(FACTOR, STACK.diagonals[:, :2], STACK.matrices, orthogonal=False),
            ValueError,
            "^diagonals must",
        ),
        (
            lambda: theory.first_order_perturbation(np.ones((5, 3)), STACK.diagonals, STACK.matrices, orthogonal=False),
            ValueError,
            "^factor must",
        ),
        (
            lambda: theory.afsari_bound(FACTOR, STACK.diagonals, STACK.matrices[:, :4]),
            ValueError,
            "^noise must",
        ),
        (lambda: theory.project_noise(CUBE, np.ones((2, 4))), ValueError, "^directions must"),
        (lambda: theory.projected_diagonals(FACTOR, WEIGHTS, np.ones(5)), ValueError, "^directions must"),
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
