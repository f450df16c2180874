"""Compare two source trees on the same quick problems: ``python -m benchmarks.unchanged --against OTHER/src``.

The trees run in turn, in processes of their own and through public functions only. A refactoring leaves errors as they
are to rounding, and CPU times (the least of three rounds) within noise.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import codiag
from codiag import models, synthetic

Case = tuple[str, Callable[[], Any], Any]  # a name, what is timed, the truth
METHODS = {"orthogonal": ("auto", "ojd0", "ojd1", "tpm"), "nonorthogonal": ("auto", "nojd1", "nls", "als")}


def paper_factors(seed: int) -> dict[str, tuple[np.ndarray, float]]:
    """Return a factor and a noise level for each model of the paper."""
    rng = np.random.default_rng(seed)
    return {
        "orthogonal": (synthetic.orthonormal_factor(25, 25, rng), 0.01),
        "nonorthogonal": (synthetic.unit_factor(15, 15, rng), 1e-3),
    }


def tensor_cases(seed: int) -> Iterator[Case]:
    """Yield tensors at the statistical limit, of both models of the paper, larger ones, and sparse ones."""
    make = partial(synthetic.noisy_tensor, noise=1e-2, rng=seed)
    problems = {
        "limit": make((30,) * 3, 30, symmetric=True),
        "shape": make((20, 30, 40), 6),
        "scale": make((120,) * 3, 10),
    }
    for name, problem in problems.items():
        options: dict[str, Any] = {"symmetric": name == "limit", "seed": seed + 100}
        yield name, partial(codiag.factorize, problem.tensor, problem.weights.size, **options), problem
    for name, (factor, noise) in paper_factors(seed).items():
        noisy = np.einsum("ir,jr,kr->ijk", factor, factor, factor)
        noisy += noise * np.random.default_rng(seed).standard_normal(noisy.shape)
        for method in METHODS[name]:
            options = {"method": method, "symmetric": True, "seed": seed + 100}
            yield f"{name}, {method}", partial(codiag.factorize, noisy, factor.shape[1], **options), (factor,) * 3
    coords, entries = np.indices((20, 30, 40)).reshape(3, -1), problems["shape"].tensor.ravel()
    sparse = codiag.tensors.SparseTensor(coords, entries, (20, 30, 40))
    yield "sparse", partial(codiag.factorize, sparse, 6, rng=seed), problems["shape"]


def model_cases(seed: int) -> Iterator[Case]:
    """Yield estimators on data drawn from their models; components are the columns of the truth."""
    rng, n = np.random.default_rng(seed), 10_000
    confusions = 0.5 * np.eye(3) + 0.5 * rng.dirichlet(np.ones(3), (30, 3)).transpose(0, 2, 1)  # columns sum to one
    crowd = synthetic.crowd_votes(2000, confusions, density=0.3, rng=seed)
    yield "crowd", lambda: models.DawidSkene(random_state=seed).fit(crowd.votes).probas_, np.eye(3)[crowd.truth]
    topics, shares = rng.dirichlet(np.full(300, 0.1), 5), rng.dirichlet(np.full(5, 0.2), 1500)
    words = np.stack([rng.multinomial(80, share @ topics) for share in shares])
    yield "topics", lambda: models.LatentDirichlet(5, random_state=seed).fit(words).components_.T, topics.T
    means = 4 * synthetic.unit_factor(20, 8, rng)
    samples = means.T[rng.integers(0, 8, n)] + rng.standard_normal((n, 20))
    yield "mixtures", lambda: models.SphericalGaussianMixture(8, random_state=seed).fit(samples).means_.T, means
    emissions, states = rng.dirichlet(np.full(12, 0.5), 3), np.cumsum(rng.random(n) < 0.2) % 3
    symbols = np.minimum((np.cumsum(emissions, axis=1)[states] < rng.random((n, 1))).sum(axis=1), 11)
    yield "chains", lambda: models.HiddenMarkov(3, random_state=seed).fit(symbols).emissionprob_.T, emissions.T
    graph = synthetic.mixed_membership_graph(600, 4, alpha_0=0.2, inside=0.3, outside=0.02, rng=seed)
    communities = models.MixedMembershipSBM(4, alpha_0=0.2, random_state=seed)
    yield "communities", lambda: communities.fit(graph.adjacency).memberships_, graph.memberships


def measure(n_seeds: int) -> dict[str, tuple[float, float]]:
    """Return the error and the CPU time of every case."""
    warnings.simplefilter("ignore")
    results = {}
    for seed in range(n_seeds):
        for name, work, truth in (*tensor_cases(seed), *model_cases(seed)):
            start = time.process_time()
            found = work()
            results[f"{name}, seed {seed}"] = codiag.factor_error(found, truth), time.process_time() - start
    return results


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.unchanged", description=__doc__)
    parser.add_argument("--against", type=Path, help="the folder that holds the other package codiag")
    parser.add_argument("--seeds", type=int, default=3, help="problems of each kind")
    parser.add_argument(
        "--keep", metavar="NAME", help="write the table to RESULTS.md; what the other tree is, say 0.2.0"
    )
    options = parser.parse_args()
    if options.against is None:  # one tree, for the process that compares
        print(json.dumps(measure(options.seeds)))
        return
    from benchmarks.measure import keep
    from experiments.reports import markdown

    before: list[dict[str, Any]] = []
    after: list[dict[str, Any]] = []
    for tree, runs in 3 * [(options.against.resolve(), before), (Path(codiag.__file__).parents[1], after)]:
        environment = os.environ | {"PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, __file__, "--seeds", str(options.seeds)]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        runs.append(json.loads(done.stdout))
    rows = []
    for name in before[0]:
        old, new = before[0][name][0], after[0][name][0]
        times = [min(run[name][1] for run in runs) for runs in (before, after)]
        figures = f"{old:.6e} {new:.6e} {new / old - 1:.1e} {times[0]:.3f} {times[1]:.3f} {times[1] / times[0]:.2f}"
        rows.append([name, *figures.split()])
    table = markdown(["problem", "error before", "after", "change", "CPU s before", "after", "ratio"], rows)
    print(table)
    if options.keep:
        heading = (
            f"## Before and after redesigns, the same problems\nBefore: {options.keep}. CPU: the least of three rounds."
        )
        text = f"{heading}\n\n{table}"
        keep("unchanged", f"python -m benchmarks.unchanged --against OTHER/src --seeds {options.seeds}", text)


if __name__ == "__main__":
    main()
