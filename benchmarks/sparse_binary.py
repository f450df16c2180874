"""Sparse zeros and ones: how well fits rank held-out entries, beside the degrees of rows alone.

``python -m benchmarks.sparse_binary --draws 3`` prints areas under the ROC curve (AUC) of held-out ones against as many
zeros; ``--large`` fits 10^6 ones of 4000 x 4000 x 50. Data are drawn from rates of rank 5; with activity that differs
between rows by more than the model has; and with ones switched at random between cells, which fit no model. Three
bounds stand beside them: the true probabilities; a fit of the same ones that begins at the true factors, which is what
the ones allow; and the degrees, the product of the sums of each row, column and slice.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

import codiag
from codiag.losses import Bernoulli
from codiag.tensors import SparseTensor


@dataclass(frozen=True)
class Graph:
    """Ones for a fit, held-out ones, and zeros of both, as coordinates; and the true factors of rates."""

    shape: tuple[int, int, int]
    train: np.ndarray
    held_out: np.ndarray
    zeros: np.ndarray
    factors: list[np.ndarray]

    @property
    def tensor(self) -> SparseTensor:
        return SparseTensor(self.train.T, np.ones(len(self.train)), self.shape)


def draw(
    shape: tuple[int, int, int],
    rank: int,
    n_ones: int,
    rng: np.random.Generator,
    kind: str = "rates",
    held_out: float = 0.1,
) -> Graph:
    """Return ones of a Poisson process of given rates, of which repeated cells count once; a share is held out."""
    factors = [rng.gamma(0.3, size=(size, rank)) + 1e-4 for size in shape]
    if kind == "activity":
        factors = [factor * rng.lognormal(sigma=1.0, size=(len(factor), 1)) for factor in factors]
    sums = np.prod([factor.sum(axis=0) for factor in factors], axis=0)
    factors[0] *= 1.15 * n_ones / sums.sum()  # repeated cells are lost
    sums *= 1.15 * n_ones / sums.sum()
    shares = [factor / factor.sum(axis=0) for factor in factors]
    parts = [
        np.stack([rng.choice(len(share), n, p=share[:, r]) for share in shares])
        for r, n in enumerate(rng.poisson(sums))
    ]
    flat = np.unique(np.ravel_multi_index(tuple(np.concatenate(parts, axis=1)), shape))
    flat = rng.permutation(flat)[:n_ones]
    if kind == "switched":
        n = len(flat) // 3
        flat = np.unique(np.concatenate([flat[n:], rng.integers(np.prod(shape), size=n)]))
        flat = rng.permutation(flat)
    n_held = int(held_out * len(flat))
    zeros = np.setdiff1d(rng.integers(np.prod(shape), size=4 * n_held), flat)
    coords = [np.stack(np.unravel_index(part, shape), axis=1) for part in (flat[n_held:], flat[:n_held], zeros)]
    return Graph(shape, coords[0], coords[1], coords[2], factors)


def area(ones: np.ndarray, zeros: np.ndarray) -> float:
    """Return the probability that a one has a higher score than a zero."""
    ranks = rankdata(np.concatenate([ones, zeros]))[: len(ones)]
    return float((ranks.mean() - (len(ones) + 1) / 2) / len(zeros))


def scores(factors: list[np.ndarray], coords: np.ndarray) -> np.ndarray:
    return np.sum(np.prod([factor[coords[:, mode]] for mode, factor in enumerate(factors)], axis=0), axis=1)


def degrees(graph: Graph) -> list[np.ndarray]:
    """Return the sums of rows of each mode plus one half."""
    counts = [np.bincount(graph.train[:, mode], minlength=size) for mode, size in enumerate(graph.shape)]
    return [(count + 0.5)[:, None] for count in counts]


def compared(graph: Graph, rank: int, seed: int) -> dict[str, tuple[float, float]]:
    """Return the AUC and the CPU seconds of each method."""

    def fitted(**options: Any) -> Callable[[np.ndarray], np.ndarray]:
        return codiag.factorize(graph.tensor, rank, rng=seed, **options).predict

    methods: dict[str, Callable[[], Callable[[np.ndarray], np.ndarray]]] = {
        "true rates": lambda: lambda coords: scores(graph.factors, coords),
        "from the truth": lambda: fitted(loss=Bernoulli("rate"), init=graph.factors),
        "bernoulli": lambda: fitted(loss="bernoulli"),
        "poisson": lambda: fitted(loss="poisson"),
        "least squares": lambda: fitted(),
        "degrees": lambda: lambda coords: scores(degrees(graph), coords),
    }
    found = {}
    for name, method in methods.items():
        start = time.process_time()
        score = method()
        seconds = time.process_time() - start
        found[name] = area(score(graph.held_out), score(graph.zeros)), seconds
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="10^6 ones of 4000 x 4000 x 50, rank 10")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.large:
        graph = draw((4000, 4000, 50), 10, 1_000_000, np.random.default_rng([7, 0]), held_out=0.02)
        start = time.process_time()
        fit = codiag.factorize(graph.tensor, 10, loss="bernoulli", rng=0)
        found = area(fit.predict(graph.held_out), fit.predict(graph.zeros))
        true = area(scores(graph.factors, graph.held_out), scores(graph.factors, graph.zeros))
        print(f"10^6 ones: {time.process_time() - start:.1f} s of CPU, AUC {found:.4f}, true rates {true:.4f}; {fit!r}")
        return
    for kind in ("rates", "activity", "switched"):
        drawn = [
            compared(draw((500, 500, 20), 5, 20_000, np.random.default_rng([29, seed]), kind), 5, seed)
            for seed in range(options.draws)
        ]
        areas = {name: np.mean([one[name][0] for one in drawn]) for name in drawn[0]}
        parts = [
            f"{name} {mean:.4f} ({np.median([one[name][1] for one in drawn]):.1f} s)" for name, mean in areas.items()
        ]
        print(f"{kind} ({options.draws} draws): {'; '.join(parts)}", flush=True)


if __name__ == "__main__":
    main()
