"""The figure of communities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from codiag.plotting._style import INK, OURS, grid_of_axes, plain

if TYPE_CHECKING:
    from codiag.models.communities import MixedMembershipCommunities

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
