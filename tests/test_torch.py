"""The same code on torch, with the same answers."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from cases import DIAGONALIZERS, METHODS
from codiag.synthetic import noisy_tensor

torch = pytest.importorskip("torch", reason="torch is not installed; it is the extra 'torch'")

DEVICES = [
    "cpu",
    pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", DIAGONALIZERS)
def test_torch_agrees_with_numpy(name, device):
    case = DIAGONALIZERS[name]
    noise = 1e-3 if case.settles else 0.0
    matrices = case.stack(8, 36, noise=noise).matrices
    tensors = torch.asarray(matrices, device=device)
    weights = np.linspace(1, 2, 36)
    expected = case.method(matrices, weights=weights, seed=0)
    fit = case.method(tensors, weights=torch.asarray(weights, device=device), seed=0)
    for field in ("factor", "inverse", "diagonals", "right_factor", "residuals"):
        array = getattr(fit, field)
        assert isinstance(array, torch.Tensor)
        assert array.device == tensors.device
        np.testing.assert_allclose(array.cpu().numpy(), getattr(expected, field), atol=1e-10)
    np.testing.assert_allclose(fit.standard_errors, expected.standard_errors, rtol=1e-6)


@pytest.mark.parametrize("name", ["OrthogonalNewton", "UWEDGE", "TwoSided", "Jacobi"])
def test_low_rank_on_torch(name):
    case = DIAGONALIZERS[name]
    matrices = case.stack(9, 6, rank=4).matrices
    expected, fit = (case.method(array, seed=0) for array in (matrices, torch.asarray(matrices)))
    np.testing.assert_allclose(fit.factor.numpy(), expected.factor, atol=1e-10)


def test_single_precision_stays_single():
    matrices = DIAGONALIZERS["UWEDGE"].stack(6, 8).matrices
    assert codiag.joint_diagonalize(torch.asarray(matrices, dtype=torch.float32), seed=0).factor.dtype == torch.float32


def test_gradients_are_not_followed():
    matrices = torch.asarray(DIAGONALIZERS["UWEDGE"].stack(4, 5).matrices).requires_grad_()
    assert not codiag.joint_diagonalize(matrices, seed=0).factor.requires_grad


def test_list_of_tensors_is_stacked():
    matrices = torch.asarray(DIAGONALIZERS["UWEDGE"].stack(4, 5).matrices)
    assert isinstance(codiag.joint_diagonalize(list(matrices), seed=0).factor, torch.Tensor)


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (lambda matrices: matrices.to(torch.complex128), TypeError, "real; got torch.complex128"),
        (lambda matrices: matrices * torch.nan, ValueError, "finite"),
        (lambda matrices: torch.zeros_like(matrices), ValueError, "not all be zero"),
        (lambda matrices: [matrices[0], matrices[1][:2]], ValueError, "same shape"),
    ],
)
def test_bad_tensors_are_refused_with_the_same_sentences(spoil, error, words):
    with pytest.raises(error, match=words):
        codiag.joint_diagonalize(spoil(torch.asarray(DIAGONALIZERS["UWEDGE"].stack(4, 5).matrices)))


def test_errors_compare_tensors():
    factor = torch.eye(3)
    assert codiag.factor_error(factor, -factor) == 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("symmetric", [True, False])
def test_factorizations_agree_with_numpy(name, symmetric, device):
    case = METHODS[name]
    case.skip_unless_it_takes((7, 7, 7), symmetric)
    problem = case.problem((7, 7, 7), 4, symmetric=symmetric, noise=1e-3)
    expected = codiag.factorize(problem.tensor, 4, method=case.method, seed=0)
    fit = codiag.factorize(torch.asarray(problem.tensor, device=device), 4, method=case.method, seed=0)
    for ours, theirs in zip((fit.weights, *fit.factors), (expected.weights, *expected.factors), strict=True):
        assert isinstance(ours, torch.Tensor)
        assert ours.device.type == device
        np.testing.assert_allclose(ours.cpu().numpy(), theirs, atol=1e-8)
    np.testing.assert_allclose(fit.standard_errors, expected.standard_errors, rtol=1e-6)
    assert fit.relative_error == pytest.approx(expected.relative_error, rel=1e-8)


@pytest.mark.parametrize("device", DEVICES)
def test_large_tensors_agree_with_numpy(device):
    """Above the size where ranges are sketched."""
    problem = noisy_tensor((130, 140, 150), 4, noise=1e-2, seed=0)
    expected = codiag.factorize(problem.tensor, 4, seed=0)
    fit = codiag.factorize(torch.asarray(problem.tensor, device=device), 4, seed=0)
    for ours, theirs in zip(fit.factors, expected.factors, strict=True):
        np.testing.assert_allclose(ours.cpu().numpy(), theirs, atol=1e-8)
