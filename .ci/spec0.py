"""Compare the lowest versions of pyproject.toml with the calendar of SPEC 0: ``python .ci/spec0.py``.

`SPEC 0 <https://scientific-python.org/specs/spec-0000/>`_ supports a version of Python for three years and one of its
core packages for two. A minimum that is younger is an error: users lose a version too early. One that is older is a
warning: it may be raised. Dates come from the package index, so this is a step of CI and not a test.
"""

from __future__ import annotations

import datetime as dt
import json
import re
import sys
import tomllib
import urllib.request
from pathlib import Path

ROOT = Path(__file__).parents[1]
CORE = ("matplotlib", "networkx", "numpy", "pandas", "scikit-learn", "scipy", "xarray", "zarr")
"""Packages of SPEC 0 that codiag declares."""
PYTHON = {"3.11": "2022-10-24", "3.12": "2023-10-02", "3.13": "2024-10-07", "3.14": "2025-10-07", "3.15": "2026-10-01"}
"""First releases of Python (PEP 664, 693, 719, 745 and 790)."""


def minimums(pyproject: str) -> dict[str, str]:
    """Return the lowest versions that a pyproject.toml declares, by package, and that of Python."""
    contents = tomllib.loads(pyproject)
    project = contents["project"]
    declared = [
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]
    declared += [one for group in contents["dependency-groups"].values() for one in group if isinstance(one, str)]
    found = dict(match.groups() for one in declared if (match := re.match(r"([\w-]+)[^>]*>=([\d.]+)$", one)))
    return {"python": project["requires-python"].removeprefix(">="), **{name: found[name] for name in CORE}}


def feature(version: str) -> tuple[int, int]:
    """Return the first two numbers of a version."""
    numbers = [int(number) for number in version.split(".")]
    return numbers[0], numbers[1] if len(numbers) > 1 else 0


def first_releases(package: str) -> dict[tuple[int, int], dt.date]:
    """Return the day on which every feature release of a package came out, from the package index."""
    with urllib.request.urlopen(f"https://pypi.org/pypi/{package}/json", timeout=60) as reply:
        releases = json.load(reply)["releases"]
    days: dict[tuple[int, int], dt.date] = {}
    for version, files in releases.items():
        if re.fullmatch(r"\d+(\.\d+)*", version) and files:
            day = min(dt.date.fromisoformat(file["upload_time"][:10]) for file in files)
            days[feature(version)] = min(day, days.get(feature(version), day))
    return days


def oldest_supported(days: dict[tuple[int, int], dt.date], years: int, today: dt.date) -> tuple[int, int]:
    """Return the oldest feature release that SPEC 0 supports: the first one after the day that far in the past."""
    since = today.replace(year=today.year - years, day=min(today.day, 28))
    return min((version for version, day in days.items() if day >= since), default=max(days))


def verdict(name: str, declared: str, oldest: tuple[int, int]) -> tuple[str, str]:
    """Return "error", "warning" or "notice" about a minimum, and the sentence that explains it."""
    wanted = ".".join(str(number) for number in oldest)
    if feature(declared) > oldest:
        return "error", f"{name} >= {declared} drops versions that SPEC 0 supports: {wanted} is one of them"
    if feature(declared) < oldest:
        return "warning", f"{name} >= {declared} is older than SPEC 0 asks for: {wanted} would do"
    return "notice", f"{name} >= {declared} is the oldest version that SPEC 0 supports"


def main() -> int:
    """Print a line for each minimum, in the form that GitHub shows beside a change; return 1 after an error."""
    today = dt.date.today()
    python = {feature(version): dt.date.fromisoformat(day) for version, day in PYTHON.items()}
    found = []
    for name, declared in minimums((ROOT / "pyproject.toml").read_text()).items():
        days, years = (python, 3) if name == "python" else (first_releases(name), 2)
        found.append(verdict(name, declared, oldest_supported(days, years, today)))
    for kind, sentence in found:
        print(f"::{kind}::{sentence}")
    return int(any(kind == "error" for kind, _ in found))


if __name__ == "__main__":
    sys.exit(main())
