"""How often intervals of 90 % hold the true parameters of models.

``python -m benchmarks.model_intervals [gaussians views 'single topics' ... sources blocks]``
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.stats import t as student
from sklearn.base import clone

from benchmarks.measure import run_parts, table
from benchmarks.model_draws import CASES, Case
from benchmarks.sources import ERRORS
from codiag.models import jackknife_standard_errors

N_BLOCKS, FIRST_SEED, N_DRAWS = 20, 20_000, 40
FEWER = {"gaussians": 25, "views": 25, "mixed topics": 20, "communities": 20}
"""Draws of models that take long. Seeds count from the same first one for all models."""
AXES = {"transmat": (0, 1), "connectivity": (0, 1), "memberships": (1,), "variances": (), "confusion": (), "priors": ()}
"""Along which axes of parameters components lie, where that is not along rows."""
NEAR = 2.0
"""Standard errors from a bound within which the true value of a parameter is called near it."""


class Estimates(NamedTuple):
    """Estimates and standard errors (draws, ...) of a parameter, its true values (...), and its bounds."""

    found: np.ndarray
    errors: np.ndarray
    truth: np.ndarray
    bounds: tuple[float, float]

    @property
    def inside(self) -> np.ndarray:
        """Which entries have true values far enough from their bounds, by the median of predicted standard errors.

        How far estimates of the draws that are judged are from the truth has no part in it.
        """
        room = np.minimum(self.truth - self.bounds[0], self.bounds[1] - self.truth)
        return room > NEAR * np.median(self.errors, axis=0)  # not where standard errors are not known

    def covered(self, degrees: int | None, some: np.ndarray) -> float:
        """The share of intervals that hold the truth."""
        width = student.ppf(0.95, degrees) if degrees else 1.6449
        return float(np.mean((np.abs(self.found - self.truth) <= width * self.errors)[:, some]))

    def ratio(self, some: np.ndarray) -> float:
        """Predicted over measured standard deviation, in the median of entries."""
        measured = np.std(self.found, axis=0, ddof=1)[some]
        return float(np.median(np.sqrt(np.mean(self.errors**2, axis=0))[some] / measured))

    def bias(self, some: np.ndarray) -> float:
        """The bias over the standard deviation, in the root mean square of entries, that of chance taken off."""
        measured = np.std(self.found, axis=0, ddof=1)[some]
        square = np.mean(((self.found.mean(axis=0) - self.truth)[some] / measured) ** 2) - 1 / len(self.found)
        return float(np.sqrt(max(square, 0)))


def measured(case: Case, n_draws: int, n_groups: int | None = None) -> dict[str, Estimates]:
    """Fit draws, and return what is found of every parameter; errors by the jackknife if there are groups."""
    found: dict[str, list[np.ndarray]] = {}
    errors: dict[str, list[np.ndarray]] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + n_draws):
        data, truth = case.draw(seed)
        model = clone(case.model).fit(data)
        told = {} if n_groups is None else jackknife_standard_errors(model, data, n_groups=n_groups)
        order = None if case.key is None else _order(_side(getattr(model, f"{case.key}_")), _side(truth[case.key]))
        for name in truth:
            error = told[f"{name}_"] if told else getattr(model, f"{name}_standard_errors_")
            for kept, value in ((found, getattr(model, f"{name}_")), (errors, error)):
                kept.setdefault(name, []).append(_aligned(name, _side(value), order))
    bounds = {"means": (-np.inf, np.inf), "covariances": (0, np.inf), "variances": (0, np.inf)}
    return {
        name: Estimates(np.stack(found[name]), np.stack(errors[name]), _side(truth[name]), bounds.get(name, (0, 1)))
        for name in truth
    }


def _side(value: Any) -> np.ndarray:
    """Return views side by side."""
    return np.hstack(value) if isinstance(value, list) else np.asarray(value)


def _order(rows: np.ndarray, truth: np.ndarray) -> np.ndarray:
    if rows.shape[0] > 50:  # memberships, whose columns are communities
        rows, truth = rows.T, truth.T
    return linear_sum_assignment(np.linalg.norm(truth[:, None] - rows[None], axis=2))[1]


def _aligned(name: str, value: np.ndarray, order: np.ndarray | None) -> np.ndarray:
    if order is None:
        return value
    for axis in AXES.get(name, (0,)):
        value = np.take(value, order, axis)
    return value


def _row(name: str, estimates: Estimates, degrees: int | None) -> list[str]:
    inside = estimates.inside
    cells = [name, f"{int(inside.sum())} of {inside.size}"]
    if np.all(np.isnan(estimates.errors)):
        return [*cells, "none are given", "", f"{estimates.bias(np.std(estimates.found, axis=0) > 0):.2f}", ""]
    if not inside.any():
        return [*cells, "", "", "", f"{100 * estimates.covered(degrees, ~inside):.1f} %"]
    edge = f"{100 * estimates.covered(degrees, ~inside):.1f} %" if not inside.all() else ""
    cells += [f"{100 * estimates.covered(degrees, inside):.1f} %", f"{estimates.ratio(inside):.2f}"]
    return [*cells, f"{estimates.bias(inside):.2f}", edge]


HEADINGS = ("", "parameter", "inside", "intervals of 90 % that hold", "predicted / measured", "bias", "near a bound")
WORDS = (
    "How often intervals of 90 % hold the true parameters, {n_draws} draws each: estimates plus and minus 1.73 "
    f"standard errors from {N_BLOCKS} blocks (the quantile of Student's t with {N_BLOCKS - 1} degrees of freedom), or "
    "1.645 where no blocks are left out. Parameters count as inside where the bounds (0, or 1) are more than two "
    "predicted standard errors away from the truth, in the median; for these the table also has predicted over "
    "measured standard deviation, in the median, and the bias in standard deviations, in the root mean square. For the "
    "others it has coverage alone."
)


def family(name: str) -> str:
    """Return the table of coverage for every parameter of some models."""
    rows, n_draws = [], FEWER.get(name, N_DRAWS)
    for model, case in CASES[name].items():
        title, degrees = model, N_BLOCKS - 1 if case.blocks else None
        for parameter, estimates in measured(case, n_draws, N_BLOCKS if case.blocks else None).items():
            rows.append((title, *_row(parameter, estimates, degrees)))
            title = ""
    return f"## Standard errors of models: {name}\n{WORDS.format(n_draws=n_draws)}\n\n" + table(HEADINGS, rows)


def blocks(n_draws: int = 20) -> str:
    """Return the table of coverage by the number of blocks."""
    rows = []
    for n_groups in (5, 10, 20, 50):
        found = measured(CASES["gaussians"]["10 steps of EM"], n_draws, n_groups)
        quantile = float(student.ppf(0.95, n_groups - 1))
        for name, one in found.items():
            covered = f"{100 * one.covered(n_groups - 1, one.inside):.1f} %"
            rows.append((n_groups, name, covered, f"{quantile * np.mean(one.errors[:, one.inside]):.4f}"))
    return (
        f"## Standard errors of models: the number of blocks\nGaussians with 10 steps of EM, as above, the "
        f"first {n_draws} draws, and half the mean length of intervals.\n\n"
        + table(("blocks", "parameter", "intervals of 90 % that hold", "half of their length"), rows)
    )


def sources(n_draws: int = N_DRAWS) -> str:
    """Return the table of coverage for the mixing of blind sources."""
    mixing, rows = np.random.default_rng(11).standard_normal((6, 6)), []
    for name, (model, draw) in ERRORS.items():
        found, errors, powers = [], [], []
        for seed in range(FIRST_SEED, FIRST_SEED + n_draws):
            signals = draw(np.random.default_rng([seed, 19]))
            model.fit(signals @ mixing.T)
            cosines = mixing.T @ model.mixing_
            cosines /= np.outer(np.linalg.norm(mixing, axis=0), np.linalg.norm(model.mixing_, axis=0))
            order = linear_sum_assignment(-np.abs(cosines))[1]
            found.append(model.mixing_[:, order] * np.sign(cosines[np.arange(6), order]))
            errors.append(model.mixing_standard_errors_[:, order])
            powers.append(np.var(signals, axis=0))
        truth = mixing * np.sqrt(np.mean(powers, axis=0))  # for sources of unit variance, as estimates are
        estimates = Estimates(np.stack(found), np.stack(errors), truth, (-np.inf, np.inf))
        rows.append((name, *_row("mixing", estimates, None)))
    words = WORDS.format(n_draws=n_draws)
    return (
        f"## Standard errors of models: blind sources\n{words} 5,000 samples of 6 sources in 6 channels, as in the "
        "table of errors of blind sources; standard errors are by theory.\n\n" + table(HEADINGS, rows)
    )


PARTS: dict[str, Callable[[], str]] = {name: partial(family, name) for name in CASES}
PARTS |= {"sources": sources, "blocks": blocks}

if __name__ == "__main__":
    run_parts("model_intervals", PARTS)
