"""Blind sources are found, as precisely as is said of them, and those that cannot be told apart are named."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.signal import lfilter

import codiag
from codiag.diagonalize import Jacobi
from codiag.metrics import minimum_distance
from codiag.models import JADE, SOBI
from codiag.models.sources import projected_cumulants
from codiag.synthetic import mixed_signals
from source_cases import EVERY, aligned, drawn


@EVERY
def test_sources_are_found(name):
    model, mixed = drawn(name, n=5000)
    model.fit(mixed.channels)
    assert minimum_distance(model.components_, mixed.mixing) < 0.1
    assert model.converged_
    assert model.unresolved_ == []


def test_exact_covariances_are_separated_exactly():
    """Periodic sources over whole periods have no sampling error at all, but for the ends of lagged products."""
    t = np.arange(9600)
    sources = np.stack([np.sin(2 * np.pi * t / period) for period in (12, 20, 50)], axis=1)
    mixing = np.random.default_rng(0).standard_normal((3, 3))
    epochs = (sources @ mixing.T).T[None]
    assert minimum_distance(SOBI(lags=10, max_iter=0).fit(epochs).components_, mixing) < 2e-3
    cosines = np.cos(2 * np.pi * np.outer(np.arange(11), 1 / np.array([12, 20, 50])))
    fit = codiag.joint_diagonalize((mixing * cosines[:, None, :]) @ mixing.T, rng=0)
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


def test_any_orthogonal_diagonalizer_serves():
    model, mixed = drawn("SOBI by joint diagonalization")
    expected = model.fit(mixed.channels).components_
    assert_allclose(
        SOBI(lags=10, max_iter=0, diagonalizer=Jacobi(tol=1e-12)).fit(mixed.channels).components_, expected, atol=1e-6
    )


def autoregressions(n, rng):
    poles = np.array([[0.8, 0.3], [0.6, 1.5], [0.5, 2.6]])
    shapes = [[1, -2 * radius * np.cos(angle), radius**2] for radius, angle in poles]
    return np.stack([lfilter([1], shape, rng.standard_normal(n + 200))[200:] for shape in shapes], axis=1)


def curved(n, rng):
    return np.stack([rng.uniform(-1, 1, n), rng.laplace(size=n), rng.exponential(size=n)], axis=1)


@pytest.mark.parametrize(
    ("model", "draw"),
    [
        (SOBI(lags=5), autoregressions),
        (SOBI(lags=5, max_iter=0), autoregressions),
        (JADE(), curved),
        (JADE(max_iter=0), curved),
    ],
    ids=lambda value: getattr(value, "__name__", None) or f"{type(value).__name__} {value.max_iter}",
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
        (SOBI(lags=10, max_iter=0), ["uniform", "gaussian", "autoregressive"]),
        (JADE(), ["gaussian", "gaussian", "uniform"]),
        (JADE(max_iter=0), ["gaussian", "gaussian", "uniform"]),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_sources_that_are_alike_are_named(model, kinds):
    """White sources have no spectra to tell them apart, and Gaussians no cumulants."""
    mixed = mixed_signals(3000, kinds, rng=1)
    model.fit(mixed.channels)
    third = np.argmax(np.abs(model.components_ @ mixed.mixing[:, 2]))
    assert model.unresolved_ == [tuple(place for place in range(3) if place != third)]


@pytest.mark.parametrize("model", [SOBI(lags=5), JADE()], ids=str)
@pytest.mark.filterwarnings("ignore:.*did not converge")
def test_few_samples_of_noise_resolve_nothing(model):
    for k, n in ((2, 8), (4, 16), (6, 30)):
        model.fit(np.random.default_rng(n).standard_normal((n, k)))
        assert len(model.unresolved_) > 0.6 * k * (k - 1) / 2
