"""Many small tensors at once: ``python -m benchmarks.many_small``.

`codiag.factorize_each` against a loop over `codiag.factorize`, and against TensorLy from the same process: tensors that
are components and white noise, tensors with other noise, and some that fit no model. Then the bootstrap of one fit, in
units of that fit. Seconds of the processor, on one thread. ``--keep`` writes the table to ``benchmarks/RESULTS.md``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from functools import partial
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import codiag
from benchmarks.measure import keep, timed

FIRST = 91000


def planted(shape: tuple[int, ...], rank: int, noise: float, n: int) -> np.ndarray:
    """Draw components and white noise."""
    return np.stack([codiag.synthetic.noisy_tensor(shape, rank, noise=noise, rng=FIRST + i).tensor for i in range(n)])


def drawn(kind: str, n: int) -> np.ndarray:
    """Draw tensors of 12 x 12 x 12 of which rank three is asked."""
    rng, x = np.random.default_rng(FIRST), np.linspace(0, 1, 12)
    if kind == "no model":
        steps = rng.random((n, 3, 1)) * 2 * x
        smooth = 1 / (1 + steps[:, 0, :, None, None] + steps[:, 1, None, :, None] + steps[:, 2, None, None, :])
        return np.asarray(smooth + 1e-3 * rng.standard_normal((n, 12, 12, 12)))
    clean = np.einsum("nir,njr,nkr->nijk", *rng.standard_normal((3, n, 12, 3)))
    if kind == "non-negative":
        factors = rng.random((3, n, 12, 3)) * (rng.random((3, n, 12, 3)) < 0.7)
        return np.asarray(np.einsum("nir,njr,nkr->nijk", *factors) + 0.1 * rng.standard_normal((n, 12, 12, 12)))
    if kind == "heavy tails":
        return np.asarray(clean + 0.5 * rng.standard_t(2, clean.shape))
    if kind == "collinear":
        factors = rng.standard_normal((3, n, 12, 3)) + 1.5 * rng.standard_normal((3, n, 12, 1))
        clean = np.einsum("nir,njr,nkr->nijk", *factors)
    return np.asarray(clean + 0.5 * rng.standard_normal(clean.shape))


def compared(name: str, tensors: np.ndarray, rank: int, n_loop: int) -> str:
    """Return a row: milliseconds a tensor, and how far errors are above those of the loop."""
    from tensorly.decomposition import non_negative_parafac, parafac

    stated: dict[str, Any] = {"constraints": "nonnegative"} if "non-negative" in name else {}
    als = non_negative_parafac if stated else parafac
    n, clock = len(tensors), time.process_time
    fits, each = timed(lambda: codiag.factorize_each(tensors, rank, rng=0, **stated), clock)
    seeds = [np.random.default_rng(np.random.SeedSequence(0, spawn_key=(i,))) for i in range(n_loop)]
    alone, loop = timed(
        lambda: [codiag.factorize(tensors[i], rank, rng=seed, **stated) for i, seed in enumerate(seeds)], clock
    )
    n_peer = max(n_loop // 3, 1)
    options: dict[str, Any] = {"init": "random", "n_iter_max": 1000}
    runs, peer = timed(lambda: [als(tensors[i], rank, random_state=i, **options) for i in range(n_peer)], clock)
    errors = np.array([fit.relative_error for fit in alone])
    above = np.array([fit.relative_error for fit in fits[:n_loop]]) / errors - 1
    pairs = zip(runs, tensors[:n_peer], strict=True)
    ends = [np.linalg.norm(run.to_tensor() - tensor) / np.linalg.norm(tensor) for run, tensor in pairs]
    peer_above = np.mean(np.array(ends) > errors[:n_peer] * (1 + 1e-3))
    ms, loop_ms, peer_ms = 1e3 * each / n, 1e3 * loop / n_loop, 1e3 * peer / n_peer
    cells = [
        name,
        f"{n}, {n_loop}, {n_peer}",
        f"{ms:.2f}",
        f"{loop_ms:.2f}",
        f"{loop_ms / ms:.1f}",
        f"{np.mean(above > 1e-6):.0%}, {np.mean(above < -1e-6):.0%}",
        f"{max(above.max(), 0):.1e}",
        f"{peer_ms:.1f}, {peer_above:.0%}",
    ]
    return f"| {' | '.join(cells)} |"


def resampled(shape: tuple[int, ...], rank: int, n: int, *, is_positive: bool = False, missing: float = 0.0) -> str:
    """Return a row: the bootstrap of a fit, in units of that fit."""
    rng = np.random.default_rng(FIRST)
    factors = [rng.random((size, rank)) if is_positive else rng.standard_normal((size, rank)) for size in shape]
    tensor = np.einsum("ir,jr,kr->ijk", *factors)
    tensor += 0.1 * np.linalg.norm(tensor) / np.sqrt(tensor.size) * rng.standard_normal(shape)
    tensor[rng.random(shape) < missing] = np.nan
    stated: dict[str, Any] = {"constraints": "nonnegative"} if is_positive else {}
    codiag.factorize(tensor, rank, rng=0, **stated).bootstrap(n=3, rng=0)
    clock = time.process_time

    def fitted(seed: int) -> codiag.Factorization:
        return codiag.factorize(tensor, rank, rng=seed, **stated)

    fits = [timed(partial(fitted, seed), clock) for seed in range(5)]
    one = float(np.median([took for _, took in fits]))
    took = timed(lambda: fits[0][0].bootstrap(n=n, rng=0), clock)[1]
    kind = ("non-negative" if is_positive else "free") + (f", {missing:.0%} missing" if missing else "")
    sizes = " x ".join(map(str, shape))
    return f"| {sizes}, rank {rank} | {kind} | {1e3 * one:.1f} | {1e3 * took:.0f} | {took / one:.1f} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200, help="tensors")
    parser.add_argument("--loop", type=int, default=60, help="of them that are fitted one by one, too")
    parser.add_argument("--refits", type=int, default=200, help="of the bootstrap")
    parser.add_argument("--keep", action="store_true", help="write the tables to RESULTS.md")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    headings = (
        "tensors",
        "drawn, in the loop, by TensorLy",
        "`factorize_each`, ms",
        "loop, ms",
        "times as fast",
        "above, below the loop by 1e-6",
        "largest excess",
        "TensorLy, 1000 iterations: ms, above by 1e-3",
    )
    rows = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    with threadpool_limits(1):
        compared("", planted((6, 5, 4), 2, 0.3, 4), 2, 2)  # loads modules
        for noise in (0.01, 0.3):
            tensors = planted((20, 20, 20), 5, noise, options.draws)
            rows.append(compared(f"20 x 20 x 20, rank 5, noise {noise:.0%}", tensors, 5, options.loop))
            print(rows[-1], flush=True)
        for kind in ("white noise", "collinear", "non-negative", "heavy tails", "no model"):
            n = options.loop // 2
            rows.append(compared(f"12 x 12 x 12, rank 3, {kind}", drawn(kind, n), 3, n))
            print(rows[-1], flush=True)
        rows += ["", f"| bootstrap of {options.refits} | | fit, ms | bootstrap, ms | fits |", "|---|---|---|---|---|"]
        for missing in (0.0, 0.2):
            for shape, rank in (((20, 20, 20), 3), ((60, 40, 10), 4), ((15, 99, 46), 3)):
                rows.append(resampled(shape, rank, options.refits, is_positive=shape[0] == 15, missing=missing))
                print(rows[-1], flush=True)
    if options.keep:
        intro = "## Many small tensors\nSeconds of the processor, one thread; errors are relative errors of fits."
        keep("many small", "python -m benchmarks.many_small --keep", "\n".join([intro, "", *rows]))


if __name__ == "__main__":
    main()
