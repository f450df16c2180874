"""Ticks of logarithmic axes: few, with labels that are plain numbers and do not overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

MOST = 6
"""Labels that fit beside a small axis."""
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def log_axis(axis: Any, values: Sequence[float]) -> None:
    """Make an axis logarithmic, with few labels that are plain numbers.

    Parameters
    ----------
    axis : matplotlib.axis.Axis
        Such as ``axes.xaxis``.
    values : sequence of float
        What is shown along it, positive.

    See Also
    --------
    paper : A figure in the same style.

    Examples
    --------
    >>> from codiag.plotting import log_axis, paper
    >>> with paper((4, 3)) as figure:
    ...     axes = figure.subplots()
    ...     log_axis(axes.xaxis, [20, 150])
    >>> [label.get_text() for label in axes.get_xticklabels()]
    ['20', '50', '100', '200']
    """
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter, NullLocator

    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_major_locator(FixedLocator(log_ticks(min(values), max(values))))
    axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axis.set_minor_locator(NullLocator())
    axis.set_minor_formatter(NullFormatter())


def log_ticks(least: float, most: float) -> list[float]:
    """Return at most six places for ticks between two positive numbers, or a little beyond."""
    low, high = math.log10(least), math.log10(most)
    width = high - low
    if width < 0.02:
        return [least]
    for steps in ((1, 2, 5) if width < 1.2 else (1, 3) if width < 2.5 else (1,), range(1, 10)):
        decades = range(math.floor(low) - 1, math.ceil(high) + 2)
        ticks = [step * 10.0**decade for decade in decades for step in steps]
        inside = [tick for tick in ticks if low - 0.15 <= math.log10(tick) <= high + 0.15]
        if len(inside) >= 2:
            break
    while len(inside) > MOST:
        inside = inside[::2]
    return inside


def short(value: float) -> str:
    """Return a number as people write it: 0.03, 200, or 5·10⁻⁷."""
    if value <= 0 or 1e-3 <= value < 1e4:
        return f"{value:g}"
    exponent = math.floor(math.log10(value) + 1e-9)
    step = round(value / 10.0**exponent)
    return f"{'' if step == 1 else f'{step}·'}10{str(exponent).translate(RAISED)}"
