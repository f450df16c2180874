"""Laws of starts: what the search may rely on, for every start and every kind of problem that it applies to."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from array_api_compat import array_namespace

import codiag
from assertions import assert_same_to_rounding
from cases import STARTS, start_problem
from codiag import starts
from codiag.least_squares import LeastSquares, Log, alternate
from codiag.methods import Auto
from codiag.problem import Problem
from codiag.starts import Start, default_starts
from codiag.tensors import FactoredTensor
from extending import example
from tensor_cases import NUMPY_AND_LIBRARIES

KINDS = sorted({kind for case in STARTS.values() for kind in case.kinds})
APPLIES = [(name, kind) for name, case in STARTS.items() for kind in case.kinds]
EVERY = pytest.mark.parametrize(("name", "kind"), APPLIES, ids=[f"{name}, {kind}" for name, kind in APPLIES])


def generated(name, kind, library="", seed=0):
    """Return a problem, and at most two starts for it."""
    problem, truth = start_problem(kind, NUMPY_AND_LIBRARIES[library])
    components = STARTS[name].of(truth).generate(problem, np.random.default_rng(seed), Log())
    return problem, list(islice(components, 2))


def test_every_start_is_registered():
    kinds = {kind for kind in vars(starts).values() if isinstance(kind, type) and issubclass(kind, Start)} - {Start}
    _, truth = start_problem("complete")
    assert {type(case.of(truth)) for case in STARTS.values()} >= kinds | {example("start").CoarseToFine}


@pytest.mark.parametrize("wrong", [[1, 2], FactoredTensor(np.ones(3), [np.ones((4, 3))] * 3)])
def test_components_of_another_rank_are_refused(wrong):
    class Wrong(Start):
        def generate(self, problem, rng, log):
            yield wrong

    with pytest.raises(TypeError, match=r"Wrong\.generate must yield"):
        codiag.factorize(np.ones((4, 4, 4)) + np.eye(4), 2, method=Auto(starts=[Wrong()]))


def test_starts_are_objects():
    with pytest.raises(TypeError, match="^starts must"):
        Auto(starts=[starts.Random])


@pytest.mark.parametrize("library", NUMPY_AND_LIBRARIES)
@EVERY
def test_components_are_those_of_the_problem(name, kind, library):
    """They have its rank, shape, array library and precision, and are finite."""
    problem, components = generated(name, kind, library)
    assert components
    for start in components:
        assert (start.rank, start.shape) == (problem.rank, problem.tensor.shape)
        assert array_namespace(start.weights) is array_namespace(problem.tensor.reference)
        assert {array.dtype for array in (start.weights, *start.factors)} == {problem.tensor.reference.dtype}
        assert np.isfinite(start.squared_norm())


@EVERY
def test_the_same_seed_gives_the_same_components(name, kind):
    once, again = (generated(name, kind, seed=3)[1] for _ in range(2))
    for one, other in zip(once, again, strict=True):
        assert_same_to_rounding(one.to_dense(), other.to_dense())


@EVERY
def test_the_problem_is_not_changed(name, kind):
    problem, _ = generated(name, kind)
    unused, _ = start_problem(kind)
    np.testing.assert_array_equal(problem.tensor.to_dense(), unused.tensor.to_dense())
    assert (problem.rank, problem.n_observed) == (unused.rank, unused.n_observed)


@EVERY
def test_the_search_from_it_finds_the_components(name, kind):
    problem, truth = start_problem(kind)
    fit = codiag.factorize(problem, method=Auto(starts=[STARTS[name].of(truth)]), rng=0)
    assert fit.converged
    assert codiag.factor_error(fit, truth) < 0.02  # noise of one per cent, and entries observed at 70 per cent


@pytest.mark.parametrize("kind", KINDS)
def test_default_starts_apply(kind):
    problem, truth = start_problem(kind)
    registered = {(type(case.of(truth)), kind) for case in STARTS.values() for kind in case.kinds}
    assert (type(default_starts(problem)[0]), kind) in registered


def test_a_search_without_a_start_that_applies_is_refused():
    problem, truth = start_problem("listed")
    with pytest.raises(ValueError, match="^starts must"):
        codiag.factorize(problem, method=Auto(starts=[STARTS["coarse to fine"].of(truth)]), rng=0)


@pytest.mark.parametrize("constraints", [None, "nonnegative", (None, "nonnegative", None)], ids=str)
def test_a_tournament_yields_its_lowest_members(constraints):
    """They are below random components after as many sweeps as the first round takes, and keep signs."""
    problem = Problem(np.random.default_rng(0).random((5, 6, 7)) - 0.2, 3, constraints=constraints)
    found = list(islice(starts.Tournament().generate(problem, np.random.default_rng(0), Log()), 4))
    errors = [np.linalg.norm(problem.tensor.to_dense() - start.to_dense()) for start in found]
    np.testing.assert_allclose(errors, sorted(errors), rtol=1e-3)  # sweeps are on a core
    drawn = islice(starts.Random().generate(problem, np.random.default_rng(0), Log()), 20)
    swept = [alternate(LeastSquares(problem), start, max_iter=8, tol=0.0).components for start in drawn]
    assert errors[-1] < np.median([np.linalg.norm(problem.tensor.to_dense() - other.to_dense()) for other in swept])
    for mode, rule in enumerate(problem.constraints or ()):
        assert rule is None or all(np.all(start.factors[mode] >= 0) for start in found)


@pytest.mark.parametrize("stated", [{"symmetric": True}, {"loss": "huber"}], ids=str)
def test_only_plain_least_squares_has_tournaments(stated):
    problem = Problem(np.ones((5, 5, 5)) + np.eye(5), 2, **stated)
    assert not list(starts.Tournament().generate(problem, np.random.default_rng(0), Log()))
