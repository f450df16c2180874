"""What error bars, the diagnosis and the choice of a rank cost beside the fit: ``python -m benchmarks.judgement_cost``.

CPU seconds of the fit, and those of `standard_errors`, `diagnose` and ``rank="auto"`` relative to it, over shapes, with
the peak of the memory relative to that of the data.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable, Mapping

import numpy as np

import codiag
from benchmarks.coverage import of_noise
from benchmarks.judgement import smooth

SHAPES: Mapping[str, tuple[tuple[int, ...], int]] = {
    "8 x 9 x 10": ((8, 9, 10), 3),
    "12 x 15 x 18": ((12, 15, 18), 3),
    "8 x 6 x 100": ((8, 6, 100), 3),
    "8 x 6 x 200": ((8, 6, 200), 3),
    "8 x 6 x 400": ((8, 6, 400), 3),
    "8 x 6 x 800": ((8, 6, 800), 3),
    "30 x 16 x 200, rank 8": ((30, 16, 200), 8),
    "30 x 30 x 30, rank 8": ((30, 30, 30), 8),
    "20 x 25 x 30, rank 20": ((20, 25, 30), 20),
    "40 x 50 x 60": ((40, 50, 60), 5),
    "100 x 100 x 100": ((100, 100, 100), 5),
    "2000 x 8 x 8": ((2000, 8, 8), 3),
    "2000 x 8 x 8, rank 8": ((2000, 8, 8), 8),
    "3 x 3000 x 4": ((3, 3000, 4), 2),
    "3 x 20,000 x 2": ((3, 20_000, 2), 2),
    "3 x 100,000 x 2": ((3, 100_000, 2), 2),
    "143 x 214 x 3, rank 8": ((143, 214, 3), 8),
    "9 x 8 x 7 x 6": ((9, 8, 7, 6), 3),
}
DATA = ("white", "AR .7", "missing", "non-negative", "variances", "Poisson")


def draw(shape: tuple[int, ...], rank: int, kind: str) -> tuple[np.ndarray, dict[str, object]]:
    """Return a tensor, and what is stated about it."""
    rng = np.random.default_rng(0)
    noises = {
        "AR .7": lambda rng, clean: smooth(rng, clean.shape, 0.7, (int(np.argmax(clean.shape)),)),
        "variances": lambda rng, clean: np.exp(rng.standard_normal((clean.shape[0], 1, *[1] * (clean.ndim - 2))))
        * rng.standard_normal(clean.shape),
        "Poisson": lambda rng, clean: rng.poisson(clean) - clean,
    }  # fmt: skip
    options: dict[str, object] = {"noise": noises[kind]} if kind in noises else {}
    options |= {"missing": 0.2} if kind == "missing" else {}
    options |= (
        {"signs": "half zeros" if min(shape) > 5 else "positive", "constraints": "nonnegative"}
        if kind == "non-negative"
        else {}
    )
    options |= {"signs": "positive", "mean": 3.0, "loss": "poisson"} if kind == "Poisson" else {}
    found = of_noise(rng, shape=shape, rank=rank, **options)  # type: ignore[arg-type]
    return found.tensor, found.stated


def seconds(work: Callable[[], object]) -> float:
    """Return CPU seconds."""
    start = time.process_time()
    work()
    return time.process_time() - start


def costs(name: str, kind: str, *, is_auto_measured: bool) -> str:
    """Return a row of the table."""
    shape, rank = SHAPES[name]
    tensor, stated = draw(shape, rank, kind)

    def fitted() -> codiag.Factorization:
        return codiag.factorize(tensor, rank, rng=0, **stated)  # type: ignore[arg-type]

    own, fit = min(seconds(fitted) for _ in range(2)), fitted()
    errors = seconds(lambda: fit.standard_errors)
    told, auto = errors + seconds(fit.diagnose), np.nan
    if is_auto_measured:
        auto = seconds(lambda: codiag.choose_rank(tensor, rng=0, **stated)) / own  # type: ignore[arg-type]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return f"| {name} | {kind} | {own:.3f} | {errors / own:.2f} | {told / own:.2f} | {auto:.1f} | {peak:.0f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=DATA, help=", ".join(DATA))
    parser.add_argument("--only", help="shapes whose name has this")
    parser.add_argument("--auto", action="store_true", help='measure rank="auto", too')
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    codiag.factorize(np.random.default_rng(0).standard_normal((5, 6, 7)), 2, rng=0).diagnose()  # imports
    print("| shape | data | fit, s | standard_errors / fit | diagnose / fit | auto / fit | peak, MB |")
    print("|---" * 7 + "|")
    for name in SHAPES:
        if options.only is None or options.only in name:
            for kind in options.data:
                print(costs(name, kind, is_auto_measured=options.auto), flush=True)


if __name__ == "__main__":
    main()
