"""Latent-variable models, but for crowds: mixtures, chains, topics, communities."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import clone

from codiag.models import (
    HiddenMarkov,
    LatentDirichlet,
    MixedMembershipCommunities,
    MultiviewMixture,
    SingleTopic,
    SphericalGaussianMixture,
)
from codiag.synthetic import mixed_membership_graph

from ..arrays import choose
from ..case import Case, covers
from ..invariants import Problems, has_shape, largest_first, not_finite, simplex
from ..state import changed_state, global_state


def fit_case(
    model: Any,
    data: Any,
    about: Callable[[Any, Any], Problems],
    *,
    valid: bool | None,
    named: tuple[str, ...] = (),
    repeat: bool = False,
) -> Case:
    """Return the case of fitting a model: its parameters and the data are the arguments, and must stay as they are."""
    name = f"codiag.models.{type(model).__name__}"
    options = model.get_params()
    spoilable = [key for key in options if options[key] is not None or key == "method"]

    def fit(X: Any, **given: Any) -> Any:  # noqa: N803
        built = type(model)(**options | given)
        return built.fit(X)

    def check(fitted: Any, given: dict[str, Any]) -> Problems:
        kept = {key: value for key, value in fitted.get_params().items() if key in given}
        if any(kept[key] is not given[key] for key in kept):
            yield "input changed", "fit changes parameters of the estimator"
        for key, value in vars(fitted).items():
            bad = not_finite(value, key) if key.endswith("_") and key[0] != "_" and key != "diagnostics_" else ""
            if bad:
                yield "not finite", bad
        bad = not_finite(fitted.diagnostics_, "diagnostics_")
        if bad:
            yield "not finite", f"diagnostics_: {bad}"
        yield from about(fitted, given["X"])
        if not repeat:
            return
        again = clone(fitted).fit(given["X"])
        for key, value in vars(fitted).items():
            other = getattr(again, key, None)
            if isinstance(value, np.ndarray) and key.endswith("_") and value.tobytes() != np.asarray(other).tobytes():
                yield "seed", f"{key} is another with the same seed"
                break

    arguments = {"X": data} | {key: options[key] for key in spoilable}
    return Case(name, fit, arguments, valid, (check,), named=named, advice=True)


def about_copy(make: Callable[[], Any], use: Callable[[Any], Any], own: Any) -> Problems:
    """What a model of another library is given says the same, and making it touches nothing global."""
    state = global_state()
    copy = make()
    changed = changed_state(state)
    if changed:
        yield "state changed", f"{make.__name__} changes {', '.join(changed)}"
    gap = float(np.max(np.abs(np.asarray(use(copy)) - np.asarray(own))))
    if not gap < 1e-6:
        yield "copies", f"{make.__name__} gives a model that differs by {gap:.2g}"


def _method(rng: np.random.Generator) -> Any:
    return choose(rng, None, None, None, None, "nojd1", "ojd1", "als", "tpm", "nls")


@covers(
    "codiag.models.SphericalGaussianMixture",
    *(f"codiag.extending.{name}" for name in ("MomentModel", "Moments", "Components", "Diagnostics")),
    weight=3,
)
def gaussians(rng: np.random.Generator) -> Case:
    """Samples of mixtures, some few, some on a line, some far away."""
    k, d = int(rng.integers(1, 4)), int(rng.integers(1, 6))
    n = int(choose(rng, 2, 5, 30, 300))
    k = min(k, d)
    means = rng.standard_normal((k, d)) * choose(rng, 1.0, 5.0)
    samples = means[rng.integers(0, k, n)] + rng.standard_normal((n, d))
    kind = choose(rng, "", "", "", "", "on a line", "large", "integers", "float32", "repeated")
    if kind == "on a line":
        samples = samples[:, :1] * rng.standard_normal(d)
    if kind == "large":
        samples = samples * 10.0 ** int(rng.integers(-20, 21))
    if kind == "repeated":
        samples[:] = samples[0]
    samples = np.rint(samples).astype(int) if kind == "integers" else samples
    samples = samples.astype(np.float32) if kind == "float32" else samples
    method = _method(rng)
    sure = kind in ("", "float32") and n >= 300 and method is None
    model = SphericalGaussianMixture(k, method=method, max_iter=int(choose(rng, 0, 3, 10)), random_state=0)

    def about(fitted: Any, X: Any) -> Problems:  # noqa: N803
        yield from has_shape(fitted.means_, (k, d), "means_")
        yield from simplex(fitted.weights_, 0, "weights_")
        yield from largest_first(fitted.weights_, "weights_")
        yield from simplex(fitted.predict_proba(X), 1, "predict_proba")
        yield from has_shape(fitted.labels_, (n,), "labels_")
        if not np.all(fitted.covariances_ > 0):
            yield "model", f"variances {fitted.covariances_}"
        if not np.isfinite(fitted.score(X)):
            yield "not finite", "score"
        if np.min(fitted.covariances_) > 1e-9 * np.mean(np.square(X)):  # scikit-learn expands squares, which cancel
            yield from about_copy(fitted.to_sklearn, lambda copy: copy.predict_proba(X), fitted.predict_proba(X))
        if sure:
            yield from _same_when_shuffled(fitted, X)

    return fit_case(
        model,
        samples,
        about,
        valid=True if sure else None,
        repeat=rng.random() < 0.2,
    )


def _same_when_shuffled(fitted: Any, samples: np.ndarray) -> Problems:
    """The order of samples makes no difference, but for rounding."""
    order = np.random.default_rng(0).permutation(samples.shape[0])
    again = clone(fitted).fit(samples[order])
    gap = np.max(np.abs(again.means_ - fitted.means_)) / np.max(np.abs(fitted.means_))
    if fitted.diagnostics_["converged"] and np.min(fitted.weights_) > 0.05 and gap > 1e-3:
        yield "order", f"samples in another order move means by {gap:.2g} of their size"


@covers("codiag.models.MultiviewMixture", weight=2)
def views(rng: np.random.Generator) -> Case:
    """Three views of the same samples, dense and sparse."""
    k, sizes = int(rng.integers(1, 4)), [int(rng.integers(2, 6)) for _ in range(3)]
    k, n = min(k, sorted(sizes)[1]), int(choose(rng, 3, 50, 400))
    hidden = rng.integers(0, k, n)
    data: list[Any] = [5 * rng.standard_normal((k, size))[hidden] + rng.standard_normal((n, size)) for size in sizes]
    if rng.random() < 0.2:
        data = [sparse.csr_array(np.maximum(np.rint(view), 0)) for view in data]
    method, kind = _method(rng), rng.random() < 0.2
    model = MultiviewMixture(k, method=method, max_iter=int(choose(rng, 0, 0, 5)), random_state=0)

    def about(fitted: Any, X: Any) -> Problems:  # noqa: N803
        for mean, size in zip(fitted.means_, sizes, strict=True):
            yield from has_shape(mean, (k, size), "means_")
        yield from simplex(fitted.weights_, 0, "weights_")
        yield from largest_first(fitted.weights_, "weights_")
        yield from simplex(fitted.predict_proba(X), 1, "predict_proba")

    valid = True if n >= 400 and method is None and not kind and not sparse.issparse(data[0]) else None
    return fit_case(model, data, about, valid=valid, named=("views", "tensor"), repeat=rng.random() < 0.2)


@covers("codiag.models.HiddenMarkov", weight=3)
def chains(rng: np.random.Generator) -> Case:
    """Sequences of symbols, long and short, some with symbols that never occur."""
    k, symbols = int(rng.integers(1, 4)), int(rng.integers(1, 7))
    n = int(choose(rng, 3, 10, 100, 1000))
    moves = rng.dirichlet(np.full(k, 0.5), k)
    shown = rng.dirichlet(np.full(symbols, 0.5), k)
    states = np.zeros(n, dtype=int)
    for time in range(1, n):
        states[time] = rng.choice(k, p=moves[states[time - 1]])
    sequence = np.array([rng.choice(symbols, p=shown[state]) for state in states])
    sequence = sequence * choose(rng, 1, 1, 1, 3)
    data = choose(rng, sequence, sequence[:, None], sequence.astype(np.int32), sequence.tolist())
    k = max(1, min(k, np.unique(sequence).size))
    method = _method(rng)
    model = HiddenMarkov(k, method=method, max_iter=int(choose(rng, 0, 3, 10)), random_state=0)

    def about(fitted: Any, X: Any) -> Problems:  # noqa: N803
        yield from simplex(fitted.transmat_, 1, "transmat_")
        yield from simplex(fitted.emissionprob_, 1, "emissionprob_")
        yield from simplex(fitted.startprob_, 0, "startprob_")
        yield from has_shape(fitted.emissionprob_, (k, int(sequence.max()) + 1), "emissionprob_")
        yield from simplex(fitted.predict_proba(X), 1, "predict_proba")
        yield from has_shape(fitted.predict(X), (n,), "predict")
        if find_spec("hmmlearn"):
            symbols = np.asarray(X).reshape(-1, 1)
            yield from about_copy(fitted.to_hmmlearn, lambda copy: copy.score(symbols), fitted.score(X))
        if not np.isfinite(fitted.score(X)):
            yield "not finite", "score"

    return fit_case(model, data, about, valid=True if n >= 1000 and method is None else None, repeat=rng.random() < 0.2)


def _counts(rng: np.random.Generator) -> tuple[Any, int, int]:
    k, words, n = int(rng.integers(1, 4)), int(rng.integers(3, 12)), int(choose(rng, 3, 30, 300))
    topics = rng.dirichlet(np.full(words, 0.3), k)
    mixtures = rng.dirichlet(np.full(k, choose(rng, 0.1, 1.0)), n)
    length = int(choose(rng, 3, 20, 100))
    counts = np.array([rng.multinomial(length, mixture @ topics / np.sum(mixture @ topics)) for mixture in mixtures])
    if rng.random() < 0.1:
        counts = counts * 10.0 ** int(rng.integers(1, 14))
    if rng.random() < 0.1:  # words that never occur
        counts[:, int(rng.integers(1, words)) :] = 0
        counts[:, 0] += 1
    kept = choose(rng, counts, counts.astype(float), sparse.csr_array(counts), sparse.csc_array(counts.astype(float)))
    return kept, min(k, words), n


def _about_topics(k: int) -> Callable[[Any, Any], Problems]:
    def about(fitted: Any, X: Any) -> Problems:  # noqa: N803
        yield from has_shape(fitted.components_, (k, X.shape[1]), "components_")
        yield from simplex(fitted.components_, 1, "components_")
        yield from simplex(fitted.weights_, 0, "weights_")
        yield from largest_first(fitted.weights_, "weights_")
        yield from simplex(fitted.transform(X), 1, "transform")
        if not 0 < fitted.perplexity(X) < np.inf:
            yield "not finite", f"perplexity {fitted.perplexity(X)}"
        if isinstance(fitted, LatentDirichlet) and not isinstance(fitted, SingleTopic):
            yield from about_copy(fitted.to_sklearn, lambda copy: copy.transform(X).sum(axis=1), 1.0)
        if len(fitted.top_words([f"w{i}" for i in range(X.shape[1])], 2)) != k:
            yield "shape", "top_words"

    return about


@covers("codiag.models.LatentDirichlet", "codiag.models.SingleTopic", weight=3)
def topics(rng: np.random.Generator) -> Case:
    """Counts of words, dense and sparse, many documents and few."""
    counts, k, _n = _counts(rng)
    method, max_iter = _method(rng), int(choose(rng, 0, 5))
    if rng.random() < 0.4:
        model: Any = SingleTopic(k, method=method, max_iter=max_iter, random_state=0)
    else:
        model = LatentDirichlet(k, alpha_0=choose(rng, 0.0, 1.0, 5.0), method=method, max_iter=max_iter, random_state=0)
    return fit_case(
        model, counts, _about_topics(k), valid=True if k == 1 and method is None else None, repeat=rng.random() < 0.2
    )


@covers("codiag.models.LatentDirichlet", weight=1)
def topics_in_chunks(rng: np.random.Generator) -> Case:
    """Documents that come in chunks."""
    counts, k, n = _counts(rng)

    def fit_chunks(X: Any, chunk: Any, n_components: Any) -> Any:  # noqa: N803
        model = LatentDirichlet(n_components, random_state=0).partial_fit(X)
        return model.partial_fit(chunk)

    def check(fitted: Any, given: dict[str, Any]) -> Problems:
        if not hasattr(fitted, "diagnostics_"):
            return  # not fitted yet: too few documents, which is told in a warning
        bad = not_finite(fitted.diagnostics_, "diagnostics_")
        if bad:
            yield "not finite", f"diagnostics_: {bad}"
        yield from _about_topics(k)(fitted, given["X"])

    arguments = {"X": counts, "chunk": counts[: max(1, n // 2)], "n_components": k}
    return Case("codiag.models.LatentDirichlet", fit_chunks, arguments, None, (check,), advice=True)


def _graph(rng: np.random.Generator) -> tuple[Any, int, int]:
    """Return a graph in some form, its number of nodes, and a number of communities."""
    import networkx as nx

    n, k = int(choose(rng, 12, 20, 60, 150)), int(rng.integers(1, 4))
    graph = mixed_membership_graph(n, k, alpha_0=choose(rng, 0.0, 0.5), inside=0.5, outside=0.05, seed=rng)
    adjacency = graph.adjacency
    form = choose(rng, "sparse", "sparse", "dense", "edges", "networkx", "weighted", "names")
    pairs = np.argwhere(sparse.triu(adjacency, 1).toarray() > 0)
    if form == "dense":
        return adjacency.toarray(), n, k
    if form == "edges" and len(pairs) > 10:
        return pairs, 0, k
    if form == "names" and len(pairs) > 10:
        return [(f"n{a}", f"n{b}") for a, b in pairs.tolist()], 0, k
    if form == "networkx":
        return nx.from_scipy_sparse_array(adjacency), n, k
    if form == "weighted":
        weights = sparse.triu(adjacency, 1).multiply(rng.integers(1, 9, (n, n)))
        return sparse.csr_array(weights + weights.T), n, k
    return adjacency, n, k


@covers("codiag.models.MixedMembershipCommunities", weight=2)
def communities(rng: np.random.Generator) -> Case:
    """Graphs in every form they come in."""
    data, n, k = _graph(rng)
    model = MixedMembershipCommunities(
        k if rng.random() < 0.8 else None,
        alpha_0=choose(rng, 0.0, 0.1, 1.0),
        degree_corrected=choose(rng, True, False),
        n_partitions=int(choose(rng, 1, 3)) if rng.random() < 0.85 else None,
        max_iter=int(choose(rng, 0, 5)),
        random_state=0,
    )

    def about(fitted: Any, X: Any) -> Problems:  # noqa: N803
        found = fitted.n_components_
        if n:
            yield from has_shape(fitted.memberships_, (n, found), "memberships_")
        yield from simplex(fitted.memberships_, 1, "memberships_")
        yield from largest_first(fitted.memberships_.sum(axis=0), "sizes of communities")
        yield from has_shape(fitted.connectivity_, (found, found), "connectivity_")
        weighted = sparse.issparse(X) and X.nnz and X.data.max() > 1
        if not weighted and np.max(fitted.connectivity_) > 1 + 1e-9:
            yield "model", f"links at a rate of {np.max(fitted.connectivity_):.2g} a pair of nodes"
        if not set(np.unique(fitted.labels_)) <= set(range(-1, found)):
            yield "model", f"labels {np.unique(fitted.labels_)}"

    named = ("graph", "adjacency")
    return fit_case(
        model,
        data,
        about,
        valid=True if n >= 60 and k == 1 and model.n_components else None,
        named=named,
        repeat=rng.random() < 0.2,
    )
