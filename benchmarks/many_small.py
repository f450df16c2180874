"""Many small tensors at once: ``python -m benchmarks.many_small``.

`codiag.factorize_each` on tensors of 20 x 20 x 20 and rank 5, against a loop over `codiag.factorize` in one process;
and the bootstrap of one fit, in units of a fit. Wall-clock times.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np

import codiag


def main() -> None:
    """Print seconds a tensor, and what the bootstrap costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=200, help="tensors")
    parser.add_argument("--refits", type=int, default=200, help="of the bootstrap")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    stack = np.stack(
        [codiag.synthetic.noisy_tensor((20,) * 3, 5, noise=0.05, rng=i).tensor for i in range(options.draws)]
    )
    warnings.simplefilter("ignore")
    codiag.factorize_each(stack[:4], 5, rng=0, n_jobs=options.jobs)  # starts processes
    begin = time.perf_counter()
    loop = [
        codiag.factorize(tensor, 5, rng=np.random.default_rng(np.random.SeedSequence(0, spawn_key=(i,))))
        for i, tensor in enumerate(stack)
    ]
    one = (time.perf_counter() - begin) / options.draws
    begin = time.perf_counter()
    fits = codiag.factorize_each(stack, 5, rng=0, n_jobs=options.jobs)
    each = (time.perf_counter() - begin) / options.draws
    above = max(fit.relative_error / other.relative_error - 1 for fit, other in zip(fits, loop, strict=True))
    begin = time.perf_counter()
    fits[0].bootstrap(mode=0, n=options.refits, rng=0)
    bootstrap = time.perf_counter() - begin
    print(f"loop {1e3 * one:.2f} ms, factorize_each {1e3 * each:.2f} ms a tensor: {one / each:.2f} times as fast")
    print(f"largest excess over the loop {above:.1e}")
    print(f"bootstrap of {options.refits}: {bootstrap:.3f} s, {bootstrap / one:.1f} fits")


if __name__ == "__main__":
    main()
