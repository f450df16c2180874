"""Values along a mode: lines where its indices have an order, bars where they are categories."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any
from unicodedata import east_asian_width

import numpy as np

from codiag.labels import Labels
from codiag.plotting._style import MUTED, families, log_axis, shown

if TYPE_CHECKING:
    from codiag.result import Factorization

NAMES_PER_INCH = 6
"""Names of categories, upright, that fit below a panel."""
WIDE = 20
"""Ratio of the largest label to the smallest from which a mode may be drawn on a logarithmic axis."""
LETTER = 0.09
"""Inches that a letter of a name takes, with room to the next name."""
FEW, SEPARATE, MOST = 30, 100, 4000
"""Points up to which a line has marks, categories up to which each has a bar of its own, and points that are drawn."""


def labels_of(fit: Factorization) -> Labels:
    """Return the labels of a fit, or the numbers of its modes."""
    if fit.labels is not None:
        return fit.labels
    return Labels(tuple(f"mode {mode}" for mode in range(len(fit.shape))), (None,) * len(fit.shape))


def different_modes(fit: Factorization) -> list[int]:
    """Return the modes that have something of their own to show."""
    return [0] if fit.symmetric else list(range(len(fit.shape)))


def texts_of(labels: Labels) -> list[str]:
    """Return all names of modes and labels that are text, which may hold any characters."""
    return [*labels.names, *(str(one) for own in labels.values if not is_ordered(own) for one in own.tolist())]  # type: ignore[union-attr]


def is_ordered(own: np.ndarray | None) -> bool:
    """Tell whether the indices of a mode have an order, as numbers, dates and counts do and names do not."""
    return own is None or own.dtype.kind != "U"


def is_geometric(own: np.ndarray) -> bool:
    """Tell whether labels are numbers a factor apart, as doses are, rather than a distance."""
    if own.dtype.kind not in "iuf" or own.size < 4 or not np.all(np.isfinite(own)) or np.min(own) <= 0:
        return False
    steps = np.diff(np.log(np.sort(own)))
    return bool(np.sum(steps) > np.log(WIDE) and np.std(steps) < np.mean(steps) / 4)


def draw_along(
    axis: Any, own: np.ndarray | None, values: np.ndarray, color: str, band: np.ndarray | None = None
) -> None:
    """Draw values along a mode with these labels, with a band around them."""
    if band is not None:
        band = np.where(np.isfinite(band), band, np.nan)
    if np.min(values) < 0 < np.max(values):
        axis.axhline(0, color=MUTED, linewidth=0.6, zorder=0)
    places = np.arange(values.size) if own is None or not is_ordered(own) else own
    order = extremes(values, np.argsort(places, kind="stable"))
    places, values, band = places[order], values[order], None if band is None else band[order]
    if not is_ordered(own):
        draw_bars(axis, places, values, color, band)
        return
    marker = "o" if values.size <= FEW else ""
    axis.plot(places, values, color=color, linewidth=1.4, marker=marker, markersize=2.5)
    if band is not None:
        axis.fill_between(places, values - band, values + band, color=color, alpha=0.25, linewidth=0)


def draw_bars(axis: Any, places: np.ndarray, values: np.ndarray, color: str, band: np.ndarray | None = None) -> None:
    """Draw a bar for each category, or one outline for all where they are too many to be told apart."""
    if values.size <= SEPARATE:
        axis.bar(places, values, color=color, alpha=0.85, width=0.75, yerr=band, ecolor=MUTED, error_kw={"lw": 1})
        return
    axis.fill_between(places, values, step="mid", color=color, alpha=0.85, linewidth=0)
    if band is not None:
        low, high = values - band, values + band
        axis.fill_between(places, low, high, step="mid", color=MUTED, alpha=0.5, linewidth=0)


def extremes(values: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Return the places to draw, in order: all of them, or the least and the largest value of each of many groups.

    A figure has fewer pixels than that, so it looks as if all were drawn, and takes as long however many there are.
    """
    if order.size <= MOST:
        return order
    edges = np.linspace(0, order.size, MOST // 2 + 1).astype(int)
    groups = [order[start:stop] for start, stop in pairwise(edges)]
    kept = {int(group[pick(values[group])]) for group in groups for pick in (np.argmin, np.argmax)}
    return order[np.isin(order, list(kept))]


def name_along(axis: Any, name: str, own: np.ndarray | None, *, visible: bool = True) -> None:
    """Write the labels of a mode below a panel, as many as fit, or leave them to a panel below."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
    from matplotlib.ticker import MaxNLocator

    if own is not None and own.dtype.kind == "M":
        locator = AutoDateLocator(minticks=2, maxticks=5)
        axis.xaxis.set_major_locator(locator)
        axis.xaxis.set_major_formatter(ConciseDateFormatter(locator, show_offset=False))
        name = f"{name} ({_span(own)})" if _span(own) else name
    elif own is not None and is_geometric(own):
        log_axis(axis.xaxis, own.tolist())
    elif is_ordered(own):
        axis.xaxis.set_major_locator(MaxNLocator(5, integer=own is None or own.dtype.kind in "iu"))
    else:
        _name_categories(axis, own)
    axis.tick_params(axis="x", labelbottom=visible)
    if visible:
        axis.set_xlabel(shown(name, 30), fontsize=9, fontfamily=families())


def _span(own: np.ndarray) -> str:
    """Return what dates have in common, which ticks do not say: the day, or the year."""
    first, last = (str(end.astype("datetime64[D]")) for end in (own.min(), own.max()))
    return first if first == last else first[:4] if first[:4] == last[:4] else ""


def _name_categories(axis: Any, own: Any) -> None:
    width = axis.figure.get_size_inches()[0] * axis.get_position().width
    step = -(-own.size // max(int(NAMES_PER_INCH * width), 2))
    names = [shown(one, 14) for one in own[::step].tolist()]
    longest = max(sum(2 if east_asian_width(letter) in "WF" else 1 for letter in one) for one in names)
    upright = longest * LETTER > width / len(names)
    axis.set_xticks(np.arange(0, own.size, step), names, rotation=90 if upright else 0)
