"""Communities: simulated graphs, dormitories, a large graph.

``CODIAG_DATA_DIR=... python -m benchmarks.communities [simulated dormitories large]``

The experiment of the paper: ``python -m experiments run communities``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import psi
from sklearn.metrics import normalized_mutual_info_score

from benchmarks.measure import megabytes, run_parts, table, timed
from codiag.datasets import load_facebook
from codiag.metrics import overlapping_nmi
from codiag.models import MixedMembershipSBM
from codiag.synthetic import mixed_membership_graph

SIMULATED = (
    (1000, 5, 0.2, 0.3, 0.02),
    (2000, 5, 0.2, 0.3, 0.02),
    (2000, 10, 0.2, 0.3, 0.02),
    (5000, 10, 0.2, 0.2, 0.01),
    (1000, 5, 0.3, 0.3, 0.02),
    (2000, 10, 0.3, 0.3, 0.02),
    (5000, 10, 0.3, 0.2, 0.01),
    (2000, 5, 1.0, 0.3, 0.02),
)
"""Nodes, communities, alpha_0, and the chance of an edge inside and outside of a community."""


def leiden(adjacency: sparse.csr_array, seed: int = 0) -> np.ndarray:
    """Return the partition of Leiden by modularity."""
    import igraph
    import leidenalg

    rows, columns = sparse.triu(adjacency).nonzero()
    graph = igraph.Graph(n=adjacency.shape[0], edges=np.stack([rows, columns], axis=1).tolist())
    found = leidenalg.find_partition(graph, leidenalg.ModularityVertexPartition, seed=seed)
    return np.array(found.membership)


def oracle(graph: Any, alpha_0: float) -> np.ndarray:
    """Return memberships by variational steps from the true connectivity, prior and memberships of all other nodes."""
    links, prior = sparse.coo_array(graph.adjacency), alpha_0 / graph.memberships.shape[1]
    others = graph.memberships @ graph.connectivity
    counts = graph.memberships * np.asarray(links.sum(axis=1)).reshape(-1, 1)
    for _ in range(30):
        loads = np.exp(psi(counts + prior))
        means = np.einsum("ek,ek->e", loads[links.row], others[links.col])
        counts = loads * (sparse.csr_array((1 / means, (links.row, links.col)), shape=links.shape) @ others)
    return (counts + prior) / (counts + prior).sum(axis=1, keepdims=True)


def simulated(threshold: float = 0.3) -> str:
    """Mixed memberships whose truth is known."""
    rows = []
    for n, k, alpha_0, inside, outside in SIMULATED:
        names = ("ours", "plain", "twenty", "oracle", "leiden", "seconds")
        scores: dict[str, list[float]] = {name: [] for name in names}
        for seed in range(5):
            graph = mixed_membership_graph(n, k, alpha_0=alpha_0, inside=inside, outside=outside, rng=seed)
            truth = graph.memberships >= threshold
            for name, options in (("ours", {}), ("plain", {"degree_corrected": False}), ("twenty", {"max_iter": 20})):
                model = MixedMembershipSBM(k, random_state=seed, **options)
                seconds = timed(partial(model.fit, graph.adjacency))[1]
                scores[name].append(overlapping_nmi(model.overlapping_labels(threshold), truth))
                if name == "ours":
                    scores["seconds"].append(seconds)
            scores["oracle"].append(overlapping_nmi(oracle(graph, alpha_0) >= threshold, truth))
            labels = leiden(graph.adjacency, seed)
            scores["leiden"].append(overlapping_nmi(np.eye(labels.max() + 1)[labels], truth))
        rows.append((f"{n:,}", k, alpha_0, f"{inside}, {outside}", *(f"{median(scores[name]):.3f}" for name in scores)))
    headings = ("nodes", "k", "alpha_0", "inside, outside", "codiag", "not degree-corrected", "20 rounds", "oracle")
    return (
        "## Simulated mixed memberships\nOverlapping NMI (McDaid, Greene & Hurley), a node belonging where its "
        f"membership is {threshold} or more, true or estimated; median of five graphs, alpha_0 not given. Oracle: "
        "every node given the true connectivity, prior and memberships of all others. Leiden finds no overlaps, and "
        "its own number of communities; s: seconds of codiag.\n\n" + table((*headings, "Leiden", "s"), rows)
    )


def dormitories() -> str:
    """Dormitories and years of real schools, from the strongest membership."""
    rows: list[tuple[object, ...]] = []
    for school, name, sizes in (
        ("Caltech36", "dorm", (7, 8, 10)),
        ("Simmons81", "year", (5, 8)),
        ("Amherst41", "year", (5, 8)),
    ):
        data = load_facebook(school)
        truth = data.attributes[name]
        known = truth > 0

        def score(labels: np.ndarray, truth: np.ndarray = truth, known: np.ndarray = known) -> float:
            return float(normalized_mutual_info_score(truth[known], labels[known]))

        baselines = [leiden(data.adjacency, seed) for seed in range(10)]
        found = [score(labels) for labels in baselines]
        rows.append((school, name, "", "Leiden", _spread(found), "", f"{baselines[0].max() + 1} communities"))
        for k in sizes:
            for corrected in (True, False):
                for method in (None, "nojd1", "ojd1", "tpm"):
                    pairs = []
                    for seed in range(10):
                        options: Any = {"method": method, "degree_corrected": corrected, "random_state": seed}
                        model = MixedMembershipSBM(k, **options).fit(data.adjacency)
                        moments = MixedMembershipSBM(k, max_iter=0, **options).fit(data.adjacency)
                        pairs.append([score(moments.labels_), score(model.labels_)])
                    before, after = np.array(pairs).T
                    kind = "degree-corrected" if corrected else "plain"
                    rows.append((school, name, k, method or "default", _spread(before), _spread(after), kind))
    return (
        "## Real schools\nNMI of the strongest membership with an attribute, over nodes for which it is known: median "
        "(range) of ten seeds, of moments alone and after five rounds of variational steps.\n\n"
        + table(("school", "attribute", "k", "method", "moments", "after steps", ""), rows)
    )


def _spread(values: list[float] | np.ndarray) -> str:
    return f"{np.median(values):.3f} ({np.min(values):.3f}-{np.max(values):.3f})"


def large() -> str:
    """A hundred thousand nodes, ten million edges."""
    rng = np.random.default_rng(0)
    n, k, n_edges = 100_000, 20, 10_000_000
    labels = rng.integers(0, k, n)
    members = [np.flatnonzero(labels == place) for place in range(k)]
    inside = [rng.choice(own, (int(0.6 * n_edges / k), 2)) for own in members]
    edges = np.concatenate([*inside, rng.integers(0, n, (int(0.4 * n_edges), 2))])
    before = megabytes()
    model, seconds = timed(lambda: MixedMembershipSBM(k, random_state=0).fit(edges))
    after = megabytes()
    score = normalized_mutual_info_score(labels[model.nodes_], model.labels_)
    return (
        f"## A large graph\n{n:,} nodes and {n_edges:,} edges, {k} communities, from an edge list: {seconds:.0f} s, "
        f"{after:.0f} MB at most ({before:.0f} before fitting), NMI {score:.3f}."
    )


PARTS: dict[str, Callable[[], str]] = {
    "simulated": simulated,
    "dormitories": dormitories,
    "large": large,
}

if __name__ == "__main__":
    run_parts("communities", PARTS)
