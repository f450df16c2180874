"""The page about large data: what runs in it runs, its numbers are those it gives, and its links lead somewhere."""

from __future__ import annotations

import logging
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "scale.md"
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PAGE.exists(), reason="the page lies in the repository")]
HERE = 'LocalCluster(processes=False, dashboard_address=":0", '
ELSEWHERE = ("dask_jobqueue", "dask_kubernetes")


@pytest.fixture(scope="module")
def text():
    return PAGE.read_text()


@pytest.fixture(scope="module")
def names(text, tmp_path_factory):
    """Run all snippets but those for clusters that are not here, on threads in place of processes."""
    for package in ("distributed", "zarr"):
        pytest.importorskip(package, reason=f"{package} is not installed; it is in the extras 'dask' and 'files'")
    logger, names = logging.getLogger("codiag.reads"), dict[str, Any]()
    level, handlers = logger.level, list(logger.handlers)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT))
        patch.chdir(tmp_path_factory.mktemp("page"))
        for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
            code = compile(block.replace("LocalCluster(", HERE), PAGE.name, "exec")
            if not any(package in block for package in ELSEWHERE):
                exec(code, names)
    logger.setLevel(level)
    logger.handlers[:] = handlers
    return names


def test_snippets_run_and_say_the_truth(names, text):
    assert f"counter.n_reads                                   # {names['counter'].n_reads}\n" in text


def test_measurements_are_those_that_were_kept(text):
    results = (ROOT / "benchmarks" / "RESULTS.md").read_text()
    section = re.search(r"<!-- passes -->(.*?)<!-- end of passes -->", results, re.DOTALL)
    assert section is not None
    rows = {row for row in section[1].splitlines() if row.startswith("|")}
    assert len(rows) > 9
    assert rows <= set(text.splitlines())


def test_links_lead_somewhere(text):
    for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", text):
        assert (PAGE.parent / target).exists(), target
