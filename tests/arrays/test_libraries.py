"""The same code on every array library, with the same answers."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from array_api_compat import array_namespace, device
from numpy.testing import assert_allclose

import codiag
from assertions import assert_same_factors
from cases import DIAGONALIZERS, METHODS
from codiag._arrays import to_host
from codiag.synthetic import noisy_tensor
from codiag.tensors import CrossMomentTensor, SparseTensor
from tensor_cases import LIBRARIES

EVERY = pytest.mark.parametrize("library", LIBRARIES)
FIELDS = ("factor", "inverse", "diagonals", "right_factor", "right_inverse", "residuals")


def on_cuda(values):
    torch = pytest.importorskip("torch", reason="torch is not installed; it is the extra 'torch'")
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device")
    return torch.asarray(values, device="cuda")


PLACES = pytest.mark.parametrize("place", [*LIBRARIES, "cuda"])


def placed(place, values):
    return on_cuda(values) if place == "cuda" else LIBRARIES[place](values)


def assert_at_home(array, reference):
    """Results live in the library and on the device of the data, in its precision."""
    assert array_namespace(array) is array_namespace(reference)
    assert device(array) == device(reference)
    assert array.dtype == reference.dtype


@PLACES
@pytest.mark.parametrize("name", DIAGONALIZERS)
def test_diagonalizations_agree_with_numpy(name, place):
    case = DIAGONALIZERS[name]
    noise = 1e-3 if case.settles else 0.0
    matrices, weights = case.stack(8, 36, noise=noise).matrices, np.linspace(1, 2, 36)
    given = placed(place, matrices)
    expected = case.method(matrices, sample_weight=weights, rng=0)
    fit = case.method(given, sample_weight=placed(place, weights), rng=0)
    for field in FIELDS:
        assert_at_home(getattr(fit, field), given)
        assert_allclose(to_host(getattr(fit, field)), getattr(expected, field), atol=1e-10)
    assert fit.symmetric == expected.symmetric
    assert_allclose(to_host(fit.reconstruct()), expected.reconstruct(), atol=1e-10)
    assert_allclose(fit.standard_errors, expected.standard_errors, rtol=1e-6)


@EVERY
@pytest.mark.parametrize("name", ["OrthogonalNewton", "UWEDGE", "TwoSided", "Jacobi"])
def test_low_rank(name, library):
    case = DIAGONALIZERS[name]
    matrices = case.stack(9, 6, rank=4).matrices
    expected, fit = (case.method(array, rng=0) for array in (matrices, LIBRARIES[library](matrices)))
    assert_allclose(to_host(fit.factor), expected.factor, atol=1e-10)


@EVERY
@pytest.mark.parametrize("name", ["OrthogonalNewton", "UWEDGE", "TwoSided", "Jacobi"])
def test_many_matrices_in_more_slabs_than_one(name, library, monkeypatch):
    """Also those of JAX, without the way over the host that few matrices take."""
    monkeypatch.setattr("codiag.diagonalize._base.NOT_COMPILED", 0)
    monkeypatch.setattr("codiag.diagonalize._stack.CACHED_ELEMENTS", 200)
    case = DIAGONALIZERS[name]
    matrices = case.stack(5, 39, noise=1e-3).matrices
    expected, fit = (case.method(array, rng=0) for array in (matrices, LIBRARIES[library](matrices)))
    assert_allclose(to_host(fit.factor), expected.factor, atol=1e-10)


@EVERY
def test_single_precision_stays_single(library):
    stack = DIAGONALIZERS["UWEDGE"].stack(6, 8)
    given = LIBRARIES[library](stack.matrices.astype(np.float32))
    fit = codiag.joint_diagonalize(given, rng=0)
    assert_at_home(fit.factor, given)
    assert_same_factors(to_host(fit.factor), stack.factor, 1e-4)


@EVERY
@pytest.mark.parametrize("symmetric", [True, False])
def test_factors_in_single_precision_are_as_good_as_it_is(library, symmetric):
    """The core is solved in double precision, so that nothing but the rounding of the data is lost."""
    problem = METHODS["auto"].problem((7, 7, 7), 4, symmetric=symmetric)
    given = LIBRARIES[library](problem.tensor.astype(np.float32))
    fit = codiag.factorize(given, 4, rng=0)
    for factor in fit.factors:
        assert_at_home(factor, given)
    assert codiag.factor_error([to_host(factor) for factor in fit.factors], problem.factors) < 1e-5


@EVERY
def test_list_of_matrices_is_stacked(library):
    matrices = [LIBRARIES[library](matrix) for matrix in DIAGONALIZERS["UWEDGE"].stack(4, 5).matrices]
    assert_at_home(codiag.joint_diagonalize(matrices, rng=0).factor, matrices[0])


@EVERY
def test_integers(library):
    counts = np.random.default_rng(0).poisson(3.0, (3, 4, 5))
    fit = codiag.factorize(LIBRARIES[library](counts), 1, rng=0)
    assert_allclose(to_host(fit.to_tensor()), codiag.factorize(counts, 1, rng=0).to_tensor(), atol=1e-6)


@EVERY
@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (lambda matrices: np.triu(matrices + 1j), ValueError, "Hermitian or all"),
        (lambda matrices: matrices * np.nan, ValueError, "finite"),
        (np.zeros_like, ValueError, "not all be zero"),
    ],
)
def test_bad_matrices_are_refused_with_the_same_sentences(library, spoil, error, words):
    with pytest.raises(error, match=words):
        codiag.joint_diagonalize(LIBRARIES[library](spoil(DIAGONALIZERS["UWEDGE"].stack(4, 5).matrices)))


@EVERY
def test_matrices_of_different_shapes_are_refused(library):
    with pytest.raises(ValueError, match="same shape"):
        codiag.joint_diagonalize([LIBRARIES[library](np.eye(size)) for size in (3, 2)])


@EVERY
def test_errors_compare_arrays(library):
    assert codiag.factor_error(LIBRARIES[library](np.eye(3)), LIBRARIES[library](-np.eye(3))) == 0


@functools.cache
def fitted_by_numpy(name, symmetric):
    problem = METHODS[name].problem((7, 7, 7), 4, symmetric=symmetric, noise=1e-3)
    return problem, codiag.factorize(problem.tensor, 4, method=METHODS[name].method, symmetric=symmetric, rng=0)


@PLACES
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("symmetric", [True, False])
def test_factorizations_agree_with_numpy(name, symmetric, place):
    case = METHODS[name]
    case.skip_where_all_is_compiled(place)
    if place == "jax" and symmetric and name != "auto":
        pytest.skip("JAX compiles every operation for every shape; tensors that are not symmetric show the same")
    problem, expected = fitted_by_numpy(name, symmetric)
    given = placed(place, problem.tensor)
    fit = codiag.factorize(given, 4, method=case.method, symmetric=symmetric, rng=0)
    for ours, theirs in zip((fit.weights, *fit.factors), (expected.weights, *expected.factors), strict=True):
        assert_at_home(ours, given)
        assert_allclose(to_host(ours), theirs, atol=1e-8)
    assert_allclose(fit.standard_errors, expected.standard_errors, rtol=1e-6)
    assert fit.relative_error == pytest.approx(expected.relative_error, rel=1e-8)


@PLACES
def test_large_tensors_agree_with_numpy(place):
    """Above the size where ranges are sketched."""
    problem = noisy_tensor((130, 140, 150), 4, noise=1e-2, rng=0)
    expected = codiag.factorize(problem.tensor, 4, rng=0)
    fit = codiag.factorize(placed(place, problem.tensor), 4, rng=0)
    for ours, theirs in zip(fit.factors, expected.factors, strict=True):
        assert_allclose(to_host(ours), theirs, atol=1e-8)


@EVERY
def test_moments_of_samples_agree_with_numpy(library):
    samples = np.random.default_rng(0).gamma(1.0, size=(50, 4))
    tensors = [CrossMomentTensor(array, array[:, :3], array) for array in (samples, LIBRARIES[library](samples))]
    first, second = (codiag.factorize(tensor, 2, rng=0) for tensor in tensors)
    assert_allclose(to_host(second.weights), first.weights, rtol=1e-8)
    assert second.relative_error == pytest.approx(first.relative_error)


@EVERY
def test_entries_of_a_sparse_tensor(library):
    made = SparseTensor(
        LIBRARIES[library](np.array([[0, 1], [1, 2], [2, 0]])), LIBRARIES[library](np.ones(2)), (3, 3, 3)
    )
    assert made.to_dense()[1, 2, 0] == 1


class TestTorch:
    def test_gradients_are_not_followed(self):
        matrices = LIBRARIES["torch"](DIAGONALIZERS["UWEDGE"].stack(4, 5).matrices).requires_grad_()
        assert not codiag.joint_diagonalize(matrices, rng=0).factor.requires_grad


class TestJaxInSinglePrecision:
    """What JAX is unless double precision was enabled: nothing may ask for it, which is a warning of JAX."""

    @pytest.fixture(autouse=True)
    def _single(self):
        jax = pytest.importorskip("jax", reason="jax is not installed")
        before = jax.config.jax_enable_x64
        jax.config.update("jax_enable_x64", False)
        yield
        jax.config.update("jax_enable_x64", before)

    def array(self, values):
        import jax

        return jax.numpy.asarray(values.astype(np.float32))

    @pytest.mark.parametrize("shape", [(6, 7, 8), (130, 140, 150)], ids=str)
    def test_factorize(self, shape):
        problem = noisy_tensor(shape, 3, noise=1e-3, rng=0)
        fit = codiag.factorize(self.array(problem.tensor), 3, rng=0)
        expected = codiag.factorize(problem.tensor.astype(np.float32), 3, rng=0)
        assert fit.weights.dtype == np.float32
        assert fit.relative_error == pytest.approx(expected.relative_error, rel=1e-4)
        for ours, theirs in zip(fit.factors, expected.factors, strict=True):
            assert_allclose(to_host(ours), theirs, atol=1e-5)

    def test_integers(self):
        import jax

        counts = np.random.default_rng(0).poisson(3.0, (4, 5, 6))
        fit = codiag.factorize(jax.numpy.asarray(counts.astype(np.int32)), 2, rng=0)
        assert fit.weights.dtype == np.float32

    @pytest.mark.parametrize("entries_on_host", [0, 2**24])
    @pytest.mark.parametrize("orthogonal", [True, False])
    def test_joint_diagonalize(self, orthogonal, entries_on_host, monkeypatch):
        monkeypatch.setattr("codiag.diagonalize._base.NOT_COMPILED", entries_on_host)
        case = DIAGONALIZERS["OrthogonalNewton" if orthogonal else "UWEDGE"]
        stack = case.stack(5, 40, noise=1e-4)
        fit = codiag.joint_diagonalize(self.array(stack.matrices), orthogonal=orthogonal, rng=0)
        assert fit.factor.dtype == np.float32
        assert_same_factors(to_host(fit.factor), stack.factor, 1e-2)
