"""The picture of a crowd."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from codiag.plotting._style import INK, MUTED, OURS, paper, shown
from codiag.plotting._ticks import log_axis

if TYPE_CHECKING:
    from codiag.models import DawidSkene


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
        At most so many confusion matrices are shown, of twelve.

    Returns
    -------
    None

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from pathlib import Path
    >>> from codiag.models import DawidSkene
    >>> from codiag.plotting import draw_confusions
    >>> from codiag.synthetic import crowd_votes, worker_errors
    >>> votes = crowd_votes(200, worker_errors(9, 2, seed=0), seed=1).votes
    >>> with TemporaryDirectory() as folder:
    ...     draw_confusions(DawidSkene(random_state=0).fit(votes), Path(folder) / "crowd.png")
    """
    table = model.worker_table()
    busiest = np.argsort(-table["votes"], kind="stable")[:n_workers]
    k = model.classes_.size
    with paper((12.5, 6.2)) as figure:
        left, right = np.asarray(figure.subfigures(1, 2, width_ratios=(1.5, 1)))
        axes = left.subplots(3, 4, squeeze=False).ravel()
        left.suptitle("Workers with most votes: true class (rows), label given (columns)", color=INK)
        for axis, worker in zip(axes, busiest, strict=False):
            cells = [[table[f"p({given}|{true})"][worker] for given in model.classes_] for true in model.classes_]
            image = axis.imshow(cells, cmap="magma_r", vmin=0, vmax=1, interpolation="nearest")
            axis.set_title(f"{shown(table['worker'][worker], 12)}: {table['accuracy'][worker]:.2f}", fontsize=9)
            names = [shown(name, 5) for name in model.classes_.tolist()] if k <= 6 else []
            axis.set_xticks(range(len(names)), names, fontsize=7)
            axis.set_yticks(range(len(names)), names, fontsize=7)
        for axis in axes[busiest.size :]:
            axis.set_axis_off()
        left.colorbar(image, ax=axes.tolist(), shrink=0.8, label="probability")
        axis = right.subplots()
        bars = np.stack([table["accuracy"] - table["low"], table["high"] - table["accuracy"]])
        axis.errorbar(table["votes"], table["accuracy"], yerr=bars, fmt="o", color=OURS, ecolor=MUTED, ms=4)
        axis.axhline(1 / k, color=MUTED, linestyle="--", linewidth=1)
        wide = table["votes"].max() > 20 * max(table["votes"].min(), 1)
        if wide:
            log_axis(axis.xaxis, np.maximum(table["votes"], 1))
        axis.set(ylim=(0, 1.02))
        axis.set(xlabel="votes given", ylabel="share that is right (dashed: by chance)")
        axis.set_title("Every worker, with intervals of 90 %", color=INK)
        figure.savefig(path, dpi=150)
