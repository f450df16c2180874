"""Convert the arguments of users to what the algorithms expect; errors name the argument, the rule and the way out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from array_api_compat import is_array_api_obj, is_numpy_array, is_torch_array

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    asarray_like,
    asymmetric,
    epsilon,
    is_complex,
    is_hermitian,
    real_part,
    to_host,
    widest,
)


class RankDeficientError(ValueError):
    """The data do not determine the requested number of components. Callers that can lower it may catch this."""


class ConvergenceWarning(UserWarning):
    """An iteration ended before it reached its tolerance; its best iterate was returned.

    See Also
    --------
    codiag.Factorization : Has ``converged`` and the ``history`` of a fit.

    Examples
    --------
    To make it an error in a script: ``warnings.simplefilter("error", codiag.ConvergenceWarning)``.

    >>> import codiag
    >>> issubclass(codiag.ConvergenceWarning, UserWarning)
    True
    """


def as_stack(matrices: Array | Sequence[Array], *, symmetric: bool) -> Array:
    """Return `matrices` as a finite floating-point array, real or complex, of shape (n, rows, columns), n >= 2."""
    stack = as_number_array(matrices, "matrices")
    if stack.ndim != 3:
        raise ValueError(
            f"matrices must be a stack of shape (n, d, d); got {stack.ndim} axes, shape {tuple(stack.shape)}"
            + ("; for one matrix use numpy.linalg.eigh" if stack.ndim == 2 else "")
        )
    if 0 in stack.shape:
        raise ValueError(f"matrices must not be empty; got shape {tuple(stack.shape)}")
    if stack.shape[0] < 2:
        raise ValueError(
            "matrices must contain at least two matrices, since one alone does not determine the factors; got 1. "
            "Use numpy.linalg.eigh for one symmetric matrix, numpy.linalg.svd for one that is not"
        )
    if symmetric:
        check_square(stack)
    _check_entries(stack, symmetric=symmetric)
    return stack


def check_square(stack: Array) -> None:
    """Raise unless the matrices of a stack have as many rows as columns."""
    n, rows, columns = stack.shape
    if rows != columns:
        raise ValueError(
            f"matrices must be square; got {n} of {rows} x {columns}. Use numpy.moveaxis(matrices, -1, 0) if they lie "
            "along the last axis, or codiag.diagonalize.TwoSided() for A diag(d) B^T with A != B"
        )


def as_sample_weight(sample_weight: Array | Sequence[float] | None, stack: Array) -> Array | None:
    """Return one non-negative weight per matrix of the stack, or None for equal weights."""
    if sample_weight is None:
        return None
    values = to_host(as_real_array(sample_weight, "sample_weight", "use their absolute values"))
    if values.shape != (stack.shape[0],):
        raise ValueError(f"sample_weight must have shape ({stack.shape[0]},), one per matrix; got {values.shape}")
    with np.errstate(over="ignore"):
        converted = asarray_like(values, real_part(stack[:1, :1, :1]))
    rounded = to_host(converted)  # may overflow or vanish in single precision
    if not np.all(np.isfinite(rounded)) or np.any(rounded < 0) or np.count_nonzero(rounded) < 2:
        raise ValueError(
            f"sample_weight must be finite and not negative in {stack.dtype}, at least two of them positive; "
            f"got {np.count_nonzero(rounded > 0)} positive, from {values.min():.3g} to {values.max():.3g}"
        )
    _check_weighted_magnitude(rounded, stack)
    return converted


def _check_weighted_magnitude(sample_weight: np.ndarray, stack: Array) -> None:
    """Raise if weighted squares of the entries would overflow or vanish."""
    xp = array_namespace(stack)
    sizes = to_host(xp.max(xp.abs(xp.reshape(stack, (stack.shape[0], -1))), axis=1)).astype(np.float64)
    largest = float(np.max(np.sqrt(sample_weight.astype(np.float64)) * sizes))
    limit = magnitude_limit(stack)
    if not 1 / limit < largest < limit:
        raise ValueError(
            f"sample_weight times the squared entries must fit into {stack.dtype}; the largest is of the "
            f"order {largest:.0e} squared. Only ratios of weights matter for the factors: divide all by the largest"
        )


def magnitude_limit(stack: Array) -> float:
    """Return the size of entries whose squares, and sums of them, are numbers in the precision of the stack."""
    return 1e150 if epsilon(stack) < 1e-10 else 1e16


def as_rank(rank: Any, limit: int | None = None) -> int | None:
    """Return the rank as an int between 1 and `limit`, or None if it is to be estimated; 2.0 is 2."""
    if rank is None:
        return None
    if isinstance(rank, float | np.floating) and float(rank).is_integer():
        rank = int(rank)
    as_number("rank", rank, integer=True)
    if limit is not None and rank > limit:
        raise ValueError(f"rank must be at most {limit}, the smaller side of the matrices; got {rank}")
    return int(rank)


def as_number(name: str, value: float, *, integer: bool = False, zero: bool = False) -> None:
    """Raise unless the option `name` is a positive number, or zero if that is allowed."""
    kinds = int | np.integer if integer else int | float | np.integer | np.floating
    if isinstance(value, bool) or not isinstance(value, kinds):
        wanted = "an integer" if integer else "a number"
        raise TypeError(f"{name} must be {wanted}; got {type(value).__name__} {value!r}")
    if not (value >= 0 if zero else value > 0):
        raise ValueError(f"{name} must {'not be negative' if zero else 'be positive'}; got {value}")
    if value == float("inf"):
        raise ValueError(f"{name} must be finite; got {value}")
    if integer and value > sys.maxsize:
        raise ValueError(f"{name} must be at most {sys.maxsize}, the largest index of Python; got {value}")


def as_share(name: str, value: float) -> None:
    """Raise unless `value` is a number from 0 to 1."""
    as_number(name, value, zero=True)
    if value > 1:
        raise ValueError(f"{name} must be at most 1; got {value}")


def as_flag(name: str, value: object) -> None:
    """Raise unless `value` is True or False: other objects have a truth value by accident."""
    if not isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} must be True or False; got {value!r}")


def as_finite(
    name: str, values: Array | Sequence[Array], shape: tuple[int | None, ...], *, allow_complex: bool = False
) -> np.ndarray:
    """Return numbers as a finite array of NumPy, in double precision, of this shape; None is any size."""
    array = to_host(
        as_number_array(values, name) if allow_complex else as_real_array(values, name, "use its real part")
    )
    wanted = tuple("n" if size is None else size for size in shape)
    if array.ndim != len(shape) or any(size not in (None, got) for size, got in zip(shape, array.shape, strict=True)):
        text = f"({', '.join(map(str, wanted))}{',' if len(wanted) == 1 else ''})"
        raise ValueError(f"{name} must have shape {text}; got {array.shape}")
    if 0 in array.shape:
        raise ValueError(f"{name} must not be empty; got shape {array.shape}")
    if not np.all(np.isfinite(array)):
        bad, nan = (int(np.sum(kind)) for kind in (~np.isfinite(array), np.isnan(array)))
        raise ValueError(f"{name} must be finite; {bad} of {array.size} entries are {not_finite(bad, nan)}")
    return array.astype(np.complex128 if is_complex(array) else np.float64, copy=False)


def not_finite(n_bad: int, n_nan: int) -> str:
    """Return "NaN", "infinite" or both, for `n_bad` entries that are not finite, `n_nan` of them NaN."""
    return "infinite" if n_nan == 0 else "NaN" if n_nan == n_bad else "NaN or infinite"


RNGLike: TypeAlias = int | Sequence[int] | np.random.Generator | None
"""The source of random numbers: the same seed gives the same answer."""


def check_n_jobs(n_jobs: object) -> None:
    """Raise unless a number of processes is one that joblib knows."""
    if n_jobs is not None and (not isinstance(n_jobs, int | np.integer) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise ValueError(f"n_jobs must be an integer other than 0, such as -1 for all cores, or None; got {n_jobs!r}")


def check_rng(name: str, rng: object) -> None:
    """Raise unless a seed is None, a non-negative integer, a sequence of those, or a source of random numbers."""
    if rng is None or isinstance(
        rng, np.random.Generator | np.random.BitGenerator | np.random.RandomState | np.random.SeedSequence
    ):
        return
    rule = f"{name} must be None, a non-negative integer or a Generator of numpy; got {rng!r}"
    if isinstance(rng, str | bytes):  # NumPy reads digits in a string
        raise TypeError(rule)
    try:
        np.random.SeedSequence(rng)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(rule) from None
    except ValueError:
        raise ValueError(rule) from None


def as_generator(rng: object, name: str = "rng", *, apart: bool = False) -> np.random.Generator:
    """Return the generator of a seed, ``default_rng(rng)``.

    With `apart`, a different stream of the same seed, for starts: the seed may have simulated the data, and a random
    start must not equal the true factors.
    """
    check_rng(name, rng)
    if rng is None or isinstance(rng, np.random.Generator | np.random.BitGenerator):
        return np.random.default_rng(rng)
    if isinstance(rng, np.random.RandomState):
        rng = int(rng.randint(2**31 - 1))
    given = rng if isinstance(rng, np.random.SeedSequence) else np.random.SeedSequence(rng)  # type: ignore[arg-type]
    if apart:
        given = np.random.SeedSequence(given.entropy, spawn_key=(*given.spawn_key, 0))
    return np.random.default_rng(given)


def as_real_array(raw: Array | Sequence[Array], name: str, way_out: str, *, cast: bool = True) -> Array:
    """Return `raw` as an array of real numbers, in floating point if `cast` is true."""
    values = as_number_array(raw, name, cast=cast, kind="real numbers")
    if is_complex(values):
        raise TypeError(f"{name} must be real; got {values.dtype}: {way_out}")
    return values


def as_number_array(
    raw: Array | Sequence[Array], name: str, *, cast: bool = True, kind: str = "real or complex numbers"
) -> Array:
    """Return `raw` as an array of real or complex numbers, in floating point if `cast` is true."""
    if isinstance(raw, np.ma.MaskedArray):
        raise TypeError(f"{name} must not be masked; fill the missing entries or leave out what holds them")
    values: Array = raw if is_array_api_obj(raw) else _from_sequence(raw, name)
    if is_torch_array(values):
        values = values.detach()
    xp = array_namespace(values)
    if isinstance(values, np.ndarray) and values.dtype.kind not in "biufc":
        objects = f"; numpy.asarray({name}, float) makes numbers of objects, and NaN of None"
        raise TypeError(
            f"{name} must contain {kind}; got {type(raw).__name__} of dtype {values.dtype}"
            + (objects if values.dtype.kind == "O" else "")
        )
    if cast and values.dtype not in (xp.float32, xp.float64, xp.complex64, xp.complex128):
        values = xp.astype(values, widest(values))
    return values


def _from_sequence(values: Sequence[Array], name: str) -> Array:
    """Stack a list of matrices, of NumPy or of another library."""
    if isinstance(values, list | tuple) and values and all(map(_is_of_another_library, values)):
        _check_same_shape([tuple(item.shape) for item in values], name)
        return array_namespace(*values).stack(list(values))
    try:
        return np.asarray(values)
    except ValueError as error:  # NumPy's message for ragged lists does not name the argument
        _check_same_shape(_shapes(values), name)
        raise ValueError(f"{name} must form a regular array: {error}") from error


def _shapes(values: Sequence[Array]) -> list[tuple[int, ...]]:
    """Return the shapes of items; an empty list if one of them is ragged."""
    try:
        return [np.shape(item) for item in values]
    except ValueError:
        return []


def _is_of_another_library(item: object) -> bool:
    return is_array_api_obj(item) and not is_numpy_array(item)


def _check_same_shape(shapes: list[tuple[int, ...]], name: str) -> None:
    if len(set(shapes)) > 1:
        listed = ", ".join(str(shape) for shape in sorted(set(shapes))[:4])
        raise ValueError(f"{name} must all have the same shape; got {listed}")


def _check_entries(stack: Array, *, symmetric: bool) -> None:
    """Detect NaN, infinity, zeros and asymmetry by matrix-vector products, which need no transposed copy."""
    xp = array_namespace(stack)
    probe = asarray_like(np.random.default_rng(0).standard_normal(stack.shape[2]), stack)
    right = xp.matmul(stack, probe)
    if not bool(xp.all(xp.isfinite(right))):
        _raise_not_finite(stack)
    _check_magnitude(float(xp.max(xp.abs(right))), stack)
    if not symmetric or is_hermitian(stack) or not bool(xp.any(asymmetric(stack, conjugated=False))):
        return
    largest = float(xp.max(xp.abs(stack - xp.matrix_transpose(stack))))
    if is_complex(stack):
        deviation = float(xp.max(xp.abs(stack - adjoint(stack))))
        raise ValueError(
            f"complex matrices must all be Hermitian or all symmetric; the largest |M_ij - conj(M_ji)| is "
            f"{deviation:.3g}, the largest |M_ij - M_ji| {largest:.3g}, both above rounding. If that is noise, pass "
            "(M + M.swapaxes(1, 2).conj()) / 2 for U diag(d) U^H or (M + M.swapaxes(1, 2)) / 2 for U diag(d) U^T; "
            "otherwise use codiag.diagonalize.TwoSided() for A diag(d) B^T"
        )
    raise ValueError(
        f"matrices must be symmetric; the largest |M_ij - M_ji| is {largest:.3g}, above rounding. If that is "
        "noise, pass (M + M.swapaxes(1, 2)) / 2; otherwise use codiag.diagonalize.TwoSided() for A diag(d) B^T"
    )


def _check_magnitude(size: float, stack: Array) -> None:
    """Raise if squares of the entries would overflow or vanish."""
    if size == 0:
        raise RankDeficientError("matrices must not all be zero")
    limit = magnitude_limit(stack)
    if not 1 / limit < size < limit:
        raise RankDeficientError(
            f"matrices must have entries whose squares fit into {stack.dtype}; theirs are of the order {size:.0e}. "
            "Divide all of them by their largest entry"
        )


def _raise_not_finite(stack: Array) -> None:
    entries = to_host(stack)
    bad = ~np.isfinite(entries)
    if not bad.any():
        _check_magnitude(float("inf"), stack)
    first = tuple(int(i) for i in np.argwhere(bad)[0])
    n_bad = int(bad.sum())
    what = not_finite(n_bad, int(np.isnan(entries).sum()))
    raise ValueError(f"matrices must be finite; {n_bad} of {bad.size} entries are {what}, the first at {first}")
