"""Graphs of all kinds: what must contain whatever nodes are called, however they are written, and however odd."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from assertions import assert_same_to_rounding
from codiag.models import MixedMembershipSBM
from codiag.models.communities import as_network, connectivity


def blocks(sizes, inside, outside, seed=0):
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    rates = np.where(groups[:, None] == groups, inside, outside)
    links = np.triu(rng.random(rates.shape) < rates, 1)
    return (links + links.T).astype(float)


def ring_of_cliques():
    matrix = np.kron(np.eye(4), 1 - np.eye(6))
    for clique in range(4):
        one, other = 6 * clique, (6 * clique + 9) % 24
        matrix[one, other] = matrix[other, one] = 1
    return matrix


def weighted(n=20, seed=0):
    rng = np.random.default_rng(seed)
    weights = blocks([n // 2, n // 2], 1.0, 0.1, seed) * rng.integers(1, 10, (n, n))
    return np.triu(weights, 1) + np.triu(weights, 1).T


def cycle(n):
    return sum(np.roll(np.eye(n), shift, axis=1) for shift in (1, -1))


GRAPHS = {
    "blocks": blocks([15, 15], 0.6, 0.1),
    "no blocks": blocks([40], 0.15, 0.15),
    "sparse": blocks([60], 0.03, 0.03),
    "cycle": cycle(24),
    "cliques": np.kron(np.eye(3), 1 - np.eye(6)),
    "ring of cliques": ring_of_cliques(),
    "weights": weighted(),
    "star": np.pad(np.zeros((19, 19)), ((1, 0), (1, 0)), constant_values=1) - np.diag(np.eye(20)[0]),
    "bipartite": np.kron(1 - np.eye(2), np.ones((8, 8))),
}
MANY = ("blocks", "no blocks", "sparse", "ring of cliques", "weights")
"""Where four communities can be told apart, or seem so."""


def test_the_order_of_edges_and_their_ends_makes_no_difference():
    rng = np.random.default_rng(1)
    matrix = GRAPHS["blocks"]
    names = np.array([f"node {place}" for place in range(matrix.shape[0])])
    edges = names[np.stack(np.triu(matrix).nonzero(), axis=1)]
    model, other = (
        MixedMembershipSBM(2, n_partitions=5, random_state=0).fit(pairs)
        for pairs in (edges, rng.permuted(rng.permutation(edges), axis=1))
    )
    assert_array_equal(other.nodes_, model.nodes_)
    assert_same_to_rounding(other.memberships_, model.memberships_)
    assert_same_to_rounding(other.connectivity_, model.connectivity_)


def test_nodes_without_links_change_nothing():
    matrix = blocks([15, 15], 0.6, 0.1)
    plain = MixedMembershipSBM(2, random_state=0).fit(matrix)
    more = MixedMembershipSBM(2, random_state=0).fit(np.pad(matrix, (3, 4)))
    assert_same_to_rounding(more.memberships_[3:-4], plain.memberships_)
    assert_same_to_rounding(more.connectivity_, plain.connectivity_)
    assert set(more.labels_[[0, 1, 2, -1]]) == {-1}


@pytest.mark.filterwarnings("ignore:.*(partitions of the nodes|n_components)")
@pytest.mark.parametrize(("name", "k"), [(name, 2) for name in GRAPHS if name != "star"] + [(name, 4) for name in MANY])
def test_rates_are_between_nothing_and_the_largest_weight(name, k):
    model = MixedMembershipSBM(k, random_state=0, n_partitions=4).fit(GRAPHS[name])
    assert model.connectivity_.min() >= 0
    assert model.connectivity_.max() <= GRAPHS[name].max()
    assert_same_to_rounding(model.connectivity_, model.connectivity_.T)


def test_rates_are_shares_of_linked_pairs():
    """Where every node belongs to one community alone, they are counted: pairs of a node with itself are none."""
    matrix, pure = blocks([9, 12], 0.8, 0.2), np.repeat(np.eye(2), [9, 12], axis=0)
    rates = connectivity(as_network(matrix), pure)
    inside = [matrix[:9, :9].sum() / (9 * 8), matrix[9:, 9:].sum() / (12 * 11)]
    across = matrix[:9, 9:].mean()
    assert_allclose(rates, [[inside[0], across], [across, inside[1]]], atol=1e-6)


def test_communities_of_nobody_are_told_of():
    """Two cliques asked for more: whenever a community is the strongest of no node, and only then, a warning counts."""
    matrix = np.kron(np.eye(2), 1 - np.eye(10))
    matrix[0, 10] = matrix[10, 0] = 1
    n_told = 0
    for seed in range(2):
        for k in (4, 5):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model = MixedMembershipSBM(k, n_partitions=10, random_state=seed).fit(matrix)
            n_shown = np.unique(model.labels_).size
            told = [str(warning.message) for warning in caught if "the strongest of no node" in str(warning.message)]
            assert len(told) == (n_shown < k)
            assert all(message.endswith(f"ask for {n_shown}") for message in told)
            n_told += len(told)
    assert n_told > 0


@pytest.mark.filterwarnings("ignore:partitions of the nodes")
def test_communities_that_were_not_asked_for_have_members():
    for name in ("blocks", "sparse", "star", "bipartite"):
        model = MixedMembershipSBM(n_partitions=10, random_state=0).fit(GRAPHS[name])
        assert np.unique(model.labels_[model.labels_ >= 0]).size == model.n_components_


@pytest.mark.parametrize(
    ("graph", "error", "words"),
    [
        (np.arange(9), ValueError, r"pairs of linked nodes .* shape \(9,\)"),
        ([1, 2, 3], ValueError, r"pairs of linked nodes .* shape \(3,\)"),
        (np.array(3.0), ValueError, "pairs of linked nodes"),
        (np.ones((3, 3, 3)), ValueError, "pairs of linked nodes"),
        (None, ValueError, "pairs of linked nodes"),
        (5, ValueError, "pairs of linked nodes"),
        ("abc", ValueError, "pairs of linked nodes"),
        ({1: [2]}, ValueError, "pairs of linked nodes"),
        (sparse.coo_array(np.ones(5)), ValueError, "must be square"),
        (np.ones((9, 9)) * 1j, TypeError, "must contain real numbers"),
        (np.full((9, 9), "a"), TypeError, "must contain real numbers"),
        (1e200 * (1 - np.eye(9)), ValueError, "weights between 1e-50"),
    ],
)
def test_what_is_no_graph(graph, error, words):
    with pytest.raises(error, match=words):
        MixedMembershipSBM(2).fit(graph)


def test_options_of_the_wrong_kind():
    for options, words in (({"degree_corrected": "no"}, "degree_corrected"), ({"n_partitions": 2.0}, "n_partitions")):
        with pytest.raises(TypeError, match=words):
            MixedMembershipSBM(2, **options).fit(GRAPHS["blocks"])


def test_edges_may_be_any_collection():
    edges = np.stack(np.triu(GRAPHS["blocks"]).nonzero(), axis=1)
    model = MixedMembershipSBM(2, random_state=0).fit(edges)
    for kind in (set(map(tuple, edges.tolist())), iter(edges.tolist())):
        assert_array_equal(MixedMembershipSBM(2, random_state=0).fit(kind).memberships_, model.memberships_)
