"""Functions of TensorLy, matching of components, and sparse tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

import codiag
from codiag import drop_in
from codiag.tensors import SparseTensor

from ..case import Case
from ..invariants import Problems, finite
from ..reference import composed
from ..strategies import FLAGS, RNGS, SEEDS, arrays, one_of, ranks, sizes


@st.composite
def of_tensorly(draw: Any) -> Case:
    """Draw a call of TensorLy's functions or classes, free or non-negative."""
    held, rng = draw(arrays(extreme=False)), draw(RNGS)
    rank = draw(ranks(held.dense.shape))
    start = (None, [rng.standard_normal((size, rank)) for size in held.dense.shape])
    name = draw(one_of("parafac", "parafac", "CP", "non_negative_parafac", "non_negative_parafac_hals", "CP_NN"))
    free = name in ("parafac", "CP")
    options: dict[str, Any] = {
        "n_iter_max": draw(one_of(1, 2, 50)),
        "init": draw(one_of("svd", "random", start) if free else one_of("svd", "random")),
        "normalize_factors": draw(FLAGS),
        "tol": draw(one_of(1e-8, 1e-5, 0)),
    }
    kept = {key: value for key, value in options.items() if draw(FLAGS)}
    arguments = {"tensor": held.data, "rank": rank, "random_state": draw(SEEDS), **kept}
    function = getattr(drop_in, name)

    def call(tensor: Any, **given: Any) -> Any:
        return function(**given).fit_transform(tensor) if isinstance(function, type) else function(tensor, **given)

    def about(found: Any, given: dict[str, Any]) -> Problems:
        weights, factors = found
        if [np.shape(factor) for factor in factors] != [(size, rank) for size in held.dense.shape]:
            yield "shape", f"factors {[np.shape(factor) for factor in factors]}"
            return
        yield from finite([np.asarray(weights), *map(np.asarray, factors)], given)
        if not free and any(np.any(np.asarray(array) < 0) for array in (weights, *factors)):
            yield "constraint", "components have negative entries"
        error = np.linalg.norm(held.dense - composed(np.asarray(weights), factors)) / np.linalg.norm(held.dense)
        if free and error > 1.001 and kept.get("n_iter_max", 50) == 50:
            yield "relative_error", f"{error:.3g}, worse than nothing"

    return Case(f"codiag.drop_in.{name}", call, arguments, True, (about,))


@st.composite
def matching(draw: Any) -> Case:
    """Draw components and the same in another order with noise, as factors, fits or pairs with weights."""
    k, rng, noise = draw(sizes(1, 4)), draw(RNGS), draw(one_of(0.0, 1e-3, 1.0))
    truth = [rng.standard_normal((draw(sizes(1, 5)), k)) for _ in range(draw(one_of(1, 3, 3, 4)))]
    order = rng.permutation(k)
    estimate = [factor[:, order] + noise * rng.standard_normal(factor.shape) for factor in truth]

    def given_as(factors: list[np.ndarray]) -> Any:
        if len(factors) == 1:
            return factors[0]
        fit = codiag.Factorization(np.ones(k), tuple(factors), 0.1, True, _norm=1.0)
        return draw(one_of(factors, tuple(factors), fit, (np.ones(k), factors)))

    def measured(found: Any, given: dict[str, Any]) -> Problems:
        error = codiag.factor_error(**given)
        if sorted(np.asarray(found.permutation).tolist()) != list(range(k)):
            yield "shape", f"permutation {found.permutation}"
        if not 0 <= error <= 2 or (noise == 0 and error > 1e-6):
            yield "metric", f"the error of the same components is {error}"

    arguments = {"estimate": given_as(estimate), "truth": given_as(truth)}
    return Case("codiag.match_components", codiag.match_components, arguments, True, (measured,), ("factors",))


@st.composite
def sparse_tensors(draw: Any) -> Case:
    """Draw few entries in a huge shape: memory follows the entries."""
    shape = tuple(10 ** draw(sizes(1, 9)) for _ in range(3))
    n, rng = draw(sizes(2, 15)), draw(RNGS)
    coords = np.array([rng.integers(0, size, n) for size in shape])

    def build_and_fit(**given: Any) -> Any:
        fit = codiag.factorize(SparseTensor(**given), 2, rng=0)
        return [np.asarray(fit.weights), fit.relative_error]

    arguments = {"coords": coords, "values": rng.standard_normal(n), "shape": shape}
    valid = True if max(shape) <= 10**6 else None
    return Case("codiag.tensors.SparseTensor", build_and_fit, arguments, valid, (finite,), ("tensor",))
