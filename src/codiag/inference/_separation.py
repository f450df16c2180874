r"""Pairs of components that the data does not separate.

If two components share their factor in all modes but two, T contains :math:`a \otimes (b_1 c_1^\top + b_2 c_2^\top)`,
and only the span of their factors in these two modes is determined. Noise splits the shared factor, and first-order
theory takes the split for signal: so the difference of two columns is compared with its own standard error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import squared_magnitudes, to_double, to_host
from codiag.least_squares import hadamard_gram

if TYPE_CHECKING:
    from codiag.result import Factorization

SEPARATED = 3.0
"""Standard errors that the difference of two columns must exceed."""


def separations(fit: Factorization, factors: Sequence[np.ndarray]) -> np.ndarray:
    r"""Return the distance of each two columns, up to signs or phases, in standard errors: (n_modes, k, k).

    The standard errors are those for known factors of all other modes, :math:`\sigma ((d_m - 1)
    (\Gamma_m^{-1})_{rr})^{1/2}` with the products :math:`\Gamma_m` of Gram matrices: they measure by how much noise
    splits a factor that two components share, and do not grow with what it then leaves open in the other modes.
    """
    noise = fit._noise if fit._noise >= 0 else 0.0
    share = (fit.problem.n_observed or math.prod(fit.shape)) / math.prod(fit.shape)
    weights, found = np.abs(to_double(to_host(fit.weights))), []
    for mode, factor in enumerate(factors):
        gram = hadamard_gram(list(factors), [mode]) * np.outer(weights, weights)
        variances = np.real(np.diagonal(np.linalg.pinv(gram, hermitian=True))) * noise**2 / share
        variances = np.where(weights > 0, variances * (factor.shape[0] - 1), np.inf)
        spreads = np.sqrt(variances[:, None] + variances)
        cosines = np.clip(np.abs(factor.conj().T @ factor), 0.0, 1.0)
        distances, is_known = np.sqrt(2 * (1 - cosines)), spreads > 0
        ratios = distances / np.where(is_known, spreads, 1.0)
        found.append(np.where(is_known, ratios, np.where(distances > 0, np.inf, 0.0)))
    return np.stack(found)


def undetermined_pairs(
    fit: Factorization, factors: Sequence[np.ndarray], separation: np.ndarray
) -> list[tuple[list[int], list[int]]]:
    """Return pairs of components that are not separated, with the modes in which their factors are not determined.

    What constraints fix, and zeros of one component where the other has none, keep two components apart.
    """
    rank, apart = fit.rank, separation > SEPARATED
    if rank == 1 or not fit._noise >= 0:
        return []
    constraints, found = fit.problem.constraints or (None,) * len(factors), []
    for r in range(rank):
        for s in range(r):
            modes = [mode for mode in range(len(factors)) if apart[mode, r, s]]
            rules = [constraints[mode] for mode in modes]
            is_held = any(rule is not None and (rule.is_fixed or rule.is_manifold or rule.ridge > 0) for rule in rules)
            signs = [mode for mode, rule in zip(modes, rules, strict=True) if rule is not None and rule.is_cone]
            if len(modes) > 2 or is_held or _keep_apart(factors, signs, r, s):
                continue
            found.append(([s, r], modes or list(range(len(factors)))))
    return found


def _keep_apart(factors: Sequence[np.ndarray], signs: Sequence[int], r: int, s: int) -> bool:
    """Return whether zeros of one-sided factors forbid that components r and s exchange parts of each other.

    A part of the other column may join in one mode if one is taken away in the other mode, which leaves the sign
    constraint where that column has zeros.
    """
    if len(signs) < 2:
        return False

    def blocks(mode: int, one: int, other: int) -> bool:
        own, rest = factors[mode][:, one], squared_magnitudes(factors[mode][:, other])
        return bool(np.sum(rest[own <= 0]) > 0)

    return all(blocks(mode, one, other) for mode in signs for one, other in ((r, s), (s, r)))
