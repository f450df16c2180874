"""The components of a fit of PARAFAC2."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._checks import as_number
from codiag._text import counted
from codiag.plotting._components import HEIGHT, WIDTH, name_component
from codiag.plotting._modes import draw_along, is_line, name_along
from codiag.plotting._style import INK, color_of, grid_of_axes, plain

if TYPE_CHECKING:
    from codiag._parafac2 import Parafac2Fit


def draw_parafac2(fit: Parafac2Fit, *, n_components: int = 12, bands: bool = True, axes: Any = None) -> Any:
    """Draw a row for each component: weights of slices, evolving factors of all slices, factor of the columns."""
    as_number("n_components", n_components, integer=True)
    labels, n_rows = fit.labels, min(fit.rank, int(n_components))
    (a, _, c), (error_a, _, error_c) = fit.factors, fit.entry_standard_errors
    with grid_of_axes(axes, (n_rows, 3), (3 * WIDTH + 1.5, HEIGHT * n_rows + 0.75)) as (figure, grid):
        for r, row in enumerate(grid):
            is_last = r == n_rows - 1
            for axis, factor, errors, mode in ((row[0], a, error_a, 0), (row[2], c, error_c, 2)):
                index = labels.values[mode]
                band = 1.96 * errors[:, r] if bands else None
                draw_along(axis, index, factor[:, r], color_of(r), band, line=mode > 0 and is_line(index, factor))
                name_along(axis, labels.names[mode], index, visible=is_last)
            _draw_evolving(row[1], fit, r)
            name_along(row[1], labels.names[1], None, visible=is_last)
            for axis in row:
                plain(axis)
            name_component(row[0], r, float(fit.weights[r]))
        if axes is None:
            figure.suptitle(f"PARAFAC2, {counted(fit.rank, 'component')}", fontsize=11, color=INK)
    return figure


def _draw_evolving(axis: Any, fit: Parafac2Fit, r: int) -> None:
    """Draw the evolving factor of a component in every slice, one line each, times the sign of its weight."""
    n = len(fit.projections)
    for k, (evolving, weight) in enumerate(zip(fit.evolving, fit.factors[0][:, r], strict=True)):
        index = np.arange(len(evolving)) if fit.rows is None or fit.rows[k].dtype.kind not in "biufmM" else fit.rows[k]
        order = np.argsort(index, kind="stable")
        values = evolving[order, r] * (-1.0 if weight < 0 else 1.0)
        axis.plot(index[order], values, color=color_of(r), linewidth=0.8, alpha=max(0.15, min(1.0, 6 / n)))
