"""The components of a fit, mode by mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._arrays import is_complex, to_host
from codiag._checks import as_number
from codiag._text import counted
from codiag.plotting._modes import different_modes, draw_along, is_line, is_ordered, name_along
from codiag.plotting._style import INK, PIXELS, color_of, grid_of_axes, plain, shown

if TYPE_CHECKING:
    from codiag.labels import Labels
    from codiag.result import Factorization

WIDTH, HEIGHT = 2.7, 1.15
"""Width and height of a panel, in inches."""
MOST_ROWS = 40
"""Largest number of components in a new figure, which would otherwise be metres high."""


def components(
    fit: Factorization,
    *,
    n_components: int = 12,
    spatial: Sequence[int] | None = None,
    bands: bool = True,
    axes: Any = None,
) -> Any:
    r"""Draw the components of a fit: a row for each, a column for each mode.

    Modes whose indices have an order are lines: labels that are dates or numbers, and rows without labels if neighbors
    resemble each other. Others are bars: labels that are text, and rows that are merely numbered. A pair of modes that
    are the two sides of an image is shown as the image :math:`b_i c_i^\top`. Of complex factors the magnitudes are
    drawn.

    Parameters
    ----------
    fit : Factorization
        The fit whose components are drawn.
    n_components : int
        Largest number of components that are drawn, those with the largest weights; 40 at most in a new figure.
    spatial : pair of int, optional
        Two modes that are the rows and the columns of an image; -1 is the last mode.
    bands : bool
        Whether to draw pointwise 95 % confidence bands, 1.96 standard errors to either side, if these are known.
    axes : array of matplotlib axes, optional
        A row for each component and a column for each mode, to draw on; by default a new figure is made.

    Returns
    -------
    matplotlib.figure.Figure
        It belongs to no window; ``figure.savefig("components.png")`` writes it.

    See Also
    --------
    residuals : Tensor minus fit.
    leverage : Which indices determine the fit.
    codiag.Factorization.plot : The same as a method.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> a, b, c = (np.random.default_rng(size).random((size, 2)) for size in (6, 5, 4))
    >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, b, c), 2, rng=0)
    >>> figure = codiag.plotting.components(fit)
    >>> len(figure.axes)
    6
    """
    as_number("n_components", n_components, integer=True)
    columns = _columns(fit, spatial)
    labels, n_rows = fit._labels, min(fit.rank, int(n_components))
    n_rows = min(n_rows, MOST_ROWS) if axes is None else n_rows
    size = (WIDTH * len(columns) + 1.5, HEIGHT * n_rows + (0.75 if all(map(is_ordered, labels.values)) else 1.3))
    with grid_of_axes(axes, (n_rows, len(columns)), size) as (figure, grid):
        for column, modes in zip(grid.T, columns, strict=True):
            if len(modes) == 2:
                _draw_images(column, fit, labels, modes)
            else:
                _draw_mode(column, fit, labels, modes[0], bands=bands)
        for row, axis in enumerate(grid[:, 0]):
            name_component(axis, row, float(fit.weights[row]))
        if axes is None:
            of = "" if n_rows == fit.rank else f"the largest {n_rows} of "
            figure.suptitle(f"{of}{_in_words(fit)}", fontsize=11, color=INK)
    return figure


def _in_words(fit: Factorization) -> str:
    """Return what a figure of components shows."""
    kind = ": magnitudes of complex entries" if is_complex(fit.factors[0]) else ""
    gaps = "; a cross or a gap is not known" if any(np.isnan(to_host(factor)).any() for factor in fit.factors) else ""
    return f"{counted(fit.rank, 'component')}, with {'its weight' if fit.rank == 1 else 'their weights'}{kind}{gaps}"


def name_component(axis: Any, row: int, weight: float) -> None:
    """Write the number of a component, from 1, and its weight beside its panel."""
    text = f"component {row + 1}\nweight {weight:.3g}"
    axis.set_ylabel(text, rotation=0, ha="right", va="center", color=INK, fontsize=9)


def _columns(fit: Factorization, spatial: Sequence[int] | None) -> list[tuple[int, ...]]:
    """Return the modes that every column shows: one, or the two of an image."""
    if spatial is None:
        return [(mode,) for mode in different_modes(fit)]
    order = len(fit.shape)
    pair = tuple(mode % order if mode in range(-order, order) else None for mode in spatial)
    if len(pair) != 2 or len(set(pair)) != 2 or None in pair:
        raise ValueError(f"spatial must be two different modes, from 0 to {order - 1}; got {spatial}")
    return [*((mode,) for mode in range(order) if mode not in pair), pair]  # type: ignore[list-item]


def _draw_mode(column: Any, fit: Factorization, labels: Labels, mode: int, *, bands: bool) -> None:
    factor, index = to_host(fit.factors[mode]), labels.values[mode]
    factor = np.abs(factor) if is_complex(factor) else factor
    errors = 1.96 * fit.entry_standard_errors[mode] if bands else np.zeros_like(factor)
    rows = factor[:, : column.size]
    # Bands much wider than the values would flatten these, so bands may leave the panel.
    reach = np.nan_to_num(errors[:, : column.size], posinf=0.0)
    reach = np.minimum(reach, np.nanmax(rows) - np.nanmin(rows))
    low, high = min(0.0, float(np.nanmin(rows - reach))), max(0.0, float(np.nanmax(rows + reach)))
    margin = 0.06 * (high - low)
    line = is_line(index, factor)
    for row, axis in enumerate(column):
        draw_along(axis, index, rows[:, row], color_of(row), errors[:, row] if bands else None, line=line)
        axis.set_ylim(low - margin, high + margin)
        plain(axis)
        name_along(axis, labels.title(mode), index, visible=row == column.size - 1)


def _draw_images(column: Any, fit: Factorization, labels: Labels, modes: tuple[int, ...]) -> None:
    first, second = (to_host(fit._components.factors[mode]) for mode in modes)
    first, second = (np.abs(factor) if is_complex(factor) else factor for factor in (first, second))
    for row, axis in enumerate(column):
        image = np.outer(pixel_means(first[:, row]), pixel_means(second[:, row]))
        size = float(np.max(np.abs(image)))
        signed = float(np.min(image)) < -1e-3 * size
        axis.imshow(image, cmap="PuOr" if signed else "cividis", vmin=-size if signed else 0, vmax=size)
        axis.set(xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
    rows, columns = (shown(labels.names[mode], 20) for mode in modes)
    column[-1].set_xlabel(f"{rows} (rows), {columns} (columns)", fontsize=9, labelpad=8)


def pixel_means(column: np.ndarray) -> np.ndarray:
    """Return the means of neighboring entries, as many as an image has pixels."""
    if column.size <= PIXELS:
        return column
    edges = np.linspace(0, column.size, PIXELS + 1).astype(int)
    return np.asarray(np.add.reduceat(column, edges[:-1]) / np.diff(edges))
