"""The estimators against what people use: ``python -m benchmarks.models [topics] [mixtures] [chains] [memory]``.

Topics need the corpus KOS; `CODIAG_DATA_DIR` says where the data lies.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from benchmarks.measure import cpu_seconds, megabytes, run_parts, table, timed
from codiag.datasets import load_kos
from codiag.models import HiddenMarkov, LatentDirichlet, SphericalGaussianMixture
from codiag.models.chains import baum_welch_sums
from codiag.models.topics import Start, log_likelihood, refined, topic_mixtures
from codiag.synthetic import unit_factor

# Topics


def halves(counts: sparse.csr_array, rng: np.random.Generator) -> tuple[sparse.csr_array, sparse.csr_array]:
    """Split the words of every document in two at random."""
    seen = counts.copy()
    seen.data = rng.binomial(counts.data.astype(int), 0.5).astype(float)
    return seen, counts - seen


def completion(topics: np.ndarray, prior: np.ndarray, held_out: sparse.csr_array, unigram: np.ndarray) -> float:
    """Return the perplexity of half of every document, given topics mixed as the other half says; the same for all."""
    smooth = 0.99 * topics + 0.01 * unigram
    seen, hidden = halves(held_out, np.random.default_rng(1))
    mixtures = topic_mixtures(seen, smooth, prior, n_steps=50)
    hidden = sparse.csr_array(hidden)
    hidden.eliminate_zeros()
    return float(np.exp(-log_likelihood(hidden, mixtures, smooth) / hidden.sum()))


def coherence(topics: np.ndarray, counts: sparse.csr_array, n: int = 10) -> float:
    """Return the mean normalized pointwise mutual information of pairs of top words, within documents."""
    scores = []
    present = sparse.csc_array((counts > 0).astype(float))
    for topic in topics:
        top = np.argsort(-topic)[:n]
        rows = present[:, top]
        together = (rows.T @ rows).toarray() / counts.shape[0]
        single = np.diag(together)
        for i in range(n):
            for j in range(i):
                joint = max(together[i, j], 1e-12)
                scores.append(np.log(joint / (single[i] * single[j])) / -np.log(joint))
    return float(np.mean(scores))


def from_random(counts: sparse.csr_array, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return topics and prior after the same steps that codiag takes, from a random start: the control."""
    random = np.random.default_rng(seed).dirichlet(np.ones(counts.shape[1]), k)
    mean = np.asarray(counts.sum(axis=0)).ravel() / counts.sum()
    start = Start.of(random, np.full(k, 1 / k), mean, has_fixed_sum=False)
    found = refined(counts, start, 30).counts
    return found.topics, found.prior


def tomotopy_topics(counts: sparse.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return topics and the prior that tomotopy estimates, after 500 sweeps of Gibbs sampling by one worker."""
    import tomotopy

    model = tomotopy.LDAModel(k=k, seed=0)
    words = np.repeat(counts.indices, counts.data.astype(int)).astype(str)
    for document in np.split(words, np.cumsum(np.asarray(counts.sum(axis=1)).ravel().astype(int))[:-1]):
        model.add_doc(document.tolist())
    model.train(500, workers=1)
    topics = np.full((k, counts.shape[1]), 1e-12)
    places = [int(word) for word in model.used_vocabs]
    for topic in range(k):
        topics[topic, places] = model.get_topic_word_dist(topic)
    return np.asarray(topics / topics.sum(axis=1, keepdims=True)), np.asarray(model.alpha, dtype=np.float64)


def sklearn_topics(counts: sparse.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.decomposition import LatentDirichletAllocation

    model = LatentDirichletAllocation(k, random_state=0).fit(counts)
    return model.components_ / model.components_.sum(axis=1, keepdims=True), np.full(k, 1 / k)


def moment_topics(counts: sparse.csr_array, k: int, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    model = LatentDirichlet(k, random_state=0, **options).fit(counts)
    return model.components_, model.doc_topic_prior_


def short_texts(
    k: int, alpha_0: float, spread: float, seed: int, n: int = 12_000, words: int = 2000
) -> sparse.csr_array:
    """Return documents of 5 to 10 words, mixtures Dirichlet, frequencies of words falling with their rank."""
    rng = np.random.default_rng([seed, k])
    topics = rng.gamma(spread, 1.0, (k, words)) / (10 + np.arange(words)) + 1e-300
    ladders = np.cumsum(topics / topics.sum(axis=1, keepdims=True), axis=1)
    lengths = rng.integers(5, 11, n)
    numbers = rng.multinomial(lengths, rng.dirichlet(alpha_0 * rng.dirichlet(np.full(k, 5.0)) + 1e-6, n))
    found, rows = [], []
    for topic in range(k):
        rows.append(np.repeat(np.arange(n), numbers[:, topic]))
        found.append(np.minimum(np.searchsorted(ladders[topic], rng.random(rows[-1].size)), words - 1))
    places = np.concatenate(rows), np.concatenate(found)
    return sparse.coo_array((np.ones(places[0].size), places), shape=(n, words)).tocsr()


def corpora() -> Iterator[tuple[str, sparse.csr_array, sparse.csr_array, int]]:
    """Yield names of corpora, documents to learn from, others, and numbers of topics."""
    kos = load_kos().counts
    kos = kos[np.random.default_rng(0).permutation(kos.shape[0])]
    for k in (10, 20):
        yield "KOS", kos[:2744], kos[2744:], k
    for k, alpha_0, spread in ((10, 0.5, 0.1), (20, 0.5, 0.1), (10, 0.1, 0.05), (20, 2.0, 0.05)):
        counts = short_texts(k, alpha_0, spread, seed=0)
        yield f"short, alpha_0 = {alpha_0}", counts[:10_000], counts[10_000:], k


def topics() -> str:
    rows: list[tuple[object, ...]] = []
    for name, train, test, k in corpora():
        unigram = np.asarray(train.sum(axis=0)).ravel() / train.sum()
        methods: dict[str, Callable[[], tuple[np.ndarray, np.ndarray]]] = {
            "codiag, moments alone": partial(moment_topics, train, k, max_iter=0),
            "codiag": partial(moment_topics, train, k),
            "codiag, alpha_0 = 1 given": partial(moment_topics, train, k, alpha_0=1.0),
            "the same steps from random topics": partial(from_random, train, k, 0),
            "scikit-learn, batch": partial(sklearn_topics, train, k),
        }
        if find_spec("tomotopy"):
            methods["tomotopy, 500 sweeps of Gibbs"] = partial(tomotopy_topics, train, k)
        for method, work in methods.items():
            (found, prior), first = timed(work, time.process_time)
            others = [timed(work, time.process_time)[1] for _ in range(4)] if first < 3 else []
            seconds = float(np.median([first, *others]))
            score, unity = completion(found, prior, test, unigram), coherence(found, train)
            rows.append((name, k, method, f"{score:.1f}", f"{unity:.3f}", f"{prior.sum():.2f}", f"{seconds:.2f}"))
    headings = ("corpus", "topics", "method", "perplexity", "coherence", "alpha_0", "CPU seconds")
    return (
        "## Topics\nKOS (3430 documents, 6906 words), 2744 documents to learn from; and short texts, 10,000 documents "
        "of 5 to 10 words over a vocabulary of 2000 to learn from and 2000 others, drawn from mixed topics. Perplexity "
        "of a random half of the words of the others, topics mixed as the other half says, by the same collapsed steps "
        "for all, with the prior that each has estimated, and with 1 % of the mean of all words mixed in; coherence: "
        "NPMI of the ten top words; CPU seconds: the median of five fits, or of one where that takes more than 3 s. "
        "Defaults were chosen on simulated corpora of other seeds.\n\n" + table(headings, rows)
    )


# Mixtures and chains


def matched_error(estimate: np.ndarray, truth: np.ndarray) -> float:
    """Return the mean distance of matched rows, relative to their mean length."""
    distances = np.linalg.norm(estimate[:, None] - truth[None], axis=2)
    rows, columns = linear_sum_assignment(distances)
    return float(distances[rows, columns].mean() / np.linalg.norm(truth, axis=1).mean())


def mixtures(d: int = 50, k: int = 20, n: int = 100_000) -> str:
    from sklearn.mixture import GaussianMixture

    rows: list[tuple[object, ...]] = []
    spherical = [("spherical", radius, seed) for radius, seed in ((2.5, 0), (4.0, 0), (4.0, 1), (8.0, 0), (8.0, 1))]
    for kind, radius, seed in (*spherical, ("diag", 4.0, 0), ("diag", 8.0, 0)):
        rng = np.random.default_rng(seed)
        means = radius * unit_factor(d, k, rng).T
        shares = rng.dirichlet(np.full(k, 5.0))
        variances = rng.uniform(0.8, 1.2, (k, 1)) if kind == "spherical" else rng.uniform(0.3, 3, (k, d))
        h = rng.choice(k, n, p=shares)
        samples = means[h] + np.sqrt(variances)[h] * rng.standard_normal((n, d))
        models: dict[str, Any] = {
            "codiag, moments alone": SphericalGaussianMixture(k, max_iter=0, random_state=0),
            "codiag, 10 steps of EM": SphericalGaussianMixture(k, covariance_type=kind, random_state=0),
            "scikit-learn, 10 starts": GaussianMixture(k, covariance_type=kind, n_init=10, random_state=0),
        }
        for name, model in models.items():
            fitted, seconds = timed(lambda: model.fit(samples), time.process_time)  # noqa: B023
            rows.append((kind, radius, seed, name, f"{matched_error(fitted.means_, means):.3f}", f"{seconds:.1f}"))
    return (
        f"## Mixtures\nGaussians, d = {d}, k = {k}, n = {n:,}, means on a sphere, variances between 0.8 and 1.2 where "
        "they are spherical, and between 0.3 and 3 along each feature where they are diagonal, where moments alone are "
        "those of spherical Gaussians. Error: mean distance of the means, relative to their length.\n\n"
        + table(("covariances", "radius", "seed", "method", "error", "CPU seconds"), rows)
    )


def chains(d: int = 20, k: int = 4, n: int = 100_000, n_problems: int = 3) -> str:
    rows: list[tuple[object, ...]] = []
    for seed in range(n_problems):
        rng = np.random.default_rng(seed)
        transitions, emissions = rng.dirichlet(np.full(k, 1.0), k), rng.dirichlet(np.full(d, 0.5), k)
        states, draws = np.zeros(n, dtype=int), rng.random(n)
        ladder = np.cumsum(transitions, axis=1)
        for step in range(1, n):
            states[step] = min(int(np.searchsorted(ladder[states[step - 1]], draws[step])), k - 1)
        symbols = np.minimum((np.cumsum(emissions, axis=1)[states] < rng.random(n)[:, None]).sum(axis=1), d - 1)
        start = HiddenMarkov(k, max_iter=0, random_state=0).fit(symbols)
        for max_iter in (0, 10, 500):
            model = HiddenMarkov(k, max_iter=max_iter, random_state=0)
            fitted, seconds = timed(lambda: model.fit(symbols), time.process_time)  # noqa: B023
            error = matched_error(fitted.emissionprob_, emissions)
            likelihood = f"{fitted.score(symbols) / n:.5f}"
            each = f"{1e3 * _step_seconds(start, symbols):.0f}" if max_iter else ""
            name = "codiag, at most 500 steps" if max_iter == 500 else f"codiag, {max_iter} steps of EM"
            rows.append((seed, name, f"{error:.3f}", likelihood, f"{seconds:.1f}", each))
        if find_spec("hmmlearn"):
            rows += [(seed, *row) for row in _hmmlearn(symbols, emissions, start)]
    return (
        f"## Chains\nHidden Markov models, {d} symbols, {k} states, {n:,} steps, transitions Dirichlet(1), emissions "
        "Dirichlet(0.5). Error: mean distance of emission rows, relative to their length. hmmlearn: at most 100 steps "
        "of EM from each of five random starts, the start of greatest likelihood; its default sums logarithms, "
        '`implementation="scaling"` scales. Milliseconds of a step: the least CPU time of several '
        "tries, all from the same parameters.\n\n"
        + table(("problem", "method", "error", "log-likelihood a step", "CPU seconds", "ms a step of EM"), rows)
    )


def _step_seconds(model: HiddenMarkov, symbols: np.ndarray) -> float:
    """Return what a step of Baum and Welch takes."""
    found, lengths = (model.startprob_, model.transmat_, model.emissionprob_), np.array([symbols.size])
    return cpu_seconds(lambda: baum_welch_sums(symbols, lengths, *found).probabilities(), repeats=3)


def _hmmlearn(symbols: np.ndarray, emissions: np.ndarray, start: HiddenMarkov) -> list[tuple[str, ...]]:
    from hmmlearn.hmm import CategoricalHMM

    k, column, rows = start.n_components_, symbols[:, None], []
    for kind in ("scaling", "log"):

        def ten_steps(kind: str = kind) -> None:
            model = start.to_hmmlearn().set_params(n_iter=10, tol=-np.inf, implementation=kind)
            model.fit(column)

        rows.append((kind, f"{1e2 * cpu_seconds(ten_steps, repeats=5 if kind == 'scaling' else 2):.0f}"))
    options: dict[str, Any] = {"n_iter": 100, "tol": 1e-2, "implementation": "scaling"}

    def best_of_five() -> Any:
        models = [CategoricalHMM(k, random_state=s, **options).fit(column) for s in range(5)]
        return max(models, key=lambda model: model.score(column))

    fitted, seconds = timed(best_of_five, time.process_time)
    error, likelihood = matched_error(fitted.emissionprob_, emissions), fitted.score(column) / symbols.size
    best = "hmmlearn, best of 5, scaling", f"{error:.3f}", f"{likelihood:.5f}", f"{seconds:.1f}", rows[0][1]
    return [best, ("hmmlearn, its default", "", "", "", rows[1][1])]


def large_corpus(n: int, topics: np.ndarray, length: int, rng: np.random.Generator) -> sparse.csr_array:
    """Return documents that mix topics."""
    k, words = topics.shape
    ladders = np.cumsum(topics, axis=1)
    shares = np.cumsum(rng.dirichlet(np.full(k, 1 / k), n), axis=1)
    which = np.minimum((rng.random((n, length))[:, :, None] > shares[:, None, :]).sum(axis=2), k - 1)
    found = np.empty((n, length), dtype=np.int32)
    for topic in range(k):
        places = which == topic
        found[places] = np.minimum(np.searchsorted(ladders[topic], rng.random(int(places.sum()))), words - 1)
    rows = np.repeat(np.arange(n, dtype=np.int32), length)
    return sparse.csr_array((np.ones(n * length), (rows, found.ravel())), shape=(n, words))


def memory(n: int = 200_000, words: int = 50_000, k: int = 20, length: int = 60) -> str:
    """Fit a corpus whose matrix of words by words would be 20 GB."""
    rng = np.random.default_rng(0)
    topics = rng.dirichlet(np.full(words, 0.01), k)
    counts = sparse.csr_array(sparse.vstack([large_corpus(n // 20, topics, length, rng) for _ in range(20)]))
    before = megabytes()
    rows = []
    model = LatentDirichlet(k, alpha_0=1.0, max_iter=0, random_state=0)
    fitted, seconds = timed(lambda: model.fit(counts))
    after = megabytes()
    rows.append(
        ("fit, moments alone", f"{seconds:.0f}", f"{after:.0f}", f"{matched_error(fitted.components_, topics):.3f}")
    )
    chunked = LatentDirichlet(k, alpha_0=1.0, random_state=0)

    def in_chunks() -> Any:
        for start in range(0, n, 50_000):
            chunked.partial_fit(counts[start : start + 50_000])
        return chunked

    fitted, seconds = timed(in_chunks)
    after = megabytes()
    error = f"{matched_error(fitted.components_, topics):.3f}"
    rows.append(("partial_fit, four chunks", f"{seconds:.0f}", f"{after:.0f}", error))
    return (
        f"## Memory\n{n:,} documents of {length} words over a vocabulary of {words:,}, {k} topics. MB: the most the "
        f"process has held at once; {before:.0f} before fitting, the corpus and its making included.\n\n"
        + table(("", "seconds", "MB", "error"), rows)
    )


PARTS: dict[str, Callable[[], str]] = {"topics": topics, "mixtures": mixtures, "chains": chains, "memory": memory}

if __name__ == "__main__":
    run_parts("models", PARTS)
