"""Slices as samples: new ones, for given B and C, and resamples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._arrays import few_threads
from codiag._checks import RNGLike, as_generator, as_number
from codiag._parafac2._form import in_form
from codiag._parafac2._model import Factors, Rules
from codiag._parafac2._slices import Slices
from codiag._parafac2._solve import scale_of, solve
from codiag._parafac2._stack import Stack
from codiag._parafac2._starts import refitted_weights
from codiag.inference import Bootstrap
from codiag.metrics import match_components

if TYPE_CHECKING:
    from codiag._parafac2._fit import Parafac2Fit


def transform(fit: Parafac2Fit, new: Any) -> np.ndarray:
    """Return what `Parafac2Fit.transform` does."""
    slices, (_, b, c) = Slices.of(new), fit.factors
    if slices.width != c.shape[0]:
        raise ValueError(f"new slices must have the {c.shape[0]} columns of the fit; got {slices.width}")
    scale, is_bounded = scale_of(slices), bool(fit._rules.get("nonnegative_a"))
    scaled = Slices(tuple(one / scale for one in slices.arrays))
    stack, order = Stack.of([one if slices.is_sparse else np.nan_to_num(one) for one in scaled.arrays], fit.rank)
    known = Factors(fit.factors[0] * fit.weights / scale, b, c)
    is_positive = is_bounded or bool(np.all(known.a >= 0))
    start = np.empty((order.size, fit.rank))
    start[order] = refitted_weights(stack, known, is_positive=is_positive).a
    rules = Rules(nonnegative_a=is_bounded, only_a=True)
    found = solve(scaled, fit.rank, rules, as_generator(0), Factors(start, b, c))
    return found.factors.a * scale


def bootstrap(fit: Parafac2Fit, mode: Any, n: int, rng: RNGLike) -> Bootstrap:
    """Return what `Parafac2Fit.bootstrap` does."""
    as_number("n", n, integer=True)
    slices, n_slices = fit._slices, len(fit.projections)
    if mode != 0:
        raise ValueError(f"mode must be 0, that of the slices; got {mode!r}")
    if slices is None:
        raise ValueError("fit must have its slices to be refitted; those of drop_data() and of sparse files have none")
    if n_slices < 4:
        raise ValueError(f"fit must have four slices or more to be resampled; got {n_slices}")
    scale, generator = scale_of(slices), as_generator(rng, apart=True)
    a, b, c = fit.factors
    rules = Rules(bool(fit._rules.get("nonnegative_a")), bool(fit._rules.get("nonnegative_c")), fit._rules["ridge"])
    weights, all_b, all_c = [], [], []
    scaled = Slices(tuple(one / scale for one in slices.arrays))
    with few_threads(float(np.sum(slices.sizes)) * slices.width * fit.rank):
        for _ in range(int(n)):
            chosen = np.sort(generator.integers(n_slices, size=n_slices))
            start = Factors(a[chosen] * (fit.weights / scale), b, c)
            found = solve(scaled.subset(chosen), fit.rank, rules, generator, start)
            form = in_form(found.factors, found.bases)
            matched = match_components([form.factors[2]], [c]).permutation
            signs = np.where(np.sum(form.factors[2][:, matched] * c, axis=0) < 0, -1.0, 1.0)
            weights.append(form.weights[matched] * scale)
            all_b.append(form.factors[1][np.ix_(matched, matched)] * np.outer(signs, signs))
            all_c.append(form.factors[2][:, matched] * signs)
    return Bootstrap(fit, 0, np.stack(weights), (None, np.stack(all_b), np.stack(all_c)))  # type: ignore[arg-type]
