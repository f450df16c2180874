"""Many small tensors: ``python -m benchmarks.many --against OTHER/src``.

`codiag.factorize_each` in two processes against a loop over `factorize` of another source tree under default threads,
each in a process of its own, in turns: ratios of wall-clock and of CPU times, and whether the errors are the same.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np

import codiag
from benchmarks.measure import keep, table
from codiag.synthetic import noisy_tensor

SIZE, RANK, NOISES, N_JOBS = 20, 5, (0.01, 0.1), 2
SOURCE = Path(codiag.__file__).parents[1]


def measure(n_tensors: int, noise: float, n_jobs: int) -> dict[str, float]:
    """Fit tensors in this process: by a loop with no jobs, else by `factorize_each`; workers' start is counted."""
    warnings.simplefilter("ignore")
    tensors = [noisy_tensor((SIZE,) * 3, RANK, noise=noise, seed=place).tensor for place in range(n_tensors)]
    codiag.factorize(tensors[0], RANK, seed=0)
    wall, cpu = time.perf_counter(), sum(os.times()[:4])
    if n_jobs == 0:
        fits = [codiag.factorize(tensor, RANK, seed=place) for place, tensor in enumerate(tensors)]
    else:
        fits = codiag.factorize_each(tensors, RANK, seed=0, n_jobs=n_jobs)
    wall = time.perf_counter() - wall
    if n_jobs > 1:
        from joblib.externals.loky import get_reusable_executor

        get_reusable_executor().shutdown(wait=True)  # then the times of its processes are known
    errors = float(np.mean([fit.relative_error for fit in fits]))
    return {"wall": wall, "cpu": sum(os.times()[:4]) - cpu, "error": errors}


def in_process(source: Path, n_tensors: int, noise: float, n_jobs: int) -> dict[str, float]:
    code = (
        f"import json; from benchmarks.many import measure; print(json.dumps(measure({n_tensors}, {noise}, {n_jobs})))"
    )
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    environment["PYTHONPATH"] = os.pathsep.join([str(source), str(Path(__file__).parents[1])])
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def compare(against: Path, n_tensors: int, noise: float, rounds: int) -> list[tuple[str, ...]]:
    """Return one row for each contestant, times in ms for a tensor, medians over rounds that take turns."""
    contestants = {"loop, before": (against, 0), "loop": (SOURCE, 0), f"`n_jobs={N_JOBS}`": (SOURCE, N_JOBS)}
    runs: dict[str, list[dict[str, float]]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, (source, n_jobs) in contestants.items():
            runs[name].append(in_process(source, n_tensors, noise, n_jobs))
            print(noise, name, runs[name][-1], flush=True)

    def median(name: str, field: str) -> float:
        return statistics.median(run[field] for run in runs[name])

    def ratio(name: str, field: str) -> float:
        pairs = zip(runs["loop, before"], runs[name], strict=True)
        return statistics.median(old[field] / new[field] for old, new in pairs)

    return [
        (
            f"{noise:g}",
            name,
            *(f"{1e3 * median(name, field) / n_tensors:.1f}" for field in ("wall", "cpu")),
            *(f"{ratio(name, field):.1f}" for field in ("wall", "cpu")),
            f"{median(name, 'error'):.8f}",
        )
        for name in contestants
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--against", type=Path, required=True, help="the src folder of another source tree")
    parser.add_argument("--tensors", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    rows = [row for noise in NOISES for row in compare(given.against.resolve(), given.tensors, noise, given.rounds)]
    names = ("noise", "who", "wall, ms", "CPU, ms", "wall, times faster", "CPU, times less", "mean relative error")
    text = (
        f"## Many small tensors\n{given.tensors} tensors of {SIZE} x {SIZE} x {SIZE}, rank {RANK}, noise relative to "
        f"the norm, under default threads; times a tensor, medians of {given.rounds} rounds in turns. The loop before "
        "is that of the other source tree; the start of processes counts.\n\n" + table(names, rows)
    )
    keep("many", f"python -m benchmarks.many --against OTHER/src --tensors {given.tensors}", text)
    print(text)


if __name__ == "__main__":
    main()
