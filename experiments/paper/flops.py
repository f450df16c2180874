"""What methods cost: operations counted, not computed, and the time they take (claims 11 and 16)."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from codiag.diagonalize import QRJ1D, Jacobi
from codiag.extending import Method
from codiag.methods import ALS, NOJD, OJD, TPM
from codiag.tensors import symmetrize
from experiments.claims import Claim, Ruling, Trials, in_range, of_parts
from experiments.estimators.counting import Counter, jacobi_sweep, power_step, qrj1d_sweep
from experiments.estimators.limits import GramLathauwer
from experiments.estimators.slices import Lathauwer
from experiments.fitting import silent_fit
from experiments.paper.trials import grid, history, n_trials, panel_of, table_of
from experiments.records import Cell, Record, Values
from experiments.reports import Figure, Report
from experiments.runs import Experiment
from experiments.simulated import paper_tensor

SIZES = (6, 9, 12, 16, 20, 25)
PLACES = [{"d": d} for d in SIZES]
L = 5
TOL = 1e-4
"""The authors' tolerance."""
KINDS = ("Jacobi sweep", "Jacobi sweep, k = d/3", "QRJ1D sweep", "power step")


def _cells(quick: bool) -> list[Cell]:
    return [cell for cell in grid({"d": SIZES}, 25) if not quick or (cell["trial"] < 2 and cell["d"] <= 16)]


def formulas(d: int, n: int) -> dict[str, float]:
    """Return the operations that the paper's appendix gives, n matrices of size d."""
    k = d // 3
    return {
        "Jacobi sweep": 2 * d * n * (d * d - d * (d - 1) / 2),
        "Jacobi sweep, k = d/3": 2 * d * n * (d * k - k * (k - 1) / 2),
        "QRJ1D sweep": 4.0 * d**3 * n,
        "power step": float(d**3),
    }


def counted(tensor: np.ndarray, n: int, rng: np.random.Generator) -> dict[str, Counter]:
    """Return the operations that one step of each kind really makes on a tensor."""
    size = tensor.shape[0]
    stack = np.einsum("abc,lc->lab", tensor, rng.standard_normal((n, size)))
    counts = {}
    for kind in KINDS:
        counter = Counter()
        if kind == "power step":
            power_step(tensor, rng.standard_normal((size,)), counter)
        elif kind == "QRJ1D sweep":
            qrj1d_sweep(stack.copy(), np.eye(size), counter)
        else:
            jacobi_sweep(stack.copy(), np.eye(size), counter, leading=None if kind == KINDS[0] else size // 3)
        counts[kind] = counter
    return counts


def _measure(cell: Cell, seed: int) -> Values:
    d = cell["d"]
    rng = np.random.default_rng([seed, 1])
    values: Values = {}
    orthogonal = symmetrize(paper_tensor(d, d, orthogonal=True, noise=1e-3, model="authors", seed=seed).tensor)
    free = symmetrize(paper_tensor(d, d, orthogonal=False, noise=1e-3, model="authors", seed=seed).tensor)
    few, many = counted(orthogonal, L, rng), counted(free, 2 * d, rng)
    for kind, formula in formulas(d, L).items():
        values[f"{kind} over formula"] = few[kind].flops / formula
        values[f"{kind}, multiplications"] = few[kind].multiplications / formula
    start = int(rng.integers(2**31))
    for name, (tensor, method) in _contest(orthogonal, free, d).items():
        begin = time.process_time()
        fit = silent_fit(tensor, d, method=method, symmetric=True, seed=start)
        values[f"{name} seconds"] = time.process_time() - begin
        values[name] = _total(name, d, [stage.n_iter for stage in fit.history], (few, many), fit)
    return values


def _contest(orthogonal: np.ndarray, free: np.ndarray, d: int) -> dict[str, tuple[np.ndarray, Method]]:
    return {
        "OJD1": (orthogonal, OJD(n_projections=L, diagonalizer=Jacobi(tol=TOL))),
        "TPM": (orthogonal, TPM(n_restarts=1, tol=TOL)),
        "NOJD1": (free, NOJD(n_projections=2 * d, diagonalizer=QRJ1D(tol=TOL, max_sweeps=200), plug_in="inverse")),
        "Lathauwer": (free, Lathauwer()),
        "Lathauwer (Gram)": (free, GramLathauwer()),
        "ALS": (free, ALS()),
        "NOJD1 (UWEDGE)": (free, NOJD(n_projections=2 * d, plug_in="inverse")),
    }


def _total(
    name: str, d: int, sweeps: list[int], counts: tuple[dict[str, Counter], dict[str, Counter]], fit: object
) -> float:
    """Return all operations of a fit: counted where there is counted code, its own account elsewhere."""
    few, many = counts
    if name == "OJD1":  # five projections, then d of them
        return 2.0 * d**3 * (L + d) + few["Jacobi sweep"].flops * (sweeps[0] + sweeps[1] * d / L)
    if name == "TPM":
        return float(few["power step"].flops * sum(sweeps))
    if name == "NOJD1":  # 2 d projections, then d of them
        return 2.0 * d**3 * 3 * d + many["QRJ1D sweep"].flops * (sweeps[0] + sweeps[1] / 2)
    return float(sum(stage.flops for stage in fit.history))  # type: ignore[attr-defined]


def _report(records: Sequence[Record]) -> Report:
    names = ("OJD1", "TPM", "NOJD1", "NOJD1 (UWEDGE)", "Lathauwer", "Lathauwer (Gram)", "ALS")
    over = [f"{kind} over formula" for kind in KINDS]
    seconds = [f"{name} seconds" for name in names]
    panels = [
        panel_of(records, over, "d", "counted over formula", "size d", "operations over formula", y_log=False),
        panel_of(records, names, "d", "operations in all", "size d = k", "operations", x_log=True),
        panel_of(records, seconds, "d", "time", "size d = k", "CPU seconds", x_log=True),
    ]
    story = (
        "Operations of a sweep over the paper's formulas, operations of whole fits, and their time, against the size; "
        f"{n_trials(records)} trials a place, bars of two standard errors."
    )
    notes = [
        "Operations of Jacobi, QRJ1D and power steps are counted by arithmetic that counts itself, additions and "
        "multiplications alike; totals are those times the sweeps that the fits took at the authors' "
        "tolerance, with one "
        "restart of TPM. Lathauwer and ALS count by the leading terms of their products and decompositions.",
        "Lathauwer (Gram) finds the null space from the Gram matrix of the system, which is ours.",
    ]
    alone = [f"{kind}, multiplications" for kind in KINDS]
    tables = [table_of(records, {"d": "d"}, [*over, *alone], "Counted over formula, all and multiplications alone")]
    tables.append(table_of(records, {"d": "d"}, names, "Operations of whole fits"))
    tables.append(table_of(records, {"d": "d"}, seconds, "CPU seconds"))
    return Report([Figure("Operations and time", story, panels, "supplement-operations-and-time")], tables, notes)


def _formulas_hold(trials: Trials) -> Ruling:
    texts, near = [], []
    for kind in KINDS:
        found = [trials.mean(f"{kind} over formula", d=d) for d in SIZES]
        limit, product = found[-1], trials.mean(f"{kind}, multiplications", d=SIZES[-1])
        near.append(min(abs(limit - 1), abs(product - 1)) <= 0.05)
        texts.append(f"{kind} {limit:.2f} ({product:.2f})")
    totals = trials.ratios(["TPM"], ["OJD1"], PLACES)
    text = f"counted over formula (multiplications alone) at d = {SIZES[-1]}: " + ", ".join(texts)
    text += f"; whole fits, TPM over OJD1: {in_range(totals)}"
    return Ruling(text, of_parts(*near))


def _faster(trials: Trials) -> Ruling:
    flops = trials.ratios(["Lathauwer"], ["NOJD1"], PLACES)
    clock = trials.ratios(["Lathauwer seconds"], ["NOJD1 seconds"], PLACES)
    ours = trials.ratios(["Lathauwer seconds"], ["NOJD1 (UWEDGE) seconds"], PLACES)
    text = (
        f"Lathauwer over NOJD1 at d = k = {SIZES[-1]}: operations {flops[-1]:.2g}, time {clock[-1]:.2g} (from "
        f"{flops[0]:.2g} and {clock[0]:.2g} at {SIZES[0]}); with UWEDGE for QRJ1D time {ours[-1]:.2g}"
    )
    return Ruling(text, of_parts(flops[-1] > 1, clock[-1] > 1))


FLOPS = Experiment(
    "flops",
    "Supplement: running time in flops",
    "d = k = 6 to 25, noise of the authors' scripts, eps = 1e-3; OJD1 with five projections, NOJD1 with 2 d, TPM with "
    "one restart, all at the authors' tolerance of 1e-4.",
    _cells,
    _measure,
    _report,
    history(20, 25),
)
CLAIMS = [
    Claim(11, "flops", _faster),
    Claim(16, "flops", _formulas_hold),
]
