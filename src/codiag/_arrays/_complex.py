"""Complex numbers: conjugates, magnitudes and parts that leave real arrays as they are, without a copy."""

from __future__ import annotations

import numpy as np

from codiag._arrays._namespace import Array, array_namespace, asarray_like, epsilon, is_complex, to_host


def conjugate(array: Array) -> Array:
    """Return the complex conjugate; a real array itself."""
    return array_namespace(array).conj(array) if is_complex(array) else array


def adjoint(matrices: Array) -> Array:
    """Return the conjugate transposes of matrices; views of the transposes if they are real."""
    return array_namespace(matrices).matrix_transpose(conjugate(matrices))


def real_part(array: Array) -> Array:
    """Return the real part; a real array itself."""
    return array_namespace(array).real(array) if is_complex(array) else array


def squared_magnitudes(array: Array) -> Array:
    """Return the squares of the absolute values, as real numbers."""
    xp = array_namespace(array)
    return xp.real(array) ** 2 + xp.imag(array) ** 2 if is_complex(array) else array * array


def as_real_numbers(array: Array, axis: int = 0) -> Array:
    """Return the real and the imaginary parts one after the other along an axis; a real array itself."""
    if not is_complex(array):
        return array
    xp = array_namespace(array)
    return xp.concat([xp.real(array), xp.imag(array)], axis=axis)


def normal_draws(rng: np.random.Generator, shape: tuple[int, ...], reference: Array) -> np.ndarray:
    """Return standard normal numbers on the host; complex and circular, of unit variance, for a complex reference."""
    draws = rng.standard_normal(shape)
    return (draws + 1j * rng.standard_normal(shape)) / np.sqrt(2) if is_complex(reference) else draws


def signs_of(numbers: Array) -> Array:
    """Return the signs, +1 or -1, or the phases of complex numbers; 1 for zero."""
    xp = array_namespace(numbers)
    if not is_complex(numbers):
        return xp.where(numbers < 0, -xp.ones_like(numbers), xp.ones_like(numbers))
    sizes = xp.abs(numbers)
    return xp.where(sizes > 0, numbers / xp.where(sizes > 0, sizes, xp.ones_like(sizes)), xp.ones_like(numbers))


def largest_signs(columns: Array) -> Array:
    """Return the sign, +1 or -1, of the entry of largest magnitude of each column; its phase if it is complex."""
    xp = array_namespace(columns)
    if is_complex(columns):
        return asarray_like(_largest_phases(to_host(columns)), columns)
    extremes = xp.max(columns, axis=0) + xp.min(columns, axis=0)
    return xp.where(extremes < 0, -xp.ones_like(extremes), xp.ones_like(extremes))


def _largest_phases(columns: np.ndarray) -> np.ndarray:
    sizes = np.abs(columns)
    # Of magnitudes that are equal up to rounding the first counts, so that the phase does not depend on rounding.
    first = np.argmax(sizes > (1 - 1e3 * epsilon(columns)) * np.max(sizes, axis=0), axis=0)
    largest = np.take_along_axis(columns, first[None, :], axis=0)[0]
    phases: np.ndarray = np.where(largest == 0, 1, largest / np.where(largest == 0, 1, np.abs(largest)))
    return phases


def is_hermitian(stack: Array) -> bool:
    """Return whether complex square matrices are equal to their adjoints, up to rounding; false for real matrices."""
    return is_complex(stack) and not bool(array_namespace(stack).any(asymmetric(stack, conjugated=True)))


def asymmetric(stack: Array, *, conjugated: bool) -> Array:
    """Return which matrices of a stack differ from their transposes, or from their adjoints, by more than rounding.

    Two matrix-vector products with a random vector decide, which need no transposed copy.
    """
    xp = array_namespace(stack)
    probe = asarray_like(np.random.default_rng(0).standard_normal(stack.shape[1]), stack)
    right, left = xp.matmul(stack, probe), xp.matmul(probe, stack)
    difference = xp.linalg.vector_norm(right - (conjugate(left) if conjugated else left), axis=1)
    allowed = 1e-10 if epsilon(stack) < 1e-10 else 1e-4
    return difference > allowed * xp.linalg.vector_norm(right, axis=1)
