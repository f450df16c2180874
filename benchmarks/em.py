"""Likelihoods of mixtures and hidden Markov models at small samples, beside the best of three runs of EM.

``python -m benchmarks.em`` draws samples of 1000, with four components, and reports by how much the log-likelihood of
codiag's model is below that of the best of three runs of plain expectation maximization from random starts:
scikit-learn's GaussianMixture (k-means, ``n_init=3``), and for hidden Markov models hmmlearn if it is installed, else
Baum-Welch steps from random probabilities until a step gains less than 1e-3.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.mixture import GaussianMixture

from codiag.models import HiddenMarkov, SphericalGaussianMixture
from experiments.reports import markdown

N, K = 1000, 4
N_RUNS = 3
"""Runs of the other library, of which the best counts."""


def gaussians(rng: np.random.Generator, separation: float, *, diagonal: bool) -> np.ndarray:
    """Draw samples of four Gaussians in six dimensions, with means at a typical distance in standard deviations."""
    means = rng.standard_normal((K, 6)) * separation / np.sqrt(12)
    widths = rng.uniform(0.5, 1.5, (K, 6) if diagonal else (K, 1))
    labels = rng.choice(K, N, p=rng.dirichlet(np.full(K, 5.0)))
    return np.asarray(means[labels] + widths[labels] * rng.standard_normal((N, 6)))


def heavy_tails(rng: np.random.Generator) -> np.ndarray:
    """Draw samples that follow no mixture of Gaussians: four clusters with t distributions and correlated features."""
    means = rng.standard_normal((K, 6)) * 4 / np.sqrt(12)
    shapes = rng.standard_normal((K, 6, 6)) / np.sqrt(6)
    labels = rng.integers(0, K, N)
    return np.asarray(means[labels] + np.einsum("nij,nj->ni", shapes[labels], rng.standard_t(4, (N, 6))))


def chain(rng: np.random.Generator, stay: float, concentration: float, n_sequences: int = 1) -> list[np.ndarray]:
    """Draw 1000 symbols of a hidden Markov chain with four states and eight symbols, in sequences."""
    transitions = (1 - stay) * rng.dirichlet(np.ones(K), K) + stay * np.eye(K)
    emissions = rng.dirichlet(np.full(8, concentration), K)
    sequences = []
    for _ in range(n_sequences):
        state, symbols = int(rng.integers(K)), []
        for _ in range(N // n_sequences):
            symbols.append(rng.choice(8, p=emissions[state]))
            state = int(rng.choice(K, p=transitions[state]))
        sequences.append(np.array(symbols))
    return sequences


def best_mixture(samples: np.ndarray, seed: int, kind: str) -> float:
    """Return the log-likelihood of the best of three runs of scikit-learn."""
    model = GaussianMixture(K, covariance_type=kind, n_init=N_RUNS, tol=1e-7, max_iter=2000, random_state=seed)
    return float(model.fit(samples).score(samples) * len(samples))


def best_chain(sequences: list[np.ndarray], seed: int) -> float:
    """Return the log-likelihood of the best of three runs of EM from random probabilities."""
    symbols, lengths = np.concatenate(sequences), [one.size for one in sequences]
    if find_spec("hmmlearn"):
        from hmmlearn.hmm import CategoricalHMM

        runs = [
            CategoricalHMM(K, n_iter=2000, tol=1e-3, random_state=seed + run, n_features=8) for run in range(N_RUNS)
        ]
        return max(float(run.fit(symbols[:, None], lengths).score(symbols[:, None], lengths)) for run in runs)
    from codiag.models.chains import baum_welch_sums

    found = []
    for run in range(N_RUNS):
        rng = np.random.default_rng([seed, run])
        model = [rng.dirichlet(np.ones(K)), rng.dirichlet(np.ones(K), K), rng.dirichlet(np.ones(8), K)]
        before, now = -np.inf, -1e300
        while now - before > 1e-3:
            before, sums = now, baum_welch_sums(symbols, np.array(lengths), *model)
            now, model = sums.log_likelihood, list(sums.probabilities())
        found.append(now)
    return max(found)


def settings() -> dict[str, tuple[Callable[[np.random.Generator], Any], str]]:
    """Return draws by name, and the kind of model."""
    return {
        "Gaussians, means 6 standard deviations apart": (lambda rng: gaussians(rng, 6, diagonal=False), "spherical"),
        "the same, 3 apart": (lambda rng: gaussians(rng, 3, diagonal=False), "spherical"),
        "a variance for each feature, 4 apart": (lambda rng: gaussians(rng, 4, diagonal=True), "diag"),
        "correlated clusters with heavy tails": (heavy_tails, "spherical"),
        "chain, one sequence, clear symbols": (lambda rng: chain(rng, 0.7, 0.3), "chain"),
        "chain, one sequence, mixed symbols": (lambda rng: chain(rng, 0.5, 1.0), "chain"),
        "chain, 50 sequences, clear symbols": (lambda rng: chain(rng, 0.7, 0.3, 50), "chain"),
    }


def deficits(name: str, n_draws: int, first: int) -> list[tuple[float, float, float]]:
    """Return by how many nats codiag is below the others, and the CPU seconds of both, for every draw."""
    draw, kind = settings()[name]
    found = []
    for seed in range(first, first + n_draws):
        data = draw(np.random.default_rng([seed, len(name)]))
        begin = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if kind == "chain":
                model = HiddenMarkov(K, random_state=seed).fit(data)
                ours = model.score(data)
            else:
                mixture = SphericalGaussianMixture(K, covariance_type=kind, random_state=seed).fit(data)
                ours = float(np.sum(mixture.score_samples(data)))
            middle = time.process_time()
            theirs = best_chain(data, seed) if kind == "chain" else best_mixture(data, seed, kind)
        found.append((theirs - ours, middle - begin, time.process_time() - middle))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--first", type=int, default=1000, help="the first seed")
    parser.add_argument("--only", default="", help="settings whose names contain this")
    options = parser.parse_args()
    rows = []
    for name in settings():
        if options.only not in name:
            continue
        below, ours, theirs = np.array(deficits(name, options.draws, options.first)).T
        within = f"{np.mean(below <= 1):.0%}"
        rows.append((name, within, f"{np.median(below):.2f}", f"{below.max():.1f}", f"{np.median(ours):.2f}",
                     f"{np.median(theirs):.2f}"))  # fmt: skip
    headings = ("draws of 1000", "at most 1 nat below", "median nats below", "worst", "CPU s", "CPU s, three runs")
    print(markdown(headings, rows))


if __name__ == "__main__":
    main()
