"""The paper's experiments: resumed, shared by processes, judged, and shown."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from experiments.__main__ import ARCHIVE, main
from experiments.chapters import KINDS, chapters_of, kind_of, summary, whole_markdown
from experiments.claims import Claim, Ruling, Trials, judge, of_parts, rules, verdict_probability
from experiments.messages import FINDINGS, PLACES
from experiments.paper import CLAIMS, EXPERIMENTS
from experiments.paper.trials import grid, n_trials, stage_of
from experiments.records import Journal, Record, agree, as_line, read_archive, write_archive
from experiments.reports import Report
from experiments.runs import Experiment, code_version, merge, read, run, seed_of

pytestmark = pytest.mark.slow

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
    command = [sys.executable, "-m", "experiments", "run", "convergence", "--fresh", "--records-only", "--out"]
    command += [str(tmp_path)]
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


def test_records_name_their_seed_their_code_and_their_time(tmp_path):
    run([TOY], tmp_path, quick=True)
    for record in read(TOY, tmp_path):
        assert record.seed == seed_of("toy", record.cell)
        assert record.version == code_version()
        assert record.seconds >= 0


def test_an_archive_adds_up_and_is_not_run_again(tmp_path):
    archive = tmp_path / "archive"
    run([TOY], tmp_path / "first", quick=True)
    assert merge(TOY, tmp_path / "first", archive) == 4
    assert merge(TOY, tmp_path / "first", archive) == 0
    run([TOY], tmp_path / "second", archive=archive)
    assert len(read(TOY, tmp_path / "second")) == 16
    assert merge(TOY, tmp_path / "second", archive) == 16
    run([TOY], tmp_path / "whole")
    assert [agree(*pair) for pair in zip(read(TOY, tmp_path, archive), read(TOY, tmp_path / "whole"), strict=True)] == (
        [True] * 20
    )


def test_an_archive_has_the_same_bytes_for_the_same_records(tmp_path):
    records = [Record({"a": 1, "trial": trial}, {"x": trial / 7, "y": float("nan")}) for trial in range(5)]
    for name in ("one", "two"):
        write_archive(tmp_path, name, records)
    assert (tmp_path / "one.jsonl.gz").read_bytes() == (tmp_path / "two.jsonl.gz").read_bytes()
    found = list(read_archive(tmp_path, "one").values())
    assert [agree(one, two, 1e-6) for one, two in zip(found, records, strict=True)] == [True] * 5
    assert not agree(records[1], records[2])
    assert b"0.1428571" in as_line(records[1])


def test_the_table_of_claims_is_read_and_each_has_an_experiment():
    assert list(CLAIMS) == list(rules()) == list(range(1, 38))
    assert {claim.experiment for claim in CLAIMS.values()} <= set(EXPERIMENTS)
    assert all(claim.setup and claim.rule and claim.sentence.endswith(".") for claim in CLAIMS.values())
    assert {claim.number for claim in CLAIMS.values() if claim.enough < 20} == {20, 35}


def test_every_chapter_has_its_message_and_its_place():
    assert {name for _, name in PLACES} == set(FINDINGS) == set(EXPERIMENTS)
    for says, found in FINDINGS.values():
        assert says.endswith(".")
        assert found.endswith(".")


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
    claim = Claim(1, "toy", _mean_is_small)
    records = [Record({"place": 1, "trial": trial}, {"x": 0.5}) for trial in range(count)]
    assert judge(claim, records).verdict == verdict
    spoiled = [Record(record.cell, {"x": float("nan")}) for record in records]
    assert judge(claim, spoiled).verdict == "open"


def test_unknown_names_are_answered_with_the_known(tmp_path, capsys):
    assert main(["run", "everything", "--out", str(tmp_path)]) == 2
    assert "name must be all, or one of projections" in capsys.readouterr().err


def test_help_names_the_experiments(capsys):
    with pytest.raises(SystemExit) as end:
        main(["run", "--help"])
    assert end.value.code == 0
    told = capsys.readouterr().out
    for name in EXPERIMENTS:
        assert name in told


def test_trials_that_are_enough_come_before_all_others():
    history = [stage_of(trial, 20, 50) for trial in range(50)]
    assert history == sorted(history)
    assert max(history[:20]) < 1 < 4 <= history[20]
    assert stage_of(500, 1000) == stage_of(10, 20)  # halfway, both


def coin_records(share, count):
    return [Record({"place": 1, "trial": t}, {"x": float(t < share * count)}) for t in range(count)]


def _rarely(trials):
    return Ruling("", of_parts(trials.mean("x", place=1) < 0.5))


RARELY = Claim(1, "toy", _rarely)


def test_the_probability_of_a_verdict_is_that_of_other_draws():
    """A share of 0.3 among 50 is below a half but for one draw in 600; one of 0.48 is a toss of a coin."""
    sure, unsure = (judge(RARELY, coin_records(share, 50)) for share in (0.3, 0.48))
    assert sure.verdict == "holds"
    assert sure.probability > 0.95
    assert unsure.verdict == "undecided by 50 trials"
    assert unsure.probability < 0.9
    assert "trials a place would" in unsure.needed


def test_more_trials_decide():
    trials = Trials(coin_records(0.4, 50))
    assert trials.mean("x", place=1) < 0.5
    few, many = (verdict_probability(RARELY, trials, "yes", times) for times in (1, 16))
    assert few < many
    assert many > 0.99


def test_a_draw_keeps_the_trials_of_every_place_together():
    records = [Record({"place": p, "trial": t}, {"x": 10.0 * p, "y": 20.0 * p}) for p in (1, 2) for t in range(3)]
    drawn = Trials(records, np.array([3, 0, 0, 1, 1, 1]))
    np.testing.assert_allclose(drawn.values("x", place=1), [10, 10, 10])
    np.testing.assert_allclose(drawn.values("y", place=2), [40, 40, 40])
    assert [record.cell["trial"] for record in drawn.at(place=1)] == [0, 0, 0]
    assert n_trials(records) == "3"


@pytest.mark.parametrize(("met", "of", "verdict"), [(3, 3, "yes"), (1, 3, "partly"), (1, 4, "no"), (0, 1, "no")])
def test_a_third_of_the_parts_is_part(met, of, verdict):
    assert of_parts(*([True] * met + [False] * (of - met))) == verdict


@pytest.mark.parametrize("number", CLAIMS)
def test_a_claim_with_hardly_any_records_is_open(number):
    claim = CLAIMS[number]
    cell = EXPERIMENTS[claim.experiment].cells(False)[0]
    for records in ([], [Record(cell, {})]):
        assert judge(claim, records).verdict == "open"


@pytest.mark.parametrize(("after_ten", "verdict"), [(81.0, "holds"), (79.0, "does not hold")])
def test_a_lead_on_a_crowd_counts_if_nine_and_ten_updates_agree(after_ten, verdict):
    others = {f"{name}, {n} rounds": 80.0 for name in ("TPM", "OJD1", "ALS", "Lathauwer") for n in (9, 10)}
    values = others | {"NOJD1, 9 rounds": 81.0, "NOJD1, 10 rounds": after_ten}
    cells = [cell for cell in EXPERIMENTS["crowd"].cells(False) if cell["split"] != "none"]
    assert judge(CLAIMS[21], [Record(cell, values) for cell in cells]).verdict == verdict


def test_many_random_projections_err_as_isotropic_ones_do():
    """The first-order error depends on directions by the sum of their squares alone."""
    cell = {"what": "accuracy", "mu": 0.6, "trial": 0}
    values = EXPERIMENTS["incoherence"].measure(cell, 0)
    assert values["isotropic"] == pytest.approx(values["isotropic, theory"], rel=1e-2)
    assert values["random"] == pytest.approx(values["isotropic"], rel=0.2)
    assert values["inverse factors"] > 1.05 * values["isotropic"]


DOCS = ROOT / "docs" / "REPRODUCTION.md"


@pytest.mark.skipif(not DOCS.exists(), reason="the documents are not part of this distribution")
class TestDocuments:
    """What stands in the repository about the paper."""

    def verdicts(self):
        return json.loads((DOCS.parent / "reproduction" / "verdicts.json").read_text())

    def test_every_claim_has_a_verdict_with_a_probability(self):
        rows = self.verdicts()["claims"]
        assert [row["number"] for row in rows] == list(CLAIMS)
        assert {row["verdict"] for row in rows} <= set(KINDS) - {"open"}
        for row in rows:
            assert (row["probability"] < 0.9) == (row["verdict"] == "undecided")
            assert row["trials"] >= CLAIMS[row["number"]].enough

    def test_every_row_of_the_document_is_that_of_the_verdicts(self):
        text = DOCS.read_text()
        for row in self.verdicts()["claims"]:
            assert f"| {row['number']} | {row['claim']} | {row['measured']} | {row['verdict']}" in text

    def test_every_verdict_that_is_not_plain_has_its_reason(self):
        words = {"holds in part": "partly", "does not hold": "no", "holds": "yes"}
        for row in self.verdicts()["claims"]:
            if row["likely"] not in ("holds", "open"):
                assert CLAIMS[row["number"]].reasons[words[row["likely"]]] in DOCS.read_text()

    def test_records_are_small_and_every_experiment_has_some(self):
        files = {path.name.split(".")[0]: path.stat().st_size for path in ARCHIVE.glob("*.jsonl.gz")}
        assert set(files) >= {claim.experiment for claim in CLAIMS.values()}
        assert sum(files.values()) < 20e6

    def test_the_first_sentence_of_the_page_counts_as_the_verdicts_do(self):
        kinds = [row["verdict"] for row in self.verdicts()["claims"]]
        assert summary(kinds) == self.verdicts()["summary"]
        assert self.verdicts()["summary"] in DOCS.read_text().split("\n\n")[1]
        assert "(docs/REPRODUCTION.md)" in (ROOT / "README.md").read_text()

    def test_no_number_is_missing_from_the_document(self):
        assert not re.search(r"\bnan\b", DOCS.read_text())

    @pytest.mark.slow
    def test_verdicts_come_from_the_records_alone(self, tmp_path):
        chapters, judgements = chapters_of(tmp_path, ARCHIVE)
        assert [kind_of(one) for one in judgements] == [row["verdict"] for row in self.verdicts()["claims"]]
        assert whole_markdown(chapters, judgements) == DOCS.read_text()
