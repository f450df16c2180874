"""Samples in terms of components, and labelled data."""

from __future__ import annotations

from typing import Any

import numpy as np

import codiag
from codiag.io import labelled_tensor
from codiag.labels import Labelled, Labels
from codiag.models import CP

from ..arrays import choose
from ..case import Case, covers
from ..invariants import Problems, has_shape, not_finite


@covers("codiag.models.CP", weight=2)
def components_of_samples(rng: np.random.Generator) -> Case:
    """Samples with missing entries, free and non-negative, of one precision or another."""
    rank, n = int(rng.integers(1, 4)), int(rng.integers(4, 12))
    shape = (n, *(int(size) for size in rng.integers(3, 8, int(choose(rng, 2, 2, 3)))))
    letters = "abcd"[: len(shape)]
    formula = ",".join(f"{letter}r" for letter in letters) + f"->{letters}"
    factors = [rng.exponential(size=(size, rank)) for size in shape]
    data = np.einsum(formula, *factors)
    data += choose(rng, 0.0, 0.01) * data.std() * rng.standard_normal(shape)
    hidden = rng.random(shape) < choose(rng, 0.0, 0.0, 0.1)
    data = np.where(hidden, np.nan, data).astype(choose(rng, np.float64, np.float64, np.float32))
    constraints = choose(rng, None, None, "nonnegative")

    def fit(X: Any, **options: Any) -> Any:  # noqa: N803
        return CP(random_state=0, **options).fit(X)

    def check(model: Any, given: dict[str, Any]) -> Problems:
        found = model.transform(given["X"])
        yield from has_shape(found, (n, given["n_components"]), "transform")
        bad = not_finite(found, "transform")
        if bad:
            yield "not finite", bad
            return
        if given["constraints"] is not None and np.min(found) < 0:
            yield "model", f"a coefficient of {np.min(found):.2g} where they are non-negative"
        left = given["X"] - model.inverse_transform(found)
        share = 1 - np.nansum(left.astype(float) ** 2) / np.nansum(given["X"].astype(float) ** 2)
        if abs(share - model.score(given["X"])) > 1e-4:
            yield "model", f"a score of {model.score(given['X'])}, and {share} of the squares is explained"

    arguments = {"X": data, "n_components": rank, "constraints": constraints}
    return Case("codiag.models.CP", fit, arguments, True, (check,), named=("tensor", "rank"), advice=True)


@covers("codiag.io.labelled_tensor", "codiag.io.Labels")
def long_tables(rng: np.random.Generator) -> Case:
    """Tables with a row for each entry, some of which are left out, in any order."""
    import pandas as pd

    shape = tuple(int(size) for size in rng.integers(2, 6, int(choose(rng, 3, 3, 4))))
    labels = [np.array([f"x{i}" for i in range(size)]) if rng.random() < 0.5 else np.arange(size) / 2 for size in shape]
    names = tuple("abcd"[: len(shape)])
    dense = rng.standard_normal(shape) + 5
    kept = rng.permutation(dense.size)[: dense.size - int(rng.integers(0, 3))]
    places = np.unravel_index(kept, shape)
    columns = {name: own[place] for name, own, place in zip(names, labels, places, strict=True)}
    table = pd.DataFrame(columns | {"value": dense[places]})
    absent = choose(rng, "missing", "zero")

    def check(found: Any, _given: dict[str, Any]) -> Problems:
        seen = np.zeros(shape, bool)
        seen[places] = True
        expected = np.where(seen, dense, np.nan if absent == "missing" else 0)
        present = np.ix_(*(np.isin(own, other) for own, other in zip(labels, found.labels.values, strict=True)))
        if not np.array_equal(found.tensor, expected[present], equal_nan=True):
            yield "model", "entries are not where their labels say"
        again = Labelled(found.tensor, Labels(names, tuple(found.labels.values)))
        if absent == "zero" and codiag.factorize(again, 1, seed=0).labels is not again.labels:
            yield "model", "labels are lost"

    sort = bool(rng.random() < 0.5)

    def read(**given: Any) -> Labelled:
        return labelled_tensor(sort=sort, **given)

    arguments = {"table": table, "absent": absent}
    named = ("modes", "value", "labels", "tensor")
    return Case("codiag.io.labelled_tensor", read, arguments, True, (check,), named=named)
