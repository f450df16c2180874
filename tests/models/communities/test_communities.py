"""Communities: found where the model holds, whatever the method, the names of the nodes and their degrees."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import normalized_mutual_info_score

from codiag.methods import ALS, NLS, NOJD
from codiag.metrics import overlapping_nmi
from codiag.models import MixedMembershipSBM, jackknife_standard_errors
from codiag.models.communities import (
    LinkCounts,
    as_network,
    count_communities,
    dirichlet_total,
    merged,
    variational_steps,
)
from codiag.synthetic import mixed_membership_graph
from real_data import needs_data


def graph(n=600, k=4, *, alpha_0=0.1, seed=0, **options):
    return mixed_membership_graph(n, k, **({"alpha_0": alpha_0, "inside": 0.3, "outside": 0.02} | options), rng=seed)


def likeness(model, truth, threshold=0.3):
    return overlapping_nmi(model.overlapping_labels(threshold), truth.memberships >= threshold)


@pytest.mark.parametrize(("n", "k"), [(1000, 5), (2000, 10)])
@pytest.mark.parametrize("degree_corrected", [False, True])
def test_mixed_memberships_are_found(n, k, degree_corrected):
    truth = graph(n, k, alpha_0=0.2)
    model = MixedMembershipSBM(k, alpha_0=0.2, degree_corrected=degree_corrected, random_state=0)
    assert likeness(model.fit(truth.adjacency), truth) > 0.85
    assert_allclose(model.memberships_.sum(axis=1), 1)
    assert model.memberships_.min() >= 0
    assert np.all(np.diff(model.memberships_.sum(axis=0)) <= 0)
    assert_allclose(model.connectivity_, model.connectivity_.T, atol=1e-12)
    assert_allclose(model.connectivity_, truth.connectivity, atol=0.1)


@pytest.mark.parametrize("method", ["ojd0", "ojd1", "nojd1", "tpm", "als"])
def test_any_method_serves(method):
    truth = graph(1000)
    method = ALS(init=NOJD()) if method == "als" else method
    model = MixedMembershipSBM(4, method=method, max_iter=0, n_partitions=5, random_state=0)
    assert likeness(model.fit(truth.adjacency), truth) > 0.75


def test_moments_are_corrected_for_mixing():
    """With many samples the corrected moments leave a smaller error than those that take every node for pure."""
    truth = graph(2500, 3, alpha_0=1.0, inside=0.4)

    def error(alpha_0):
        model = MixedMembershipSBM(
            3, alpha_0=alpha_0, degree_corrected=False, max_iter=0, n_partitions=4, random_state=0
        ).fit(truth.adjacency)
        distances = np.abs(model.memberships_[:, :, None] - truth.memberships[:, None]).mean(axis=0)
        return distances.min(axis=0).mean()

    assert error(1.0) < 0.8 * error(0.0)


def test_degrees_are_taken_out():
    """Where degrees vary by orders of magnitude the corrected variant finds what the plain one does not."""
    degrees = np.random.default_rng(0).pareto(2.0, 1500) + 0.3
    degrees = np.minimum(degrees / degrees.mean(), 20)
    truth = graph(1500, 4, alpha_0=0.0, inside=0.08, degrees=degrees)
    pure = np.argmax(truth.memberships, axis=1)
    scores = {}
    for corrected in (False, True):
        model = MixedMembershipSBM(4, degree_corrected=corrected, n_partitions=10, random_state=0)
        scores[corrected] = normalized_mutual_info_score(pure, model.fit(truth.adjacency).labels_)
    assert scores[True] > 0.85
    assert scores[True] > scores[False] + 0.05


def test_kinds_of_graphs_give_one_answer():
    nx = pytest.importorskip("networkx")
    truth = graph(300, 3)
    rows, columns = sparse.triu(truth.adjacency).nonzero()
    edges = np.stack([rows, columns], axis=1)
    plain = MixedMembershipSBM(3, random_state=0).fit(truth.adjacency)
    network = nx.Graph()
    network.add_nodes_from(range(300))
    network.add_edges_from(edges.tolist())
    twice = np.concatenate([edges, edges[:, ::-1], [[5, 5]]])
    for other in (network, truth.adjacency.toarray(), twice, edges.tolist()):
        model = MixedMembershipSBM(3, random_state=0).fit(other)
        assert_array_equal(model.nodes_.astype(int), plain.nodes_)
        assert_allclose(model.memberships_, plain.memberships_, atol=1e-8)


def test_edges_may_be_a_data_frame_with_weights():
    pd = pytest.importorskip("pandas")
    truth = graph(300, 3)
    above = sparse.coo_array(sparse.triu(truth.adjacency))
    weights = np.random.default_rng(0).integers(1, 4, above.nnz)
    frame = pd.DataFrame({"from": above.row, "to": above.col, "weight": weights})
    frame[["from", "to"]] = frame[["from", "to"]].map(lambda place: f"n{place:03}")
    matrix = sparse.coo_array((weights.astype(float), (above.row, above.col)), shape=above.shape)
    expected = MixedMembershipSBM(3, random_state=0).fit(matrix + matrix.T)
    model = MixedMembershipSBM(3, random_state=0).fit(frame)
    assert_allclose(model.memberships_, expected.memberships_, atol=1e-8)
    assert model.nodes_[7] == "n007"
    assert model.weighted_


def test_nodes_keep_their_names():
    truth = graph(300, 3)
    rows, columns = sparse.triu(truth.adjacency).nonzero()
    names = np.array([f"n{place:03}" for place in range(300)])
    model = MixedMembershipSBM(3, random_state=0).fit(np.stack([names[rows], names[columns]], axis=1))
    assert set(model.nodes_) <= set(names)
    table = model.membership_table()
    assert list(table)[:2] == ["node", "community"]
    assert_allclose(sum(table[f"p{place}"] for place in range(3)), 1)


def test_steps_keep_the_links_of_every_node():
    """After every round a node has as many links, by communities, as it has, and so have communities together."""
    network = as_network(graph(200, 3).adjacency)
    start = np.random.default_rng(0).dirichlet(np.ones(3), 200)
    for n_rounds in (1, 7):
        polished = variational_steps(network, start, n_rounds, None)
        assert_allclose(polished.counts.sum(axis=1), network.degrees, rtol=1e-9)
        assert_allclose(polished.links.sum(axis=0), polished.counts.sum(axis=0), rtol=1e-9)
        assert_allclose(polished.links, polished.links.T, rtol=1e-9)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), unit=st.sampled_from([1e-20, 0.1, 3.0, 1e20]))
def test_steps_do_not_depend_on_the_unit_of_weights_or_the_order_of_communities(seed, unit):
    adjacency = graph(60, 3, seed=seed % 7).adjacency
    start = np.random.default_rng(seed).dirichlet(np.ones(3), 60)
    order = np.random.default_rng(seed).permutation(3)
    plain = variational_steps(as_network(adjacency), start, 5, None)
    other = variational_steps(as_network(unit * adjacency), start[:, order], 5, None)
    assert_allclose(other.memberships, plain.memberships[:, order], atol=1e-8)
    assert_allclose(other.links, plain.links[np.ix_(order, order)], rtol=1e-6, atol=1e-8)


def test_steps_raise_the_likelihood_of_memberships_that_are_too_even():
    truth = graph(200, 3)
    history = variational_steps(as_network(truth.adjacency), (truth.memberships + 1 / 3) / 2, 10, None).history
    assert np.all(np.diff(history[:5]) > 0)
    assert history[-1] > history[0] + 100


@pytest.mark.parametrize("total", [0.1, 1.0, 5.0])
def test_how_mixed_shares_are_follows_from_their_variances(total):
    """Of shares that are known, and of the means of posteriors after 50 draws with each."""
    rng = np.random.default_rng(0)
    parameters = total * np.array([0.5, 0.3, 0.2])
    shares = rng.dirichlet(parameters, 20_000)
    assert_allclose(dirichlet_total(shares), total, rtol=0.05)
    means = (rng.multinomial(50, shares) + parameters) / (50 + total)
    assert_allclose(dirichlet_total(means, 50 + total), total, rtol=0.05)


def test_rates_are_taken_out_of_shares():
    """Members of a community with twice as many links have shares as much larger, and memberships that are not."""
    truth = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    rates = np.array([2.0, 1.0, 0.5])
    ends = np.diag(rates * truth.sum(axis=0))
    shares = truth * rates / (truth * rates).sum(axis=1, keepdims=True)
    polished = LinkCounts(100 * shares, np.zeros(3), ends, [])
    assert_allclose(polished.without_rates(), truth, atol=1e-4)  # after 50 iterations


def test_a_community_that_starts_empty_does_not_take_over():
    truth = graph(200, 3, alpha_0=0.0)
    start = np.hstack([(truth.memberships + 1 / 3) / 2, np.zeros((200, 1))])
    polished = variational_steps(as_network(truth.adjacency), start, 5, None)
    for memberships in (polished.memberships, polished.without_rates()):
        assert_array_equal(np.argmax(memberships, axis=1), np.argmax(truth.memberships, axis=1))


def test_parameters_are_learned_in_fit():
    """All attributes are there after fit, the graph is not stored, and options that change later have no effect."""
    adjacency = graph(300, 3).adjacency
    model = MixedMembershipSBM(3, random_state=0).fit(adjacency)
    rates = model.connectivity_.copy()
    assert "connectivity_" in vars(model)
    assert_array_equal(model.set_params(degree_corrected=False, max_iter=0).connectivity_, rates)
    assert len(pickle.dumps(model)) < adjacency.data.nbytes
    assert MixedMembershipSBM(3, alpha_0=0.2, random_state=0).fit(adjacency).alpha_0_ == 0.2


def unequal(n, seed=0):
    rng = np.random.default_rng(seed)
    memberships = rng.dirichlet(np.full(3, 1 / 3), n)
    rates = 0.01 + np.diag([0.40, 0.15, 0.06])
    links = np.triu(rng.random((n, n)) < memberships @ rates @ memberships.T, 1)
    return sparse.csr_array((links | links.T).astype(float)), memberships, rates


def test_communities_of_unequal_density_keep_their_memberships():
    """A community whose members make more links does not take in those of others."""
    adjacency, truth, rates = unequal(3000)
    model = MixedMembershipSBM(3, alpha_0=1.0, degree_corrected=False, n_partitions=5, max_iter=20, random_state=0).fit(
        adjacency
    )
    distances = np.abs(model.memberships_[:, :, None] - truth[:, None]).mean(axis=0)
    order = distances.argmin(axis=0)
    assert sorted(order) == [0, 1, 2]
    assert distances[order, range(3)].mean() < 0.06
    assert_allclose(model.connectivity_[np.ix_(order, order)], rates, atol=0.04)


def test_averaging_over_partitions_helps():
    truth = graph(400, 4, alpha_0=0.3)

    def score(n_partitions, seed):
        model = MixedMembershipSBM(4, n_partitions=n_partitions, max_iter=0, random_state=seed)
        return likeness(model.fit(truth.adjacency), truth)

    assert score(10, 0) > 0.02 + np.mean([score(1, seed) for seed in range(5)])


def pareto_degrees(n, seed=0):
    degrees = np.random.default_rng(seed).pareto(2.0, n) + 0.3
    return np.minimum(degrees / degrees.mean(), 6)


@pytest.mark.parametrize("degrees", ["equal", "unequal"])
@pytest.mark.parametrize("k", [1, 3, 8])
def test_communities_are_counted(k, degrees):
    """The number of blocks, and one where links are random, whether nodes have equal degrees or not."""
    options = {"inside": 0.2, "outside": 0.2 if k == 1 else 0.02}
    options |= {"degrees": pareto_degrees(100 * k + 300)} if degrees == "unequal" else {}
    adjacency = graph(100 * k + 300, k, alpha_0=0.0, seed=5, **options).adjacency
    assert count_communities(as_network(adjacency)) == k
    assert count_communities(as_network(1e-3 * adjacency)) == k
    model = MixedMembershipSBM(random_state=0).fit(adjacency)
    assert (model.n_components_, model.n_components) == (k, None)


def test_the_count_is_that_of_negative_eigenvalues_of_the_bethe_hessian():
    adjacency = graph(300, 4, inside=0.08).adjacency.toarray()
    degrees = adjacency.sum(axis=0)
    degrees, adjacency = degrees[degrees > 0], adjacency[np.ix_(degrees > 0, degrees > 0)]
    square = np.sum(degrees**2) / np.sum(degrees) - 1
    hessian = (square - 1) * np.eye(degrees.size) - np.sqrt(square) * adjacency + np.diag(degrees)
    assert count_communities(as_network(adjacency)) == np.sum(np.linalg.eigvalsh(hessian) < 0)


def test_a_tree_has_one_community():
    ring = np.stack([np.arange(40), (np.arange(40) + 1) % 40], axis=1)
    assert count_communities(as_network(ring[:-1])) == 1


def test_blocks_of_blocks_are_counted_once():
    """Parts of communities that have more links with each other than degrees explain are not counted."""
    rng = np.random.default_rng(0)
    part = np.repeat(np.arange(6), 80)
    rates = np.where(part[:, None] // 2 == part // 2, 0.2, 0.01) + 0.3 * (part[:, None] == part)
    links = np.triu(rng.random((480, 480)) < rates, 1)
    adjacency = sparse.csr_array((links | links.T).astype(float))
    assert count_communities(as_network(adjacency)) == 6
    model = MixedMembershipSBM(random_state=0).fit(adjacency)
    assert model.n_components_ == 3
    assert normalized_mutual_info_score(part // 2, model.labels_) > 0.99
    assert_array_equal(merged(as_network(adjacency), part), part // 2)


def test_nodes_without_links_are_told_of():
    adjacency = graph(300, 3).adjacency.tolil()
    adjacency[[7, 9]], adjacency[:, [7, 9]] = 0, 0
    model = MixedMembershipSBM(3, random_state=0).fit(adjacency.tocsr())
    assert model.diagnostics_["isolated"] == 2
    assert_allclose(model.memberships_[7], 1 / 3)
    assert np.flatnonzero(model.labels_ == -1).tolist() == [7, 9]
    whole = MixedMembershipSBM(3, random_state=0).fit(graph(300, 3).adjacency)
    assert_allclose(np.diag(model.connectivity_), np.diag(whole.connectivity_), atol=0.03)


def test_one_community_is_everybody():
    model = MixedMembershipSBM(1).fit(graph(100, 2).adjacency)
    assert_allclose(model.memberships_, 1)
    assert set(model.labels_) == {0}


def test_small_graphs_are_parted_and_weights_count():
    nx = pytest.importorskip("networkx")
    club = nx.karate_club_graph()
    truth = np.array([club.nodes[node]["club"] == "Officer" for node in sorted(club)])
    for seed in range(5):
        model = MixedMembershipSBM(2, random_state=seed).fit(club)
        wrong = np.sum((model.labels_ == 1) != truth)
        assert min(wrong, 34 - wrong) <= 2
    assert model.diagnostics_["n_partitions"] == 20
    assert model.diagnostics_["standard_error"] < 0.1
    assert np.array_equal(model.fit_predict(club), model.labels_)


@pytest.mark.parametrize("n_components", [3, None])
def test_what_a_method_has_against_its_options_is_not_blamed_on_the_graph(n_components):
    graph = mixed_membership_graph(80, 3, alpha_0=0.1, inside=0.5, outside=0.02, rng=0).adjacency
    method = NLS(init=(np.ones(2), [np.ones((5, 2))] * 3))
    with pytest.raises(ValueError, match="^init must"):
        MixedMembershipSBM(n_components, method=method, random_state=0).fit(graph)


@pytest.mark.parametrize("step", ["fit", "fit_predict"])
def test_warnings_of_partitions_that_disagree_point_at_the_line_that_called(step):
    rng = np.random.default_rng(0)
    noise = np.triu(rng.random((200, 200)) < 0.1, 1)
    graph = sparse.csr_array(noise + noise.T, dtype=float)
    warning_messages = MixedMembershipSBM(5, n_partitions=20, random_state=0)._fit(graph)
    with pytest.warns() as caught:
        getattr(MixedMembershipSBM(5, n_partitions=20, random_state=0), step)(graph)
    assert [(str(one.message), one.filename) for one in caught] == [(str(one), __file__) for one in warning_messages]
    assert "partitions of the nodes agree little on 5 communities" in str(warning_messages[0])


@needs_data
def test_dormitories_are_told_apart():
    """With ten communities .67, and .70 by moments alone, where Leiden reaches .69 in the median."""
    from codiag.datasets import load_facebook

    data = load_facebook("Caltech36")
    dorm = data.attributes["dorm"]
    model = MixedMembershipSBM(10, random_state=0).fit(data.adjacency)
    assert normalized_mutual_info_score(dorm[dorm > 0], model.labels_[dorm > 0]) > 0.6


@pytest.mark.parametrize(
    ("edges", "message"),
    [
        (np.zeros((0, 2)), "at least one edge"),
        ([[3, 3]], "at least one"),
        ([[1, 2], [2, 3]], "at least 8 nodes"),
        ([[1, 2], [2, None]], "two nodes to every edge"),
        (np.array([[1, 2], [2, np.nan]]), "two nodes to every edge"),
        ([[1, 2], [2, 3, 4]], "pairs of linked nodes"),
        (sparse.csr_array((0, 0)), "at least one edge"),
        (np.zeros((4, 5)), "pairs of linked nodes"),
        ([["a", "b", "c"]], "weights as a third column"),
        (sparse.csr_array(np.triu(np.ones((5, 5)))), "must be symmetric"),
        (sparse.csr_array(-np.ones((5, 5))), "not negative"),
        (sparse.csr_array(np.ones((5, 6))), "must be square"),
    ],
)
def test_bad_graphs_are_named(edges, message):
    with pytest.raises(ValueError, match=message):
        MixedMembershipSBM(2).fit(edges)


def test_thresholds_lie_between_nothing_and_all():
    model = MixedMembershipSBM(3, random_state=0).fit(graph(300, 3).adjacency)
    with pytest.raises(ValueError, match="^threshold must"):
        model.overlapping_labels(2)


def test_directed_graphs_are_refused():
    nx = pytest.importorskip("networkx")
    with pytest.raises(ValueError, match="undirected"):
        MixedMembershipSBM(2).fit(nx.DiGraph([(0, 1), (1, 2)]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 100}, "^n_components must"),
        ({"alpha_0": -1.0}, "alpha_0"),
        ({"alpha_0": np.inf}, "^alpha_0 must"),
        ({"max_iter": -1}, "max_iter"),
        ({"n_partitions": 0}, "n_partitions"),
        ({"method": "newton"}, "method"),
    ],
)
def test_bad_options_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        MixedMembershipSBM(**options).fit(graph(300, 3).adjacency)


def test_errors_of_memberships_are_those_of_graphs_without_groups_of_edges():
    """Mean squared errors are what the jackknife says."""
    truth = graph(300, 3, alpha_0=0.3)
    model = MixedMembershipSBM(3, n_partitions=10, random_state=0).fit(truth.adjacency)
    errors = jackknife_standard_errors(model, truth.adjacency, n_groups=8)["memberships_"]
    distances = np.mean((model.memberships_[:, :, None] - truth.memberships[:, None]) ** 2, axis=0)
    assert np.mean(distances.min(axis=0)) == pytest.approx(np.nanmean(errors**2), rel=0.4)


def test_parameters_are_stored_and_cloned():
    model = MixedMembershipSBM(3, alpha_0=0.5)
    assert clone(model).get_params() == model.get_params()
