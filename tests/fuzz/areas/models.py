"""Latent-variable models: samples of the model and others, in every form they come in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone

from codiag import models
from codiag.synthetic import crowd_votes, worker_confusions

from ..case import Case
from ..invariants import Problems, has_shape, not_finite, simplex
from ..strategies import FLAGS, RNGS, one_of, sizes

METHODS = one_of(None, None, None, None, "nojd1", "ojd1", "als", "tpm", "nls")
ITERATIONS = one_of(5, 10, 0)
SELDOM = one_of(False, False, False, True)
NAMED = ("tensor", "rank", "views", "votes", "task", "worker", "label")


def fitting(model: Any, data: Any, about: Callable[[Any, Any], Problems], valid: bool, again: bool = False) -> Case:
    """Return the case of fitting a model: the data and its parameters are the arguments, and must stay as they are."""
    options = {key: value for key, value in model.get_params().items() if value is not None}

    def fit(X: Any, **given: Any) -> Any:  # noqa: N803
        return type(model)(**given).fit(X)

    def fitted_well(fitted: Any, given: dict[str, Any]) -> Problems:
        if any(value is not given[key] for key, value in fitted.get_params().items() if key in given):
            yield "input changed", "fit changes parameters of the estimator"
        bad = not_finite(fitted)
        if bad:
            yield "not finite", bad
            return
        yield from about(fitted, given["X"])
        other = clone(fitted).fit(given["X"]) if again else fitted
        for key, value in vars(fitted).items():
            if isinstance(value, np.ndarray) and key.endswith("_") and value.tobytes() != getattr(other, key).tobytes():
                yield "seed", f"{key} is another with the same seed"
                break

    name = f"codiag.models.{type(model).__name__}"
    return Case(name, fit, {"X": data, **options}, valid or None, (fitted_well,), NAMED, advice=True)


@st.composite
def mixtures(draw: Any) -> Case:
    """Draw samples of mixtures, in one view or three; some few, on a line, far away or sparse."""
    width, n, rng, method = draw(sizes(2, 5)), draw(one_of(400, 30, 3)), draw(RNGS), draw(METHODS)
    k, one = min(draw(sizes(1, 3)), width), draw(FLAGS)
    hidden = rng.integers(0, k, n)
    samples = [5 * rng.standard_normal((k, width))[hidden] + rng.standard_normal((n, width)) for _ in range(3)]
    changes: list[Callable[[np.ndarray], Any]] = [
        *[np.asarray] * 3,
        lambda x: x[:, :1] * rng.standard_normal(width),
        lambda x: x * 1e12,
        lambda x: np.repeat(x[:1], n, axis=0),
        lambda x: x.astype(np.float32) if one else sparse.csr_array(np.maximum(np.rint(x), 0)),
    ]
    change = draw(st.sampled_from(changes))
    data = [change(view) for view in samples]
    build = models.SphericalGaussianMixture if one else models.MultiviewMixture
    model = build(k, method=method, max_iter=draw(ITERATIONS), random_state=0)

    def about(fitted: Any, X: Any) -> Problems:  # noqa: N803
        yield from has_shape(fitted.means_ if one else fitted.means_[0], (k, width), "means_")
        yield from simplex(fitted.weights_, 0, "weights_")
        yield from simplex(fitted.predict_proba(X), 1, "predict_proba")

    valid = change is np.asarray and n >= 400 and method is None
    return fitting(model, data[0] if one else data, about, valid, draw(SELDOM))


@st.composite
def chains(draw: Any) -> Case:
    """Draw sequences of symbols, long and short, some with symbols that never occur."""
    k, symbols, n, rng = draw(sizes(1, 3)), draw(sizes(1, 6)), draw(one_of(1000, 100, 10, 3)), draw(RNGS)
    moves, shown = rng.dirichlet(np.full(k, 0.5), k), rng.dirichlet(np.full(symbols, 0.5), k)
    states = np.zeros(n, dtype=int)
    for time in range(1, n):
        states[time] = rng.choice(k, p=moves[states[time - 1]])
    sequence = np.array([rng.choice(symbols, p=shown[state]) for state in states]) * draw(one_of(1, 1, 3))
    data = draw(one_of(sequence, sequence[:, None], sequence.astype(np.int32), sequence.tolist()))
    k, method = max(1, min(k, np.unique(sequence).size)), draw(METHODS)
    model = models.HiddenMarkov(k, method=method, max_iter=draw(ITERATIONS), random_state=0)

    def about(fitted: Any, X: Any) -> Problems:  # noqa: N803
        for name in ("transmat_", "emissionprob_", "startprob_"):
            yield from simplex(getattr(fitted, name), -1, name)
        yield from has_shape(fitted.emissionprob_, (k, int(sequence.max()) + 1), "emissionprob_")
        yield from simplex(fitted.predict_proba(X), 1, "predict_proba")
        yield from has_shape(fitted.predict(X), (n,), "predict")

    return fitting(model, data, about, n >= 1000 and method is None, draw(SELDOM))


@st.composite
def topics(draw: Any) -> Case:
    """Draw counts of words, dense and sparse, many documents and few, some words that never occur."""
    words, n, length, rng = draw(sizes(3, 11)), draw(one_of(300, 30, 3)), draw(one_of(20, 3, 100)), draw(RNGS)
    k, method = min(draw(sizes(1, 3)), words), draw(METHODS)
    mixtures = rng.dirichlet(np.full(k, draw(one_of(0.1, 1.0))), n) @ rng.dirichlet(np.full(words, 0.3), k)
    counts = np.array([rng.multinomial(length, mixture / mixture.sum()) for mixture in mixtures])
    if draw(SELDOM):
        counts[:, words // 2 :] = 0
        counts[:, 0] += 1
    data = draw(one_of(counts, counts.astype(float), sparse.csr_array(counts), sparse.csc_array(counts.astype(float))))
    options = {"method": method, "max_iter": draw(ITERATIONS), "random_state": 0}
    model = draw(one_of(models.LatentDirichlet(k, alpha_0=1.0, **options), models.SingleTopic(k, **options)))

    def about(fitted: Any, X: Any) -> Problems:  # noqa: N803
        yield from has_shape(fitted.components_, (k, words), "components_")
        yield from simplex(fitted.components_, 1, "components_")
        yield from simplex(fitted.weights_, 0, "weights_")
        yield from simplex(fitted.transform(X), 1, "transform")
        if not 0 < fitted.perplexity(X) < np.inf:
            yield "not finite", f"perplexity {fitted.perplexity(X)}"

    return fitting(model, data, about, k == 1 and method is None, draw(SELDOM))


@st.composite
def crowds(draw: Any) -> Case:
    """Draw votes of good crowds, of few workers, of workers who always agree; as numbers and as text."""
    tasks, workers, classes, rng = draw(sizes(1, 40)), draw(sizes(1, 8)), draw(sizes(2, 4)), draw(RNGS)
    kind = draw(one_of("crowd", "crowd", "agree", "one class", "noise"))
    columns = crowd_votes(tasks, worker_confusions(max(workers, 3), classes, rng=rng), density=1.0, rng=rng).votes
    task, worker, _ = columns
    if kind != "crowd":
        label = rng.integers(0, classes, task.size) if kind == "noise" else rng.integers(0, classes, tasks)[task]
        columns = (task, worker, label * (kind != "one class"))
    votes = dict(zip(("task", "worker", "label"), columns, strict=True))
    if draw(FLAGS):
        votes = {name: np.array([f"{name}{entry}" for entry in column]) for name, column in votes.items()}
    options = {"init": draw(one_of("moments", "majority")), "max_iter": draw(one_of(100, 3)), "one_coin": draw(FLAGS)}
    order = rng.permutation(columns[0].size)

    def fit(X: Any, **given: Any) -> Any:  # noqa: N803
        return models.DawidSkene(random_state=0, **given).fit(X)

    def about(fitted: Any, given: dict[str, Any]) -> Problems:
        chances = np.asarray(fitted.probas_, dtype=float)
        yield from has_shape(chances, (np.unique(columns[0]).size, len(fitted.classes_)), "probas_")
        yield from simplex(chances, 1, "probas_")
        again = fit({name: column[order] for name, column in votes.items()}, **options)
        gap = float(np.max(np.abs(np.asarray(again.probas_) - chances)))
        if gap > 1e-6:
            yield "order", f"votes in another order move probabilities by {gap:.2g}"

    return Case("codiag.models.DawidSkene", fit, {"X": votes, **options}, True, (about,), NAMED, advice=True)
