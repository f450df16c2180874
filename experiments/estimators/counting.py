"""Joint diagonalization and power iterations as in the paper, on numbers that count what is done to them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Counter:
    """Multiplications (with divisions) and additions (with subtractions) so far."""

    multiplications: int = 0
    additions: int = 0

    @property
    def flops(self) -> int:
        """Both together."""
        return self.multiplications + self.additions


class Counted:
    """An array whose arithmetic is counted."""

    def __init__(self, array: np.ndarray, counter: Counter) -> None:
        self.array, self.counter = array, counter

    def __mul__(self, other: Counted | float) -> Counted:
        result = self.array * _plain(other)
        self.counter.multiplications += result.size
        return Counted(result, self.counter)

    def __add__(self, other: Counted | float) -> Counted:
        result = self.array + _plain(other)
        self.counter.additions += result.size
        return Counted(result, self.counter)

    def __sub__(self, other: Counted | float) -> Counted:
        result = self.array - _plain(other)
        self.counter.additions += result.size
        return Counted(result, self.counter)

    def sum(self) -> float:
        """Add all entries up."""
        self.counter.additions += max(self.array.size - 1, 0)
        return float(self.array.sum())

    def contract(self, vector: np.ndarray) -> Counted:
        """Contract the last mode with a vector."""
        self.counter.multiplications += self.array.size
        self.counter.additions += self.array.size - self.array.size // vector.size
        return Counted(self.array @ vector, self.counter)

    __rmul__ = __mul__


def _plain(other: Counted | float) -> np.ndarray | float:
    return other.array if isinstance(other, Counted) else other


def jacobi_sweep(stack: np.ndarray, inverse: np.ndarray, counter: Counter, *, leading: int | None = None) -> float:
    """Rotate every pair with one of the leading rows, in place; return the largest angle.

    `stack` is (n, d, d); rows and columns of all matrices are rotated, and rows of the inverse factors.
    """
    size, largest = stack.shape[1], 0.0
    for p in range(min(leading or size, size)):
        for q in range(p + 1, size):
            apart = Counted(stack[:, p, p], counter) - Counted(stack[:, q, q], counter)
            across = 2.0 * Counted(stack[:, p, q], counter)
            on = (apart * apart).sum() - (across * across).sum()
            off = 2 * (apart * across).sum()
            theta = 0.25 * np.arctan2(off, on)
            largest = max(largest, abs(theta))
            _turn(stack, inverse, (p, q), (np.cos(theta), np.sin(theta)), counter)
    return largest


def _turn(
    stack: np.ndarray, inverse: np.ndarray, pair: tuple[int, int], turn: tuple[float, float], counter: Counter
) -> None:
    (p, q), (cos, sin) = pair, turn
    for view in (stack.transpose(1, 0, 2), stack.transpose(2, 0, 1), inverse):
        first, second = Counted(view[p].copy(), counter), Counted(view[q].copy(), counter)
        view[p] = (cos * first + sin * second).array
        view[q] = (cos * second - sin * first).array


def shear_sweep(stack: np.ndarray, inverse: np.ndarray, counter: Counter) -> float:
    """Add to every row the multiple of each row above it that leaves least off the diagonal; return the largest."""
    size, largest = stack.shape[1], 0.0
    for i in range(size):
        for j in range(i + 1, size):
            kept = np.arange(size) != j
            source, target = (Counted(stack[:, row][:, kept], counter) for row in (i, j))
            energy = (source * source).sum()
            shear = float(np.clip(-(source * target).sum() / energy, -1, 1)) if energy > 0 else 0.0
            largest = max(largest, abs(shear))
            for view in (stack.transpose(1, 0, 2), stack.transpose(2, 0, 1), inverse):
                view[j] = (Counted(view[j], counter) + shear * Counted(view[i], counter)).array
    return largest


def qrj1d_sweep(stack: np.ndarray, inverse: np.ndarray, counter: Counter) -> float:
    """Make a sweep of rotations, then one of shears; return the largest of both."""
    return max(jacobi_sweep(stack, inverse, counter), shear_sweep(stack, inverse, counter))


def power_step(tensor: np.ndarray, vector: np.ndarray, counter: Counter) -> np.ndarray:
    """Return the image of a vector, contracted twice and made a unit vector."""
    image = Counted(tensor, counter).contract(vector).contract(vector)
    length = np.sqrt((image * image).sum())
    return np.asarray((image * (1 / length)).array)
