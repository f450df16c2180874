"""Communities of the paper's network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from codiag.datasets import at_hand, load_facebook
from codiag.experiments.paper.trials import grid, median_of, select
from codiag.experiments.reports import Finding, Panel, Report, Series
from codiag.experiments.runs import Cell, Experiment, Record, Values
from codiag.metrics import recovery_curve
from codiag.models import MixedMembershipCommunities

METHODS: dict[str, Any] = {"OJD1": "ojd1", "NOJD1": "nojd1", "TPM": "tpm", "default": None}
THRESHOLDS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5)


def _cells(quick: bool) -> list[Cell]:
    degrees = ["plain"] if quick else ["plain", "corrected"]
    return grid({"k": [40 if quick else 100], "degrees": degrees, "method": list(METHODS)}, 1 if quick else 3)


def _measure(cell: Cell, _: int) -> Values:
    data = load_facebook("UNC28")
    truth = data.groups(min_size=14)
    largest = truth[:, np.argsort(-truth.sum(axis=0), kind="stable")[:10]]
    model = MixedMembershipCommunities(
        cell["k"],
        method=METHODS[cell["method"]],
        degree_corrected=cell["degrees"] == "corrected",
        n_partitions=1,
        polish=0,
        random_state=cell["trial"],
    ).fit(data.adjacency)
    values = {}
    for name, groups in (("all", truth), ("top ten", largest)):
        curve = recovery_curve(model.memberships_, groups, THRESHOLDS)
        for place, threshold in enumerate(THRESHOLDS):
            values[f"{name} recovered {threshold}"] = float(curve.recovery[place])
            values[f"{name} distance {threshold}"] = float(curve.distance[place])
    return values


def _report(records: Sequence[Record]) -> Report:
    rows, panels = [], []
    kinds = list(dict.fromkeys(record.cell["degrees"] for record in records))
    for name in ("all", "top ten"):
        series = []
        for degrees in kinds:
            for method in METHODS:
                here = select(records, method=method, degrees=degrees)
                if not here:
                    continue
                recovered, distance = (
                    [median_of(here, f"{name} {what} {threshold}") for threshold in THRESHOLDS]
                    for what in ("recovered", "distance")
                )
                label = method + (", degree-corrected" if degrees == "corrected" else "")
                series.append(Series(label, recovered, distance))
                rows.append([name, label, *(f"{r:.2f} / {d:.3f}" for r, d in zip(recovered, distance, strict=True))])
        what = "the 355 groups" if name == "all" else "the ten largest groups"
        panels.append(Panel(f"UNC28: {what}", "share of true groups matched", "share of nodes that differ", series))
    plain = {
        method: median_of(select(records, method=method, degrees="plain"), "top ten distance 0.3") for method in METHODS
    }
    better = plain["OJD1"] < plain["TPM"]
    finding = Finding(
        "OJD1 finds the top ten communities more accurately than TPM",
        f"share of nodes that differ at threshold 0.3: OJD1 {plain['OJD1']:.3f}, NOJD1 {plain['NOJD1']:.3f}, TPM "
        f"{plain['TPM']:.3f}",
        "yes" if better else "no",
    )
    note = "Each cell: share of true groups that were matched, and share of nodes on which matches differ."
    return Report(["groups", "method", *(str(t) for t in THRESHOLDS)], rows, panels, [finding], [note])


def _missing() -> str:
    return "" if at_hand("UNC28") else "the Facebook networks are not at hand; set CODIAG_DATA_DIR"


COMMUNITIES = Experiment(
    "communities",
    "Communities of a network",
    "OJD1 finds the top ten communities more accurately than TPM, and both do alike below.",
    "a real network, UNC28, and its 355 groups of at least 14 by dormitory, major and high school",
    _cells,
    _measure,
    _report,
    _missing,
)
