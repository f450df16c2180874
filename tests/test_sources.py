"""Blind sources: equivariant, the same however data is cut and from every seed, and as precise as they say."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment
from scipy.signal import lfilter
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import parametrize_with_checks

import codiag
from codiag.diagonalize import UWEDGE, Jacobi, TwoSided
from codiag.metrics import amari_index, minimum_distance
from codiag.models import JADE, NSS, SOBI
from codiag.models._cumulants import projected_cumulants
from codiag.models._lagged_sums import LaggedSums
from codiag.models._nss import BlockSums
from codiag.models._sources import Whitening
from codiag.synthetic import mixed_signals

COLORED = ["sinusoid", "autoregressive", "square", "bursts", "autoregressive"]
CURVED = ["uniform", "laplace", "binary", "exponential", "sparse"]
CASES = {
    "SOBI": (SOBI(lags=10), COLORED),
    "SOBI by joint diagonalization": (SOBI(lags=10, polish=0), COLORED),
    "SOBI not orthogonal": (SOBI(lags=[1, 3, 7], polish=0, diagonalizer=UWEDGE(statistical_tol=0, tol=1e-12)), COLORED),
    "NSS": (NSS(n_blocks=15), ["loud"] * 4),
    "NSS by joint diagonalization": (NSS(n_blocks=15, polish=0), ["loud"] * 4),
    "JADE": (JADE(), CURVED),
    "JADE by joint diagonalization": (JADE(polish=0), CURVED),
}
EVERY = pytest.mark.parametrize("name", CASES)


def drawn(name, n=2000, seed=0):
    model, kinds = CASES[name]
    return model, mixed_signals(n, kinds, seed=seed)


def aligned(found, reference):
    """Return columns in the order and with the signs that bring them nearest to the reference, and that order."""
    cosines = (reference / np.linalg.norm(reference, axis=0)).T @ (found / np.linalg.norm(found, axis=0))
    order = linear_sum_assignment(-np.abs(cosines))[1]
    return found[:, order] * np.sign(cosines[np.arange(order.size), order]), order


@EVERY
def test_sources_are_found(name):
    model, mixed = drawn(name, n=5000)
    model.fit(mixed.channels)
    assert minimum_distance(model.components_, mixed.mixing) < 0.1
    assert model.converged_
    assert model.unresolved_ == []


@EVERY
def test_transforming_channels_transforms_the_mixing(name):
    model, mixed = drawn(name)
    change = np.random.default_rng(1).standard_normal((mixed.channels.shape[1],) * 2)
    before = model.fit(mixed.channels).mixing_
    errors = model.mixing_standard_errors_
    after, order = aligned(model.fit(mixed.channels @ change.T + 5).mixing_, change @ before)
    assert_allclose(after, change @ before, atol=1e-7)
    # The variances of shares are the same, by which those of entries are sums of squares.
    permuted = model.fit(mixed.channels[:, ::-1])
    again, order = aligned(permuted.mixing_, before[::-1])
    assert_allclose(again, before[::-1], atol=1e-7)
    assert_allclose(permuted.mixing_standard_errors_[::-1, order], errors, rtol=1e-5)


@EVERY
def test_conventions(name):
    model, mixed = drawn(name)
    sources = model.fit_transform(mixed.channels)
    k = mixed.mixing.shape[1]
    assert_allclose(sources.mean(axis=0), 0, atol=1e-10)
    assert_allclose(sources.var(axis=0), 1, rtol=1e-10)
    assert_allclose(model.components_ @ model.mixing_, np.eye(k), atol=1e-10)
    assert_allclose(model.inverse_transform(sources), mixed.channels, atol=1e-9)
    assert_allclose(np.cov(mixed.channels @ model.whitening_.T, rowvar=False, bias=True), np.eye(k), atol=1e-10)
    assert np.all(np.diff(model.explained_variance_) <= 0)
    assert_allclose(model.explained_variance_, np.sum(model.mixing_**2, axis=0))
    assert np.all(model.mixing_.max(axis=0) >= -model.mixing_.min(axis=0))
    assert list(model.get_feature_names_out()) == [f"{type(model).__name__.lower()}{place}" for place in range(k)]


@EVERY
def test_every_seed_gives_the_same_answer(name):
    model, mixed = drawn(name)
    found = [model.set_params(random_state=seed).fit(mixed.channels).components_ for seed in range(3)]
    model.set_params(random_state=None)
    for other in found[1:]:
        assert_allclose(other, found[0], atol=1e-8)


@pytest.mark.parametrize("name", ["SOBI", "JADE"])
def test_epochs_are_recordings(name):
    model, mixed = drawn(name)
    epochs = np.stack([part.T for part in np.split(mixed.channels, 10)])
    recordings = [epoch.T for epoch in epochs]
    one, other = (model.fit(data).components_ for data in (epochs, recordings))
    assert_allclose(one, other, atol=1e-12)
    assert model.transform(epochs).shape == epochs.shape
    assert_allclose(model.inverse_transform(model.transform(epochs)), epochs, atol=1e-9)
    for epoch, recording in zip(model.transform(epochs), model.transform(recordings), strict=True):
        assert_allclose(epoch.T, recording)
    assert_allclose(model.inverse_transform(model.transform(recordings))[3], recordings[3], atol=1e-9)
    if name == "JADE":  # the order of samples makes no difference, that of products in time does
        assert_allclose(one, model.fit(mixed.channels).components_, atol=1e-8)


def test_epochs_are_blocks():
    mixed = drawn("NSS")[1]
    epochs = np.stack([part.T for part in np.split(mixed.channels, 20)])
    assert_allclose(NSS(n_blocks=20).fit(mixed.channels).mixing_, NSS().fit(epochs).mixing_, atol=1e-9)


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
        forward = forward.merged(part)
    backward = parts[-1]
    for part in parts[-2::-1]:
        backward = part.merged(backward)
    expected = lagged(samples, 30)
    for sums in (forward, backward):
        assert_allclose(sums.finish().matrices, expected, rtol=1e-9, atol=1e-9 * np.max(expected))
        assert_allclose(sums.finish().mean, samples.mean(axis=0))


def test_streams_give_the_answer_of_one_array():
    model, mixed = drawn("SOBI", n=4000)
    whole = model.fit(mixed.channels)
    expected, errors = whole.components_, whole.mixing_standard_errors_
    streamed = SOBI(lags=10)
    parts = np.split(mixed.channels, [700, 703, 2500])
    for part in parts:
        streamed.partial_fit(part)
    assert_allclose(streamed.components_, expected, atol=1e-8)
    assert_allclose(SOBI(lags=10).fit(iter(parts)).components_, expected, atol=1e-8)
    assert 0.2 < np.median(streamed.mixing_standard_errors_ / errors) < 5
    with pytest.raises(ValueError, match="lags must be as they were"):
        streamed.set_params(lags=5).partial_fit(parts[0])
    with pytest.raises(ValueError, match="X must be samples that follow"):
        SOBI().partial_fit(parts)


def test_parts_are_recordings_of_variances():
    """Also far from zero, and of one sample."""
    mixed = drawn("NSS", n=3000)[1]
    parts = np.split(mixed.channels + 100, [700, 1500, 1501])
    expected = NSS(n_blocks=6).fit(parts)
    streamed = NSS(n_blocks=6)
    for part in parts:
        streamed.partial_fit(part)
    for found in (streamed, NSS(n_blocks=6).fit(iter(parts)), NSS(n_blocks=6).fit(lambda: iter(parts))):
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
def test_recordings_make_the_same_blocks_at_hand_and_as_a_stream(lengths):
    """Wherever the short ones stand, and all samples count once."""
    channels = 50 + drawn("NSS")[1].channels[: sum(lengths), :2]
    recordings = np.split(channels, np.cumsum(lengths)[:-1])
    model = NSS(n_blocks=3)
    assert_allclose(model.fit(recordings).components_, clone(model).fit(iter(recordings)).components_, atol=1e-8)


def test_short_epochs_share_a_block_and_few_samples_are_refused():
    channels = drawn("NSS")[1].channels
    pairs = np.stack([part.T for part in np.split(channels, 1000)])
    eights = np.stack([part.T for part in np.split(channels, 125)])
    assert_allclose(NSS().fit(pairs).components_, NSS().fit(eights).components_, atol=1e-8)
    with pytest.raises(ValueError, match=r"X must hold two blocks or more.* got 1, of 12 samples"):
        NSS().fit([channels[:6], channels[6:12]])
    with pytest.raises(ValueError, match=r"X must hold two blocks or more.* got 1, of 6 samples"):
        NSS(n_components=1).fit([channels[:5], channels[5:6]])


@pytest.mark.parametrize("n_channels", [1, 3])
def test_blocks_have_samples_enough(n_channels):
    samples = 50 + np.random.default_rng(0).standard_normal((500, n_channels))
    least = 4 * n_channels
    for cuts in (range(1, 500), range(5, 500, 5), [1, 2, 300, 301], [499]):
        parts = [BlockSums.over(part, 20, least) for part in np.split(samples, cuts)]
        sums = functools.reduce(BlockSums.merged, parts)
        assert np.all(sums.counts[:-1] >= least)
        assert np.all(sums.closed().counts >= least)
        mean, products = sums.closed().finish()
        assert_allclose(mean, samples.mean(axis=0))
        centered = samples - samples.mean(axis=0)
        assert_allclose(products.sum(axis=0), centered.T @ centered, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("name", "model", "first", "words"),
    [
        ("SOBI", SOBI(lags=[1, 300]), [100, 200, 300], "lags must be below"),
        ("SOBI", SOBI(), [1], "X must hold samples that differ"),
        ("NSS", NSS(polish=0), [1, 5], "X must hold"),
    ],
    ids=str,
)
def test_streams_keep_what_does_not_determine_them_yet(name, model, first, words):
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
    assert_allclose(streamed.components_, clone(model).fit(iter(parts)).components_, atol=1e-8)
    assert_allclose(streamed.mean_, channels.mean(axis=0), atol=1e-12)
    constant = clone(model)
    with pytest.warns(UserWarning, match="samples that differ"):
        constant.partial_fit(np.ones((400, channels.shape[1])))
    assert constant.partial_fit(channels).mean_ == pytest.approx((400 + channels.sum(axis=0)) / 2400)


def test_whitened_products_are_symmetric_beyond_rounding():
    rng = np.random.default_rng(0)
    samples = rng.standard_normal((20, 50, 7)) * np.geomspace(1e-6, 1e6, 7)
    products = samples.transpose(0, 2, 1) @ samples
    found = Whitening.of(np.zeros(7), products.mean(axis=0), None, 1000).of_products(products)
    assert np.array_equal(found, found.transpose(0, 2, 1))


@EVERY
def test_units_of_channels_make_no_difference(name):
    """Volts beside teslas: no channel is lost because its numbers are small."""
    model, mixed = drawn(name)
    units = np.geomspace(1e-9, 1e3, mixed.channels.shape[1])
    before = model.fit(mixed.channels).mixing_
    after, _ = aligned(model.fit(mixed.channels * units).mixing_ / units[:, None], before)
    assert_allclose(after, before, atol=1e-6)


def test_what_rounding_leaves_of_a_constant_is_no_channel():
    mixed = drawn("JADE", n=500)[1]
    dead, sums = np.full((500, 1), 0.1), np.array([[1.0, 2, 0, 0, 0]])
    for extra, row in (
        (dead, 0 * sums),
        (dead + 1e-17 * mixed.channels[:, :1], 0 * sums),
        (mixed.channels @ sums.T, sums @ mixed.mixing),
    ):
        model = JADE().fit(np.concatenate([mixed.channels, extra], axis=1))
        assert model.n_components_ == 5
        assert minimum_distance(model.components_, np.concatenate([mixed.mixing, row])) < 0.2


def test_lags_may_be_longer_than_some_recordings():
    """Those that are too short for a lag have no product of it; their standard errors are those of what is left."""
    mixed = drawn("SOBI", n=4000)[1]
    pieces = np.split(mixed.channels, [1, 3, 10, 40])
    sizes = [np.linalg.norm(SOBI(lags=30, polish=0).fit(data).mixing_standard_errors_) for data in (pieces, pieces[-1])]
    assert sizes[0] == pytest.approx(sizes[1], rel=0.05)
    assert SOBI(lags=10**12).fit(mixed.channels[:50]).n_components_ == 5


@pytest.mark.parametrize("model", [SOBI(lags=5), NSS(n_blocks=4), JADE()], ids=str)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_few_samples_of_noise_resolve_nothing(model):
    for k, n in ((2, 8), (4, 16), (6, 30)):
        model.fit(np.random.default_rng(n).standard_normal((n, k)))
        assert len(model.unresolved_) > 0.6 * k * (k - 1) / 2


def test_dask_arrays_are_streams():
    array = pytest.importorskip("dask.array")
    model, mixed = drawn("SOBI")
    expected = model.fit(mixed.channels).components_
    assert_allclose(model.fit(array.from_array(mixed.channels, chunks=(300, 2))).components_, expected, atol=1e-8)


def test_exact_covariances_are_separated_exactly():
    """Periodic sources over whole periods have no sampling error at all, but for the ends of lagged products."""
    t = np.arange(9600)
    sources = np.stack([np.sin(2 * np.pi * t / period) for period in (12, 20, 50)], axis=1)
    mixing = np.random.default_rng(0).standard_normal((3, 3))
    epochs = (sources @ mixing.T).T[None]
    assert minimum_distance(SOBI(lags=10, polish=0).fit(epochs).components_, mixing) < 2e-3
    cosines = np.cos(2 * np.pi * np.outer(np.arange(11), 1 / np.array([12, 20, 50])))
    fit = codiag.joint_diagonalize((mixing * cosines[:, None, :]) @ mixing.T, seed=0)
    assert minimum_distance(fit.inverse, mixing) < 1e-12


def test_cumulants_are_those_of_the_definition():
    rng = np.random.default_rng(0)
    samples = rng.exponential(size=(500, 3)) @ rng.standard_normal((3, 3))
    samples = samples - samples.mean(axis=0)
    samples = samples @ np.linalg.inv(np.linalg.cholesky(samples.T @ samples / 500)).T
    u = rng.standard_normal(3)
    u = u / np.linalg.norm(u)
    fourth = np.einsum("ni,nj,nk,nl->ijkl", *[samples] * 4) / 500
    pairs = np.einsum("ij,kl->ijkl", np.eye(3), np.eye(3))
    cumulant = fourth - pairs - pairs.transpose(0, 2, 1, 3) - pairs.transpose(0, 2, 3, 1)
    assert_allclose(projected_cumulants(samples, u[None])[0], np.einsum("ijkl,k,l->ij", cumulant, u, u), atol=1e-12)


def autoregressions(n, rng):
    poles = np.array([[0.8, 0.3], [0.6, 1.5], [0.5, 2.6]])
    shapes = [[1, -2 * radius * np.cos(angle), radius**2] for radius, angle in poles]
    return np.stack([lfilter([1], shape, rng.standard_normal(n + 200))[200:] for shape in shapes], axis=1)


def curved(n, rng):
    return np.stack([rng.uniform(-1, 1, n), rng.laplace(size=n), rng.exponential(size=n)], axis=1)


LOUDNESS = np.random.default_rng(3).uniform(0.3, 2, (10, 3))


def loud(n, rng):
    return np.repeat(LOUDNESS, n // 10, axis=0) * rng.standard_normal((n, 3))


@pytest.mark.parametrize(
    ("model", "draw"),
    [
        (SOBI(lags=5), autoregressions),
        (SOBI(lags=5, polish=0), autoregressions),
        (SOBI(lags=5, polish=0, diagonalizer=UWEDGE(statistical_tol=0)), autoregressions),
        (NSS(n_blocks=10), loud),
        (NSS(n_blocks=10, polish=0), loud),
        (JADE(), curved),
        (JADE(polish=0), curved),
    ],
    ids=lambda value: getattr(value, "__name__", None) or f"{type(value).__name__} {value.polish}",
)
def test_standard_errors_are_those_of_repeated_draws(model, draw):
    """Root mean square over all entries of the mixing; of 25 draws a tenth is noise."""
    mixing = np.random.default_rng(2).standard_normal((3, 3))
    reference, found, predicted = None, [], []
    for seed in range(25):
        model.fit(draw(1000, np.random.default_rng([seed, 1])) @ mixing.T)
        reference = model.mixing_ if reference is None else reference
        columns, order = aligned(model.mixing_, reference)
        found.append(columns)
        predicted.append(model.mixing_standard_errors_[:, order])
    measured = np.sqrt(np.sum(np.var(found, axis=0, ddof=1)))
    assert np.sqrt(np.sum(np.mean(np.square(predicted), axis=0))) == pytest.approx(measured, rel=0.25)


@pytest.mark.parametrize(
    ("model", "kinds"),
    [
        (SOBI(lags=10), ["uniform", "gaussian", "autoregressive"]),
        (SOBI(lags=10, polish=0), ["uniform", "gaussian", "autoregressive"]),
        (JADE(), ["gaussian", "gaussian", "uniform"]),
        (JADE(polish=0), ["gaussian", "gaussian", "uniform"]),
        (NSS(polish=0), ["gaussian", "uniform", "loud"]),
        (NSS(), ["gaussian", "uniform", "loud"]),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_sources_that_are_alike_are_named(model, kinds):
    """White sources have no spectra to tell them apart, Gaussians no cumulants, and steady ones no variances."""
    mixed = mixed_signals(3000, kinds, seed=1)
    model.fit(mixed.channels)
    third = np.argmax(np.abs(model.components_ @ mixed.mixing[:, 2]))
    assert model.unresolved_ == [tuple(place for place in range(3) if place != third)]


def test_fewer_components_are_those_of_the_leading_variances():
    mixed = mixed_signals(5000, COLORED[:3], n_channels=6, noise=0.01, seed=2)
    model = SOBI(3, lags=20).fit(mixed.channels)
    assert model.components_.shape == (3, 6)
    assert minimum_distance(model.components_, mixed.mixing) < 0.1
    clean = mixed_signals(500, COLORED[:3], n_channels=6, seed=2).channels
    assert SOBI().fit(clean).n_components_ == 3
    with pytest.raises(ValueError, match="n_components must be at most 3"):
        SOBI(4).fit(clean)


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (SOBI(lags=0), ValueError, "lags must be positive"),
        (SOBI(lags=[1, 2.5]), TypeError, "lags must be an integer"),
        (SOBI(lags=[]), ValueError, "lags must hold one lag or more"),
        (SOBI(lags=b"ab"), TypeError, "lags must be an integer"),
        (SOBI(lags=[1, 200]), ValueError, "lags must be below 100"),
        (SOBI(polish=-1), ValueError, "polish must not be negative"),
        (SOBI(diagonalizer=TwoSided()), ValueError, "diagonalizer must be one for symmetric"),
        (SOBI(diagonalizer="jacobi"), TypeError, "diagonalizer must be an object"),
        (JADE(diagonalizer=UWEDGE()), ValueError, "diagonalizer must be an orthogonal one"),
        (NSS(n_blocks=1), ValueError, "n_blocks must be at least 2"),
        (JADE(7), ValueError, "n_components must be at most 3"),
        (JADE(random_state="a"), TypeError, "random_state must be"),
    ],
    ids=str,
)
def test_parameters_are_checked(model, error, words):
    with pytest.raises(error, match=words):
        model.fit(np.random.default_rng(0).laplace(size=(100, 3)))


@pytest.mark.parametrize("kind", [SOBI, JADE, NSS])
def test_data_is_checked(kind):
    with pytest.raises(ValueError, match="X must hold samples that differ"):
        kind().fit(np.ones((10, 2)))
    data = np.random.default_rng(0).laplace(size=(5, 2, 40))
    for wrong, words in (
        (np.where(data > 4, np.nan, data), r"X must hold finite numbers.*NaN.*list of recordings"),
        (np.ma.masked_greater(data, 3), r"X must hold all samples; \d+ entries are masked"),
        (data[None], "X must be .* got an array of 4 axes"),
        ([data[0], data], "X must be .* got a list whose first items have"),
        (data.tolist(), "X must be .* got a list whose first items have"),
        (data[:, :, :0], "X must hold epochs, channels and times"),
        (data + 1j, "Complex data not supported"),
    ):
        with pytest.raises(ValueError, match=words):
            kind().fit(wrong)
    for wrong in (None, "abc", {"a": data}):
        with pytest.raises(TypeError, match="X must be"):
            kind().fit(wrong)
    model = kind().fit(data)
    with pytest.raises(TypeError, match="X must be at hand"):
        model.transform(iter(data))
    with pytest.raises(ValueError, match="features"):
        model.transform(np.zeros((4, 3)))
    with pytest.raises(ValueError, match=r"X must have shape \(n_samples, 2\)"):
        model.inverse_transform(np.zeros((4, 3)))


def test_any_orthogonal_diagonalizer_serves():
    model, mixed = drawn("SOBI by joint diagonalization")
    expected = model.fit(mixed.channels).components_
    assert_allclose(
        SOBI(lags=10, polish=0, diagonalizer=Jacobi(tol=1e-12)).fit(mixed.channels).components_, expected, atol=1e-6
    )


@parametrize_with_checks([SOBI(lags=3), JADE(polish=5), NSS(n_blocks=3, polish=5)])
@pytest.mark.filterwarnings("ignore")
def test_contract_of_scikit_learn(estimator, check):
    check(estimator)


class TestIndices:
    def test_minimum_distance_is_the_least_over_orders_and_scales(self):
        rng = np.random.default_rng(0)
        for k in (2, 3, 4):
            gain = rng.standard_normal((k, k))
            least = np.inf
            for order in itertools.permutations(range(k)):
                # The best scale of a row against a unit vector projects it.
                rows = [gain[i] * gain[i, j] / (gain[i] @ gain[i]) - np.eye(k)[j] for i, j in enumerate(order)]
                least = min(least, np.linalg.norm(rows))
            assert minimum_distance(gain, np.eye(k)) == pytest.approx(least / np.sqrt(k - 1))

    @pytest.mark.parametrize("index", [minimum_distance, amari_index])
    def test_order_and_scale_make_no_difference_and_the_worst_is_one(self, index):
        rng = np.random.default_rng(1)
        mixing = rng.standard_normal((4, 4))
        unmixing = (rng.standard_normal(4) * np.linalg.inv(mixing).T).T[[2, 0, 3, 1]]
        assert index(unmixing, mixing) == pytest.approx(0, abs=1e-7)
        assert index(np.ones((4, 4)), np.eye(4)) == pytest.approx(1)
        assert index(np.array([[2.0]]), np.array([[3.0]])) == 0
        assert 0 < index(unmixing + 0.1, mixing) < 1
        with pytest.raises(ValueError, match="unmixing must have shape"):
            index(np.ones((2, 3)), np.ones((2, 3)))


class TestSignals:
    def test_sources_have_unit_variance_and_follow_the_seed(self):
        kinds = [*COLORED, *CURVED, "loud", "gaussian"]
        mixed = mixed_signals(500, kinds, noise=0.1, n_channels=14, seed=3)
        assert_allclose(mixed.sources.mean(axis=0), 0, atol=1e-12)
        assert_allclose(mixed.sources.std(axis=0), 1)
        again = mixed_signals(500, kinds, noise=0.1, n_channels=14, seed=3)
        assert np.array_equal(mixed.channels, again.channels)
        noise = mixed.channels - mixed.sources @ mixed.mixing.T
        assert np.std(noise) == pytest.approx(0.1 * np.sqrt(np.mean((mixed.sources @ mixed.mixing.T) ** 2)), rel=0.05)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"kinds": ["sine"]}, "kinds must be a sequence of names"),
            ({"kinds": "sinusoid"}, "kinds must be a sequence of names"),
            ({"n_samples": 1}, "n_samples must be at least 2"),
            ({"n_channels": 1}, "n_channels must be at least 4"),
        ],
    )
    def test_arguments_are_checked(self, arguments, words):
        with pytest.raises(ValueError, match=words):
            mixed_signals(**{"n_samples": 10} | arguments)


def test_epochs_of_one_sample_have_no_lags():
    epochs = np.random.default_rng(0).standard_normal((50, 3, 1))
    with pytest.raises(ValueError, match="samples that follow each other"):
        SOBI(lags=5).fit(epochs)
