"""The gallery of examples: its order, the look of its figures, and scripts whose data cannot be had.

A Sphinx extension beside sphinx-gallery. Scripts that load a data set of `codiag.datasets` get it if it is on this
computer or can be downloaded; if neither is so, they get simulated data in its place, and their pages say so.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from cycler import cycler
from site_stand_ins import LOADERS, put_in_place

from codiag.plotting import COLORS, INK

if TYPE_CHECKING:
    from sphinx.application import Sphinx

EXAMPLES = Path(__file__).parents[1] / "examples"
FIRST = ("factorize", "choose_rank", "missing_data", "constraints", "error_bars")
"""Scripts that come first in their sections, in this order; the others follow by name."""
SIMULATED = """

.. note::

   The data of this example could not be downloaded when these pages were built. Numbers and pictures below are of
   simulated data of the same form; the text is about the real data, which the code loads.

"""


def position(script: str) -> tuple[int, str]:
    """Return what scripts of a section are sorted by: sphinx-gallery takes it as `within_subsection_order`."""
    stem = Path(script).stem
    return (FIRST.index(stem) if stem in FIRST else len(FIRST)), stem


def restyle(_config: dict[str, Any], script: str | None) -> None:
    """Set the look of figures, and the data, before each script: sphinx-gallery takes it in `reset_modules`."""
    paths = [
        path for path in EXAMPLES.glob("*/*.py") if path.name == Path(script or "").name
    ]  # it gives the name alone
    put_in_place({loader for path in paths if not can_load(path) for loader, _ in data_sets(path)})
    mpl.rcParams.update(
        {
            "axes.edgecolor": INK,
            "axes.prop_cycle": cycler(color=COLORS),
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlesize": 11,
            "figure.dpi": 100,
            "font.size": 10,
        }
    )


def data_sets(script: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Return the loaders of `codiag.datasets` that a script calls, with the name of the data set if there is one."""
    calls = re.findall(r"\b(load_crowd|load_facebook|load_kos)\((?:\"(\w+)\")?", script.read_text(encoding="utf-8"))
    return [(loader, (name,) if name else ()) for loader, name in calls]


def can_load(script: Path) -> bool:
    """Tell whether every data set of a script is here, or could be downloaded."""
    try:
        for loader, name in data_sets(script):
            LOADERS[loader](*name, download=True)
    except (OSError, ModuleNotFoundError):
        return False
    return True


def mark_simulated(app: Sphinx, _config: Any) -> None:
    """Have pages say it whose data is simulated."""
    simulated = sorted(script.stem for script in EXAMPLES.glob("*/*.py") if not can_load(script))
    app.connect("source-read", lambda _app, page, source: _say_simulated(page, source, simulated))


def _say_simulated(page: str, source: list[str], simulated: list[str]) -> None:
    if page.startswith("gallery/") and Path(page).name in simulated:
        source[0] = re.sub(r"(?m)^=+\n", lambda underline: underline.group() + SIMULATED, source[0], count=1)


def setup(app: Sphinx) -> dict[str, bool]:
    """Join Sphinx, before sphinx-gallery reads its settings (at priority 10)."""
    app.connect("config-inited", mark_simulated, priority=5)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
