"""One list of advice, in order: the data, the model, the rank, the optimum; at most three sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from codiag._arrays import is_complex, to_double, to_host
from codiag._text import listed
from codiag.diagnosis._data import LOUD, empty_rows
from codiag.diagnosis._facts import NOT, Facts
from codiag.diagnosis._halves import Halves
from codiag.least_squares import DEGENERATE_RATIO, NORMAL_QUANTILE, TINY, strongest_terms
from codiag.result import separation, whole_norm

LEAST_CHANCE = 0.1
"""Chance that a lower minimum was missed, from which it is spoken of."""

REPLICATES = 0.85
"""Congruence of the strongest term of the residual in two halves, from which a component is missing."""

HEAVY_SHARE, HEAVY_SIZE = 0.3, 6.0
"""Share of the squared residual in entries beyond so many robust standard deviations, from which tails are heavy."""


def advice_on(facts: Facts) -> tuple[list[str], int | None]:
    """Return at most three sentences, the most important first, and the one rank that is advised, if one is.

    None is while entries are out of line: without them, residual and components are others.
    """
    separated = separation(facts.fit)
    sentences = [*([separated] if separated else []), *_on_data(facts), *_on_model(facts)][:3]
    rank: int | None = None
    if len(sentences) < 3 and not facts.entries:
        sentence, rank = _on_rank(facts)
        sentences += [sentence] if sentence else []
    return [*sentences, *advice_on_optimum(facts)][:3], rank


def _on_data(facts: Facts) -> Iterator[str]:
    """Yield sentences on entries and samples."""
    fit, entries = facts.fit, facts.entries
    named = facts.named_entries([(entry.place, entry.value) for entry in entries]) if entries else ""
    if len(entries) == 1:
        entry = entries[0]
        said = f"carries component {entry.component + 1} alone" if entry.component is not None else "is far out of line"
        yield (f"Entry {named} {said}. If it is an error or stands for a missing value, make it NaN.")
    elif entries:
        yield (
            f"Entries {named} are far out of line or carry components alone. If they are errors or stand for "
            "missing values, make them NaN."
        )
    alone = {place: r for place, r in facts.lone_samples.items() if r not in {entry.component for entry in entries}}
    if alone and not fit._is_exact:
        by_mode: list[list[int]] = [[] for _ in fit.shape]
        for mode, row in alone:
            by_mode[mode].append(row)
        numbers = sorted({r + 1 for r in alone.values()})
        what = f"component {numbers[0]}" if len(numbers) == 1 else f"components {listed(numbers)}"
        where, carry = facts.named_rows(by_mode), "carries" if len(alone) == 1 else "carry"
        where = where[0].upper() + where[1:]
        yield f"{where} {carry} {what} alone: if this is no pure sample but an artefact, leave it out."
    quiet = [np.flatnonzero(sizes > LOUD).tolist() for sizes in facts.loudness]
    if any(quiet) and not entries:
        largest = max(float(np.nanmax(sizes)) for sizes in facts.loudness)
        yield (
            f"The residual is up to {largest:.2g} times larger at {facts.named_rows(quiet)}: leave out what is an "
            "artefact, or give it lower weights."
        )
    empty = empty_rows(fit)
    if any(empty):
        yield f"All entries are zero at {facts.named_rows(empty)}: if they were not measured, make them NaN."
    unseen = [np.flatnonzero(np.isnan(to_host(factor)).any(axis=1)).tolist() for factor in fit.factors]
    if any(unseen):
        yield f"Nothing was observed at {facts.named_rows(unseen)}: the factors are NaN there."
    if any(fit._sensitivity.undetermined):
        yield (
            f"Too few entries were observed at {facts.named_rows(fit._sensitivity.undetermined)}: leave these out, or "
            "bound the factors by constraints=Ridge(strength), the variance of the noise over that of their entries."
        )


def _on_model(facts: Facts) -> Iterator[str]:
    """Yield sentences on what CP, or least squares, does not describe."""
    fit = facts.fit
    remedy = "constraints='nonnegative', 'orthogonal' or codiag.constraints.Ridge(strength), or fewer components"
    norm = whole_norm(fit)
    if facts.degenerate:
        i, j, congruence = min(facts.degenerate, key=lambda pair: pair[2])
        yield (
            f"Components {i + 1} and {j + 1} are degenerate: they grow and compensate each other (congruence "
            f"{congruence:.3f}). Bound them by {remedy}."
        )
    elif float(np.max(facts.weights)) > DEGENERATE_RATIO * norm:
        yield (
            f"The fit is degenerate: components grow and compensate each other (largest weight "
            f"{np.max(facts.weights):.3g}, norm of the tensor {norm:.3g}). Bound them by {remedy}."
        )
    if facts.shift is not None:
        shift = facts.shift
        yield (
            f"Profiles shift along mode {facts.labels.names[shift.mode]!r} from sample to sample (root mean square "
            f"{shift.points:.2g} points): PARAFAC2 (codiag.parafac2) allows that, CP does not."
        )
    below = _share_below_zero(facts)
    if below > 0:
        yield (
            f"Entries below zero have {below:.0%} of the squared residual, which no sum of non-negative components "
            "explains: leave constraints out, or subtract the baseline first."
        )
    if _looks_like_counts(facts):
        yield "The variance of these counts grows with their mean: loss='poisson' may be better."
    elif _is_binary(facts):
        yield "All entries are 0 or 1: loss='bernoulli' models their probabilities."
    elif _has_heavy_tails(facts):
        yield "A few entries have much of the squared residual: loss='huber' limits their influence."
    deviance = fit._deviance
    if deviance is not None and not deviance.has_right_variance:
        said = f"The dispersion is {deviance.dispersion:.2g}, the variance relative to that of {fit.problem.loss!r}; "
        said += "standard errors allow for that."
        if deviance.dispersion > 1 and fit.problem.loss is not None and fit.problem.loss.scales_with_mean:
            said += " If it grows faster than the mean, loss=NegativeBinomial() gives more accurate factors."
        yield said


def _on_rank(facts: Facts) -> tuple[str, int | None]:
    """Return a sentence on the number of components, and the rank that it advises, if there is one."""
    fit = facts.fit
    surplus = np.flatnonzero(facts.significances <= 1).tolist()
    if surplus and not facts.degenerate:
        rank = fit.rank - _n_dispensable(facts, surplus)
        which = (
            f"Component {surplus[0] + 1} is"
            if len(surplus) == 1
            else f"Components {listed([r + 1 for r in surplus])} are"
        )
        if rank < 1:
            return f"{which} not significant: the tensor may have no component.", None
        return f"{which} not significant: try rank {rank}.", rank
    are_determined = NOT not in facts.verdicts[0] and facts.shift is None
    if are_determined and facts.residual_ratio > 1 and _residual_replicates(facts):
        return (
            f"The residual has a further component, {facts.residual_ratio:.3g} times as large as noise may be and "
            f"found in both halves of the data: try rank {fit.rank + 1}.",
            fit.rank + 1,
        )
    return "", None


def advice_on_optimum(facts: Facts) -> Iterator[str]:
    """Yield sentences on whether the fit is the best one."""
    fit = facts.fit
    if facts.p_missed >= LEAST_CHANCE:
        yield (
            f"A lower minimum may have been missed (probability about {facts.p_missed:.1g}): method=Auto(max_work=...) "
            "searches longer, another rng elsewhere."
        )
    if not fit.converged and not facts.degenerate and not separation(fit):
        yield "The fit did not converge: max_iter or time_limit of method=Auto(...) may be too small."


def _n_dispensable(facts: Facts, surplus: list[int]) -> int:
    """Return how many of the components that are not significant can be left out together.

    They leave one after another, the least first, as long as the next is not significant without those that have left:
    of two that share what was one component, one stays. Under a loss, only one leaves.
    """
    fit = facts.fit
    if len(surplus) < 2 or fit._deviance is not None or facts.flips is None:
        return min(len(surplus), 1)
    components, limit = list(range(fit.rank)), facts.flips.bound**2
    contributions = facts.contributions
    for n_left_out in range(min(len(surplus), 10)):
        candidates = [place for place, component in enumerate(components) if component in surplus]
        least = min(candidates, key=lambda place: contributions[place])
        if len(components) == 1 or not contributions[least] <= limit:
            return max(n_left_out, 1)
        del components[least]
        rest = replace(
            fit, weights=fit.weights[components], factors=tuple(factor[:, components] for factor in fit.factors)
        )
        contributions = rest._sensitivity.unique_contributions
    return min(len(surplus), 10)


def _residual_replicates(facts: Facts) -> bool:
    """Return whether the strongest terms of the residual agree in two halves of the data.

    Of several terms that are as strong, a half finds a mixture: so the strongest term of one half is compared with the
    two strongest directions of the other.
    """
    problem = facts.fit._data
    if problem is None or facts.residual is None:
        return False
    halves = Halves.of(problem, facts.correlated)
    if halves is None:
        return False
    residuals = [np.take(facts.residual, rows, axis=halves.mode) for rows in halves.rows]
    shared = [mode for mode in range(facts.residual.ndim) if mode != halves.mode]
    cosines = []
    for one, two in (residuals, residuals[::-1]):
        columns = [column[0] for column in strongest_terms(one[None])[1]]
        for mode in shared:
            side = np.moveaxis(two, mode, 0).reshape(two.shape[mode], -1)
            span = np.linalg.svd(side, full_matrices=False)[0][:, :2]
            cosines.append(float(np.linalg.norm(span.conj().T @ columns[mode])))
    return math.prod(cosines) ** (1 / len(cosines)) >= REPLICATES


def _share_below_zero(facts: Facts) -> float:
    r"""Return the share of the squared residual below zero that a non-negative model cannot explain, or zero.

    Noise around a model that is not negative has at most half of its squares below zero, up to
    :math:`(\sum_j r_j^4)^{1/2} / 2`, their standard deviation, times 3.1.
    """
    fit = facts.fit
    rules = fit.problem.constraints or (None,)
    if (
        facts.residual is None
        or fit._deviance is not None
        or not all(rule is not None and rule.is_cone for rule in rules)
    ):
        return 0.0
    squares = (facts.residual / max(float(np.max(np.abs(facts.residual))), TINY)) ** 2
    assert fit._data is not None
    below = float(np.sum(squares[to_host(fit._data.tensor.to_dense()) < 0]))
    total = float(np.sum(squares))
    return below / total if below > total / 2 + NORMAL_QUANTILE * math.sqrt(float(np.sum(squares**2))) / 2 else 0.0


def _looks_like_counts(facts: Facts) -> bool:
    """Return whether entries fitted by least squares are counts, with variances that grow with the fit."""
    fit, model = facts.fit, facts.fit._noise_model
    if fit._deviance is not None or fit._data is None or model is None or model.deviations is None:
        return False
    entries = to_double(to_host(fit._data.tensor.to_dense()))
    are_counts = bool(np.all((entries >= 0) & (entries == np.rint(entries)) & (entries < 2**53)))
    are_binary = float(np.max(entries)) <= 1
    return are_counts and not are_binary and float(model.deviations[-1]) > float(model.deviations[0])


def _is_binary(facts: Facts) -> bool:
    """Return whether all entries are 0 or 1, fitted by least squares with an error."""
    fit = facts.fit
    if facts.residual is None or fit._deviance is not None or fit._data is None or fit._is_exact:
        return False
    entries = to_host(fit._data.tensor.to_dense())
    return bool(np.all((entries == 0) | (entries == 1)))


def _has_heavy_tails(facts: Facts) -> bool:
    """Return whether entries far out of line, which are none of those that are named, have much of the residual."""
    if facts.residual is None or facts.fit._deviance is not None or facts.entries or is_complex(facts.residual):
        return False
    sizes = np.abs(facts.residual[facts.seen])
    far = sizes > HEAVY_SIZE / 0.6745 * float(np.median(sizes))
    return bool(np.sum(sizes[far] ** 2) > HEAVY_SHARE * np.sum(sizes**2)) and not facts.fit._is_exact
