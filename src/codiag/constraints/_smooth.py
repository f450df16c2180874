"""Smooth factors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace
from codiag._checks import as_number
from codiag.constraints._base import Constraint
from codiag.constraints._penalty import Penalty


@dataclass(frozen=True, eq=False)
class Smooth(Penalty):
    r"""Neighboring entries are similar, as of spectra, elution profiles and time courses.

    Half the strength times :math:`\sum_r \|\Delta^p a_r\|^2 \prod_{n \ne m} \|a^{(n)}_r\|^2` is added to the objective,
    with differences of order p: the roughness of the components along this mode. It does not change if size moves from
    one mode to another, so that the other modes need no penalty, and is in units of the data: the strength is a pure
    number.

    Parameters
    ----------
    strength : float or "auto"
        With order 2, a wave with a period of n rows is reduced to :math:`1 / (1 + (2 \pi / n)^4 s)` of its height: at
        100, to half if n is 20. "auto" takes the power of ten that predicts held-out entries best.
    order : int
        Of the differences: 1 shrinks to constants, 2 to straight lines.

    See Also
    --------
    Unimodal : One peak.
    Prior : A profile that is known.

    Notes
    -----
    Standard errors are those of a posterior, as with `Ridge`: they hold if the profiles are about as rough as the
    strength says. Rows without entries are interpolated.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.constraints import Smooth
    >>> time = np.linspace(-3, 3, 40)
    >>> peaks = np.exp(-((time[:, None] - [-1, 1]) ** 2))
    >>> rng = np.random.default_rng(0)
    >>> tensor = np.einsum("ir,jr,kr->ijk", peaks, rng.random((5, 2)), rng.random((6, 2)))
    >>> noisy = tensor + 0.1 * rng.standard_normal(tensor.shape)
    >>> fits = [codiag.factorize(noisy, 2, constraints={0: rule}, rng=0) for rule in (None, Smooth(1.0))]
    >>> plain, smooth = (codiag.factor_error([fit.factors[0]], [peaks]) for fit in fits)
    >>> smooth < plain
    True
    """

    supports_gauss_newton: ClassVar[bool] = True
    ties_rows: ClassVar[bool] = True
    penalty_degree: ClassVar[int] = 2

    order: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        as_number("order", self.order, integer=True)

    def penalty_product(self, move: Array) -> Array:
        """Return the differences of the differences, of a factor or a stack of factors."""
        xp = array_namespace(move)
        if move.shape[-2] <= self.order:
            return 0 * move
        for _ in range(self.order):
            move = move[..., 1:, :] - move[..., :-1, :]
        for _ in range(self.order):
            none = 0 * move[..., :1, :]
            move = xp.concat([none, move], axis=-2) - xp.concat([move, none], axis=-2)
        return float(self.strength) * move

    @property
    def penalty_bound(self) -> float:
        return float(self.strength) * 4.0**self.order

    def restrict(self, rows: np.ndarray) -> Constraint | None:
        return None  # neighbors may have gone
