"""Functions of other libraries that factorize tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Baseline:
    """A function of another library: from a tensor, a rank and a seed to the factors of all modes."""

    name: str
    package: str
    solve: Callable[[np.ndarray, int, int], Sequence[np.ndarray]]

    @property
    def installed(self) -> bool:
        """Whether the library can be imported."""
        return find_spec(self.package) is not None


def _tensorly(tensor: np.ndarray, rank: int, seed: int, **options: Any) -> Sequence[np.ndarray]:
    from tensorly.decomposition import parafac

    return list(parafac(tensor, rank, n_iter_max=1000, random_state=seed, **options)[1])


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


BASELINES = (
    Baseline("TensorLy parafac", "tensorly", partial(_tensorly, init="random", tol=1e-10)),
    Baseline("TensorLy parafac, orthogonalised", "tensorly", partial(_tensorly, init="svd", orthogonalise=5)),
    Baseline("pyttb cp_als", "pyttb", _pyttb),
    Baseline("pytensorlab cpd", "pytensorlab", _pytensorlab),
)
"""All functions, whether or not their libraries are installed."""
