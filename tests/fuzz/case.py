"""A call of a public function, made under watch: time, memory, warnings, output, exceptions, arguments, state."""

from __future__ import annotations

import contextlib
import inspect
import io
import logging
import os
import random
import re
import signal
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import sklearn.exceptions
from scipy import sparse
from threadpoolctl import threadpool_info

import codiag
from codiag._checks import RankDeficientError
from codiag.tensors import Tensor

from .invariants import Check, not_finite

LIMIT = 20.0  # seconds of processor time that one call may take
MEMORY = 6 * 2**30  # bytes of address space that one call may add: more is a `MemoryError`
LIBRARY = str(Path(codiag.__file__).parent)
REFUSERS = (LIBRARY, str(Path("sklearn", "utils", "validation.py")), str(Path("sklearn", "utils", "_")))
"""Files whose refusals are codiag's: its own, and the checks of scikit-learn that its estimators ask for."""


class Finding(NamedTuple):
    """Something that must not be."""

    kind: str
    line: str
    place: str = ""  # the line of codiag it comes from, where there is one


@dataclass(eq=False)
class Case:
    """A call, and what must be true of its result; its arguments must be the same, byte by byte, after it."""

    function: str
    call: Callable[..., Any]
    arguments: dict[str, Any]
    valid: bool | None = True  # a refusal is a finding; where None, codiag may refuse, naming an argument
    checks: tuple[Check, ...] = ()  # of the result, unless an argument was replaced
    named: tuple[str, ...] = ()  # words, beside the names of the arguments, by which a refusal may name one of them
    refusals: tuple[type, ...] = (ValueError, TypeError)
    advice: bool = False  # a `UserWarning` is part of what the function promises
    broken: str = ""  # the name of the argument that was replaced
    nonsense: bool = False  # by something that can have no meaning there


class EndlessError(BaseException):
    """A call has taken longer than it may; not an `Exception`, so that nothing on the way catches it."""


@contextlib.contextmanager
def limits(seconds: float, more: int = MEMORY) -> Iterator[None]:
    """Raise `EndlessError` after so much processor time, and `MemoryError` beyond so many more bytes, on Linux.

    Where no Python runs any more, the kernel ends the process.
    """
    usage = Path("/proc/self/statm")
    if not usage.exists():
        yield
        return
    import resource

    def stop(signum: int, frame: Any) -> None:
        raise EndlessError

    size = int(usage.read_text().split()[0]) * resource.getpagesize()
    memory, before = resource.getrlimit(resource.RLIMIT_AS), signal.signal(signal.SIGPROF, stop)
    resource.setrlimit(resource.RLIMIT_AS, (size + more, memory[1]))
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_VIRTUAL, 2 * seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGPROF, before)
        resource.setrlimit(resource.RLIMIT_AS, memory)


def global_state() -> dict[str, Any]:
    """Return what calls have in common, in a form that can be compared."""
    kind, keys, *rest = np.random.get_state(legacy=True)  # noqa: NPY002
    return {
        "np.random": (kind, keys.tobytes(), tuple(rest)),
        "random": random.getstate(),
        "np.geterr": np.geterr(),
        "warnings.filters": tuple(warnings.filters),
        "threads": tuple(library["num_threads"] for library in threadpool_info()),
        "os.environ": dict(os.environ),
        "log levels": [logging.getLogger(name).level for name in ("", "codiag", "codiag.reads")],
    }


def snapshot(value: Any) -> Any:
    """Return the contents of an argument, byte by byte, in a form that can be compared."""
    if isinstance(value, np.ndarray):
        contents = repr(value.tolist()) if value.dtype.hasobject else value.tobytes()
        return str(value.dtype), value.shape, value.strides, value.flags.writeable, contents
    if sparse.issparse(value):
        return value.format, value.shape, snapshot(value.data), snapshot(value.indices)
    if isinstance(value, list | tuple):
        return type(value).__name__, *map(snapshot, value)
    if isinstance(value, dict):
        return tuple((repr(key), snapshot(item)) for key, item in value.items())
    if isinstance(value, Path):
        return value.read_bytes() if value.is_file() else str(value)
    if isinstance(value, Tensor):
        return [snapshot(item) for item in vars(value).values() if isinstance(item, np.ndarray | list | tuple)]
    return repr(value) if isinstance(value, int | float | complex | str | bytes) else None


def check(case: Case, limit: float = LIMIT) -> None:
    """Make a call, and fail with all that must not be."""
    findings = examine(case, limit)
    lines = [f"{finding.kind}: {finding.line} {finding.place}".rstrip() for finding in findings]
    assert not findings, "\n".join([case.function, *lines])


def examine(case: Case, limit: float = LIMIT) -> list[Finding]:
    """Make a call and return all that must not be, the first of each kind."""
    before = {name: snapshot(value) for name, value in case.arguments.items()}
    result, error, printed = None, None, io.StringIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        state = global_state()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            try:
                with limits(limit):
                    result = case.call(**case.arguments)
            except (Exception, EndlessError, SystemExit) as raised:
                error = raised
        changed = [name for name, value in global_state().items() if value != state[name]]
    findings = [Finding("printed", repr(printed.getvalue()[:80]))] if printed.getvalue() else []
    findings += [Finding("state changed", ", ".join(changed))] if changed else []
    findings += [_of_warning(warning) for warning in caught if not _is_advice(case, warning)]
    for name, contents in before.items():
        if contents != snapshot(case.arguments[name]):
            findings.append(Finding("input changed", f"{name} is not what it was before the call"))
    findings += _of_result(case, result) if error is None else _of_error(case, error)
    return list({finding.kind: finding for finding in reversed(findings)}.values())[::-1]


def _is_advice(case: Case, warning: warnings.WarningMessage) -> bool:
    if issubclass(warning.category, codiag.ConvergenceWarning | ResourceWarning):  # the latter belongs to another call
        return True
    return case.advice and warning.category is UserWarning


def _of_warning(warning: warnings.WarningMessage) -> Finding:
    place = f"{Path(warning.filename).name}:{warning.lineno}"
    return Finding("warning", f"{warning.category.__name__}: {warning.message}", place)


def _of_error(case: Case, error: BaseException) -> Iterator[Finding]:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if frame.filename.startswith(LIBRARY)]
    place = f"{Path(ours[-1].filename).name}:{ours[-1].lineno}" if ours else ""
    text = f"{type(error).__name__}: {str(error)[:300]}".replace("\n", " ")
    allowed = (*case.refusals, RankDeficientError, codiag.FailedFitsError, sklearn.exceptions.NotFittedError)
    if isinstance(error, EndlessError):
        yield Finding("endless", "more than the time limit", place)
    elif case.valid is True:
        yield Finding("refused valid", text, place)
    elif type(error) not in allowed:
        yield Finding("wrong exception", text, place)
    elif not any(part in frames[-1].filename for part in REFUSERS):
        yield Finding("not codiag's refusal", text, place)
    elif not names_an_argument(case, str(error)) and LIBRARY in frames[-1].filename:
        yield Finding("names no argument", text, place)


def names_an_argument(case: Case, message: str) -> bool:
    """Tell whether a refusal names what it refuses: an argument, a file, or a word the case allows."""
    names = [*case.arguments, *case.named]
    with contextlib.suppress(TypeError, ValueError):
        names += inspect.signature(case.call).parameters
    names += [Path(value).name for value in case.arguments.values() if isinstance(value, str | Path)]
    return any(re.search(rf"(?<![A-Za-z]){re.escape(name)}", message) for name in names if name)


def _of_result(case: Case, result: Any) -> Iterator[Finding]:
    if case.broken:
        bad = not_finite(result)
        if case.nonsense:
            yield Finding("nonsense accepted", f"{case.broken}={case.arguments[case.broken]!r:.60}")
        if bad:
            yield Finding("not finite", bad)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for one in case.checks:
            yield from (Finding(kind, line) for kind, line in one(result, case.arguments))
    ours = [warning for warning in caught if warning.filename.startswith(LIBRARY) and not _is_advice(case, warning)]
    yield from map(_of_warning, ours)
