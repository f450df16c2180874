"""Measure what takes minutes, and rewrite its sections of RESULTS.md: ``make bench``.

The long ones have commands of their own: ``python -m benchmarks.robustness``, and ``python -m benchmarks.device`` on a
machine with an accelerator.
"""

from __future__ import annotations

from threadpoolctl import threadpool_limits

from benchmarks import imports, speed
from benchmarks.measure import keep

if __name__ == "__main__":
    for name, run in (("speed", speed.run), ("import", imports.run)):
        with threadpool_limits(1):
            text = run()
        keep(name, "make bench", text)
        print(text, end="\n\n", flush=True)
