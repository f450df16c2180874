"""Small fits against the best of three plain alternating runs: ``python -m benchmarks.small_fits``.

Low rank, counts, binary and Gaussian tensors of orders three and four, free and non-negative. A fit is missed if its
relative error is more than .1 % above the lowest of three runs of plain alternating least squares from random starts.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import codiag
from codiag.methods import ALS

KINDS = ("low rank", "noisy", "counts", "binary", "Gaussian", "order four")


def drawn(seed: int) -> tuple[np.ndarray, int, str | None]:
    """Draw a small tensor, a rank for it, and its constraints."""
    rng, kind = np.random.default_rng(seed), KINDS[seed % len(KINDS)]
    shape = rng.integers(2, 9, 4 if kind == "order four" else 3)
    rank = int(rng.integers(1, 1 + min(np.sort(shape)[1] + 1, 5)))
    if kind in ("low rank", "noisy", "order four"):
        factors = [rng.standard_normal((size, rank)) for size in shape]
        tensor = np.einsum("ir,jr,kr,lr->ijkl" if len(shape) == 4 else "ir,jr,kr->ijk", *factors)
        tensor += (0.0 if kind == "low rank" else 0.3) * rng.standard_normal(shape)
    elif kind == "counts":
        tensor = rng.poisson(2.0, shape).astype(float)
    elif kind == "binary":
        tensor = (rng.random(shape) < 0.4).astype(float)
    else:
        tensor = rng.standard_normal(shape)
    tensor.flat[0] += 1.0  # not all zero
    return tensor, rank, "nonnegative" if rng.random() < 0.5 else None


def run(seed: int) -> dict[str, Any]:
    """Return the excess of a fit over the best of three runs, and CPU times."""
    tensor, rank, constraints = drawn(seed)
    rank = min(rank, int(np.prod(np.sort(tensor.shape)[:-1])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        begin = time.process_time()
        fit = codiag.factorize(tensor, rank, constraints=constraints, rng=seed)
        ours = time.process_time() - begin
        begin = time.process_time()
        method = ALS(init="random", max_iter=300)
        plain = [
            codiag.factorize(tensor, rank, constraints=constraints, method=method, rng=1000 * seed + i)
            for i in range(3)
        ]
    best = min(other.relative_error for other in plain)
    missed = fit.relative_error > 1.001 * best + 1e-6
    found = {"missed": missed, "ours": ours, "plain": time.process_time() - begin, "excess": fit.relative_error - best}
    p_missed = max((stage.p_missed for stage in fit.history), default=0.0)
    return found | {"kind": KINDS[seed % len(KINDS)], "constraints": constraints, "p_missed": p_missed, "seed": seed}


def main() -> None:
    """Run the draws, and print the share that is missed, by kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=300)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    groups = defaultdict(list)
    with ProcessPoolExecutor(options.jobs) as pool:
        for found in pool.map(run, range(options.draws), chunksize=8):
            groups[found["kind"], found["constraints"] or "free"].append(found)
            groups["all", ""].append(found)
    for (kind, constraints), group in sorted(groups.items()):
        missed = [found for found in group if found["missed"]]
        cpu = sum(found["ours"] for found in group) / sum(found["plain"] for found in group)
        told = ", ".join(f"seed {found['seed']} (p_missed {found['p_missed']:.2g})" for found in missed[:5])
        print(f"{kind} {constraints}: {len(missed)} of {len(group)} missed; CPU over three runs {cpu:.2f}; {told}")


if __name__ == "__main__":
    main()
