"""A large tensor by its core: few entries on which ranks can be compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from codiag._arrays import Array, asarray_like, to_host
from codiag.problem import Problem
from codiag.reduction import Reduction, reduce
from codiag.result import Factorization, canonical, has_few_entries
from codiag.tensors import DenseTensor


@dataclass(frozen=True, eq=False)
class Representative:
    """A problem of few entries in place of one of many: its core, turned at random.

    That leaves white noise white, and spreads every component evenly over all indices, so that halves of them may be
    compared.

    Attributes
    ----------
    problem : Problem
    whole : Problem
    space : Reduction, or None
        None if the problem is the whole one.
    turns : list of arrays
        Orthogonal matrices by which the modes of the core are turned.
    """

    problem: Problem
    whole: Problem
    space: Reduction | None = None
    turns: tuple[Array, ...] = ()

    @classmethod
    def of(cls, problem: Problem, n_directions: int, rng: np.random.Generator) -> Representative:
        """Return the core of a free and complete tensor of many entries; other problems as they are."""
        if has_few_entries(problem) or problem.required_features or problem.symmetric:
            return cls(problem, problem)
        space = reduce(problem.with_rank(n_directions).in_double_precision(), rng)
        core = space.core
        turns = tuple(
            asarray_like(np.linalg.qr(rng.standard_normal((size, size)))[0], core.reference) for size in core.shape
        )
        turned = DenseTensor.of(to_host(core.compress(*turns).to_dense()), symmetric=False)
        return cls(problem.with_part(turned, None, None), problem, space, turns)

    @property
    def is_whole(self) -> bool:
        """Whether it is the problem itself."""
        return self.space is None

    def outward(self, fit: Factorization) -> Factorization:
        """Return a fit of the core as one of the tensor, without another pass over it."""
        space = self.space
        if space is None:
            return fit
        reference = space.core.reference
        turned = fit._components.changed(
            lambda factor, mode: asarray_like(to_host(self.turns[mode]) @ to_host(factor), reference),
            asarray_like(to_host(fit.weights), reference),
        )
        final = canonical(space.to_tensor(turned), self.whole.with_rank(fit.rank))
        total = self.whole.tensor.squared_norm()
        rest = max(total - space.core.squared_norm(), 0.0) + (fit.relative_error * fit._norm) ** 2
        return replace(
            fit,
            weights=final.weights,
            factors=final.factors,
            relative_error=math.sqrt(rest / total),
            _norm=math.sqrt(total),
            problem=self.whole.drop_data(),
        )
