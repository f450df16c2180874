"""The report of a factorization."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._arrays import Array, TensorLike, to_host
from codiag.plotting import (
    HEIGHT,
    LARGE,
    components,
    different_modes,
    is_ordered,
    labels_of,
    leverage,
    leverages,
    residual_entries,
    residuals,
    texts_of,
    without_font,
)
from codiag.reports._html import note, panels, report, sentences, separate_panels, table
from codiag.selection import HEADINGS, LEGEND
from codiag.tensors import is_large

if TYPE_CHECKING:
    from codiag.result import Factorization
    from codiag.selection import RankChoice
    from codiag.theory import Diagnosis

DRAWN = 12
"""Components that are drawn."""
NAMED = 3
"""Indices of a mode that are named."""
ROUNDING = 1e-10
"""Relative error up to which the residual is rounding, and tells nothing."""


def factorization_report(
    fit: Factorization,
    tensor: TensorLike,
    choice: RankChoice | None = None,
    *,
    observed: Array | None = None,
    title: str = "Factorization",
) -> str:
    """Return a page about a fit: the choice of the rank, the components, what to trust, what is left, what to try.

    Parameters
    ----------
    fit : Factorization
        The fit to report on.
    tensor : array or Tensor
        What was fitted, as in `codiag.factorize`; NaN are missing.
    choice : RankChoice, optional
        What `codiag.choose_rank` has said about the rank.
    observed : array in the shape of the tensor, optional
        Which entries were observed.
    title : str
        What the page is about, such as the name of a file.

    Returns
    -------
    str
        HTML with figures inside, which needs nothing else: no file, no network, no script.

    See Also
    --------
    codiag.Factorization.diagnose : The verdicts alone.
    codiag.choose_rank : Makes the choice that the page shows.

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
    diagnosis = fit.diagnose()
    large = is_large(fit.shape)
    left = None if large else residual_entries(fit, tensor, observed)
    sections = {} if choice is None else {"Number of components": _choice(choice)}
    sections["Components"] = _components(fit, diagnosis)
    sections["Diagnosis"] = sentences(_diagnosed(diagnosis))
    if left is None:
        sections["Residuals"] = sentences([f"The tensor has {math.prod(fit.shape):,} entries, too many to be drawn."])
    else:
        sections["Residuals"] = _residuals(fit, tensor, observed)
    sections["Leverage"] = _leverage(fit)
    advice = [*diagnosis.advice, *([] if left is None else _remarkable(fit, left)), *_signs(fit, left)]
    sections["What to try"] = sentences(advice, "Nothing stands out: the fit can be used as it is.")
    return report(title, _lead(fit, choice), _facts(fit, diagnosis), sections)


def _lead(fit: Factorization, choice: RankChoice | None) -> str:
    sizes = " x ".join(str(size) for size in fit.shape)
    lead = f"A tensor of {sizes} as a sum of {fit.rank} component{'s' if fit.rank > 1 else ''}"
    lead += ", the number that the data supports." if choice is not None and choice.rank == fit.rank else "."
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
    ranks = [one.rank for one in choice.evidence]
    with separate_panels(4) as grid:
        choice.plot(grid[0])
        for axes in grid[0]:
            axes.set_xlabel("rank", fontsize=9)
            axes.title.set_fontsize(10)
            axes.tick_params(labelsize=8)
        told = [f"{axes.get_title()} against the rank, from {ranks[0]} to {ranks[-1]}" for axes in grid[0]]
        shown = panels(grid, told, "Dashed: the rank that was chosen. Shaded: ranks that the data does not support.")
    headings = [HEADINGS[0], "verdict", *HEADINGS[1:-1]]  # what matters most where a phone shows it
    marked = ranks.index(choice.rank) if choice.rank in ranks else None
    rows = [(row[0], row[-1].removeprefix("<- "), *row[1:-1]) for row in choice.rows()]
    ranked = table("Ranks", headings, rows, words=["verdict"], marked=marked)
    return sentences([choice.reason]) + ranked + note(LEGEND) + shown


def _components(fit: Factorization, diagnosis: Diagnosis) -> str:
    """Return the components as a table and as figures, one for each mode."""
    labels, modes = labels_of(fit), different_modes(fit)
    weights, errors = to_host(fit.weights), fit.weight_standard_errors
    peaks = []
    for mode in modes:
        own = np.arange(fit.shape[mode]) if labels.values[mode] is None else labels.values[mode]
        peaks.append([_named(own, place) for place in np.argmax(np.abs(to_host(fit.factors[mode])), axis=0)])
    rows = [
        (
            place,
            diagnosis.verdicts[place],
            f"{weights[place]:.4g}",
            _error(errors[place]),
            *(own[place] for own in peaks),
        )
        for place in range(fit.rank)
    ]
    names = ["all modes" if fit.symmetric else labels.names[mode] for mode in modes]
    headings = ["component", "determined", "weight", "standard error", *(f"largest at: {name}" for name in names)]
    n_rows = min(fit.rank, DRAWN)
    words = any(not is_ordered(labels.values[mode]) for mode in modes)
    with separate_panels(len(modes), n_rows, HEIGHT * n_rows + (1.3 if words else 0.75)) as grid:
        components(fit, n_components=n_rows, axes=grid)
        for (row, _), axes in np.ndenumerate(grid):
            axes.set_ylabel(f"{row}\n{weights[row]:.3g}", rotation=0, ha="right", va="center", fontsize=9)
        told = [f"{n_rows} components along {name}, with bands of two standard errors" for name in names]
        caption = (
            "A row for each component, with its number and weight. Bands hold the truth in 95 of 100 cases, entry by "
        )
        caption += "entry; where none is seen it is thinner than the line, or the standard error is not known."
        if n_rows < fit.rank:
            caption += f" The {n_rows} largest of {fit.rank} are drawn."
        boxes = without_font(texts_of(labels))
        caption += f" {boxes}." if boxes else ""
        return table("Components", headings, rows, words=["determined"]) + panels(grid, told, caption)


def _error(error: float) -> str:
    return "unknown" if not math.isfinite(error) else f"{error:.2g}"


def _named(own: np.ndarray | None, place: int) -> str:
    """Return the label of an index, or its number."""
    if own is None:
        return str(place)
    return f"{own[place]:.6g}" if own.dtype.kind == "f" else str(own[place])


def _diagnosed(diagnosis: Diagnosis) -> list[str]:
    """Return what a diagnosis says besides its advice."""
    lines = str(diagnosis).split("\n")
    said = lines[: len(lines) - len(diagnosis.advice)]
    excess = diagnosis.residual_excess
    if excess is not None and excess <= 1:
        said.append("The residual passes for white noise.")
    conditions = ", ".join(f"{one:.3g}" for one in diagnosis.conditions)
    return [*said, f"Condition numbers of the factors, mode by mode: {conditions}."]


def _residuals(fit: Factorization, tensor: Any, observed: Any) -> str:
    labels, modes = labels_of(fit), different_modes(fit)
    with separate_panels(len(modes) + 1) as grid:
        residuals(fit, tensor, observed=observed, axes=grid[0])
        told = [f"Root mean square of the residual along {labels.names[mode]}" for mode in modes]
        told.append("Quantiles of the residual against those of a normal distribution")
        return panels(
            grid,
            told,
            "Root mean square of the residual, index by index (dashed: of all), and its quantiles. Where noise is all "
            "that is left, the first are level and the last lie on the line.",
        )


def _leverage(fit: Factorization) -> str:
    labels, modes = labels_of(fit), different_modes(fit)
    with separate_panels(len(modes)) as grid:
        leverage(fit, axes=grid[0])
        told = [f"Leverage of every index along {labels.names[mode]}" for mode in modes]
        caption = "How much every index has to say about the components, from 0 to 1 (dashed: the mean)."
        return panels(grid, told, caption)


def _remarkable(fit: Factorization, left: np.ndarray) -> list[str]:
    """Return sentences about indices that stand out, by their leverage or by what is left of them."""
    labels, said = labels_of(fit), []
    for mode in different_modes(fit):
        others = tuple(other for other in range(left.ndim) if other != mode)
        sizes = np.sqrt(np.nansum(left**2, axis=others) / np.maximum(np.isfinite(left).sum(axis=others), 1))
        name = labels.names[mode]
        own = leverages(to_host(fit.factors[mode]))
        large = _largest(own, LARGE * float(np.mean(own)))
        if large:
            listed = ", ".join(_named(labels.values[mode], place) for place in large)
            said.append(f"Look at {name} {listed}: the components depend on it far more than on others (leverage).")
        badly = _largest(sizes, LARGE * float(np.median(sizes))) if fit.relative_error > ROUNDING else []
        if badly:
            listed = ", ".join(_named(labels.values[mode], place) for place in badly)
            said.append(f"Look at {name} {listed}: the residual there is more than {LARGE} times the median.")
    return said


def _largest(values: np.ndarray, limit: float) -> list[int]:
    """Return the places of the largest values above a limit, a few of them."""
    return [int(place) for place in np.argsort(-values, kind="stable")[:NAMED] if values[place] > limit]


def _signs(fit: Factorization, left: np.ndarray | None) -> list[str]:
    """Return the advice to ask for factors without negative entries, where the data has none and the factors do."""
    if left is None or fit.constraints is not None:
        return []
    entries = left + to_host(fit.to_tensor())
    factors = [to_host(factor) for factor in fit.factors]
    if np.nanmin(entries) < 0 or all(np.min(factor) >= -0.05 * np.max(np.abs(factor)) for factor in factors):
        return []
    return [
        "No entry of the tensor is negative, and entries of the factors are. Where components are amounts, such as "
        'concentrations and spectra, constraints="nonnegative" (on the command line --nonnegative) keeps them so.'
    ]
