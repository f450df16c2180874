"""Anderson acceleration of a fixed-point iteration on a group, in coordinates relative to the current iterate."""

from __future__ import annotations

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array, like, to_host


class Anderson:
    r"""Extrapolate the next step from the last few.

    The iteration moves by :math:`W_k`, its residual; the accelerated step is
    :math:`X = W - \sum_m \gamma_m (\Delta X_m + \Delta W_m)` with
    :math:`\gamma = \arg\min \|W - \sum_m \gamma_m \Delta W_m\|`, where the :math:`\Delta X_m` are the steps taken
    and the :math:`\Delta W_m` the changes of the residual they caused.

    References
    ----------
    D. G. Anderson, "Iterative procedures for nonlinear integral equations", J. ACM 12(4), 1965.
    """

    memory = 5

    def __init__(self) -> None:
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
            products = to_host(basis @ xp.matrix_transpose(xp.concat([basis, xp.reshape(residual, (1, -1))])))
            gamma = like(_least_squares(products[:, :-1], products[:, -1]), residual)
            moves = xp.stack(self._changes) + xp.stack(self._steps)
            step = residual - xp.sum(xp.reshape(gamma, (-1,) + (1,) * residual.ndim) * moves, axis=0)
            if bool(xp.linalg.vector_norm(step) > 5 * xp.linalg.vector_norm(residual)):
                self.reset()
                step = residual
        self._residual, self._taken = residual, step
        return step


def _least_squares(gram: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Solve the small normal equations, cutting directions that rounding has emptied."""
    scale = np.sqrt(np.diag(gram))
    scale[scale == 0] = 1
    solution = np.linalg.lstsq(gram / np.outer(scale, scale), target / scale, rcond=1e-10)[0]
    return solution / scale
