"""Compare two source trees on the problems of other benchmarks: ``python -m benchmarks.two_trees --against OTHER/src``.

Tensors of `benchmarks.hard`, `constrained`, `real`, `losses` and `noises`, drawn once and fitted by both trees in
processes of their own. A tree is at the lower end of a problem if its objective is within ``--same`` of the lower one.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

Problem = dict[str, Any]  # kind, seed, tensor, rank, options of factorize; loss: its class and arguments
EXACT = 1e-14
"""Relative squared error that counts as none."""


def hard(seed: int) -> Iterator[Problem]:
    from benchmarks.hard import GROUPS, planted

    for name, group in GROUPS.items():
        for place in group.places():
            options = {"symmetric": True} if place["kind"] == "symmetric" else {}
            kind = f"{name}, {place['kind']} {place['size']}^3, rank {place['rank']}, noise {place['noise']:g}"
            yield problem(kind, seed, planted(place, seed).tensor, int(place["rank"]), **options)


def constrained(seed: int) -> Iterator[Problem]:
    from benchmarks.constrained import SCENARIOS
    from experiments.records import combinations

    for name, scenario in SCENARIOS.items():
        for place in combinations(scenario.axes):
            planted = scenario.make(**place, seed=seed)
            options = {"constraints": "nonnegative"} if scenario.nonnegative else {}
            kind = ", ".join([name, *(f"{axis} {value}" for axis, value in place.items())])
            yield problem(kind, seed, planted.tensor, planted.weights.size, **options)


def real(seed: int) -> Iterator[Problem]:
    from benchmarks.real import DATA

    for name in ("IL-2, missing as 0", "IL-2", "COVID", "kinetic", "amino acids, simulated"):
        for rank in range(2, 9):
            yield problem(f"{name}, rank {rank}", seed, DATA[name](), rank)
            if name in ("IL-2", "amino acids, simulated"):
                yield problem(f"{name}, non-negative, rank {rank}", seed, DATA[name](), rank, constraints="nonnegative")


def losses(seed: int) -> Iterator[Problem]:
    from benchmarks.losses import drawn
    from codiag import losses as kinds

    for name, arguments, shape, rank, mean in (
        ("Poisson", (), (40, 30, 20), 4, 1.0),
        ("Poisson", (), (40, 30, 20), 4, 0.1),
        ("Poisson", (), (10, 12, 14), 3, 1.0),
        ("NegativeBinomial", (3.0,), (20, 22, 24), 3, 5.0),
        ("Bernoulli", ("odds",), (20, 25, 30), 3, 0.5),
        ("Huber", (1.0,), (20, 22, 24), 3, 5.0),
    ):
        loss = getattr(kinds, name)(*arguments)
        if name == "Huber":
            rng = np.random.default_rng([seed, 5])
            tensor = drawn(kinds.Poisson(), shape, rank, mean, seed)[0]
            tensor = tensor + 10 * tensor.std() * rng.standard_normal(shape) * (rng.random(shape) < 0.1)
        else:
            tensor = drawn(loss, shape, rank, mean, seed)[0]
        sizes = " x ".join(map(str, shape))
        yield problem(f"{name} {sizes}, mean {mean:g}", seed, tensor, rank) | {"loss": (name, arguments)}


def noises(seed: int) -> Iterator[Problem]:
    from benchmarks.noise_kinds import NOISES, spectra

    for kind in NOISES:
        for shape, rank in (((20, 30, 25), 3), ((8, 60, 40), 5)):
            tensor = spectra(kind, shape, rank, seed=seed)[2]
            hidden = np.where(np.random.default_rng(seed).random(shape) < 0.2, np.nan, tensor)
            sizes = " x ".join(map(str, shape))
            yield problem(f"{kind}, {sizes}", seed, tensor, rank)
            yield problem(f"{kind}, {sizes}, 20 % missing", seed, hidden, rank)
            yield problem(f"{kind}, {sizes}, non-negative", seed, tensor, rank, constraints="nonnegative")


GROUPS = {"hard": hard, "constrained": constrained, "real": real, "losses": losses, "noises": noises}


def problem(kind: str, seed: int, tensor: np.ndarray, rank: int, **options: Any) -> Problem:
    return {"kind": kind, "seed": seed, "tensor": tensor, "rank": rank, "options": options}


def write(group: str, seed: int, folder: str) -> None:
    """Draw a group's problems of one seed, each into a file of its own."""
    for index, one in enumerate(GROUPS[group](seed)):
        Path(folder, f"{group}-{index:03d}-{seed}.pickle").write_bytes(pickle.dumps(one | {"group": group}))


def fitted(path: str) -> dict[str, Any]:
    """Return the objective and the CPU time of the fit of one problem by the tree that is on the path."""
    import codiag

    warnings.simplefilter("ignore")
    one = pickle.loads(Path(path).read_bytes())
    tensor, options = one["tensor"], one["options"]
    name, arguments = one.get("loss", (None, ()))
    loss = getattr(codiag.losses, name)(*arguments) if name else None
    seed = "rng" if "rng" in inspect.signature(codiag.factorize).parameters else "seed"
    stated: dict[str, Any] = options | ({"loss": loss} if name else {}) | {seed: one["seed"]}
    start = time.process_time()
    fit = codiag.factorize(tensor, one["rank"], **stated)
    seconds = time.process_time() - start
    weights, factors = fit
    modes = "abcd"[: tensor.ndim]
    model = np.einsum(f"r,{','.join(f'{mode}r' for mode in modes)}->{modes}", weights, *factors, optimize=True)
    if loss is None:
        seen = np.isfinite(tensor)
        objective = float(np.sum((tensor - model)[seen] ** 2) / np.sum(tensor[seen] ** 2))
    else:
        objective = float(np.sum(loss.value(tensor, np.maximum(model, 1e-10) if loss.needs_nonnegative else model)))
    return {"group": one["group"], "kind": one["kind"], "seed": one["seed"], "value": objective, "cpu": seconds}


def run(tree: Path, folder: str, jobs: int) -> list[dict[str, Any]]:
    """Fit all problems of a folder by one tree."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    inherited = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    environment = os.environ | threads | {"PYTHONPATH": os.pathsep.join([str(tree), *inherited])}
    command = [sys.executable, __file__, "--fit", folder, "--jobs", str(jobs)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def rows(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]], same: float) -> list[list[str]]:
    """Return a row of figures for each kind of problems, and one for each group."""
    kinds: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    found = {(one["group"], one["kind"], one["seed"]): one for one in after}
    for old in before:
        new = found[old["group"], old["kind"], old["seed"]]
        for kind in (old["kind"], "all"):
            kinds[old["group"], kind].append([old["value"], new["value"], old["cpu"], new["cpu"]])
    table = []
    for (group, kind), measured in kinds.items():
        values, cpu = np.array(measured)[:, :2], np.array(measured)[:, 2:]
        best = values.min(axis=1, keepdims=True)
        at = (values - best <= same * np.abs(best) + EXACT).mean(axis=0)
        ratio = float(np.median(cpu[:, 1] / cpu[:, 0]))
        low = [f"{at[0]:.3f}", f"{at[1]:.3f}"]
        table.append(
            [group, kind, str(len(measured)), *low, *(f"{s:.2f}" for s in np.median(cpu, axis=0)), f"{ratio:.2f}"]
        )
    return table


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.two_trees", description=__doc__)
    parser.add_argument("--against", type=Path, help="the folder that holds the other package codiag")
    parser.add_argument("--groups", nargs="+", default=list(GROUPS), choices=list(GROUPS))
    parser.add_argument("--seeds", type=int, default=10, help="problems of each kind")
    parser.add_argument("--first", type=int, default=2000, help="the first seed")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--same", type=float, default=1e-4, help="relative difference of objectives that counts as none"
    )
    parser.add_argument("--out", type=Path, help="a file for what both trees reached")
    parser.add_argument("--keep", metavar="NAME", help="write the table to RESULTS.md; what the other tree is")
    parser.add_argument("--fit", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.fit:  # one tree, for the process that compares
        with ProcessPoolExecutor(options.jobs) as pool:
            for found in pool.map(fitted, sorted(map(str, Path(options.fit).iterdir()))):
                print(json.dumps(found), flush=True)
        return
    import codiag
    from benchmarks.measure import keep
    from experiments.reports import markdown

    seeds = range(options.first, options.first + options.seeds)
    with tempfile.TemporaryDirectory() as folder:
        with ProcessPoolExecutor(options.jobs) as pool:
            for drawn in [pool.submit(write, group, seed, folder) for group in options.groups for seed in seeds]:
                drawn.result()
        trees = options.against.resolve(), Path(codiag.__file__).parents[1]
        before, after = (run(tree, folder, options.jobs) for tree in trees)
    if options.out:
        options.out.write_text(json.dumps({"before": before, "after": after}))
    columns = [
        "benchmark",
        "problem",
        "draws",
        "at the lower, before",
        "after",
        "CPU s before",
        "after",
        "median of ratios",
    ]
    table = markdown(columns, rows(before, after, options.same))
    print(table)
    if options.keep:
        text = f"## The same problems in two source trees\nBefore: {options.keep}.\n\n{table}"
        keep(
            "two trees",
            f"python -m benchmarks.two_trees --against OTHER/src --seeds {options.seeds} --first {options.first}",
            text,
        )


if __name__ == "__main__":
    main()
