"""Factors that are known about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array, array_namespace, asarray_like, take, to_host
from codiag._checks import as_number_array
from codiag.constraints._base import Constraint
from codiag.constraints._penalty import Penalty


@dataclass(frozen=True, eq=False, repr=False)
class Prior(Penalty):
    r"""Columns are near known ones, up to their sizes: spectra of pure substances, say.

    Half the strength times :math:`\sum_r \|a_r - t_r t_r^\top a_r\|^2 \prod_{n \ne m} \|a^{(n)}_r\|^2` is added to the
    objective, with unit columns :math:`t_r` of the target, over its rows that are known: what a column has that the
    target has not. Size may move from one mode to another, and the strength is a pure number.

    Parameters
    ----------
    target : array of shape (d, rank)
        NaN is free; a column of NaN is a component of which nothing is known. Columns are in any order.
    strength : float or "auto"
        How many times the target was measured, compared with the data at hand: at 1 it counts as much as they do. Large
        numbers fix the factor. "auto" takes the power of ten that predicts held-out entries best.

    See Also
    --------
    Fixed : A factor that is known exactly.
    Smooth : Profiles of unknown form.

    Notes
    -----
    Standard errors are those of a posterior, as with `Ridge`: what is known counts as measured.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.constraints import Prior
    >>> rng = np.random.default_rng(0)
    >>> spectra = rng.random((20, 2))
    >>> tensor = np.einsum("ir,jr,kr->ijk", spectra, rng.random((5, 2)), rng.random((6, 2)))
    >>> noisy = tensor + 0.2 * rng.standard_normal(tensor.shape)
    >>> known = np.where([True, False], spectra, np.nan)
    >>> fits = [codiag.factorize(noisy, 2, constraints={0: rule}, rng=0) for rule in (None, Prior(known, 10.0))]
    >>> plain, near = (codiag.factor_error([fit.factors[0]], [spectra]) for fit in fits)
    >>> near < plain
    True
    """

    supports_gauss_newton: ClassVar[bool] = True
    has_columns: ClassVar[bool] = True
    penalty_degree: ClassVar[int] = 2

    target: Array

    def __init__(self, target: Array, strength: float | str) -> None:
        object.__setattr__(self, "strength", strength)
        object.__setattr__(self, "target", target)
        self.__post_init__()

    def __post_init__(self) -> None:
        super().__post_init__()
        target = to_host(as_number_array(self.target, "target"))
        if target.ndim != 2 or np.isinf(target).any() or np.iscomplexobj(target) or np.isnan(target).all():
            raise ValueError(
                f"target must be a real array of shape (d, rank) with some numbers, NaN where it is free; got shape "
                f"{target.shape}"
            )
        object.__setattr__(self, "target", target)

    def __repr__(self) -> str:
        return f"Prior({int(np.sum(~np.isnan(self.target)))} entries, strength={self.strength})"

    def penalty_product(self, move: Array) -> Array:
        known = ~np.isnan(self.target)
        target = np.where(known, self.target, 0.0)
        norms = np.linalg.norm(target, axis=0)
        unit, mask = (asarray_like(part, move) for part in (target / np.where(norms > 0, norms, 1.0), known * 1.0))
        along = array_namespace(move).sum(unit * move, axis=-2, keepdims=True)
        return float(self.strength) * (mask * move - unit * along)

    @property
    def penalty_bound(self) -> float:
        return float(self.strength)

    def order_of(self, factor: Array) -> list[int] | None:
        """Return the order of columns that are most alike those of the target."""
        from scipy.optimize import linear_sum_assignment

        target, columns = np.nan_to_num(self.target), to_host(factor)
        norms = [np.maximum(np.linalg.norm(part, axis=0), 1e-300) for part in (target, columns)]
        overlaps = np.abs((target / norms[0]).T @ (columns / norms[1]))
        return [int(column) for column in linear_sum_assignment(-overlaps)[1]]

    def restrict(self, rows: np.ndarray) -> Constraint | None:
        return Prior(take(self.target, rows, 0), self.strength)

    def check(self, size: int, rank: int, mode: int) -> None:
        if tuple(self.target.shape) != (size, rank):
            raise ValueError(
                f"constraints[{mode}]: the target must have shape ({size}, {rank}), the size of the mode and the rank, "
                f"with columns of NaN for components of which nothing is known; got {tuple(self.target.shape)}"
            )
