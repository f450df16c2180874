"""Run one input under watch: time, warnings, output, exceptions, arguments and global state."""

from __future__ import annotations

import contextlib
import inspect
import io
import re
import signal
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import sklearn.exceptions

import codiag
from codiag import FailedFitsError
from codiag._checks import UndeterminedError

from .case import Case, Finding, Generator
from .invariants import not_finite
from .state import changed_state, global_state, same, snapshot

LIMIT = 10.0
"""Seconds of processor time that one call may take."""
LIBRARY = str(Path(codiag.__file__).parent)
REFUSERS = (LIBRARY, str(Path("sklearn", "utils", "validation.py")), str(Path("sklearn", "utils", "_")))
"""Files whose refusals are codiag's: its own, and the checks of scikit-learn that its estimators ask for."""


class Endless(BaseException):
    """A call has taken longer than it may; not an `Exception`, so that nothing on the way catches it."""


class Outcome(NamedTuple):
    """What became of one input."""

    index: int
    area: str
    function: str
    valid: bool  # it had to be accepted
    accepted: bool  # it was, whether it had to be or not
    refused: bool
    findings: list[Finding]
    seconds: float


@contextlib.contextmanager
def time_limit(seconds: float, *, deadly: bool = False) -> Iterator[None]:
    """Raise `Endless` after so much processor time; if deadly, let the kernel end the process some time after that."""

    def stop(signum: int, frame: Any) -> None:
        raise Endless

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    if deadly:
        signal.setitimer(signal.ITIMER_VIRTUAL, 1.5 * seconds + 1)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGPROF, before)


class Run(NamedTuple):
    """What a call gave, or raised, beside what it did on the way."""

    result: Any
    error: BaseException | None
    caught: list[warnings.WarningMessage]
    printed: str
    changed: list[str]
    seconds: float


def call(case: Case, limit: float, *, deadly: bool) -> Run:
    """Call the function of a case and keep everything that comes of it."""
    result, error, printed = None, None, io.StringIO()
    start = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state = global_state()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                with time_limit(limit, deadly=deadly):
                    result = case.call(**case.arguments)
            except (Exception, Endless, SystemExit, KeyboardInterrupt) as raised:
                error = raised
        changed = changed_state(state)
    return Run(result, error, list(caught), printed.getvalue(), changed, time.process_time() - start)


def examine(generator: Generator, case: Case, index: int = 0, *, limit: float = LIMIT, deadly: bool = False) -> Outcome:
    """Run a case and return all that must not be."""
    kept = [name for name in case.arguments if name not in case.outputs]
    before = {name: snapshot(case.arguments[name]) for name in kept}
    run = call(case, limit, deadly=deadly)
    findings = list(_of_conduct(case, run))
    for name, contents in before.items():
        if not same(contents, snapshot(case.arguments[name])):
            findings.append(Finding("input changed", case.function, f"{name} is not what it was before the call"))
    if run.error is not None:
        findings += _of_error(case, run.error)
    else:
        findings += _of_result(case, run.result)
    findings = list({finding.kind: finding for finding in reversed(findings)}.values())[::-1]  # the first of each kind
    refused = isinstance(run.error, case.refusals) and not findings
    taken = run.error is None
    return Outcome(index, generator.area, case.function, case.valid is True, taken, refused, findings, run.seconds)


def _of_conduct(case: Case, run: Run) -> Iterator[Finding]:
    if run.printed and not case.prints:
        yield Finding("printed", case.function, repr(run.printed[:80]))
    if run.changed:
        yield Finding("state changed", case.function, ", ".join(run.changed))
    for warning in run.caught:
        if not _is_advice(case, warning):
            yield _of_warning(case, warning)


def _is_advice(case: Case, warning: warnings.WarningMessage) -> bool:
    if issubclass(warning.category, codiag.ConvergenceWarning | ResourceWarning):  # the latter belongs to another call
        return True
    return case.advice and warning.category is UserWarning


def _of_error(case: Case, error: BaseException) -> Iterator[Finding]:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(LIBRARY)]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    text = f"{type(error).__name__}: {str(error)[:300]}".replace("\n", " ")
    spoiled = f" (with {case.spoiled}={_shown(case.arguments.get(case.spoiled))})" if case.spoiled else ""
    if isinstance(error, Endless):
        yield Finding("endless", case.function, f"more than the time limit{spoiled}", place)
    elif not frames or (not ours and case.valid is None and not case.spoiled):
        yield Finding("fuzzer", case.function, text, f"{Path(frames[-1].filename).name}:{frames[-1].lineno}")
    elif case.valid is True:
        yield Finding("refused valid", case.function, text, place)
    elif type(error) not in (*case.refusals, UndeterminedError, FailedFitsError, sklearn.exceptions.NotFittedError):
        yield Finding("wrong exception", case.function, text + spoiled, place)
    elif isinstance(error, FileNotFoundError):
        return
    elif not any(part in frames[-1].filename for part in REFUSERS):
        yield Finding("not codiag's refusal", case.function, text + spoiled, place)
    elif not names_an_argument(case, str(error)) and LIBRARY in frames[-1].filename:
        yield Finding("names no argument", case.function, text + spoiled, place)


def names_an_argument(case: Case, message: str) -> bool:
    """Tell whether a refusal names what it refuses: an argument, a file, or a word the case allows."""
    names = [*case.arguments, *case.named]
    with contextlib.suppress(TypeError, ValueError):
        names += inspect.signature(case.call).parameters
    for value in case.arguments.values():
        if isinstance(value, str | Path) and "/" in str(value):
            names.append(Path(value).name)
        if type(value).__module__.startswith("codiag") and hasattr(value, "get_params"):
            names += value.get_params()
    return any(re.search(rf"(?<![A-Za-z]){re.escape(name)}", message) for name in names if name)


def _of_result(case: Case, result: Any) -> Iterator[Finding]:
    if case.spoiled:
        bad, shown = not_finite(result), _shown(case.arguments.get(case.spoiled))
        if case.nonsense:
            yield Finding("nonsense accepted", case.function, f"{case.spoiled}={shown}")
        if bad and not case.infinite:
            yield Finding("not finite", case.function, f"{bad}, accepting {case.spoiled}={shown}")
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for check in case.checks:
            try:
                yield from (Finding(kind, case.function, line) for kind, line in check(result, case.arguments))
            except Exception as error:
                yield _of_failed_check(case, error)
    ours = [warning for warning in caught if warning.filename.startswith(LIBRARY) and not _is_advice(case, warning)]
    for warning in ours:
        yield _of_warning(case, warning)


def _of_failed_check(case: Case, error: Exception) -> Finding:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(LIBRARY)]
    last = (ours or frames)[-1]
    text = f"looking at the result: {type(error).__name__}: {error}"
    return Finding(
        "wrong exception" if ours else "fuzzer", case.function, text, f"{Path(last.filename).name}:{last.lineno}"
    )


def _of_warning(case: Case, warning: warnings.WarningMessage) -> Finding:
    place = f"{Path(warning.filename).name}:{warning.lineno}"
    return Finding("warning", case.function, f"{warning.category.__name__}: {warning.message}", place)


def _shown(value: Any) -> str:
    text = re.sub(r"\s+", " ", repr(value))
    return text if len(text) <= 60 else text[:57] + "..."
