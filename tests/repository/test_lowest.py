"""The lowest versions that are declared are the ones that are tried."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def pinned():
    path = ROOT / ".ci" / "lowest.txt"
    if not path.exists():
        pytest.skip("not in a checkout: .ci is not part of the source distribution")
    return dict(re.findall(r"^([\w-]+)==([\d.]+)$", path.read_text(), flags=re.MULTILINE))


def declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    needed = project["project"]["dependencies"] + project["dependency-groups"]["test"]
    return dict(re.fullmatch(r"([\w-]+)>=([\d.]+)", line).groups() for line in needed)


def numbers(version):
    parts = [int(part) for part in version.split(".")]
    return tuple(parts + [0] * (3 - len(parts)))


def test_every_minimum_is_pinned():
    pins = pinned()
    assert {name: numbers(pins.get(name, "0")) for name in declared()} == {
        name: numbers(version) for name, version in declared().items()
    }
