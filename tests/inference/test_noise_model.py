"""How noise scatters, as a residual shows it."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from benchmarks.noise_kinds import spectra
from codiag.inference import estimate_noise_model, lags_of


def of_kind(kind, seed=0, **stated):
    """Return what is estimated from the noise itself, around the clean tensor."""
    factors, weights, tensor = spectra(kind, seed=seed, shape=(20, 30, 25), **stated)
    clean = np.einsum("r,ir,jr,kr->ijk", weights, *factors)
    return estimate_noise_model(tensor - clean, clean)


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
    assert found.is_independent


def test_correlations_are_those_of_the_kernel():
    factors, weights, tensor = spectra("smooth along two", shape=(20, 30, 25))
    noise = tensor - np.einsum("r,ir,jr,kr->ijk", weights, *factors)
    ones = np.ones(noise.shape)
    assert lags_of(noise, ones, 0).size == 0
    for mode in (1, 2):
        np.testing.assert_allclose(lags_of(noise, ones, mode)[:2], np.exp([-1 / 4, -1.0]), atol=0.05)
    found = of_kind("smooth along two")
    assert found.correlated == found.tied_modes == (1, 2)
    assert "correlated along b and c" in found.in_words(["a", "b", "c"])


def test_correlations_are_sought_between_neighbours_only():
    factors, weights, tensor = spectra("smooth along two", shape=(20, 30, 25))
    clean = np.einsum("r,ir,jr,kr->ijk", weights, *factors)
    assert estimate_noise_model(tensor - clean, clean, ordered=(True, False, True)).correlated == (2,)


def test_a_gain_that_indices_share_is_found():
    rng = np.random.default_rng(0)
    clean = np.einsum("ir,jr,kr->ijk", *(rng.random((size, 2)) for size in (12, 15, 18)))
    gains = clean * (1 + 0.1 * rng.standard_normal((1, 15, 18)))
    fit = codiag.factorize(gains, 2, rng=0)
    assert fit._noise_model.gain == 0
    assert "relative errors that all indices of mode 0 share" in str(fit.noise_model)
    assert codiag.factorize(clean + 0.01 * rng.standard_normal(clean.shape), 2, rng=0)._noise_model.gain is None


def test_a_scale_for_each_sample():
    rng, scales = np.random.default_rng(0), np.geomspace(0.5, 2.0, 20)
    found = estimate_noise_model(scales[:, None, None] * rng.standard_normal((20, 30, 25)), np.ones((20, 30, 25)))
    assert found.sizes is None
    assert found.scales[1] is None
    np.testing.assert_allclose(found.scales[0] / found.scales[0].mean(), scales / scales.mean(), rtol=0.1)


def test_rare_large_errors_are_no_scatter():
    assert sum(of_kind("Student", seed).is_white for seed in range(20)) >= 16


def test_few_entries_show_nothing():
    assert estimate_noise_model(np.random.default_rng(0).standard_normal((4, 5, 6)), np.ones((4, 5, 6))).is_white


def test_missing_entries_do_not_count():
    rng = np.random.default_rng(0)
    noise, observed = rng.standard_normal((20, 30, 25)), rng.random((20, 30, 25)) > 0.5
    spoiled = np.where(observed, noise, 1e6)
    assert estimate_noise_model(spoiled, np.ones(noise.shape), observed).is_white
