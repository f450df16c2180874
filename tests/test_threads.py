"""The core is silent, so that fits in threads neither change what the caller has set nor each other."""

from __future__ import annotations

import ast
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import codiag
from codiag._arrays import SMALL_PRODUCT, ThreadLimit
from codiag.methods import ALS, NLS
from codiag.models import MultiviewMixture, SingleTopic
from codiag.synthetic import matrix_stack, mild_factor, noisy_tensor
from simulated import single_topic_corpus, views

SOURCE = Path(codiag.__file__).parent
WARNING = {  # the public functions: here, and nowhere below them, something is said
    "_checks/_former.py",
    "_factorize.py",
    "_factorize_each.py",
    "diagonalize/_joint_diagonalize.py",
    "drop_in/_pyriemann_ajd.py",
    "drop_in/_tensorly_cp.py",
    "drop_in/_tensorly_nonnegative.py",
    "models/frame/_model.py",
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


def test_warnings_are_caught_nowhere():
    """Filters belong to the whole process: changing them for a while is seen by other threads, and may stay."""
    assert calling("catch_warnings") == set()
    assert calling("filterwarnings") == calling("resetwarnings") == set()
    assert calling("simplefilter") == set()


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


class Library:
    """A BLAS library that remembers how many threads it was set to."""

    def __init__(self, num_threads):
        self.num_threads, self.seen = num_threads, [num_threads]

    def set_num_threads(self, number):
        self.num_threads = number
        self.seen.append(number)


def limit_of(*libraries):
    limit = ThreadLimit()
    limit.__dict__["_libraries"] = list(libraries)
    return limit


def test_small_fits_run_on_one_thread_until_the_last_of_them_ends():
    """Whatever the order in which they end, and also where one of them fails."""
    several, single = Library(4), Library(1)
    limit = limit_of(several, single)
    first, second = limit.around(1), limit.around(SMALL_PRODUCT)
    first.__enter__()
    second.__enter__()
    assert several.num_threads == 1
    first.__exit__(None, None, None)
    assert several.num_threads == 1
    assert not second.__exit__(ValueError, ValueError("a fit that fails"), None)
    assert several.seen == [4, 1, 4]
    assert single.seen == [1]


def test_a_large_fit_has_its_threads_while_it_runs():
    library = Library(4)
    limit = limit_of(library)
    with limit.around(1):
        with limit.around(SMALL_PRODUCT + 1):
            assert library.num_threads == 4
        assert library.num_threads == 1
    assert library.num_threads == 4


class Interrupted(Library):
    """A library in whose n-th change of threads an interrupt comes, before it is made or after."""

    def __init__(self, num_threads, call, after):
        super().__init__(num_threads)
        self.call, self.after = call, after

    def set_num_threads(self, number):
        is_now = len(self.seen) == self.call
        if is_now and not self.after:
            self.call = -1
            raise KeyboardInterrupt
        super().set_num_threads(number)
        if is_now:
            raise KeyboardInterrupt


def one_fit(limit):
    with limit.around(1):
        pass


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("call", [1, 2])
def test_an_interrupt_while_threads_are_set_leaves_no_limit(call, after):
    library, other = Interrupted(4, call, after), Library(3)
    limit = limit_of(other, library)
    with pytest.raises(KeyboardInterrupt):
        one_fit(limit)
    one_fit(limit)
    assert (library.num_threads, other.num_threads) == (4, 3)


@pytest.mark.parametrize("method", ["_begin", "_update", "_limit", "_restore"])
@pytest.mark.parametrize("after", [False, True])
def test_an_interrupt_anywhere_leaves_no_limit(method, after, monkeypatch):
    """Also while its traceback is kept, and with it all that the fit had."""
    library = Library(4)
    limit = limit_of(library)
    plain = getattr(limit, method)

    def interrupted(*arguments):
        if after:
            plain(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(limit, method, interrupted)
    with pytest.raises(KeyboardInterrupt) as kept:
        one_fit(limit)
    monkeypatch.undo()
    one_fit(limit)
    assert library.num_threads == 4
    assert kept.value.__traceback__ is not None


def test_a_fit_that_could_not_say_that_it_ended_is_not_waited_for():
    """An interrupt came before the end of the block was noted at all, and what it was run by is still there."""
    library = Library(4)
    limit = limit_of(library)

    def cut_off():
        block = limit.around(1)
        block.__enter__()
        return block

    kept = cut_off()
    assert library.num_threads == 1
    one_fit(limit)
    assert library.num_threads == 4
    kept.__exit__(None, None, None)
    assert library.num_threads == 4


def test_a_number_of_threads_that_somebody_else_has_set_stays():
    library = Library(4)
    with limit_of(library).around(1):
        library.set_num_threads(2)
    assert library.num_threads == 2


@pytest.mark.parametrize("n_threads", [1, 3])
def test_fits_in_threads_leave_the_threads_of_blas_as_they_were(n_threads):
    """Some of them are refused; those that run are on one thread."""
    libraries = ThreadpoolController().select(user_api="blas").lib_controllers
    tensor = noisy_tensor((4, 5, 6), 2, noise=0.01, seed=0).tensor
    seen = []

    def note(components, relative_error):
        seen.extend(library.num_threads for library in libraries)

    def fit(place):
        converged = codiag.factorize(tensor, 2, method=NLS(monitor=note, max_sweeps=20), seed=place).converged
        with pytest.raises(ValueError, match="all zero"):
            codiag.factorize(np.zeros((3, 3, 3)), 2)
        return converged

    before = [library.num_threads for library in libraries]
    try:
        set_threads(libraries, [n_threads] * len(libraries))
        with ThreadPoolExecutor(8) as pool:
            assert all(pool.map(fit, range(16)))
            assert {library.num_threads for library in libraries} == {n_threads}
    finally:
        set_threads(libraries, before)
    assert set(seen) == {1}


def set_threads(libraries, numbers):
    for library, number in zip(libraries, numbers, strict=True):
        library.set_num_threads(number)
        getattr(library, "clear_controlling_thread", lambda: None)()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_a_limit_of_the_caller_holds_after_a_fit(n_threads):
    tensor = noisy_tensor((4, 5, 6), 2, noise=0.01, seed=0).tensor
    with threadpool_limits(n_threads, user_api="blas"):
        before = [library["num_threads"] for library in threadpool_info()]
        codiag.factorize(tensor, 2, seed=0)
        assert [library["num_threads"] for library in threadpool_info()] == before
