"""The core is silent, so that fits in threads neither change what the caller has set nor each other."""

from __future__ import annotations

import ast
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from threading import Event

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import codiag
from codiag._arrays import SMALL_PRODUCT, ThreadLimit, few_threads
from codiag.methods import ALS, NLS
from codiag.models import MultiviewMixture, SingleTopic
from codiag.synthetic import matrix_stack, mild_factor, noisy_tensor
from simulated import single_topic_corpus, views

SOURCE = Path(codiag.__file__).parent
WARNING = {  # the public functions: here, and nowhere below them, something is said
    "_factorize.py",
    "_factorize_each.py",
    "_coupled/_entry.py",
    "_parafac2/_entry.py",
    "diagonalize/_joint_diagonalize.py",
    "drop_in/ajd/__init__.py",
    "drop_in/_parafac2.py",
    "drop_in/_tensorly.py",
    "models/base/_model.py",
}


@cache
def parsed():
    """Return the nodes of every file that speaks of warnings."""
    texts = {path: path.read_text() for path in SOURCE.rglob("*.py")}
    return {path: list(ast.walk(ast.parse(text))) for path, text in texts.items() if "warnings" in text}


def calling(name):
    """Return the files in which this function of the module `warnings` is called, or imported by name."""
    return {
        path.relative_to(SOURCE).as_posix()
        for path, nodes in parsed().items()
        for node in nodes
        if (isinstance(node, ast.Attribute) and node.attr == name and ast.unparse(node.value) == "warnings")
        or (isinstance(node, ast.ImportFrom) and node.module == "warnings")
    }


def test_warnings_are_raised_in_public_functions_only():
    assert calling("warn") == WARNING


def test_warnings_are_not_caught_in_the_library():
    """Filters belong to the whole process: changing them for a while is seen by other threads, and may stay."""
    for name in ("catch_warnings", "filterwarnings", "resetwarnings", "simplefilter"):
        assert calling(name) <= {"cli/demo.py"}  # a program of its own


def work():
    """Return forty fits, most of which have something to warn of or to try twice, as functions without arguments."""
    rng = np.random.default_rng(0)
    tensor, even = rng.standard_normal((5, 6, 7)), np.einsum("ir,jr,kr->ijk", *[rng.standard_normal((5, 5))] * 3)
    stack = matrix_stack(mild_factor(4, 4, 0), 6, noise=0.1, rng=1).matrices
    counts, three = single_topic_corpus(300, 0)[0], views(300, 0)[0]
    jobs, short = [], ALS(max_iter=20)
    for seed in range(4):
        jobs += [
            lambda seed=seed, method=method: codiag.factorize(even, 3, method=method, rng=seed).factors[0]
            for method in ("auto", "nojd1", "tpm", "nls", short)
        ]
        jobs.append(
            lambda seed=seed: codiag.factorize(tensor, 4, constraints="nonnegative", method=short, rng=seed).factors[0]
        )
        jobs.append(lambda seed=seed: codiag.joint_diagonalize(stack, rng=seed).factor)
        jobs.append(lambda seed=seed: SingleTopic(3, random_state=seed).fit(counts).components_)
        jobs.append(lambda seed=seed: MultiviewMixture(2, random_state=seed).fit(three).means_[0])
    return jobs


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning", "ignore:.*may be more than the data shows")
def test_a_hundred_fits_in_eight_threads():
    jobs = work()
    expected = [job() for job in jobs]
    before, show = list(warnings.filters), warnings.showwarning
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda place: jobs[place % len(jobs)](), range(100)))
    assert warnings.filters == before
    assert warnings.showwarning is show
    for place, ours in enumerate(found):
        assert_array_equal(ours, expected[place % len(jobs)])


@pytest.fixture
def blas():
    """Return the BLAS libraries of this process, set to three threads during a test."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    before = [library.num_threads for library in libraries]
    set_threads(libraries, [3] * len(libraries))
    yield libraries
    set_threads(libraries, before)


def set_threads(libraries, numbers):
    for library, number in zip(libraries, numbers, strict=True):
        library.set_num_threads(number)
        getattr(library, "clear_controlling_thread", lambda: None)()


def numbers(libraries):
    return {library.num_threads for library in libraries}


def test_small_fits_run_on_one_thread_until_the_last_of_them_ends(blas):
    """Whatever the order in which they end, and also if one of them fails."""
    first, second = few_threads(1), few_threads(SMALL_PRODUCT)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert numbers(blas) == {1}
    assert not second.__exit__(ValueError, ValueError("a fit that fails"), None)
    assert numbers(blas) == {3}


def test_a_small_fit_that_outlasts_the_first_in_another_thread_restores_the_threads(blas):
    inside, outlasting = Event(), Event()

    def first():
        with few_threads(1):
            inside.set()
            outlasting.wait(10)

    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(first)
        inside.wait(10)
        with few_threads(1):
            outlasting.set()
            other.result(10)
            assert numbers(blas) == {1}
        assert numbers(blas) == {3}


@pytest.mark.parametrize(("n_multiplications", "expected"), [(1, 1), (1.5, 2), (2, 2), (2.1, 3), (100, 3), (1e300, 3)])
def test_every_thread_has_enough_to_do(blas, n_multiplications, expected):
    with few_threads(n_multiplications * SMALL_PRODUCT):
        assert numbers(blas) == {expected}
    assert numbers(blas) == {3}


def test_a_part_of_a_fit_has_its_own_limit(blas):
    with few_threads(9 * SMALL_PRODUCT):
        with few_threads(1):
            assert numbers(blas) == {1}
            with few_threads(2 * SMALL_PRODUCT):
                assert numbers(blas) == {2}
            assert numbers(blas) == {1}
        assert numbers(blas) == {3}


def test_a_large_fit_has_its_threads_beside_a_small_one(blas):
    """The part of another Python thread that needs most decides."""
    inside, done = Event(), Event()

    def large():
        with few_threads(9 * SMALL_PRODUCT):
            inside.set()
            done.wait(10)

    with few_threads(1), ThreadPoolExecutor(1) as pool:
        other = pool.submit(large)
        inside.wait(10)
        assert numbers(blas) == {3}
        done.set()
        other.result(10)
        assert numbers(blas) == {1}


@pytest.mark.parametrize("n_interrupted", [1, 2])
@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_while_threads_are_set_leaves_no_limit_after_the_next_fit(blas, n_interrupted, after, monkeypatch):
    """The first update is at the beginning of a fit, the second one at its end."""
    update, calls = ThreadLimit._update, []

    def interrupted(limit):
        calls.append(limit)
        if after or len(calls) != n_interrupted:
            update(limit)
        if len(calls) == n_interrupted:
            raise KeyboardInterrupt

    monkeypatch.setattr(ThreadLimit, "_update", interrupted)
    with pytest.raises(KeyboardInterrupt), few_threads(1):
        pass
    with few_threads(1):
        pass
    assert numbers(blas) == {3}


@pytest.mark.parametrize("n_threads", [1, 3])
def test_fits_in_threads_leave_the_threads_of_blas_as_they_were(blas, n_threads):
    """Some of them are refused; those that run are on one thread."""
    tensor = noisy_tensor((4, 5, 6), 2, noise=0.01, rng=0).tensor
    seen = set()

    def note(components, relative_error):
        seen.update(numbers(blas))

    def fit(place):
        converged = codiag.factorize(tensor, 2, method=NLS(callback=note, max_iter=20), rng=place).converged
        with pytest.raises(ValueError, match="all zero"):
            codiag.factorize(np.zeros((3, 3, 3)), 2)
        return converged

    set_threads(blas, [n_threads] * len(blas))
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(fit, range(16)))
        assert numbers(blas) == {n_threads}
    assert seen == {1}


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_limit_of_the_caller_holds_after_a_fit(n_threads):
    tensor = noisy_tensor((4, 5, 6), 2, noise=0.01, rng=0).tensor
    with threadpool_limits(n_threads, user_api="blas"):
        before = [library["num_threads"] for library in threadpool_info()]
        codiag.factorize(tensor, 2, rng=0)
        assert [library["num_threads"] for library in threadpool_info()] == before
