"""The command ``compare``: every method on one tensor whose true components nobody knows."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
from rich.table import Table

from codiag.cli import reading
from codiag.cli.commands import Seed, as_command, table_of, working
from codiag.cli.terminal import shown
from codiag.methods import METHODS, as_method
from codiag.metrics import factor_error
from codiag.problem import Problem
from codiag.result import Factorization, solve


@as_command
def compare(
    path: reading.TensorFile,
    rank: reading.Rank,
    symmetric: reading.Symmetric = None,
    nonnegative: reading.Nonnegative = False,
    nn_modes: reading.NonnegativeModes = None,
    missing: reading.MissingEntries = reading.Missing.NAN,
    modes: reading.Modes = None,
    value: reading.Value = None,
    absent: reading.AbsentEntries = reading.Absent.MISSING,
    seed: Seed = 0,
    variable: reading.Variable = None,
) -> None:
    """Factorize a tensor by every method that applies.

    The error of each, and the distance from the best one, are printed.
    """
    options = reading.TensorOptions(path, variable, symmetric, nonnegative, nn_modes, missing, modes, value, absent)
    with working("comparing ...", sources=[path]) as command:
        results = compare_methods(options.read(rank, command).problem, seed=seed)
    command.show(
        _comparison_table(results, f"{command.title(path)}, rank {rank}"),
        "[dim]distance: mean distance of the unit factors from those of the fit with the smallest error[/dim]",
        *(f"[dim]{shown(line)}[/dim]" for line in _not_applied(results)),
    )


def _not_applied(results: list[Comparison]) -> list[str]:
    """Return the methods that do not apply, a line for each reason."""
    by_reason: dict[str, list[Comparison]] = {}
    for result in results:
        if result.fit is None:
            class_name = type(as_method(result.method)).__name__
            by_reason.setdefault(result.reason.replace(class_name, "they", 1), []).append(result)
    return [
        f"{same[0].method} does not apply: {same[0].reason}"
        if len(same) == 1
        else f"{', '.join(result.method for result in same)} do not apply: {reason}"
        for reason, same in by_reason.items()
    ]


@dataclass(frozen=True, eq=False)
class Comparison:
    """The fit of a method, or the reason why there is none."""

    method: str
    fit: Factorization | None
    reason: str
    distance: float  # between its factors and those of the fit with the smallest error
    seconds: float


def compare_methods(problem: Problem, *, seed: int | None = None) -> list[Comparison]:
    """Solve a problem by every method; return fits by their error, and methods that do not apply last."""
    fits: dict[str, tuple[Factorization | None, str, float]] = {}
    for name in METHODS:
        start = time.perf_counter()
        try:
            fit, reason = solve(problem, as_method(name), seed), ""
        except ValueError as error:
            fit, reason = None, str(error)
        fits[name] = fit, reason, time.perf_counter() - start
    if all(fit is None for fit, _, _ in fits.values()):  # nothing applies: the mistake is in the tensor or the rank
        raise ValueError(next(iter(fits.values()))[1])
    best = min((fit for fit, _, _ in fits.values() if fit is not None), key=lambda fit: fit.relative_error)
    results = [
        Comparison(name, fit, reason, np.nan if fit is None else factor_error(fit, best), seconds)
        for name, (fit, reason, seconds) in fits.items()
    ]
    return sorted(results, key=lambda result: np.inf if result.fit is None else result.fit.relative_error)


def _comparison_table(results: list[Comparison], title: str) -> Table:
    table = table_of(title, ["method"], ["relative error", "distance", "sweeps", "seconds"])
    for result in results:
        if result.fit is not None:
            table.add_row(
                result.method + ("" if result.fit.converged else " (not converged)"),
                f"{result.fit.relative_error:.6e}",
                f"{result.distance:.1e}",
                str(sum(stage.sweeps for stage in result.fit.stages)),
                f"{result.seconds:.3f}",
            )
    return table
