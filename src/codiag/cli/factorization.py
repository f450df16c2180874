"""The commands for tensors: ``factorize``, a fit and its diagnosis, and ``rank``, the number of components."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import codiag
from codiag._text import as_path, ending_of
from codiag.cli.commands import Figure, Report, Run, as_count, command, option, shown, table_of, write_table
from codiag.cli.tables import KINDS, Tables, column, labels_in, numbers_in

if TYPE_CHECKING:
    from codiag.labels import Labelled
    from codiag.result import Factorization

TensorFile = Annotated[str, typer.Argument(metavar="TENSOR", help="An array, or a table with a row for each entry.")]


@dataclass(frozen=True)
class Asked:
    """Which entries of a file are the tensor, and what is known about its components."""

    modes: Annotated[str | None, option("--modes", "Columns of labels: a,b,c.", "COLUMNS")] = None
    value: Annotated[str | None, option("--value", "Column of entries, or none to count rows.", "COLUMN")] = None
    counts: Annotated[bool, typer.Option("--counts", help="Entries are counts: poisson, and absent ones zero.")] = False
    absent: Annotated[str | None, option("--absent", "Combinations not listed: missing, zero.", "NAME")] = None
    aggregate: Annotated[str | None, option("--aggregate", "Rows with the same labels: sum, mean.", "NAME")] = None
    variable: Annotated[str | None, option("--variable", "Array of a file with several.", "NAME")] = None
    symmetric: Annotated[bool, typer.Option("--symmetric", help="All modes share one factor.")] = False
    nonnegative: Annotated[bool, typer.Option("--nonnegative", help="Factors have no negative entries.")] = False
    loss: Annotated[str | None, option("--loss", "poisson, negative_binomial, bernoulli, huber.", "NAME")] = None

    def known(self, run: Run) -> dict[str, Any]:
        """Return the arguments of `codiag.factorize` and `codiag.choose_rank` beside the tensor and the rank."""
        known: dict[str, Any] = {"loss": self.loss or ("poisson" if self.counts else None), "symmetric": self.symmetric}
        known |= {"constraints": "nonnegative" if self.nonnegative else None}
        return known | {"rng": run.seed, "progress": False if run.quiet else None}

    def read(self, given: str, tables: Tables, run: Run) -> Labelled:
        """Return the tensor in a file, with its labels."""
        from codiag.io import READERS, read_array
        from codiag.labels import read_labelled

        path = as_path("path", given)
        if ending_of(path) in KINDS:
            return self._of_table(path, tables.read(given), run)
        if ending_of(path) not in READERS and not path.is_dir():
            known = ", ".join((*READERS, *KINDS))
            raise ValueError(f"path must end in one of {known}, which tensors are read from; got {path.name}")
        if self.modes or self.value or self.absent or self.aggregate:
            raise ValueError(f"--modes, --value, --absent and --aggregate are for tables; {path.name} is an array")
        return read_labelled(read_array(path, self.variable))

    def _of_table(self, path: Path, frame: Any, run: Run) -> Labelled:
        from codiag.labels import labelled_tensor

        modes, value = self._columns(frame, path)
        for name in modes:
            labels_in(frame, path, name)
        what, groups = f"column {value}", frame.groupby(modes, sort=False)
        if value is None:
            value, what = "rows", "the number of rows"
            frame = groups.size().reset_index(name=value)
        else:
            numbers_in(frame, path, value)
            if self.aggregate is not None:
                frame = groups[value].agg(self.aggregate).reset_index()
            elif frame.duplicated(modes).any():
                raise ValueError(
                    f"{path.name} must have one row for each combination of {', '.join(modes)}; "
                    f"{frame.duplicated(modes).sum()} rows repeat one. --aggregate sum adds them, mean averages them"
                )
        absent = self.absent or ("zero" if self.counts else "missing")
        labelled = labelled_tensor(frame, modes=modes, value=value, absent=absent)
        run.note(
            f"entries are {what} of {path.name} by {', '.join(modes)}; {len(frame):,} of "
            f"{math.prod(labelled.tensor.shape):,} combinations are listed, and others are {absent} (see --absent)"
        )
        return labelled

    def _columns(self, frame: Any, path: Path) -> tuple[list[str], str | None]:
        """Return the columns of labels, and that of the entries; None if rows are counted."""
        names = list(frame.columns)
        modes = names if self.modes is None else [name.strip() for name in self.modes.split(",")]
        value = None if self.value == "none" else self.value
        for name in modes if value is None else (*modes, value):
            column(frame, path, "--modes and --value", name)
        if self.value is None:
            others = names[-1:] if self.modes is None else [name for name in names if name not in modes]
            if len(others) > 1 or not (others or self.counts):
                raise ValueError(
                    f"--value must name the column of the entries, since --modes leaves "
                    f"{', '.join(others) or 'no column'} of {path.name}; --value none counts rows"
                )
            value = others[0] if others else None
        return [name for name in modes if name != value], value


@command
def factorize(
    path: TensorFile,
    rank: Annotated[str, option("--rank", "Number of components, or auto.", "N", "-k", "-r")],
    asked: Asked,
    tables: Tables,
    run: Run,
    method: Annotated[str | None, option("--method", "nls, als, nojd1, ...; by default the best.", "NAME")] = None,
    figure: Figure = None,
    report: Report = None,
) -> None:
    """Write a tensor as a sum of components.

    Their weights and standard errors are printed, and how far they can be trusted.
    """
    from codiag import reports

    number, known = as_count("--rank", rank), asked.known(run)
    run.check_outputs([path], (".npz",), figure=figure, report=report)
    data, choice = asked.read(path, tables, run), None
    if number is None:
        choice = codiag.choose_rank(data, **known)
        run.show(*map(shown, str(choice).splitlines()))
        if choice.rank is None:
            raise ValueError(f"--rank must be a number, since auto finds none: {choice.reason}")
        number = choice.rank
    fit = codiag.factorize(data, number, method=method, **known) if choice is None or method else choice.fit
    deviance = [] if fit.problem.loss is None else [f"explained deviance {fit.deviance.explained:.3f}"]
    run.show(shown(repr(fit)), *_tables_of(fit), *deviance, *map(shown, str(fit.diagnose()).splitlines()))
    run.save(run.out, lambda file: fit.save(file) if file.suffix.lower() == ".npz" else _save_table(file, fit))
    run.save(figure, lambda file: fit.plot().savefig(file))
    title = Path(path).name
    run.save(report, lambda file: reports.factorization_report(fit, data.tensor, file, choice=choice, title=title))


@command
def rank(
    path: TensorFile,
    asked: Asked,
    tables: Tables,
    run: Run,
    max_rank: Annotated[int | None, option("--max-rank", "The largest rank to try.", "N", min=1)] = None,
    figure: Figure = None,
    report: Report = None,
) -> None:
    """Choose the number of components of a tensor, and say why."""
    from codiag import reports

    run.check_outputs([path], figure=figure, report=report)
    data = asked.read(path, tables, run)
    ranks = None if max_rank is None else range(1, max_rank + 1)
    choice = codiag.choose_rank(data, ranks, **asked.known(run))
    run.show(*map(shown, str(choice).splitlines()))
    run.save(run.out, lambda file: write_table(file, choice.table))
    run.save(figure, lambda file: choice.plot().savefig(file))
    run.save(report, lambda file: reports.rank_report(choice, file, title=Path(path).name))


def _save_table(path: Path, fit: Factorization) -> None:
    """Write factors with labels, standard errors and confidence intervals, in long form."""
    from codiag.result import long_columns

    columns = long_columns(fit)
    write_table(path, columns | {"label": columns["label"].astype(str)})


def _tables_of(fit: Factorization) -> list[Any]:
    """Return a table of weights with standard errors of the factors and, if there are labels, of the strongest ones."""
    from codiag._arrays import to_host
    from codiag.labels import Labels

    labels = fit.problem.labels or Labels.counted(len(fit.shape))
    columns = {"component": range(fit.rank), "weight": to_host(fit.weights).tolist()}
    columns |= {"+-": fit.weight_standard_errors.tolist()}
    columns |= {f"+- {name}": own.tolist() for name, own in zip(labels.names, fit.standard_errors, strict=True)}
    tables = [table_of("weights, and standard errors", columns)]
    if fit.problem.labels is not None:
        strongest: dict[str, Any] = {"component": range(fit.rank)}
        for mode, (name, factor) in enumerate(zip(labels.names, fit.factors, strict=True)):
            first = (-abs(to_host(factor))).argsort(axis=0, kind="stable")[:2]
            index = labels.index(mode, fit.shape[mode])
            strongest[name] = [", ".join(map(str, index[places])) for places in first.T]
        tables.append(table_of("strongest labels", strongest))
    return tables
