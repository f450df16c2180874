"""How joint diagonalization converges: to which minimum, and how fast (claims 24, 26 and 27)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import normaltest

from codiag import match_components
from codiag.diagonalize import QRJ1D, Jacobi, OrthogonalNewton
from codiag.extending import Diagonalizer
from codiag.synthetic import matrix_stack, mild_factor, orthonormal_factor
from experiments.claims import Claim, Ruling, Trials, of_parts, over
from experiments.paper.trials import curve, grid, n_trials, panel_of, shown, stage_of, table_of
from experiments.records import Cell, Record, Values, select
from experiments.reports import Figure, Panel, Report, Series, Table
from experiments.runs import Experiment

SIZE = 15
LEVEL_EPS = (1e-4, 1e-3, 1e-2, 1e-1)
BASIN_EPS = (1e-3, 1e-2, 3e-2, 0.1, 0.2, 0.3, 0.5, 1.0)
RATE_EPS = (0.0, 1e-3)
MOST_SWEEPS = 30
HIGHER = 1e-6
"""Share by which an objective must be above the lowest to be another minimum."""


def _cells(quick: bool) -> list[Cell]:
    cells = grid({"what": ["level"], "eps": LEVEL_EPS}, 1000)
    cells += grid({"what": ["basin"], "eps": BASIN_EPS}, 200)
    cells += grid({"what": ["rate"], "eps": RATE_EPS}, 30)
    few = {"level": 50, "basin": 10, "rate": 4}
    return [cell for cell in cells if not quick or cell["trial"] < few[cell["what"]]]


def _stage(cell: Cell) -> float:
    if cell["what"] == "basin":
        return stage_of(cell["trial"], 120, 200)
    return stage_of(cell["trial"], 1000 if cell["what"] == "level" else 30)


def _measure(cell: Cell, seed: int) -> Values:
    if cell["what"] == "rate":
        return _rates(cell["eps"], seed)
    stack = matrix_stack(orthonormal_factor(SIZE, SIZE, [seed, 1]), SIZE, noise=cell["eps"], rng=[seed, 2]).matrices
    return _level(stack, cell["eps"], seed) if cell["what"] == "level" else _basin(stack, seed)


def _turned_jacobi(stack: np.ndarray, turn: np.ndarray) -> float:
    """Return the objective that Jacobi reaches from a start: the identity, once the matrices are turned."""
    turned = turn.T @ stack @ turn
    return Jacobi(tol=1e-10, max_sweeps=300)((turned + turned.transpose(0, 2, 1)) / 2).off_diagonal


def _level(stack: np.ndarray, eps: float, seed: int) -> Values:
    found = _turned_jacobi(stack, orthonormal_factor(SIZE, SIZE, [seed, 3]))
    lowest = min(found, OrthogonalNewton(tol=1e-12, max_sweeps=500)(stack, rng=seed).off_diagonal)
    level = np.sqrt(found / (SIZE * SIZE * (SIZE - 1))) / eps
    return {"objective over eps": float(level), "above the lowest": float(found > lowest * (1 + HIGHER))}


def _basin(stack: np.ndarray, seed: int) -> Values:
    """Compare the start at the eigenvectors of one matrix with the lowest of many."""
    own = _turned_jacobi(stack, np.linalg.eigh(stack[0])[1])
    others = [_turned_jacobi(stack, orthonormal_factor(SIZE, SIZE, [seed, 1]))]  # from the truth
    others += [_turned_jacobi(stack, orthonormal_factor(SIZE, SIZE, [seed, 4, start])) for start in range(8)]
    lowest = min(own, *others)
    reached = [value <= lowest * (1 + HIGHER) for value in (own, *others[1:])]
    return {"eigenvectors of one": float(reached[0]), "random": float(np.mean(reached[1:]))}


def _rates(eps: float, seed: int) -> Values:
    values = {}
    methods: dict[str, tuple[Diagonalizer, np.ndarray]] = {
        "Jacobi": (Jacobi(tol=1e-15), orthonormal_factor(20, 20, [seed, 1])),
        "QRJ1D": (QRJ1D(tol=1e-15), mild_factor(8, 8, [seed, 1])),
    }
    for name, (method, factor) in methods.items():
        stack = matrix_stack(factor, factor.shape[0], noise=eps, rng=[seed, 2]).matrices
        errors = _sweep_errors(method, stack)
        values[name] = _exponent(errors)
        values |= {f"{name}, sweep {sweep}": errors[sweep] for sweep in range(12)}
    return values


def _sweep_errors(method: Diagonalizer, stack: np.ndarray) -> np.ndarray:
    """Return the distance from the end after each sweep."""
    last = replace(method, max_sweeps=20 * MOST_SWEEPS)(stack).factor
    errors = []
    for sweeps in range(1, MOST_SWEEPS + 1):
        factor = match_components(replace(method, max_sweeps=sweeps)(stack).factor, last).factors[0]
        errors.append(float(np.max(np.linalg.norm(factor - last, axis=0))))
        if errors[-1] < 1e-13:
            break
    return np.array(errors + [errors[-1]] * (MOST_SWEEPS - len(errors)))


def _exponent(errors: np.ndarray) -> float:
    """Return p of e_next = c e^p, from the last three sweeps above rounding; NaN where there are none."""
    triples = [t for t in range(errors.size - 2) if 0.5 > errors[t] > errors[t + 1] > errors[t + 2] > 1e-13]
    if not triples:
        return float("nan")
    before, here, after = np.log(errors[triples[-1] : triples[-1] + 3])
    return float((after - here) / (here - before))


def _report(records: Sequence[Record]) -> Report:
    level, basin, rate = (select(records, what=what) for what in ("level", "basin", "rate"))
    panels, tables = [], []
    if level:
        panels.append(_level_panel(level))
        tables.append(_level_table(level))
    if basin:
        names = ("eigenvectors of one", "random")
        panels.append(
            panel_of(basin, names, "eps", "global minimum", "noise eps", "share of starts", x_log=True, y_log=False)
        )
        tables.append(table_of(basin, {"eps": "eps"}, names, "Share of starts that reach the lowest minimum"))
    for eps in RATE_EPS:
        here = select(rate, eps=eps)
        if here:
            panels.append(_rate_panel(here, eps))
    if rate:
        tables.append(table_of(rate, {"eps": "eps"}, ("Jacobi", "QRJ1D"), "Exponent of convergence"))
    story = (
        "Objectives of runs from random starts, how often starts reach the global minimum, and errors sweep by sweep; "
        f"{n_trials(level)}, {n_trials(basin)} and {n_trials(rate)} trials a place, bars of two standard errors."
    )
    notes = [
        f"Level and basin: d = L = {SIZE}, symmetric Gaussian noise of deviation eps in each entry. Rates: "
        "as many matrices as their size, 20 (Jacobi) and 8 (QRJ1D), distance of factors from those at the end."
    ]
    return Report([Figure("Convergence", story, panels, "section-7-convergence")], tables, notes)


def _level_panel(level: Sequence[Record]) -> Panel:
    series = []
    for place, eps in enumerate(LEVEL_EPS):
        values = np.array([record.values["objective over eps"] for record in select(level, eps=eps)])[:300]
        jitter = np.random.default_rng(0).uniform(-0.3, 0.3, values.size)
        series.append(Series(f"eps = {eps:g}", (place + jitter).tolist(), values.tolist(), kind="points"))
    ticks = [f"{eps:g}" for eps in LEVEL_EPS]
    return Panel(
        "objectives", "noise eps", "root mean square off-diagonal over eps", series, y_log=False, x_ticks=ticks
    )


def _level_table(level: Sequence[Record]) -> Table:
    trials, rows = Trials(level), []
    for eps in LEVEL_EPS:
        values = trials.values("objective over eps", eps=eps)
        if values.size:
            chance = normaltest(values).pvalue if values.size >= 20 else np.nan
            above = int(trials.values("above the lowest", eps=eps).sum())
            rows.append(
                [f"{eps:g}", str(values.size), shown(values.mean()), shown(values.std()), shown(chance), str(above)]
            )
    headings = ["eps", "runs", "mean over eps", "deviation", "p of a normal shape", "runs above the lowest"]
    return Table("Objectives", headings, rows)


def _rate_panel(records: Sequence[Record], eps: float) -> Panel:
    series = []
    for name in ("Jacobi", "QRJ1D"):
        points = [Record({"sweep": s + 1}, {"e": r.values[f"{name}, sweep {s}"]}) for r in records for s in range(12)]
        series.append(curve(points, "e", "sweep", name))
    return Panel(f"sweep by sweep, eps = {eps:g}", "sweeps", "mean distance from the end", series)


def _gaussian(trials: Trials) -> Ruling:
    above = [float(trials.values("above the lowest", what="level", eps=eps).sum()) for eps in LEVEL_EPS]
    found = [trials.values("objective over eps", what="level", eps=eps) for eps in LEVEL_EPS]
    chances = [float(normaltest(values).pvalue) if values.size >= 20 else np.nan for values in found]
    text = (
        f"runs above the lowest minimum: {sum(above):.0f}; mean over eps {over(np.mean, found[0]):.3f}, deviation "
        f"{over(np.std, found[0]):.3f}; normality p = " + ", ".join(f"{p:.2g}" for p in chances)
    )
    normal = all(p > 0.01 / len(chances) for p in chances)
    return Ruling(text, of_parts(not any(above), normal))


def _quadratic(trials: Trials) -> Ruling:
    texts, reached = [], []
    for eps in RATE_EPS:
        for name in ("Jacobi", "QRJ1D"):
            value = over(np.median, trials.values(name, what="rate", eps=eps))
            texts.append(f"{name} {value:.2f} at eps = {eps:g}")
            reached.append(value >= 1.8)
    return Ruling("median exponent: " + ", ".join(texts), of_parts(*reached))


def _basin_of_one(trials: Trials) -> Ruling:
    shares = [trials.mean("eigenvectors of one", what="basin", eps=eps) for eps in BASIN_EPS]
    whole = [eps for eps, share in zip(BASIN_EPS, shares, strict=True) if share >= 1]
    last = f"the largest eps with all runs is {max(whole):g}" if whole else "at no eps all runs"
    text = "runs that reach the lowest: " + ", ".join(
        f"{100 * share:.0f} % at {eps:g}" for eps, share in zip(BASIN_EPS, shares, strict=True)
    )
    return Ruling(f"{text}; {last}", "yes" if shares[0] >= 1 else "no")


CONVERGENCE = Experiment(
    "convergence",
    "Section 7: convergence",
    "Random matrices with common orthonormal factors and Gaussian diagonals, symmetric Gaussian noise of deviation eps "
    "in each entry.",
    _cells,
    _measure,
    _report,
    _stage,
)
CLAIMS = [
    Claim(24, "convergence", _gaussian, enough=1000, halves=True),
    Claim(26, "convergence", _quadratic),
    Claim(27, "convergence", _basin_of_one),
]
