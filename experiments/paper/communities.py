"""Communities of the paper's network (claims 18 and 19)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from codiag.datasets import is_local, load_facebook
from codiag.models import MixedMembershipSBM
from experiments.claims import Claim, Ruling, Trials, of_parts
from experiments.estimators.recovery import recovery_curve
from experiments.estimators.stars import K, PolarTPM, WhiteStars
from experiments.paper.trials import grid, history, n_trials, shown
from experiments.records import Cell, Record, Values
from experiments.reports import Figure, Panel, Report, Series, Table
from experiments.runs import Experiment

THRESHOLDS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)
GROUPS = ("top ten", "rest")


def _cells(quick: bool) -> list[Cell]:
    cells = grid({"data": ["UNC28"]}, 20) + grid({"data": ["UNC28"], "memberships": ["model"]}, 20)
    return [cell for cell in cells if not quick or cell["trial"] < 1]


def _measure(cell: Cell, _: int) -> Values:
    """Return curves by the estimator of Anandkumar et al., or with the memberships of codiag's model."""
    data = load_facebook(cell["data"])
    truth = data.groups(min_size=14)
    order = np.argsort(-truth.sum(axis=0), kind="stable")
    values: Values = {}
    for method, memberships in _memberships(data.adjacency, cell):
        for name, groups in (("top ten", truth[:, order[:10]]), ("rest", truth[:, order[10:]])):
            curve = recovery_curve(memberships, groups, THRESHOLDS)
            for place, threshold in enumerate(THRESHOLDS):
                values[f"{method}, {name} recovered {threshold}"] = float(curve.recovery[place])
                values[f"{method}, {name} distance {threshold}"] = float(curve.distance[place])
    return values


def _memberships(adjacency: Any, cell: Cell) -> Iterator[tuple[str, np.ndarray]]:
    seed = cell["trial"]
    if "memberships" not in cell:
        stars = WhiteStars.of(adjacency, np.random.default_rng([0, seed]))
        for name, components in stars.components(seed).items():
            yield name, stars.memberships(*components)
        return
    options: dict[str, Any] = {"degree_corrected": False, "n_partitions": 1, "max_iter": 0, "random_state": seed}
    for name, method in (("OJD1 (model)", "ojd1"), ("TPM (polar, model)", PolarTPM(tol=1e-6, max_iter=60))):
        yield name, MixedMembershipSBM(K, method=method, **options).fit(adjacency).memberships_


WAYS = {
    "by the transpose": ("OJD1", "TPM (transpose)"),
    "from the polar factor": ("OJD1", "TPM (polar)"),
}
"""Ways to memberships: ours, and TPM."""
DRAWN = {
    "Anandkumar": ("OJD1", "TPM (transpose)", "TPM (polar)"),
    "model": ("OJD1 (model)", "TPM (polar, model)"),
}
"""Who computes the memberships, the estimator of Anandkumar et al. or codiag's model, and methods."""


def curve_of(record: Record, method: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a curve by growing recovery: the least distance at which so much, or more, is recovered."""
    recovered, distance = (
        np.array([record.values[f"{method}, {name} {what} {threshold}"] for threshold in THRESHOLDS])
        for what in ("recovered", "distance")
    )
    order = np.argsort(recovered, kind="stable")
    recovered, distance = recovered[order], distance[order]
    known = np.isfinite(distance)
    recovered, distance = recovered[known], distance[known]
    return recovered, np.minimum.accumulate(distance[::-1])[::-1]


def area_between(record: Record, name: str, ours: str, other: str) -> tuple[float, float]:
    """Return the mean difference of distances, another method less ours, over the recovery both reach, and its own."""
    (x, y), (u, v) = curve_of(record, ours, name), curve_of(record, other, name)
    low, high = max(x.min(), u.min()), min(x.max(), u.max())
    if not high > low:
        return float("nan"), float("nan")
    places = np.linspace(low, high, 201)
    return float(np.mean(np.interp(places, u, v) - np.interp(places, x, y))), float(np.mean(np.interp(places, u, v)))


def _runs(trials: Trials, method: str) -> list[Record]:
    """Return the records of all seeds with memberships by a method, and count them."""
    records = [record for record in trials.at() if f"{method}, rest recovered {THRESHOLDS[0]}" in record.values]
    trials.fewest = min(trials.fewest, len(records))
    return records


def _areas(trials: Trials, name: str, way: str) -> tuple[float, float, float]:
    """Return the mean area over seeds, its standard error, and the mean distance of TPM."""
    pairs = np.array([area_between(record, name, *WAYS[way]) for record in _runs(trials, WAYS[way][1])]).reshape(-1, 2)
    pairs = pairs[np.isfinite(pairs[:, 0])]
    if not pairs.size:
        return (float("nan"),) * 3
    return float(pairs[:, 0].mean()), float(pairs[:, 0].std() / np.sqrt(len(pairs))), float(pairs[:, 1].mean())


def _more_accurate(trials: Trials) -> Ruling:
    texts, parts = [], []
    for way in WAYS:
        mean, error, level = _areas(trials, "top ten", way)
        texts.append(f"{way} {mean:+.4f} (standard error {error:.4f}) of {level:.4f}")
        parts.append(mean > 2 * error)
    return Ruling("distance of TPM less that of OJD1, top ten: " + "; ".join(texts), of_parts(*parts))


def _alike(trials: Trials) -> Ruling:
    texts, parts = [], []
    for way in WAYS:
        mean, error, level = _areas(trials, "rest", way)
        texts.append(f"{way} {mean:+.4f} (standard error {error:.4f}) of {level:.4f}")
        parts.append(abs(mean) <= max(0.1 * level, 2 * error))
    return Ruling("distance of TPM less that of OJD1, other groups: " + "; ".join(texts), of_parts(*parts))


def _largest_reduction(trials: Trials) -> Ruling:
    texts, parts = [], []
    for name in GROUPS:
        for way, (ours, other) in WAYS.items():
            records = _runs(trials, other)
            if not records:
                return Ruling("not run", "no")
            (x, mine), (u, theirs) = (_mean_curve(records, method, name) for method in (ours, other))
            places = np.linspace(max(x[0], u[0]), min(x[-1], u[-1]), 201)
            reduction = 1 - np.interp(places, x, mine[0]) / np.interp(places, u, theirs[0])
            texts.append(f"{name}, {way} {100 * reduction.max():+.0f} %")
            parts.append(reduction.max() >= 0.15)
    return Ruling("largest reduction of the mean distance: " + ", ".join(texts), of_parts(*parts))


def _mean_curve(records: Sequence[Record], method: str, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return places of recovery that most seeds reach, and means and two standard errors of distances (2, n) there."""
    curves = [curve_of(record, method, name) for record in records]
    low, high = (np.median([end(x) for x, _ in curves]) for end in (np.min, np.max))
    places = np.linspace(low, high, 25)
    values = np.array([np.interp(places, x, y) for x, y in curves])
    return places, np.stack([values.mean(axis=0), 2 * values.std(axis=0) / np.sqrt(len(curves))])


def _series(records: Sequence[Record], method: str, name: str) -> Series:
    places, (mean, spread) = _mean_curve(records, method, name)
    return Series(method, places.tolist(), mean.tolist(), (mean - spread).tolist(), (mean + spread).tolist())


def _report(records: Sequence[Record]) -> Report:
    trials, panels, rows, chosen = Trials(records), [], [], THRESHOLDS[1::3]
    for estimator, methods in DRAWN.items():
        runs = _runs(trials, methods[0])
        for name in GROUPS if runs else ():
            title = f"{'ten largest' if name == 'top ten' else 'other'} groups, {estimator}"
            series = [_series(runs, method, name) for method in methods]
            panels.append(Panel(title, "recovery ratio", "distance: share of nodes", series, y_log=False))
            for method in methods:
                cells = [
                    f"{shown(trials.mean(f'{method}, {name} recovered {t}'), 2)} / "
                    f"{shown(trials.mean(f'{method}, {name} distance {t}'), 2)}"
                    for t in chosen
                ]
                rows.append([name, method, str(len(runs)), *cells])
    headings = ["groups", "method", "seeds", *(f"threshold {t}" for t in chosen)]
    story = (
        "Distance of found from true groups against the share of groups found, as the threshold varies: means over "
        f"{n_trials(records)} seeds, bands of two standard errors."
    )
    table = Table("Recovered / distance, means over seeds", headings, rows)
    note = (
        f"{K} communities; seeds part the nodes. Vectors of TPM are not orthonormal: memberships are computed by their "
        "transpose, as Anandkumar et al. do, and from their polar factor, those of OJD1 likewise; panels 'model', if "
        "any, show the model of codiag. The paper's figure prints no values."
    )
    figure = Figure("Accuracy and recovery, UNC28", story, panels, "figure-3-communities-accuracy-and-recovery")
    return Report([figure], [table], [note])


def _missing() -> str:
    return "" if is_local("UNC28") else "the Facebook networks are not on this computer; set CODIAG_DATA_DIR"


COMMUNITIES = Experiment(
    "communities",
    "Figure 3: communities of a network",
    "A real network, UNC28 of Facebook, and its groups of at least 14 by dormitory, major and high school.",
    _cells,
    _measure,
    _report,
    history(20),
    missing=_missing,
)
CLAIMS = [
    Claim(18, "communities", _more_accurate),
    Claim(19, "communities", _alike),
    Claim(33, "communities", _largest_reduction),
]
