"""Losses against the best of many L-BFGS runs: ``python -m benchmarks.loss_optima``.

Poisson, Bernoulli and Huber losses of small tensors. The best value known is the lowest of all runs: one of
`codiag.factorize`, and ``--peers`` of SciPy's L-BFGS from random starts. A fit is at the best within a thousandth.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from scipy.optimize import minimize

import codiag

LOSSES = ("poisson", "bernoulli", "huber")


def drawn(loss: str, seed: int) -> tuple[np.ndarray, int]:
    """Draw a tensor for a loss, and the rank of its components."""
    rng = np.random.default_rng(seed)
    shape, rank = [(10, 12, 14), (20, 25, 30)][seed % 2], int(rng.integers(2, 6))
    if loss == "poisson":
        model = np.einsum("ir,jr,kr->ijk", *(rng.gamma(1.0, 1.0, (size, rank)) for size in shape))
        return rng.poisson(model / model.mean() * 10 ** rng.uniform(-0.7, 0.7)).astype(float), rank
    model = np.einsum("ir,jr,kr->ijk", *(rng.standard_normal((size, rank)) for size in shape))
    if loss == "bernoulli":
        return (rng.random(shape) < 1 / (1 + np.exp(-model))).astype(float), rank
    return model + 0.3 * rng.standard_t(2, shape), rank


def _value(loss: Any, tensor: np.ndarray, factors: list[np.ndarray]) -> float:
    model = np.einsum("ir,jr,kr->ijk", *factors)
    return float(np.sum(loss.value(tensor, model)))


def _peer(loss: Any, tensor: np.ndarray, rank: int, seed: int, *, positive: bool) -> float:
    """Return the end of one run of L-BFGS from a random start."""
    rng, ends = np.random.default_rng(seed), np.cumsum([size * rank for size in tensor.shape])[:-1]
    first = np.concatenate([rng.random(size * rank) + 0.01 for size in tensor.shape])
    first = first if positive else first - 0.5

    def both(point: np.ndarray) -> tuple[float, np.ndarray]:
        a, b, c = (part.reshape(-1, rank) for part in np.split(point, ends))
        model = np.einsum("ir,jr,kr->ijk", a, b, c) + 1e-12 * positive
        slope = loss.derivative(tensor, model)
        columns = ("ijk,jr,kr->ir", slope, b, c), ("ijk,ir,kr->jr", slope, a, c), ("ijk,ir,jr->kr", slope, a, b)
        gradient = np.concatenate([np.einsum(*column, optimize=True).ravel() for column in columns])
        return float(np.sum(loss.value(tensor, model))), gradient

    bounds = [(0.0, None)] * first.size if positive else None
    return float(minimize(both, first, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 1000}).fun)


def run(cell: tuple[str, int, int]) -> dict[str, Any]:
    """Return the value of a fit, those of the peers, and CPU times."""
    name, seed, n_peers = cell
    tensor, rank = drawn(name, seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        fit = codiag.factorize(tensor, rank, loss=name, rng=seed)
        ours, loss = time.process_time() - begin, fit.problem.loss
        weights, factors = fit
        value = _value(loss, tensor, [factors[0] * weights, *factors[1:]])
        begin = time.process_time()
        others = [_peer(loss, tensor, rank, 100 * seed + i, positive=name == "poisson") for i in range(n_peers)]
    p_missed = max((stage.p_missed for stage in fit.history), default=0.0)
    cpu = ours / ((time.process_time() - begin) / n_peers)
    return {"loss": name, "seed": seed, "excess": value / min(value, *others) - 1, "cpu": cpu, "p_missed": p_missed}


def main() -> None:
    """Run the draws, and print the share at the best, by loss."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=30, help="of each loss")
    parser.add_argument("--first", type=int, default=0, help="seed of the first draw")
    parser.add_argument("--peers", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    cells, groups = (
        [
            (loss, seed, options.peers)
            for loss in LOSSES
            for seed in range(options.first, options.first + options.draws)
        ],
        defaultdict(list),
    )
    with ProcessPoolExecutor(options.jobs) as pool:
        for found in pool.map(run, cells):
            groups[found["loss"]].append(found)
    for loss, group in groups.items():
        missed = [found for found in group if found["excess"] > 1e-3]
        cpu = [found["cpu"] for found in group]
        told = ", ".join(
            f"seed {one['seed']} +{one['excess']:.1e} (p_missed {one['p_missed']:.2g})" for one in missed[:5]
        )
        print(
            f"{loss}: {len(group) - len(missed)} of {len(group)} at the best; CPU over a run of L-BFGS "
            f"{np.median(cpu):.2f}, at most {max(cpu):.2f}; {told}"
        )


if __name__ == "__main__":
    main()
