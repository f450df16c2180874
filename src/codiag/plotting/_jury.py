"""The figure of a jury: which judges are correlated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from codiag.models.crowd import worker_columns
from codiag.models.jury import dependence_among
from codiag.plotting._style import INK, MAX_LETTERS, MUTED, grid_of_axes, shown

if TYPE_CHECKING:
    from codiag.models.jury import Jury

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
