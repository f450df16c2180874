"""From a tensor, or a list of its observed entries, to the small core that holds its components, and back."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from codiag._arrays import (
    Array,
    adjoint,
    array_namespace,
    asarray_like,
    conjugate,
    eigenpairs,
    epsilon,
    fits_block,
    identity,
    largest_signs,
    on_host,
    to_double,
    to_host,
    to_namespace,
)
from codiag.problem import Problem
from codiag.tensors import (
    OVERSAMPLING,
    Core,
    DenseTensor,
    FactoredTensor,
    Products,
    Sketch,
    Tensor,
    is_large,
    leading_eigenpairs,
    power_iteration,
    range_rank,
    thinned,
)

HOST_WORK = 2**24
"""Entries times rank up to which a core of a tensor on an accelerator is copied to the host. A step of least squares
takes about six times as many operations, some milliseconds on the host."""

MISSED = 4
"""Energy that a basis from the sketch may lose of a side, relative to that which a basis from the side itself loses: of
noise, both lose the same but for a third (simulated)."""

SMALL = 10**4
"""Entries below which a step on all of them takes no longer than one on a core."""


def is_small(shape: Sequence[int]) -> bool:
    """Return whether a tensor is so small that nothing is gained by compressing it, and starts cost milliseconds."""
    return math.prod(shape) < SMALL


@dataclass(frozen=True, eq=False)
class Reduction:
    """A problem on a smaller tensor, and the way back to the whole one.

    Attributes
    ----------
    problem : Problem
        On the core, ``tensor.compress(*bases)``, which is at most `rank` in every mode, in double precision; the whole
        problem itself if it has constraints, missing entries or weights, or modes some of which share a factor.
    bases : tuple of arrays of shape (d_m, k_m), or None
        Orthonormal columns; None if the mode was small enough. Equal in all modes if symmetric.
    home : array
        Empty, in double precision: where components of the whole tensor are, as `home_of` says.
    dense : DenseTensor, optional
        The whole tensor in double precision, if it is small enough to work on.
    sides : Sides, optional
        The tensor compressed in all modes but one, if that is small.
    """

    problem: Problem
    bases: tuple[Array | None, ...]
    home: Array
    dense: DenseTensor | None = None
    sides: Sides | None = None

    @classmethod
    def identity(cls, problem: Problem) -> Reduction:
        """Return the problem as it is."""
        return cls(problem, (None,) * problem.tensor.order, home_of(problem))

    @property
    def core(self) -> DenseTensor:
        """The tensor of the smaller problem."""
        return self.problem.tensor  # type: ignore[return-value]

    @property
    def is_complete(self) -> bool:
        """Whether the core is the whole tensor."""
        return all(basis is None for basis in self.bases)

    def uncompressed(self) -> Reduction:
        """Return the whole tensor as its own core if it is small enough to work on, else this reduction."""
        if self.dense is None or self.is_complete:
            return self
        whole = self.problem.with_tensor(self.dense)
        return replace(self, problem=whole, bases=(None,) * self.dense.order)

    def to_core(self, components: FactoredTensor) -> FactoredTensor:
        """Return components of the tensor in the coordinates of the core."""
        return components.changed(
            lambda factor, mode: to_namespace(_inside(to_namespace(factor, self.home), self.bases[mode]), self.home),
            to_namespace(components.weights, self.home),
        )

    def to_tensor(self, components: FactoredTensor) -> FactoredTensor:
        """Return components of the core in the coordinates of the tensor."""

        def outside(factor: Array, mode: int) -> Array:
            basis, factor = self.bases[mode], to_namespace(factor, self.home)
            return factor if basis is None else to_namespace(basis, self.home) @ factor

        return components.changed(outside, to_namespace(components.weights, self.home))


@dataclass(frozen=True, eq=False)
class Sides:
    """A tensor compressed in all modes but one, for each of its modes, or for the first if it is symmetric.

    They give the products of the tensor with all factors that lie in the ranges of the bases, exactly.
    """

    bases: tuple[Array | None, ...]
    tensors: tuple[DenseTensor, ...]

    def products(self, factors: Sequence[Array]) -> list[Array]:
        """Return the products of the tensor with factors, in double precision, for every mode that has a side."""
        inside, products = _lowered(factors, [None if basis is None else conjugate(basis) for basis in self.bases]), []
        for mode, side in enumerate(self.tensors):
            mixed = [factors[other] if other == mode else factor for other, factor in enumerate(inside)]
            products.append(side.mttkrp(mixed, mode))
        return products


def _lowered(factors: Sequence[Array], bases: Sequence[Array | None]) -> list[Array]:
    """Return factors in the coordinates of bases, in double precision."""
    return [_inside(to_double(factor), basis) for factor, basis in zip(factors, bases, strict=True)]


def _inside(factor: Array, basis: Array | None) -> Array:
    if basis is None:
        return factor
    basis = to_double(basis)
    return adjoint(basis) @ to_namespace(factor, basis)


def reduce(problem: Problem, rng: np.random.Generator, *, including: Sequence[Array] | None = None) -> Reduction:
    """Compress every mode that is larger than the rank to its dominant range, and that of the factors to include.

    Problems with constraints, missing entries, weights or partial symmetry are not reduced: compression commutes with
    none of these.

    Small tensors are unfolded and decomposed. Large ones are multiplied by random vectors, once from outside, which is
    part of the first pass over a tensor, and once from within the range so found, and compressed: three passes. On an
    accelerator they are multiplied in one mode at a time, which takes half of the operations (`_sides_in_turns`). If
    the range then holds less than half of the tensor, the rest being noise, the bases are improved in turns until that
    share settles.
    """
    tensor = problem.tensor
    if problem.required_features:
        return Reduction.identity(problem)
    rank = range_rank(problem.rank)
    reduction = _reduced(problem, tensor, rank, rng, including)
    if reduction.core.squared_norm() > 1e-12 * tensor.squared_norm():
        return reduction
    # Tied singular values can make the leading subspaces of the modes incompatible: the core holds only rounding.
    wider = _reduced(problem, reduction.dense or tensor, rank + OVERSAMPLING, rng, including)
    return replace(wider, home=reduction.home)


def uncompressed(problem: Problem) -> Reduction:
    """Return the tensor as its own core, in double precision."""
    tensor = problem.tensor
    core = _as_core(tensor, problem.rank)
    return Reduction(problem.with_tensor(core), (None,) * tensor.order, home_of(problem), core)


def _reduced(
    problem: Problem, tensor: Tensor, rank: int, rng: np.random.Generator, including: Sequence[Array] | None
) -> Reduction:
    if max(tensor.shape) <= rank or (including is not None and not is_large(tensor.shape)):
        core = _as_core(tensor, rank)
        return Reduction(problem.with_tensor(core), (None,) * tensor.order, home_of(problem), core)
    if not is_large(tensor.shape):
        dense = tensor.as_double()
        bases, core = dominant_core(dense, rank)
        return replace(_with_core(problem, core, bases), dense=dense)
    seen = tensor.sketch(rank + OVERSAMPLING)
    if seen.spans_ranges and including is None:
        sketch = _with_sides(problem, tensor, _sides_in_turns(tensor, seen, rng))
    else:
        outer = _sketched_bases(tensor, seen, rank, rng)
        sketch = with_sides(problem, tensor, outer if including is None else _widened(outer, including, tensor))
    outer = sketch.bases
    inner, core = dominant_core(sketch.core, rank)
    if including is not None:
        inner = _widened(inner, _lowered(including, outer), sketch.core)
        core = sketch.core.compress(*_conjugates(inner))
    reduction = replace(_with_core(problem, core, _chained(outer, inner, tensor)), sides=sketch.sides)
    better = _improved(problem, tensor, rank, reduction)
    if including is None or better is reduction:
        return better
    return compressed(problem, tensor, _widened(better.bases, including, tensor))


def with_sides(problem: Problem, tensor: Tensor, bases: tuple[Array | None, ...]) -> Reduction:
    """Return the tensor in the coordinates of bases, from its sides if they are small: one pass."""
    modes = range(1 if tensor.symmetric else tensor.order)
    sizes = [size if basis is None else basis.shape[1] for size, basis in zip(tensor.shape, bases, strict=True)]
    n_entries = sum(math.prod(sizes) // sizes[mode] * tensor.shape[mode] for mode in modes)
    if not fits_block(n_entries) and 64 * n_entries > tensor.n_stored:  # they must cost little memory
        return compressed(problem, tensor, bases)
    turned = _conjugates(bases)
    requests = [Core(tuple(None if other == mode else basis for other, basis in enumerate(turned))) for mode in modes]
    return _with_sides(problem, tensor, Sides(bases, tuple(side.as_double() for side in tensor.read(*requests))))


def _with_sides(problem: Problem, tensor: Tensor, sides: Sides) -> Reduction:
    """Return the tensor in the coordinates of bases, from its sides."""
    core, bases = sides.tensors[0], sides.bases
    if bases[0] is not None:
        entries = core.compress(to_double(conjugate(bases[0])), *[None] * (tensor.order - 1)).to_dense()
        core = DenseTensor.of(entries, symmetric=tensor.symmetric)
    return Reduction(problem.with_tensor(_as_core(core, max(core.shape))), bases, home_of(problem), sides=sides)


def _sides_in_turns(tensor: Tensor, seen: Sketch, rng: np.random.Generator) -> Sides:
    """Return the sides of a tensor in the coordinates of bases, each found in the coordinates of the others.

    The first basis is from the sketch, and the tensor is multiplied by it once for all modes but the first. The side of
    the first mode shows whether the basis has missed as much as if it were found in the coordinates of the others: then
    it is replaced, and the others follow.
    """
    order, width = tensor.order, seen.width
    xp, modes = array_namespace(tensor.reference), range(1, tensor.order)
    bases: list[Array] = [xp.linalg.qr(seen.products[mode])[0] for mode in range(order - 1)]
    inside = [asarray_like(rng.standard_normal((width, width)), tensor.reference) for _ in bases]
    bases.append(None)

    def side(part: Tensor, mode: int) -> Tensor:
        is_open = [other != mode and part.shape[other] == tensor.shape[other] for other in range(order)]
        others = [basis if opened else None for basis, opened in zip(bases, is_open, strict=True)]
        return part.compress(*_conjugates(others))

    for is_last in (False, False, True):
        rest = tensor.compress(conjugate(bases[0]), *[None] * (order - 1))
        for mode in (order - 1, *range(1, order - 1)):
            opened = side(rest, mode)
            start = bases[mode]
            if start is None:
                start = opened.mttkrp([*inside, seen.directions[mode]], mode)
            bases[mode] = xp.linalg.qr(power_iteration(opened.to_dense(), start, mode))[0]
        first, basis = side(tensor, 0).as_double(), to_double(bases[0])
        better = xp.linalg.qr(power_iteration(first.to_dense(), basis, 0))[0]
        total = first.squared_norm()
        lost, least = (total - _compressed_first(first, each).squared_norm() for each in (basis, better))
        if is_last or lost <= MISSED * least + epsilon(basis) * total:
            break
        bases[0] = to_namespace(better, tensor.reference)
    return Sides(tuple(bases), (first, *(side(rest, mode).as_double() for mode in modes)))


def _compressed_first(tensor: DenseTensor, basis: Array) -> Tensor:
    """Return a tensor in the coordinates of a basis of its first mode."""
    return tensor.compress(conjugate(basis), *[None] * (tensor.order - 1))


def _widened(bases: Sequence[Array | None], factors: Sequence[Array], tensor: Tensor) -> tuple[Array | None, ...]:
    """Return bases of the ranges that bases and factors span together; None where that is all there is."""
    xp = array_namespace(tensor.reference)

    def union(basis: Array | None, factor: Array) -> Array | None:
        if basis is None or basis.shape[1] + factor.shape[1] >= basis.shape[0]:
            return None
        return xp.linalg.qr(xp.concat([basis, to_namespace(factor, basis)], axis=1))[0]

    return _by_mode(lambda mode: union(bases[mode], factors[mode]), tensor)


def range_bases(problem: Problem, rng: np.random.Generator) -> list[Array]:
    """Return orthonormal bases (d_m, min(d_m, rank)) of the dominant range of every mode."""
    reduction = _reduced(problem, problem.tensor, problem.rank, rng, None)
    tensor = problem.tensor
    return [
        identity(size, tensor.reference) if basis is None else to_namespace(basis, tensor.reference)
        for size, basis in zip(tensor.shape, reduction.bases, strict=True)
    ]


def compressed(problem: Problem, tensor: Tensor, bases: tuple[Array | None, ...]) -> Reduction:
    """Return the tensor in the coordinates of bases."""
    return _with_core(problem, tensor.compress(*_conjugates(bases)), bases)


def _with_core(problem: Problem, core: Tensor, bases: tuple[Array | None, ...]) -> Reduction:
    """Return the problem on a core, in the coordinates of bases."""
    return Reduction(problem.with_tensor(_as_core(core, max(core.shape))), bases, home_of(problem))


def home_of(problem: Problem) -> Array:
    """Return an empty array where components of the whole tensor are, in double precision: on the host.

    Equations for steps are many small operations, for which an accelerator takes longer than the host.
    """
    exact = to_double(problem.tensor.reference)
    return exact if on_host(exact) else to_host(exact)


def _conjugates(bases: Iterable[Array | None]) -> tuple[Array | None, ...]:
    """Return the conjugates of bases, by whose transposes a tensor is multiplied; the same array for the same one."""
    known: dict[int, Array] = {}
    given = list(bases)
    return tuple(None if basis is None else known.setdefault(id(basis), conjugate(basis)) for basis in given)


def _as_core(tensor: Tensor, rank: int) -> DenseTensor:
    """Return a tensor as a dense one in double precision, on the host if work on it is faster there."""
    exact = tensor.as_double()
    if on_host(exact.reference) or math.prod(tensor.shape) * rank > HOST_WORK:
        return exact
    return DenseTensor.of(to_host(exact.to_dense()), symmetric=tensor.symmetric)


def dominant_core(tensor: DenseTensor, rank: int) -> tuple[tuple[Array | None, ...], DenseTensor]:
    """Return the leading left singular vectors of every unfolding, and the tensor in their coordinates.

    If singular values are equal, vectors that are computed separately need not belong together, and hold little of the
    tensor: then each unfolding is that of the tensor compressed by the bases before.
    """
    bases = _by_mode(lambda mode: _dominant_basis(tensor, mode, rank), tensor)
    core = tensor.compress(*_conjugates(bases))
    if tensor.symmetric or core.squared_norm() > tensor.squared_norm() / 2:
        return bases, core
    rest, chain = tensor, list[Array | None]()
    for mode in range(tensor.order):
        chain.append(_dominant_basis(rest, mode, rank))
        rest = rest.compress(*_conjugates(chain[mode] if other == mode else None for other in range(tensor.order)))
    return tuple(chain), rest


def _dominant_basis(tensor: Tensor, mode: int, rank: int) -> Array | None:
    if tensor.shape[mode] <= rank:
        return None
    entries = tensor.to_dense()
    xp = array_namespace(entries)
    side = xp.reshape(xp.moveaxis(entries, mode, 0), (entries.shape[mode], -1))
    if side.shape[0] > side.shape[1]:
        leading = xp.flip(eigenpairs(adjoint(side) @ side)[1][:, -rank:], axis=1)
        basis = xp.linalg.qr(side @ leading)[0]
    else:
        basis = xp.flip(eigenpairs(side @ adjoint(side))[1][:, -rank:], axis=1)
    return basis * conjugate(
        largest_signs(basis)
    )  # libraries differ in signs, and random starts must not differ with them


def _sketched_bases(tensor: Tensor, seen: Sketch, rank: int, rng: np.random.Generator) -> tuple[Array | None, ...]:
    """Return bases a little wider than the rank, from two products with random vectors, one by the first look."""
    n, modes = rank + OVERSAMPLING, [0] if tensor.symmetric else list(range(tensor.order))
    if seen.spans_ranges or not set(modes) <= set(seen.products):
        seen = replace(seen, products=dict(zip(modes, tensor.read(Products(seen.directions))[0], strict=True)))
    bases = _ranges(tensor, [seen.products[mode] for mode in modes], rank)
    within = [
        direction
        if basis is None
        else conjugate(basis) @ asarray_like(rng.standard_normal((basis.shape[1], n)), tensor.reference)
        for direction, basis in zip(seen.directions, bases, strict=True)
    ]
    return _ranges(tensor, tensor.read(Products(within, modes))[0], rank)


def _ranges(tensor: Tensor, products: Sequence[Array], rank: int) -> tuple[Array | None, ...]:
    xp = array_namespace(tensor.reference)
    if tensor.symmetric:
        return (xp.linalg.qr(products[0])[0],) * tensor.order
    return tuple(None if product.shape[0] <= rank else xp.linalg.qr(product)[0] for product in products)


def _chained(outer: Sequence[Array | None], inner: Sequence[Array | None], tensor: Tensor) -> tuple[Array | None, ...]:
    """Return the products of bases, in the precision of the tensor."""

    def product(first: Array | None, second: Array | None) -> Array | None:
        if second is None:
            return first
        second = to_namespace(second, tensor.reference)
        return second if first is None else first @ second

    return _by_mode(lambda mode: product(outer[mode], inner[mode]), tensor)


def _by_mode(basis_of: Callable[[int], Array | None], tensor: Tensor) -> tuple[Array | None, ...]:
    """Return a basis for every mode, computed once if the tensor is symmetric."""
    return (basis_of(0),) * tensor.order if tensor.symmetric else tuple(map(basis_of, range(tensor.order)))


def _improved(problem: Problem, tensor: Tensor, rank: int, reduction: Reduction) -> Reduction:
    """Take each mode's basis from the tensor compressed in all others, in turns, while the core gains energy."""
    total, held = tensor.squared_norm(), reduction.core.squared_norm()
    for _ in range(5):
        if held > total / 2:
            break
        reduction = _in_turns(problem, tensor, rank, reduction.bases)
        before, held = held, reduction.core.squared_norm()
        if held < 1.001 * before:
            break
    return reduction


def _in_turns(problem: Problem, tensor: Tensor, rank: int, known: Sequence[Array | None]) -> Reduction:
    bases, opened, last = list(known), tensor, 0
    for mode in range(1 if tensor.symmetric else tensor.order):
        if bases[mode] is None:
            continue
        others = _conjugates(None if other == mode else basis for other, basis in enumerate(bases))
        opened, last = tensor.compress(*others), mode
        basis = to_namespace(_dominant_basis(opened, mode, rank), tensor.reference)
        bases = [basis] * tensor.order if tensor.symmetric else [*bases[:mode], basis, *bases[mode + 1 :]]
    if tensor.symmetric:
        return compressed(problem, tensor, tuple(bases))
    core = opened.compress(*_conjugates(basis if mode == last else None for mode, basis in enumerate(bases)))
    return Reduction(problem.with_tensor(_as_core(core, rank)), tuple(bases), home_of(problem))


def reduce_listed(problem: Problem, rng: np.random.Generator) -> Reduction:
    """Compress a list of entries, all others missing, to an estimate of the core of the complete tensor."""
    tensor, rank = problem.tensor, problem.rank
    part = thinned(tensor, rng)
    bases = _by_mode(
        lambda mode: leading_eigenpairs(part, mode, rank)[1] if tensor.shape[mode] > rank else None, tensor
    )
    return compressed(problem, part * (math.prod(tensor.shape) / part.n_stored), bases)
