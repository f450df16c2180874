"""Figures of models: communities, a crowd and topics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from codiag._checks import as_number
from codiag.models.crowd import HIGH, LEVEL, LOW, class_names, worker_columns
from codiag.models.jury import dependence_among
from codiag.plotting._style import INK, MAX_LETTERS, MUTED, OURS, grid_of_axes, shown

if TYPE_CHECKING:
    from codiag.models.crowd import DawidSkene
    from codiag.models.jury import Jury

MOST_SHOWN = 40
"""Largest number of communities, of topics, and of words of a topic that are drawn."""


def confusions(model: DawidSkene, *, n_workers: int = 12, axes: Any = None) -> Any:
    """Draw a crowd: confusion matrices of the workers with most votes, and the accuracy of all.

    Confusion matrices are as in scikit-learn, normalized over the true class: a row for each true class, a column for
    each given label.

    Parameters
    ----------
    model : DawidSkene
        Fitted to votes.
    n_workers : int
        Largest number of confusion matrices that are drawn.
    axes : array of matplotlib axes, optional
        Axes to draw on: one for each confusion matrix, and one for the accuracies. By default a new figure is made.

    Returns
    -------
    matplotlib.figure.Figure
        It belongs to no window; ``figure.savefig("crowd.png")`` writes it.

    See Also
    --------
    codiag.models.DawidSkene : The model that is drawn.

    Examples
    --------
    >>> from codiag.models import DawidSkene
    >>> from codiag.plotting import confusions
    >>> from codiag.synthetic import crowd_votes, worker_confusions
    >>> votes = crowd_votes(200, worker_confusions(9, 2, rng=0), rng=1).votes
    >>> figure = confusions(DawidSkene(random_state=0).fit(votes), n_workers=4)
    >>> len(figure.axes)     # four matrices, the accuracies, an empty panel, and the color bar
    7
    """
    check_is_fitted(model)
    if not hasattr(model, "confusion_matrices_"):
        raise TypeError(f"model must be a DawidSkene or a Jury; got {type(model).__name__}")
    as_number("n_workers", n_workers, integer=True)
    table = worker_columns(model)
    drawn = np.argsort(-table["votes"], kind="stable")[:n_workers]
    n_columns = min(4, math.ceil(math.sqrt(drawn.size + 1)))
    shape = (math.ceil((drawn.size + 1) / n_columns), n_columns) if axes is None else (1, drawn.size + 1)
    names = class_names(model.classes_)
    named = [shown(name, MAX_LETTERS) for name in names] if len(names) <= 12 else []
    with grid_of_axes(axes, shape, (3.0 * shape[1], 2.8 * shape[0])) as (figure, grid):
        for axis, worker in zip(grid.flat, drawn, strict=False):
            matrix = np.stack([[table[f"p({given}|{true})"][worker] for given in names] for true in names])
            image = axis.imshow(matrix, cmap="magma_r", vmin=0, vmax=1, interpolation="nearest")
            title = f"{shown(table['worker'][worker], MAX_LETTERS)}: {table['accuracy'][worker]:.2f}"
            axis.set_title(title, fontsize=9)
            axis.set_xticks(range(len(named)), named, fontsize=8, rotation=90)
            axis.set_yticks(range(len(named)), named, fontsize=8)
        _draw_accuracies(grid.flat[drawn.size], table, 1 / model.classes_.size)
        for axis in grid.ravel()[drawn.size + 1 :]:
            axis.set_axis_off()
        figure.colorbar(image, ax=grid.ravel().tolist(), shrink=0.6, label="probability")
        if axes is None:
            figure.suptitle("True class (rows) and label given (columns), workers with most votes first", color=INK)
    return figure


def _draw_accuracies(axis: Any, table: dict[str, np.ndarray], chance: float) -> None:
    bars = np.stack([table["accuracy"] - table[LOW], table[HIGH] - table["accuracy"]])
    axis.errorbar(table["votes"], table["accuracy"], yerr=np.maximum(bars, 0), fmt="o", color=OURS, ecolor=MUTED, ms=4)
    axis.axhline(chance, color=MUTED, linestyle="--", linewidth=1)
    axis.xaxis.get_major_locator().set_params(integer=True, nbins=3)
    axis.set(ylim=(0, 1.02), xlabel="votes given", ylabel="accuracy (dashed: chance)")
    axis.set_title(f"All workers, {round(100 * LEVEL)} % intervals", fontsize=9)


MOST_NAMED, MOST_ACROSS, MOST_WRITTEN = 40, 12, 8
"""Largest numbers of judges that are named on the left and below, and whose correlations are written into the cells."""


def _by_cluster(clusters: np.ndarray) -> np.ndarray:
    """Return the order of judges by the numbers of their clusters; those who stand alone, cluster 0, are last."""
    return np.argsort(np.where(clusters == 0, np.max(clusters, initial=0) + 1, clusters), kind="stable")


def dependence_height(n_workers: int) -> float:
    """Return the height in inches at which a figure of this number of judges can be read."""
    return 1.5 + 0.17 * min(max(n_workers, 8), MOST_NAMED) + (0.6 if n_workers <= MOST_ACROSS else 0.0)


def dependence(model: Jury, *, axes: Any = None) -> Any:
    """Draw which judges are correlated: correlations of their answers given the labels.

    Judges are sorted by cluster, and clusters are framed. Zero, for judges with independent errors, is white; gray are
    pairs that share too few tasks.

    Parameters
    ----------
    model : Jury
        Fitted to votes.
    axes : matplotlib axes, optional
        Axes to draw on; by default a new figure is made.

    Returns
    -------
    matplotlib.figure.Figure
        It belongs to no window; ``figure.savefig("dependence.png")`` writes it.

    See Also
    --------
    codiag.reports.jury_report : A page about judges.
    codiag.plotting.confusions : The confusion matrices of the judges.

    Examples
    --------
    >>> from codiag.models import Jury
    >>> from codiag.plotting import dependence
    >>> from codiag.synthetic import crowd_votes, worker_confusions
    >>> votes = crowd_votes(200, worker_confusions(9, 2, rng=0), rng=1).votes
    >>> figure = dependence(Jury(random_state=0).fit(votes))
    >>> figure.axes[0].images[0].get_array().shape
    (9, 9)
    """
    check_is_fitted(model)
    if not hasattr(model, "n_effective_annotators_"):
        raise TypeError(f"model must be a Jury; got {type(model).__name__}")
    clusters = worker_columns(model)["cluster"]
    order = _by_cluster(clusters)
    with grid_of_axes(axes, (1, 1), (6.0, dependence_height(order.size))) as (figure, grid):
        _draw_matrix(grid[0, 0], dependence_among(model, order))
        _name_judges(grid[0, 0], model.workers_[order].tolist())
        _frame_clusters(grid[0, 0], clusters[order])
        if axes is None:
            figure.suptitle("Correlation of judges beyond the labels", fontsize=11, color=INK)
    return figure


def _draw_matrix(axis: Any, matrix: np.ndarray) -> None:
    from matplotlib import colormaps

    image = axis.imshow(
        matrix,
        cmap=colormaps["RdBu_r"].with_extremes(bad=MUTED),
        vmin=-1,
        vmax=1,
        aspect="auto",
        interpolation="nearest",
    )
    for row, column in np.ndindex(matrix.shape) if len(matrix) <= MOST_WRITTEN else ():
        value = matrix[row, column]
        if row != column and not np.isnan(value):
            color = "white" if abs(value) > 0.6 else INK
            axis.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=color)
    bar = axis.figure.colorbar(image, ax=axis, orientation="horizontal", shrink=0.8, aspect=30, pad=0.03)
    bar.set_ticks([-1, 0, 1], labels=["opposite", "independent", "the same"])
    bar.ax.tick_params(labelsize=8)


def _name_judges(axis: Any, names: list[Any]) -> None:
    labels = [shown(name, MAX_LETTERS) for name in names]
    axis.tick_params(length=0, labelsize=8)
    axis.xaxis.tick_top()
    axis.spines[:].set_visible(False)
    for ticks, most, angle in ((axis.set_yticks, MOST_NAMED, 0), (axis.set_xticks, MOST_ACROSS, 90)):
        named = labels if len(labels) <= most else []
        ticks(range(len(named)), named, rotation=angle)


def _frame_clusters(axis: Any, clusters: np.ndarray) -> None:
    from matplotlib.patches import Rectangle

    for cluster in np.unique(clusters[clusters > 0]):
        members = np.flatnonzero(clusters == cluster)
        corner, side = members[0] - 0.5, members.size
        axis.add_patch(Rectangle((corner, corner), side, side, fill=False, edgecolor=INK, linewidth=1.5, clip_on=False))
