"""Figures that check a fit: residuals, the leverage of every index, and the evidence for its rank."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtri

from codiag._arrays import Array, TensorLike, is_complex, to_double, to_host
from codiag.diagnosis import leverages
from codiag.labels import read_like
from codiag.plotting._modes import different_modes, draw_along, is_line, is_ordered, name_along
from codiag.plotting._style import (
    INK,
    MUTED,
    OURS,
    THEIRS,
    families,
    grid_of_axes,
    log_axis,
    plain,
    shown,
)
from codiag.problem import Problem, without_missing
from codiag.tensors import as_tensor

if TYPE_CHECKING:
    from codiag.result import Factorization
    from codiag.selection import RankChoice

LARGEST = 2**26
"""Largest number of entries of a tensor whose residuals are computed for a figure: 0.5 GiB in double precision."""
LARGE, NAMED = 3, 3
"""Multiple of the mean above which a leverage is large (by experience), and how many such indices are named."""


def residuals(fit: Factorization, tensor: TensorLike, *, mask: Array | None = None, axes: Any = None) -> Any:
    """Draw the residuals of a fit: their size along every mode, and their quantiles against normal ones.

    If the residuals are white noise, the sizes are level and the quantiles lie on the line. An index far above the
    dashed line, the root mean square of all residuals, is one that the components do not describe; ends that bend away
    from the line are outliers.

    Parameters
    ----------
    fit : Factorization
        The fit that is subtracted.
    tensor : array or Tensor
        What was fitted, as in `codiag.factorize`; NaN are missing. All entries are formed.
    mask : array of bool in the shape of the tensor, optional
        Which entries were observed; weights count as 1 if they are not 0.
    axes : array of matplotlib axes, optional
        One for each mode and one more, to draw on; by default a new figure is made.

    Returns
    -------
    matplotlib.figure.Figure
        A panel for each mode, and one for the quantiles.

    See Also
    --------
    components : The components themselves.
    leverage : Which indices determine the fit.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> tensor = np.random.default_rng(0).random((6, 5, 4))
    >>> figure = codiag.plotting.residuals(codiag.factorize(tensor, 2, rng=0), tensor)
    >>> len(figure.axes)
    4
    """
    return draw_residuals(fit, residual_entries(fit, tensor, mask), axes)


def draw_residuals(fit: Factorization, entries: np.ndarray, axes: Any = None) -> Any:
    """Draw residuals that were computed by `residual_entries`, and return the figure."""
    labels, modes = fit._labels, different_modes(fit)
    n_named = sum(not is_ordered(labels.values[mode]) for mode in modes)
    size = (6.4, 1.5 * len(modes) + 0.6 * n_named + 2.6)
    with grid_of_axes(axes, (len(modes) + 1, 1), size) as (figure, grid):
        total = float(np.sqrt(np.nanmean(entries**2)))
        for axis, mode in zip(grid[:-1, 0], modes, strict=True):
            _draw_against(axis, fit, mode, root_mean_squares(entries, mode), total, 1.15)
        _draw_quantiles(grid[-1, 0], entries[np.isfinite(entries)], total)
        if axes is None:
            figure.suptitle("Root mean square of the residuals (dashed: of all)", fontsize=11, color=INK)
    return figure


def _draw_against(axis: Any, fit: Factorization, mode: int, values: np.ndarray, level: float, top: float) -> None:
    """Draw values along a mode and a dashed line at a level; the panel ends at `top` times the largest of both."""
    labels = fit._labels
    line = is_line(labels.values[mode], to_host(fit.factors[mode]))
    draw_along(axis, labels.values[mode], values, OURS, line=line)
    axis.axhline(level, color=MUTED, linewidth=1, linestyle="--")
    axis.set_ylim(0, top * max(float(np.max(values)), level) or 1.0)
    plain(axis)
    name_along(axis, labels.title(mode), labels.values[mode])


def residual_entries(fit: Factorization, tensor: Any, mask: Any) -> np.ndarray:
    """Return the entries minus the fit, NaN for those that were not observed."""
    if is_complex(fit.factors[0]):
        raise TypeError("fit must be real for plots of residuals and for reports; fit.plot() draws a complex one")
    if isinstance(tensor, Problem):
        tensor, mask = tensor.tensor, tensor.data.weights if mask is None else mask
    plain_tensor, mask = without_missing(read_like(tensor, fit.problem.labels).tensor, mask)
    stored: Any = as_tensor(plain_tensor, False)
    if stored.shape != fit.shape:
        raise ValueError(f"tensor must have the shape of the fit, {fit.shape}; got {stored.shape}")
    if np.prod(fit.shape, dtype=float) > LARGEST:
        raise ValueError(f"tensor must have at most {LARGEST} entries to be drawn; take some indices of its modes")
    entries = to_host(stored.to_dense()).astype(np.float64) - to_host(fit.to_tensor())
    if getattr(stored, "absent", "zero") == "missing":  # a list of the observed entries
        mask = np.zeros(fit.shape, bool)
        mask[tuple(stored.coords)] = True
    return entries if mask is None else np.where(to_host(mask) > 0, entries, np.nan)


def root_mean_squares(entries: np.ndarray, mode: int) -> np.ndarray:
    """Return the root mean square over all other modes, shape (d_mode,); NaN do not count."""
    others = tuple(other for other in range(entries.ndim) if other != mode)
    counts = np.sum(np.isfinite(entries), axis=others)
    return np.asarray(np.sqrt(np.nansum(entries**2, axis=others) / np.maximum(counts, 1)))


def _draw_quantiles(axis: Any, values: np.ndarray, total: float) -> None:
    """Draw quantiles of values, in units of their root mean square, against those of a normal distribution."""
    n = min(values.size, 400)
    ends = np.array([0.5, values.size - 0.5]) / values.size  # the extremes, which outliers are among
    levels = np.unique(np.concatenate([(np.arange(n) + 0.5) / n, ends]))
    measured = np.quantile(values, levels) / (total if total > 0 else 1.0)
    expected = ndtri(levels)
    limit = 1.05 * float(np.max(np.abs(expected)))
    axis.plot([-limit, limit], [-limit, limit], color=MUTED, linewidth=1)
    axis.plot(expected, measured, color=OURS, linestyle="", marker="o", markersize=2.5)
    plain(axis)
    axis.set_xlabel("quantile of a normal distribution", fontsize=9)
    axis.set_ylabel("residual / root mean square", fontsize=8)


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
    >>> fit = codiag.factorize(np.random.default_rng(0).random((6, 5, 4)), 2, rng=0)
    >>> len(codiag.plotting.leverage(fit).axes)
    3
    """
    labels, modes = fit._labels, different_modes(fit)
    n_named = sum(not is_ordered(labels.values[mode]) for mode in modes)
    with grid_of_axes(axes, (len(modes), 1), (6.4, 1.5 * len(modes) + 0.6 * n_named + 0.5)) as (figure, grid):
        for axis, mode in zip(grid[:, 0], modes, strict=True):
            values, index = leverages(to_double(to_host(fit._components.factors[mode]))), labels.values[mode]
            _draw_against(axis, fit, mode, values, float(np.mean(values)), 1.25)
            _name_large(axis, index, values)
        if axes is None:
            figure.suptitle("Leverage of every index (dashed: mean)", fontsize=11, color=INK)
    return figure


def _name_large(axis: Any, index: np.ndarray | None, values: np.ndarray) -> None:
    positions = np.arange(values.size) if index is None or not is_ordered(index) else index
    names = np.arange(values.size) if index is None else index
    for at in np.argsort(-values, kind="stable")[:NAMED]:
        if values[at] > LARGE * np.mean(values):
            where = (positions[at], values[at])
            text = shown(f"{names[at]:.6g}" if names.dtype.kind == "f" else names[at], 20)
            style = {"ha": "center", "fontsize": 8, "color": INK, "fontfamily": families()}
            axis.annotate(text, where, xytext=(0, 3), textcoords="offset points", **style)


def draw_choice(choice: RankChoice, axes: Sequence[Any] | None = None) -> Any:
    """Draw errors, replication, the least component and the largest standard error against the rank."""
    with grid_of_axes(axes, (2, 2), (9.0, 6.4), sharex=True) as (figure, grid):
        _draw_evidence(choice, grid.ravel().tolist())
        if axes is None:
            figure.suptitle("No rank is supported" if choice.rank is None else f"Rank {choice.rank} is chosen")
    return figure


def _draw_evidence(choice: RankChoice, axes: Sequence[Any]) -> None:
    table, (errors, shares, sizes, spreads) = choice.table, axes
    ranks = table["rank"]
    line = {"marker": "o", "markersize": 4, "linewidth": 1.5}
    errors.plot(ranks, table["relative_error"], color=MUTED, label="fitted", **line)
    errors.plot(ranks, table["held_out_error"], color=OURS, label="held out", **line | {"marker": "s"})
    errors.set(title="Relative error")
    shares.plot(ranks, table["congruence"], color=OURS, label="split-half congruence", **line)
    consistency = np.clip(table["core_consistency"] / 100, 0, 1)
    shares.plot(ranks, consistency, color=THEIRS, label="core consistency", **line | {"marker": "s", "linestyle": "--"})
    shares.set(title="Replication and core consistency", ylim=(-0.03, 1.05))
    sizes.plot(ranks, table["significance"], color=OURS, label="least component", **line)
    sizes.axhline(1, color=MUTED, linestyle=":", label="largest term of noise")
    sizes.set(title="Significance of components", xlabel="rank")
    spreads.plot(ranks, table["standard_error"], color=OURS, **line)
    spreads.set(title="Largest standard error of a factor", xlabel="rank")
    columns = ((errors, ("relative_error", "held_out_error")), (sizes, ("significance",)))
    for axis, names in (*columns, (spreads, ("standard_error",))):
        drawn = np.concatenate([table[name] for name in names])
        positive = drawn[(drawn > 0) & np.isfinite(drawn)]
        if positive.size:
            log_axis(axis.yaxis, positive.tolist())
    for axis in axes:
        for rank in ranks[table["flaw"] != ""].tolist():
            axis.axvspan(rank - 0.5, rank + 0.5, color=MUTED, alpha=0.15, linewidth=0)
        if choice.rank is not None:
            axis.axvline(choice.rank, color=INK, linewidth=1, linestyle="--")
        axis.set_xticks(ranks[:: 1 + ranks.size // 12])
    for axis in (errors, shares, sizes):  # above the panel, where no data is
        axis.set_title(axis.get_title(), pad=20)
        above = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "ncols": 2}
        axis.legend(frameon=False, fontsize=8, borderaxespad=0, handlelength=1.6, columnspacing=1.2, **above)
