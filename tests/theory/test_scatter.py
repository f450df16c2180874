"""How noise scatters, as a residual shows it."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.noise_kinds import NOISES, spectra
from codiag.theory import estimate_scatter


def of_kind(kind, seed=0, **stated):
    """Return what is estimated from the noise itself, around the clean tensor."""
    factors, weights, tensor = spectra(kind, seed=seed, shape=(20, 30, 25), **stated)
    clean = np.einsum("r,ir,jr,kr->ijk", weights, *factors)
    return estimate_scatter(tensor - clean, clean)


def test_white_noise_has_no_scatter():
    assert sum(of_kind("white", seed).is_white for seed in range(40)) >= 38


@pytest.mark.parametrize("kind", ["proportional", "Poisson"])
def test_variances_that_grow_with_the_signal(kind):
    """The deviation of an entry is that of the noise which was drawn, up to a common factor."""
    found = of_kind(kind)
    factors, weights, _ = spectra(kind, shape=(20, 30, 25))
    clean = np.einsum("r,ir,jr,kr->ijk", weights, *factors)
    expected = clean if kind == "proportional" else np.sqrt(clean)
    large = clean > np.quantile(clean, 0.7)
    assert np.corrcoef(found.relative_deviations(clean)[large], expected[large])[0, 1] > 0.9
    assert "variances that grow with the signal" in found.in_words(["a", "b", "c"])
    assert not found.is_correlated


def test_correlations_are_those_of_the_kernel():
    found = of_kind("smooth along two")
    assert found.correlations[0].size == 0
    for lags in found.correlations[1:]:
        np.testing.assert_allclose(lags[:2], np.exp([-1 / 4, -1.0]), atol=0.05)
    assert "neighbours of c" in found.in_words(["a", "b", "c"])


def test_a_scale_for_each_sample():
    rng, scales = np.random.default_rng(0), np.geomspace(0.5, 2.0, 20)
    found = estimate_scatter(scales[:, None, None] * rng.standard_normal((20, 30, 25)), np.ones((20, 30, 25)))
    assert found.sizes is None
    assert found.scales[1] is None
    np.testing.assert_allclose(found.scales[0] / found.scales[0].mean(), scales / scales.mean(), rtol=0.1)


def test_rare_large_errors_are_no_scatter():
    assert sum(of_kind("Student", seed).is_white for seed in range(20)) >= 16


def test_few_entries_show_nothing():
    assert estimate_scatter(np.random.default_rng(0).standard_normal((4, 5, 6)), np.ones((4, 5, 6))).is_white


def test_missing_entries_do_not_count():
    rng = np.random.default_rng(0)
    noise, observed = rng.standard_normal((20, 30, 25)), rng.random((20, 30, 25)) > 0.5
    spoiled = np.where(observed, noise, 1e6)
    assert estimate_scatter(spoiled, np.ones(noise.shape), observed).is_white


@pytest.mark.parametrize("kind", NOISES)
def test_draws_scatter_as_the_noise_does(kind):
    """What is estimated from a draw is what was drawn from, to the error of both."""
    factors, weights, _ = spectra(kind, shape=(20, 30, 25))
    clean = np.einsum("r,ir,jr,kr->ijk", weights, *factors)
    known = of_kind(kind)
    again = estimate_scatter(known.draw(clean, np.random.default_rng(1)), clean)
    assert again.is_correlated == known.is_correlated
    for one, other in zip(known.correlations, again.correlations, strict=True):
        size = min(one.size, other.size, 2)
        np.testing.assert_allclose(one[:size], other[:size], atol=0.06)


def test_covariances_have_unit_variance_in_the_mean():
    known = of_kind("smooth along one mode")
    covariances = known.covariances(np.ones((20, 30, 25)))
    assert np.prod([np.mean(np.diag(covariance)) for covariance in covariances]) == pytest.approx(1)
    assert all(np.linalg.eigvalsh(covariance)[0] > -1e-12 for covariance in covariances)
