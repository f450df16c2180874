"""What is known of a fit of PARAFAC2: accuracy, and tests of the model, slice by slice."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import chdtrc

from codiag._checks import as_generator
from codiag._text import Table, counted, listed
from codiag.diagnosis import Assessment, verdict_by
from codiag.methods import NLS
from codiag.problem import Problem
from codiag.result import solve
from codiag.tensors import FactoredTensor

if TYPE_CHECKING:
    from codiag._parafac2._fit import Parafac2Fit

LEVEL = 0.05
"""Level of the tests of all slices together, and chance of a lower minimum, from which they are told."""


def assess(fit: Parafac2Fit) -> Assessment:
    """Return what `Parafac2Fit.diagnose` does."""
    errors_a, errors_b, errors_c = fit.standard_errors
    errors = np.max([errors_a, np.sqrt(np.mean(errors_b**2, axis=0)), errors_c], axis=0)
    verdicts = [verdict_by(error) for error in errors]
    said = {"determined": "", "unknown": "standard errors are not known"}
    reasons = [said.get(verdict, f"its standard error is {error:.2g} of its length")
               for verdict, error in zip(verdicts, errors, strict=True)]  # fmt: skip
    a, _, c = fit.factors
    inner = (a.T @ a) * fit.correlations * (c.T @ c)
    products = fit.weights * (inner @ fit.weights)
    components = {
        "weight": fit.weights,
        "explained_variance": products * ((1 - fit.relative_error**2) / max(float(products.sum()), 1e-300)),
        "significance": np.full(fit.rank, np.nan),
        "standard_error": errors,
        "replication": np.full(fit.rank, np.nan),
        "verdict": np.array(verdicts),
        "reason": np.array(reasons),
    }
    residuals, misfits = _by_slice(fit)
    sizes = np.array([basis.shape[0] for basis in fit.projections])
    samples = {"slice": np.arange(sizes.size), "rows": sizes, "residual": residuals, "misfit": misfits}
    upper = np.triu_indices(fit.rank, 1)
    pairs = {"first": upper[0] + 1, "second": upper[1] + 1, "correlation": fit.correlations[upper],
             "congruence": (a.T @ a * (c.T @ c) * fit.correlations)[upper]}  # fmt: skip
    modes = {"mode": np.array(["slices", "columns"]), "size": np.array([a.shape[0], c.shape[0]]),
             "condition": np.array([np.linalg.cond(a), np.linalg.cond(c)])}  # fmt: skip
    return Assessment(
        Table(components),
        Table(samples),
        Table(pairs),
        Table(modes),
        p_missed=fit.p_missed,
        noise="white",
        advice=tuple(_advice(fit, misfits))[:3],
    )


def _by_slice(fit: Parafac2Fit) -> tuple[np.ndarray, np.ndarray]:
    """Return the residual of each slice relative to the median, and the misfit of its correlations.

    A slice with correlations of its own, for its weights, has an evolving factor without a constraint; what that gains
    relative to the noise is chi-squared with as many degrees of freedom as there are correlations.
    """
    n, slices, variance = len(fit.projections), fit._slices, fit.noise_variance
    if slices is None or slices.is_sparse or slices.n_missing:
        return np.full(n, np.nan), np.full(n, np.nan)
    frame, residual = np.linalg.qr(fit.factors[2])[0], slices.matrix - np.concatenate(fit.to_slices())
    per_entry = np.sqrt(slices.per_slice(np.sum(residual**2, axis=1)) / slices.sizes)
    gains = slices.per_slice(np.sum((residual @ frame) ** 2, axis=1))
    has_noise = variance > 1e-24 * slices.squared_norm / slices.n_observed and fit.rank > 1
    relative = per_entry / max(float(np.median(per_entry)), 1e-300)
    return relative, gains / variance if has_noise else np.full(n, np.nan)


def _advice(fit: Parafac2Fit, misfits: np.ndarray) -> list[str]:
    slices, said = fit._slices, []
    p_values = chdtrc(fit.rank * (fit.rank - 1) / 2, misfits)
    differ = np.flatnonzero(p_values * p_values.size < LEVEL)
    if differ.size:
        worst = _named(fit, differ[[np.argmax(misfits[differ])]])
        which = f"in {worst}" if differ.size == 1 else f"in {differ.size} slices, most in {worst}"
        said.append(
            f"The correlations of the evolving factors differ from the common ones {which}: the model does not hold "
            "there, or the noise is not white. Leave this slice out, and compare."
        )
    short = np.flatnonzero([basis.shape[0] < fit.rank for basis in fit.projections])
    if short.size:
        said.append(f"Fewer rows than components have {_named(fit, short)}, which cannot hold all of them.")
    if slices is not None and slices.n_missing:
        empty = int(np.sum(np.all(np.isnan(slices.matrix), axis=1)))
        if empty:
            said.append(
                f"{counted(empty, 'row')} of slices {'is' if empty == 1 else 'are'} missing as a whole, and filled by "
                "the model. Leave rows that were never measured out of their slices."
            )
    plain = _plain_cp(fit)
    if plain:
        said.append(plain)
    doubtful = np.abs(fit.factors[0]) < 2 * fit.entry_standard_errors[0]
    n_doubtful = int(np.sum(doubtful & (fit.factors[0] != 0)))
    if n_doubtful:
        said.append(
            f"The sign of {counted(n_doubtful, 'weight')} of slices is not determined: "
            f"{'it is' if n_doubtful == 1 else 'they are'} smaller than two standard errors."
        )
    if fit.p_missed > LEVEL:
        said.append(f"A lower minimum may have been missed (probability {fit.p_missed:.2g}): fit again with other rng.")
    return said


def _named(fit: Parafac2Fit, chosen: np.ndarray) -> str:
    names = [str(name) for name in fit.labels.index(0, len(fit.projections))[chosen[:5]]]
    names += [f"{chosen.size - 5} more"] if chosen.size > 5 else []
    return f"{'slice' if chosen.size == 1 else 'slices'} {listed(names)}"


def _plain_cp(fit: Parafac2Fit) -> str:
    """Return a sentence if CP fits as well: if what PARAFAC2 gains is no more than noise for its extra unknowns.

    CP begins at the mean of the evolving factors.
    """
    slices = fit._slices
    if slices is None or not fit.noise_variance > 0 or slices.is_sparse or slices.n_observed > 10**6:
        return ""
    if np.any(slices.sizes != slices.sizes[0]) or fit._sensitivity is None:
        return ""
    n, rows = slices.sizes.size, int(slices.sizes[0])
    (a, _, c), common = fit.factors, np.mean(fit.evolving, axis=0)
    problem = Problem(slices.matrix.reshape(n, rows, -1), fit.rank)
    start = FactoredTensor(fit.weights, [a, common, c], symmetric=False)
    plain = solve(problem, NLS(init=start, max_replacements=0), as_generator(0))
    squares = (plain.relative_error**2 - fit.relative_error**2) * slices.squared_norm
    extra = fit._sensitivity.n_free(slices.sizes) - fit.rank * (n + rows + slices.width - 2)
    if extra <= 0 or squares / fit.noise_variance > extra + 4 * math.sqrt(2 * extra):
        return ""
    return (
        f"A CP model of rank {fit.rank} fits as well, with {extra} unknowns less: the profiles are the same in all "
        "slices. Use codiag.factorize, whose factors are more accurate."
    )
