"""The leverage of every index: how strongly the components depend on it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._arrays import to_host
from codiag.plotting._modes import different_modes, draw_along, is_ordered, labels_of, name_along, texts_of
from codiag.plotting._style import INK, MUTED, OURS, families, grid_of_axes, plain, shown, tell_without_font

if TYPE_CHECKING:
    from codiag.result import Factorization

LARGE, NAMED = 3, 3
"""Multiple of the mean above which a leverage is large (by experience), and how many such indices are named."""


def leverage(fit: Factorization, *, axes: Any = None) -> Any:
    r"""Draw the leverage of every index of every mode, :math:`\mathrm{diag}(A (A^\top A)^+ A^\top)`.

    It is between 0 and 1, and the leverages of a mode add up to the rank. An index whose leverage is far above the
    others determines a component almost alone: a sample to check, and perhaps to leave out. Those above three times
    the mean, the dashed line, are named.

    Parameters
    ----------
    fit : Factorization
        The fit whose factors are examined.
    axes : array of matplotlib axes, optional
        One for each mode, to draw on; by default a new figure is made.

    Returns
    -------
    matplotlib.figure.Figure
        One panel for each mode.

    See Also
    --------
    components : The components themselves.
    residuals : Tensor minus fit.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> fit = codiag.factorize(np.random.default_rng(0).random((6, 5, 4)), 2, seed=0)
    >>> len(codiag.plotting.leverage(fit).axes)
    3
    """
    labels, modes = labels_of(fit), different_modes(fit)
    n_named = sum(not is_ordered(labels.values[mode]) for mode in modes)
    with grid_of_axes(axes, (len(modes), 1), (6.4, 1.5 * len(modes) + 0.6 * n_named + 0.5)) as (figure, grid):
        for axis, mode in zip(grid[:, 0], modes, strict=True):
            values, index = leverages(to_host(fit.factors[mode])), labels.values[mode]
            draw_along(axis, index, values, OURS)
            axis.axhline(np.mean(values), color=MUTED, linewidth=1, linestyle="--")
            _name_large(axis, index, values)
            axis.set_ylim(0, 1.25 * float(np.max(values)) or 1.0)
            plain(axis)
            name_along(axis, labels.names[mode], index)
        if axes is None:
            figure.suptitle("Leverage of every index (dashed: mean)", fontsize=11, color=INK)
            tell_without_font(figure, texts_of(labels))
    return figure


def leverages(factor: np.ndarray) -> np.ndarray:
    """Return the leverages of the rows of a factor, shape (d,)."""
    left, values, _ = np.linalg.svd(factor.astype(np.float64), full_matrices=False)
    nonzero = values > max(factor.shape) * np.finfo(float).eps * values[0]
    return np.asarray(np.sum(left[:, nonzero] ** 2, axis=1))


def _name_large(axis: Any, index: np.ndarray | None, values: np.ndarray) -> None:
    positions = np.arange(values.size) if index is None or not is_ordered(index) else index
    names = np.arange(values.size) if index is None else index
    for at in np.argsort(-values, kind="stable")[:NAMED]:
        if values[at] > LARGE * np.mean(values):
            where = (positions[at], values[at])
            text = shown(f"{names[at]:.6g}" if names.dtype.kind == "f" else names[at], 20)
            style = {"ha": "center", "fontsize": 8, "color": INK, "fontfamily": families()}
            axis.annotate(text, where, xytext=(0, 3), textcoords="offset points", **style)
