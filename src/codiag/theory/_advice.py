"""What stands in the way of components that are not well determined, and what to try, in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import to_host
from codiag._text import visible
from codiag.least_squares import CANCELLING, NORMAL_QUANTILE, TINY, LeastSquares
from codiag.result import whole_norm
from codiag.theory._noise_terms import REPLICATES, largest_noise_term

if TYPE_CHECKING:
    from codiag.result import Factorization

MOST_LEFT_OUT = 10
"""Largest number of components whose joint removal is tried."""

ALIKE = 0.5
"""Product of cosines from which a component is like another."""

SMALL = 2.0
"""Times that other components multiply an error, below which it is noise that the error is due to."""


def in_doubt(fit: Factorization) -> bool:
    """Return whether starts ended at several minima, and too few of them at the lowest."""
    return any(stage.in_doubt for stage in fit.stages)


def _dispensable(fit: Factorization, superfluous: tuple[int, ...]) -> int:
    """Return how many of the superfluous components could be left out together, up to a few.

    They leave one after another, the least first, as long as the next is still worth no more than noise without those
    that have left: of two that share what was one component, one stays. Under a loss, only one leaves.
    """
    if len(superfluous) < 2 or fit._goodness is not None:
        return min(len(superfluous), 1)
    components, worth, limit = list(range(fit.rank)), fit._sensitivity.worth, largest_noise_term(fit) ** 2
    for n_left_out in range(min(len(superfluous), MOST_LEFT_OUT)):
        candidates = [position for position, component in enumerate(components) if component in superfluous]
        least = min(candidates, key=lambda position: worth[position])
        if len(components) == 1 or not worth[least] <= limit:
            return n_left_out
        del components[least]
        worth = replace(
            fit, weights=fit.weights[components], factors=tuple(factor[:, components] for factor in fit.factors)
        )._sensitivity.worth
    return min(len(superfluous), MOST_LEFT_OUT)


def reason_for(
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
    if any(fit._sensitivity.undetermined) and math.isinf(error):
        return f"too few entries were observed of {named_rows(fit, fit._sensitivity.undetermined)}"
    if fit._goodness is not None and likeness[twin] <= ALIKE:  # no entry has a typical variance
        ratio = weights[i] / max(float(fit.weight_standard_errors[i]), 1e-300)
        return f"there is little data for its entries; its weight {weights[i]:.3g} is {ratio:.2g} standard errors"
    if fit._goodness is None and inflation(fit, i, weights) < SMALL:
        return f"its weight {weights[i]:.3g} is small beside the noise {fit.noise:.3g} in the entries"
    if likeness[twin] > ALIKE:
        return f"it is like component {twin}, the product of cosines is {cosines[i, twin]:.2f}"
    largest = max(inflation(fit, component, weights) for component in range(fit.rank))
    if fit.rank == 1:
        return f"the noise is not spread evenly, which multiplies standard errors by up to {largest:.2g}"
    return (
        f"the factors depend on each other (condition numbers up to {max(conditions):.3g}), which multiplies standard "
        f"errors by up to {largest:.2g}"
    )


def inflation(fit: Factorization, i: int, weights: np.ndarray) -> float:
    r"""Return how many times larger the error of a component is than if there were no others.

    Alone it would be :math:`\sigma \sqrt{(d_m - 1) / p} / \pi_i`, where p is the share of entries that was observed.
    """
    errors = np.asarray(fit.standard_errors)[:, i]
    share = (fit.n_observed or math.prod(fit.shape)) / math.prod(fit.shape)
    alone = fit.noise * np.sqrt(np.maximum(np.array(fit.shape) - 1, 1) / share) / max(weights[i], 1e-300)
    mode = int(np.argmax(errors))
    return float(errors[mode] / alone[mode]) if alone[mode] > 0 else math.inf


def advice_on(
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
            together = "" if fit._goodness is not None else together
            which = f"Each of components {listed(superfluous)} could be left out{together}"
        sentences.append(f"{which}: rank {fit.rank} may be too high; {lower}.")
    signs = _about_signs(fit)
    if signs:
        sentences.append(signs)
    elif fit._residual_excess is not None and fit._residual_excess > 1:
        sentences.append(_about_residual(fit, likeness, is_sound=not degenerate and not superfluous))
    elif fit._goodness is None and fit._scatter is not None and not fit._scatter.is_white:
        sentences.append(f"The noise is not white: {fit.noise_model}. Standard errors allow for that.")
    if _looks_like_counts(fit):
        sentences.append("Entries are counts that scatter more where they are larger: loss='poisson' may be better.")
    if fit._goodness is not None and not fit._goodness.has_right_variance:
        sentences.append(_about_dispersion(fit))
    zeros = _about_zeros(fit)
    if zeros:
        sentences.append(zeros)
    unobserved = [np.flatnonzero(np.isnan(to_host(factor)).any(axis=1)).tolist() for factor in fit.factors]
    if any(unobserved):
        sentences.append(f"Nothing was observed of {named_rows(fit, unobserved)}: NaN, and the rest as without it.")
    if any(fit._sensitivity.undetermined):
        sentences.append(
            f"Too few entries were observed of {named_rows(fit, fit._sensitivity.undetermined)}: their rows could be "
            "anything, and the factors with them. Leave these slices out, or keep the rows small by constraints=Ridge("
            "strength), the variance of the noise over that of the factors' entries."
        )
    if in_doubt(fit):
        is_over = any("out of budget" in stage.name for stage in fit.stages)
        option = "effort=..." if is_over else "max_starts=..."
        # Starts of sparse counts disagree at ranks that predict best, too.
        fewer = "" if fit._goodness is not None and not superfluous else f"; {lower}, which may have fewer"
        sentences.append(
            "Starts ended at several minima, and too few at the lowest of them: there may be a lower one. Another "
            f"seed or method=Auto({option}) searches on{fewer}."
        )
    if not fit.converged:
        sentences.append("The fit did not converge: another seed or a lower rank may tell more.")
    return sentences


def _about_signs(fit: Factorization) -> str:
    r"""Return a sentence on entries below zero that a non-negative model cannot explain, or nothing.

    Noise around a model that is not negative has at most half of its squares below zero, up to
    :math:`(\sum_j r_j^4)^{1/2} / 2`, their standard deviation, times 3.1.
    """
    rules, data = fit.constraints or (None,), fit._data
    if data is None or fit._goodness is not None or not all(rule is not None and rule.is_one_sided for rule in rules):
        return ""
    residual = to_host(LeastSquares(data).residual(fit.tensor).to_dense())
    squares = (residual / max(float(np.max(np.abs(residual))), TINY)) ** 2
    entries = to_host(data.tensor.to_dense())
    below, total = float(np.sum(squares[entries < 0])), float(np.sum(squares))
    if not below > total / 2 + NORMAL_QUANTILE * math.sqrt(float(np.sum(squares**2))) / 2:
        return ""
    return (
        f"Entries below zero have {below / total:.0%} of the squared residual, and no sum of non-negative components "
        "explains them: leave constraints out, or constrain some modes only, as constraints={0: 'nonnegative'}; if "
        "zero is arbitrary, subtract the baseline first."
    )


def _about_zeros(fit: Factorization) -> str:
    """Return a sentence on slices all of whose entries are zero, or nothing."""
    if fit._data is None or fit._data.tensor.shape != fit.shape:
        return ""
    is_zero = to_host(fit._data.tensor.to_dense()) == 0
    known = fit._data.observed_mask()
    axes = range(is_zero.ndim)
    rest_of = [tuple(other for other in axes if other != mode) for mode in axes]
    rows = [np.flatnonzero(np.all(is_zero | ~known, axis=rest) & np.any(known, axis=rest)).tolist() for rest in rest_of]
    if not any(rows):
        return ""
    return f"All entries are zero at {named_rows(fit, rows)}: if they were not measured, mark them as missing, by NaN."


def _looks_like_counts(fit: Factorization) -> bool:
    """Return whether entries fitted by least squares are counts, with variances that grow with the fit."""
    if fit._goodness is not None or fit._data is None or fit._scatter is None or fit._scatter.deviations is None:
        return False
    entries = to_host(fit._data.tensor.to_dense())
    are_counts = bool(np.all((entries >= 0) & (entries == np.rint(entries)) & (entries < 2**53)))
    return are_counts and float(fit._scatter.deviations[-1]) > float(fit._scatter.deviations[0])


def _about_dispersion(fit: Factorization) -> str:
    """Return a sentence on a variance that is not that of the loss."""
    said = (
        f"Entries scatter with {fit.dispersion:.2g} times the variance of {fit.loss!r}; standard errors allow for that."
    )
    if fit.dispersion > 1 and fit.loss is not None and fit.loss.scales_with_mean:
        said += " If it grows faster than the mean, loss=NegativeBinomial() gives more accurate factors."
    return said


def _about_residual(fit: Factorization, likeness: float, *, is_sound: bool) -> str:
    """Return a sentence on a residual that is not white noise."""
    found = f"The residual is not white noise: its strongest direction has {fit._residual_excess:.3g} times what "
    found += "white noise would leave in any"
    if math.isnan(likeness):
        return f"{found}. Components may be missing, or the noise is unequal."
    if likeness >= REPLICATES:
        more = f"; try rank {fit.rank + 1}" if is_sound else ""
        agree = f"and two halves of the data agree on it (congruence {likeness:.2f})"
        return f"{found}, {agree}: a component is missing{more}."
    if fit._scatter is None or fit._scatter.is_white or not fit._scatter.explains_residual:
        return f"{found}, but two halves of the data do not agree on it: no further component would replicate."
    return (
        f"The noise is not white: {fit.noise_model}. Standard errors allow for that. Two halves of the data do not "
        "agree on what is left: no further component would replicate."
    )


def listed(components: tuple[int, ...]) -> str:
    return ", ".join(str(i) for i in components[:-1]) + f" and {components[-1]}"


def named_rows(fit: Factorization, rows_of_modes: Sequence[Sequence[int]]) -> str:
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
