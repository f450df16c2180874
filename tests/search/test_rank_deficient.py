"""Tensors with fewer components than asked for: every method returns as many columns as asked, or says no."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import codiag
from cases import METHODS
from codiag._checks import RankDeficientError


def _tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((4, 5))
    slices = rng.standard_normal((5, 5, 5))
    slices[2:] = 0
    entry = np.zeros((3, 4, 5))
    entry[0, 0, 0] = 1
    return {
        "ones 3 5 3": np.ones((3, 5, 3)),
        "ones 6 2 4": np.ones((6, 2, 4)),
        "ones 5 5 5": np.ones((5, 5, 5)),
        "rank one": np.einsum("i,j,k->ijk", *vectors[:3]),
        "symmetric rank one": np.einsum("i,j,k->ijk", *[vectors[3]] * 3),
        "zero slices": slices,
        "repeated slices": np.repeat(rng.standard_normal((5, 5, 1)), 5, axis=2),
        "one entry": entry,
    }


TENSORS = _tensors()


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")  # several components in the place of one may cancel
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("name", METHODS)
def test_as_many_columns_as_asked_or_a_sentence(name, tensor, rank):
    refusal, fit, method = None, None, METHODS[name].method
    if hasattr(method, "max_iter"):
        method = replace(method, max_iter=30)
    try:
        fit = codiag.factorize(TENSORS[tensor], rank, method=method, rng=0)
    except ValueError as error:
        refusal = error
    if fit is None:
        assert type(refusal) in (ValueError, RankDeficientError)  # not the LinAlgError of a routine below
        assert any(way_out in str(refusal) for way_out in ("rank must be at most", "use NOJD", "Use NOJD"))
        return
    assert fit.weights.shape == (rank,)
    for factor, size in zip(fit.factors, TENSORS[tensor].shape, strict=True):
        assert factor.shape == (size, rank)
        lengths = np.linalg.norm(factor, axis=0)
        np.testing.assert_allclose(lengths, 1, atol=1e-9)


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
@pytest.mark.parametrize("n_zero_slices", [0, 1, 2])
def test_slices_of_zeros_do_not_make_cancelling_components_look_like_a_fit_that_leaves_noise(n_zero_slices):
    # The form x^2 z + x y^2: two of its terms that cancel each other leave half of it, other pairs less.
    indices = np.indices((3, 3, 3)).sum(axis=0)
    tensor = np.pad((indices == 2).astype(float), (0, n_zero_slices))
    fit = codiag.factorize(tensor, 2, rng=0)
    assert fit.relative_error < 0.63
    assert not fit.converged


def test_equations_that_do_not_determine_all_components_leave_the_others_to_other_starts():
    tensor = np.zeros((7, 3, 3))
    tensor[[1, 2, 4, 6], [1, 1, 1, 2], [2, 1, 0, 0]] = 1
    assert codiag.factorize(tensor, 4, rng=0).relative_error < 1e-6
