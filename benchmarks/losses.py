"""Losses other than least squares: counts, yes or no, outliers, sparse events; beside pyttb where it has the same.

``python -m benchmarks.losses counts`` measures one part, and without a name all of them.
"""

from __future__ import annotations

import contextlib
import io
import logging
import resource
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import codiag
from benchmarks.measure import run_parts, table
from codiag.extending import Limits, Loss, minimize
from codiag.losses import Bernoulli, Huber, NegativeBinomial, Poisson
from codiag.synthetic import count_events, noisy_tensor
from codiag.tensors import FactoredTensor

N_SEEDS, N_APR, N_STARTS, N_DRAWS, N_RANKS = 10, 2, 10, 20, 5
"""Tensors of each kind, and those for cp_apr, which is slow; starts of gcp_opt, draws for coverage, and tensors of each
mean for the rank."""

SAME = 1e-5
"""Relative difference of losses up to which ends count as the same optimum."""


class LocalMinimum(NamedTuple):
    """A fit: half its deviance, its components, and the CPU time it took."""

    value: float
    components: FactoredTensor
    seconds: float


def drawn(loss: Loss, shape: tuple[int, ...], rank: int, mean: float, seed: int) -> tuple[np.ndarray, FactoredTensor]:
    """Return entries whose model is a sum of components with gamma factors, of a given mean."""
    rng = np.random.default_rng([seed, int(1000 * mean)])
    factors = [rng.gamma(1.0, size=(size, rank)) for size in shape]
    model = np.einsum("ir,jr,kr->ijk", *factors)
    factors[0] *= mean / model.mean()
    truth = FactoredTensor(np.ones(rank), factors, symmetric=False)
    return loss.sample(truth.to_dense(), rng), truth


def value(loss: Loss, tensor: np.ndarray, components: FactoredTensor) -> float:
    model = np.maximum(components.to_dense(), 1e-10) if loss.needs_nonnegative else components.to_dense()
    return float(np.sum(loss.value(tensor, model)))


def timed(loss: Loss, tensor: np.ndarray, work: Callable[[], Any]) -> LocalMinimum:
    start = time.process_time()
    found = work()
    seconds = time.process_time() - start
    return LocalMinimum(value(loss, tensor, found), found, seconds)


def of_pyttb(tensor: np.ndarray, rank: int, name: str, seed: int) -> FactoredTensor:
    """Return the end of one start of pyttb: ``gcp_opt`` by L-BFGS, or ``cp_apr``."""
    import pyttb
    from pyttb.gcp.fg_setup import Objectives
    from pyttb.gcp.optimizers import LBFGSB

    logging.getLogger().setLevel(logging.ERROR)
    np.random.seed(seed)  # noqa: NPY002  # pyttb draws from the global generator
    with contextlib.redirect_stdout(io.StringIO()):
        if name == "cp_apr":
            found = pyttb.cp_apr(pyttb.tensor(tensor), rank, printitn=0)[0]
        else:
            optimizer = LBFGSB(maxiter=1000, iprint=-1)
            found = pyttb.gcp_opt(pyttb.tensor(tensor), rank, Objectives[name], optimizer, printitn=0)[0]
    return FactoredTensor(found.weights, found.factor_matrices, symmetric=False)


def fitted(tensor: np.ndarray, rank: int, loss: Loss | None) -> FactoredTensor:
    """Return our components; of least squares, with non-negative factors."""
    constraints = "nonnegative" if loss is None else None
    return codiag.factorize(tensor, rank, loss=loss, constraints=constraints, rng=0)._components


def ends_of(
    loss: Loss, objective: str, tensor: np.ndarray, truth: FactoredTensor, seed: int
) -> dict[str, list[LocalMinimum]]:
    """Return the ends of everybody on one tensor, those from several starts in a list."""
    rank = truth.rank
    problem = codiag.Problem(tensor, rank, loss=loss)
    starts = range(N_STARTS)
    found = {
        "from the truth": [timed(loss, tensor, lambda: minimize(problem, truth, Limits()).components)],
        "codiag": [timed(loss, tensor, lambda: fitted(tensor, rank, loss))],
        "gcp_opt, one start": [timed(loss, tensor, partial(of_pyttb, tensor, rank, objective, s)) for s in starts],
        "least squares": [timed(loss, tensor, lambda: fitted(tensor, rank, None))],
    }
    if objective == "POISSON" and seed < N_APR:
        found["cp_apr"] = [timed(loss, tensor, lambda: of_pyttb(tensor, rank, "cp_apr", 0))]
    return found


def against_pyttb(loss: Loss, objective: str, shape: tuple[int, ...], rank: int, means: list[float]) -> str:
    rows = []
    for mean in means:
        shares, times, ratios = (defaultdict[str, list[float]](list) for _ in range(3))
        for seed in range(N_SEEDS):
            tensor, truth = drawn(loss, shape, rank, mean, seed)
            ends = ends_of(loss, objective, tensor, truth, seed)
            best = min(end.value for several in ends.values() for end in several)
            error = codiag.factor_error(ends.pop("from the truth")[0].components, truth)
            for name, (end, *_) in ends.items():
                shares[name].append(end.value <= best * (1 + SAME))
                times[name].append(end.seconds)
                ratios[name].append(codiag.factor_error(end.components, truth) / error)
        for name, share in shares.items():
            figures = f"{np.mean(share):.0%}", f"{np.median(ratios[name]):.3f}", f"{np.median(times[name]):.2f}"
            rows.append([f"{mean:g}", name, *figures])
    headings = ["mean", "fit", "at the best known optimum", "factor error over that from the truth", "CPU s"]
    return table(headings, rows)


def counts() -> str:
    setup = (
        f"30 x 40 x 50, rank 5, gamma factors, Poisson counts, {N_SEEDS} tensors; cp_apr on {N_APR} of them. The "
        f"best known optimum is the lowest of these, of {N_STARTS} starts of gcp_opt, and of the end from the truth."
    )
    return f"{setup}\n\n{against_pyttb(Poisson(), 'POISSON', (30, 40, 50), 5, [0.2, 2.0, 20.0])}"


def binary() -> str:
    setup = f"40 x 50 x 60, rank 4, gamma factors as odds of mean 0.5, {N_SEEDS} tensors."
    return f"{setup}\n\n{against_pyttb(Bernoulli('odds'), 'BERNOULLI_ODDS', (40, 50, 60), 4, [0.5])}"


def events() -> str:
    planted = count_events((20_000, 5_000, 168), 8, n_events=2_300_000, rng=0)
    problem = codiag.Problem(planted.tensor, 8, loss="poisson")
    start = time.process_time()
    fit = codiag.factorize(problem, rng=0)
    seconds, memory = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    factors = [factor + 1e-9 for factor in planted.factors]
    best = minimize(problem, FactoredTensor(planted.weights, factors), Limits())
    rows = [
        [
            "codiag",
            f"{seconds:.0f}",
            f"{memory:.2f}",
            f"{fit.deviance.total / 2:.0f}",
            f"{codiag.factor_error(fit, planted):.4f}",
        ],
        ["from the truth", "", "", f"{best.objective:.0f}", f"{codiag.factor_error(best.components, planted):.4f}"],
    ]
    headings = ["fit", "CPU s", "GB", "half the deviance", "factor error"]
    return f"2.3 million events in 20,000 x 5,000 x 168, rank 8, one tensor.\n\n{table(headings, rows)}"


CASES: dict[str, tuple[Loss, Loss, float]] = {
    "Poisson": (Poisson(), Poisson(), 2.0),
    "Poisson, variance 3 times the mean": (Poisson(), NegativeBinomial(), 2.0),
    "NegativeBinomial(0.3)": (NegativeBinomial(0.3), NegativeBinomial(0.3), 5.0),
    "NegativeBinomial()": (NegativeBinomial(), NegativeBinomial(0.3), 5.0),
    "Bernoulli, odds": (Bernoulli("odds"), Bernoulli("odds"), 1.0),
    "Bernoulli, odds, 40 x 50 x 60, clearer factors": (Bernoulli("odds"), Bernoulli("odds"), 0.5),
    "Huber": (Huber(), Huber(1.0), 5.0),
}


def covered(name: str, missing: float, seed: int) -> np.ndarray:
    """Return which intervals of 90 % of factors hold the truth, of entries that are not at a bound."""
    loss, truth_of, mean = CASES[name]
    rng = np.random.default_rng([seed, 7])
    is_large = name == "Bernoulli, odds, 40 x 50 x 60, clearer factors"  # the others of 20 x 22 x 24
    factors = [
        rng.gamma(1.0 if is_large else 3.0, size=(size, 2)) for size in ((40, 50, 60) if is_large else (20, 22, 24))
    ]
    model = np.einsum("ir,jr,kr->ijk", *factors)
    model *= mean / model.mean()
    is_spread = "3 times" in name
    tensor = rng.negative_binomial(model / 2, 1 / 3).astype(float) if is_spread else truth_of.sample(model, rng)
    tensor[rng.random(tensor.shape) < missing] = np.nan
    fit = codiag.factorize(tensor, 2, loss=loss, rng=0)
    unit = [factor / np.linalg.norm(factor, axis=0) for factor in factors]
    order = np.argsort(-np.abs(unit[0].T @ fit.factors[0]), axis=1)[:, 0]
    held = []
    for known, factor, (low, high) in zip(unit, fit.factors, fit.conf_int(0.9).factors, strict=True):
        signs = np.sign(np.sum(factor[:, order] * known, axis=0))
        ends = np.sort(np.stack([low[:, order] * signs, high[:, order] * signs]), axis=0)
        held.append(((ends[0] <= known) & (known <= ends[1]))[factor[:, order] != 0])
    return np.concatenate(held)


def coverage() -> str:
    rows = []
    for name in CASES:
        shares = [
            np.mean(np.concatenate([covered(name, gone, seed) for seed in range(N_DRAWS)])) for gone in (0.0, 0.3)
        ]
        rows.append([name, *(f"{share:.3f}" for share in shares)])
    setup = f"20 x 22 x 24, rank 2, {N_DRAWS} draws: share of intervals of 90 % of factor entries that hold."
    return f"{setup}\n\n{table(['loss', 'complete', '30 % missing'], rows)}"


def outliers() -> str:
    found: dict[str, list[float]] = {"clean, least squares": [], "least squares": [], "Huber": []}
    for seed in range(N_SEEDS):
        planted = noisy_tensor((30, 30, 30), 4, noise=0.2, rng=seed)
        rng = np.random.default_rng(seed)
        noise = 0.2 * np.linalg.norm(planted.tensor) / np.sqrt(planted.tensor.size)
        signs = rng.choice([-1.0, 1.0], planted.tensor.shape)
        spoiled = np.where(rng.random(planted.tensor.shape) < 0.02, 50 * noise * signs, planted.tensor)
        fits = [(planted.tensor, None), (spoiled, None), (spoiled, "huber")]
        for name, (tensor, loss) in zip(found, fits, strict=True):
            found[name].append(codiag.factor_error(codiag.factorize(tensor, 4, loss=loss, rng=0), planted))
    clean = np.array(found["clean, least squares"])
    rows = [
        [name, f"{np.median(e):.4f}", f"{np.median(e / clean):.2f}"]
        for name, e in ((n, np.array(v)) for n, v in found.items())
    ]
    setup = (
        f"30 x 30 x 30, rank 4, noise 20 %, 2 % of entries replaced by 50 deviations of either sign, {N_SEEDS} tensors."
    )
    return f"{setup}\n\n{table(['fit', 'median factor error', 'over the clean fit, median'], rows)}"


def ranks() -> str:
    rows = []
    for shape, mean, planted in (
        ((20, 22, 24), 1.0, [2 + seed % 5 for seed in range(N_RANKS)]),
        ((20, 22, 24), 10.0, [2 + seed % 5 for seed in range(N_RANKS)]),
        ((40, 40, 60), 0.2, [3]),
    ):
        chosen, start = [], time.process_time()
        for seed, rank in enumerate(planted):
            tensor, _ = drawn(Poisson(), shape, rank, mean, seed)
            chosen.append(codiag.choose_rank(tensor, range(1, 8), loss="poisson", rng=0).rank == rank)
        seconds = (time.process_time() - start) / len(planted)
        sizes = " x ".join(map(str, shape))
        rows.append([sizes, f"{mean:g}", f"{sum(chosen)} of {len(chosen)}", f"{seconds:.1f}"])
    setup = f"Poisson counts of rank 2 to 6, {N_RANKS} tensors of each mean, and one of rank 3; ranks 1 to 7 are tried."
    return f"{setup}\n\n{table(['shape', 'mean', 'right', 'CPU s each'], rows)}"


PARTS = {
    "counts": counts,
    "binary": binary,
    "outliers": outliers,
    "coverage": coverage,
    "events": events,
    "ranks": ranks,
}

if __name__ == "__main__":
    warnings.simplefilter("ignore")  # for this program: how well everybody did is what it measures
    run_parts("losses", PARTS, sys.argv[1:] or list(PARTS))
