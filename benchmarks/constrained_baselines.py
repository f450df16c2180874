"""Everybody who can factorize a tensor with entries missing or factors that are not negative, behind one signature."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from codiag.extending import Method
from codiag.methods import ALS, Auto
from codiag.problem import Problem
from codiag.result import solve
from codiag.tensors import FactoredTensor

Solver = Callable[["Task"], Sequence[np.ndarray]]
"""From what is given to factors with their weights in one of them."""


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is given: a tensor with zeros for what is missing, and a mask where anything is."""

    tensor: np.ndarray
    rank: int
    mask: np.ndarray | None
    nonnegative: bool
    seed: int

    @property
    def problem(self) -> Problem:
        """The same as codiag takes it."""
        constraints = "nonnegative" if self.nonnegative else None
        return Problem(self.tensor, self.rank, constraints=constraints, mask=self.mask)

    def start(self) -> list[np.ndarray]:
        """Draw factors of a tensor as large as this one, for methods that leave that to their caller."""
        rng = np.random.default_rng([self.seed, 1])
        draw = rng.random if self.nonnegative else rng.standard_normal
        factors = [draw((size, self.rank)) for size in self.tensor.shape]
        observed = 1.0 if self.mask is None else self.mask
        drawn = np.linalg.norm(observed * FactoredTensor(np.ones(self.rank), factors).to_dense())
        return [factor * (np.linalg.norm(self.tensor) / drawn) ** (1 / len(factors)) for factor in factors]


def _ours(method: Method) -> Solver:
    def fit(task: Task) -> Sequence[np.ndarray]:
        return _weighted(*solve(task.problem, method, task.seed))

    return fit


def _weighted(weights: np.ndarray | None, factors: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
    """Return factors with the weights in the first."""
    first = np.asarray(factors[0])
    return [first if weights is None else first * np.asarray(weights), *map(np.asarray, factors[1:])]


def _hals(task: Task) -> Sequence[np.ndarray]:
    from tensorly.decomposition import non_negative_parafac_hals

    return _weighted(*non_negative_parafac_hals(task.tensor, task.rank, n_iter_max=10_000, tol=1e-12))


def _admm(task: Task) -> Sequence[np.ndarray]:
    from tensorly.decomposition import constrained_parafac

    return _weighted(
        *constrained_parafac(
            task.tensor, task.rank, n_iter_max=1000, tol_outer=1e-10, non_negative=True, random_state=task.seed
        )
    )


def _multiplicative(task: Task) -> Sequence[np.ndarray]:
    from tensorly.decomposition import non_negative_parafac

    options = {"n_iter_max": 5000, "tol": 1e-10, "mask": task.mask, "random_state": task.seed}
    return _weighted(*non_negative_parafac(task.tensor, task.rank, init="random", **options))


def _masked_als(task: Task, init: str = "svd") -> Sequence[np.ndarray]:
    from tensorly.decomposition import parafac

    options = {"n_iter_max": 2000, "tol": 1e-8, "mask": task.mask, "random_state": task.seed}
    return _weighted(*parafac(task.tensor, task.rank, init=init, **options))


def _masked_gcp(task: Task) -> Sequence[np.ndarray]:
    import pyttb
    from pyttb.gcp import handles, optimizers

    objective = (handles.gaussian, handles.gaussian_grad, 0.0 if task.nonnegative else -np.inf)
    exact = {"factr": 1e3, "pgtol": 1e-10 * float(np.sum(task.tensor**2))}  # by default it stops at any data this small
    fit, _, _ = pyttb.gcp_opt(
        pyttb.tensor(task.tensor),
        task.rank,
        objective,
        optimizers.LBFGSB(maxiter=1000, maxfun=10_000, **exact),
        init=pyttb.ktensor(task.start()),
        mask=None if task.mask is None else task.mask.astype(float),
        printitn=0,
    )
    return _weighted(fit.weights, fit.factor_matrices)


SOLVERS: dict[str, Solver] = {
    "codiag": _ours(Auto()),
    "codiag ALS": _ours(ALS(init="svd")),
    "TensorLy HALS": _hals,
    "TensorLy AO-ADMM": _admm,
    "TensorLy multiplicative": _multiplicative,
    "TensorLy masked ALS": _masked_als,
    "TensorLy masked ALS, random start": partial(_masked_als, init="random"),
    "pyttb masked GCP": _masked_gcp,
}
SETTINGS = (
    "codiag's ALS from singular vectors, up to 1000 sweeps; TensorLy HALS with 10,000 iterations and a tolerance of "
    "1e-12; AO-ADMM with 1000 and 1e-10; multiplicative updates with 5000 and 1e-10, from random factors; "
    "masked ALS from singular vectors with 2000 and 1e-8; GCP with Gaussian loss by L-BFGS-B with 1000 "
    "iterations, from random factors as large as the data."
)


PACKAGES = {"TensorLy": "tensorly", "pyttb": "pyttb", "codiag": "codiag"}
"""What must be installed for a method whose name begins like that."""


def is_installed(method: str) -> bool:
    """Tell whether the library of a method can be imported."""
    return find_spec(PACKAGES[method.split()[0]]) is not None


@cache
def warmed(name: str) -> Solver:
    """Return a method that has been imported and called once."""
    tensor = np.einsum("ir,jr,kr->ijk", *(np.random.default_rng(size).random((size, 2)) for size in (4, 5, 6)))
    task = Task(tensor, 2, None, nonnegative=True, seed=0)
    logging.getLogger().addFilter(_is_of_others)
    SOLVERS[name](task)
    SOLVERS[name](replace(task, mask=np.ones(tensor.shape)))
    return SOLVERS[name]


def _is_of_others(record: logging.LogRecord) -> bool:
    """Tell records of all but pyttb, which logs a line at every step, to the root of all loggers."""
    return "pyttb" not in Path(record.pathname).parts
