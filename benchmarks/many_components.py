"""Nearly as many components as can be determined: symmetric orders four and six.

``python -m benchmarks.many_components --seeds 20 --keep`` resumes where it stopped and writes the table to RESULTS.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from benchmarks.orders import COLUMNS, OURS, SETUP, measured, report_of
from benchmarks.trials import parser_of, show
from experiments.records import Cell, Record, combinations
from experiments.reports import Report
from experiments.runs import Experiment

EVEN: dict[str, Sequence[Any]] = {
    "shape": ["30^4, rank 250", "20^4, rank 150", "20^4, rank 100", "20^4, rank 40", "8^6, rank 60"],
    "symmetric": [True],
    "weights": ["normal", "equal"],
    "noise": [1e-3],
}


def _cells(n_seeds: int, _quick: bool) -> list[Cell]:
    return combinations({**EVEN, "seed": range(n_seeds), "method": [OURS]})


def _report(records: Sequence[Record]) -> Report:
    return report_of(combinations(EVEN), records)


def main() -> None:
    parser = parser_of("many_components", __doc__)
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    cells = partial(_cells, options.seeds)
    grid = Experiment("many-components", "Many components", SETUP, cells, measured, _report)
    show("many_components", options, [grid], f"## {grid.title}\n{SETUP} {COLUMNS.split(' Others')[0]}")


if __name__ == "__main__":
    main()
