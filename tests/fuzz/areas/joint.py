"""Stacks of matrices: `joint_diagonalize` and the diagonalizers."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import codiag
from codiag.diagonalize import LUJ1D, QRJ1D, UWEDGE, Jacobi, JDi, OrthogonalNewton, TwoSided

from ..case import Case
from ..invariants import Problems, not_finite
from ..strategies import FLAGS, LAYOUTS, RNGS, SEEDS, one_of, sizes

NAMED = ("matrices", "orthogonal", "diagonalizer", "init")


@st.composite
def stacks(draw: Any, *, orthogonal: bool, symmetric: bool) -> np.ndarray:
    """Draw matrices with common factors, or without, some of them singular or with equal eigenvalues."""
    n, size, rng = draw(sizes(2, 6)), draw(sizes(1, 6)), draw(RNGS)
    kind = draw(one_of("exact", "noisy", "noisy", "unlike", "singular", "equal", "constant", "one-hot"))
    factors = rng.standard_normal((2, size, size))
    left, right = np.linalg.qr(factors)[0] if orthogonal else factors
    diagonals = rng.standard_normal((n, size))
    if kind == "singular":
        diagonals[:, : size // 2] = 0
    if kind == "equal":
        diagonals[:] = diagonals[:, :1]
    stack = (left * diagonals[:, None, :]) @ (left if symmetric else right).T
    noise = {"noisy": draw(one_of(1e-6, 1e-2, 0.3)), "unlike": 10.0}.get(kind, 0.0)
    stack = stack + noise * rng.standard_normal(stack.shape)
    if kind in ("constant", "one-hot"):
        stack = np.full_like(stack, 1.0 if kind == "constant" else 0.0)
        stack[:, -1, 0] = 1.0
    return (stack + stack.transpose(0, 2, 1)) / 2 if symmetric else stack


@st.composite
def prepared(draw: Any, stack: np.ndarray) -> Any:
    """Draw the stack in some precision, scale, layout or container."""
    single = draw(one_of(False, False, False, True))
    span = 14 if single else 140
    scale = 10.0 ** draw(sizes(-span, span)) if draw(one_of(*[False] * 7, True)) else 1.0
    stack = (stack * scale).astype(np.float32 if single else np.float64)
    layout = draw(st.sampled_from([*LAYOUTS, "list"]))
    return [matrix.copy() for matrix in stack] if layout == "list" else LAYOUTS[layout](stack)


def about_diagonalization(fit: Any, given: dict[str, Any]) -> Problems:
    """Conventions, shapes, unit columns, and the energy off the diagonals, computed again."""
    stack = np.asarray(given["matrices"], dtype=np.float64)
    single = np.asarray(given["matrices"]).dtype == np.float32
    scale = float(np.max(np.abs(stack)))
    (rows, k), n = fit.factor.shape, stack.shape[0]
    shapes = [np.shape(a) for a in (fit.factor, fit.right_factor, fit.diagonals, fit.inverse, fit.residuals)]
    if shapes != [(stack.shape[1], k), (stack.shape[2], k), (n, k), (k, rows), (k, k)]:
        yield "shape", f"stack {stack.shape} gave {shapes}"
        return
    kinds = {str(np.asarray(a).dtype) for a in (fit.factor, fit.diagonals, fit.residuals)}
    if kinds != {"float32" if single else "float64"}:
        yield "dtype", f"{'float32' if single else 'float64'} in, {sorted(kinds)} out"
    bad = not_finite([np.asarray(a) for a in (fit.factor, fit.diagonals, fit.inverse, fit.residuals)])
    if bad:
        yield "not finite", bad
        return
    yield from _about_energy(fit, stack / scale, scale, given, 1e-4 if single else 1e-8)
    if np.shape(fit.standard_errors) != (k,) or fit.reconstruct().shape != stack.shape or not repr(fit):
        yield "shape", f"standard errors {np.shape(fit.standard_errors)} of {k} components"


def _about_energy(fit: Any, stack: np.ndarray, scale: float, given: dict[str, Any], precision: float) -> Problems:
    left, right, factor = (np.asarray(a, dtype=np.float64) for a in (fit.inverse, fit.right_inverse, fit.factor))
    lengths = np.linalg.norm(factor, axis=0)
    if np.max(np.abs(lengths - 1)) > precision:
        yield "unit columns", f"lengths from {lengths.min():.6g} to {lengths.max():.6g}"
    conditioning = max(1.0, float(np.linalg.norm(left, 2) * np.linalg.norm(right, 2)))
    if np.max(np.abs(left @ factor - np.eye(left.shape[0]))) > precision * conditioning:
        yield "joint", "inverse @ factor is not the identity"
    inside = left @ stack @ right.T
    diagonals = np.einsum("lii->li", inside)
    away = np.max(np.abs(diagonals - np.asarray(fit.diagonals, dtype=np.float64) / scale))
    if away > precision * conditioning * max(float(np.max(np.abs(inside))), 1):
        yield "joint", "diagonals are not those of the matrices in the inverse factors"
    weights = np.asarray(given.get("sample_weight", np.ones(stack.shape[0])), dtype=np.float64)
    energies, total = weights @ diagonals**2, float(np.sum(weights * np.sum(inside**2, axis=(1, 2))))
    off, claimed = total - float(np.sum(energies)), fit.off_diagonal / scale**2
    slack = 1e-3 * off + 100 * precision**2 * conditioning**2 * max(total, 1)
    if np.isfinite(claimed) and abs(off - claimed) > slack:
        yield "joint", f"off-diagonal energy {claimed:.3g} is claimed, {off:.3g} is true"
    if np.any(np.diff(energies) > 1e-3 * energies.max()):
        yield "order", f"components are not by energy: {energies[:5]}"
    if fit.orthogonal and np.max(np.abs(factor.T @ factor - np.eye(factor.shape[1]))) > precision * 10:
        yield "joint", "factors said to be orthogonal are not"


@st.composite
def stacks_and_methods(draw: Any) -> Case:
    """Draw a stack, and the default or a diagonalizer with options, with weights or a start of one's own at times."""
    tol, sweeps = draw(one_of(1e-5, 1e-8, 1e-10)), draw(one_of(1, 5, 100))
    options = [
        *[None] * 5,
        UWEDGE(tol=tol, max_sweeps=sweeps, fallback=draw(FLAGS)),
        JDi(tol=tol),
        QRJ1D(max_sweeps=sweeps),
        LUJ1D(max_sweeps=sweeps),
        OrthogonalNewton(tol=tol, statistical_tol=draw(one_of(1e-2, 1e-10))),
        Jacobi(tol=tol, max_sweeps=sweeps),
        TwoSided(tol=tol, orthogonal=draw(FLAGS), max_sweeps=sweeps),
    ]
    method = draw(st.sampled_from(options))
    orthogonal, symmetric = (draw(FLAGS), True) if method is None else (method.orthogonal, method.symmetric)
    stack = draw(stacks(orthogonal=orthogonal, symmetric=symmetric))
    arguments: dict[str, Any] = {"matrices": draw(prepared(stack)), "rng": draw(SEEDS)}
    valid = True if np.any(stack) else None
    extra = draw(one_of("", "", "weights", "start"))
    if method is None:
        arguments["orthogonal"] = orthogonal
    if extra == "weights":
        arguments["sample_weight"] = draw(RNGS).uniform(0.1, 2, len(stack))
    if extra == "start":  # refused where the matrices are singular
        sides = draw(RNGS).standard_normal((1 if symmetric else 2, *stack.shape[1:]))
        sides = np.linalg.qr(sides)[0] if orthogonal else sides
        arguments["init"] = sides[0] if symmetric else tuple(sides)
        valid = None if int(np.linalg.matrix_rank(np.hstack(list(stack)))) < stack.shape[1] else valid
    call = codiag.joint_diagonalize if method is None else method
    return Case("codiag.joint_diagonalize", call, arguments, valid, (about_diagonalization,), NAMED)
