"""The pages of a fit and of a choice of the rank."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
)
from codiag.reports._page import Panels, Table, panels, refuse_path, separate_panels, write_page
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
    rank_report : The choice of the rank alone.
    codiag.Factorization.diagnose : The verdicts alone.

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
    return write_page(
        "fit.html",
        path,
        title=title,
        fit=fit,
        shape=_sizes(fit.shape),
        n_entries=math.prod(fit.shape),
        n_observed=math.prod(fit.shape) if fit.n_observed is None else fit.n_observed,
        facts=_facts(fit, diagnosis),
        choice=None if choice is None else _evidence(choice),
        components=_component_table(fit, diagnosis),
        drawn=_component_panels(fit),
        n_drawn=min(fit.rank, DRAWN),
        diagnosis=_diagnosed(diagnosis),
        advice=[*diagnosis.advice, *([] if entries is None else index_advice(fit, entries))],
        residuals=None if entries is None else _residual_panels(fit, entries),
        leverage=_leverage_panels(fit),
    )


def rank_report(choice: RankChoice, path: str | Path | None = None, *, title: str = "Number of components") -> str:
    """Return a page about the choice of a rank: what was chosen and why, and the evidence for every rank.

    Parameters
    ----------
    choice : RankChoice
        The result of `codiag.choose_rank`.
    path : str or Path, optional
        A file to write the page to, such as ``"rank.html"``; one that exists is replaced.
    title : str
        The title of the page, such as the name of a file.

    Returns
    -------
    str
        HTML with figures inside, which needs no other file, no network and no script.

    See Also
    --------
    factorization_report : A page about a fit, with the choice of its rank.
    codiag.choose_rank : Chooses the rank.

    Examples
    --------
    >>> import codiag
    >>> from codiag.synthetic import noisy_tensor
    >>> tensor = noisy_tensor((8, 7, 6), 2, noise=0.01, seed=0).tensor
    >>> page = codiag.reports.rank_report(codiag.choose_rank(tensor, range(1, 4), seed=0))
    >>> page.startswith("<!doctype html>")
    True
    """
    if not hasattr(choice, "evidence"):
        raise TypeError(f"choice must be a RankChoice, the result of choose_rank; got {type(choice).__name__}")
    ranks = list(choice.fits)
    facts = {
        "components": "none supported" if choice.rank is None else choice.rank,
        "ranks tried": f"{min(ranks)} to {max(ranks)}",
    }
    shape = _sizes(choice.fits[ranks[0]].shape)
    return write_page("rank.html", path, title=title, facts=facts, shape=shape, choice=_evidence(choice))


def _sizes(shape: tuple[int, ...]) -> str:
    return " x ".join(str(size) for size in shape)


def _facts(fit: Factorization, diagnosis: Diagnosis) -> dict[str, object]:
    facts: dict[str, object] = {"components" if fit.rank > 1 else "component": fit.rank}
    explained = "variance" if fit.loss is None else "deviance"
    facts[f"of the {explained} explained"] = f"{100 * fit.explained_deviance:.4g} %"
    facts["well determined"] = f"{diagnosis.verdicts.count('well')} of {fit.rank}"
    if math.isfinite(fit.noise):
        facts["standard deviation of the noise"] = f"{fit.noise:.3g}"
    return facts


def _evidence(choice: RankChoice) -> dict[str, Any]:
    """Return the reason, the table and the figures of a choice."""
    ranks = [evidence.rank for evidence in choice.evidence]
    with separate_panels(4) as grid:
        choice.plot(grid[0])
        for axes in grid[0]:
            axes.set_xlabel("rank", fontsize=9)
            axes.title.set_fontsize(10)
            axes.tick_params(labelsize=8)
        described = [f"{axes.get_title()} against the rank, from {ranks[0]} to {ranks[-1]}" for axes in grid[0]]
        drawn = panels(grid, described)
    headings = [HEADINGS[0], "verdict", *HEADINGS[1:-1]]  # the verdict first: a phone shows the first columns
    marked = ranks.index(choice.rank) if choice.rank in ranks else None
    rows = [(row[0], row[-1].removeprefix("<- "), *row[1:-1]) for row in choice.rows()]
    table = Table(headings, rows, ["verdict"], marked)
    return {"reason": choice.reason, "table": table, "legend": LEGEND, "panels": drawn}


def _mode_names(fit: Factorization) -> list[str]:
    return ["all modes"] if fit.symmetric else [labels_of(fit).names[mode] for mode in different_modes(fit)]


def _component_table(fit: Factorization, diagnosis: Diagnosis) -> Table:
    labels, weights, errors = labels_of(fit), to_host(fit.weights), fit.weight_standard_errors
    peaks = [
        [_label(labels.values[mode], at) for at in np.argmax(np.abs(to_host(fit.tensor.factors[mode])), axis=0)]
        for mode in different_modes(fit)
    ]
    rows = [
        (i + 1, verdict, f"{weights[i]:.4g}", "unknown" if math.isnan(errors[i]) else f"{errors[i]:.2g}", *at)
        for i, (verdict, *at) in enumerate(zip(diagnosis.verdicts, *peaks, strict=True))
    ]
    headings = ["component", "determined", "weight", "standard error"]
    return Table([*headings, *(f"largest at: {name}" for name in _mode_names(fit))], rows, ["determined"])


def _component_panels(fit: Factorization) -> Panels:
    """Return the components as figures, one for each mode."""
    labels, names, n_rows = labels_of(fit), _mode_names(fit), min(fit.rank, DRAWN)
    named = any(not is_ordered(labels.values[mode]) for mode in different_modes(fit))
    with separate_panels(len(names), n_rows, HEIGHT * n_rows + (1.3 if named else 0.75)) as grid:
        components(fit, n_components=n_rows, axes=grid)
        for (row, _), axes in np.ndenumerate(grid):
            name_component(axes, row, float(fit.weights[row]))
        described = [f"{n_rows} components along {name}, with 95 % confidence bands" for name in names]
        return panels(grid, described)


def _label(index: np.ndarray | None, at: int) -> str:
    """Return the label of an index, or its number."""
    if index is None:
        return str(at)
    return f"{index[at]:.6g}" if index.dtype.kind == "f" else str(index[at])


def _diagnosed(diagnosis: Diagnosis) -> list[str]:
    """Return the sentences of a diagnosis without its advice."""
    lines = str(diagnosis).split("\n")
    conditions = ", ".join(f"{condition:.3g}" for condition in diagnosis.conditions)
    return [
        *lines[: len(lines) - len(diagnosis.advice)],
        f"Condition numbers of the factors, mode by mode: {conditions}.",
    ]


def _residual_panels(fit: Factorization, entries: np.ndarray) -> Panels:
    names = _mode_names(fit)
    with separate_panels(len(names) + 1) as grid:
        draw_residuals(fit, entries, grid[0])
        described = [f"Root mean square of the residuals along {name}" for name in names]
        described.append("Quantiles of the residuals against those of a normal distribution")
        return panels(grid, described)


def _leverage_panels(fit: Factorization) -> Panels:
    names = _mode_names(fit)
    with separate_panels(len(names)) as grid:
        leverage(fit, axes=grid[0])
        return panels(grid, [f"Leverage of every index along {name}" for name in names])


def index_advice(fit: Factorization, entries: np.ndarray) -> list[str]:
    """Return sentences about indices with a large leverage, or large residuals."""
    labels, advice = labels_of(fit), []
    for mode in different_modes(fit):
        values, sizes = leverages(to_host(fit.tensor.factors[mode])), root_mean_squares(entries, mode)
        reasons = {
            "a component may come from it alone (large leverage)": _largest(values, float(np.mean(values))),
            f"the residuals there are more than {LARGE} times the median": _largest(sizes, float(np.median(sizes))),
        }
        for reason, indices in reasons.items():
            if indices:
                listed = ", ".join(_label(labels.values[mode], at) for at in indices)
                advice.append(f"Check {labels.names[mode]} {listed}: {reason}.")
    return advice


def _largest(values: np.ndarray, level: float) -> list[int]:
    """Return the indices of the few largest values far above a level."""
    return [int(at) for at in np.argsort(-values, kind="stable")[:NAMED] if values[at] > LARGE * level]
