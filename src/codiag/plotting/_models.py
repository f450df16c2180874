"""Figures of models: communities, a crowd and topics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from codiag._checks import as_number
from codiag.models.crowd import HIGH, LEVEL, LOW, class_names, worker_columns
from codiag.models.jury import dependence_among
from codiag.plotting._style import INK, MAX_LETTERS, MUTED, OURS, PIXELS, color_of, grid_of_axes, plain, shown

if TYPE_CHECKING:
    from codiag.models.communities import MixedMembershipSBM
    from codiag.models.crowd import DawidSkene
    from codiag.models.jury import Jury
    from codiag.models.topics import LatentDirichlet, SingleTopic

MOST_SHOWN = 40
"""Largest number of communities, of topics, and of words of a topic that are drawn."""


def communities(model: MixedMembershipSBM, *, axes: Any = None) -> Any:
    """Draw communities: their sizes, the memberships of nodes, and the rates of links.

    All panels have a row for each community. In the middle, every node is a column, with its memberships as colors.
    Nodes are sorted by their strongest community, so that columns with colors in several rows are nodes between
    communities.

    Parameters
    ----------
    model : MixedMembershipSBM
        Fitted to a graph.
    axes : array of three matplotlib axes, optional
        Axes to draw on; by default a new figure is made.

    Returns
    -------
    matplotlib.figure.Figure
        It belongs to no window; ``figure.savefig("communities.png")`` writes it.

    See Also
    --------
    codiag.models.MixedMembershipSBM : The model that is drawn.

    Examples
    --------
    >>> from codiag.models import MixedMembershipSBM
    >>> from codiag.plotting import communities
    >>> from codiag.synthetic import mixed_membership_graph
    >>> graph = mixed_membership_graph(300, 2, alpha_0=0.1, inside=0.3, outside=0.02, rng=0)
    >>> figure = communities(MixedMembershipSBM(2, random_state=0).fit(graph.adjacency))
    >>> [axis.get_title() for axis in figure.axes[:3]]
    ['Sizes', 'Memberships', 'Links']
    """
    check_is_fitted(model)
    if not hasattr(model, "nodes_"):
        raise TypeError(f"model must be a MixedMembershipSBM; got {type(model).__name__}")
    n_rows = min(model.n_components_, MOST_SHOWN)
    with grid_of_axes(axes, (1, 3), (11.0, 1.9 + 0.2 * max(n_rows, 6))) as (figure, grid):
        sizes, memberships, links = grid[0]
        counts = np.bincount(model.labels_[model.labels_ >= 0], minlength=model.n_components_)[:n_rows]
        sizes.barh(range(n_rows), counts, color=OURS, alpha=0.85, height=0.75)
        plain(sizes)
        means, extent = _sorted_memberships(model, n_rows)
        meaning = "expected weight of a link" if model.weighted_ else "probability of a link"
        _draw_image(memberships, means, 1, extent)
        _draw_image(links, model.connectivity_[:n_rows, :n_rows], float(np.max(model.connectivity_)), None)
        numbers = range(0, n_rows, 1 if n_rows <= 12 else 5)
        links.set_xticks(numbers, [place + 1 for place in numbers])
        names = ("nodes it is the strongest for", "nodes, by their strongest community", f"community ({meaning})")
        for axis, title, name in zip(grid[0], ("Sizes", "Memberships", "Links"), names, strict=True):
            axis.set_title(title, fontsize=10, color=INK)
            axis.set_xlabel(name, fontsize=9)
            axis.set_yticks(numbers, [place + 1 for place in numbers])
            axis.set_ylim(n_rows - 0.5, -0.5)
            axis.tick_params(labelsize=8)
        sizes.set_ylabel("community", fontsize=9)
        if axes is None:
            first = f"the first {n_rows} of " if n_rows < model.n_components_ else ""
            number = f"{model.n_components_:,} communities" if model.n_components_ > 1 else "one community"
            figure.suptitle(f"{model.nodes_.size:,} nodes, {first}{number}", fontsize=11, color=INK)
    return figure


def _sorted_memberships(model: MixedMembershipSBM, n_rows: int) -> tuple[np.ndarray, tuple[float, ...]]:
    """Return memberships of nodes sorted by their strongest community, and then by their membership in it."""
    linked = np.flatnonzero(model.labels_ >= 0)
    strongest = model.memberships_[linked].max(axis=1)
    order = linked[np.lexsort((-strongest, model.labels_[linked]))]
    edges = np.unique(np.linspace(0, order.size, min(order.size, PIXELS) + 1).astype(int))
    sums = np.add.reduceat(model.memberships_[order, :n_rows], edges[:-1], axis=0)
    return (sums / np.diff(edges)[:, None]).T, (0, order.size, n_rows - 0.5, -0.5)


def _draw_image(axis: Any, values: np.ndarray, largest: float, extent: tuple[float, ...] | None) -> None:
    colors: Any = {"cmap": "magma_r", "vmin": 0, "vmax": largest or 1.0, "extent": extent}
    image = axis.imshow(values, aspect="auto", interpolation="nearest", **colors)
    axis.xaxis.get_major_locator().set_params(integer=True, nbins=4)
    axis.figure.colorbar(image, ax=axis, shrink=0.6).ax.tick_params(labelsize=8)


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


def topics(
    model: LatentDirichlet | SingleTopic,
    vocabulary: Sequence[str] | np.ndarray | None = None,
    *,
    n_words: int = 8,
    n_topics: int = 12,
    axes: Any = None,
) -> Any:
    """Draw topics: one panel per topic, with its share of the text and its most probable words.

    Parameters
    ----------
    model : LatentDirichlet or SingleTopic
        Fitted to counts of words.
    vocabulary : sequence of str, optional
        The word of every column of the counts; by default the columns of the data frame that was fitted.
    n_words : int
        Number of words of each topic, at most 40.
    n_topics : int
        Largest number of topics; the most frequent ones are drawn, at most 40 in a new figure.
    axes : array of matplotlib axes, optional
        Axes to draw on, one per topic; by default a new figure is made.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, without a window; ``figure.savefig("topics.png")`` writes it.

    See Also
    --------
    codiag.reports.topics_report : A page about topics.
    codiag.models.LatentDirichlet.top_words : The words alone.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import SingleTopic
    >>> from codiag.plotting import topics
    >>> rng = np.random.default_rng(0)
    >>> shares = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
    >>> counts = np.array([rng.multinomial(10, shares[i]) for i in rng.integers(0, 2, 500)])
    >>> figure = topics(SingleTopic(2, random_state=0).fit(counts), ["bread", "milk", "ball", "goal"])
    >>> len(figure.axes)
    2
    """
    as_number("n_topics", n_topics, integer=True)
    as_number("n_words", n_words, integer=True)
    if not hasattr(model, "top_words"):
        raise TypeError(f"model must be a LatentDirichlet or SingleTopic; got {type(model).__name__}")
    words = model.top_words(vocabulary, min(n_words, MOST_SHOWN))[: min(n_topics, MOST_SHOWN)]
    n_columns = min(4, len(words))
    shape = (math.ceil(len(words) / n_columns), n_columns) if axes is None else (len(words), 1)
    height = 0.19 * len(words[0]) + 0.75
    with grid_of_axes(axes, shape, (2.7 * n_columns + 0.4, height * shape[0] + 0.4)) as (figure, grid):
        for topic, (axis, some) in enumerate(zip(grid.flat, words, strict=False)):
            shares = np.sort(model.components_[topic])[::-1][: len(some)]
            axis.barh(range(len(some)), shares, color=color_of(topic), alpha=0.85, height=0.75)
            plain(axis)
            axis.set_yticks(range(len(some)), [shown(word, MAX_LETTERS) for word in some])
            axis.set_ylim(len(some) - 0.5, -0.5)
            axis.xaxis.get_major_locator().set_params(nbins=3)
            axis.set_title(f"topic {topic + 1}: {100 * float(model.weights_[topic]):.1f} %", fontsize=9, color=INK)
        for axis in grid.ravel()[len(words) :]:
            axis.set_axis_off()
        if axes is None:
            first = "" if len(words) == model.weights_.size else f"the most frequent {len(words)} of "
            title = f"{first}{model.weights_.size} topics, with the shares of their words"
            figure.suptitle(title, fontsize=11, color=INK)
    return figure


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
