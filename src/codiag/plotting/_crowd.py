"""The picture of a crowd."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag.plotting._style import INK, MUTED, OURS, log_axis, paper, shown, tell_without_font

if TYPE_CHECKING:
    from codiag.models.crowd import DawidSkene

NAME, NAMED = 12, 12
"""Letters of a class that are shown, and classes up to which they are named."""
HIGH, WIDE, LETTER = 4.3, 5.6, 0.065
"""Inches that all confusion matrices take, from top to bottom and side by side, and that a letter takes."""


def draw_confusions(model: DawidSkene, path: Path, n_workers: int = 12) -> None:
    """Save a picture of a crowd: the confusion matrices of those who voted most, and everyone's accuracy.

    Confusion matrices are as scikit-learn has them, normalized over the true class: a row for each true class, a column
    for each label that was given.

    Parameters
    ----------
    model : DawidSkene
        Fitted to votes.
    path : str or pathlib.Path
        Where to save it; the suffix says in which format.
    n_workers : int
        Largest number of confusion matrices that are shown, those of the workers with most votes.

    See Also
    --------
    codiag.reports.crowd_report : A page with this picture.
    codiag.models.DawidSkene : The model that is drawn.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> from codiag.models import DawidSkene
    >>> from codiag.plotting import draw_confusions
    >>> from codiag.synthetic import crowd_votes, worker_confusions
    >>> votes = crowd_votes(200, worker_confusions(9, 2, seed=0), seed=1).votes
    >>> with TemporaryDirectory() as folder:
    ...     draw_confusions(DawidSkene(random_state=0).fit(votes), Path(folder) / "crowd.png")
    """
    table = model.worker_table()
    busiest = np.argsort(-table["votes"], kind="stable")[:n_workers]
    k = model.classes_.size
    with paper((12.5, 6.2)) as figure:
        left, right = np.asarray(figure.subfigures(1, 2, width_ratios=(1.5, 1)))
        left.suptitle("Workers with most votes: true class (rows), label given (columns)", color=INK)
        _draw_matrices(left, table, busiest, model.classes_)
        _draw_everyone(right.subplots(), table, 1 / k)
        tell_without_font(left, [*model.classes_.tolist(), *(table["worker"][worker] for worker in busiest)])
        figure.savefig(path, dpi=150)


def _draw_matrices(figure: Any, table: dict[str, np.ndarray], workers: np.ndarray, classes: np.ndarray) -> None:
    """Draw confusion matrices in as few rows as there is room for, with the classes beside and below the outer ones."""
    n_columns = workers.size if workers.size <= 3 else min(4, math.ceil(math.sqrt(workers.size)))
    n_rows = math.ceil(workers.size / n_columns)
    axes = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
    names = [shown(name, NAME) for name in classes.tolist()] if classes.size <= NAMED else []
    room = min(HIGH / n_rows, WIDE / n_columns)
    upright = max(map(len, names), default=0) * LETTER * len(names) > room
    for place, (axis, worker) in enumerate(zip(axes, workers, strict=False)):
        cells = [[table[f"p({given}|{true})"][worker] for given in classes] for true in classes]
        image = axis.imshow(cells, cmap="magma_r", vmin=0, vmax=1, interpolation="nearest")
        axis.set_title(f"{shown(table['worker'][worker], 12)}: {table['accuracy'][worker]:.2f}", fontsize=9)
        below = names if place + n_columns >= workers.size else []
        axis.set_xticks(range(len(names)), below or [""] * len(names), fontsize=8, rotation=90 if upright else 0)
        axis.set_yticks(range(len(names)), names if place % n_columns == 0 else [""] * len(names), fontsize=8)
    for axis in axes[workers.size :]:
        axis.set_axis_off()
    figure.colorbar(image, ax=axes.tolist(), shrink=0.8, label="probability")


def _draw_everyone(axis: Any, table: dict[str, np.ndarray], chance: float) -> None:
    bars = np.stack([table["accuracy"] - table["low"], table["high"] - table["accuracy"]])
    axis.errorbar(table["votes"], table["accuracy"], yerr=bars, fmt="o", color=OURS, ecolor=MUTED, ms=4)
    axis.axhline(chance, color=MUTED, linestyle="--", linewidth=1)
    if table["votes"].max() > 20 * max(table["votes"].min(), 1):
        log_axis(axis.xaxis, np.maximum(table["votes"], 1).tolist())
    else:
        axis.xaxis.get_major_locator().set_params(integer=True, nbins=5)
    axis.set(ylim=(0, 1.02))
    axis.set(xlabel="votes given", ylabel="share that is right (dashed: by chance)")
    axis.set_title("Every worker, with intervals of 90 %", color=INK)
