"""Tensors of order four by the paper's two steps, and what more modes do (claims 15 and 32)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codiag import factor_error
from codiag.diagnosis import uniqueness_moduli
from codiag.diagonalize import TwoSided
from codiag.methods import NLS, NOJD
from codiag.synthetic import PlantedTensor, unit_factor
from codiag.tensors import FactoredTensor
from experiments.claims import Claim, Ruling, Trials, graded, in_range, of_parts, share_of
from experiments.fitting import silent_fit
from experiments.paper.trials import grid, history, n_trials, panel_of, table_of
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
    first = TwoSided(rank=rank)(np.einsum("abcd,lc,ld->lab", tensor, *rows, optimize=True), rng=rng)
    a, b = first.factor, first.right_factor
    along = [np.linalg.pinv(factor) for factor in (a, b)]  # a row for every component: it leaves that one alone
    along = [one / np.linalg.norm(one, axis=1, keepdims=True) for one in along]
    second = TwoSided(rank=rank)(np.einsum("abcd,la,lb->lcd", tensor, *along, optimize=True), rng=rng)
    order = _matched(np.abs(second.diagonals))  # matrix l holds component l
    return [a, b, second.factor[:, order], second.right_factor[:, order]]


def _by_slices(tensor: np.ndarray, rank: int, rng: np.random.Generator) -> list[np.ndarray]:
    flat = tensor.reshape(tensor.shape[0] * tensor.shape[1], -1)
    last = np.ascontiguousarray(flat.T).reshape(-1, *tensor.shape[:2])  # a matrix of the first two modes a slice
    first, second = (TwoSided(rank=rank)(stack, rng=rng) for stack in (last, flat.reshape(-1, *tensor.shape[2:])))
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
    story = (
        "Mean error of factors against the order of the tensor, with the same noise in every entry; "
        f"{n_trials(records)} trials a place, bars of two standard errors."
    )
    axes = {"d": "d", "order": "order", "eps": "eps"}
    names = [*METHODS, "modulus", "modulus doubled", "modulus doubled, without twins"]
    notes = [
        "Rank 8, weights between 1 and 2, independent Gaussian entries of the same deviation in all orders: contracted "
        "with unit vectors they are the same noise for a component. At order three there is one step of random "
        "projections."
    ]
    return Report(
        [Figure("Tensors of higher order", story, panels, "section-6-higher-order-tensors")],
        [table_of(records, axes, names, "Means")],
        notes,
    )


def _steps_up(trials: Trials, name: str, orders: Sequence[int]) -> list[tuple[Cell, float]]:
    """Return errors at one order more over errors before, with the place before."""
    found = []
    for d, order in PLACES:
        if order in orders and (d, order + 1) in PLACES:
            for eps in EPS:
                before, after = (trials.mean(name, d=d, order=one, eps=eps) for one in (order, order + 1))
                found.append(({"d": d, "eps": eps}, after / before))
    return found


def _two_steps(trials: Trials) -> Ruling:
    found = _steps_up(trials, TWO_STEPS, [3])
    ratios = [ratio for _, ratio in found]
    share = share_of(ratios, 0, 1.0)
    told = []
    for d in (20, 10):
        below = [place["eps"] for place, ratio in found if place["d"] == d and ratio < 1]
        told.append(f"d = {d}: " + (f"lower up to eps = {max(below):g}" if below else "nowhere lower"))
    text = f"error at order four over order three: {in_range(ratios)}; {', '.join(told)}"
    if trials.counts is None:
        places = combinations({"d": (20, 10), "order": [4], "eps": EPS})
        text += f"; with 2 d projections {in_range(trials.ratios([FEWER], [TWO_STEPS], places))} times as large"
    return Ruling(text, graded(share))


def _harmless(trials: Trials) -> Ruling:
    found = [ratio for _, ratio in _steps_up(trials, "oracle", [3, 4])]
    falls = all(ratio <= 1.05 for ratio in found)
    place = {"d": 20, "order": 3, "eps": EPS[0]}
    plain, doubled, rest = (
        trials.mean(name, **place) for name in ("modulus", "modulus doubled", "modulus doubled, without twins")
    )
    unchanged = abs(doubled - plain) < 1e-6
    text = (
        f"oracle at one order more: {in_range(found)}; mean of the largest modulus of uniqueness at d = 20 "
        f"{plain:.3f}, doubled {doubled:.3f} (between components that are not twins {rest:.3f})"
    )
    return Ruling(text, of_parts(falls, unchanged))


ORDERS = Experiment(
    "orders",
    "Section 6: tensors of higher order",
    "20^4 and 10^4 of rank 8 by the paper's two steps, on all d^2 slices and on 2 d projections, and by NOJD1 of all "
    "modes at once, beside orders three and five; Gaussian noise of the same deviation in every entry.",
    _cells,
    _measure,
    _report,
    history(20, 50),
)
CLAIMS = [
    Claim(15, "orders", _two_steps),
    Claim(32, "orders", _harmless),
]
