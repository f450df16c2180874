"""The pages of a fit and of a choice of the rank."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._arrays import Array, TensorLike, to_host
from codiag.plotting import (
    HEIGHT,
    components,
    different_modes,
    draw_residuals,
    is_ordered,
    leverage,
    name_component,
    residual_entries,
)
from codiag.reports._page import Panels, Table, panels, refuse_path, separate_panels, write_page
from codiag.selection import HEADINGS, LEGEND
from codiag.tensors import is_large

if TYPE_CHECKING:
    from codiag.diagnosis import Assessment
    from codiag.result import Factorization
    from codiag.selection import RankChoice

DRAWN = 12
"""Largest number of components that are drawn."""


def factorization_report(
    fit: Factorization,
    tensor: TensorLike,
    path: str | Path | None = None,
    *,
    choice: RankChoice | None = None,
    mask: Array | None = None,
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
    mask : array of bool in the shape of the tensor, optional
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
    >>> tensor = noisy_tensor((6, 7, 8), 2, noise=0.01, rng=0).tensor
    >>> page = factorization_report(codiag.factorize(tensor, 2, rng=0), tensor)
    >>> page.startswith("<!doctype html>"), "2 of 2 components are determined." in page
    (True, True)
    """
    refuse_path("tensor", tensor, "factorization_report(fit, tensor, path)")
    if not hasattr(fit, "diagnose"):
        raise TypeError(
            f"fit must be a Factorization; got {type(fit).__name__}. Of a RankChoice, give choice.fits[choice.rank], "
            "and choice=choice beside it"
        )
    diagnosis = fit.diagnose()
    entries = None if is_large(fit.shape) else residual_entries(fit, tensor, mask)
    return write_page(
        "fit.html",
        path,
        title=title,
        fit=fit,
        shape=_sizes(fit.shape),
        n_entries=math.prod(fit.shape),
        n_observed=fit.problem.n_observed,
        facts=_facts(fit, diagnosis),
        choice=None if choice is None else _evidence(choice),
        components=_component_table(fit, diagnosis),
        drawn=_component_panels(fit),
        n_drawn=min(fit.rank, DRAWN),
        diagnosis=_diagnosed(diagnosis),
        advice=list(diagnosis.advice),
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
    >>> tensor = noisy_tensor((8, 7, 6), 2, noise=0.01, rng=0).tensor
    >>> page = codiag.reports.rank_report(codiag.choose_rank(tensor, range(1, 4), rng=0))
    >>> page.startswith("<!doctype html>")
    True
    """
    if not hasattr(choice, "tried"):
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


def _facts(fit: Factorization, diagnosis: Assessment) -> dict[str, object]:
    facts: dict[str, object] = {"components" if fit.rank > 1 else "component": fit.rank}
    explained = "variance" if fit.problem.loss is None else "deviance"
    facts[f"of the {explained} explained"] = f"{100 * fit.deviance.explained:.4g} %"
    facts["determined"] = f"{diagnosis.verdicts.count('determined')} of {fit.rank}"
    if math.isfinite(fit._noise):
        facts["standard deviation of the noise"] = f"{fit._noise:.3g}"
    return facts


def _evidence(choice: RankChoice) -> dict[str, Any]:
    """Return the reason, the table and the figures of a choice."""
    ranks = choice.table["rank"].tolist()
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
    return ["all modes"] if fit._symmetric else [fit._labels.names[mode] for mode in different_modes(fit)]


def _component_table(fit: Factorization, diagnosis: Assessment) -> Table:
    labels, weights, errors = fit._labels, to_host(fit.weights), fit.weight_standard_errors
    peaks = [
        [_label(labels.values[mode], at) for at in np.argmax(np.abs(to_host(fit._components.factors[mode])), axis=0)]
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
    labels, names, n_rows = fit._labels, _mode_names(fit), min(fit.rank, DRAWN)
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


def _diagnosed(diagnosis: Assessment) -> list[str]:
    """Return the sentences of a diagnosis without its advice."""
    lines = str(diagnosis).split("\n")
    conditions = ", ".join(f"{condition:.3g}" for condition in diagnosis.modes["condition"])
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
