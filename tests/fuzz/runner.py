"""Share inputs out to worker processes, start dead ones anew, and put together what they found."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import re
import selectors
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .case import Finding
from .known import is_known
from .watch import LIMIT, Outcome

SILENCE = 120.0
"""Seconds after which a worker that says nothing is ended: it sleeps, or waits for something that never comes."""
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Plan:
    """Which inputs to run, and how."""

    seed: int
    inputs: int | None = None
    seconds: float | None = None
    numbers: tuple[int, ...] | None = None  # these alone
    jobs: int = 1
    areas: str = ""
    module: str = ""
    limit: float = LIMIT
    silence: float = SILENCE


class Worker:
    """One process, and the input it is at."""

    def __init__(self, plan: Plan) -> None:
        package = __package__ or "fuzz"
        home = ROOT if package.startswith("tests") else ROOT / "tests"
        paths = [str(home), str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONHASHSEED": "0"}
        environment |= {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
        command = [sys.executable, "-m", f"{package}.worker", str(plan.seed), plan.areas, plan.module, str(plan.limit)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, bufsize=1
        )
        self.index = -1
        self.function, self.area = "", ""
        self.since = time.monotonic()

    def give(self, index: int) -> None:
        """Hand over the next input."""
        self.index, self.function, self.since = index, "", time.monotonic()
        self.process.stdin.write(f"{index}\n")
        self.process.stdin.flush()

    def hear(self) -> Outcome | str:
        """Return the outcome of the input, or in a word why there is none yet."""
        line = self.process.stdout.readline()
        if not line:
            return "dead"
        self.since = time.monotonic()
        if line.strip() in ("ready", "skipped"):
            return line.strip()
        said = json.loads(line)
        if len(said) == 2:
            self.function, self.area = said
            return "begun"
        found = [Finding(*finding) for finding in said[6]]
        return Outcome(*said[:6], found, said[7])

    def lost(self) -> Outcome:
        """Return what there is to say about an input that took the worker with it."""
        self.process.kill()
        code = self.process.wait()
        self._close()
        line = f"the process was ended by signal {-code}" if code < 0 else f"the process ended with status {code}"
        finding = Finding("killed", self.function, line)
        seconds = time.monotonic() - self.since
        return Outcome(self.index, self.area, self.function, True, False, False, [finding], seconds)

    def _close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            with contextlib.suppress(BrokenPipeError):
                pipe.close()

    def end(self) -> None:
        """Let the process go."""
        self._close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Pool:
    """The workers of a plan, and the numbers they have not been given yet."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.started = plan, time.monotonic()
        self.numbers = iter(plan.numbers or (range(plan.inputs) if plan.inputs is not None else itertools.count()))
        self.selector = selectors.DefaultSelector()
        self.workers: set[Worker] = set()
        self.suspects: set[int] = set()  # inputs that took a worker with them once

    def begin(self) -> None:
        """Start a worker."""
        worker = Worker(self.plan)
        self.workers.add(worker)
        self.selector.register(worker.process.stdout, selectors.EVENT_READ, worker)

    def leave(self, worker: Worker) -> None:
        """Forget a worker."""
        self.selector.unregister(worker.process.stdout)
        self.workers.discard(worker)

    def go_on(self, worker: Worker) -> None:
        """Give a worker its next input, or let it go where there is none, or no time left."""
        over = self.plan.seconds is not None and time.monotonic() - self.started > self.plan.seconds
        index = None if over else next(self.numbers, None)
        if index is None:
            self.leave(worker)
            worker.end()
        else:
            worker.give(index)

    def heard(self, worker: Worker) -> Outcome | None:
        """Take what a worker says, and return the outcome of an input if that is it."""
        said = worker.hear()
        if said == "dead":
            if worker.index < 0:
                raise RuntimeError("a worker did not start; see what it wrote above")
            return self.replaced(worker)
        if said != "begun":
            self.go_on(worker)
        return said if isinstance(said, Outcome) else None

    def replaced(self, worker: Worker) -> Outcome | None:
        """Start another worker for one that is dead or silent, and return the outcome of the input it was at.

        That input is tried once more before it is blamed: a machine that stood still for a moment ends workers, too.
        """
        self.leave(worker)
        self.begin()
        lost = worker.lost()
        if lost.index in self.suspects:
            return lost
        self.suspects.add(lost.index)
        self.numbers = itertools.chain([lost.index], self.numbers)
        return None


def run(plan: Plan) -> Iterator[Outcome]:
    """Run the inputs of a plan, and yield their outcomes as they come."""
    pool = Pool(plan)
    for _ in range(plan.jobs):
        pool.begin()
    try:
        while pool.workers:
            outcomes = [pool.heard(key.data) for key, _ in pool.selector.select(timeout=1.0)]
            silent = [worker for worker in pool.workers if time.monotonic() - worker.since > plan.silence]
            outcomes += [pool.replaced(worker) for worker in silent]
            yield from (outcome for outcome in outcomes if outcome is not None)
    finally:
        for worker in pool.workers:
            worker.process.kill()
            worker.process.wait()


@dataclass
class Summary:
    """What became of all inputs."""

    count_known: bool = False
    inputs: int = 0
    valid: int = 0
    accepted: int = 0
    refused: int = 0
    known: int = 0
    slowest: tuple[float, int, str] = (0.0, -1, "")
    by_function: Counter = field(default_factory=Counter)
    seconds: Counter = field(default_factory=Counter)
    groups: dict[tuple[str, ...], list[tuple[int, Finding]]] = field(default_factory=lambda: defaultdict(list))
    started: float = field(default_factory=time.monotonic)

    def add(self, outcome: Outcome) -> None:
        """Count an outcome."""
        self.inputs += 1
        self.valid += outcome.valid
        self.accepted += outcome.accepted
        self.refused += outcome.refused
        self.by_function[outcome.function] += 1
        self.seconds[outcome.area] += outcome.seconds
        self.slowest = max(self.slowest, (outcome.seconds, outcome.index, outcome.function))
        for finding in outcome.findings:
            if is_known(finding) and not self.count_known:
                self.known += 1
                continue
            self.groups[cause(outcome.area, finding)].append((outcome.index, finding))

    @property
    def findings(self) -> int:
        """The number of findings, each counted by itself."""
        return sum(len(found) for found in self.groups.values())

    def table(self) -> str:
        """Return findings grouped by cause, the most frequent first."""
        lines = []
        for key, found in sorted(self.groups.items(), key=lambda item: (item[0][0], item[0][1], -len(item[1]))):
            index, finding = min(found, key=lambda one: (len(one[1].line), one[0]))
            where = f" [{finding.place}]" if finding.place else ""
            line = f"{key[0]:10.10}  {finding.kind:20.20}  {finding.function:38.38}  {len(found):4}x  --only {index:<6}"
            lines.append(f"{line} {finding.line[:220]}{where}")
        return "\n".join(lines)

    def line(self) -> str:
        """Return the summary in one line."""
        seconds, index, function = self.slowest
        return (
            f"{self.inputs} inputs, {self.valid / max(self.inputs, 1):.0%} valid by construction, "
            f"{self.accepted / max(self.inputs, 1):.0%} accepted, {self.refused} refused, "
            f"{self.findings} findings of {len(self.groups)} causes, {time.monotonic() - self.started:.0f} s; "
            f"slowest {seconds:.1f} s ({function}, --only {index})"
        )


def cause(area: str, finding: Finding) -> tuple[str, ...]:
    """Return what findings of one cause have in common: all but the numbers."""
    plain = re.sub(r"\(with .*|accepting .*|=.*", "", finding.line)
    plain = re.sub(r"[-+]?\d[\d.e+-]*|nan|inf", "#", plain)
    return (area, finding.kind, finding.place or plain[:60], finding.function if not finding.place else "")
