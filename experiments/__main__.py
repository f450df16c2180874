"""The paper's experiments as a command: ``python -m experiments run all --quick``."""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")  # before NumPy is loaded: a process a core, each on one thread

from experiments.paper import EXPERIMENTS  # noqa: E402
from experiments.records import agree, cell_key, read_archive  # noqa: E402
from experiments.runs import Experiment, merge, read, run  # noqa: E402

ROOT = Path(__file__).parents[1]
ARCHIVE = Path(__file__).parent / "results"
"""The records of the repository, compressed."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return its exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return int(options.command(options))
    except (ValueError, OSError) as error:
        _say(f"Error: {error}", to=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m experiments",
        description="The experiments of Kuleshov, Chaganty and Liang (2015), and verdicts on their claims.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    trials = commands.add_parser(
        "run",
        help="run trials that are in no record yet",
        epilog=f"Experiments: {', '.join(EXPERIMENTS)}.",
        description="Run trials that neither the repository nor the folder holds yet, the most important first. "
        "Several calls may run at once, and a call that was stopped goes on where it stopped.",
    )
    trials.add_argument("names", nargs="*", metavar="EXPERIMENT", help="experiments, or all (the default)")
    trials.add_argument("--quick", action="store_true", help="few trials of the smaller problems: minutes")
    trials.add_argument(
        "--out", "-o", type=Path, default=Path("reports"), metavar="FOLDER", help="where records are kept"
    )
    trials.add_argument("--jobs", "-j", type=int, default=1, help="processes; the numbers are the same")
    trials.add_argument("--minutes", type=float, default=math.inf, metavar="X", help="begin no trial after this time")
    trials.add_argument("--fresh", action="store_true", help="run trials that the repository holds, too, and compare")
    trials.add_argument("--records-only", action="store_true", help="write no page")
    trials.set_defaults(command=_run)
    records = commands.add_parser("merge", help="add the records of folders to those of the repository")
    records.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    records.set_defaults(command=_merge)
    verdicts = commands.add_parser(
        "verdicts", help="judge all claims from the records of the repository, and write the documents"
    )
    verdicts.add_argument("--out", "-o", type=Path, default=ROOT / "docs", metavar="FOLDER", help="where to write")
    verdicts.set_defaults(command=_verdicts)
    return parser


def _run(options: argparse.Namespace) -> int:
    names = options.names or ["all"]
    unknown = [name for name in names if name not in (*EXPERIMENTS, "all")]
    if unknown:
        raise ValueError(f"name must be all, or one of {', '.join(EXPERIMENTS)}; got {unknown[0]}")
    wanted = [experiment for experiment in EXPERIMENTS.values() if "all" in names or experiment.name in names]
    for experiment in wanted:
        if reason := experiment.missing():
            _say(f"Left out: {experiment.name}, {reason}", to=sys.stderr)
    present = [experiment for experiment in wanted if not experiment.missing()]
    if not present:
        raise ValueError(wanted[0].missing())
    try:
        failures = run(
            present,
            options.out,
            quick=options.quick,
            jobs=options.jobs,
            minutes=options.minutes,
            archive=None if options.fresh else ARCHIVE,
            progress=_show_progress,
        )
    except KeyboardInterrupt:
        _say(f"\nStopped. What was finished is kept in {options.out}; the same command resumes.", to=sys.stderr)
        return 130
    _say("", to=sys.stderr)
    for failure in failures:
        _say(f"Failed: {failure}", to=sys.stderr)
    if options.fresh:
        _compare(present, options.out)
    if not options.records_only:
        _write(options.out, options.out, ARCHIVE)
    return 1 if failures else 0


def _compare(experiments: Sequence[Experiment], folder: Path) -> None:
    """Tell how many fresh trials give the numbers of the repository's records."""
    same, both = 0, 0
    for experiment in experiments:
        archived = read_archive(ARCHIVE, experiment.name)
        for record in read(experiment, folder):
            other = archived.get(cell_key(record.cell))
            if other is not None:
                both += 1
                same += agree(record, other)
    _say(f"{same:,} of {both:,} fresh trials that the repository holds have the same numbers, within 1 %.")


def _show_progress(done: int, total: int) -> None:
    if sys.stderr.isatty() or done == total or done % 500 == 0:
        sys.stderr.write(f"\r{done:,} of {total:,} trials")
        sys.stderr.flush()


def _merge(options: argparse.Namespace) -> int:
    for folder in options.folders:
        for experiment in EXPERIMENTS.values():
            added = merge(experiment, folder, ARCHIVE)
            if added:
                _say(f"{experiment.name}: {added:,} new records from {folder}")
    return 0


def _verdicts(options: argparse.Namespace) -> int:
    _write(ARCHIVE, options.out, ARCHIVE)
    return 0


def _say(line: str, to: TextIO | None = None) -> None:
    (to or sys.stdout).write(f"{line}\n")


def _write(records: Path, folder: Path, archive: Path | None) -> None:
    """Write the documents, and print the verdicts."""
    from experiments.chapters import PICTURES  # drawing needs matplotlib, and runs do not
    from experiments.pages import write_pages

    for judgement in write_pages(records, folder, archive):
        sure = f" (probability {judgement.probability:.2f})" if math.isfinite(judgement.probability) else ""
        _say(f"{judgement.claim.number:2d} {judgement.verdict}{sure}: {judgement.claim.sentence}")
    _say(f"Open {folder / PICTURES / 'index.html'}")


if __name__ == "__main__":
    sys.exit(main())
