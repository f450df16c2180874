"""The gallery of examples: its order, the look of its figures, and scripts whose data cannot be had.

A Sphinx extension beside sphinx-gallery. Scripts that load a data set of `codiag.datasets` are run where it is on this
computer or can be downloaded; where neither is so, their pages show the code, and a sentence in place of the picture.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from cycler import cycler

from codiag.datasets import load_crowd, load_facebook, load_kos
from codiag.plotting import COLORS, INK

if TYPE_CHECKING:
    from sphinx.application import Sphinx

EXAMPLES = Path(__file__).parents[1] / "examples"
FIRST = ("factorize", "choose_rank", "missing_data", "constraints", "error_bars")
"""Scripts that come first in their sections, in this order; the others follow by name."""
LOADERS = {"load_crowd": load_crowd, "load_facebook": load_facebook, "load_kos": load_kos}
NOT_RUN = """

.. note::

   This example was not run when these pages were built: its data could not be downloaded. The code is complete.

"""


def position(script: str) -> tuple[int, str]:
    """Return what scripts of a section are sorted by: sphinx-gallery takes it as `within_subsection_order`."""
    stem = Path(script).stem
    return (FIRST.index(stem) if stem in FIRST else len(FIRST)), stem


def restyle(_config: dict[str, Any], _script: str) -> None:
    """Set how figures of scripts look, before each of them: sphinx-gallery takes it in `reset_modules`."""
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


def choose_scripts(app: Sphinx, config: Any) -> None:
    """Have sphinx-gallery run the scripts whose data can be had."""
    left_out = sorted(script.stem for script in EXAMPLES.glob("*/*.py") if not can_load(script))
    apart = "".join(rf"(?!{name}\.py$)" for name in left_out)
    config.sphinx_gallery_conf["filename_pattern"] = rf"[/\\]{apart}\w+\.py$"
    app.connect("source-read", lambda _app, page, source: _say_not_run(page, source, left_out))


def _say_not_run(page: str, source: list[str], left_out: list[str]) -> None:
    if page.startswith("gallery/") and Path(page).name in left_out:
        source[0] = re.sub(r"(?m)^=+\n", lambda underline: underline.group() + NOT_RUN, source[0], count=1)


def setup(app: Sphinx) -> dict[str, bool]:
    """Join Sphinx, before sphinx-gallery reads its settings (at priority 10)."""
    app.connect("config-inited", choose_scripts, priority=5)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
