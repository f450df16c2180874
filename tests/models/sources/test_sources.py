"""The contract of estimators of blind sources: equivariant, the same from every seed, and in any unit."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from codiag.diagonalize import UWEDGE
from codiag.metrics import minimum_distance
from codiag.models import JADE, SOBI
from codiag.synthetic import mixed_signals
from source_cases import COLORED, EVERY, ROUNDING, aligned, drawn


@EVERY
def test_transforming_channels_transforms_the_mixing(name):
    model, mixed = drawn(name)
    change = np.random.default_rng(1).standard_normal((mixed.channels.shape[1],) * 2)
    before = model.fit(mixed.channels).mixing_
    errors = model.mixing_standard_errors_
    after, order = aligned(model.fit(mixed.channels @ change.T + 5).mixing_, change @ before)
    assert_allclose(after, change @ before, atol=ROUNDING)
    # The variances of shares are the same, by which those of entries are sums of squares.
    permuted = model.fit(mixed.channels[:, ::-1])
    again, order = aligned(permuted.mixing_, before[::-1])
    assert_allclose(again, before[::-1], atol=ROUNDING)
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
        assert_allclose(other, found[0], atol=ROUNDING)


@EVERY
def test_units_of_channels_make_no_difference(name):
    """Volts beside teslas: no channel is lost because its numbers are small."""
    model, mixed = drawn(name)
    units = np.geomspace(1e-9, 1e3, mixed.channels.shape[1])
    before = model.fit(mixed.channels).mixing_
    after, _ = aligned(model.fit(mixed.channels * units).mixing_ / units[:, None], before)
    assert_allclose(after, before, atol=1e-6)


def test_channels_of_rounding_noise_are_ignored():
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


def test_fewer_components_are_those_of_the_leading_variances():
    mixed = mixed_signals(5000, COLORED[:3], n_channels=6, noise=0.01, rng=2)
    model = SOBI(3, lags=20).fit(mixed.channels)
    assert model.components_.shape == (3, 6)
    assert minimum_distance(model.components_, mixed.mixing) < 0.1
    clean = mixed_signals(500, COLORED[:3], n_channels=6, rng=2).channels
    assert SOBI().fit(clean).n_components_ == 3
    with pytest.raises(ValueError, match="^n_components must"):
        SOBI(4).fit(clean)


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (SOBI(lags=0), ValueError, "^lags must"),
        (SOBI(lags=[1, 2.5]), TypeError, "^lags must"),
        (SOBI(lags=[]), ValueError, "^lags must"),
        (SOBI(lags=b"ab"), TypeError, "^lags must"),
        (SOBI(lags=[1, 200]), ValueError, "^lags must"),
        (SOBI(max_iter=-1), ValueError, "^max_iter must"),
        (SOBI(diagonalizer=UWEDGE()), ValueError, "^diagonalizer must"),
        (SOBI(diagonalizer="jacobi"), TypeError, "^diagonalizer must"),
        (JADE(7), ValueError, "^n_components must"),
        (JADE(random_state="a"), TypeError, "^random_state must"),
    ],
    ids=str,
)
def test_parameters_are_checked(model, error, words):
    with pytest.raises(error, match=words):
        model.fit(np.random.default_rng(0).laplace(size=(100, 3)))


@pytest.mark.parametrize("kind", [SOBI, JADE])
def test_data_is_checked(kind):
    with pytest.raises(ValueError, match="^X must"):
        kind().fit(np.ones((10, 2)))
    data = np.random.default_rng(0).laplace(size=(5, 2, 40))
    for wrong, words in (
        (np.where(data > 4, np.nan, data), "X contains NaN"),
        (np.ma.masked_greater(data, 3), r"^X must contain all samples"),
        (1e200 * data, "^X must contain numbers whose squares are finite"),
        (data[None], "dim 4"),
        (data[:0], "^X must contain one epoch"),
        (data[:, :, :0], "0 sample"),
    ):
        with pytest.raises(ValueError, match=words):
            kind().fit(wrong)
    model = kind().fit(data)
    with pytest.raises(ValueError, match="features"):
        model.transform(np.zeros((4, 3)))
    with pytest.raises(ValueError, match="^X must"):
        model.inverse_transform(np.zeros((4, 3)))


@parametrize_with_checks(
    [SOBI(lags=3), JADE(max_iter=5)],
    expected_failed_checks=lambda model: {"check_complex_data": "they are taken"} if isinstance(model, SOBI) else {},
)
@pytest.mark.filterwarnings("ignore")
def test_contract_of_scikit_learn(estimator, check):
    check(estimator)


def test_transposed_recordings_are_refused():
    channels = drawn("JADE")[1].channels[:200]
    for recordings, n in ((channels.T, 5), (np.stack([channels, channels[::-1]]), 10), ([channels.T] * 3, 15)):
        with pytest.raises(ValueError, match=f"^X must have more samples than channels; got {n} samples of 200"):
            SOBI().fit(recordings)


class OfMne:
    """What MNE's Raw and Epochs have in common: no array, but its entries."""

    def __init__(self, data):
        self._data = data

    def get_data(self):
        return self._data


@pytest.mark.parametrize("model", [SOBI(2, lags=5), JADE(2, max_iter=2)], ids=str)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_objects_of_mne_are_their_samples(model):
    channels = drawn("JADE")[1].channels[:400]
    raw, epochs = OfMne(channels.T), OfMne(np.stack(np.split(channels.T, 4, axis=1)))
    expected = clone(model).fit(channels)
    assert_allclose(model.fit(raw).components_, expected.components_, rtol=1e-5, atol=1e-6)
    assert_allclose(model.transform(raw), expected.transform(channels), rtol=1e-4, atol=1e-5)
    assert_allclose(model.fit(epochs).components_, clone(model).fit(epochs.get_data()).components_)
    assert model.transform(epochs).shape == (4, 2, 100)
