"""The core is silent, so that fits in threads neither change what the caller has set nor each other."""

from __future__ import annotations

import ast
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import codiag
from codiag.methods import ALS
from codiag.models import MultiviewMixture, SingleTopic
from codiag.synthetic import matrix_stack, mild_factor
from simulated import single_topic_corpus, views

SOURCE = Path(codiag.__file__).parent
WARNING = {  # the public functions: here, and nowhere below them, something is said
    "_factorize.py",
    "diagonalize/_joint_diagonalize.py",
    "drop_in/_tensorly_cp.py",
    "drop_in/_tensorly_nonnegative.py",
    "models/_base.py",
}


def calling(name):
    """Return the files in which this function of the module `warnings` is called, or imported by name."""
    return {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if (isinstance(node, ast.Attribute) and node.attr == name and ast.unparse(node.value) == "warnings")
        or (isinstance(node, ast.ImportFrom) and node.module == "warnings")
    }


def test_warnings_are_raised_in_public_functions_only():
    assert calling("warn") == WARNING


def test_warnings_are_caught_nowhere():
    """Filters belong to the whole process: changing them for a while is seen by other threads, and may stay."""
    assert calling("catch_warnings") == set()
    assert calling("filterwarnings") == calling("resetwarnings") == set()
    assert calling("simplefilter") <= {"experiments/runs.py"}  # in processes of its own


def work():
    """Return forty fits, most of which have something to warn of or to try twice, as functions without arguments."""
    rng = np.random.default_rng(0)
    tensor, even = rng.standard_normal((5, 6, 7)), np.einsum("ir,jr,kr->ijk", *[rng.standard_normal((5, 5))] * 3)
    stack = matrix_stack(mild_factor(4, 4, 0), 6, noise=0.1, seed=1).matrices
    counts, three = single_topic_corpus(300, 0)[0], views(300, 0)[0]
    jobs, short = [], ALS(max_sweeps=20)
    for seed in range(4):
        jobs += [
            lambda seed=seed, method=method: codiag.factorize(even, 3, method=method, seed=seed).factors[0]
            for method in ("auto", "nojd1", "sd2", "tpm", "nls", short)
        ]
        jobs.append(
            lambda seed=seed: codiag.factorize(tensor, 4, constraints="nonnegative", method=short, seed=seed).factors[0]
        )
        jobs.append(lambda seed=seed: codiag.joint_diagonalize(stack, seed=seed).factor)
        jobs.append(lambda seed=seed: SingleTopic(3, random_state=seed).fit(counts).components_)
        jobs.append(lambda seed=seed: MultiviewMixture(2, random_state=seed).fit(three).means_[0])
    return jobs


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning", "ignore:.*may be more than the data shows")
def test_two_hundred_fits_in_eight_threads():
    jobs = work()
    expected = [job() for job in jobs]
    before, show = list(warnings.filters), warnings.showwarning
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda place: jobs[place % len(jobs)](), range(200)))
    assert warnings.filters == before
    assert warnings.showwarning is show
    for place, ours in enumerate(found):
        assert_array_equal(ours, expected[place % len(jobs)])
