"""NOJD with plug-in projections along the directions of least expected error for the estimated factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag import Problem
from codiag.methods import NOJD
from codiag.starts import Roles
from codiag.tensors import FactoredTensor
from experiments.theory import best_metric, directions_of, symmetric_model, two_sided_model

FLOOR = 0.3
"""Isotropic part that is added to the best metric, relative to the mean of its eigenvalues. Chosen by simulation: the
best metric of estimated factors is often singular, and noise that is not small then moves factors more than first-order
theory says. `python -m experiments.own_results methods` measures it, on other tensors than those of the choice."""


@dataclass(frozen=True, kw_only=True, eq=False)
class OptimalNOJD(NOJD):
    """`codiag.methods.NOJD` for real tensors of order 3, projected again along optimal directions."""

    supports: ClassVar[frozenset[str]] = frozenset()

    def check_supported(self, problem: Problem) -> None:
        if problem.tensor.order > 3:
            raise ValueError("tensor must be of order 3 for optimal directions, since one mode is projected; use NOJD")
        super().check_supported(problem)

    def _plug_in_directions(self, components: FactoredTensor, roles: Roles) -> list[np.ndarray]:
        """Return as many directions as the mode that is projected is large."""
        weights, factors = np.asarray(components.weights), [np.asarray(factor) for factor in components.factors]
        third = factors[roles.others[0]]
        if components.symmetric:
            model = symmetric_model(third, weights, symmetric_noise=True)
        else:
            model = two_sided_model(factors[roles.rows[0]], factors[roles.columns[0]], third * weights)
        return [directions_of(best_metric(model, floor=FLOOR))]
