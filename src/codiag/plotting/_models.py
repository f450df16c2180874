"""Figures of models: communities, a crowd and topics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from codiag._checks import as_number
from codiag.models.crowd import HIGH, LEVEL, LOW, worker_columns
from codiag.plotting._style import (
    INK,
    MUTED,
    OURS,
    color_of,
    families,
    grid_of_axes,
    log_axis,
    paper,
    plain,
    shown,
    tell_without_font,
)

if TYPE_CHECKING:
    from codiag.models.communities import MixedMembershipCommunities
    from codiag.models.crowd import DawidSkene
    from codiag.models.topics import LatentDirichlet, SingleTopic

MOST_SHOWN, MOST_ANNOTATED = 40, 8
"""Largest numbers of communities that are drawn, and whose rates are written into the cells."""
BAR_HEIGHT = 2.4
"""Largest height of a color bar, in inches."""
MOST_COLUMNS = 1000
"""Largest number of columns of the image of memberships; for more nodes, means of neighbors are drawn."""


def communities(model: MixedMembershipCommunities, *, axes: Any = None) -> Any:
    """Draw communities: their sizes, the memberships of nodes, and the rates of links.

    All panels have a row for each community. In the middle, every node is a column, with its memberships as colors.
    Nodes are sorted by their strongest community, so that columns with colors in several rows are nodes between
    communities.

    Parameters
    ----------
    model : MixedMembershipCommunities
        Fitted to a graph.
    axes : array of three matplotlib axes, optional
        Axes to draw on; by default a new figure is made.

    Returns
    -------
    matplotlib.figure.Figure
        It belongs to no window; ``figure.savefig("communities.png")`` writes it.

    See Also
    --------
    codiag.reports.communities_report : A page about communities.
    codiag.models.MixedMembershipCommunities : The model that is drawn.

    Examples
    --------
    >>> from codiag.models import MixedMembershipCommunities
    >>> from codiag.plotting import communities
    >>> from codiag.synthetic import mixed_membership_graph
    >>> graph = mixed_membership_graph(300, 2, alpha_0=0.1, inside=0.3, outside=0.02, seed=0)
    >>> figure = communities(MixedMembershipCommunities(2, random_state=0).fit(graph.adjacency))
    >>> [axis.get_title() for axis in figure.axes[:3]]
    ['Sizes', 'Memberships', 'Links']
    """
    check_is_fitted(model)
    if not hasattr(model, "nodes_"):
        raise TypeError(f"model must be a MixedMembershipCommunities; got {type(model).__name__}")
    n_rows = min(model.n_components_, MOST_SHOWN)
    with grid_of_axes(axes, (1, 3), (11.0, 1.9 + 0.2 * max(n_rows, 6))) as (figure, grid):
        sizes, memberships, links = grid[0]
        _draw_sizes(sizes, model, n_rows)
        _draw_memberships(memberships, model, n_rows)
        _draw_links(links, model, n_rows)
        for axis, title in zip(grid[0], ("Sizes", "Memberships", "Links"), strict=True):
            axis.set_title(title, fontsize=10, color=INK)
            axis.set_yticks(range(0, n_rows, 1 if n_rows <= 20 else 5))
            axis.set_ylim(n_rows - 0.5, -0.5)
            axis.tick_params(labelsize=8)
        sizes.set_ylabel("community", fontsize=9)
        if axes is None:
            number = f"{model.n_components_:,} communities" if model.n_components_ > 1 else "one community"
            first = f"the first {n_rows} of " if n_rows < model.n_components_ else ""
            figure.suptitle(f"{model.nodes_.size:,} nodes, {first}{number}", fontsize=11, color=INK)
    return figure


def _draw_sizes(axis: Any, model: MixedMembershipCommunities, n_rows: int) -> None:
    sizes = np.bincount(model.labels_[model.labels_ >= 0], minlength=model.n_components_)[:n_rows]
    axis.barh(range(n_rows), sizes, color=OURS, alpha=0.85, height=0.75)
    plain(axis)
    axis.xaxis.get_major_locator().set_params(integer=True, nbins=4)
    axis.set_xlabel("nodes it is the strongest for", fontsize=9)


def _draw_memberships(axis: Any, model: MixedMembershipCommunities, n_rows: int) -> None:
    """Draw nodes sorted by their strongest community, and then by their membership in it."""
    linked = np.flatnonzero(model.labels_ >= 0)
    strongest = model.memberships_[linked].max(axis=1)
    order = linked[np.lexsort((-strongest, model.labels_[linked]))]
    edges = np.unique(np.linspace(0, order.size, min(order.size, MOST_COLUMNS) + 1).astype(int))
    sums = np.add.reduceat(model.memberships_[order, :n_rows], edges[:-1], axis=0)
    means = (sums / np.diff(edges)[:, None]).T
    extent = (0, order.size, n_rows - 0.5, -0.5)
    image = axis.imshow(means, aspect="auto", cmap="magma_r", vmin=0, vmax=1, extent=extent, interpolation="nearest")
    axis.xaxis.get_major_locator().set_params(integer=True, nbins=4)
    axis.set_xlabel("nodes, by their strongest community", fontsize=9)
    _add_color_bar(axis, image)


def _draw_links(axis: Any, model: MixedMembershipCommunities, n_rows: int) -> None:
    rates = np.asarray(model.connectivity_)[:n_rows, :n_rows]
    largest = float(np.max(rates)) or 1.0
    image = axis.imshow(rates, aspect="auto", cmap="magma_r", vmin=0, vmax=largest, interpolation="nearest")
    for row, column in np.ndindex(rates.shape) if n_rows <= MOST_ANNOTATED else ():
        color = "white" if rates[row, column] > largest / 2 else INK
        axis.text(column, row, f"{rates[row, column]:.2g}", ha="center", va="center", fontsize=8, color=color)
    axis.set_xticks(range(0, n_rows, 1 if n_rows <= 12 else 5))
    meaning = "expected weight of a link" if model.weighted_ else "probability of a link"
    axis.set_xlabel(f"community ({meaning})", fontsize=9)
    _add_color_bar(axis, image)


def _add_color_bar(axis: Any, image: Any) -> None:
    shrink = min(0.8, BAR_HEIGHT / float(axis.figure.get_size_inches()[1]))
    bar = axis.figure.colorbar(image, ax=axis, shrink=shrink)
    bar.locator.set_params(nbins=4)
    bar.ax.tick_params(labelsize=8)


MOST_LETTERS, MOST_CLASSES = 12, 12
"""Letters of a name that are shown, and number of classes up to which these are named."""
LETTER = 0.065
"""Width of a letter, in inches."""
MANY_VOTES = 20
"""Ratio of the largest to the smallest number of votes above which the axis of votes is logarithmic."""


def confusions(model: DawidSkene, *, n_workers: int = 12, sort: str = "votes", axes: Any = None) -> Any:
    """Draw a crowd: confusion matrices of the busiest and of the least accurate workers, and the accuracy of all.

    Confusion matrices are as in scikit-learn, normalized over the true class: a row for each true class, a column for
    each given label.

    Parameters
    ----------
    model : DawidSkene
        Fitted to votes.
    n_workers : int
        Largest number of confusion matrices that are drawn. If there are more workers, half are those of the workers
        with most votes, and half those of the least accurate.
    sort : {"votes", "accuracy"}
        The order of the matrices: those of the workers with most votes first, or of the least accurate.
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
    >>> votes = crowd_votes(200, worker_confusions(9, 2, seed=0), seed=1).votes
    >>> figure = confusions(DawidSkene(random_state=0).fit(votes), n_workers=4)
    >>> len(figure.axes)     # two matrices of the busiest and two of the worst, their color bar, and the accuracies
    6
    """
    check_is_fitted(model)
    if not hasattr(model, "confusion_"):
        raise TypeError(f"model must be a DawidSkene or a Jury; got {type(model).__name__}")
    as_number("n_workers", n_workers, integer=True)
    table = worker_columns(model)
    groups = _groups_of_workers(table, int(n_workers), sort)
    drawn = np.concatenate(groups)
    if axes is not None:
        with grid_of_axes(axes, (1, drawn.size + 1), (1.0, 1.0)) as (figure, grid):
            _draw_matrices(grid[:, :-1], model, table, [drawn])
            _draw_accuracies(grid[0, -1], table, 1 / model.classes_.size)
        return figure
    largest = max(group.size for group in groups)
    n_columns = largest if largest <= 3 else min(4, math.ceil(math.sqrt(largest)))
    with paper((12.5, 6.2)) as figure:
        left, right = np.asarray(figure.subfigures(1, 2, width_ratios=(1.5, 1)))
        left.suptitle(f"{_title_of_groups(groups, sort)}\ntrue class (rows), label given (columns)", color=INK)
        grid = left.subplots(len(groups) * math.ceil(largest / n_columns), n_columns, squeeze=False)
        _draw_matrices(grid, model, table, groups)
        _draw_accuracies(right.subplots(), table, 1 / model.classes_.size)
        tell_without_font(left, [*model.classes_.tolist(), *table["worker"][drawn].tolist()])
    return figure


def sorted_workers(workers: Mapping[str, np.ndarray], sort: str) -> np.ndarray:
    """Return the places of workers: those with most votes first, or the least accurate first."""
    if sort not in ("votes", "accuracy"):
        raise ValueError(f"sort must be 'votes' or 'accuracy'; got {sort!r}")
    return np.argsort(-workers["votes"] if sort == "votes" else workers["accuracy"], kind="stable")


def _groups_of_workers(workers: Mapping[str, np.ndarray], most: int, sort: str) -> list[np.ndarray]:
    """Return the places of all workers, or of those with most votes and of the least accurate, each in one group."""
    order = sorted_workers(workers, sort)
    if order.size <= most or most == 1:
        return [order[:most]]
    first = order[: most - most // 2]
    others = sorted_workers(workers, "accuracy" if sort == "votes" else "votes")
    return [first, others[~np.isin(others, first)][: most // 2]]


def _title_of_groups(groups: Sequence[np.ndarray], sort: str) -> str:
    if len(groups) == 1:
        return "Workers with most votes first" if sort == "votes" else "Least accurate workers first"
    names = ["most votes", "least accuracy"]
    above, below = names if sort == "votes" else names[::-1]
    return f"Workers with {above} (above) and with {below} (below)"


def _draw_matrices(
    grid: np.ndarray, model: DawidSkene, table: Mapping[str, np.ndarray], groups: Sequence[np.ndarray]
) -> None:
    """Draw confusion matrices, each group in rows of its own, with names of classes on the left and below."""
    names = (
        [shown(name, MOST_LETTERS) for name in model.classes_.tolist()] if model.classes_.size <= MOST_CLASSES else []
    )
    box = grid[0, 0].get_window_extent()
    room = min(box.width, box.height) / grid[0, 0].figure.dpi
    upright = max(map(len, names), default=0) * LETTER * len(names) > room
    blank, rotation = [""] * len(names), 90 if upright else 0
    for rows, workers in zip(np.array_split(grid, len(groups)), groups, strict=True):
        for place, (axis, worker) in enumerate(zip(rows.flat, workers, strict=False)):
            matrix = model._confusions[worker].T
            image = axis.imshow(matrix, cmap="magma_r", vmin=0, vmax=1, interpolation="nearest")
            axis.set_title(f"{shown(table['worker'][worker], 12)}: {table['accuracy'][worker]:.2f}", fontsize=9)
            below = names if place + grid.shape[1] >= workers.size else blank
            axis.set_xticks(range(len(names)), below, fontsize=8, rotation=rotation)
            axis.set_yticks(range(len(names)), names if place % grid.shape[1] == 0 else blank, fontsize=8)
        for axis in rows.ravel()[workers.size :]:
            axis.set_axis_off()
    grid[0, 0].figure.colorbar(image, ax=grid.ravel().tolist(), shrink=0.8, label="probability")


def _draw_accuracies(axis: Any, table: Mapping[str, np.ndarray], chance: float) -> None:
    bars = np.stack([table["accuracy"] - table[LOW], table[HIGH] - table["accuracy"]])
    axis.errorbar(table["votes"], table["accuracy"], yerr=bars, fmt="o", color=OURS, ecolor=MUTED, ms=4)
    axis.axhline(chance, color=MUTED, linestyle="--", linewidth=1)
    if table["votes"].max() > MANY_VOTES * max(table["votes"].min(), 1):
        log_axis(axis.xaxis, np.maximum(table["votes"], 1).tolist())
    else:
        axis.xaxis.get_major_locator().set_params(integer=True, nbins=5)
    axis.set(ylim=(0, 1.02), xlabel="votes given", ylabel="accuracy (dashed: chance)")
    axis.set_title(f"All workers, {round(100 * LEVEL)} % intervals", color=INK)


MAX_PANELS, MAX_WORDS, MAX_COLUMNS = 40, 40, 4
"""Largest numbers of topics, of words of a topic, and of panels in a row."""
WIDTH, MAX_LETTERS = 2.7, 18
"""Width of a panel in inches, and largest number of letters of a word; longer words are shortened."""


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
    words = model.top_words(vocabulary, min(n_words, MAX_WORDS))
    k = len(words)
    n_drawn = min(k, int(n_topics)) if axes is not None else min(k, int(n_topics), MAX_PANELS)
    n_columns = n_drawn if n_drawn <= MAX_COLUMNS else min(MAX_COLUMNS, math.ceil(math.sqrt(n_drawn)))
    shape = (math.ceil(n_drawn / n_columns), n_columns) if axes is None else (n_drawn, 1)
    height = 0.19 * len(words[0]) + 0.75
    with grid_of_axes(axes, shape, (WIDTH * n_columns + 0.4, height * shape[0] + 0.4)) as (figure, grid):
        for topic, axis in enumerate(grid.flat):
            if topic < n_drawn:
                _draw_topic(axis, model, topic, words[topic])
            else:
                axis.set_axis_off()
        if axes is None:
            first = "" if n_drawn == k else f"the most frequent {n_drawn} of "
            figure.suptitle(f"{first}{k} topics, with the shares of their words", fontsize=11, color=INK)
            tell_without_font(figure, [word for of_topic in words for word in of_topic])
    return figure


def _draw_topic(axis: Any, model: LatentDirichlet | SingleTopic, topic: int, words: Sequence[str]) -> None:
    shares = np.sort(model.components_[topic])[::-1][: len(words)]
    axis.barh(range(len(words)), shares, color=color_of(topic), alpha=0.85, height=0.75)
    plain(axis)
    axis.set_yticks(range(len(words)), [shown(word, MAX_LETTERS) for word in words], fontfamily=families())
    axis.set_ylim(len(words) - 0.5, -0.5)
    axis.xaxis.get_major_locator().set_params(nbins=3)
    axis.set_title(f"topic {topic}: {100 * float(model.weights_[topic]):.1f} %", fontsize=9, color=INK)
