"""Fits of more components than the data hold: time and error beside TensorLy's."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence

import numpy as np

from benchmarks.measure import run_parts, table, timed
from codiag.synthetic import noisy_tensor
from experiments.fitting import silent_fit

PLANTED: Sequence[tuple[tuple[int, int, int], int]] = (((10, 11, 12), 4), ((20, 20, 20), 5))
RANKS, NOISES, SEEDS = (6, 8, 12), (1e-3, 1e-1), range(3)


HEADINGS = (
    *("tensor", "components", "rank", "noise", "s", "worst", "s, TensorLy", "error / TensorLy's, worst"),
    *("converged", "grown", "named"),
)


def too_many() -> str:
    rows = [
        (" x ".join(map(str, shape)), n_true, rank, f"{noise:g}", *_measured(shape, n_true, rank, noise))
        for shape, n_true in PLANTED
        for noise in NOISES
        for rank in RANKS
    ]
    return (
        "## More components than the data hold\nRelative errors and CPU seconds, one thread: codiag, and TensorLy's "
        "`parafac` from its SVD start, up to 2000 iterations with its default tolerance; medians of three tensors. "
        "Grown: fits whose components beyond those that stand out were added one at a time. Named: fits whose "
        "diagnosis names at least as many components as were too many.\n\n" + table(HEADINGS, rows)
    )


def _measured(shape: tuple[int, ...], n_true: int, rank: int, noise: float) -> tuple[str, ...]:
    from tensorly import cp_to_tensor
    from tensorly.decomposition import parafac

    times, theirs, ratios, converged, grown, named = [], [], [], 0, 0, 0
    for seed in SEEDS:
        tensor = noisy_tensor(shape, n_true, noise=noise, seed=seed).tensor
        fit, seconds = timed(lambda: silent_fit(tensor, rank, seed=0), time.thread_time)  # noqa: B023
        other, their_seconds = timed(lambda: parafac(tensor, rank, init="svd", n_iter_max=2000), time.thread_time)  # noqa: B023
        error = np.linalg.norm(tensor - cp_to_tensor(other)) / np.linalg.norm(tensor)
        told = fit.diagnose()
        doubtful = {place for pair in told.degenerate for place in pair[:2]} | set(told.superfluous)
        times.append(seconds)
        theirs.append(their_seconds)
        ratios.append(fit.relative_error / error)
        converged += fit.converged
        grown += any("surplus" in stage.name for stage in fit.stages)
        named += len(doubtful) >= rank - n_true
    numbers = statistics.median(times), max(times), statistics.median(theirs)
    counts = (f"{count} of {len(SEEDS)}" for count in (converged, grown, named))
    return *(f"{number:.2f}" for number in numbers), f"{max(ratios):.4f}", *counts


if __name__ == "__main__":
    run_parts("over_ranked", {"too-many": too_many})
