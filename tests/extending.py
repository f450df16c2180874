"""The worked examples of docs/extending, as modules."""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).parents[1] / "docs" / "extending"


@cache
def example(name: str) -> ModuleType:
    """Load a file of docs/extending, once, under a name by which pickle finds it."""
    spec = importlib.util.spec_from_file_location(f"extending_{name}", FOLDER / f"{name}.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"no worked example {name!r} in {FOLDER}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module
