"""Blind sources of recordings and epochs: the same however data is cut."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose

from codiag.models import SOBI
from codiag.models.sources import lagged_covariances
from source_cases import ROUNDING, drawn


@pytest.mark.parametrize("name", ["SOBI", "JADE"])
def test_epochs_are_recordings(name):
    model, mixed = drawn(name)
    epochs = np.stack([part.T for part in np.split(mixed.channels, 10)])
    recordings = [epoch.T for epoch in epochs]
    one, other = (model.fit(data).components_ for data in (epochs, recordings))
    assert_allclose(one, other, atol=ROUNDING)
    assert model.transform(epochs).shape == epochs.shape
    assert_allclose(model.inverse_transform(model.transform(epochs)), epochs, atol=1e-9)
    for epoch, recording in zip(model.transform(epochs), model.transform(recordings), strict=True):
        assert_allclose(epoch.T, recording)
    assert_allclose(model.inverse_transform(model.transform(recordings))[3], recordings[3], atol=1e-9)
    if name == "JADE":  # the order of samples makes no difference, that of products in time does
        assert_allclose(one, model.fit(mixed.channels).components_, atol=ROUNDING)


def test_epochs_of_one_sample_have_no_lags():
    epochs = np.random.default_rng(0).standard_normal((50, 3, 1))
    with pytest.raises(ValueError, match="samples that follow"):
        SOBI(lags=5).fit(epochs)


@pytest.mark.parametrize("n", [3, 40, 5000])
def test_lagged_covariances_are_those_of_the_definition(n):
    """Of two recordings, with lags longer than the shorter one."""
    max_lag = min(12, n - 1)
    samples, short = np.split(np.random.default_rng(n).standard_normal((n + 2, 3)), [n])
    expected = np.zeros((max_lag + 1, 3, 3))
    for array in (samples, short):
        for lag in range(min(max_lag, len(array) - 1) + 1):
            product = array[: len(array) - lag].T @ array[lag:]
            expected[lag] += (product + product.T) / (2 * (n + 2))
    assert_allclose(lagged_covariances([samples, short], max_lag), expected, atol=1e-12)


def test_lags_may_be_longer_than_some_recordings():
    """Those that are too short for a lag have no product of it; their standard errors are those of what is left."""
    mixed = drawn("SOBI", n=4000)[1]
    pieces = np.split(mixed.channels, [1, 3, 10, 40])
    sizes = [
        np.linalg.norm(SOBI(lags=30, max_iter=0).fit(data).mixing_standard_errors_) for data in (pieces, pieces[-1])
    ]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.05)
    assert SOBI(lags=10**12).fit(mixed.channels[:50]).n_components_ == 5
