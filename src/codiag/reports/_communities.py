"""The report of communities in a graph."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from codiag.plotting import OURS, draw_bars, name_axes
from codiag.reports._html import note, panels, report, sentences, separate_panels, shaded, table

if TYPE_CHECKING:
    from codiag.models.communities import MixedMembershipCommunities

LITTLE_AGREEMENT = 0.8
"""Agreement of partitions below which a fit warns."""
MOST_COMMUNITIES, MOST_MEMBERS, MOST_BETWEEN = 30, 8, 20
"""Largest numbers of communities, of members of each, and of nodes between communities in the report."""


def communities_report(
    model: MixedMembershipCommunities, path: str | Path | None = None, *, title: str = "Communities"
) -> str:
    """Return a page about communities: their sizes and members, the rates of links, and nodes between them.

    Parameters
    ----------
    model : MixedMembershipCommunities
        Fitted to a graph.
    path : str or Path, optional
        A file to write the page to, such as ``"report.html"``; one that exists is replaced.
    title : str
        Title of the page, such as the name of a file.

    Returns
    -------
    str
        HTML with embedded figures, without scripts and without links to other files.

    See Also
    --------
    codiag.models.MixedMembershipCommunities : The model of the report.
    codiag.models.MixedMembershipCommunities.membership_table : The same as a table.

    Examples
    --------
    >>> from codiag.models import MixedMembershipCommunities
    >>> from codiag.reports import communities_report
    >>> from codiag.synthetic import mixed_membership_graph
    >>> graph = mixed_membership_graph(300, 2, alpha_0=0.1, inside=0.3, outside=0.02, seed=0)
    >>> page = communities_report(MixedMembershipCommunities(2, random_state=0).fit(graph.adjacency))
    >>> page.startswith("<!doctype html>"), "Nodes between communities" in page
    (True, True)
    """
    diagnostics, k = model.diagnostics_, model.n_components_
    facts: dict[str, object] = {"nodes": f"{model.nodes_.size:,}", "communities" if k > 1 else "community": k}
    if diagnostics.agreement is not None:
        facts["agreement of partitions"] = f"{diagnostics.agreement:.2f}"
    if diagnostics.standard_error is not None:
        facts["standard error of a membership"] = f"{diagnostics.standard_error:.3f}"
    sections = {
        "Sizes and members": _members(model),
        "Links": _links(model),
        "Nodes between communities": _between(model),
        "What to try": sentences(_advice(model), "Nothing to note: the communities can be used."),
    }
    lead = "Communities that may overlap, estimated from the links alone, the largest first."
    return report(title, lead, facts, sections, path)


def _members(model: MixedMembershipCommunities) -> str:
    """Return sizes with the strongest members, and figures of sizes and of the largest memberships."""
    linked = model.labels_ >= 0
    counts = np.bincount(model.labels_[linked], minlength=model.n_components_)
    overlapping = model.overlapping_labels()[linked].sum(axis=0)
    rows = []
    for community in range(min(model.n_components_, MOST_COMMUNITIES)):
        shares = np.where(linked, model.memberships_[:, community], -1.0)
        names = [str(model.nodes_[node]) for node in np.argsort(-shares, kind="stable")[:MOST_MEMBERS]]
        rows.append((community, counts[community], overlapping[community], ", ".join(names)))
    headings = ["community", "strongest for", "above 0.3", "strongest members"]
    with separate_panels(2) as grid:
        sizes, mixed = grid[0]
        draw_bars(sizes, np.arange(counts.size), counts, OURS)
        name_axes(sizes, "community", "nodes it is the strongest for")
        sizes.xaxis.get_major_locator().set_params(integer=True)
        mixed.hist(model.memberships_[linked].max(axis=1), bins=np.linspace(0, 1, 21), color=OURS, alpha=0.85)
        mixed.set_xlim(0, 1)
        name_axes(mixed, "largest membership of a node", "nodes")
        descriptions = [
            "Number of nodes that each community is strongest for",
            "Number of nodes by their largest membership",
        ]
        caption = "Sizes of the communities, and largest memberships of nodes: at 1 they belong to one community alone."
        figures = panels(grid, descriptions, caption)
    n_more = model.n_components_ - MOST_COMMUNITIES
    more = note(f"{n_more} smaller communities are not shown.") if n_more > 0 else ""
    return table("Communities", headings, rows, words=["strongest members"]) + more + figures


def _links(model: MixedMembershipCommunities) -> str:
    n = min(model.n_components_, MOST_COMMUNITIES)
    rates = np.asarray(model.connectivity_)[:n, :n]
    names = list(map(str, range(n)))
    title = "Probability of a link between nodes of two communities, by the fitted model"
    if model.weighted_:
        title = "Expected weight of the link between nodes of two communities, by the fitted model"
    return shaded(title, names, names, rates.tolist(), most=float(np.max(rates)), form=".2g")


def _between(model: MixedMembershipCommunities) -> str:
    """Return the nodes with the smallest largest membership."""
    linked = np.flatnonzero(model.labels_ >= 0)
    if model.n_components_ == 1:
        return sentences(["There is one community."])
    order = np.argsort(model.memberships_[linked].max(axis=1), kind="stable")[:MOST_BETWEEN]
    rows = []
    for node in linked[order]:
        shares = model.memberships_[node]
        first, second = np.argsort(-shares, kind="stable")[:2]
        rows.append((str(model.nodes_[node]), first, f"{shares[first]:.2f}", second, f"{shares[second]:.2f}"))
    headings = ["node", "strongest", "membership", "second", "its membership"]
    return table("Nodes between communities", headings, rows, words=["node"])


def _advice(model: MixedMembershipCommunities) -> list[str]:
    advice, diagnostics, k = [], model.diagnostics_, model.n_components_
    if diagnostics.agreement is not None and diagnostics.agreement < LITTLE_AGREEMENT:
        advice.append(
            f"Partitions of the nodes agree little on {k} communities ({diagnostics.agreement:.2f} of 1), and other "
            "seeds may find others: ask for fewer communities, or for more partitions."
        )
    empty = np.setdiff1d(np.arange(k), model.labels_)
    if empty.size:
        advice.append(f"{empty.size} of the communities are the strongest of no node: ask for {k - empty.size}.")
    rates = np.asarray(model.connectivity_)
    others = np.where(np.eye(k, dtype=bool), -np.inf, rates).max(axis=1)
    loose = np.flatnonzero(np.diag(rates) < others)
    if loose.size:
        listed = ", ".join(map(str, loose[:10]))
        advice.append(
            f"Members of {listed} are linked with another community more than with each other: roles rather than "
            "groups, or parts of one community. Try a smaller number of communities."
        )
    if diagnostics.isolated:
        advice.append(f"{diagnostics.isolated:,} nodes have no links, and belong to no community.")
    return advice
