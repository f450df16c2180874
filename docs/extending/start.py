r"""A start of your own, in one file: a coarse fit for tensors that are smooth along some modes.

**The problem.** Least squares ends at a local minimum, and which one depends on where it starts. The default method
starts from a joint diagonalization, which needs a complete tensor or one that can be filled. If most entries are
missing, only starts that add one component at a time remain, and their minimum need not be the lowest.

**The idea.** Along time, wavelength or depth, factors are smooth. The average of w neighbouring entries along such a
mode is then nearly the entry of a shorter tensor with the same components. The shorter tensor has fewer unknowns, and
fewer of its entries are missing: an average exists if one of its w entries was observed. It is factorized first, and
its factors are interpolated to the full length. They are the start.

**Step 1: one method.** A subclass of `codiag.extending.Start` is a frozen dataclass that has options and no data. It
implements ``generate(problem, rng, log)``, which yields components as `codiag.tensors.FactoredTensor`: of the rank of
the problem, in the shape of its tensor and in its array library, the most promising first. They need neither be at a
minimum nor satisfy the constraints of the problem. If the start does not apply, it yields nothing, and the search
continues with the next one. All random numbers come from ``rng``. ``log.add(name, n_sweeps, objective)`` adds a line to
``fit.history``.

**Step 2: use it.** ``codiag.methods.Auto(starts=[CoarseToFine(widths=(1, 1, 6))])`` replaces the default starts. The
search minimizes from the first start, replaces components that the residual shows to be wrong, and takes further
starts if restarts disagree. Any number of starts may follow in the list.

**Step 3: the coarse problem.** Averages are weighted sums: ``tensor.compress`` multiplies every mode by a matrix whose
columns select blocks of neighbouring indices. The weighted sum of the entries is divided by the sum of their weights,
which is also the weight of the average, since its noise variance is inversely proportional to it. A block without an
observed entry has weight zero and is missing in the coarse problem, too.

**Choices to make for a start of your own.** ``uses_core = True`` declares that ``generate`` is given the compressed
core of a complete tensor without constraints. Use it if the start does not depend on the coordinates of the modes, as
joint diagonalization does not; a core has no smooth modes. A start that brings components of its own returns their
factors as the property ``factors``, so that compression keeps their ranges.

**How it is tested.** One line in ``STARTS`` of ``tests/cases.py`` runs every law of starts on it: components have the
right rank, shape, array library and precision and are finite, the same seed gives the same components, the problem is
not changed, and the search from it finds the planted components of a noisy tensor, complete or not.

Run this file, ``python docs/extending/start.py``, for the share of incomplete tensors on which it finds the best
minimum. The size and the share of missing entries were chosen so that the two differ: with fewer entries missing, the
default starts find the best minimum of every tensor, too, and with more, neither always does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device

import codiag
from codiag.extending import Limits, Start, minimize
from codiag.methods import Auto
from codiag.tensors import FactoredTensor, Tensor, as_tensor


@dataclass(frozen=True, kw_only=True, eq=False)
class CoarseToFine(Start):
    """Components of averages over neighbouring indices, interpolated to all indices.

    Parameters
    ----------
    widths : int or sequence of int, one for each mode
        Number of neighbouring indices in a block; 1 for a mode that is not smooth. Blocks are made smaller if a mode
        would get fewer blocks than the problem has components.

    Notes
    -----
    **Assumptions.** Factors that are nearly linear over a block of neighbouring indices, in the modes that are
    averaged.

    **Complexity.** One pass over the tensor and a fit of the shorter tensor by the default method.

    **Guarantees.** Nothing by itself: the search continues from it.

    **Limitations.** Fails if factors oscillate within a block; then the averages lose them. Yields nothing if the
    observed entries are listed (``SparseTensor(..., absent="missing")``).

    Examples
    --------
    >>> import numpy as np
    >>> time = np.linspace(0, 1, 40)
    >>> tensor = np.einsum("i,j,k->ijk", [1, 2], [1, 3, 2], np.sin(3 * time))
    >>> tensor[:, :, 1::2] = np.nan
    >>> fit = codiag.factorize(tensor, 1, method=Auto(starts=[CoarseToFine(widths=(1, 1, 5))]), rng=0)
    >>> [stage.name for stage in fit.history][0], fit.relative_error < 1e-6
    ('fit of averages 2 x 3 x 8', True)
    """

    widths: int | Sequence[int] = 4

    def generate(self, problem: codiag.Problem, rng: np.random.Generator, log: Any) -> Iterator[FactoredTensor]:
        if problem.tensor.is_partial:
            return
        blocks = [_blocks(size, min(width, size // problem.rank)) for size, width in self._sizes_and_widths(problem)]
        coarse = _averages(problem, [_like(_selection(block), problem.tensor.reference) for block in blocks])
        fit = Auto().fit(coarse, rng)
        name = "fit of averages " + " x ".join(str(size) for size in coarse.tensor.shape)
        log.add(name, sum(stage.n_iter for stage in fit.history), fit.history[-1].objective)
        lines = [_like(_interpolation(block), problem.tensor.reference) for block in blocks]
        yield fit.components.changed(lambda factor, mode: lines[mode] @ factor)

    def _sizes_and_widths(self, problem: codiag.Problem) -> list[tuple[int, int]]:
        shape = problem.tensor.shape
        widths = [self.widths] * len(shape) if isinstance(self.widths, int) else list(self.widths)
        if len(widths) != len(shape) or min(widths) < 1:
            raise ValueError(f"widths must be positive, one for each of {len(shape)} modes; got {self.widths}")
        if any(len({widths[mode] for mode in group}) > 1 for group in problem.groups):
            raise ValueError(f"widths must be equal for modes that share a factor; got {self.widths}")
        return list(zip(shape, widths, strict=True))


def _blocks(size: int, width: int) -> np.ndarray:
    """Return the number of the block that each index belongs to; blocks have about this width."""
    n_blocks = size // max(width, 1)
    return np.arange(size) * n_blocks // size


def _selection(block: np.ndarray) -> np.ndarray:
    """Return the matrix of shape (d, n_blocks) that sums over blocks."""
    return np.eye(block[-1] + 1)[block]


def _interpolation(block: np.ndarray) -> np.ndarray:
    """Return the matrix of shape (d, n_blocks) that interpolates linearly between the centers of blocks."""
    indices, selection = np.arange(block.size), _selection(block)
    centers = indices @ selection / selection.sum(axis=0)
    return np.stack([np.interp(indices, centers, unit) for unit in np.eye(centers.size)], axis=1)


def _averages(problem: codiag.Problem, selections: Sequence[Any]) -> codiag.Problem:
    """Return the problem of the weighted averages of the observed entries over blocks."""
    xp = array_namespace(problem.tensor.reference)
    if problem.weights is None:
        means = [selection / xp.sum(selection, axis=0) for selection in selections]
        return codiag.Problem(_in_blocks(problem.tensor, means), problem.rank, symmetric=problem.symmetric)
    weights = xp.astype(problem.weights, problem.tensor.reference.dtype)
    sums = _in_blocks(as_tensor(problem.tensor.to_dense() * weights), selections)
    totals = _in_blocks(as_tensor(weights), selections)
    entries = sums / xp.where(totals > 0, totals, xp.ones_like(totals))
    return codiag.Problem(entries, problem.rank, weights=totals, symmetric=problem.symmetric)


def _in_blocks(tensor: Tensor, selections: Sequence[Any]) -> Any:
    return tensor.compress(*selections).to_dense()


def _like(matrix: np.ndarray, reference: Any) -> Any:
    """Return a matrix in the library, on the device and in the precision of another array."""
    return array_namespace(reference).asarray(matrix, dtype=reference.dtype, device=device(reference))


def draw(seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return a tensor of 8 x 6 x 60 with 88 % of its entries missing, and its factors, smooth in the last mode."""
    rng = np.random.default_rng(seed)
    time = np.linspace(0, 1, 60)[:, None]
    curves = np.cos(np.pi * (time * rng.uniform(1, 3, 3) + rng.uniform(0, 2, 3)))
    factors = [rng.standard_normal((8, 3)), rng.standard_normal((6, 3)), curves]
    tensor = np.einsum("ir,jr,kr->ijk", *factors)
    tensor += 0.05 * tensor.std() * rng.standard_normal(tensor.shape)
    tensor[rng.random(tensor.shape) < 0.88] = np.nan
    return tensor, factors


def main(n_tensors: int = 6) -> dict[str, int]:
    """Count the tensors on which a fit is as low as least squares from the true factors, with and without the start."""
    methods = {"default starts": Auto(), "coarse to fine": Auto(starts=[CoarseToFine(widths=(1, 1, 6))])}
    n_best, errors = dict.fromkeys(methods, 0), {name: [] for name in methods}
    for seed in range(n_tensors):
        tensor, truth = draw(seed)
        problem = codiag.Problem(tensor, 3)
        limit = minimize(problem, FactoredTensor(np.ones(3), truth), Limits(300, 1e-9)).components
        lowest = np.nansum((tensor - limit.to_dense()) ** 2)
        for name, method in methods.items():
            fit = method.fit(problem, np.random.default_rng(0)).components  # factorize warns of the other minima
            n_best[name] += int(np.nansum((tensor - fit.to_dense()) ** 2) <= 1.01 * lowest)
            errors[name].append(codiag.factor_error(fit.factors, truth))
    print(f"starts            best minimum of {n_tensors}   median error of the factors")
    for name, count in n_best.items():
        print(f"{name:18s}{count:18d}{np.median(errors[name]):30.3f}")
    return n_best


if __name__ == "__main__":
    main()
