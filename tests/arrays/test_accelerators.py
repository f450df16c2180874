"""Work on small cores goes to the host, wherever the tensor lives; where there is an accelerator, the same answers."""

from __future__ import annotations

from dataclasses import replace

import array_api_strict as strict
import numpy as np
import pytest

import codiag
from cases import METHODS
from codiag.diagonalize import UWEDGE, OrthogonalNewton, TwoSided
from codiag.least_squares import LeastSquares, noise_excess
from codiag.methods import checked_fit
from codiag.reduction import reduce
from codiag.tensors import Core, DenseTensor, FactoredTensor, Products, symmetrize


@pytest.fixture(params=["moved to the host", "left there"])
def accelerator(request, monkeypatch):
    """Take arrays of another library for those of an accelerator; mixing them with NumPy's is an error.

    Small problems are solved by the host from the first to the last step, or as if they were large.
    """
    if request.param == "left there":
        monkeypatch.setattr("codiag.result._solve.HOST_WORK", 0)
    tensors = ("tensors._dense", "tensors._factored", "tensors._sums")
    for room in ("reduction._reduction", "result._solve", "least_squares._budget", *tensors):
        monkeypatch.setattr(f"codiag.{room}.on_host", lambda array: isinstance(array, np.ndarray))


def planted(shape, rank, *, symmetric=False):
    rng = np.random.default_rng(0)
    factors = [np.linalg.qr(rng.standard_normal((size, rank)))[0] for size in shape]
    factors = factors[:1] * len(shape) if symmetric else factors
    noise = 1e-3 * rng.standard_normal(shape)
    return FactoredTensor(2 + rng.random(rank), factors).to_dense() + (
        symmetrize(noise) if symmetric else noise
    ), factors


@pytest.mark.parametrize("name", METHODS)
def test_the_answer_does_not_depend_on_where_the_core_lives(name, accelerator):
    case = METHODS[name]
    entries, _ = planted((7, 8, 9), 3, symmetric=False)
    here = codiag.factorize(entries, 3, method=case.method, rng=0)
    there = codiag.factorize(strict.asarray(entries), 3, method=case.method, rng=0)
    assert isinstance(there.factors[0], type(strict.asarray(entries)))
    assert codiag.factor_error([np.asarray(factor) for factor in there.factors], here.factors) < 1e-10


def _noise_excess(fit):
    """Return by how much the residual of a fit exceeds noise, computed where the tensor is."""
    components = FactoredTensor(fit.weights, fit.factors, symmetric=fit.problem.symmetric is True)
    residual = LeastSquares(fit.problem).residual(components)
    return noise_excess(fit.problem, residual, fitted=components)


@pytest.mark.parametrize("noise", [0.01, 0.3])
@pytest.mark.parametrize("symmetric", [False, True])
def test_polish_replacements_and_random_starts_stay_on_the_host(noise, symmetric, accelerator):
    """Replacing components, and random starts for a poor fit, are done where the core is."""
    entries, _ = planted((12, 12, 12), 4, symmetric=symmetric)
    errors = np.random.default_rng(1).standard_normal(entries.shape)
    entries = entries + noise * (symmetrize(errors) if symmetric else errors)
    here = codiag.factorize(entries, 4, rng=0)
    there = codiag.factorize(strict.asarray(entries), 4, rng=0)
    assert there.relative_error == pytest.approx(here.relative_error, rel=1e-8)
    assert _noise_excess(there) == pytest.approx(_noise_excess(here), rel=1e-6)


@pytest.mark.parametrize("constraints", ["nonnegative", None])
def test_constraints_and_missing_entries_on_an_accelerator(constraints, accelerator):
    entries, _ = planted((9, 10, 11), 3)
    entries = np.abs(entries)
    entries[2, 3, 4] = np.nan if constraints is None else entries[2, 3, 4]
    here = codiag.factorize(entries, 3, constraints=constraints, rng=0)
    there = codiag.factorize(strict.asarray(entries), 3, constraints=constraints, rng=0)
    assert there.relative_error == pytest.approx(here.relative_error, rel=1e-6)


@pytest.mark.parametrize("method", ["ojd1", "tpm"])
def test_a_second_moment_goes_where_the_core_goes(method, accelerator):
    entries, (factor, *_) = planted((8, 8, 8), 3, symmetric=True)
    problem = codiag.Problem(
        strict.asarray(entries), 3, symmetric=True, second_moment=strict.asarray(factor @ factor.T)
    )
    fit = codiag.factorize(problem, method=method, rng=0)
    assert codiag.factor_error([np.asarray(found) for found in fit.factors], [factor] * 3) < 1e-2


@pytest.mark.parametrize("rank", [1, 4])
def test_components_of_a_large_tensor_come_back_to_where_it_lives(rank, accelerator):
    entries, factors = planted((120, 130, 140), rank)
    fit = codiag.factorize(strict.asarray(entries), rank, rng=0)
    assert fit.converged
    assert codiag.factor_error([np.asarray(factor) for factor in fit.factors], factors) < 1e-2


@pytest.mark.parametrize("work", [0, 2**40])
def test_cores_live_where_work_on_them_is_fastest(work, accelerator, monkeypatch):
    monkeypatch.setattr("codiag.reduction._reduction.HOST_WORK", work)
    tensor = DenseTensor(strict.asarray(planted((7, 8, 9), 3)[0]))
    reduction = reduce(codiag.Problem(tensor, 3), np.random.default_rng(0))
    assert isinstance(reduction.core.to_dense(), np.ndarray) == (work > 0)


def test_rows_that_were_never_observed_stay_unknown(accelerator):
    entries, _ = planted((7, 8, 9), 2)
    entries[3] = np.nan
    fit = codiag.factorize(strict.asarray(entries), 2, rng=0)
    assert isinstance(fit.factors[0], type(strict.asarray(entries)))
    assert np.isnan(np.asarray(fit.factors[0])).any(axis=1).tolist() == [row == 3 for row in range(7)]


def test_weights_of_entries_beside_the_tensor_or_elsewhere(accelerator):
    """Booleans and weights, in the library of the tensor and in NumPy."""
    entries, _ = planted((7, 8, 9), 2)
    weights = np.random.default_rng(3).integers(0, 3, entries.shape).astype(float)
    fits = [
        codiag.factorize(strict.asarray(entries), 2, weights=observed, rng=0).relative_error
        for observed in (weights, strict.asarray(weights))
    ]
    assert fits[0] == pytest.approx(codiag.factorize(entries, 2, weights=weights, rng=0).relative_error, rel=1e-6)
    assert fits[1] == fits[0]


def test_components_may_be_subtracted_from_a_tensor_elsewhere():
    entries, factors = planted((4, 5, 6), 2)
    tensor, components = DenseTensor(strict.asarray(entries)), FactoredTensor(np.ones(2), factors)
    expected = np.sum((entries - components.to_dense()) ** 2)
    assert (tensor - components).squared_norm() == pytest.approx(expected)


@pytest.mark.parametrize("work", [0, 2**24])
def test_small_problems_are_solved_by_the_host_from_the_first_step(work, accelerator, monkeypatch):
    """A method is given the problem where it is solved; the answer is where the tensor is."""
    given = []
    monkeypatch.setattr("codiag.result._solve.HOST_WORK", work)
    monkeypatch.setattr("codiag.result._solve.checked_fit", lambda *call: given.append(call[1]) or checked_fit(*call))
    tensor = strict.asarray(planted((7, 8, 9), 2)[0])
    fit = codiag.factorize(tensor, 2, rng=0)
    assert isinstance(given[0].tensor.reference, np.ndarray) == (work > 0)
    assert isinstance(fit.weights, type(tensor))


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_bases_that_a_sketch_has_missed_are_found_from_the_sides(noise, accelerator, monkeypatch):
    """Compression is as good if the columns that should span the range of the first mode are random ones."""
    rng = np.random.default_rng(0)
    factors = [np.linalg.qr(rng.standard_normal((size, 3)))[0] for size in (130, 140, 150)]
    entries = FactoredTensor(np.array([1.0, 0.5, 1e-3]), factors).to_dense()
    entries = entries + noise * 1e-3 * rng.standard_normal(entries.shape)
    kept = []
    for is_spoiled in (False, True):
        problem = codiag.Problem(DenseTensor(strict.asarray(entries), check=False), 3)
        sketch = problem.tensor.sketch(13)
        assert sketch.spans_ranges
        if is_spoiled:
            columns = strict.asarray(rng.standard_normal((130, 13)))
            monkeypatch.setattr(problem.tensor, "_sketch", replace(sketch, products=sketch.products | {0: columns}))
        kept.append(reduce(problem, rng).core.squared_norm() / problem.tensor.squared_norm())
    assert 1 - kept[1] == pytest.approx(1 - kept[0], rel=1e-2, abs=1e-13)  # the third one has 8e-7


def test_a_tensor_is_read_four_times(accelerator, monkeypatch):
    """Once for the sketch, once for the last modes, once for the first, and once, with two products, to polish."""
    products = []
    compress, read = Core.over, Products.over
    monkeypatch.setattr(Core, "over", lambda self, chunk: products.append(chunk.shape) or compress(self, chunk))
    monkeypatch.setattr(Products, "over", lambda self, chunk: products.append(chunk.shape) or read(self, chunk))
    entries, factors = planted((120, 130, 140), 4)
    fit = codiag.factorize(strict.asarray(entries), 4, rng=0)
    assert fit.converged
    assert products.count(entries.shape) == 4
    assert codiag.factor_error([np.asarray(factor) for factor in fit.factors], factors) < 1e-2


@pytest.mark.parametrize("limit", [0, 2**15])
@pytest.mark.parametrize("kind", ["orthogonal", "free", "two sides", "compressed, weighted", "slow"])
def test_joint_diagonalization_on_an_accelerator(kind, limit, monkeypatch):
    """All but products with the matrices is left to the host, if it is small; the answer is where the matrices are."""
    for module in ("diagonalize._stack", "_arrays._namespace"):
        monkeypatch.setattr(f"codiag.{module}.on_host", lambda array: isinstance(array, np.ndarray))
    monkeypatch.setattr("codiag.diagonalize._stack.STEP_ON_HOST", limit)
    rng = np.random.default_rng(0)
    factor = np.linalg.qr(rng.standard_normal((8, 8)))[0] + (0 if kind == "orthogonal" else 0.1)
    other = rng.standard_normal((8, 8)) if kind == "two sides" else factor
    weights = 1 + rng.random(40) if kind == "compressed, weighted" else None
    if kind == "compressed, weighted":
        factor, other = factor[:, :5], other[:, :5]
    stack = (factor * rng.standard_normal((40, 1, factor.shape[1]))) @ other.T
    noise = (0.3 if kind == "slow" else 1e-3) * rng.standard_normal(stack.shape)
    stack = stack + (noise if kind == "two sides" else noise + noise.transpose(0, 2, 1))
    method = {"two sides": TwoSided(), "compressed, weighted": UWEDGE(rank=5), "free": UWEDGE()}.get(kind)
    method = method or OrthogonalNewton()
    here, there = (method(array, sample_weight=weights, rng=0) for array in (stack, strict.asarray(stack)))
    assert isinstance(there.factor, type(strict.asarray(stack)))
    assert codiag.factor_error([np.asarray(there.factor)], [here.factor]) < 1e-6
    np.testing.assert_allclose(np.asarray(there.residuals), here.residuals, atol=1e-6 * here.residuals.max())


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(12, 13, 14), (120, 130, 140)])
def test_an_accelerator_gives_what_the_host_gives(dtype, shape, accelerator):
    """A minimum is reached to 3 % of a standard error (`INSIGNIFICANT`), and to rounding of the precision."""
    torch = pytest.importorskip("torch")
    entries = planted(shape, 3)[0].astype(dtype)
    here, there = codiag.factorize(entries, 3, rng=0), codiag.factorize(torch.as_tensor(entries), 3, rng=0)
    assert there.factors[0].dtype == there.weights.dtype == getattr(torch, dtype)
    allowed = 0.03 * float(np.mean([np.mean(errors) for errors in here.standard_errors])) + 10 * np.finfo(dtype).eps
    assert codiag.factor_error([factor.numpy() for factor in there.factors], here.factors) < allowed
    assert there.relative_error == pytest.approx(here.relative_error, rel=1e-6 if dtype == "float64" else 1e-4)
    np.testing.assert_allclose(there.weights.numpy(), here.weights, rtol=allowed)
