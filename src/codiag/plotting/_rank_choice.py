"""The evidence for every rank: errors, replication, the smallest component and the residual."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag.plotting._style import INK, MUTED, OURS, THEIRS, grid_of_axes, log_axis

if TYPE_CHECKING:
    from codiag.selection import RankChoice


def draw_choice(choice: RankChoice, axes: Sequence[Any] | None = None) -> Any:
    """Draw errors, replication, the smallest component and the residual against the rank; return the figure."""
    with grid_of_axes(axes, (2, 2), (9.0, 6.4), sharex=True) as (figure, grid):
        _draw(choice, grid.ravel().tolist())
        if axes is None:
            figure.suptitle("No rank is supported" if choice.rank is None else f"Rank {choice.rank} is chosen")
    return figure


def _draw(choice: RankChoice, axes: Sequence[Any]) -> None:
    table, (errors, shares, ratios, residuals) = choice.table, axes
    ranks = table["rank"]
    line = {"marker": "o", "markersize": 4, "linewidth": 1.5}
    errors.plot(ranks, table["relative_error"], color=MUTED, label="fitted", **line)
    errors.plot(ranks, table["held_out_error"], color=OURS, label="left out", **line | {"marker": "s"})
    errors.set(title="Relative error")
    shares.plot(ranks, table["congruence"], color=OURS, label="halves, congruence", **line)
    consistency = np.clip(table["core_consistency"] / 100, 0, 1)
    shares.plot(ranks, consistency, color=THEIRS, label="core consistency", **line | {"marker": "s", "linestyle": "--"})
    shares.set(title="Replication and core consistency", ylim=(-0.03, 1.05))
    ratios.plot(ranks, table["smallest_ratio"], color=OURS, **line)
    ratios.set(title="Smallest weight over its standard error", xlabel="rank")
    for axis, names in ((errors, ("relative_error", "held_out_error")), (ratios, ("smallest_ratio",))):
        drawn = np.concatenate([table[name] for name in names])
        positive = drawn[(drawn > 0) & np.isfinite(drawn)]
        if positive.size:
            log_axis(axis.yaxis, positive.tolist())
    residuals.plot(ranks, table["residual_excess"], color=OURS, **line)
    residuals.axhline(1, color=MUTED, linestyle=":", label="white noise stays below")
    residuals.set(title="Residual against noise", xlabel="rank", ylim=(0, None))
    for axis in axes:
        for rank in (evidence.rank for evidence in choice.evidence if evidence.flaw):
            axis.axvspan(rank - 0.5, rank + 0.5, color=MUTED, alpha=0.15, linewidth=0)
        if choice.rank is not None:
            axis.axvline(choice.rank, color=INK, linewidth=1, linestyle="--")
        axis.set_xticks(ranks[:: 1 + ranks.size // 12])
    for axis in (errors, shares, residuals):  # above the panel, where no data is
        axis.set_title(axis.get_title(), pad=20)
        above = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "ncols": 2}
        axis.legend(frameon=False, fontsize=8, borderaxespad=0, handlelength=1.6, columnspacing=1.2, **above)
