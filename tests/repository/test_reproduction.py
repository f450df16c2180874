"""The paper's experiments: resumed, shared by processes, judged, and shown."""

from __future__ import annotations

import csv
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from experiments.__main__ import app
from experiments.claims import VERDICTS, Claim, Ruling, judge
from experiments.paper import CLAIMS, EXPERIMENTS
from experiments.paper.trials import grid
from experiments.records import Journal, Record, as_csv
from experiments.reports import Report
from experiments.runs import Experiment, read, run, seed_of

runner = CliRunner()
HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def cells(quick):
    return grid({"size": [3, 5]}, 2 if quick else 10)


def measure(cell, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((40, 40))
    time.sleep(0.02)
    return {"draw": rng.random(), "norm": float(np.linalg.norm(matrix @ matrix)) * cell["size"]}


def broken(cell, seed):
    if cell["trial"] == 1:
        raise ValueError("no answer")
    return measure(cell, seed)


def report(records):
    return Report([], [])


TOY = Experiment("toy", "A toy", "draws at random", cells, measure, report)
BROKEN = Experiment("broken", "Broken", "fails at times", cells, broken, report)


def started(folder, jobs=0):
    """Run the toy in a process of its own."""
    code = f"from test_reproduction import *; run([TOY], Path({str(folder)!r}), jobs={jobs})"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    return subprocess.Popen([sys.executable, "-c", code], env=environment)


def wait_for_lines(path, count, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and (not path.exists() or path.read_bytes().count(b"\n") < count):
        time.sleep(0.02)


def test_seeds_come_from_the_axes_and_trials_are_outermost():
    assert cells(True)[:2] == [{"size": 3, "trial": 0}, {"size": 5, "trial": 0}]
    assert seed_of("toy", {"a": 1, "b": 2}) == seed_of("toy", {"b": 2, "a": 1})
    assert seed_of("toy", {"a": 1}) != seed_of("other", {"a": 1})


def test_a_quick_run_is_part_of_the_whole(tmp_path):
    run([TOY], tmp_path / "parts", quick=True)
    assert len(read(TOY, tmp_path / "parts")) == 4
    run([TOY], tmp_path / "parts")
    run([TOY], tmp_path / "whole")
    assert read(TOY, tmp_path / "parts") == read(TOY, tmp_path / "whole")


def test_a_line_cut_by_a_kill_costs_no_other_record(tmp_path):
    run([TOY], tmp_path, quick=True)
    path = tmp_path / "toy.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])  # the last record is cut
    run([TOY], tmp_path, quick=True)
    again = Journal(tmp_path, "toy")
    again.refresh()
    assert len(again.records) == 4
    assert read(TOY, tmp_path) == [Record(r.cell, r.values) for r in read(TOY, tmp_path)]
    assert len(path.read_bytes().splitlines()) == 5


@pytest.mark.parametrize(
    "line", ['{"cell": {"size": 3}}', "[]", "3", '{"cell": 1, "values": {}}', '{"cell": {}, "values": {"a": "b"}}', "{"]
)
def test_what_is_not_a_record_is_passed_over(tmp_path, line):
    run([TOY], tmp_path, quick=True)
    path = tmp_path / "toy.jsonl"
    path.write_text(line + "\n" + path.read_text())
    assert len(read(TOY, tmp_path)) == 4
    assert run([TOY], tmp_path, quick=True) == []


def test_a_killed_process_leaves_what_it_had_and_its_claims_go_with_it(tmp_path):
    run([TOY], tmp_path / "whole")
    process = started(tmp_path / "killed", jobs=1)
    wait_for_lines(tmp_path / "killed" / "toy.jsonl", 3)
    process.kill()
    process.wait()
    assert 3 <= len(read(TOY, tmp_path / "killed")) < 20
    run([TOY], tmp_path / "killed")
    assert read(TOY, tmp_path / "killed") == read(TOY, tmp_path / "whole")


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="there is no /proc to find processes in")
def test_workers_end_with_the_process_that_started_them(tmp_path):
    process = started(tmp_path, jobs=1)
    wait_for_lines(tmp_path / "toy.jsonl", 1)
    workers = children_of(process.pid)
    process.kill()
    process.wait()
    assert workers
    end = time.monotonic() + 20
    while any(is_running(worker) for worker in workers) and time.monotonic() < end:
        time.sleep(0.05)
    assert not any(is_running(worker) for worker in workers)


def children_of(parent):
    """Return the processes that a process has started: the worker, and the tracker of what they share."""
    stats = [path.read_text() for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
    return [int(stat.split()[0]) for stat in stats if int(stat.rpartition(")")[2].split()[1]) == parent]


def is_running(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_two_processes_in_one_folder_share_the_work(tmp_path):
    run([TOY], tmp_path / "one")
    both = [started(tmp_path / "two", jobs) for jobs in (0, 1)]
    assert [process.wait() for process in both] == [0, 0]
    assert (tmp_path / "two" / "toy.jsonl").read_bytes().count(b"\n") == 20  # none was run twice
    assert read(TOY, tmp_path / "two") == read(TOY, tmp_path / "one")


def test_what_is_urgent_comes_first_whichever_experiment_it_is_of(tmp_path):
    late = Experiment("late", "Late", "", cells, measure, report, stage=lambda _: 1)
    order = []
    run([late, TOY], tmp_path, quick=True, progress=lambda done, _: order.append(done))
    first = json.loads((tmp_path / "toy.jsonl").read_text().splitlines()[0])
    assert first["cell"] == {"size": 3, "trial": 0}
    assert (tmp_path / "toy.jsonl").stat().st_mtime_ns < (tmp_path / "late.jsonl").stat().st_mtime_ns
    assert order[-1] == 8


def test_no_trial_is_begun_after_the_time(tmp_path):
    run([TOY], tmp_path, minutes=-1)
    assert read(TOY, tmp_path) == []


@pytest.mark.parametrize("jobs", [0, 2])
def test_a_trial_that_fails_is_told_and_the_others_go_on(tmp_path, jobs):
    failures = run([BROKEN], tmp_path, quick=True, jobs=jobs)
    assert len(failures) == 2
    assert all("no answer" in failure and '"trial": 1' in failure for failure in failures)
    assert len(read(BROKEN, tmp_path)) == 2


def test_an_interruption_says_what_is_kept(tmp_path):
    command = [sys.executable, "-m", "experiments", "run", "convergence", "--records-only", "--out", str(tmp_path)]
    process = subprocess.Popen(
        [*command, "--jobs", "2"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a suite in the background ignores it
    )
    try:
        wait_for_lines(tmp_path / "convergence.jsonl", 2)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # none of its workers may outlive the test
    assert process.returncode == 130
    assert "Stopped. What was finished is kept" in " ".join(told.split())
    assert "Traceback" not in told
    assert len(read(EXPERIMENTS["convergence"], tmp_path)) >= 2


def test_numbers_go_to_csv():
    rows = list(csv.DictReader(StringIO(as_csv([Record({"a": 1}, {"x": 0.1, "y": float("nan")})]))))
    assert rows == [{"a": "1", "name": "x", "value": "0.1"}, {"a": "1", "name": "y", "value": "nan"}]


def test_there_are_thirty_two_claims_and_each_has_an_experiment():
    assert list(CLAIMS) == list(range(1, 33))
    assert {claim.experiment for claim in CLAIMS.values()} <= set(EXPERIMENTS)
    assert all(claim.setup and claim.rule and claim.sentence.endswith(".") for claim in CLAIMS.values())
    assert all(claim.enough >= 20 for claim in CLAIMS.values() if claim.number != 20)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_quick_places_are_among_the_others(name):
    experiment = EXPERIMENTS[name]
    whole = {json.dumps(cell, sort_keys=True) for cell in experiment.cells(False)}
    quick = [json.dumps(cell, sort_keys=True) for cell in experiment.cells(True)]
    assert len(whole) == len(list(experiment.cells(False)))
    assert set(quick) <= whole
    assert 0 < len(quick) < len(whole)


def _mean_is_small(trials):
    return Ruling("small", "yes" if trials.mean("x", place=1) < 1 else "no")


@pytest.mark.parametrize(("count", "verdict"), [(0, "open"), (19, "open"), (20, "holds")])
def test_a_place_with_too_few_trials_leaves_a_claim_open(count, verdict):
    claim = Claim(1, "It is small.", "toy", "there", "below one", _mean_is_small)
    records = [Record({"place": 1, "trial": trial}, {"x": 0.5}) for trial in range(count)]
    assert judge(claim, records).verdict == verdict
    spoiled = [Record(record.cell, {"x": float("nan")}) for record in records]
    assert judge(claim, spoiled).verdict == "open"


def test_unknown_names_are_answered_with_the_known(tmp_path):
    result = runner.invoke(app, ["run", "everything", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "name must be all, or one of projections" in " ".join(result.output.split())


def test_help_names_the_experiments():
    result = runner.invoke(app, ["run", "--help"])
    assert result.exit_code == 0
    for name in EXPERIMENTS:
        assert name in result.output


@pytest.mark.parametrize("number", CLAIMS)
def test_a_claim_with_hardly_any_records_is_open(number):
    claim = CLAIMS[number]
    cell = EXPERIMENTS[claim.experiment].cells(False)[0]
    for records in ([], [Record(cell, {})]):
        assert judge(claim, records).verdict == "open"


DOCS = ROOT / "docs" / "REPRODUCTION.md"


@pytest.mark.skipif(not DOCS.exists(), reason="the documents are not part of this distribution")
class TestDocuments:
    """What stands in the repository about the paper."""

    def rows(self):
        found = re.findall(r"^\| (\d+) \| (.+) \| (.+) \| (.+) \|$", DOCS.read_text().split("\n## ")[0], re.MULTILINE)
        return {int(number): (sentence, verdict) for number, sentence, _, verdict in found}

    def test_every_claim_has_a_row_and_at_most_three_are_open(self):
        rows = self.rows()
        assert {number: sentence for number, (sentence, _) in rows.items()} == {
            number: claim.sentence for number, claim in CLAIMS.items()
        }
        verdicts = [verdict for _, verdict in rows.values()]
        assert set(verdicts) <= set(VERDICTS.values())
        assert verdicts.count("open") <= 3

    def test_every_verdict_that_is_not_plain_has_its_reason(self):
        words = {told: word for word, told in VERDICTS.items()}
        for number, (_, verdict) in self.rows().items():
            if verdict not in ("holds", "open"):
                assert f"- **{number}, {verdict}.** {CLAIMS[number].reasons[words[verdict]]}" in DOCS.read_text()

    def test_the_readme_counts_as_the_table_does(self):
        verdicts = [verdict for _, verdict in self.rows().values()]
        counts = [verdicts.count(kind) for kind in list(VERDICTS.values())[:3]]
        words = f"of {len(verdicts)} claims, {counts[0]} were confirmed, {counts[1]} partly, {counts[2]} not"
        assert words in " ".join((ROOT / "README.md").read_text().split())
