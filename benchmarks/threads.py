"""One core against two: the same fits in fresh interpreters, in turns, wall-clock.

``python -m benchmarks.threads --repeats 5``. Other work on the machine spoils the ratio; its load is written beside it.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from functools import partial

from benchmarks.measure import publish, table

FITS = {
    "dense 400^3, rank 20": """
from codiag.synthetic import noisy_tensor
tensor, rank = noisy_tensor((400, 400, 400), 20, noise=0.01, seed=0).tensor, 20
""",
    "sparse 4000^3, 4 x 10^6 nonzeros, rank 10": """
import numpy as np
from codiag.tensors import SparseTensor
rng, n = np.random.default_rng(0), 4_000_000
tensor, rank = SparseTensor(rng.integers(0, 4000, (3, n)), rng.uniform(1, 2, n), (4000, 4000, 4000)), 10
""",
}
TIMED = """
import time, warnings
import codiag
warnings.simplefilter("ignore")
start = time.perf_counter()
codiag.factorize(tensor, rank, seed=0)
print(time.perf_counter() - start)
"""


def seconds(setup: str, threads: int) -> float:
    """Return the seconds of a fit with this number of threads."""
    limits = {f"{name}_NUM_THREADS": str(threads) for name in ("OMP", "OPENBLAS", "MKL")}
    command = [sys.executable, "-c", setup + TIMED]
    done = subprocess.run(command, env=os.environ | limits, capture_output=True, text=True, check=True)
    return float(done.stdout)


def run(repeats: int) -> str:
    rows = []
    for name, setup in FITS.items():
        pairs = [(seconds(setup, 1), seconds(setup, 2)) for _ in range(repeats)]
        one, two = (statistics.median(column) for column in zip(*pairs, strict=True))
        best = min(pair[0] for pair in pairs) / min(pair[1] for pair in pairs)
        rows.append((name, f"{one:.2f}", f"{two:.2f}", f"{one / two:.2f}", f"{best:.2f}"))
    load = os.getloadavg()[0]
    return (
        f"## Threads\nWall-clock seconds of a fit, medians of {repeats} runs in turns, load of the machine {load:.1f}. "
        "*best*: the ratio of the shortest times.\n\n" + table(("fit", "1 thread", "2 threads", "ratio", "best"), rows)
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    publish("threads", f"python -m benchmarks.threads --repeats {given.repeats}", partial(run, given.repeats))
