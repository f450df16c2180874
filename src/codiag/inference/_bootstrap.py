"""Errors of a fit from its samples, drawn again with replacement."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy
from array_api_compat import array_namespace

from codiag._arrays import asarray_like, few_threads, take, to_host
from codiag._checks import RNGLike, as_generator, as_number, as_share, check_n_jobs
from codiag._progress import progress_if
from codiag._text import counted, escape_control, html_table, text_table
from codiag.inference._intervals import ConfidenceIntervals
from codiag.least_squares import (
    Limits,
    NormalEquations,
    RowEquations,
    largest_product,
    minimize,
    settle,
    unit_components,
)
from codiag.problem import Problem, Symmetry, interior
from codiag.result import given_covariances, has_few_entries, unwhitened, whitened
from codiag.tensors import DenseTensor, FactoredTensor

if TYPE_CHECKING:
    from codiag.result import Factorization

REFIT = Limits(max_iter=50, tol=1e-6)
"""Limits for the fit of a resample, which begins at the fit of all samples: far below its error."""

BATCH = 2**22
"""Entries times components of all resamples that are swept together, at most."""

Refit: TypeAlias = tuple[np.ndarray, list[np.ndarray]]
"""The weights and the factors of a fit to a resample."""


def part_of(problem: Problem, rows: Mapping[int, np.ndarray], *, symmetric: Symmetry = False) -> Problem | None:
    """Return a problem on some slices of its tensor; None if no entry is observed there, or all are zero."""
    entries, weights = problem.tensor.to_dense(), problem.weights
    if weights is None and problem.tensor.is_partial:
        weights = asarray_like(problem.observed_mask().astype(np.float64), entries)
    constraints = list(problem.constraints or (None,) * problem.tensor.order)
    for mode, chosen in rows.items():
        entries = take(entries, chosen, mode)
        weights = None if weights is None else take(weights, chosen, mode)
        constraint = constraints[mode]
        constraints[mode] = None if constraint is None else constraint.restrict(chosen)
    xp = array_namespace(entries)
    if not bool(xp.any(entries != 0)) or (weights is not None and not bool(xp.any(weights > 0))):
        return None
    return problem.with_part(DenseTensor.of(entries, symmetric=False), weights, tuple(constraints), symmetric)


@dataclass(frozen=True, eq=False, repr=False)
class Bootstrap:
    """Fits of resampled data, each from the fit of all samples; print it to read the standard errors.

    They estimate how far the factors of the other modes, and the weights, would differ if other samples had been drawn,
    whatever the noise within a sample is like.

    Attributes
    ----------
    fit : Factorization
        The fit of all samples.
    mode : int
        The mode of the samples.
    weights : array of shape (n, rank)
        The weights of every refit.
    factors : tuple of arrays of shape (n, d_m, rank), or None
        The factors of every refit, mode by mode, with the signs of the fit; None for the mode of the samples.

    See Also
    --------
    codiag.Factorization.bootstrap : Draws samples with replacement.

    Examples
    --------
    >>> import codiag
    >>> tensor = codiag.synthetic.noisy_tensor((20, 8, 7), 2, noise=0.01, rng=0).tensor
    >>> found = codiag.factorize(tensor, 2, rng=0).bootstrap(n=10, rng=0)
    >>> found.weights.shape, [None if part is None else part.shape for part in found.factors]
    ((10, 2), [None, (10, 8, 2), (10, 7, 2)])
    """

    fit: Factorization
    mode: int
    weights: np.ndarray
    factors: tuple[np.ndarray | None, ...]

    def _errors(self, refits: np.ndarray) -> np.ndarray:
        """Return the standard deviations of the refits."""
        n_samples = self.fit.shape[self.mode]
        return np.asarray(np.std(refits, axis=0, ddof=1) * math.sqrt(n_samples / (n_samples - 1)))

    @property
    def entry_standard_errors(self) -> tuple[np.ndarray, ...]:
        """Standard errors of the entries of the factors; NaN for the mode of the samples.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((20, 8, 7), 2, noise=0.01, rng=0).tensor
        >>> [part.shape for part in codiag.factorize(tensor, 2, rng=0).bootstrap(n=10, rng=0).entry_standard_errors]
        [(20, 2), (8, 2), (7, 2)]
        """
        unknown = np.full((self.fit.shape[self.mode], self.fit.rank), np.nan)
        return tuple(unknown if refits is None else self._errors(refits) for refits in self.factors)

    @property
    def weight_standard_errors(self) -> np.ndarray:
        """Standard errors of the weights.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((20, 8, 7), 2, noise=0.01, rng=0).tensor
        >>> codiag.factorize(tensor, 2, rng=0).bootstrap(n=10, rng=0).weight_standard_errors.shape
        (2,)
        """
        return self._errors(self.weights)

    def conf_int(self, level: float = 0.95) -> ConfidenceIntervals:
        """Return confidence intervals of the factors of the other modes, and of the weights.

        Parameters
        ----------
        level : float
            Probability with which an interval contains the true value.

        Returns
        -------
        Intervals
            As of `Factorization.conf_int`, NaN for the mode of the samples: Student's, with as many degrees of freedom
            as there are samples but one.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((20, 8, 7), 2, noise=0.01, rng=0).tensor
        >>> low, high = codiag.factorize(tensor, 2, rng=0).bootstrap(n=20, rng=0).conf_int().factors[1]
        >>> bool((low < high).all())
        True
        """
        as_share("level", level)
        times = float(scipy.special.stdtrit(self.fit.shape[self.mode] - 1, (1 + level) / 2))
        rules = self.fit.problem.constraints or (None,) * len(self.factors)
        found = []
        for factor, errors, rule in zip(self.fit.factors, self.entry_standard_errors, rules, strict=True):
            low, high = to_host(factor) - times * errors, to_host(factor) + times * errors
            found.append((np.maximum(low, 0.0) if rule is not None and rule.is_cone else low, high))
        weights, wide = to_host(self.fit.weights), times * self.weight_standard_errors
        return ConfidenceIntervals(tuple(found), (weights - wide, weights + wide))

    def __repr__(self) -> str:
        return f"{self._title()}\n{text_table(self._columns())}"

    def _repr_html_(self) -> str:
        return html_table(self._title(), self._columns())

    def _title(self) -> str:
        """Return what was resampled, and what the table shows."""
        names = self._mode_names()
        n_samples, samples = self.fit.shape[self.mode], f"samples of {names[self.mode]}"
        kind = f"Bootstrap: {counted(self.weights.shape[0], 'refit')} of {n_samples} {samples}, drawn with replacement."
        return f"{kind} Standard errors of the weights, and of the unit factors of the other modes:"

    def _mode_names(self) -> list[str]:
        labels = self.fit.problem.labels
        return [
            f"mode {mode}" if labels is None else escape_control(labels.names[mode])
            for mode in range(len(self.factors))
        ]

    def _columns(self) -> dict[str, list[str]]:
        """Return the weights and standard errors of every component, in words."""
        columns = {
            "component": [str(component) for component in range(self.fit.rank)],
            "weight": [f"{weight:.4g}" for weight in to_host(self.fit.weights)],
            "+-": [f"{error:.2g}" for error in self.weight_standard_errors],
        }
        for mode, (name, errors) in enumerate(zip(self._mode_names(), self.entry_standard_errors, strict=True)):
            if mode != self.mode:
                columns[name] = [f"{error:.2g}" for error in np.sqrt(np.nansum(errors**2, axis=0))]
        return columns

    def plot(self, **options: Any) -> Any:
        """Draw the components with bands of these errors.

        Parameters
        ----------
        **options : keywords
            As of `Factorization.plot`.

        Returns
        -------
        matplotlib.figure.Figure
            The figure.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((20, 8, 7), 2, noise=0.01, rng=0).tensor
        >>> len(codiag.factorize(tensor, 2, rng=0).bootstrap(n=10, rng=0).plot().axes)
        6
        """
        drawn = replace(self.fit)
        vars(drawn)["entry_standard_errors"] = tuple(
            np.where(np.isnan(own), given, own)
            for own, given in zip(self.entry_standard_errors, self.fit.entry_standard_errors, strict=True)
        )
        return drawn.plot(**options)


def bootstrap(
    fit: Factorization, mode: int, n: int, rng: RNGLike, n_jobs: int | None, *, progress: bool | None = None
) -> Bootstrap:
    """Refit samples along a mode that are drawn with replacement, under the loss of the fit."""
    from sklearn.utils.parallel import Parallel, delayed

    as_number("n", n, integer=True)
    check_n_jobs(n_jobs)
    problem, mode = _problem_of(fit, mode), mode % len(fit.shape)
    rng, size = as_generator(rng, apart=True), fit.shape[mode]
    draws = [np.sort(rng.integers(size, size=size)) for _ in range(n)]
    with progress_if(progress, "refitting"), few_threads(largest_product(problem)):
        known = _refits_together(problem, fit._components, mode, draws)
        rest = [place for place, refit in enumerate(known) if refit is None]
        found = Parallel(n_jobs=n_jobs)(delayed(_refit)(problem, fit._components, mode, draws[place]) for place in rest)
    refits = dict(enumerate(known)) | dict(zip(rest, found, strict=True))
    found = [refit for refit in refits.values() if refit is not None]
    if len(found) < 2:
        raise ValueError("mode must leave observed entries in resamples; almost none of them has any")
    factors = [
        None if other == mode else np.stack([refit[1][other] for refit in found]) for other in range(len(fit.shape))
    ]
    return Bootstrap(fit, mode, np.stack([refit[0] for refit in found]), tuple(factors))


def _problem_of(fit: Factorization, mode: Any) -> Problem:
    """Return the problem whose samples along a mode are drawn, or say why none can be; estimated weights are kept."""
    order = len(fit.shape)
    if isinstance(mode, bool) or not isinstance(mode, int | np.integer) or not -order <= mode < order:
        raise ValueError(f"mode must be an integer from 0 to {order - 1}, or from the end if negative; got {mode!r}")
    if not fit.problem.has_data or not has_few_entries(fit.problem):
        raise ValueError(
            "fit must have its tensor to be refitted, as codiag.factorize returns it; those of iterators, of tensors "
            "that are not in memory and of more than two million entries do not"
        )
    if any(int(mode) % order in group and len(group) > 1 for group in fit.problem.groups):
        raise ValueError(f"mode must be one of samples, with a factor of its own; mode {mode} shares its factor")
    if fit.shape[mode] < 3:
        raise ValueError(f"mode must have three samples or more to be resampled; mode {mode} has {fit.shape[mode]}")
    covariances = given_covariances(fit)
    if covariances is not None and np.count_nonzero(covariances[mode]) > fit.shape[mode]:
        raise ValueError(f"mode must be one of independent samples; the covariance of mode {mode} correlates them")
    weights = fit._entry_weights
    problem = fit.problem if weights is None else fit.problem.with_weights(fit.problem.tensor, weights)
    return problem.in_double_precision()


def _refits_together(
    problem: Problem, start: FactoredTensor, mode: int, draws: Sequence[np.ndarray]
) -> list[Refit | None]:
    """Return the refits that sweeps of all of them together have found; None for others."""
    refits: list[Refit | None] = [None] * len(draws)
    if not _can_be_swept(problem):
        return refits
    counts = np.stack([np.bincount(rows, minlength=problem.tensor.shape[mode]) for rows in draws]).astype(np.float64)
    begun = unit_components(start)
    n_at_once = max(BATCH // (math.prod(problem.tensor.shape) * begun.rank), 1)
    for begin in range(0, len(draws), n_at_once):
        some = counts[begin : begin + n_at_once]
        for place, refit in enumerate(_swept(problem, begun, mode, some), begin):
            refits[place] = refit
    return refits


def _can_be_swept(problem: Problem) -> bool:
    """Return whether sweeps minimize the objective: least squares of an array, each mode free or of one sign."""
    rules = [rule for rule in problem.constraints or () if rule is not None]
    is_plain = problem.loss is None and not problem.shared and not problem.symmetric and problem.tensor.holds_entries
    return is_plain and all(rule.is_cone and not rule.ridge for rule in rules)


def _swept(problem: Problem, start: FactoredTensor, mode: int, counts: np.ndarray) -> list[Refit | None]:
    """Return refits of samples that count a number of times each, (n, d_m), from sweeps that begin at a fit."""
    entries, xp = problem.tensor.to_dense(), array_namespace(problem.tensor.reference)
    times, one_sided = asarray_like(counts, entries), [rule is not None for rule in problem.constraints or ()]
    equations: NormalEquations | RowEquations = NormalEquations(entries[None, ...], one_sided, times, mode)
    if problem.entries is not None:
        weights = problem.observed_mask() if problem.weights is None else to_host(problem.weights)
        shares = asarray_like(weights.astype(np.float64), entries)
        equations = RowEquations(entries, shares, one_sided, times, mode)
    sizes = xp.abs(start.weights) ** (1 / start.order)
    signs = array_namespace(sizes).where(start.weights < 0, -1.0 + 0 * sizes, 1.0 + 0 * sizes)
    factors = [factor * sizes * (signs if other == 0 else 1) for other, factor in enumerate(start.factors)]
    stacked = [xp.stack([factor] * len(counts)) for factor in factors]
    settled = settle(equations, stacked, max_sweeps=REFIT.max_iter, tol=REFIT.tol)
    ends = [to_host(factor) for factor in settled.factors]
    ends[mode] = ends[mode] * np.sqrt(counts)[:, :, None]
    weights, aligned = _aligned(ends, start)
    is_there = settled.converged & np.all(np.isfinite(weights), axis=1)
    return [
        (weights[place], [factor[place] for factor in aligned]) if is_there[place] else None
        for place in range(len(counts))
    ]


def _refit(problem: Problem, start: FactoredTensor, mode: int, rows: np.ndarray) -> Refit | None:
    """Return weights and factors of the fit to some rows, with the signs or phases of the fit to all of them."""
    part = part_of(problem, {mode: rows}, symmetric=problem.shared)
    if part is None:
        return None
    kept = [take(factor, rows, 0) if other == mode else factor for other, factor in enumerate(start.factors)]
    begun = FactoredTensor(start.weights, kept, symmetric=False)
    found = _minimum(part, begun, _covariances_of(problem, mode, rows))
    return _aligned([to_host(found.weights) * to_host(found.factors[0]), *map(to_host, found.factors[1:])], begun)


def _aligned(ends: Sequence[np.ndarray], start: FactoredTensor) -> Refit:
    """Return the weights and unit factors (..., d_m, k) of components, with the signs or phases of a start."""
    weights, factors = np.sign(to_host(start.weights)), []
    for end, before in zip(ends, map(to_host, start.factors), strict=True):
        norms = np.linalg.norm(end, axis=-2, keepdims=True)
        products = np.sum(np.conj(end) * before, axis=-2, keepdims=True)
        sizes = np.abs(products)
        phases = np.where(sizes > 0, products / np.where(sizes > 0, sizes, 1.0), 1.0)
        weights = weights * norms[..., 0, :]
        factors.append(end / np.where(norms > 0, norms, 1.0) * phases)
    return weights, factors


def _covariances_of(problem: Problem, mode: int, rows: np.ndarray) -> list[np.ndarray] | None:
    """Return the covariances of noise for some rows of a mode, which are independent; None if none were given."""
    covariances = None if problem.loss is None else problem.loss.covariances(problem.tensor.shape)
    if covariances is not None:
        covariances[mode] = np.diag(np.diagonal(covariances[mode])[rows])
    return covariances


def _minimum(part: Problem, start: FactoredTensor, covariances: Sequence[np.ndarray] | None) -> FactoredTensor:
    """Return the minimum near a start, under the loss and the covariances of a problem."""
    if covariances is not None:
        white, begun = whitened(part, start, covariances)
        return unwhitened(minimize(white, begun, REFIT).components, covariances, part.tensor.reference)
    begun = start if part.loss is None else interior(start, part.constraints)
    return minimize(part, begun, REFIT).components
