"""Tensors of order four by the paper's two steps, and what more modes do (claims 15 and 32)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag import factor_error
from codiag.diagonalize import TwoSided
from codiag.methods import NLS, NOJD
from codiag.synthetic import PlantedTensor, unit_factor
from codiag.tensors import FactoredTensor
from codiag.theory import uniqueness_moduli
from experiments.claims import Claim, Ruling, Trials, in_range
from experiments.fitting import silent_fit
from experiments.paper.trials import grid, panel_of, stages, table_of
from experiments.records import Cell, Record, Values, combinations, select
from experiments.reports import Figure, Report
from experiments.runs import Experiment

RANK = 8
EPS = (1e-3, 3e-3, 1e-2, 3e-2)
PLACES = ((20, 3), (20, 4), (10, 3), (10, 4), (10, 5))
"""Sizes and orders."""
TWO_STEPS, FEWER = "two steps", "two steps, 2 d projections"
METHODS = (TWO_STEPS, FEWER, "NOJD1", "Auto", "oracle")


def _cells(quick: bool) -> list[Cell]:
    cells = []
    for size, order in PLACES:
        cells += grid({"d": [size], "order": [order], "eps": EPS}, 50)
    return [cell for cell in cells if not quick or (cell["d"] == 20 and cell["trial"] < 3)]


def _measure(cell: Cell, seed: int) -> Values:
    size, order = cell["d"], cell["order"]
    rng = np.random.default_rng(seed)
    factors = tuple(unit_factor(size, RANK, rng) for _ in range(order))
    weights = rng.uniform(1, 2, RANK) * rng.choice([-1.0, 1.0], RANK)
    clean = FactoredTensor(weights, factors).to_dense()
    problem = PlantedTensor(clean + cell["eps"] * rng.standard_normal(clean.shape), weights, factors)
    start = int(rng.integers(2**31))
    values = {}
    for name, method in {
        "NOJD1": NOJD(n_projections=2 * size, plug_in="inverse"),
        "Auto": None,
        "oracle": NLS(init=(weights, factors), max_replacements=0),
    }.items():
        values[name] = factor_error(silent_fit(problem.tensor, RANK, method=method, seed=start), problem)
    if order == 3:  # one step: random projections of the last mode
        step = NOJD(plug_in=False, n_projections=2 * size)
        values[TWO_STEPS] = factor_error(silent_fit(problem.tensor, RANK, method=step, seed=start), problem)
    if order == 4:
        for name, all_slices in ((TWO_STEPS, True), (FEWER, False)):
            found = two_steps(problem.tensor, RANK, np.random.default_rng(start), all_slices=all_slices)
            values[name] = factor_error(found, problem)
    return values | _moduli(factors, weights, rng)


def two_steps(tensor: np.ndarray, rank: int, rng: np.random.Generator, *, all_slices: bool = True) -> list[np.ndarray]:
    """Factorize a tensor of order four as section 6 of the paper says.

    The last two modes are projected, which gives matrices with the factors of the first two; then the first two modes
    are projected, which gives matrices with the factors of the last two. The projections are all slices, one for each
    of the d^2 directions, in both steps; or 2 d pairs of random vectors, then inverse factors of the first two modes.
    """
    if all_slices:
        return _by_slices(tensor, rank, rng)
    rows = [rng.standard_normal((2 * max(tensor.shape), size)) for size in tensor.shape[2:]]
    rows = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in rows]
    first = TwoSided(rank=rank)(np.einsum("abcd,lc,ld->lab", tensor, *rows, optimize=True), seed=rng)
    a, b = first.factor, first.right_factor
    along = [np.linalg.pinv(factor) for factor in (a, b)]  # a row for every component: it leaves that one alone
    along = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in along]
    second = TwoSided(rank=rank)(np.einsum("abcd,la,lb->lcd", tensor, *along, optimize=True), seed=rng)
    order = _matched(np.abs(second.diagonals))  # matrix l holds component l
    return [a, b, second.factor[:, order], second.right_factor[:, order]]


def _by_slices(tensor: np.ndarray, rank: int, rng: np.random.Generator) -> list[np.ndarray]:
    flat = tensor.reshape(tensor.shape[0] * tensor.shape[1], -1)
    last = np.ascontiguousarray(flat.T).reshape(-1, *tensor.shape[:2])  # a matrix of the first two modes a slice
    first, second = (TwoSided(rank=rank)(stack, seed=rng) for stack in (last, flat.reshape(-1, *tensor.shape[2:])))
    products = np.einsum("ar,br->abr", first.factor, first.right_factor).reshape(-1, rank)
    weights = second.diagonals / np.linalg.norm(second.diagonals, axis=0)  # of the slices: products of a and b
    order = _matched(np.abs(products.T @ weights))
    return [first.factor, first.right_factor, second.factor[:, order], second.right_factor[:, order]]


def _matched(strength: np.ndarray) -> np.ndarray:
    """Return the column that belongs to each row: the strongest pair first, then the strongest of the rest."""
    strength, order = strength.copy(), np.empty(strength.shape[0], dtype=int)
    for _ in range(order.size):
        row, column = np.unravel_index(np.argmax(strength), strength.shape)
        order[row] = column
        strength[row, :] = strength[:, column] = -1
    return order


def _moduli(factors: Sequence[np.ndarray], weights: np.ndarray, rng: np.random.Generator) -> Values:
    """Return the largest modulus of uniqueness of projections, and of the same doubled, twins left out and not."""
    directions = rng.standard_normal((2 * factors[-1].shape[0], factors[-1].shape[0]))
    diagonals = (directions @ factors[-1]) * weights
    doubled = uniqueness_moduli(np.hstack([diagonals, -diagonals]))
    twins = np.tile(np.eye(RANK, dtype=bool), (2, 2))
    return {
        "modulus": float(np.max(np.abs(uniqueness_moduli(diagonals) - np.eye(RANK)))),
        "modulus doubled": float(np.max(np.abs(doubled - np.eye(2 * RANK)))),
        "modulus doubled, without twins": float(np.max(np.abs(np.where(twins, 0, doubled)))),
    }


def _report(records: Sequence[Record]) -> Report:
    panels = [
        panel_of(
            select(records, d=d, eps=eps),
            METHODS,
            "order",
            f"d = {d}, eps = {eps:g}",
            "order of the tensor",
            "mean error of factors",
        )
        for d in (20, 10)
        for eps in (EPS[1], EPS[2], EPS[3])
        if select(records, d=d, eps=eps)
    ]
    story = "Mean error of factors against the order of the tensor, with the same noise in every entry."
    axes = {"d": "d", "order": "order", "eps": "eps"}
    names = [*METHODS, "modulus", "modulus doubled", "modulus doubled, without twins"]
    notes = [
        "Rank 8, weights between 1 and 2, independent Gaussian entries of the same deviation in all orders: contracted "
        "with unit vectors they are the same noise for a component. At orders three and five the two steps are NOJD1."
    ]
    return Report([Figure("More modes", story, panels)], [table_of(records, axes, names, "Means")], notes)


def _falls(trials: Trials, name: str, slack: float = 1.0) -> tuple[list[float], bool]:
    """Return errors at one order more over errors before, and whether all are below, or nearly."""
    found = []
    for d, order in PLACES:
        if (d, order + 1) in PLACES:
            for eps in EPS:
                before, after = (trials.mean(name, d=d, order=one, eps=eps) for one in (order, order + 1))
                found.append(after / before)
    return found, all(ratio < slack for ratio in found if np.isfinite(ratio))


def _two_steps(trials: Trials) -> Ruling:
    ratios = trials.ratios([TWO_STEPS], ["NOJD1"], combinations({"d": (20, 10), "order": [4], "eps": EPS}))
    found, falls = _falls(trials, TWO_STEPS)
    level = all(ratio <= 1.25 for ratio in ratios if np.isfinite(ratio))
    text = f"two steps over NOJD1 of all modes: {in_range(ratios)}; error at one order more: {in_range(found)}"
    return Ruling(text, "yes" if level and falls else "partly" if level or falls else "no")


def _harmless(trials: Trials) -> Ruling:
    found, falls = _falls(trials, "oracle", 1.05)
    place = {"d": 20, "order": 3, "eps": EPS[0]}
    plain, doubled, rest = (
        trials.mean(name, **place) for name in ("modulus", "modulus doubled", "modulus doubled, without twins")
    )
    unchanged = abs(doubled - plain) < 1e-6
    text = (
        f"oracle at one order more: {in_range(found)}; largest modulus of uniqueness {plain:.3f}, doubled "
        f"{doubled:.3f} (between components that are not twins {rest:.3f})"
    )
    return Ruling(text, "yes" if falls and unchanged else "partly" if falls or unchanged else "no")


ORDERS = Experiment(
    "orders",
    "Tensors of order four and more",
    "20 x 20 x 20 x 20 of rank 8 by the paper's two steps and by NOJD1 of all modes at once, beside orders three to "
    "five; Gaussian noise of the same deviation in every entry.",
    _cells,
    _measure,
    _report,
    stages(20, 50),
)
CLAIMS = [
    Claim(15, "orders", _two_steps),
    Claim(32, "orders", _harmless),
]
