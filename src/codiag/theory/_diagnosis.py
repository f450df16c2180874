"""Diagnosis of a fit: which components are well determined, and what to try if some are not."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import double, to_host
from codiag._text import html_paragraphs
from codiag.result import cancelling_pairs, congruences
from codiag.search import DOUBTFUL
from codiag.theory._advice import advice_on, in_doubt, listed, reason_for
from codiag.theory._identifiability import factor_condition, kruskal_condition
from codiag.theory._noise_terms import largest_noise_term, outliers_of, superfluous_of

if TYPE_CHECKING:
    from codiag.result import Factorization

SURE, ROUGH = 0.05, 0.3
"""Largest standard errors of unit factors that count as well, and as roughly, determined. Chosen by experience."""


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
    unique : bool or None
        Whether Kruskal's condition is satisfied, which guarantees uniqueness; None if that was not determined.
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
    unique: bool | None
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
        for (verdict, reason), components in self._alike().items():
            is_one = len(components) == 1
            which = f"omponent {components[0]} is" if is_one else f"omponents {listed(components)} are"
            if verdict == "unknown" and self.verdicts.count("unknown") < n_all:
                lines.append(f"Whether c{which} well determined was not computed: {reason}.")
            elif verdict in ("roughly", "not"):
                errors = self.standard_errors[list(components)]
                found = f"standard error {errors[0]:.2g}" if is_one else f"standard errors up to {np.max(errors):.2g}"
                lines.append(f"C{which} {verdict} determined ({found}): {reason if is_one else _of_several(reason)}.")
        if self.unique is False:
            lines.append("Kruskal's condition fails: other components may fit as well, whatever the noise.")
        return "\n".join([*lines, *self.advice])

    def _alike(self) -> dict[tuple[str, str], tuple[int, ...]]:
        """Return the components of every verdict and reason."""
        alike: dict[tuple[str, str], tuple[int, ...]] = {}
        for i, pair in enumerate(zip(self.verdicts, self.reasons, strict=True)):
            alike[pair] = (*alike.get(pair, ()), i)
        return alike

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
    sizes = np.abs(weights)
    cosines = congruences(fit)
    errors = _errors(fit)
    conditions = tuple(factor_condition(factor) for factor in factors)
    degenerate = cancelling_pairs(sizes, cosines)
    superfluous, outliers = superfluous_of(fit), outliers_of(fit)
    stands_out = fit._sensitivity.worth > DOUBTFUL**2 * largest_noise_term(fit) ** 2  # no start can have missed these
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
            reason = "" if verdict == "well" else reason_for(fit, component, error, sizes, cosines, conditions)
            if verdict == "well" and in_doubt(fit) and not stands_out[component]:
                verdict, reason = "roughly", "standard errors are those of one of several minima that starts have found"
        verdicts.append(verdict)
        reasons.append(reason)
    likeness = fit._residual_replication
    return Diagnosis(
        errors,
        tuple(verdicts),
        tuple(reasons),
        kruskal_condition(factors),
        conditions,
        degenerate,
        superfluous,
        fit._residual_excess,
        tuple(advice_on(fit, sizes, degenerate, tuple(sorted({*superfluous, *outliers})), likeness)),
        fit._sensitivity.undetermined,
        likeness,
        fit.noise_model,
    )


def _of_several(reason: str) -> str:
    """Return the reason that several components share."""
    return reason.replace("removing it", "removing any one of them")


def _errors(fit: Factorization) -> np.ndarray:
    """Return the largest standard errors over modes: infinite where noise is not known, NaN where not computed."""
    errors = np.asarray(fit.standard_errors)
    infinite = np.any(np.isinf(errors), axis=0) | math.isnan(fit.noise)
    return np.where(infinite, np.inf, np.max(errors, axis=0))
