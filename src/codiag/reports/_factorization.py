"""The report of a factorization."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import Array, TensorLike, to_host
from codiag.plotting import (
    HEIGHT,
    LARGE,
    components,
    different_modes,
    draw_residuals,
    is_ordered,
    labels_of,
    leverage,
    leverages,
    name_component,
    residual_entries,
    root_mean_squares,
    texts_of,
    without_font,
)
from codiag.reports._html import note, panels, refuse_path, report, sentences, separate_panels, table
from codiag.selection import HEADINGS, LEGEND
from codiag.tensors import is_large

if TYPE_CHECKING:
    from codiag.result import Factorization
    from codiag.selection import RankChoice
    from codiag.theory import Diagnosis

DRAWN = 12
"""Largest number of components that are drawn."""
NAMED = 3
"""Largest number of indices of a mode that are named."""
ROUNDING = 1e-10
"""Relative error below which residuals are rounding errors, and their sizes mean nothing."""
NEGATIVE = 0.05
"""Share of the largest entry of a factor below which a negative entry may be noise; chosen by experience."""


def factorization_report(
    fit: Factorization,
    tensor: TensorLike,
    path: str | Path | None = None,
    *,
    choice: RankChoice | None = None,
    observed: Array | None = None,
    title: str = "Factorization",
) -> str:
    """Return a page about a fit: choice of the rank, components, diagnosis, residuals, leverage and advice.

    Parameters
    ----------
    fit : Factorization
        The fit to report on.
    tensor : array or Tensor
        What was fitted, as in `codiag.factorize`; NaN are missing.
    path : str or Path, optional
        A file to write the page to, such as ``"report.html"``; one that exists is replaced.
    choice : RankChoice, optional
        The result of `codiag.choose_rank`.
    observed : array in the shape of the tensor, optional
        Which entries were observed.
    title : str
        The title of the page, such as the name of a file.

    Returns
    -------
    str
        HTML with figures inside, which needs no other file, no network and no script.

    See Also
    --------
    codiag.Factorization.diagnose : The verdicts alone.
    codiag.choose_rank : Chooses the rank.

    Examples
    --------
    >>> import codiag
    >>> from codiag.reports import factorization_report
    >>> from codiag.synthetic import noisy_tensor
    >>> tensor = noisy_tensor((6, 7, 8), 2, noise=0.01, seed=0).tensor
    >>> page = factorization_report(codiag.factorize(tensor, 2, seed=0), tensor)
    >>> page.startswith("<!doctype html>"), "2 of 2 components are well determined." in page
    (True, True)
    """
    refuse_path("tensor", tensor, "factorization_report(fit, tensor, path)")
    if not hasattr(fit, "diagnose"):
        raise TypeError(
            f"fit must be a Factorization; got {type(fit).__name__}. Of a RankChoice, give choice.fits[choice.rank], "
            "and choice=choice beside it"
        )
    diagnosis = fit.diagnose()
    entries = None if is_large(fit.shape) else residual_entries(fit, tensor, observed)
    sections = {} if choice is None else {"Number of components": _choice(choice)}
    sections["Components"] = _components(fit, diagnosis)
    sections["Diagnosis"] = sentences(_diagnosed(diagnosis))
    advice = list(diagnosis.advice)
    if entries is None:
        sections["Residuals"] = sentences([f"The tensor has {math.prod(fit.shape):,} entries, too many to be drawn."])
    else:
        sections["Residuals"] = _residuals(fit, entries)
        advice += [*index_advice(fit, entries), *sign_advice(fit, entries)]
    sections["Leverage"] = _leverage(fit)
    sections["What to try"] = sentences(advice, "There is nothing to improve: the fit can be used as it is.")
    return report(title, _lead(fit, choice), _facts(fit, diagnosis), sections, path)


def _lead(fit: Factorization, choice: RankChoice | None) -> str:
    sizes = " x ".join(str(size) for size in fit.shape)
    lead = f"A tensor of {sizes} as a sum of {fit.rank} component{'s' if fit.rank > 1 else ''}"
    lead += ", the number that the data support." if choice is not None and choice.rank == fit.rank else "."
    n_entries = math.prod(fit.shape)
    if fit.n_observed is not None and fit.n_observed < n_entries:
        lead += f" {fit.n_observed:,} of {n_entries:,} entries were observed."
    return lead if fit.converged else f"{lead} The fit did not converge."


def _facts(fit: Factorization, diagnosis: Diagnosis) -> dict[str, object]:
    well = diagnosis.verdicts.count("well")
    facts: dict[str, object] = {"components" if fit.rank > 1 else "component": fit.rank}
    facts["of the energy explained"] = f"{100 * (1 - fit.relative_error**2):.4g} %"
    facts["well determined"] = f"{well} of {fit.rank}"
    if math.isfinite(fit.noise):
        facts["standard deviation of the noise"] = f"{fit.noise:.3g}"
    return facts


def _choice(choice: RankChoice) -> str:
    """Return the reason, the table and the figures of a choice."""
    ranks = [evidence.rank for evidence in choice.evidence]
    with separate_panels(4) as grid:
        choice.plot(grid[0])
        for axes in grid[0]:
            axes.set_xlabel("rank", fontsize=9)
            axes.title.set_fontsize(10)
            axes.tick_params(labelsize=8)
        described = [f"{axes.get_title()} against the rank, from {ranks[0]} to {ranks[-1]}" for axes in grid[0]]
        caption = "Dashed: the rank that was chosen. Shaded: ranks that the data do not support."
        figures = panels(grid, described, caption)
    headings = [HEADINGS[0], "verdict", *HEADINGS[1:-1]]  # the verdict first: a phone shows the first columns
    marked = ranks.index(choice.rank) if choice.rank in ranks else None
    rows = [(row[0], row[-1].removeprefix("<- "), *row[1:-1]) for row in choice.rows()]
    ranked = table("Ranks", headings, rows, words=["verdict"], marked=marked)
    return sentences([choice.reason]) + ranked + note(LEGEND) + figures


def _components(fit: Factorization, diagnosis: Diagnosis) -> str:
    """Return the components as a table and as figures, one for each mode."""
    labels, modes = labels_of(fit), different_modes(fit)
    weights, errors = to_host(fit.weights), fit.weight_standard_errors
    peaks = [
        [_label(labels.values[mode], at) for at in np.argmax(np.abs(to_host(fit.tensor.factors[mode])), axis=0)]
        for mode in modes
    ]
    rows = [
        (component, verdict, f"{weights[component]:.4g}", _error(errors[component]), *at)
        for component, (verdict, *at) in enumerate(zip(diagnosis.verdicts, *peaks, strict=True))
    ]
    names = ["all modes" if fit.symmetric else labels.names[mode] for mode in modes]
    headings = ["component", "determined", "weight", "standard error", *(f"largest at: {name}" for name in names)]
    n_rows = min(fit.rank, DRAWN)
    named = any(not is_ordered(labels.values[mode]) for mode in modes)
    with separate_panels(len(modes), n_rows, HEIGHT * n_rows + (1.3 if named else 0.75)) as grid:
        components(fit, n_components=n_rows, axes=grid)
        for (row, _), axes in np.ndenumerate(grid):
            name_component(axes, row, float(weights[row]))
        described = [f"{n_rows} components along {name}, with bands of two standard errors" for name in names]
        caption = (
            "A row for each component, with its number and weight. Bands are 95 % confidence intervals of each entry; "
            "one that cannot be seen is thinner than the line, or its standard error is not known."
        )
        if n_rows < fit.rank:
            caption += f" The {n_rows} largest of {fit.rank} are drawn."
        boxes = without_font(texts_of(labels))
        caption += f" {boxes}." if boxes else ""
        return table("Components", headings, rows, words=["determined"]) + panels(grid, described, caption)


def _error(error: float) -> str:
    return "unknown" if not math.isfinite(error) else f"{error:.2g}"


def _label(index: np.ndarray | None, at: int) -> str:
    """Return the label of an index, or its number."""
    if index is None:
        return str(at)
    return f"{index[at]:.6g}" if index.dtype.kind == "f" else str(index[at])


def _diagnosed(diagnosis: Diagnosis) -> list[str]:
    """Return the sentences of a diagnosis without its advice."""
    lines = str(diagnosis).split("\n")
    lines = lines[: len(lines) - len(diagnosis.advice)]
    excess = diagnosis.residual_excess
    if excess is not None and excess <= 1:
        lines.append("The residuals cannot be distinguished from white noise.")
    conditions = ", ".join(f"{condition:.3g}" for condition in diagnosis.conditions)
    return [*lines, f"Condition numbers of the factors, mode by mode: {conditions}."]


def _residuals(fit: Factorization, entries: np.ndarray) -> str:
    labels, modes = labels_of(fit), different_modes(fit)
    with separate_panels(len(modes) + 1) as grid:
        draw_residuals(fit, entries, grid[0])
        described = [f"Root mean square of the residuals along {labels.names[mode]}" for mode in modes]
        described.append("Quantiles of the residuals against those of a normal distribution")
        return panels(
            grid,
            described,
            "Root mean square of the residuals, index by index (dashed: of all), and their quantiles. If the residuals "
            "are white noise, the former are level and the latter lie on the line.",
        )


def _leverage(fit: Factorization) -> str:
    labels, modes = labels_of(fit), different_modes(fit)
    with separate_panels(len(modes)) as grid:
        leverage(fit, axes=grid[0])
        described = [f"Leverage of every index along {labels.names[mode]}" for mode in modes]
        caption = "How strongly the components depend on every index, from 0 to 1 (dashed: the mean)."
        return panels(grid, described, caption)


def index_advice(fit: Factorization, entries: np.ndarray) -> list[str]:
    """Return sentences about indices with a large leverage, or large residuals."""
    labels, advice = labels_of(fit), []
    for mode in different_modes(fit):
        leverage_values = leverages(to_host(fit.tensor.factors[mode]))
        sizes = root_mean_squares(entries, mode)
        large = _largest(leverage_values, LARGE * float(np.mean(leverage_values)))
        poor = _largest(sizes, LARGE * float(np.median(sizes))) if fit.relative_error > ROUNDING else []
        reasons = {
            "the components depend on it far more than on others (leverage)": large,
            f"the residuals there are more than {LARGE} times the median": poor,
        }
        for reason, indices in reasons.items():
            if indices:
                listed = ", ".join(_label(labels.values[mode], at) for at in indices)
                advice.append(f"Check {labels.names[mode]} {listed}: {reason}.")
    return advice


def _largest(values: np.ndarray, limit: float) -> list[int]:
    """Return the indices of the few largest values above a limit."""
    return [int(at) for at in np.argsort(-values, kind="stable")[:NAMED] if values[at] > limit]


def sign_advice(fit: Factorization, residual: np.ndarray) -> list[str]:
    """Return the advice to constrain factors to be non-negative, if the data are and the factors are not."""
    if fit.constraints is not None:
        return []
    factors = [to_host(factor) for factor in fit.tensor.factors]
    if np.nanmin(residual + to_host(fit.to_tensor())) < 0:
        return []
    if all(np.min(factor) >= -NEGATIVE * np.max(np.abs(factor)) for factor in factors):
        return []
    return [
        "No entry of the tensor is negative, and entries of the factors are. If components are amounts, such as "
        'concentrations and spectra, add constraints="nonnegative" (on the command line --nonnegative).'
    ]
