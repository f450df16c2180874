"""Measure the figures of the README again: ``python -m benchmarks.readme``, before a release.

It writes the record, ``benchmarks/readme.json``, and the table of the README; a test compares all numbers of the README
with the record. Parts may be named: ``python -m benchmarks.readme limit large``. With ``--out FOLDER`` the records of
trials are kept, and a run that was stopped goes on.

``--compare`` writes nothing: it runs a few seeds of every row, and fails if codiag finds the best fit less often than
the record says, or takes longer compared with the others, who run in the same process.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import codiag
from benchmarks import baseline_ajd, baseline_tests, constrained, scale
from benchmarks.grids import BASELINES, FULL, SLOW_BASELINES
from benchmarks.measure import machine
from benchmarks.solvers import all_solvers
from experiments.records import Cell, Record, select
from experiments.reports import markdown
from experiments.runs import Experiment, read, run

HERE = Path(__file__).parent
RECORD, README = HERE / "readme.json", HERE.parent / "README.md"
LIBRARIES = {
    "codiag": ("auto", "codiag"),
    "TensorLy": ("TensorLy",),
    "pyttb": ("pyttb",),
    "pytensorlab": ("pytensorlab",),
}
"""Columns of the table, and how the names of their methods begin."""
FEW_SEEDS, SLACK, SLOWER = 5, 0.2, 2.0
"""Of a comparison: seeds, the share that one of them is, and a ratio of times that a busy machine does not explain."""
Row = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """A row of the table: its words, the experiment and the place on its axes, and the seeds."""

    words: str
    experiment: Experiment
    values: Mapping[str, Any]

    def row(self, records: Sequence[Record]) -> Row:
        """Return the share of fits at the optimum and the median time for every library; the better of two methods."""
        here = [one for one in select(records, **self.values) if not one.refused]
        methods = list(dict.fromkeys(one.cell["method"] for one in here))
        cells = {}
        for library, beginnings in LIBRARIES.items():
            own = [_cell(select(here, method=name)) for name in methods if name.startswith(beginnings)]
            if own:
                cells[library] = max(own, key=lambda cell: (cell["share"], -cell["seconds"]))
        return {"tensor": self.words, "runs": len({one.cell["seed"] for one in here}), "cells": cells}


def _cell(records: Sequence[Record]) -> dict[str, float]:
    seconds = float(np.median([one.values["cpu"] for one in records]))
    return {"share": float(np.mean([_at_optimum(one.values) for one in records])), "seconds": round(seconds, 4)}


def _at_optimum(values: Mapping[str, float]) -> bool:
    """Tell whether a fit is as good as that from the truth: within 0.1 % or 1 %, as the experiment defines it."""
    return bool(values["success"]) if "oracle" not in values else values["objective"] < 1.01 or values["error"] < 1e-8


def _limit(n_seeds: int) -> list[Place]:
    grid = replace(FULL[0], n_seeds=min(n_seeds, 10))
    symmetric = "50 x 50 x 50, symmetric, rank 10, noise 1 %"
    words = {
        symmetric: (10, 1e-2),
        "the same, rank 50, noise 0.1 %": (50, 1e-3),
        "the same, rank 50, noise 1 %": (50, 1e-2),
    }
    places = []
    for name, (rank, noise) in words.items():
        axes: dict[str, list[Any]] = {"size": [50], "rank": [rank], "noise": [noise]}
        places.append(Place(name, replace(grid, axes=axes).experiment(all_solvers()), {"rank": rank, "noise": noise}))
    return places


def _optima(n_seeds: int) -> list[Place]:
    axes: dict[str, list[Any]] = {"shape": ["20x20x20"], "rank": [20], "noise": [1e-3]}
    grid = replace(FULL[-1], n_seeds=n_seeds, axes=axes, methods=["auto", *BASELINES, *SLOW_BASELINES])
    return [Place("20 x 20 x 20, rank 20, noise 0.1 %", grid.experiment(all_solvers()), {})]


def _scenario(name: str, n_seeds: int, methods: Sequence[str], **values: Any) -> Experiment:
    whole = constrained.experiment(name, n_seeds)
    cells = [one for one in whole.cells(False) if one["method"] in methods and values.items() <= one.items()]
    return replace(whole, cells=partial(_given, cells))


def _given(cells: list[Cell], _quick: bool) -> list[Cell]:
    return cells


def _missing(n_seeds: int) -> list[Place]:
    methods = ("codiag", "TensorLy masked ALS", "pyttb masked GCP")
    words = {"20 x 20 x 20, rank 5, noise 1 %, 60 % missing": 0.6, "the same, 90 % missing": 0.9}
    return [
        Place(name, _scenario("random", n_seeds, methods, missing=share), {"missing": share})
        for name, share in words.items()
    ]


def _spectra(n_seeds: int) -> list[Place]:
    words = "spectra, 15 x 40 x 25, rank 4, noise 2 %, non-negative"
    return [Place(words, _scenario("eem", n_seeds, ("codiag", "TensorLy HALS")), {})]


TABLE: dict[str, Callable[[int], list[Place]]] = {
    "limit": _limit,
    "optima": _optima,
    "missing": _missing,
    "spectra": _spectra,
}
"""The rows of the table that are measured on many seeds, by part."""


def measured(part: str, n_seeds: int, folder: Path) -> dict[str, Any]:
    """Return the rows of a part, and where the truth is compared, the ratios of codiag's errors to the oracle's."""
    rows, ratios = [], []
    for place in TABLE[part](n_seeds):
        failures = run([place.experiment], folder)
        if failures:
            raise RuntimeError("\n".join(failures))
        records = read(place.experiment, folder)
        rows.append(place.row(records))
        ratios += [
            one.values["error"] / one.values["oracle"]
            for one in select(records, method="auto")
            if one.values.get("oracle", 0.0) > 0
        ]
    return {"rows": rows} | ({"ratios": [round(ratio, 4) for ratio in sorted(ratios)]} if ratios else {})


def large(_: Path) -> dict[str, Any]:
    """Return the row of the large tensor: seconds alone."""
    seconds = re.findall(r"^\| (codiag|TensorLy).*?\| ([\d.]+) \|", scale.run(), re.MULTILINE)
    cells = {library: {"seconds": float(number)} for library, number in seconds}
    return {"rows": [{"tensor": "400 x 400 x 400, rank 20, noise 1 %: seconds alone", "runs": 1, "cells": cells}]}


def tensorly_tests(_: Path) -> dict[str, Any]:
    """Return how many of TensorLy's own tests pass with our functions in place of its own."""
    outcomes = [result for _test, result, _reason in baseline_tests.run("tensorly", [])]
    return {"passed": outcomes.count("passed"), "of": len(outcomes)}


def pyriemann_tests(folder: Path) -> dict[str, Any]:
    """Return how many of pyriemann's tests pass, which are in `folder` (they are not part of its wheel)."""
    path = folder / "test_geometry_ajd.py"
    if not path.exists():
        raise FileNotFoundError(f"put tests/test_geometry_ajd.py of pyriemann's source distribution into {folder}")
    counts = [int(number) for number in re.findall(r"\| (\d+) ", baseline_ajd.run(path))]
    passed, failed = sum(counts[::3]), sum(counts[1::3])
    return {"passed": passed, "of": passed + failed}


OTHERS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "large": large,
    "tensorly tests": tensorly_tests,
    "pyriemann tests": pyriemann_tests,
}


def table(record: Mapping[str, Any]) -> str:
    """Return the table of the README: the best share of a row is bold."""
    rows = [row for part in (*TABLE, "large") for row in record[part]["rows"]]
    return markdown(("tensor", "runs", *LIBRARIES), [(one["tensor"], str(one["runs"]), *_cells(one)) for one in rows])


def _cells(row: Row) -> list[str]:
    best = max(cell.get("share", -1.0) for cell in row["cells"].values())
    return [_words(row["cells"].get(library), best) for library in LIBRARIES]


def _words(cell: Mapping[str, float] | None, best: float) -> str:
    if cell is None:
        return ""
    seconds = cell["seconds"]
    digits = 2 if seconds < 0.995 else 1 if seconds < 9.95 else 0
    time = f"{max(seconds, 0.01):.{digits}f} s"
    if "share" not in cell:
        return time
    share = f"{100 * cell['share']:.0f} %"
    return f"**{share}**, {time}" if cell["share"] == best else f"{share}, {time}"


def sentences(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the words of the README that have numbers of the record in them."""
    ratios = np.array(record["limit"]["ratios"] + record["optima"]["ratios"])
    tensorly, pyriemann = record["tensorly tests"], record["pyriemann tests"]
    return {
        "accuracy": f"median ratio of the errors {np.median(ratios):.3f}, worst of all runs {np.max(ratios):.2f}",
        "tensorly tests": f"{tensorly['passed']} of {tensorly['of']} of its own tests pass",
        "pyriemann tests": f"{pyriemann['passed']} of {pyriemann['of']} pass",
    }


def write_readme(record: Mapping[str, Any]) -> None:
    """Put the table and the sentences into the README."""
    text = README.read_text()
    text = re.sub(r"\| tensor \| runs \|.*?\n(?=\n)", lambda _: table(record) + "\n", text, count=1, flags=re.DOTALL)
    for words in sentences(record).values():
        pattern = r"\s+".join(re.sub(r"\\?[\d.]+", r"[\\d.]+", re.escape(word)) for word in words.split())
        text = re.sub(pattern, words, text)
    README.write_text(text)


def compare(record: Mapping[str, Any], folder: Path) -> list[str]:
    """Return what is worse than the record says, on a few seeds: a sentence each."""
    faults = []
    for part in TABLE:
        former = {row["tensor"]: row["cells"] for row in record[part]["rows"]}
        for row in measured(part, FEW_SEEDS, folder)["rows"]:
            faults += worse(row["tensor"], row["cells"], former[row["tensor"]])
    return faults


def worse(words: str, cells: Mapping[str, Any], former: Mapping[str, Any]) -> list[str]:
    ours, ours_before = cells["codiag"], former["codiag"]
    faults = []
    if ours["share"] < ours_before["share"] - SLACK:
        faults.append(f"{words}: {ours['share']:.0%} of the fits are the best one, {ours_before['share']:.0%} before")
    ratios = {
        library: ours["seconds"] / cells[library]["seconds"] / (ours_before["seconds"] / former[library]["seconds"])
        for library in cells
        if library != "codiag" and library in former
    }
    print(words, {library: round(ratio, 2) for library, ratio in ratios.items()}, f"{ours['share']:.0%}", flush=True)
    if ratios and np.median(list(ratios.values())) > SLOWER:
        faults.append(f"{words}: time compared with other libraries, as a multiple of the record's: {ratios}")
    return faults


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.readme", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"by default all: {', '.join([*TABLE, *OTHERS])}")
    parser.add_argument("--seeds", type=int, default=50, help="runs of a row; ten of the first rows at most")
    parser.add_argument("--out", type=Path, help="folder of the records of trials; by default a temporary one")
    parser.add_argument("--compare", action="store_true", help="compare a few seeds with the record, and write nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # for this program: how well everybody did is what it measures
    record = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.out or Path(temporary)
        if options.compare:
            faults = compare(record, folder)
            print("\n".join(faults))
            return int(bool(faults))
        for part in options.parts or [*TABLE, *OTHERS]:
            found = measured(part, options.seeds, folder) if part in TABLE else OTHERS[part](folder)
            made = {"date": dt.date.today().isoformat(), "version": codiag.__version__, "machine": machine()}
            record[part] = found | made
            RECORD.write_text(json.dumps(record, indent=1) + "\n")
    if record.keys() >= {*TABLE, *OTHERS}:
        write_readme(record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
