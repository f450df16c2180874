"""Binary data that components separate without error have no finite optimum, which is said."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from codiag.constraints import Ridge


def clicks(seed=0, shape=(9, 10, 11)):
    rng = np.random.default_rng(seed)
    logits = np.einsum("ir,jr,kr->ijk", *(rng.standard_normal((size, 1)) for size in shape))
    return (rng.random(shape) < 1 / (1 + np.exp(-logits))).astype(float)


@pytest.mark.parametrize("value", [0, 1])
def test_a_slice_without_variation_is_named(value):
    tensor = clicks()
    tensor[:, 4] = value
    tensor[2, 4, 5] = np.nan
    with pytest.warns(codiag.ConvergenceWarning, match=rf"Index 4 of mode 1 holds nothing but {value}, .*Ridge"):
        fit = codiag.factorize(tensor, 2, loss="bernoulli", rng=0)
    assert not fit.converged
    assert f"holds nothing but {value}" in str(fit.diagnose())


def test_the_number_of_entries_that_are_separated_is_said():
    """Of so many components that they fit almost all entries without error."""
    with pytest.warns(codiag.ConvergenceWarning, match=r"Components separate \d+ of 120 entries without error"):
        codiag.factorize(clicks(shape=(4, 5, 6)), 4, loss="bernoulli", rng=0)


@pytest.mark.filterwarnings("error")
def test_a_fit_that_converges_says_nothing():
    fit = codiag.factorize(clicks(shape=(15, 16, 17)), 1, loss="bernoulli", rng=0)
    assert fit.converged
    assert "separate" not in str(fit.diagnose())


def test_a_ridge_bounds_what_a_slice_of_ones_would_not():
    tensor = clicks()
    tensor[3] = 1.0
    fit = codiag.factorize(tensor, 1, loss="bernoulli", constraints=Ridge(0.5), rng=0)
    assert fit.converged
    assert np.max(fit.weights) < 1e3
