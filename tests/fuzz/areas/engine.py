"""`codiag.extending`: the engine that methods of one's own build on, and classes derived from its base classes."""

from __future__ import annotations

from typing import Any

import numpy as np

import codiag
from codiag.extending import LeastSquares, Limits, Start, best_rank_one, minimize
from codiag.tensors import FactoredTensor, as_tensor

from ..arrays import Held, choose, is_moderate, random_array, random_rank
from ..case import Case, covers
from ..fits import about_a_fit
from ..invariants import Problems, about_fit

EXTENDING = "codiag.extending."


def _start(held: Held, rank: int, rng: np.random.Generator) -> FactoredTensor:
    factors = [rng.standard_normal((size, rank)) for size in held.dense.shape]
    return FactoredTensor(np.ones(rank), factors, symmetric=False)


@covers(*(EXTENDING + name for name in ("minimize", "Limits", "Outcome", "LeastSquares")), weight=1)
def minimizing(rng: np.random.Generator) -> Case:
    """Least squares from a random start: never above it, and with the objective that it says."""
    held = random_array(rng)
    rank = random_rank(rng, held.dense.shape)
    tensor = np.asarray(held.dense, dtype=np.float64)
    problem = codiag.Problem(tensor, rank, symmetric=False)
    start = _start(held, rank, rng)
    limits = choose(rng, Limits(), Limits(max_sweeps=5), Limits(tol=1e-5, rough=True))

    def lower(outcome: Any, _: dict[str, Any]) -> Problems:
        objective = LeastSquares(problem)
        ends = [objective.distance(components) / 2 for components in (start, outcome.components)]
        scale = max(ends[0], 0.5 * float(np.sum(tensor**2)))
        if not ends[1] <= ends[0] + 1e-9 * scale:
            yield "not a minimum", f"from {ends[0]:g} to {ends[1]:g}"
        if abs(ends[1] - outcome.objective) > 1e-6 * scale:
            yield "objective", f"is said to be {outcome.objective:g}, and is {ends[1]:g}"

    arguments = {"problem": problem, "start": start, "limits": limits}
    valid = True if is_moderate(held) and np.any(tensor) else None
    return Case(f"{EXTENDING}minimize", minimize, arguments, valid, (lower,), spoilable=False)


@covers(EXTENDING + "best_rank_one", weight=0.5)
def rank_one(rng: np.random.Generator) -> Case:
    """The best term is worth its squared weight."""
    held = random_array(rng)
    tensor = np.asarray(held.dense, dtype=np.float64)

    def worth(term: Any, _: dict[str, Any]) -> Problems:
        gain = np.sum(tensor**2) - np.sum((tensor - term.to_dense()) ** 2)
        weight = float(np.asarray(term.weights)[0]) ** 2
        if abs(gain - weight) > 1e-6 * max(np.sum(tensor**2), 1e-300):
            yield "objective", f"a term of squared weight {weight:g} takes {gain:g} away"

    valid = True if is_moderate(held) and np.any(tensor) else None
    return Case(
        f"{EXTENDING}best_rank_one", best_rank_one, {"tensor": as_tensor(tensor)}, valid, (worth,), spoilable=False
    )


class _Drawn(Start):
    """Starts of random factors, as many as are asked for."""

    def generate(self, problem: Any, rng: np.random.Generator, log: Any) -> Any:
        while True:
            factors = [rng.standard_normal((size, problem.rank)) for size in problem.tensor.shape]
            yield FactoredTensor(np.ones(problem.rank), factors, symmetric=False)


BASES = ("Start", "Method", "Constraint", "Diagonalizer", "Iterate", "Estimate", "Stage")
MODELS = ("MomentModel", "Moments", "Components", "Diagnostics")


@covers(*(EXTENDING + name for name in (*BASES, *MODELS)), weight=0.5)
def starting(rng: np.random.Generator) -> Case:
    """The search from starts of one's own; `tests/repository/test_extending.py` runs the other base classes."""
    held = random_array(rng)
    rank = random_rank(rng, held.dense.shape)
    method = codiag.methods.Auto(starts=[_Drawn()], max_starts=int(rng.integers(1, 4)))
    arguments = {"tensor": held.data, "rank": rank, "method": method, "seed": int(rng.integers(99))}
    checks = (about_fit(held, rank, "minimum", int(rng.integers(2**31))), about_a_fit)
    valid = True if is_moderate(held) else None
    return Case("codiag.factorize", codiag.factorize, arguments, valid, checks, named=("tensor", "rank", "method"))
