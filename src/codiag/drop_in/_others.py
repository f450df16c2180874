"""What other libraries have beside CP decompositions, which is not offered here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any


def explain_others(module: str, offered: Sequence[str], packages: Sequence[str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module that says what it offers, if a name of another library is asked for.

    Its packages are imported when they are first used. For names of other libraries it raises an ImportError: what
    ``from module import name`` says of an AttributeError names a file alone.
    """

    def explain(name: str) -> Any:
        if name in packages:
            return import_module(f"{module}.{name}")
        homes = () if name.startswith("_") else ("tensorly.decomposition", "pyttb")
        home = next((home for home in homes if _has(home, name)), None)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise ImportError(
            f"{module} does not offer {name}, which {home} has; it offers {', '.join(offered)}, and "
            "codiag.factorize has constraints, missing entries, losses and symmetry"
        )

    return explain


def _has(library: str, name: str) -> bool:
    try:
        return hasattr(import_module(library), name)
    except ImportError:
        return False
