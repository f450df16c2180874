"""Registries of what exists, so that every contract test runs on all of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from codiag.diagonalize import (
    LUJ1D,
    QRJ1D,
    UWEDGE,
    Diagonalizer,
    Jacobi,
    JDi,
    OrthogonalNewton,
    TwoSided,
    symmetrized,
)
from codiag.synthetic import Stack, matrix_stack, mild_factor, orthonormal_factor


@dataclass(frozen=True)
class Case:
    """A method, the problems it is for, and the tightest setting it has."""

    method: Diagonalizer
    orthogonal: bool
    symmetric: bool = True
    exact: Diagonalizer | None = None  # the same method asked for its fixed point, whatever the noise
    slow: bool = False  # linear convergence: keep problems small
    settles: bool = True  # under noise, too

    def skip_unless_it_settles(self) -> None:
        if not self.settles:
            pytest.skip("under noise it drifts along pairs of components with opposite diagonals")

    @property
    def exactly(self) -> Diagonalizer:
        return self.exact or self.method

    def stack(self, size: int, n: int, *, rank: int | None = None, noise: float = 0.0, seed: int = 0) -> Stack:
        """Return a problem of the kind the method solves, with factors in general position."""
        rng = np.random.default_rng([size, n, rank or size, seed])
        make = orthonormal_factor if self.orthogonal else mild_factor
        factor = make(size, rank or size, rng)
        right = None if self.symmetric else make(size, rank or size, rng)
        return matrix_stack(factor, n, right_factor=right, noise=noise, seed=rng)


DIAGONALIZERS = {
    "OrthogonalNewton": Case(OrthogonalNewton(), True, exact=OrthogonalNewton(statistical_tol=1e-12, tol=1e-11)),
    "Jacobi": Case(Jacobi(), True, exact=Jacobi(tol=1e-11)),
    "UWEDGE": Case(UWEDGE(), False, exact=UWEDGE(statistical_tol=1e-12, tol=1e-11)),
    "JDi": Case(JDi(), False, exact=JDi(tol=1e-11)),
    "QRJ1D": Case(QRJ1D(max_sweeps=2000), False, exact=QRJ1D(tol=1e-9, max_sweeps=1000), slow=True),
    "LUJ1D": Case(LUJ1D(max_sweeps=2000), False, exact=LUJ1D(tol=1e-9, max_sweeps=1000), slow=True),
    "TwoSided": Case(TwoSided(), False, False, exact=TwoSided(statistical_tol=1e-12, tol=1e-11)),
    "TwoSided orthogonal": Case(
        TwoSided(orthogonal=True), True, False, exact=TwoSided(orthogonal=True, statistical_tol=1e-12, tol=1e-11)
    ),
    "symmetrized Jacobi": Case(symmetrized(Jacobi()), True, False, exact=symmetrized(Jacobi(tol=1e-11))),
    "symmetrized OrthogonalNewton": Case(
        symmetrized(OrthogonalNewton()),
        True,
        False,
        exact=symmetrized(OrthogonalNewton(statistical_tol=1e-12, tol=1e-11)),
    ),
    "symmetrized QRJ1D": Case(symmetrized(QRJ1D(max_sweeps=2000)), False, False, slow=True, settles=False),
}

SYMMETRIC = {name: case for name, case in DIAGONALIZERS.items() if case.symmetric}
