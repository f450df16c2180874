"""Stacks of matrices: `joint_diagonalize` and the diagonalizers."""

from __future__ import annotations

from typing import Any

import numpy as np

import codiag
from codiag.diagonalize import LUJ1D, QRJ1D, UWEDGE, Jacobi, JDi, OrthogonalNewton, TwoSided
from codiag.drop_in import ajd

from ..arrays import choose
from ..case import Case, covers
from ..invariants import Problems, not_finite

NAMED = ("matrices", "orthogonal", "diagonalizer", "init")


def _stack(rng: np.random.Generator, *, orthogonal: bool, symmetric: bool) -> np.ndarray:
    """Return matrices with common factors, or without, some of them singular or with equal eigenvalues."""
    n, size = int(rng.integers(2, 7)), int(rng.integers(1, 7))
    kind = choose(
        rng, *("exact", "noisy") * 2, "nothing in common", "singular", "equal", "integers", "constant", "one-hot"
    )
    factor = np.linalg.qr(rng.standard_normal((size, size)))[0] if orthogonal else rng.standard_normal((size, size))
    right = (
        factor
        if symmetric
        else (np.linalg.qr(rng.standard_normal((size, size)))[0] if orthogonal else rng.standard_normal((size, size)))
    )
    diagonals = rng.standard_normal((n, size))
    if kind == "singular":
        diagonals[:, : size // 2] = 0
    if kind == "equal":
        diagonals[:] = diagonals[:, :1]
    stack = (factor * diagonals[:, None, :]) @ right.T
    noise = rng.standard_normal(stack.shape)
    stack = stack + {"noisy": choose(rng, 1e-6, 1e-2, 0.3), "nothing in common": 10.0}.get(kind, 0.0) * noise
    if kind == "integers":
        stack = rng.integers(-2, 3, stack.shape).astype(float)
    if kind == "constant":
        stack = np.full_like(stack, choose(rng, 1.0, -2.0))
    if kind == "one-hot":
        stack = np.zeros_like(stack)
        stack[:, int(rng.integers(size)), int(rng.integers(size))] = 1.0
    return (stack + stack.transpose(0, 2, 1)) / 2 if symmetric else stack


def _prepared(rng: np.random.Generator, stack: np.ndarray) -> Any:
    """Return the stack in some precision, layout or container."""
    if rng.random() < 0.2:
        stack = stack.astype(np.float32)
    if rng.random() < 0.1:
        stack = (
            stack * 10.0 ** int(rng.integers(-14, 15))
            if stack.dtype == np.float32
            else stack * 10.0 ** int(rng.integers(-140, 141))
        )
    stack = stack.astype(stack.dtype)
    layout = choose(rng, "", "", "", "Fortran", "read-only", "list", "negative")
    if layout == "read-only":
        stack.flags.writeable = False
    if layout == "list":
        return [matrix.copy() for matrix in stack]
    if layout == "negative":
        return np.ascontiguousarray(stack[::-1])[::-1]
    return np.asfortranarray(stack) if layout == "Fortran" else stack


def about_diagonalization(fit: Any, given: dict[str, Any]) -> Problems:
    """Conventions, shapes, unit columns, and the energy off the diagonals, computed again."""
    stack = np.asarray(given["matrices"], dtype=np.float64)
    single = np.asarray(given["matrices"]).dtype == np.float32
    scale = float(np.max(np.abs(stack)))
    stack = stack / scale
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
    yield from _about_energy(fit, stack, scale, given, single)


def _about_energy(fit: Any, stack: np.ndarray, scale: float, given: dict[str, Any], single: bool) -> Problems:
    left, right = np.asarray(fit.inverse, dtype=np.float64), np.asarray(fit.right_inverse, dtype=np.float64)
    factor = np.asarray(fit.factor, dtype=np.float64)
    precision = 1e-4 if single else 1e-8
    lengths = np.linalg.norm(factor, axis=0)
    if np.max(np.abs(lengths - 1)) > precision:
        yield "unit columns", f"lengths from {lengths.min():.6g} to {lengths.max():.6g}"
    conditioning = max(1.0, float(np.linalg.norm(left, 2) * np.linalg.norm(right, 2)))
    if np.max(np.abs(left @ factor - np.eye(left.shape[0]))) > precision * conditioning:
        yield "joint", "inverse @ factor is not the identity"
    inside = left @ stack @ right.T
    diagonals = np.einsum("lii->li", inside)
    size = float(np.max(np.abs(inside))) + 1e-300
    if np.max(np.abs(diagonals - np.asarray(fit.diagonals, dtype=np.float64) / scale)) > precision * conditioning * max(
        size, 1
    ):
        yield "joint", "diagonals are not those of the matrices in the inverse factors"
    weights = (
        np.ones(stack.shape[0])
        if given.get("sample_weight") is None
        else np.asarray(given["sample_weight"], dtype=np.float64)
    )
    off = float(
        np.sum(
            weights[:, None] * (np.sum(inside**2, axis=2).sum(axis=1)[:, None] - np.sum(diagonals**2, axis=1)[:, None])
        )
    )
    total = float(np.sum(weights * np.sum(inside**2, axis=(1, 2))))
    claimed = fit.off_diagonal / scale**2
    if np.isfinite(claimed) and abs(off - claimed) > 1e-3 * off + 100 * precision * precision * conditioning**2 * max(
        total, 1
    ):
        yield "joint", f"off-diagonal energy {claimed:.3g} is claimed, {off:.3g} is true"
    energies = np.sum(weights[:, None] * diagonals**2, axis=0)
    if np.any(np.diff(energies) > 1e-3 * energies.max()):
        yield "order", f"components are not by energy: {energies[:5]}"
    if fit.orthogonal and np.max(np.abs(factor.T @ factor - np.eye(factor.shape[1]))) > precision * 10:
        yield "joint", "factors said to be orthogonal are not"


def _again(rng: np.random.Generator) -> tuple[Any, ...]:
    """Return, for some inputs, the checks that the same seed gives the same bytes, and another the same energy."""
    if rng.random() > 0.25:
        return ()

    def check(fit: Any, given: dict[str, Any]) -> Problems:
        again = codiag.joint_diagonalize(**given)
        if np.asarray(again.factor).tobytes() != np.asarray(fit.factor).tobytes():
            yield "seed", "the same seed gives other factors"
        other = codiag.joint_diagonalize(**given | {"seed": given["seed"] + 1})
        if other.factor.shape != fit.factor.shape or not (fit.converged and other.converged):
            return
        energies = sorted(
            (float(one.off_diagonal), float(np.sum(np.asarray(one.diagonals) ** 2))) for one in (fit, other)
        )
        (low, _), (high, kept) = energies
        if high > 1.2 * low and high > 1e-4 * (high + kept):
            yield "seed", f"another seed leaves {low:.3g} off the diagonals, not {high:.3g}"

    return (check,)


@covers("codiag.joint_diagonalize", "codiag.Diagonalization", weight=5)
def entry(rng: np.random.Generator) -> Case:
    """The entry point with its defaults."""
    orthogonal = bool(rng.random() < 0.4)
    matrices = _prepared(rng, _stack(rng, orthogonal=orthogonal, symmetric=True))
    arguments: dict[str, Any] = {"matrices": matrices, "seed": int(rng.integers(2**31)), "orthogonal": orthogonal}
    if rng.random() < 0.3:
        arguments["sample_weight"] = rng.uniform(0.1, 2, len(matrices))
        if rng.random() < 0.2:  # refused if squares of the matrices overflow with them
            arguments["sample_weight"] *= 10.0 ** int(rng.integers(-300, 300))
            return Case("codiag.joint_diagonalize", codiag.joint_diagonalize, arguments, None, named=NAMED)
    zero = not np.any(np.asarray(matrices))
    checks = (about_diagonalization, about_itself, *_again(rng))
    return Case("codiag.joint_diagonalize", codiag.joint_diagonalize, arguments, None if zero else True, checks, NAMED)


def about_itself(fit: Any, given: dict[str, Any]) -> Problems:
    """What a diagonalization tells about itself has the right shapes, and no NaN beside what it leaves open."""
    k = fit.factor.shape[1]
    if np.shape(fit.standard_errors) != (k,) or np.shape(fit.pair_errors) != (k, k):
        yield "shape", f"standard errors {np.shape(fit.standard_errors)} of {k} components"
    if fit.reconstruct().shape != np.shape(given["matrices"]) or not repr(fit):
        yield "shape", f"reconstruct has shape {fit.reconstruct().shape}"
    if any(not 0 <= i < j < k for i, j in fit.unresolved):
        yield "joint", f"unresolved pairs {fit.unresolved} of {k} components"
    if fit.transposed().factor.shape != fit.right_factor.shape:
        yield "shape", "transposed has other shapes"


def _diagonalizer(rng: np.random.Generator) -> tuple[Any, bool, bool]:
    """Return a configured method, whether it wants orthogonal factors, and symmetric matrices."""
    tol, sweeps = choose(rng, 1e-5, 1e-8, 1e-10), int(choose(rng, 1, 5, 100))
    options: list[tuple[Any, bool, bool]] = [
        (UWEDGE(tol=tol, fallback=choose(rng, True, False)), False, True),
        (UWEDGE(max_sweeps=sweeps), False, True),
        (JDi(tol=tol), False, True),
        (QRJ1D(max_sweeps=sweeps), False, True),
        (LUJ1D(max_sweeps=sweeps), False, True),
        (OrthogonalNewton(tol=tol, statistical_tol=choose(rng, 1e-2, 1e-10)), True, True),
        (Jacobi(tol=tol, max_sweeps=sweeps), True, True),
        (TwoSided(tol=tol, orthogonal=False), False, False),
        (TwoSided(orthogonal=True, max_sweeps=sweeps), True, False),
    ]
    return options[int(rng.integers(len(options)))]


@covers(
    *(f"codiag.diagonalize.{name}" for name in ("UWEDGE", "JDi", "QRJ1D", "LUJ1D", "OrthogonalNewton", "Jacobi")),
    *(f"codiag.diagonalize.{name}" for name in ("TwoSided", "Diagonalizer", "Diagonalization")),
    "codiag.diagonalize.Iterate",
    "codiag.diagonalize.joint_diagonalize",
    weight=6,
)
def every_diagonalizer(rng: np.random.Generator) -> Case:
    """Every method on stacks of the kind it is for, and on others."""
    method, orthogonal, symmetric = _diagonalizer(rng)
    stack = _stack(rng, orthogonal=orthogonal, symmetric=symmetric or rng.random() < 0.2)
    arguments: dict[str, Any] = {"matrices": _prepared(rng, stack), "seed": int(rng.integers(2**31))}
    if rng.random() < 0.2:
        arguments["sample_weight"] = rng.uniform(0.1, 2, stack.shape[0])
    name = f"codiag.diagonalize.{type(method).__name__.strip('_')}"
    open_ended = not np.any(stack)
    if rng.random() < 0.3:  # refused where the matrices are singular
        sides = [rng.standard_normal(stack.shape[1:]) for _ in range(1 if method.symmetric else 2)]
        sides = [np.linalg.qr(side)[0] for side in sides] if method.orthogonal else sides
        arguments["init"] = sides[0] if method.symmetric else tuple(sides)
        open_ended = open_ended or int(np.linalg.matrix_rank(np.hstack(list(stack)))) < stack.shape[1]
    return Case(name, method, arguments, None if open_ended else True, (about_diagonalization, about_itself), NAMED)


@covers("codiag.diagonalize.Diagonalizer", weight=1)
def options(rng: np.random.Generator) -> Case:
    """Options of diagonalizers, which are looked at where they are set."""
    maker, more = choose(
        rng,
        (UWEDGE, {"statistical_tol": 1e-3, "fallback": False}),
        (Jacobi, {"max_rows": 3}),
        (OrthogonalNewton, {"statistical_tol": 1e-3}),
        (TwoSided, {"orthogonal": True}),
        (JDi, {}),
        (QRJ1D, {}),
        (LUJ1D, {}),
    )
    factor, kind = rng.standard_normal((4, 4)), choose(rng, "regular", "regular", "constant", "one-hot")
    stack = (factor * rng.standard_normal((3, 1, 4))) @ factor.T
    if kind != "regular":
        stack = np.ones((3, 4, 4)) if kind == "constant" else np.diag([1.0, 0, 0, 0]) * np.ones((3, 1, 1))
    rank = int(rng.integers(1, 5))
    valid = True if kind == "regular" or rank == 1 else None  # refused by methods with free factors

    def build_and_use(**given: Any) -> Any:
        return maker(**given)(stack, seed=0)

    arguments = {"rank": rank, "tol": 1e-6, "max_sweeps": 20, **more}
    return Case(f"codiag.diagonalize.{maker.__name__}", build_and_use, arguments, valid, (), (*NAMED, "rank"))


@covers(*(f"codiag.drop_in.ajd.{name}" for name in ajd.__all__), weight=2)
def pyriemann(rng: np.random.Generator) -> Case:
    """The functions of pyriemann, by themselves or by name."""
    name = choose(rng, "jade", "rjd", "uwedge", "ajd_pham")
    size = int(rng.integers(1, 6))
    samples = rng.standard_normal((int(rng.integers(2, 7)), size, size + int(rng.integers(1, 9))))
    if name == "ajd_pham" and rng.random() < 0.3:
        samples = samples + 1j * rng.standard_normal(samples.shape)
    stack = samples @ samples.conj().swapaxes(1, 2)
    arguments: dict[str, Any] = {"X": stack}
    if rng.random() < 0.3:
        arguments["init"] = np.linalg.qr(rng.standard_normal((size, size)))[0]
    if name == "ajd_pham" and rng.random() < 0.3:
        arguments["sample_weight"] = rng.uniform(0.1, 2, len(stack))

    def check(found: Any, given: dict[str, Any]) -> Problems:
        (rows, entries), matrices = found, np.asarray(given["X"])
        rows = rows.T if name == "rjd" else rows
        away = np.max(np.abs(entries - rows @ matrices @ rows.conj().T))
        if not away <= 1e-8 * np.max(np.abs(entries)):
            yield "joint", f"the matrices returned are off by {away:.3g} from those transformed"

    by_name = bool(rng.random() < 0.3)
    if by_name:
        arguments["method"] = name
    function = ajd.ajd if by_name else getattr(ajd, name)
    return Case(f"codiag.drop_in.ajd.{name}", function, arguments, True, (check,), ("X", "matrices", "init", "method"))
