"""The commands for tensors: ``factorize``, a fit and its diagnosis, and ``compare``, every method on one tensor."""

from __future__ import annotations

import math
import re
import time
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer
from rich.console import RenderableType
from rich.table import Table

import codiag
from codiag.cli import reading
from codiag.cli.commands import (
    Command,
    Force,
    Json,
    Printing,
    Quiet,
    Report,
    Seed,
    as_command,
    as_count,
    option,
    table_of,
    working,
)
from codiag.cli.files import ARRAYS, PAGES, PICTURES, TABLES
from codiag.cli.results import fit_result, rows_of_columns
from codiag.cli.terminal import fail, in_options, shown

if TYPE_CHECKING:
    from codiag.labels import Labels
    from codiag.problem import Problem
    from codiag.result import Factorization

SHOWN = 30
"""Components that fit on a screen."""
STRONGEST = 2
"""Labels of a mode that are shown for each component."""
IN_OPTIONS = {
    r"see codiag\.choose_rank": "let --rank auto choose",
    r"Another seed or method=Auto\([^()]*\) searches": "Another --seed searches",
    r"loss=NegativeBinomial\(\)": "loss='negative_binomial'",
    r"leave constraints out": "leave --nonnegative out",
    r"constraints=\{0: 'nonnegative'\}": "--nn-modes 0",
}
"""What diagnoses advise in Python, as patterns, and the options that do the same."""
HOW_TO_LOAD = "; read it with codiag.Factorization.load"


@as_command
def factorize(
    path: reading.TensorFile,
    rank: reading.RankOrAuto,
    method: Annotated[
        str | None,
        typer.Option("--method", help="ojd0, ojd1, nojd0, nojd1, nls, als, tpm; by default, the best."),
    ] = None,
    symmetric: reading.Symmetric = None,
    nonnegative: reading.Nonnegative = False,
    nn_modes: reading.NonnegativeModes = None,
    missing: reading.MissingEntries = reading.Missing.NAN,
    modes: reading.Modes = None,
    value: reading.Value = None,
    absent: reading.AbsentEntries = None,
    loss: reading.LossName = None,
    counts: reading.Counts = False,
    max_rank: Annotated[int, typer.Option("--max-rank", min=1, help="The largest rank that auto tries.")] = 10,
    result: Annotated[
        Path | None,
        option(
            "--out",
            "-o",
            words="Where to save weights and factors: .npz, or a .csv or .tsv table with labels and standard errors; "
            "- writes that table to the standard output.",
        ),
    ] = None,
    figure: Annotated[Path | None, option("--figure", words="Where to draw the components.")] = None,
    report: Report = None,
    seed: Seed = 0,
    variable: reading.Variable = None,
    sort_labels: reading.SortLabels = False,
    force: Force = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Also print the stages of the computation and their times.")
    ] = False,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Write a tensor as a sum of components.

    Their weights and standard errors are printed, and how far they can be trusted.
    """
    from codiag.reports import factorization_report

    outputs = {"--out": (result, ARRAYS | TABLES), "--figure": (figure, PICTURES), "--report": (report, PAGES)}
    options = reading.TensorOptions(
        path, variable, symmetric, nonnegative, nn_modes, missing, modes, value, absent, loss, counts, sort_labels
    )
    number = as_count("--rank", rank)
    with working("reading ...", outputs, [path], force=force, printing=Printing(quiet, as_json)) as command:
        start = time.perf_counter()
        problem, data, observed, _ = options.read(1 if number is None else number, command)
        seconds = time.perf_counter() - start
        choice = None
        if number is None:
            command.passes.doing("choosing the rank ...")
            choice = _chosen(problem, max_rank, seed, command)
        command.passes.doing("factorizing ...")
        fit = _fitted(problem, choice, method, seed)
        command.save("--out", lambda path: _save(path, fit), "" if _is_table(result) else HOW_TO_LOAD)
        command.passes.doing("diagnosing ...")
        about = about_fit(fit)
        about_page = {"choice": choice, "observed": observed, "title": command.title(path)}
        command.report(lambda page: factorization_report(fit, data, page, **about_page))
    stages = [_stage_table(fit, seconds)] if verbose else []
    command.show(shown(repr(fit)), *about[:-1], _error_of(fit), about[-1], *stages)
    command.answer(lambda: fit_result(fit, choice))
    command.draw("--figure", lambda path: fit.plot().savefig(path))


def _error_of(fit: Factorization) -> str:
    """Return the relative error in words; if entries are missing, how many."""
    n_entries, error = math.prod(fit.shape), f"relative error [bold]{fit.relative_error:.3e}[/bold]"
    if fit.loss is not None:
        error += f", explained deviance [bold]{fit.explained_deviance:.3f}[/bold]"
    if fit.n_observed is None or fit.n_observed == n_entries:
        return error
    n_missing = n_entries - fit.n_observed
    return f"{error} over the {fit.n_observed:,} entries observed, of {n_entries:,} ({n_missing:,} missing)"


def _chosen(problem: Problem, largest: int, seed: int, command: Command) -> codiag.RankChoice:
    """Choose the rank that the tensor supports, and print why; exit if it supports none."""
    from codiag._checks import as_generator
    from codiag.selection import LEGEND, choose

    choice = choose(problem, range(1, largest + 1), as_generator(seed, apart=True))
    command.show("\n".join(shown(line) for line in str(choice).splitlines()), f"[dim]{shown(LEGEND)}[/dim]")
    if choice.rank is None:
        fail(f"--rank auto finds none: {choice.reason} Give --rank a number to fit it all the same")
    return choice


def _fitted(problem: Problem, choice: codiag.RankChoice | None, method: str | None, seed: int) -> Factorization:
    """Fit the problem; if its rank was chosen, return the fit of the choice unless another method is named."""
    from codiag.methods import as_method
    from codiag.problem import interrupts_end_searches
    from codiag.result import complaint_about

    if choice is None or method is not None:
        problem = problem if choice is None else problem.with_rank(choice.fit.rank)
        with interrupts_end_searches() if method is None else nullcontext():  # other methods search for nothing
            return codiag.factorize(problem, method=method, seed=seed)
    complaint = complaint_about(choice.fit, as_method(None))
    if complaint is not None:
        warnings.warn(complaint, codiag.ConvergenceWarning, stacklevel=2)
    return choice.fit


def _is_table(path: Path | None) -> bool:
    return path is not None and path.suffix.lower() != ".npz"


def _save(path: Path, fit: Factorization) -> None:
    if not _is_table(path):
        fit.save(path)
        return
    from codiag.io import write_table

    write_table(path, factor_table(fit))


def about_fit(fit: Factorization) -> list[RenderableType]:
    """Return a table of weights with standard errors, one of labels if there are any, and the diagnosis in words."""
    tables = [_weight_table(fit)] if fit.labels is None else [_weight_table(fit), _label_table(fit, fit.labels)]
    return [*tables, "\n".join(shown(advice_in_options(line)) for line in str(fit.diagnose()).splitlines())]


def advice_in_options(sentence: str) -> str:
    """Return a sentence of a diagnosis with options in place of what it advises in Python."""
    for pattern, words in IN_OPTIONS.items():
        sentence = re.sub(pattern, words, sentence)
    return in_options(sentence, {"loss": "--loss"})


def factor_table(fit: Factorization) -> dict[str, list[Any]]:
    """Return the entries of all factors in columns, a row for each, in the labels of the data."""
    from codiag._arrays import to_host
    from codiag.labels import Labels

    labels = fit.labels or Labels.counted(len(fit.shape))
    rows: list[tuple[Any, ...]] = []
    for mode, (factor, errors) in enumerate(zip(fit.factors, fit.entry_standard_errors, strict=True)):
        index = labels.index(mode, fit.shape[mode])
        texts = (index.astype(str) if index.dtype.kind == "M" else index).tolist()
        columns = zip(to_host(fit.weights).tolist(), to_host(factor).T, np.asarray(errors).T, strict=True)
        for component, (weight, *entries) in enumerate(columns):
            values = zip(texts, *(column.tolist() for column in entries), strict=True)
            rows += [(component, weight, labels.names[mode], *row) for row in values]
    names = ("component", "weight", "mode", "label", "value", "standard_error")
    return {name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}


def _weight_table(fit: Factorization) -> Table:
    from codiag._arrays import to_host
    from codiag.labels import Labels

    names = (fit.labels or Labels.counted(len(fit.shape))).names
    caption = "+-: standard error of the weight; then, mode by mode, of the unit factors"
    table = table_of("", [], ["component", "weight", "+-", *map(shown, names)], caption=caption)
    rows = zip(to_host(fit.weights).tolist(), fit.weight_standard_errors, fit.standard_errors.T, strict=True)
    for component, (weight, error, by_mode) in enumerate(islice(rows, SHOWN)):
        table.add_row(str(component), f"{weight:.6g}", _error(error), *map(_error, by_mode))
    if fit.rank > SHOWN:
        table.add_row("...", f"{fit.rank - SHOWN} more, down to {float(fit.weights[-1]):.6g}")
    return table


def _label_table(fit: Factorization, labels: Labels) -> Table:
    from codiag._arrays import to_host

    table = table_of("strongest labels of each component", ["", *map(shown, labels.names)], [])
    factors = [to_host(factor) for factor in fit.tensor.factors]
    for component in range(min(fit.rank, SHOWN)):
        cells = []
        for mode, factor in enumerate(factors):
            index = labels.index(mode, fit.shape[mode])
            first = np.argsort(-np.abs(factor[:, component]), kind="stable")[:STRONGEST]
            cells.append(", ".join(map(shown, index[first])))
        table.add_row(str(component), *cells)
    return table


def _error(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:.2g}"


def _stage_table(fit: Factorization, seconds: float) -> Table:
    """Return a table of the stages of a fit, after reading, which took some seconds."""
    table = table_of("", ["stage"], ["sweeps", "objective", "seconds"])
    table.add_row("read", "", "", f"{seconds:.3f}")
    for stage in fit.stages:
        objective = "" if math.isnan(stage.objective) else f"{stage.objective:.3e}"
        table.add_row(stage.name, str(stage.sweeps), objective, f"{stage.seconds:.3f}")
    return table


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
    absent: reading.AbsentEntries = None,
    seed: Seed = 0,
    variable: reading.Variable = None,
    quiet: Quiet = False,
    as_json: Json = False,
) -> None:
    """Factorize a tensor by every method that applies.

    The error of each, and the distance from the best one, are printed.
    """
    options = reading.TensorOptions(path, variable, symmetric, nonnegative, nn_modes, missing, modes, value, absent)
    with working("comparing ...", sources=[path], printing=Printing(quiet, as_json)) as command:
        results = compare_methods(options.read(rank, command).problem, seed=seed)
    command.show(
        _comparison_table(results, f"{command.title(path)}, rank {rank}"),
        "[dim]distance: mean distance of the unit factors from those of the fit with the smallest error[/dim]",
        *(f"[dim]{shown(line)}[/dim]" for line in _not_applied(results)),
    )
    command.answer(lambda: _comparison_result(results))


def _comparison_result(results: list[Comparison]) -> dict[str, Any]:
    """Return the methods that apply, the best first, and the reasons of the others, for JSON."""
    applied = [(result, result.fit) for result in results if result.fit is not None]
    columns: dict[str, list[Any]] = {
        "method": [result.method for result, _ in applied],
        "relative_error": [fit.relative_error for _, fit in applied],
        "distance": [result.distance for result, _ in applied],
        "converged": [fit.converged for _, fit in applied],
        "sweeps": [sum(stage.sweeps for stage in fit.stages) for _, fit in applied],
        "seconds": [result.seconds for result, _ in applied],
    }
    reasons = {result.method: result.reason for result in results if result.fit is None}
    return {"methods": rows_of_columns(columns), "not_applied": reasons}


def _not_applied(results: list[Comparison]) -> list[str]:
    """Return the methods that do not apply, a line for each reason."""
    from codiag.methods import as_method

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
    from codiag.methods import METHODS, as_method
    from codiag.metrics import factor_error
    from codiag.result import solve

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
