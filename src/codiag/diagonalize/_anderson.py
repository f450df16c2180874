"""Anderson acceleration of a fixed-point iteration on a group, in coordinates relative to the current iterate."""

from __future__ import annotations

import numpy as np

from codiag._arrays import Array, array_namespace, like, to_host


class Anderson:
    r"""Extrapolate the next step from the last few.

    The iteration moves by :math:`W_k`, its residual; the accelerated step is
    :math:`X = W - \sum_m \gamma_m (\Delta X_m + \Delta W_m)` with
    :math:`\gamma = \arg\min \|W - \sum_m \gamma_m \Delta W_m\|`, where the :math:`\Delta X_m` are the steps taken
    and the :math:`\Delta W_m` the changes of the residual they caused.

    That is a secant method, drawn to every zero of the residual, to those that repel the iteration (saddles) as much as
    to those that attract it. Where the last few steps show a direction in which plain steps move away from the zero,
    the history is dropped and the plain step taken, which leaves such a point behind, unless `cautious` is false.

    References
    ----------
    D. G. Anderson, "Iterative procedures for nonlinear integral equations", J. ACM 12(4), 1965.
    """

    memory = 5

    def __init__(self, *, cautious: bool = True) -> None:
        self._cautious = cautious
        self.reset()

    def reset(self) -> None:
        """Forget the history."""
        self._residual: Array | None = None
        self._taken: Array | None = None
        self._changes: list[Array] = []
        self._steps: list[Array] = []

    def step(self, residual: Array) -> Array:
        """Return the step to take from here, and remember it."""
        xp = array_namespace(residual)
        if self._residual is not None:
            self._changes.append(residual - self._residual)
            self._steps.append(self._taken)
            del self._changes[: -self.memory], self._steps[: -self.memory]
        step = residual
        if self._changes:
            basis = xp.stack([xp.reshape(change, (-1,)) for change in self._changes])
            if self._cautious and _repels(self._steps, basis):
                self.reset()
                self._residual, self._taken = residual, residual
                return residual
            products = to_host(basis @ xp.matrix_transpose(xp.concat([basis, xp.reshape(residual, (1, -1))])))
            gamma = like(_least_squares(products[:, :-1], products[:, -1]), residual)
            moves = xp.stack(self._changes) + xp.stack(self._steps)
            step = residual - xp.sum(xp.reshape(gamma, (-1,) + (1,) * residual.ndim) * moves, axis=0)
            if bool(xp.linalg.vector_norm(step) > 5 * xp.linalg.vector_norm(residual)):
                self.reset()
                step = residual
        self._residual, self._taken = residual, step
        return step


def _repels(steps: list[Array], changes: Array) -> bool:
    """Tell whether the residual grows along some direction of the last steps.

    The steps and the changes of the residual determine its derivative on the span of the steps. A plain step multiplies
    the distance from the zero by one plus an eigenvalue of it, so that it repels where a real part is positive. Large
    negative ones are overshooting, which acceleration is there to cure.
    """
    xp = array_namespace(changes)
    taken = xp.stack([xp.reshape(step, (-1,)) for step in steps])
    gram, change = np.split(to_host(taken @ xp.matrix_transpose(xp.concat([taken, changes]))), 2, axis=1)
    scale = np.sqrt(np.diag(gram))
    scale[scale == 0] = 1
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    kept = values > 1e-10 * values[-1]
    basis = vectors[:, kept] / np.sqrt(values[kept])
    derivative = basis.T @ (change / np.outer(scale, scale)) @ basis
    return bool(np.all(np.isfinite(derivative)) and np.max(np.linalg.eigvals(derivative).real) > 0)


def _least_squares(gram: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Solve the small normal equations, cutting directions that rounding has emptied."""
    scale = np.sqrt(np.diag(gram))
    scale[scale == 0] = 1
    solution: np.ndarray = np.linalg.lstsq(gram / np.outer(scale, scale), target / scale, rcond=1e-10)[0]
    return solution / scale
