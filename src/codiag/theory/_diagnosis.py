"""Diagnosis of a fit: which components are well determined, and what to try if some are not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import to_host
from codiag._text import visible
from codiag.least_squares import CANCELLING, largest_term_of_unit_noise
from codiag.problem import groups_of
from codiag.result import cancelling_pairs, congruences, whole_norm
from codiag.search import DOUBTFUL
from codiag.theory._identifiability import factor_condition, kruskal_condition

if TYPE_CHECKING:
    from codiag.result import Factorization

SURE, ROUGH = 0.05, 0.3
"""Largest standard errors of unit factors that count as well, and as roughly, determined. Chosen by experience."""

ROUNDING = 1e-12
"""Rounding errors in the energy that a component explains, as noise relative to the norm of the tensor."""


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
        Whether Kruskal's condition holds.
    conditions : tuple of float
        Condition numbers of the factors, mode by mode.
    degenerate : tuple of (int, int, float)
        Pairs of components that nearly cancel each other, with Tucker's congruence, the product of their cosines.
    superfluous : tuple of int
        Components without which the fit would be worse by no more than noise explains.
    residual_excess : float or None
        As in `Factorization`: more than 1 where structure is left in the residual.
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

    def _is_structured(self) -> bool:
        """Return whether the residual is more than noise, so that standard errors are not valid."""
        return self.residual_excess is not None and self.residual_excess > 1

    def __str__(self) -> str:
        n_well = self.verdicts.count("well")
        lines = [f"{n_well} of {len(self.verdicts)} components are well determined."]
        for i, (verdict, reason) in enumerate(zip(self.verdicts, self.reasons, strict=True)):
            if verdict == "unknown":
                lines.append(f"Whether component {i} is well determined was not computed: {reason}.")
            elif verdict != "well":
                error = f" (standard error {self.standard_errors[i]:.2g})" if not self._is_structured() else ""
                lines.append(f"Component {i} is {verdict} determined{error}: {reason}.")
        if not self.unique:
            lines.append("Kruskal's condition fails: other components may fit as well, whatever the noise.")
        return "\n".join([*lines, *self.advice])


def diagnose(fit: Factorization) -> Diagnosis:
    """Return which components of a fit are well determined, which are not, and why.

    Three things are asked: whether components nearly cancel each other, whether the residual passes for noise, and how
    far that noise moves the factors. Standard errors mean something only where the first two are in order.

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
    factors = [to_host(factor).astype(np.float64, copy=False) for factor in fit.tensor.factors]
    weights = to_host(fit.weights).astype(np.float64)
    cosines = congruences(fit)
    errors = _errors(fit)
    conditions = tuple(factor_condition(factor) for factor in factors)
    degenerate = cancelling_pairs(np.abs(weights), cosines)
    superfluous = _superfluous(fit)
    structured = fit.residual_excess is not None and fit.residual_excess > 1
    stands_out = fit.sensitivity.worth > DOUBTFUL**2 * largest_noise_term(fit) ** 2  # no start can have missed these
    verdicts, reasons = [], []
    for component, error in enumerate(errors):
        partner = next((i + j - component for i, j, _ in degenerate if component in (i, j)), None)
        if partner is not None:
            verdict, reason = "not", f"it and component {partner} nearly cancel each other"
        elif component in superfluous:
            verdict, reason = "not", "without it the fit would be worse by no more than noise explains"
        else:
            verdict = "unknown" if math.isnan(error) else "not"
            verdict = "well" if error <= SURE else "roughly" if error <= ROUGH else verdict
            reason = "" if verdict == "well" else _reason(fit, component, error, np.abs(weights), cosines, conditions)
            if structured and verdict in ("well", "roughly"):
                verdict, reason = "roughly", "standard errors take the residual for noise, which it is not"
            elif verdict == "well" and in_doubt(fit) and not stands_out[component]:
                verdict, reason = "roughly", "standard errors hold for one of several minima that starts have found"
        verdicts.append(verdict)
        reasons.append(reason)
    return Diagnosis(
        errors,
        tuple(verdicts),
        tuple(reasons),
        kruskal_condition(factors),
        conditions,
        degenerate,
        superfluous,
        fit.residual_excess,
        tuple(_advice(fit, np.abs(weights), degenerate, superfluous)),
        fit.sensitivity.undetermined,
    )


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
    return noise * largest_term_of_unit_noise(fit.shape, groups)


def _superfluous(fit: Factorization) -> tuple[int, ...]:
    """Return the components that are worth no more than the largest rank-one term of noise would be."""
    if fit.rank == 1 or not math.isfinite(fit.noise):
        return ()
    return tuple(int(i) for i in np.flatnonzero(fit.sensitivity.worth <= largest_noise_term(fit) ** 2))


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
    fit: Factorization, weights: np.ndarray, degenerate: Sequence[tuple[int, int, float]], superfluous: tuple[int, ...]
) -> list[str]:
    """Return sentences on what is wrong with a fit, and what to try."""
    sentences, norm = [], whole_norm(fit)
    n_fewer = max(1, _dispensable(fit, superfluous))
    lower = f"try rank {fit.rank - n_fewer}" if fit.rank > 1 else "the tensor may hold no component"
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
        more = "" if degenerate or superfluous else f" (try rank {fit.rank + 1})"
        sentences.append(
            f"The residual is not white noise: its strongest direction holds {fit.residual_excess:.2g} times what "
            f"noise would leave in any. Components may be missing{more}, or the noise is unequal."
        )
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
