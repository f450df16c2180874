"""Communities of the paper's network (claims 18 and 19)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag.datasets import is_local, load_facebook
from codiag.metrics import recovery_curve
from experiments.claims import Claim, Ruling, Trials, over
from experiments.paper.stars import K, WhiteStars
from experiments.paper.trials import grid, shown, stages
from experiments.records import Cell, Record, Values, select
from experiments.reports import Figure, Panel, Report, Series, Table
from experiments.runs import Experiment

METHODS = ("OJD1", "TPM (transpose)", "TPM (polar)")
THRESHOLDS = (0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7)
GROUPS = ("top ten", "rest")


def _cells(quick: bool) -> list[Cell]:
    return [cell for cell in grid({"data": ["UNC28"]}, 20) if not quick or cell["trial"] < 1]


def _measure(cell: Cell, _: int) -> Values:
    data = load_facebook(cell["data"])
    truth = data.groups(min_size=14)
    order = np.argsort(-truth.sum(axis=0), kind="stable")
    stars = WhiteStars.of(data.adjacency, np.random.default_rng([0, cell["trial"]]))
    values: Values = {}
    for method, components in stars.components(cell["trial"]).items():
        memberships = stars.memberships(*components)
        for name, groups in (("top ten", truth[:, order[:10]]), ("rest", truth[:, order[10:]])):
            curve = recovery_curve(memberships, groups, THRESHOLDS)
            for place, threshold in enumerate(THRESHOLDS):
                values[f"{method}, {name} recovered {threshold}"] = float(curve.recovery[place])
                values[f"{method}, {name} distance {threshold}"] = float(curve.distance[place])
    return values


def _points(record: Record, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return a curve by growing recovery: the least distance at which so much, or more, is recovered."""
    recovered = np.array([record.values[f"{name} recovered {threshold}"] for threshold in THRESHOLDS])
    distance = np.array([record.values[f"{name} distance {threshold}"] for threshold in THRESHOLDS])
    order = np.argsort(recovered, kind="stable")
    recovered, distance = recovered[order], distance[order]
    known = np.isfinite(distance)
    recovered, distance = recovered[known], distance[known]
    return recovered, np.minimum.accumulate(distance[::-1])[::-1]


def area_between(first: Record, second: Record, name: str) -> tuple[float, float]:
    """Return the mean difference of distances, second less first, over the recovery both reach, and the second's."""
    (x, y), (u, v) = _points(first, name), _points(second, name)
    low, high = max(x.min(), u.min()), min(x.max(), u.max())
    if not high > low:
        return float("nan"), float("nan")
    places = np.linspace(low, high, 201)
    return float(np.mean(np.interp(places, u, v) - np.interp(places, x, y))), float(np.mean(np.interp(places, u, v)))


def _areas(trials: Trials, name: str) -> tuple[np.ndarray, float]:
    differences, levels = [], []
    pairs = [(select(trials.at(method="OJD1"), trial=t), select(trials.at(method="TPM"), trial=t)) for t in range(20)]
    for ours, theirs in pairs:
        if ours and theirs:
            difference, level = area_between(ours[0], theirs[0], name)
            differences.append(difference)
            levels.append(level)
    trials.fewest = min(trials.fewest, len(differences))
    return np.array(differences), over(np.mean, levels)


def _more_accurate(trials: Trials) -> Ruling:
    found, level = _areas(trials, "top ten")
    if found.size == 0:
        return Ruling("no pair of runs", "no")
    mean, error = over(np.mean, found), over(np.std, found) / np.sqrt(found.size)
    text = (
        f"mean distance of TPM {level:.3f}, of OJD1 {mean:.3f} less (standard error {error:.3f}, over "
        f"{found.size} seeds {over(np.min, found):.3f} to {over(np.max, found):.3f})"
    )
    return Ruling(text, "yes" if mean > 2 * error else "partly" if mean > -2 * error else "no")


def _alike(trials: Trials) -> Ruling:
    found, level = _areas(trials, "rest")
    if found.size == 0:
        return Ruling("no pair of runs", "no")
    mean, error = over(np.mean, found), over(np.std, found) / np.sqrt(found.size)
    share = abs(mean) / level
    text = (
        f"mean distance of TPM {level:.3f}, of OJD1 {mean:.3f} less (standard error {error:.3f}): {100 * share:.0f} % "
        "apart"
    )
    alike = share <= 0.1 or abs(mean) <= 2 * error
    return Ruling(text, "yes" if alike else "partly" if share <= 0.25 else "no")


def _mean_curve(records: Sequence[Record], method: str, name: str) -> Series:
    """Return mean distances at equal recovery, over the recovery that most seeds reach."""
    curves = [_points(record, name) for record in select(records, method=method)]
    low = np.median([x.min() for x, _ in curves])
    high = np.median([x.max() for x, _ in curves])
    places = np.linspace(low, high, 25)
    values = np.array([np.interp(places, x, y) for x, y in curves])
    spread = 2 * values.std(axis=0) / np.sqrt(len(curves))
    mean = values.mean(axis=0)
    band = ((mean - spread).tolist(), (mean + spread).tolist()) if len(curves) >= 5 else (None, None)
    return Series(method, places.tolist(), mean.tolist(), *band)


def _report(records: Sequence[Record]) -> Report:
    present = [method for method in METHODS if select(records, method=method)]
    panels = [
        Panel(
            {"top ten": "the ten largest groups", "rest": "the other groups"}[name],
            "share of true groups matched",
            "share of nodes that differ",
            [_mean_curve(records, method, name) for method in present],
            y_log=False,
        )
        for name in GROUPS
    ]
    trials, rows = Trials(records), []
    for name in GROUPS:
        for method in present:
            cells = [
                f"{shown(trials.mean(f'{name} recovered {t}', method=method), 2)} / "
                f"{shown(trials.mean(f'{name} distance {t}', method=method), 2)}"
                for t in THRESHOLDS[1::3]
            ]
            rows.append([name, method, str(len(trials.at(method=method))), *cells])
    headings = ["groups", "method", "seeds", *(f"threshold {t}" for t in THRESHOLDS[1::3])]
    story = "Share of nodes on which found and true groups differ, against the share of groups found: OJD1, TPM, NOJD1."
    table = Table("Recovered / distance, means over seeds", headings, rows)
    note = (
        f"{K} communities are asked for, without degree correction or variational steps, as in the paper; seeds part "
        "the nodes."
    )
    return Report([Figure("UNC28", story, panels)], [table], [note])


def _missing() -> str:
    return "" if is_local("UNC28") else "the Facebook networks are not on this computer; set CODIAG_DATA_DIR"


COMMUNITIES = Experiment(
    "communities",
    "Communities of a network",
    "A real network, UNC28 of Facebook, and its groups of at least 14 by dormitory, major and high school; 20 seeds.",
    _cells,
    _measure,
    _report,
    stages(20),
    missing=_missing,
)
SEEDS = "UNC28, 100 communities, 20 seeds, thresholds 0.02 to 0.7"
AREA = "mean over seeds of the mean difference of distances, TPM less OJD1, over the recovery both reach"
CLAIMS = [
    Claim(18, "communities", _more_accurate),
    Claim(19, "communities", _alike),
]
