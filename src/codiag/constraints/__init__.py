"""Constraints on the factors, one for each mode.

=============== ==================== ==========================================================
Constraint      Name                 The factor of the mode
=============== ==================== ==========================================================
`NonNegative`   ``"nonnegative"``    has no negative entries, as concentrations and counts.
`Orthogonal`    ``"orthogonal"``     has orthonormal columns.
`Fixed`                              is known.
`Ridge`                              is kept small, by a penalty on its squares.
`Smooth`                             is smooth along its rows, by a penalty on differences.
`Prior`                              is near known columns, or parts of them.
`L1`                                 has few entries other than zero, by a penalty.
`Unimodal`      ``"unimodal"``       has columns that rise to one peak and fall from it.
`Simplex`       ``"simplex"``        has rows of shares, which add up to one.
=============== ==================== ==========================================================

Pass one to `codiag.factorize` for all modes, or a sequence with one for each, where None is a free mode. A list of
several for one mode combines them: ``constraints={"time": ["unimodal", Smooth(10.0)]}``. To write one of your own,
derive from `codiag.extending.Constraint`.

Examples
--------
>>> import numpy as np
>>> import codiag
>>> a, b, c = (np.random.default_rng(size).random((size, 2)) for size in (6, 5, 4))
>>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, b, c), 2, constraints=("nonnegative", None, None), rng=0)
>>> bool((fit.factors[0] >= 0).all())
True
"""

from codiag._checks import public_names
from codiag.constraints._base import (
    NEARLY_SINGULAR,
    Constraint,
    Constraints,
    ConstraintsLike,
    as_constraints,
    check_constraints,
    solve_rows,
    times_gram,
)
from codiag.constraints._combined import Combined
from codiag.constraints._fixed import Fixed
from codiag.constraints._l1 import L1
from codiag.constraints._nonnegative import NonNegative
from codiag.constraints._orthogonal import Orthogonal
from codiag.constraints._penalty import (
    Penalties,
    lengths_of,
    majorants,
    others_of,
    penalties_of,
    penalty_slopes,
    penalty_value,
)
from codiag.constraints._prior import Prior
from codiag.constraints._ridge import Ridge, ridge_strengths
from codiag.constraints._simplex import Simplex
from codiag.constraints._smooth import Smooth
from codiag.constraints._unimodal import Unimodal

__all__ = ["L1", "Fixed", "NonNegative", "Orthogonal", "Prior", "Ridge", "Simplex", "Smooth", "Unimodal"]

CONSTRAINTS: dict[str, Constraint] = {
    "nonnegative": NonNegative(),
    "orthogonal": Orthogonal(),
    "simplex": Simplex(),
    "unimodal": Unimodal(),
}
"""Constraints by name."""

__dir__ = public_names(__all__)
