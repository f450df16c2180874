"""The figure of a crowd."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from codiag._checks import as_number, warn_of_former
from codiag.plotting._style import INK, MUTED, OURS, grid_of_axes, log_axis, paper, shown, tell_without_font

if TYPE_CHECKING:
    from codiag.models.crowd import DawidSkene

MOST_LETTERS, MOST_CLASSES = 12, 12
"""Letters of a name that are shown, and number of classes up to which these are named."""
LETTER = 0.065
"""Width of a letter, in inches."""
MANY_VOTES = 20
"""Ratio of the largest to the smallest number of votes above which the axis of votes is logarithmic."""


def confusions(model: DawidSkene, *, n_workers: int = 12, axes: Any = None) -> Any:
    """Draw a crowd: the confusion matrices of the workers with most votes, and the accuracy of all workers.

    Confusion matrices are as in scikit-learn, normalized over the true class: a row for each true class, a column for
    each given label.

    Parameters
    ----------
    model : DawidSkene
        Fitted to votes.
    n_workers : int
        Largest number of confusion matrices that are drawn, those of the workers with most votes.
    axes : array of matplotlib axes, optional
        Axes to draw on: one for each confusion matrix, and one for the accuracies. By default a new figure is made.

    Returns
    -------
    matplotlib.figure.Figure
        It belongs to no window; ``figure.savefig("crowd.png")`` writes it.

    See Also
    --------
    codiag.reports.crowd_report : A page about labels and workers.
    codiag.models.DawidSkene : The model that is drawn.

    Examples
    --------
    >>> from codiag.models import DawidSkene
    >>> from codiag.plotting import confusions
    >>> from codiag.synthetic import crowd_votes, worker_confusions
    >>> votes = crowd_votes(200, worker_confusions(9, 2, seed=0), seed=1).votes
    >>> figure = confusions(DawidSkene(random_state=0).fit(votes), n_workers=4)
    >>> len(figure.axes)     # four matrices, their color bar, and the accuracies
    6
    """
    check_is_fitted(model)
    if not hasattr(model, "confusion_matrices_"):
        raise TypeError(f"model must be a DawidSkene; got {type(model).__name__}")
    as_number("n_workers", n_workers, integer=True)
    table = model.worker_table()
    busiest = np.argsort(-table["votes"], kind="stable")[:n_workers]
    if axes is not None:
        with grid_of_axes(axes, (1, busiest.size + 1), (1.0, 1.0)) as (figure, grid):
            _draw_matrices(grid[:, :-1], model, table, busiest)
            _draw_accuracies(grid[0, -1], table, 1 / model.classes_.size)
        return figure
    n_columns = busiest.size if busiest.size <= 3 else min(4, math.ceil(math.sqrt(busiest.size)))
    with paper((12.5, 6.2)) as figure:
        left, right = np.asarray(figure.subfigures(1, 2, width_ratios=(1.5, 1)))
        left.suptitle("Workers with most votes: true class (rows), label given (columns)", color=INK)
        grid = left.subplots(math.ceil(busiest.size / n_columns), n_columns, squeeze=False)
        _draw_matrices(grid, model, table, busiest)
        _draw_accuracies(right.subplots(), table, 1 / model.classes_.size)
        tell_without_font(left, [*model.classes_.tolist(), *table["worker"][busiest].tolist()])
    return figure


def draw_confusions(model: DawidSkene, path: str | Path, n_workers: int = 12) -> None:
    """Save the figure of `confusions`, which has replaced this function."""
    warn_of_former("codiag.plotting.draw_confusions(model, path)", "codiag.plotting.confusions(model).savefig(path)")
    confusions(model, n_workers=n_workers).savefig(path, dpi=150)


def _draw_matrices(grid: np.ndarray, model: DawidSkene, table: dict[str, np.ndarray], workers: np.ndarray) -> None:
    """Draw confusion matrices, with the names of classes on the left and below the outer ones."""
    panels, n_columns = grid.ravel(), grid.shape[1]
    names = (
        [shown(name, MOST_LETTERS) for name in model.classes_.tolist()] if model.classes_.size <= MOST_CLASSES else []
    )
    box = panels[0].get_window_extent()
    room = min(box.width, box.height) / panels[0].figure.dpi
    upright = max(map(len, names), default=0) * LETTER * len(names) > room
    for place, (axis, worker) in enumerate(zip(panels, workers, strict=False)):
        matrix = model.confusion_matrices_[worker]
        image = axis.imshow(matrix, cmap="magma_r", vmin=0, vmax=1, interpolation="nearest")
        axis.set_title(f"{shown(table['worker'][worker], 12)}: {table['accuracy'][worker]:.2f}", fontsize=9)
        below = names if place + n_columns >= workers.size else [""] * len(names)
        axis.set_xticks(range(len(names)), below, fontsize=8, rotation=90 if upright else 0)
        axis.set_yticks(range(len(names)), names if place % n_columns == 0 else [""] * len(names), fontsize=8)
    for axis in panels[workers.size :]:
        axis.set_axis_off()
    panels[0].figure.colorbar(image, ax=panels.tolist(), shrink=0.8, label="probability")


def _draw_accuracies(axis: Any, table: dict[str, np.ndarray], chance: float) -> None:
    bars = np.stack([table["accuracy"] - table["low"], table["high"] - table["accuracy"]])
    axis.errorbar(table["votes"], table["accuracy"], yerr=bars, fmt="o", color=OURS, ecolor=MUTED, ms=4)
    axis.axhline(chance, color=MUTED, linestyle="--", linewidth=1)
    if table["votes"].max() > MANY_VOTES * max(table["votes"].min(), 1):
        log_axis(axis.xaxis, np.maximum(table["votes"], 1).tolist())
    else:
        axis.xaxis.get_major_locator().set_params(integer=True, nbins=5)
    axis.set(ylim=(0, 1.02), xlabel="votes given", ylabel="accuracy (dashed: chance)")
    axis.set_title("All workers, 90 % intervals", color=INK)
