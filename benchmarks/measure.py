"""How time is measured, and where results are kept."""

from __future__ import annotations

import datetime as dt
import os
import platform
import re
import resource
import shlex
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from experiments.reports import markdown

RESULTS = Path(__file__).with_name("RESULTS.md")


def cpu_seconds(work: Callable[[], object], repeats: int = 7) -> float:
    """Return the least CPU time of this thread over some repeats, after one that warms up."""
    work()
    return min(timed(work, time.thread_time)[1] for _ in range(repeats))


def timed(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter) -> tuple[Any, float]:
    """Return what a call returns, and the seconds it takes."""
    start = clock()
    result = work()
    return result, clock() - start


def megabytes() -> float:
    """Return the most memory that this process has held at once."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def table(headings: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table; numbers should come formatted."""
    return markdown(headings, [[str(cell) for cell in row] for row in rows])


def machine() -> str:
    """Say what was measured on, without naming anyone's computer."""
    packages = ("codiag", "numpy", "scipy", "pyriemann", "torch")
    versions = [f"{name} {found}" for name in packages if (found := _version(name))]
    return f"{_processor()}, {os.cpu_count()} cores, Python {platform.python_version()}, {', '.join(versions)}"


def keep(name: str, command: str, text: str) -> None:
    """Replace one section of RESULTS.md, or add it."""
    today = dt.date.today().isoformat()
    section = f"<!-- {name} -->\n{text}\n\n`{command}`, {today}; {machine()}\n<!-- end of {name} -->"
    old = RESULTS.read_text() if RESULTS.exists() else "# Results\n"
    pattern = re.compile(rf"<!-- {name} -->.*?<!-- end of {name} -->", re.DOTALL)
    new = pattern.sub(lambda _: section, old) if pattern.search(old) else f"{old.rstrip()}\n\n{section}\n"
    RESULTS.write_text(new)


def publish(name: str, command: str, work: Callable[[], str]) -> None:
    """Do some work on one BLAS thread; keep what it says, and print it."""
    with threadpool_limits(1):
        text = work()
    keep(name, command, text)
    print(text, end="\n\n", flush=True)


def run_parts(module: str, parts: Mapping[str, Callable[[], str]], names: Sequence[str] = ()) -> None:
    """Publish some parts of a module: those named, or named on the command line, or all."""
    warnings.simplefilter("ignore")  # for this program: how well everybody did is what it measures
    for part in names or sys.argv[1:] or parts:
        publish(f"{module} {part}", f"python -m benchmarks.{module} {shlex.quote(part)}", parts[part])


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    names = re.findall(r"model name\s*:\s*(.+)", cpuinfo.read_text()) if cpuinfo.exists() else []
    return names[0] if names else platform.processor() or platform.machine()
