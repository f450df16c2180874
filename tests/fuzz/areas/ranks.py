"""How many components: `codiag.choose_rank`, and core consistency."""

from __future__ import annotations

from typing import Any

import numpy as np

import codiag
from codiag.metrics import core_consistency

from ..arrays import choose, is_moderate, random_array, random_rank
from ..case import Case, covers
from ..invariants import Problems


@covers("codiag.choose_rank", "codiag.RankChoice", "codiag.selection.choose_rank", "codiag.selection.RankChoice")
def ranks(rng: np.random.Generator) -> Case:
    """A few ranks of an array, with holes and constraints now and then."""
    held = random_array(rng)
    arguments: dict[str, Any] = {"tensor": held.data, "ranks": range(1, int(rng.integers(2, 5)))}
    arguments["seed"] = int(rng.integers(2**31))
    if rng.random() < 0.2:
        arguments["observed"] = rng.random(held.dense.shape) < 0.8
    if rng.random() < 0.2:
        arguments["constraints"] = choose(rng, "nonnegative", "orthogonal", [None, "nonnegative", None])

    def chosen(found: Any, given: dict[str, Any]) -> Problems:
        if found.rank is not None and found.rank not in found.fits:
            yield "rank", f"{found.rank} was not tried"
        if any(fit.rank != rank for rank, fit in found.fits.items()):
            yield "rank", "a fit has another rank than its own"
        if not found.reason or str(found.evidence[0].rank) not in str(found):
            yield "reason", f"printed {found}"
        if any(len(column) != len(found.fits) for column in found.table.values()):
            yield "table", "columns of other lengths"

    free = "observed" not in arguments and "constraints" not in arguments
    valid = True if free and is_moderate(held) else None
    named = ("tensor", "rank", "ranks", "observed", "constraints")
    return Case("codiag.choose_rank", codiag.choose_rank, arguments, valid, (chosen,), named)


@covers("codiag.metrics.core_consistency", weight=0.5)
def consistency(rng: np.random.Generator) -> Case:
    """Core consistency of random components with any tensor of their shape."""
    held = random_array(rng, extreme=False)
    rank = random_rank(rng, held.dense.shape)
    factors = tuple(rng.standard_normal((size, rank)) for size in held.dense.shape)
    fit = codiag.Factorization(np.ones(rank), factors, 0.1, 1.0, True)

    def measured(found: Any, given: dict[str, Any]) -> Problems:
        if not found <= 100:
            yield "metric", f"core consistency {found}"

    named = ("fit", "tensor", "rank")
    return Case(
        "codiag.metrics.core_consistency", core_consistency, {"fit": fit, "tensor": held.data}, None, (measured,), named
    )
