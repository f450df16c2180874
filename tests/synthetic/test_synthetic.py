from __future__ import annotations

import numpy as np
import pytest

from assertions import assert_unit_columns
from benchmarks.judges import jury_votes
from codiag.synthetic import (
    crowd_votes,
    fluorescence,
    matrix_stack,
    mild_factor,
    mixed_membership_graph,
    orthonormal_factor,
    unit_factor,
    worker_confusions,
)


@pytest.mark.parametrize("make", [orthonormal_factor, unit_factor, mild_factor])
def test_factors_have_unit_columns_and_follow_the_seed(make):
    factor = make(7, 4, rng=3)
    assert factor.shape == (7, 4)
    assert_unit_columns(factor, 1e-14)
    np.testing.assert_array_equal(factor, make(7, 4, rng=3))
    assert not np.allclose(factor, make(7, 4, rng=4))


def test_orthonormal_columns_are_orthonormal_and_mild_ones_well_conditioned():
    np.testing.assert_allclose(
        orthonormal_factor(6, 4, rng=0).T @ orthonormal_factor(6, 4, rng=0), np.eye(4), atol=1e-14
    )
    assert np.linalg.cond(mild_factor(50, 50, rng=0)) < 4
    assert np.linalg.cond(unit_factor(50, 50, rng=0)) > 20


def test_noise_has_the_stated_size():
    symmetric = matrix_stack(np.zeros((30, 1)), 200, noise=0.1, rng=0).matrices
    np.testing.assert_array_equal(symmetric, symmetric.transpose(0, 2, 1))
    off = symmetric[:, *np.triu_indices(30, 1)]
    assert np.std(off) == pytest.approx(0.1, rel=0.02)
    assert np.std(np.diagonal(symmetric, axis1=1, axis2=2)) == pytest.approx(0.1 * np.sqrt(2), rel=0.03)
    free = matrix_stack(np.zeros((30, 1)), 200, right_factor=np.zeros((20, 1)), noise=0.1, rng=0).matrices
    assert free.shape == (200, 30, 20)
    assert np.std(free) == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize("k", [2, 4])
def test_workers_vote_as_their_matrices_say(k):
    errors = worker_confusions(6, k, adversarial=1 / 3, rng=0)
    np.testing.assert_allclose(errors.sum(axis=1), 1)
    honest = np.einsum("wcc->wc", errors)
    assert np.all(honest[2:] >= 0.5)
    assert np.all(errors[:2].argmax(axis=1) == (np.arange(k) + 1) % k)
    crowd = crowd_votes(60_000, errors, density=0.5, priors=np.full(k, 1 / k), rng=1)
    task, worker, label = crowd.votes
    assert task.size == pytest.approx(60_000 * 6 / 2, rel=0.02)
    counted = np.zeros_like(errors)
    np.add.at(counted, (worker, label, crowd.truth[task]), 1)
    np.testing.assert_allclose(counted / counted.sum(axis=1, keepdims=True), errors, atol=0.03)


@pytest.mark.parametrize("ordered", [False, True])
def test_judges_vote_as_their_matrices_say_and_clusters_err_together(ordered):
    jury = jury_votes(40_000, (3, 2), 4, shared=0.6, ordered=ordered, outsider=0.9, rng=0)
    task, judge, label = jury.votes
    np.testing.assert_array_equal(jury.clusters, [0, 0, 0, 1, 1, 2])
    counted = np.zeros((6, 4, 4))
    np.add.at(counted, (judge, label, jury.truth[task]), 1)
    np.testing.assert_allclose(counted / counted.sum(axis=1, keepdims=True), jury.confusions, atol=0.03)
    wrong = (label != jury.truth[task]).reshape(-1, 6).astype(float)
    alike = np.corrcoef(wrong.T)
    assert alike[0, 1] > alike[0, 3] + 0.1
    if not ordered:  # grades near a cut are hard for everybody
        assert alike[0, 3] == pytest.approx(0, abs=0.06)


def test_fluorescence_is_a_sum_of_peaks_and_noise_of_the_stated_size():
    measured = fluorescence((6, 30, 20), 3, noise=0.05, rng=0)
    assert measured.tensor.shape == (6, measured.emission.size, measured.excitation.size)
    clean = np.einsum("r,ir,jr,kr->ijk", measured.weights, *measured.factors)
    assert np.linalg.norm(measured.tensor - clean) == pytest.approx(0.05 * np.linalg.norm(clean))
    for factor in measured.factors:
        assert_unit_columns(factor, 1e-14)
        assert factor.min() >= 0
    _, emission, excitation = measured.factors
    peaks = measured.emission[emission.argmax(axis=0)] - measured.excitation[excitation.argmax(axis=0)]
    assert np.all(peaks > 15)  # 30 to 90 nm, on wavelengths 8 nm apart
    for spectrum in emission.T:  # up to the peak and down again
        assert np.all(np.sign(np.diff(spectrum)) == np.where(np.arange(29) < spectrum.argmax(), 1, -1))


def test_scattered_light_is_missing_and_noise_is_clipped_if_asked():
    plain, clipped = fluorescence(noise=0.1, rng=1), fluorescence(noise=0.1, scatter=True, clip=True, rng=1)
    gap = clipped.emission[:, None] - np.array([[1], [2]])[:, None] * clipped.excitation
    hidden = np.any(np.abs(gap) < 12, axis=0)
    np.testing.assert_array_equal(np.isnan(clipped.tensor), np.broadcast_to(hidden, clipped.tensor.shape))
    assert plain.tensor.min() < 0
    np.testing.assert_array_equal(clipped.tensor[:, ~hidden], np.maximum(plain.tensor, 0)[:, ~hidden])
    with pytest.raises(ValueError, match="^shape must"):
        fluorescence((3, 4, 5, 6))


def test_graphs_are_linked_as_memberships_say():
    graph = mixed_membership_graph(1500, 3, alpha_0=0.5, inside=0.3, outside=0.05, rng=0)
    adjacency = graph.adjacency.toarray()
    np.testing.assert_array_equal(adjacency, adjacency.T)
    assert np.trace(adjacency) == 0
    assert set(np.unique(adjacency)) == {0.0, 1.0}
    np.testing.assert_allclose(graph.memberships.sum(axis=1), 1)
    chances = graph.memberships @ graph.connectivity @ graph.memberships.T
    high = chances > 0.2
    assert adjacency[high].mean() == pytest.approx(chances[high].mean(), rel=0.02)
    assert adjacency[~high].mean() == pytest.approx(chances[~high].mean(), rel=0.02)


def test_degrees_multiply_chances():
    degrees = np.repeat([0.5, 1.5], 400)
    graph = mixed_membership_graph(800, 2, alpha_0=0.0, inside=0.2, outside=0.05, degrees=degrees, rng=0)
    found = np.asarray(graph.adjacency.sum(axis=1)).ravel()
    assert found[400:].mean() / found[:400].mean() == pytest.approx(3, rel=0.1)


def test_data_is_shown_by_its_sizes():
    assert repr(fluorescence((5, 20, 12), 2, rng=0)) == (
        "Fluorescence(tensor: 5 x 20 x 12; weights: 2; factors: 5 x 2, 20 x 2, 12 x 2; emission: 20; excitation: 12)"
    )
