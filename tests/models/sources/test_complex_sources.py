"""SOBI of complex recordings: sources up to phases, and their standard errors."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment
from scipy.signal import lfilter

from codiag.metrics import minimum_distance
from codiag.models import JADE, SOBI
from codiag.models.sources import lagged_covariances
from codiag.synthetic import mixed_signals

POLES = 0.8 * np.exp(1j * np.array([0.5, -0.5, 2.0]))
"""Of autoregressive sources; the first two have the same autocovariances but for the signs of imaginary parts."""


def circular(rng, *shape):
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)


def recording(n, seed):
    """Return channels, (n, 3), of complex autoregressive sources of unit variance, and their mixing."""
    rng = np.random.default_rng(seed)
    innovations, mixing = circular(rng, n + 100, POLES.size), circular(rng, POLES.size, POLES.size)
    sources = [lfilter([1], [1, -pole], noise)[100:] for pole, noise in zip(POLES, innovations.T, strict=True)]
    return np.stack(sources, axis=1) * np.sqrt(1 - np.abs(POLES) ** 2) @ mixing.T + (1 + 2j), mixing


def in_phase(found, reference):
    """Return columns in the order and with the phases that bring them nearest to the reference, and that order."""
    gains = np.linalg.solve(reference, found)
    order = linear_sum_assignment(-np.abs(gains))[1]
    shares = gains[np.arange(order.size), order]
    return found[:, order] * np.conj(shares) / np.abs(shares), order


@pytest.mark.parametrize("max_iter", [0, 50])
def test_errors_of_complex_mixings_are_what_standard_errors_say(max_iter):
    """Mean squared ratios are one; with 20 draws of 9 entries their standard error is about 0.1."""
    ratios = []
    for seed in range(20):
        channels, mixing = recording(1500, seed)
        model = SOBI(lags=8, max_iter=max_iter).fit(channels)
        found, order = in_phase(model.mixing_, mixing)
        ratios.append(np.abs(found - mixing) ** 2 / model.mixing_standard_errors_[:, order] ** 2)
        assert model.unresolved_ == []
    assert np.mean(ratios) == pytest.approx(1, abs=0.3)


def test_complex_sources_have_unit_variance_and_give_the_recording_back():
    channels, mixing = recording(3000, 0)
    model = SOBI(lags=8).fit(channels)
    sources = model.transform(channels)
    assert_allclose(np.mean(np.abs(sources) ** 2, axis=0), 1)
    assert_allclose(model.inverse_transform(sources), channels)
    assert_allclose(model.components_ @ model.mixing_, np.eye(3), atol=1e-12)
    largest = np.take_along_axis(model.mixing_, np.abs(model.mixing_).argmax(axis=0)[None], axis=0)
    assert_allclose(largest.imag, 0, atol=1e-12)
    assert largest.real.min() > 0
    assert minimum_distance(model.components_, mixing) < 0.05


def test_complex_sources_do_not_depend_on_the_mixing():
    channels, _ = recording(2000, 1)
    other = channels @ circular(np.random.default_rng(2), 3, 3).T
    sources, again = (SOBI(lags=8).fit(x).transform(x) for x in (channels, other))
    correlations = np.abs(sources.conj().T @ again) / len(channels)
    assert_allclose(np.sort(correlations.max(axis=0)), 1, atol=1e-8)


def test_real_recordings_are_the_same_as_complex_numbers():
    channels = mixed_signals(3000, ["autoregressive"] * 3, rng=0).channels
    found, mixing = (SOBI(lags=8).fit(x).mixing_ for x in (channels.astype(complex), channels))
    assert_allclose(in_phase(found, mixing.astype(complex))[0], mixing, atol=1e-6)


def test_lagged_covariances_of_complex_recordings_are_those_of_the_definition():
    """Over several windows of the transform; Hermitian parts, then skew parts divided by i."""
    centered = recording(2600, 4)[0]
    lagged = [centered[lag:].T @ centered[: len(centered) - lag].conj() / len(centered) for lag in range(13)]
    real = [(matrix + matrix.conj().T) / 2 for matrix in lagged]
    imaginary = [(matrix - matrix.conj().T) / 2j for matrix in lagged[1:]]
    assert_allclose(lagged_covariances([centered], 12), [*real, *imaginary], atol=1e-12)


def test_complex_epochs_are_recordings():
    channels, _ = recording(3000, 6)
    epochs = channels.reshape(3, 1000, 3).transpose(0, 2, 1)
    model = SOBI(lags=8).fit(epochs)
    assert_allclose(model.mixing_, SOBI(lags=8).fit(list(channels.reshape(3, 1000, 3))).mixing_)
    assert_allclose(model.inverse_transform(model.transform(epochs)), epochs)
    assert_allclose(model.transform(channels[:5].tolist()), model.transform(channels[:5]))


def test_jade_refuses_complex_recordings():
    with pytest.raises(ValueError, match="Complex data not"):
        JADE().fit(recording(200, 0)[0])
