"""Blind sources of recordings, epochs and streams: the same however data is cut, and all samples count once."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from codiag.metrics import minimum_distance
from codiag.models import NSS, SOBI
from codiag.models.base import merged
from codiag.models.sources import LaggedSums, WindowSums
from codiag.synthetic import mixed_signals
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


def test_epochs_are_blocks():
    mixed = drawn("NSS")[1]
    epochs = np.stack([part.T for part in np.split(mixed.channels, 20)])
    assert_allclose(NSS(n_windows=20).fit(mixed.channels).mixing_, NSS().fit(epochs).mixing_, atol=1e-9)


def test_epochs_of_one_sample_have_no_lags():
    epochs = np.random.default_rng(0).standard_normal((50, 3, 1))
    with pytest.raises(ValueError, match="samples that follow each other"):
        SOBI(lags=5).fit(epochs)


def lagged(samples, max_lag):
    centered = samples - samples.mean(axis=0)
    raw = [centered[: len(samples) - lag].T @ centered[lag:] for lag in range(max_lag + 1)]
    return np.array([(matrix + matrix.T) / 2 for matrix in raw]) / len(samples)


@pytest.mark.parametrize("n", [3, 7, 40, 5000])
def test_lagged_covariances_are_those_of_the_definition(n):
    samples = 3 + np.random.default_rng(n).standard_normal((n, 3))
    assert_allclose(LaggedSums.over(samples, 12).finish().matrices, lagged(samples, min(12, n))[:13] if n > 12 else
                    np.concatenate([lagged(samples, n - 1), np.zeros((13 - n, 3, 3))]), atol=1e-12)  # fmt: skip


@pytest.mark.parametrize("cuts", [[1000], [3, 5, 6, 300], [1, 2, 3, 4], [1990, 1995]])
def test_sums_of_parts_are_those_of_the_whole(cuts):
    """Also where parts are shorter than lags, far from zero, and merged in another order."""
    samples = 1000 + np.cumsum(np.random.default_rng(0).standard_normal((2000, 2)), axis=0)
    parts = [LaggedSums.over(part, 30, open=True) for part in np.split(samples, cuts)]
    forward = parts[0]
    for part in parts[1:]:
        forward = merged([forward, part])
    backward = parts[-1]
    for part in parts[-2::-1]:
        backward = merged([part, backward])
    expected = lagged(samples, 30)
    for sums in (forward, backward):
        assert_allclose(sums.finish().matrices, expected, rtol=1e-9, atol=1e-9 * np.max(expected))
        assert_allclose(sums.finish().mean, samples.mean(axis=0))


def test_lags_may_be_longer_than_some_recordings():
    """Those that are too short for a lag have no product of it; their standard errors are those of what is left."""
    mixed = drawn("SOBI", n=4000)[1]
    pieces = np.split(mixed.channels, [1, 3, 10, 40])
    sizes = [
        np.linalg.norm(SOBI(lags=30, max_iter=0).fit(data).mixing_standard_errors_) for data in (pieces, pieces[-1])
    ]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.05)
    assert SOBI(lags=10**12).fit(mixed.channels[:50]).n_components_ == 5


def test_streams_give_the_answer_of_one_array():
    model, mixed = drawn("SOBI", n=4000)
    expected = model.fit(mixed.channels).components_
    streamed = SOBI(lags=10)
    parts = np.split(mixed.channels, [700, 703, 2500])
    for part in parts:
        streamed.partial_fit(part)
    assert_allclose(streamed.components_, expected, atol=ROUNDING)
    assert_allclose(SOBI(lags=10).fit(iter(parts)).components_, expected, atol=ROUNDING)
    with pytest.raises(ValueError, match="lags must be as they were"):
        streamed.set_params(lags=5).partial_fit(parts[0])
    with pytest.raises(ValueError, match="X must be samples that follow"):
        SOBI().partial_fit(parts)


@pytest.mark.parametrize("seed", range(4))
def test_streams_polish_the_pairs_that_one_array_does(seed):
    """Lines in the spectrum do not fit the model of polishing: the pairs for which it pays are the same."""
    channels = mixed_signals(1000, ["sinusoid", "sinusoid", "square", "autoregressive"], seed=seed).channels
    expected = SOBI(lags=20).fit(channels).components_
    assert_allclose(SOBI(lags=20).fit(iter(np.split(channels, [1, 400]))).components_, expected, atol=ROUNDING)
    assert_allclose(SOBI(lags=20).fit([channels]).components_, expected, atol=ROUNDING)


@pytest.mark.parametrize("max_iter", [0, 50])
def test_standard_errors_of_streams_are_those_of_the_whole(max_iter):
    """Of Gaussian autoregressions, which they take sources to be; scales have errors that are known to a quarter."""
    channels = 1e3 * mixed_signals(20_000, ["autoregressive"] * 3, seed=4).channels
    expected = SOBI(lags=10, max_iter=max_iter).fit(channels)
    streamed = SOBI(lags=10, max_iter=max_iter).fit(iter(np.split(channels, [5000, 5001])))
    assert_allclose(streamed.components_, expected.components_, rtol=1e-6)
    assert_allclose(streamed.mixing_standard_errors_, expected.mixing_standard_errors_, rtol=0.25)


def test_dask_arrays_are_streams():
    array = pytest.importorskip("dask.array")
    model, mixed = drawn("SOBI")
    expected = model.fit(mixed.channels).components_
    assert_allclose(model.fit(array.from_array(mixed.channels, chunks=(300, 2))).components_, expected, atol=ROUNDING)


def test_parts_are_recordings_of_variances():
    """Also far from zero, and of one sample."""
    mixed = drawn("NSS", n=3000)[1]
    parts = np.split(mixed.channels + 100, [700, 1500, 1501])
    expected = NSS(n_windows=6).fit(parts)
    streamed = NSS(n_windows=6)
    for part in parts:
        streamed.partial_fit(part)
    for found in (streamed, NSS(n_windows=6).fit(iter(parts)), NSS(n_windows=6).fit(lambda: iter(parts))):
        assert_allclose(found.components_, expected.components_, atol=1e-8)
        # By a model of white Gaussians, which these sources are in every block.
        assert_allclose(found.mixing_standard_errors_, expected.mixing_standard_errors_, rtol=0.3)
    with pytest.raises(ValueError, match="X must have as many channels in every part"):
        NSS().fit(iter([parts[0], parts[1][:, 1:]]))


def test_chunks_shorter_than_a_block_share_one():
    """However short they are, errors are of one size, and as large as is said."""
    ratios = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        mixing = rng.standard_normal((4, 4))
        stretches = np.repeat(rng.uniform(0.3, 2, (20, 4)), 100, axis=0)
        channels = (stretches * rng.standard_normal((2000, 4))) @ mixing.T
        whole = NSS().fit(channels)
        for length in (2, 20):
            streamed = NSS().fit(iter([channels[start : start + length] for start in range(0, 2000, length)]))
            errors = [np.median(model.mixing_standard_errors_) for model in (streamed, whole)]
            distances = [minimum_distance(model.components_, mixing) for model in (streamed, whole)]
            ratios.append([errors[0] / errors[1], distances[0] / distances[1]])
            assert len(streamed.unresolved_) <= 1
    assert_allclose(np.median(ratios, axis=0), 1, atol=0.25)
    chunks = np.split(channels, 100)
    assert_allclose(NSS().fit(iter(chunks)).components_, NSS().fit(chunks).components_, atol=1e-8)


@pytest.mark.parametrize("lengths", [(500, 1), (400, 700, 2), (1, 500, 2, 2, 495), (300, 700, 999, 1)])
def test_windows_in_memory_equal_those_of_a_stream(lengths):
    """Wherever the short ones stand, and all samples count once."""
    channels = 50 + drawn("NSS")[1].channels[: sum(lengths), :2]
    recordings = np.split(channels, np.cumsum(lengths)[:-1])
    model = NSS(n_windows=3)
    assert_allclose(model.fit(recordings).components_, clone(model).fit(iter(recordings)).components_, atol=1e-8)


def test_short_epochs_share_a_block_and_few_samples_are_refused():
    channels = drawn("NSS")[1].channels
    pairs = np.stack([part.T for part in np.split(channels, 1000)])
    eights = np.stack([part.T for part in np.split(channels, 125)])
    assert_allclose(NSS().fit(pairs).components_, NSS().fit(eights).components_, atol=1e-8)
    with pytest.raises(ValueError, match=r"X must contain two windows or more.* got 1, of 12 samples"):
        NSS().fit([channels[:6], channels[6:12]])
    with pytest.raises(ValueError, match=r"X must contain two windows or more.* got 1, of 6 samples"):
        NSS(n_components=1).fit([channels[:5], channels[5:6]])


@pytest.mark.parametrize("n_channels", [1, 3])
def test_blocks_have_samples_enough(n_channels):
    samples = 50 + np.random.default_rng(0).standard_normal((500, n_channels))
    least = 4 * n_channels
    for cuts in (range(1, 500), range(5, 500, 5), [1, 2, 300, 301], [499]):
        parts = [WindowSums.over(part, 20, least) for part in np.split(samples, cuts)]
        sums = merged(parts)
        assert np.all(sums.counts[:-1] >= least)
        assert np.all(sums.closed().counts >= least)
        mean, products = sums.closed().finish()
        assert_allclose(mean, samples.mean(axis=0))
        centered = samples - samples.mean(axis=0)
        assert_allclose(products.sum(axis=0), centered.T @ centered, rtol=1e-9, atol=1e-9)


def test_long_streams_fill_no_memory(monkeypatch):
    """Blocks get longer once there are many: half as many at least, of all samples, and sources are found as before."""
    monkeypatch.setattr("codiag.models.sources._nss.MAX_ENTRIES", 100 * 4**2)
    mixed = drawn("NSS", n=20_000)[1]
    sums = None
    for part in np.split(mixed.channels, 500):
        sums = WindowSums.over(part, 20, 16) if sums is None else merged([sums, WindowSums.over(part, 20, 16)])
        assert sums.counts.size <= 100
    assert sums.counts.sum() == 20_000
    assert sums.least <= 20_000 / 25
    assert np.all(sums.counts[:-1] >= sums.least)
    mean, products = sums.finish()
    centered = mixed.channels - mixed.channels.mean(axis=0)
    assert_allclose(mean, mixed.channels.mean(axis=0), atol=1e-12)
    assert_allclose(products.sum(axis=0), centered.T @ centered, atol=1e-8)
    distances = [
        minimum_distance(NSS().fit(data).components_, mixed.mixing)
        for data in (iter(np.split(mixed.channels, 500)), mixed.channels)
    ]
    assert distances[0] < 1.5 * distances[1]


@pytest.mark.parametrize(
    ("name", "model", "first", "words"),
    [
        ("SOBI", SOBI(lags=[1, 300]), [100, 200, 300], "lags must be below"),
        ("SOBI", SOBI(), [1], "X must contain samples that differ"),
        ("NSS", NSS(max_iter=0), [1, 5], "X must contain"),
    ],
    ids=str,
)
def test_streams_keep_sums_until_they_determine_the_model(name, model, first, words):
    channels = drawn(name)[1].channels
    parts = np.split(channels, [*first, 1000])
    streamed = clone(model)
    for part in parts[: len(first)]:
        with pytest.warns(UserWarning, match=f"not fitted yet: {words}.* What was seen is kept"):
            streamed.partial_fit(part)
        with pytest.raises(NotFittedError):
            streamed.transform(part)
    for part in parts[len(first) :]:
        streamed.partial_fit(part)
    assert_allclose(streamed.components_, clone(model).fit(iter(parts)).components_, atol=ROUNDING)
    assert_allclose(streamed.mean_, channels.mean(axis=0), atol=1e-12)
    constant = clone(model)
    with pytest.warns(UserWarning, match="samples that differ"):
        constant.partial_fit(np.ones((400, channels.shape[1])))
    assert constant.partial_fit(channels).mean_ == pytest.approx((400 + channels.sum(axis=0)) / 2400)


@pytest.mark.parametrize("model", [SOBI(lags=5), NSS()], ids=str)
def test_streams_are_checked_like_arrays(model):
    """And a part that is refused leaves no trace in what was seen before."""
    channels = drawn("NSS")[1].channels
    for wrong, words in (
        (1e150 * channels, "whose fourth powers are numbers"),
        (np.ma.masked_greater(channels, 1), r"\d+ entries are masked"),
        (np.where(channels > 1, np.nan, channels), "X must contain finite numbers"),
    ):
        with pytest.raises(ValueError, match=f"{words}.*this was in part 1"):
            clone(model).fit(iter([channels, wrong]))
        streamed = clone(model).partial_fit(channels[:1000])
        with pytest.raises(ValueError, match=words):
            streamed.partial_fit(wrong)
        streamed.partial_fit(channels[1000:])
        expected = clone(model).fit(iter([channels[:1000], channels[1000:]]))
        assert_allclose(streamed.components_, expected.components_, atol=ROUNDING)
