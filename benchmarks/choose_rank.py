"""How often the rank that is chosen is the one that was planted, beside rules that others use.

``python -m benchmarks.choose_rank --seeds 20 --jobs 16 --out FOLDER`` resumes where it stopped; ``--keep`` writes the
tables to RESULTS.md. It needs what codiag needs; where TLViz is installed (``pip install TLViz``), its tools are used
as its documentation says.
"""

from __future__ import annotations

import importlib.util
import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

import codiag
from benchmarks.trials import parser_of, show
from codiag.extending import Limits, minimize
from codiag.least_squares import unit_components
from codiag.methods import NLS
from codiag.metrics import consistency_of
from codiag.selection import Scan, scan
from codiag.synthetic import PlantedTensor
from codiag.tensors import FactoredTensor
from codiag.theory import largest_noise_term
from experiments.records import Cell, Record, Values, combinations, select
from experiments.reports import Report, Table
from experiments.runs import Experiment, seed_of

SHAPE, TRIED = (30, 25, 20), range(1, 11)
SETTLED = 50
"""Steps by which fits are improved for the rules of others: those of too high a rank end early."""

AXES = {
    "rank": range(2, 9),
    "noise": (0.01, 0.05, 0.2),
    "collinearity": (0.0, 0.5, 0.8),
    "weights": ("equal", "unequal"),
}
SETUP = (
    f"Tensors of shape {' x '.join(map(str, SHAPE))}, rank 2 to 8; in every mode each two components have the cosine "
    "that is called collinearity; weights are equal, or go down geometrically to a fifth; white noise of the stated "
    "share of the norm. Ranks 1 to 10 are tried. Every rule sees fits of codiag, after up to 50 more steps; the tools "
    "of TLViz 0.1.1 see such fits of two random halves, too. Core consistency: the largest rank with so many percent, "
    "or the last before the first with fewer (Bro and Kiers, 2003). Elbow: the largest ratio of successive gains in "
    "fit, of those that no later one exceeds, as DIFFIT (Timmerman and Kiers, 2000), without its critical value. "
    "TLViz: the rank before the largest fall of the factor match score between halves, as in its example of "
    "split-half analysis, and the largest rank with its core consistency of 50 %."
)
COLUMNS = (
    "Right: share of tensors with the rank that was planted. Above 2: of those whose smallest weight is more than "
    "twice its standard error, in the fit from the truth. Above noise: of those whose smallest component is worth "
    "more than the largest rank-one term of noise, so that it can be told from noise at all."
)


def planted(rank: int, noise: float, collinearity: float, weights: str, seed: int) -> PlantedTensor:
    """Draw components with one cosine between each two of them in every mode, and noise of a share of their norm."""
    rng = np.random.default_rng(seed)
    triangle = np.linalg.cholesky((1 - collinearity) * np.eye(rank) + collinearity)
    factors = tuple(np.linalg.qr(rng.standard_normal((size, rank)))[0] @ triangle.T for size in SHAPE)
    sizes = np.ones(rank) if weights == "equal" else np.geomspace(1, 0.2, rank)
    clean = FactoredTensor(sizes, factors, symmetric=False).to_dense()
    errors = rng.standard_normal(SHAPE)
    return PlantedTensor(clean + noise * np.linalg.norm(clean) / np.linalg.norm(errors) * errors, sizes, factors)


def consistent(table: Mapping[str, np.ndarray], least: float) -> int:
    """Return the largest rank with a core consistency of so many percent."""
    return _largest(table, table["core_consistency"] >= least)


def consistent_so_far(table: Mapping[str, np.ndarray], least: float) -> int:
    """Return the last rank before the first with a core consistency of fewer percent."""
    is_below = table["core_consistency"] < least
    return int(table["rank"][np.argmax(is_below) - 1]) if is_below.any() else int(table["rank"][-1])


def replicated(table: Mapping[str, np.ndarray], least: float) -> int:
    """Return the largest rank whose components have a product of cosines between halves of so much, each of them."""
    return _largest(table, table["congruence"] ** 2 >= least)


def both(table: Mapping[str, np.ndarray]) -> int:
    return _largest(table, (table["core_consistency"] >= 50) & (table["congruence"] ** 2 >= 0.9))


def elbow(table: Mapping[str, np.ndarray]) -> int:
    """Return the rank at which what one more explains falls most: the ratio of gains that no later one exceeds."""
    gains = np.diff(np.concatenate([[0.0], 1 - table["relative_error"] ** 2]))
    gains = np.maximum(gains, 1e-12)
    kept = np.flatnonzero(gains >= np.maximum.accumulate(gains[::-1])[::-1])
    ratios = gains[kept[:-1]] / gains[kept[1:]]
    return int(table["rank"][kept[np.argmax(ratios)]]) if ratios.size else int(table["rank"][0])


def predicted(table: Mapping[str, np.ndarray]) -> int:
    return int(table["rank"][np.argmin(table["held_out_error"])])


def _largest(table: Mapping[str, np.ndarray], is_in: np.ndarray) -> int:
    return int(np.max(table["rank"][is_in], initial=0))


RULES: Mapping[str, Callable[[Mapping[str, np.ndarray]], int]] = {
    "core consistency, 50 %": partial(consistent, least=50),
    "core consistency, 90 %": partial(consistent, least=90),
    "core consistency, 50 % so far": partial(consistent_so_far, least=50),
    "split halves, match 0.9": partial(replicated, least=0.9),
    "both, 50 % and 0.9": both,
    "elbow, as DIFFIT": elbow,
    "least held-out error": predicted,
}

TLVIZ = ("TLViz split halves", "TLViz core consistency, 50 %")


def tlviz_choices(fits: Mapping[int, FactoredTensor], tensor: np.ndarray, seed: int) -> dict[str, float]:
    """Return the ranks that TLViz's own tools lead to, as its documentation uses them; nothing where it is missing."""
    if importlib.util.find_spec("tlviz") is None:
        return {}
    from tlviz.factor_tools import factor_match_score
    from tlviz.model_evaluation import core_consistency

    rng = np.random.default_rng(seed)
    order = rng.permutation(tensor.shape[0])
    parts = [tensor[own] for own in np.array_split(order, 2)]
    halves = [
        _closer(part, scan(Scan.begun(codiag.Problem(part, max(fits)), rng), list(fits), rng).fits) for part in parts
    ]
    ranks = np.array(list(fits))
    match = [
        factor_match_score(*((one.weights, one.factors) for one in pair), consider_weights=False, skip_mode=0)
        for pair in ([half[rank] for half in halves] for rank in fits)
    ]
    consistency = np.array([core_consistency((one.weights, one.factors), tensor) for one in fits.values()])
    chosen = ranks[np.argmax(-np.diff(match))], np.max(ranks[consistency >= 50], initial=0)
    return dict(zip(TLVIZ, map(float, chosen), strict=True))


def _measured(cell: Cell, _: int) -> Values:
    """Return the rank that each rule chooses, and how far the smallest component is above noise."""
    axes = {name: cell[name] for name in AXES}
    tensor = planted(**axes, seed=seed_of("choose rank", axes, cell["seed"]))
    begin = time.process_time()
    choice = codiag.choose_rank(tensor.tensor, TRIED, seed=cell["seed"])
    values = {"cpu": time.process_time() - begin, "codiag": float(choice.rank or 0)}
    truth = NLS(init=(tensor.weights, tensor.factors), max_replacements=0, max_sweeps=1000)
    oracle = codiag.factorize(tensor.tensor, cell["rank"], method=truth)
    values["ratio"] = float(np.min(oracle.weights / oracle.weight_standard_errors))
    settled = _closer(tensor.tensor, choice.fits)
    table = _settled(choice, tensor.tensor, settled)
    values |= tlviz_choices(settled, tensor.tensor, seed_of("halves", axes, cell["seed"]))
    values["worth"] = math.sqrt(float(np.min(oracle._sensitivity.worth))) / largest_noise_term(oracle)
    return values | {name: float(rule(table)) for name, rule in RULES.items()}


def _closer(tensor: np.ndarray, fits: Mapping[int, codiag.Factorization]) -> dict[int, FactoredTensor]:
    """Return fits brought closer to their minima, which other rules are about, with unit columns."""
    found = {}
    for rank, fit in fits.items():
        outcome = minimize(codiag.Problem(tensor, rank), fit.tensor, Limits(max_sweeps=SETTLED))
        found[rank] = unit_components(outcome.components)
    return found


def _settled(
    choice: codiag.RankChoice, tensor: np.ndarray, fits: Mapping[int, FactoredTensor]
) -> dict[str, np.ndarray]:
    """Return the table of a choice with errors and core consistency of other fits."""
    known = np.linalg.norm(tensor)
    errors = [np.linalg.norm(tensor - fit.to_dense()) / known for fit in fits.values()]
    consistency = [consistency_of(fit, codiag.Problem(tensor, rank)) for rank, fit in fits.items()]
    return choice.table | {"relative_error": np.array(errors), "core_consistency": np.array(consistency)}


def _right(records: Sequence[Record], name: str, least: Mapping[str, float]) -> str:
    known = [one for one in records if name in one.values]  # by TLViz only where it is installed
    kept = [one for one in known if all(one.values[key] > value for key, value in least.items())]
    hits = [one.values[name] == one.cell["rank"] for one in kept]
    return f"{np.mean(hits):.1%} of {len(hits)}" if hits else "-"


def _report(records: Sequence[Record]) -> Report:
    conditions: list[Mapping[str, float]] = [{}, {"ratio": 2.0}, {"worth": 1.0}]
    rows = [(name, *(_right(records, name, least) for least in conditions)) for name in ("codiag", *RULES, *TLVIZ)]
    tables = [Table("All", ("rule", "right", "above 2", "above noise"), rows)]
    names = ("codiag", "core consistency, 50 %", "split halves, match 0.9", "elbow, as DIFFIT", TLVIZ[0])
    rows = []
    for place in combinations({name: AXES[name] for name in ("collinearity", "weights", "noise")}):
        here = select(records, **place)
        ratio = min((one.values["ratio"] for one in here), default=math.nan)
        rows.append(
            (*map(str, place.values()), f"{ratio:.3g}", *(_right(here, name, {"ratio": 2.0}) for name in names))
        )
    headings = ("collinearity", "weights", "noise", "smallest ratio", *names)
    tables.append(
        Table("Where the smallest weight is above twice its standard error, all ranks together", headings, rows)
    )
    places = combinations({**AXES})
    shares = [
        np.mean([one.values["codiag"] == one.cell["rank"] for one in select(records, **place)]) for place in places
    ]
    seconds = [one.values["cpu"] for one in records]
    summary = [
        ("places on the grid", str(len(places))),
        ("of these right for 90 % of the seeds or more", str(int(np.sum(np.array(shares) >= 0.9)))),
        ("CPU seconds a scan, median and worst", f"{np.median(seconds):.2f}, {np.max(seconds):.2f}"),
    ]
    return Report([], [*tables, Table("Places and times", ("", ""), summary)])


def _cells(n_seeds: int, _quick: bool) -> list[Cell]:
    return combinations({"seed": range(n_seeds), **AXES})


def experiment(n_seeds: int) -> Experiment:
    """Return the grid as what the harness runs."""
    return Experiment("choose-rank", "Choice of the rank", SETUP, partial(_cells, n_seeds), _measured, _report)


def main() -> None:
    parser = parser_of("choose_rank", __doc__)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    grid = experiment(options.seeds)
    show("choose_rank", options, [grid], f"## {grid.title}\n{SETUP} {COLUMNS}")


if __name__ == "__main__":
    main()
