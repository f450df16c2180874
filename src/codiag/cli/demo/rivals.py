"""Functions of other libraries for the same problem, called as their users would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np

Solver = Callable[[np.ndarray, int, int], Sequence[np.ndarray]]
"""From a tensor, a rank and a seed to the factors of all modes."""


@dataclass(frozen=True)
class Rival:
    """A function of another library."""

    name: str
    package: str
    solve: Solver
    seeded: bool = False  # whether it starts at random

    @property
    def installed(self) -> bool:
        """Whether the library can be imported."""
        return find_spec(self.package) is not None


def _tensorly(tensor: np.ndarray, rank: int, seed: int) -> Sequence[np.ndarray]:
    from tensorly.decomposition import parafac

    return list(parafac(tensor, rank, init="random", n_iter_max=1000, tol=1e-10, random_state=seed)[1])


def _tensorly_orthogonalised(tensor: np.ndarray, rank: int, seed: int) -> Sequence[np.ndarray]:
    from tensorly.decomposition import parafac

    return list(parafac(tensor, rank, init="svd", orthogonalise=5, n_iter_max=1000, random_state=seed)[1])


def _pyttb(tensor: np.ndarray, rank: int, seed: int) -> Sequence[np.ndarray]:
    import pyttb

    rng = np.random.default_rng([seed, 1])  # a stream of its own: the seed may have made the tensor
    start = pyttb.ktensor([rng.standard_normal((size, rank)) for size in tensor.shape])
    fit, _, _ = pyttb.cp_als(pyttb.tensor(tensor), rank, init=start, maxiters=1000, stoptol=1e-10, printitn=0)
    return list(fit.factor_matrices)


def _pytensorlab(tensor: np.ndarray, rank: int, _seed: int) -> Sequence[np.ndarray]:
    import pytensorlab

    fit, _ = pytensorlab.cpd(tensor, rank, print_steps=False)
    return list(fit.factors)


RIVALS = (
    Rival("TensorLy parafac", "tensorly", _tensorly, seeded=True),
    Rival("TensorLy parafac, orthogonalised", "tensorly", _tensorly_orthogonalised),
    Rival("pyttb cp_als", "pyttb", _pyttb, seeded=True),
    Rival("pytensorlab cpd", "pytensorlab", _pytensorlab),
)
"""All functions, whether or not their libraries are installed."""
