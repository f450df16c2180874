"""Least squares for noise with variances and correlations."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from assertions import assert_same_to_rounding
from benchmarks.noise_kinds import NOISES, spectra
from codiag.losses import Gaussian


def banded(size):
    """Return the covariance of noise that is correlated with its neighbours."""
    return np.eye(size) + 0.4 * (np.eye(size, k=1) + np.eye(size, k=-1))


def test_identities_change_nothing():
    tensor = spectra("white")[2]
    plain, same = (codiag.factorize(tensor, 2, loss=loss, rng=0) for loss in (None, Gaussian([None] * 3)))
    np.testing.assert_allclose(same.weights, plain.weights, rtol=1e-7)
    np.testing.assert_allclose(same.standard_errors, plain.standard_errors, rtol=1e-4)
    for loss in ("gaussian", Gaussian()):
        assert_same_to_rounding(codiag.factorize(tensor, 2, loss=loss, rng=0).weights, plain.weights)


def test_a_given_covariance_is_that_of_the_whitened_tensor():
    """No move lowers the distance that the inverse covariance defines."""
    tensor, covariance = spectra("white", level=0.2)[2], banded(22)
    fit = codiag.factorize(tensor, 2, loss=Gaussian([None, covariance, None]), rng=0)
    residual = tensor - fit.to_tensor()
    weighed = np.einsum("jl,ilk->ijk", np.linalg.inv(covariance), residual)
    gradient = np.einsum("ijk,jr,kr->ir", weighed, *fit.factors[1:])
    assert np.max(np.abs(gradient)) < 1e-6 * np.linalg.norm(residual)


def errors(kind, loss, seeds):
    found = []
    for seed in seeds:
        factors, weights, tensor = spectra(kind, shape=(20, 30, 25), rank=3, seed=seed)
        found.append(codiag.factor_error(codiag.factorize(tensor, 3, loss=loss, rng=0), (weights, factors)))
    return np.array(found)


@pytest.mark.slow
@pytest.mark.parametrize("kind", NOISES)
def test_estimated_variances_help_where_they_differ_and_never_hurt(kind):
    ratio = np.median(errors(kind, Gaussian("modes"), range(5)) / errors(kind, None, range(5)))
    assert ratio < (0.8 if kind in ("proportional", "a scale for each sample") else 1.05)


def test_known_variances_help():
    rng, deviations = np.random.default_rng(0), np.geomspace(0.2, 5.0, 16)
    factors, weights, clean = spectra("white", level=1e-12)
    tensor = clean + 0.03 * clean.std() * deviations[:, None, None] * rng.standard_normal(clean.shape)
    plain, fit = (
        codiag.factorize(tensor, 2, loss=loss, rng=0) for loss in (None, Gaussian([deviations**2, None, None]))
    )
    ours, theirs = (codiag.factor_error(one, (weights, factors)) for one in (fit, plain))
    assert ours < 0.7 * theirs
    assert 0.4 < ours / np.mean(fit.standard_errors) < 2.5
    assert np.all(fit.standard_errors[1:] < plain.standard_errors[1:])


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ("all", "^covariance must"),
        ([None], "^covariance must"),
        ([np.ones(5), None, None], "^covariance must"),
        ([-np.ones(16), None, None], "^covariance must"),
    ],
)
def test_wrong_covariances_are_refused(covariance, message):
    with pytest.raises((TypeError, ValueError), match=message):
        codiag.factorize(spectra("white")[2], 2, loss=Gaussian(covariance), rng=0)


def test_what_does_not_go_is_said():
    tensor = spectra("white")[2]
    with pytest.raises(ValueError, match="^loss must"):
        codiag.factorize(tensor, 2, loss=Gaussian("modes"), constraints="nonnegative", rng=0)
