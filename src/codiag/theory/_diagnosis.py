"""Diagnosis of a fit: which components are well determined, and what to try if some are not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import adjoint, double, is_complex, squared_magnitudes, to_host
from codiag._text import html_paragraphs, visible
from codiag.least_squares import (
    CANCELLING,
    CONCENTRATION,
    TINY,
    LeastSquares,
    distinct_terms,
    largest_term_of_unit_noise,
)
from codiag.problem import groups_of
from codiag.result import cancelling_pairs, congruences, whole_norm
from codiag.search import DOUBTFUL
from codiag.tensors import DenseTensor
from codiag.theory._identifiability import factor_condition, kruskal_condition

if TYPE_CHECKING:
    from codiag.result import Factorization

SURE, ROUGH = 0.05, 0.3
"""Largest standard errors of unit factors that count as well, and as roughly, determined. Chosen by experience."""

ROUNDING = 1e-12
"""Rounding errors in the energy that a component explains, as noise relative to the norm of the tensor."""


MOSTLY = 0.5
"""Share of the energy of a component in one entry, from which it may be the error of that entry."""

REPLICATES = 0.85
"""Cosine from which two factors count as similar: Lorenzo-Seva and ten Berge, Methodology 2, 2006."""

LEAST_ROWS = 8
"""Rows of a mode whose halves are compared, if there is one with as many."""

N_DRAWS = 4
"""Draws of correlated noise that show how alike halves of it are."""

MOST_LEFT_OUT = 10
"""Largest number of components whose joint removal is tried."""


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Which components of a fit are well determined, which are not, and why; printed, it says so in words.

    Attributes
    ----------
    standard_errors : array of shape (rank,)
        The largest over modes.
    verdicts : tuple of str
        For each component ``"well"``, ``"roughly"`` or ``"not"`` determined, or ``"unknown"`` where its standard errors
        were not computed.
    reasons : tuple of str
        What stands in the way of those that are not well determined; empty for the rest.
    unique : bool
        Whether Kruskal's condition is satisfied.
    conditions : tuple of float
        Condition numbers of the factors, mode by mode.
    degenerate : tuple of (int, int, float)
        Pairs of components that nearly cancel each other, with Tucker's congruence, the product of their cosines.
    superfluous : tuple of int
        Components whose removal would not make the fit measurably worse.
    residual_excess : float or None
        As in `Factorization`: more than 1 where the residual is not white noise.
    replicated : float
        Likeness of the strongest terms of the residual in two halves of the data: 1 if it contains a component that was
        missed; NaN if the residual is noise, or was not examined.
    noise_model : str
        The noise for which standard errors are valid, in words.
    advice : tuple of str
        What to try, a sentence each.
    undetermined : tuple of tuples of int
        Mode by mode, rows of the factors for which too few entries were observed.

    See Also
    --------
    diagnose : Returns one.
    codiag.Factorization.diagnose : The same as a method.

    Examples
    --------
    >>> import codiag
    >>> from codiag.synthetic import noisy_tensor
    >>> fit = codiag.factorize(noisy_tensor((6, 7, 8), 2, noise=0.01, seed=0).tensor, 2, seed=0)
    >>> print(fit.diagnose())
    2 of 2 components are well determined.
    """

    standard_errors: np.ndarray
    verdicts: tuple[str, ...]
    reasons: tuple[str, ...]
    unique: bool
    conditions: tuple[float, ...]
    degenerate: tuple[tuple[int, int, float], ...]
    superfluous: tuple[int, ...]
    residual_excess: float | None
    advice: tuple[str, ...]
    undetermined: tuple[tuple[int, ...], ...] = ()
    replicated: float = math.nan
    noise_model: str = ""

    def __str__(self) -> str:
        n_well, n_all = self.verdicts.count("well"), len(self.verdicts)
        if self.verdicts.count("unknown") == n_all:
            lines = [f"Whether components are well determined was not computed: {self.reasons[0]}."]
        else:
            lines = [f"{n_well} of {n_all} component{'s are' if n_all > 1 else ' is'} well determined."]
        for i, (verdict, reason) in enumerate(zip(self.verdicts, self.reasons, strict=True)):
            if verdict == "unknown" and self.verdicts.count("unknown") < n_all:
                lines.append(f"Whether component {i} is well determined was not computed: {reason}.")
            elif verdict in ("roughly", "not"):
                error = f" (standard error {self.standard_errors[i]:.2g})"
                lines.append(f"Component {i} is {verdict} determined{error}: {reason}.")
        if not self.unique:
            lines.append("Kruskal's condition fails: other components may fit as well, whatever the noise.")
        return "\n".join([*lines, *self.advice])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_paragraphs(str(self))


def diagnose(fit: Factorization) -> Diagnosis:
    """Return which components of a fit are well determined, which are not, and why.

    Three things are asked: whether components nearly cancel each other, how far noise moves the factors, and whether
    the residual contains a further component. Noise need not be white: standard errors are those for the noise that the
    residual shows. A term of the residual is a component that was missed if both halves of the data have it.

    Parameters
    ----------
    fit : Factorization
        The fit to judge.

    Returns
    -------
    Diagnosis
        The verdict on every component, with reasons.

    See Also
    --------
    codiag.Factorization.diagnose : The same as a method.
    codiag.choose_rank : How many components to ask for.

    Examples
    --------
    >>> import codiag
    >>> from codiag.synthetic import noisy_tensor
    >>> from codiag.theory import diagnose
    >>> fit = codiag.factorize(noisy_tensor((6, 7, 8), 2, noise=0.01, seed=0).tensor, 2, seed=0)
    >>> diagnose(fit).verdicts
    ('well', 'well')
    """
    if not (hasattr(fit, "standard_errors") and hasattr(fit, "factors")):
        raise TypeError(f"fit must be a Factorization, what codiag.factorize returns; got {type(fit).__name__}")
    factors = [double(to_host(factor)) for factor in fit.tensor.factors]
    weights = double(to_host(fit.weights))
    cosines = congruences(fit)
    errors = _errors(fit)
    conditions = tuple(factor_condition(factor) for factor in factors)
    degenerate = cancelling_pairs(np.abs(weights), cosines)
    superfluous, outliers = _superfluous(fit), outliers_of(fit)
    stands_out = fit.sensitivity.worth > DOUBTFUL**2 * largest_noise_term(fit) ** 2  # no start can have missed these
    verdicts, reasons = [], []
    for component, error in enumerate(errors):
        partner = next((i + j - component for i, j, _ in degenerate if component in (i, j)), None)
        if partner is not None:
            verdict, reason = "not", f"it and component {partner} nearly cancel each other"
        elif component in outliers:
            verdict, reason = "not", f"it is little more than one entry, at {outliers[component]}, as errors are"
        elif component in superfluous:
            verdict, reason = "not", "removing it would not make the fit measurably worse"
        else:
            verdict = "unknown" if math.isnan(error) else "not"
            verdict = "well" if error <= SURE else "roughly" if error <= ROUGH else verdict
            reason = "" if verdict == "well" else _reason(fit, component, error, np.abs(weights), cosines, conditions)
            if verdict == "well" and in_doubt(fit) and not stands_out[component]:
                verdict, reason = "roughly", "standard errors are those of one of several minima that starts have found"
        verdicts.append(verdict)
        reasons.append(reason)
    likeness = fit.residual_replication
    return Diagnosis(
        errors,
        tuple(verdicts),
        tuple(reasons),
        kruskal_condition(factors),
        conditions,
        degenerate,
        superfluous,
        fit.residual_excess,
        tuple(_advice(fit, np.abs(weights), degenerate, tuple(sorted({*superfluous, *outliers})), likeness)),
        fit.sensitivity.undetermined,
        likeness,
        fit.noise_model,
    )


def replication_of(fit: Factorization) -> float:
    """Return how alike the strongest terms of the residual are in two halves of the data.

    The halves are samples of a mode along which noise is not correlated, if there is one. Correlated noise is alike by
    chance, which draws of it show and which does not count. NaN if the residual passes for white noise, or was not
    examined.
    """
    problem = fit.data
    if problem is None or problem.tensor.shape != fit.shape or not (fit.residual_excess or 0.0) > 1:
        return math.nan
    residual = double(to_host(LeastSquares(problem).residual(fit.tensor).to_dense()))
    is_correlated = [lags.size > 0 for lags in _correlations(fit)]
    mode = min(range(residual.ndim), key=lambda mode: (residual.shape[mode] < LEAST_ROWS, is_correlated[mode], mode))
    n_rows = residual.shape[mode]
    if n_rows < 2:
        return math.nan
    order = np.arange(n_rows) if is_correlated[mode] else np.random.default_rng(0).permutation(n_rows)
    rows = np.array_split(order, 2)
    found, scatter = _likeness(residual, mode, rows), fit.scatter
    if scatter is None or not scatter.is_correlated or not scatter.explains_residual or not found >= REPLICATES:
        return found
    model, rng = to_host(fit.tensor.to_dense()), np.random.default_rng(0)
    drawn = [_likeness(scatter.draw(model, rng) * (residual != 0), mode, rows) for _ in range(N_DRAWS)]
    chance = min(float(np.nanmean(drawn)), REPLICATES)
    return (found - chance) / (1 - chance)


def _likeness(residual: np.ndarray, mode: int, rows: Sequence[np.ndarray]) -> float:
    """Return how much of the strongest term of each half is in the two strongest directions of the other: a cosine."""
    tensors = [DenseTensor.of(np.take(residual, half, axis=mode), symmetric=False) for half in rows]
    if not all(tensor.squared_norm() > 0 for tensor in tensors):
        return math.nan
    others = [other for other in range(residual.ndim) if other != mode]
    cosines = []
    for one, two in (tensors, tensors[::-1]):
        term = distinct_terms(one, 1)[0]  # of several that are as strong, a mixture
        for other in others:
            span = two.leading_eigenpairs(other, min(2, two.shape[other]))[1]
            cosines.append(float(np.linalg.norm(adjoint(span) @ term.factors[other])))
    return math.prod(cosines) ** (1 / len(cosines))


def _correlations(fit: Factorization) -> tuple[np.ndarray, ...]:
    return (np.zeros(0),) * len(fit.shape) if fit.scatter is None else fit.scatter.correlations


def in_doubt(fit: Factorization) -> bool:
    """Return whether starts ended at several minima, and too few of them at the lowest."""
    return any(stage.in_doubt for stage in fit.stages)


def _errors(fit: Factorization) -> np.ndarray:
    """Return the largest standard errors over modes: infinite where noise is not known, NaN where not computed."""
    errors = np.asarray(fit.standard_errors)
    infinite = np.any(np.isinf(errors), axis=0) | math.isnan(fit.noise)
    return np.where(infinite, np.inf, np.max(errors, axis=0))


def largest_noise_term(fit: Factorization) -> float:
    """Return the weight that the largest rank-one term of the noise of a fit exceeds in one of a thousand cases.

    NaN where the noise is not known.
    """
    noise = max(fit.noise, ROUNDING * fit.norm) if math.isfinite(fit.noise) else math.nan
    groups = groups_of(bool(fit.symmetric), len(fit.shape)) if fit.problem is None else fit.problem.groups
    return noise * max(_largest_term(fit, groups), largest_term_of_coloured_noise(fit))


def _largest_term(fit: Factorization, groups: Sequence[tuple[int, ...]]) -> float:
    """Return the same for white noise whose entries have unit mean squared magnitude, real or complex."""
    n_numbers = 2 if is_complex(fit.factors[0]) else 1
    return largest_term_of_unit_noise(fit.shape, groups, n_numbers) / math.sqrt(n_numbers)


def largest_term_of_coloured_noise(fit: Factorization) -> float:
    r"""Return the same for the noise that the residual shows, of unit variance in the mean; zero if that is white.

    It is zero, too, if the residual is more than noise of that kind, or contains a component that was missed.

    If :math:`C_m` are the covariances of the modes and :math:`\lambda_m` their largest eigenvalues, the mean is at most
    :math:`\sum_m (\mathrm{tr}\, C_m \prod_{n \ne m} \lambda_n)^{1/2}` (Chevet), and the deviation at most
    :math:`(\prod_m \lambda_m)^{1/2}`.
    """
    scatter = fit.scatter
    if scatter is None or scatter.is_white or not scatter.explains_residual or fit.residual_replication >= REPLICATES:
        return 0.0
    covariances = scatter.covariances(to_host(fit.tensor.to_dense()))
    largest = np.array([np.linalg.eigvalsh(covariance)[-1] for covariance in covariances])
    traces = np.array([np.trace(covariance) for covariance in covariances])
    return float((np.sum(np.sqrt(traces / largest)) + CONCENTRATION) * np.sqrt(np.prod(largest)))


def _superfluous(fit: Factorization) -> tuple[int, ...]:
    """Return the components that are worth no more than the largest rank-one term of noise would be.

    Under a loss, entries have variances that differ by orders of magnitude, and none of them is typical. There the
    square of a weight over its standard error, which is a lower bound of the worth in variances, is compared, too.
    """
    if fit.rank == 1 or not math.isfinite(fit.noise):
        return ()
    is_superfluous = fit.sensitivity.worth <= largest_noise_term(fit) ** 2
    if fit.goodness is not None:
        groups = groups_of(bool(fit.symmetric), len(fit.shape)) if fit.problem is None else fit.problem.groups
        ratios = np.abs(to_host(fit.weights)) / np.maximum(fit.weight_standard_errors, TINY)
        is_superfluous &= ~(ratios > _largest_term(fit, groups))
    return tuple(int(i) for i in np.flatnonzero(is_superfluous))


def outliers_of(fit: Factorization) -> dict[int, tuple[int, ...]]:
    """Return the components that are the error of one entry, with the index of that entry.

    Such a component has most of its energy there, or no more than noise elsewhere, and is no larger than errors of
    other entries are.
    """
    if fit.data is None or fit.rank == 1 or fit.data.tensor.shape != fit.shape or not fit.noise > 0:
        return {}
    factors, weights = [to_host(factor) for factor in fit.tensor.factors], np.abs(to_host(fit.weights))
    shares = np.prod([np.max(squared_magnitudes(factor), axis=0) for factor in factors], axis=0)
    noise_term = fit.noise * _largest_term(fit, fit.data.groups)
    is_single = (shares > MOSTLY) | (np.sqrt(np.maximum(1 - shares, 0.0)) * weights < noise_term)
    if not is_single.any():
        return {}
    largest = float(np.max(np.abs(to_host(LeastSquares(fit.data).residual(fit.tensor).to_dense()))))
    entries = np.sqrt(shares) * weights
    found = np.flatnonzero(is_single & (entries < DOUBTFUL * largest) & (entries > DOUBTFUL * fit.noise))
    return {int(i): tuple(int(np.argmax(np.abs(factor[:, i]))) for factor in factors) for i in found}


def _dispensable(fit: Factorization, superfluous: tuple[int, ...]) -> int:
    """Return how many of the superfluous components could be left out together, up to a few.

    They leave one after another, the least first, as long as the next is still worth no more than noise without those
    that have left: of two that share what was one component, one stays.
    """
    if len(superfluous) < 2:
        return len(superfluous)
    components, worth, limit = list(range(fit.rank)), fit.sensitivity.worth, largest_noise_term(fit) ** 2
    for n_left_out in range(min(len(superfluous), MOST_LEFT_OUT)):
        candidates = [position for position, component in enumerate(components) if component in superfluous]
        least = min(candidates, key=lambda position: worth[position])
        if len(components) == 1 or not worth[least] <= limit:
            return n_left_out
        del components[least]
        worth = replace(
            fit, weights=fit.weights[components], factors=tuple(factor[:, components] for factor in fit.factors)
        ).sensitivity.worth
    return min(len(superfluous), MOST_LEFT_OUT)


def _reason(
    fit: Factorization, i: int, error: float, weights: np.ndarray, cosines: np.ndarray, conditions: tuple[float, ...]
) -> str:
    """Return why component i is not well determined."""
    likeness = np.abs(cosines[i])
    likeness[i] = 0
    twin = int(np.argmax(likeness))
    if not math.isfinite(fit.noise):
        return "there are no more entries than parameters, so the noise cannot be told"
    if math.isnan(error):
        return "there are too many unknowns"
    if any(fit.sensitivity.undetermined) and math.isinf(error):
        return f"too few entries were observed of {_named_rows(fit, fit.sensitivity.undetermined)}"
    if fit.noise * math.sqrt(max(fit.shape)) / max(weights[i], 1e-300) > error / 2:
        return f"its weight {weights[i]:.3g} is small beside the noise {fit.noise:.3g} in the entries"
    if likeness[twin] > 0.5:
        return f"it is like component {twin}, the product of cosines is {cosines[i, twin]:.2f}"
    return f"the factors are nearly dependent, with condition numbers up to {max(conditions):.3g}"


def _advice(
    fit: Factorization,
    weights: np.ndarray,
    degenerate: Sequence[tuple[int, int, float]],
    superfluous: tuple[int, ...],
    likeness: float,
) -> list[str]:
    """Return sentences on what is wrong with a fit, and what to try."""
    sentences, norm = [], whole_norm(fit)
    n_fewer = max(1, _dispensable(fit, superfluous))
    lower = f"try rank {fit.rank - n_fewer}" if fit.rank > 1 else "the tensor may have no component"
    if degenerate:
        i, j, congruence = min(degenerate, key=lambda pair: pair[2])
        sentences.append(
            f"Components {i} and {j} nearly cancel each other: the product of their cosines is {congruence:.3f}, their "
            f"weights are {weights[i]:.3g} and {weights[j]:.3g} for a tensor of norm {norm:.3g}. There may be no "
            f"best fit with rank {fit.rank}; {lower}."
        )
    elif weights.max() > CANCELLING * norm:
        sentences.append(
            f"Components cancel each other: the largest weight is {weights.max():.3g} for a tensor of norm "
            f"{norm:.3g}. There may be no best fit with rank {fit.rank}; {lower}."
        )
    paired = {component for i, j, _ in degenerate for component in (i, j)}
    superfluous = tuple(i for i in superfluous if i not in paired)  # the sentence on pairs is more precise
    if superfluous:
        which = f"Component {superfluous[0]} could be left out"
        if len(superfluous) > 1:
            lower += ", or see codiag.choose_rank"
            together = ", all together" if n_fewer >= len(superfluous) else f", {n_fewer} of them together"
            together = ", though not together" if n_fewer == 1 else together
            which = f"Each of components {_listed(superfluous)} could be left out{together}"
        sentences.append(f"{which}: rank {fit.rank} may be too high; {lower}.")
    if fit.residual_excess is not None and fit.residual_excess > 1:
        sentences.append(_about_residual(fit, likeness, is_sound=not degenerate and not superfluous))
    elif fit.goodness is None and fit.scatter is not None and not fit.scatter.is_white:
        sentences.append(f"The noise is not white: {fit.noise_model}. Standard errors allow for that.")
    if _looks_like_counts(fit):
        sentences.append("Entries are counts that scatter more where they are larger: loss='poisson' may be better.")
    if fit.goodness is not None and not fit.goodness.has_right_variance:
        sentences.append(_about_dispersion(fit))
    unobserved = [np.flatnonzero(np.isnan(to_host(factor)).any(axis=1)).tolist() for factor in fit.factors]
    if any(unobserved):
        sentences.append(f"Nothing was observed of {_named_rows(fit, unobserved)}: NaN, and the rest as without it.")
    if any(fit.sensitivity.undetermined):
        sentences.append(
            f"Too few entries were observed of {_named_rows(fit, fit.sensitivity.undetermined)}: their rows could be "
            "anything, and the factors with them. Leave these slices out, or keep the rows small by constraints=Ridge("
            "strength), the variance of the noise over that of the factors' entries."
        )
    if in_doubt(fit):
        is_over = any("out of budget" in stage.name for stage in fit.stages)
        option = "effort=..." if is_over else "max_starts=..."
        sentences.append(
            "Starts ended at several minima, and too few at the lowest of them: there may be a lower one. Another "
            f"seed or method=Auto({option}) searches on; {lower}, which may have fewer."
        )
    if not fit.converged:
        sentences.append("The fit did not converge: another seed or a lower rank may tell more.")
    return sentences


def _looks_like_counts(fit: Factorization) -> bool:
    """Return whether entries fitted by least squares are counts, with variances that grow with the fit."""
    if fit.goodness is not None or fit.data is None or fit.scatter is None or fit.scatter.deviations is None:
        return False
    entries = to_host(fit.data.tensor.to_dense())
    are_counts = bool(np.all((entries >= 0) & (entries == np.rint(entries))))
    return are_counts and float(fit.scatter.deviations[-1]) > float(fit.scatter.deviations[0])


def _about_dispersion(fit: Factorization) -> str:
    """Return a sentence on a variance that is not that of the loss."""
    said = (
        f"Entries scatter with {fit.dispersion:.2g} times the variance of {fit.loss!r}; standard errors allow for that."
    )
    if fit.dispersion > 1 and fit.goodness is not None and fit.goodness.loss.scales_with_mean:
        said += " If it grows faster than the mean, loss=NegativeBinomial() gives more accurate factors."
    return said


def _about_residual(fit: Factorization, likeness: float, *, is_sound: bool) -> str:
    """Return a sentence on a residual that is not white noise."""
    found = f"The residual is not white noise: its strongest direction has {fit.residual_excess:.2g} times what "
    found += "white noise would leave in any"
    if math.isnan(likeness):
        return f"{found}. Components may be missing, or the noise is unequal."
    if likeness >= REPLICATES:
        more = f"; try rank {fit.rank + 1}" if is_sound else ""
        agree = f"and two halves of the data agree on it (congruence {likeness:.2f})"
        return f"{found}, {agree}: a component is missing{more}."
    if fit.scatter is None or fit.scatter.is_white or not fit.scatter.explains_residual:
        return f"{found}, but two halves of the data do not agree on it: no further component would replicate."
    return (
        f"The noise is not white: {fit.noise_model}. Standard errors allow for that. Two halves of the data do not "
        "agree on what is left: no further component would replicate."
    )


def _listed(components: tuple[int, ...]) -> str:
    return ", ".join(str(i) for i in components[:-1]) + f" and {components[-1]}"


def _named_rows(fit: Factorization, rows_of_modes: Sequence[Sequence[int]]) -> str:
    """Return modes with some of their rows, in words and the labels of the data, up to ten of each."""
    parts = []
    for mode, rows in enumerate(rows_of_modes):
        if len(rows) > 0:
            more = f" and {len(rows) - 10} more" if len(rows) > 10 else ""
            noun = "row" if len(rows) == 1 else "rows"
            name, names = f"mode {mode}", np.arange(fit.shape[mode])
            if fit.labels is not None:
                name, names = fit.labels.names[mode], fit.labels.index(mode, fit.shape[mode])
            listed = ", ".join(visible(str(names[row])) for row in rows[:10])
            parts.append(f"{visible(name)}, {noun} {listed}{more}")
    return "; ".join(parts)
