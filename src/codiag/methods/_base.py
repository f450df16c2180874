"""What every method shares: its contract, its log, and where it may start from."""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array, like, to_host
from codiag._validation import as_real_array
from codiag.tensors import FactoredTensor, Tensor
from codiag.tensors._convert import components_of

logger = logging.getLogger("codiag")


class Stage(NamedTuple):
    """One step on the way to a factorization.

    `objective` is what the stage lowers: the share of energy off the diagonals for a diagonalization, the relative
    error of what it worked on for the rest.
    """

    name: str
    sweeps: int
    objective: float
    seconds: float
    flops: float = 0.0  # counted by the formulas of the paper's appendix, where it has one


@dataclass
class Log:
    """The stages so far, and the time since the last one."""

    stages: list[Stage] = field(default_factory=list)
    _since: float = field(default_factory=time.perf_counter)

    def add(self, name: str, sweeps: int, objective: float, flops: float = 0.0) -> None:
        """Close a stage."""
        now = time.perf_counter()
        self.stages.append(Stage(name, sweeps, objective, now - self._since, flops))
        self._since = now
        logger.info("%s: %d sweeps, objective %.3g, %.2f s", *self.stages[-1][:4])

    def extend(self, stages: Sequence[Stage]) -> None:
        """Take over the stages of another method."""
        self.stages.extend(stages)
        self._since = time.perf_counter()


class Estimate(NamedTuple):
    """What a method found."""

    components: FactoredTensor
    stages: Sequence[Stage]
    converged: bool


@dataclass(frozen=True, kw_only=True)
class Method(ABC):
    """A configured way to factorize a tensor; pass it to `codiag.factorize`."""

    @property
    def sized(self) -> bool:
        """Whether an option belongs to every index of the tensor, so that none may be left out."""
        return False

    @abstractmethod
    def fit(self, tensor: Tensor, rank: int, rng: np.random.Generator) -> Estimate:
        """Find `rank` components of the tensor, with one factor for all modes where it is symmetric."""


Init = Any
"""Where least squares starts: None (random), a method, a fit, or a pair (weights, factors)."""


def check_init(init: Init) -> None:
    """Raise unless a start is of a kind that `start_from` takes."""
    if init is None or isinstance(init, Method):
        return
    weights, factors = _components(init)
    for array in factors if weights is None else [weights, *factors]:
        if not np.all(np.isfinite(array)) or not np.any(array):
            raise ValueError("init must be finite and not zero, or there is no way to go from it")
    if any(factor.ndim != 2 for factor in factors):
        raise ValueError("init must hold factors of shape (d, rank)")
    if weights is not None and any(weights.shape != factor.shape[1:] for factor in factors):
        shapes = ", ".join(str(factor.shape) for factor in factors)
        raise ValueError(f"init must have a weight for every column of its factors; got {weights.shape} and {shapes}")


def _components(init: Init) -> tuple[np.ndarray | None, list[np.ndarray]]:
    """Return the weights and factors of a start on the host."""
    try:
        weights, factors = components_of(init) or init
        factors = list(factors)
    except (TypeError, ValueError):
        hint = "; did you forget the parentheses?" if isinstance(init, type) else ""
        wanted = "None, a method, a fit or a pair (weights, factors)"
        raise TypeError(f"init must be {wanted}; got {init!r}{hint}") from None
    given = [to_host(as_real_array(factor, "init", "use its real part")) for factor in factors]
    return None if weights is None else to_host(as_real_array(weights, "init", "use its real part")), given


def is_sized(init: Init) -> bool:
    """Tell whether a start has a row for every index of the tensor."""
    return init.sized if isinstance(init, Method) else not isinstance(init, str | None)


def start_from(init: Init, tensor: Tensor, rank: int, rng: np.random.Generator) -> Estimate:
    """Return the start that `init` describes, in the library and on the device of the tensor."""
    if init is None:
        return Estimate(random_components(tensor, rank, rng), (), False)
    if isinstance(init, Method):
        return init.fit(tensor, rank, rng)
    weights, factors = _components(init)
    shapes = [factor.shape for factor in factors]
    if shapes != [(size, rank) for size in tensor.shape]:
        raise ValueError(f"init must have factors of shapes {[(size, rank) for size in tensor.shape]}; got {shapes}")
    given = [like(factor, tensor.reference) for factor in factors]
    components = FactoredTensor(like(np.ones(rank) if weights is None else weights, tensor.reference), given)
    return Estimate(merged_modes(components) if tensor.symmetric else components, (), False)


def merged_modes(components: FactoredTensor) -> FactoredTensor:
    """Return components with one factor for all modes: the mean of theirs, once their signs agree."""
    xp = array_namespace(components.weights)
    unit = unit_components(components)
    if unit.symmetric:
        return unit
    first, weights = unit.factors[0], unit.weights
    total = first
    for factor in unit.factors[1:]:
        signs = xp.where(xp.sum(first * factor, axis=0) < 0, -xp.ones_like(weights), xp.ones_like(weights))
        total, weights = total + factor * signs, weights * signs
    return unit_components(FactoredTensor(weights, [total / unit.order] * unit.order))


def random_components(tensor: Tensor, rank: int, rng: np.random.Generator) -> FactoredTensor:
    """Return random unit factors, with the weights that fit best."""
    shapes = tensor.shape[:1] if tensor.symmetric else tensor.shape
    drawn = [rng.standard_normal((size, rank)) for size in shapes]
    factors = [like(columns / np.linalg.norm(columns, axis=0), tensor.reference) for columns in drawn]
    return with_best_weights(tensor, factors * (tensor.order if tensor.symmetric else 1))


def with_best_weights(tensor: Tensor, factors: Sequence[Array]) -> FactoredTensor:
    """Return the components with these unit factors whose weights fit the tensor best."""
    xp = array_namespace(factors[0])
    gram = hadamard_gram(factors)
    products = xp.sum(tensor.mttkrp(factors, 0) * factors[0], axis=0)
    return FactoredTensor(solve_semidefinite(gram, products), factors)


def hadamard_gram(factors: Sequence[Array], leave_out: Sequence[int] = ()) -> Array:
    """Return the entrywise product of the Gram matrices of the factors, but for some."""
    xp = array_namespace(factors[0])
    kept = [factor for mode, factor in enumerate(factors) if mode not in leave_out]
    product = xp.matrix_transpose(kept[0]) @ kept[0]
    for factor in kept[1:]:
        product = product * (xp.matrix_transpose(factor) @ factor)
    return product


def solve_semidefinite(gram: Array, target: Array) -> Array:
    """Return the least-norm solution of G x = b for a positive semidefinite G that may be singular."""
    xp = array_namespace(gram)
    values, vectors = xp.linalg.eigh(gram)
    cut = values[-1] * gram.shape[0] * xp.finfo(gram.dtype).eps
    kept = values > cut
    inverse = xp.where(kept, 1 / xp.where(kept, values, xp.ones_like(values)), xp.zeros_like(values))
    inside = xp.matrix_transpose(vectors) @ target
    return vectors @ (inside * (inverse if inside.ndim == 1 else inverse[:, None]))


def unit_components(components: FactoredTensor) -> FactoredTensor:
    """Return the same tensor with unit columns, their lengths in the weights; columns of zeros stay."""
    xp = array_namespace(components.weights)
    lengths = [xp.linalg.vector_norm(factor, axis=0) for factor in components.factors]
    weights = components.weights
    for length in lengths:
        weights = weights * length
    return components.changed(
        lambda factor, mode: factor / xp.where(lengths[mode] > 0, lengths[mode], xp.ones_like(weights)), weights
    )
