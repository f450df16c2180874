"""Values along a mode: lines if its indices have an order, bars if they have none."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

import numpy as np

from codiag.plotting._style import MUTED, families, log_axis, shown

if TYPE_CHECKING:
    from codiag.result import Factorization

MARKED, SEPARATE, MOST = 30, 100, 4000
"""Largest numbers of points that have marks, of categories with a bar each, and of points that are drawn."""


def different_modes(fit: Factorization) -> list[int]:
    """Return the modes whose factors differ; raise if the fit is none."""
    if not hasattr(fit, "_symmetric"):
        raise TypeError(f"fit must be a Factorization, what codiag.factorize returns; got {type(fit).__name__}")
    return [0] if fit._symmetric else list(range(len(fit.shape)))


def is_ordered(index: np.ndarray | None) -> bool:
    """Return whether the indices of a mode have an order, as numbers, dates and counts do and names do not."""
    return index is None or index.dtype.kind != "U"


def is_line(index: np.ndarray | None, factor: np.ndarray) -> bool:
    """Return whether a mode is drawn as a line, by its labels and its factor (indices, components).

    Labels other than numbers of rows say whether they have an order. If rows are merely numbered, as neurons or pixels
    are, they are in an order if neighbors resemble each other: the autocorrelation at lag one of each column has
    variance 1/n if rows are in any order, so that the mean over columns is far above zero only in a meaningful one.
    """
    if not is_ordered(index):
        return False
    if index is not None and not _are_numbers_of_rows(index):
        return True
    known = factor[np.all(np.isfinite(factor), axis=1)]
    centered = known - known.mean(axis=0)
    squares = np.sum(centered**2, axis=0)
    varying = squares > 0
    if len(known) < 3 or not np.any(varying):
        return True
    correlations = np.sum(centered[1:] * centered[:-1], axis=0)[varying] / squares[varying]
    # standard deviations of the autocorrelation of rows in any order
    return bool(np.mean(correlations) * np.sqrt(len(known) * correlations.size) > 2.0)


def _are_numbers_of_rows(index: np.ndarray) -> bool:
    return index.dtype.kind in "iu" and any(np.array_equal(index, first + np.arange(index.size)) for first in (0, 1))


def is_geometric(index: np.ndarray) -> bool:
    """Return whether labels are nearly a geometric sequence of numbers, as doses are."""
    if index.dtype.kind not in "iuf" or index.size < 4 or not np.all(np.isfinite(index)) or np.min(index) <= 0:
        return False
    steps = np.diff(np.log(np.sort(index)))
    return bool(np.sum(steps) > np.log(20) and np.std(steps) < np.mean(steps) / 4)


def draw_along(
    axis: Any,
    index: np.ndarray | None,
    values: np.ndarray,
    color: str,
    band: np.ndarray | None = None,
    *,
    line: bool = True,
) -> None:
    """Draw values along a mode with these labels, as a line or as bars; `band` is half the width of a band around."""
    if band is not None:
        band = np.where(np.isfinite(band), band, np.nan)
    if np.min(values) < 0 < np.max(values):
        axis.axhline(0, color=MUTED, linewidth=0.6, zorder=0)
    positions = np.arange(values.size) if index is None or not is_ordered(index) else index
    order = extremes(values, np.argsort(positions, kind="stable"))
    positions, values, band = positions[order], values[order], None if band is None else band[order]
    if not line or not is_ordered(index):
        draw_bars(axis, positions, values, color, band)
        return
    marker = "o" if values.size <= MARKED else ""
    axis.plot(positions, values, color=color, linewidth=1.4, marker=marker, markersize=2.5)
    if band is not None:
        axis.fill_between(positions, values - band, values + band, color=color, alpha=0.25, linewidth=0)


def draw_bars(axis: Any, positions: np.ndarray, values: np.ndarray, color: str, band: np.ndarray | None = None) -> None:
    """Draw a bar for each category, or one outline for all if they are too many to be distinguished.

    What is not known has a cross in place of a bar, which would look like a zero.
    """
    unknown = ~np.isfinite(values)
    if np.any(unknown):
        crosses = {"marker": "x", "markersize": 4, "linestyle": "", "color": MUTED}
        axis.plot(positions[unknown], np.zeros(np.count_nonzero(unknown)), **crosses)
    if values.size <= SEPARATE:
        axis.bar(positions, values, color=color, alpha=0.85, width=0.75, yerr=band, ecolor=MUTED, error_kw={"lw": 1})
        return
    axis.fill_between(positions, values, step="mid", color=color, alpha=0.85, linewidth=0)
    if band is not None:
        low, high = values - band, values + band
        axis.fill_between(positions, low, high, step="mid", color=MUTED, alpha=0.5, linewidth=0)


def extremes(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the indices to draw, in order: all of them, or those of the extremes of each of many groups.

    There are more groups than pixels, so that the figure is the same, and drawing takes the same time for any size.
    """
    if order.size <= MOST:
        return order
    edges = np.linspace(0, order.size, MOST // 2 + 1).astype(int)
    groups = [order[start:stop] for start, stop in pairwise(edges)]
    drawn = {int(group[extreme(values[group])]) for group in groups for extreme in (np.argmin, np.argmax)}
    return order[np.isin(order, list(drawn))]


def name_along(axis: Any, name: str, index: np.ndarray | None, *, visible: bool = True) -> None:
    """Write the labels of a mode below a panel, as many as fit, unless a panel below has them."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.ticker import MaxNLocator

    if index is not None and index.dtype.kind == "M":
        locator = AutoDateLocator(minticks=2, maxticks=5)
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(ConciseDateFormatter(locator))
    elif index is not None and is_geometric(index):
        log_axis(axis.xaxis, index.tolist())
    elif is_ordered(index):
        axis.xaxis.set_major_locator(MaxNLocator(5, integer=index is None or index.dtype.kind in "iu"))
    else:
        _name_categories(axis, index)
    axis.tick_params(axis="x", labelbottom=visible)
    if visible:
        axis.set_xlabel(shown(name, 30), fontsize=9, fontfamily=families())


def _name_categories(axis: Any, index: Any) -> None:
    width = axis.figure.get_size_inches()[0] * axis.get_position().width
    step = -(-index.size // max(int(6 * width), 2))
    names = [shown(name, 14) for name in index[::step].tolist()]
    longest = max(sum(2 if east_asian_width(letter) in "WF" else 1 for letter in name) for name in names)
    # inches of a letter
    upright = longest * 0.09 > width / len(names)
    axis.set_xticks(np.arange(0, index.size, step), names, rotation=90 if upright else 0)
