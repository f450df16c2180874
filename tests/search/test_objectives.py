"""Objectives times features of the search: each cell is run, or refused in one sentence."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np
import pytest

import codiag
from codiag.constraints import Ridge
from codiag.least_squares import INTERRUPTED, Limits, interrupts_end_searches, minimize, objective_of
from codiag.losses import Bernoulli, Huber, Loss, NegativeBinomial, Poisson
from codiag.methods import ALS, NLS, Auto
from codiag.starts import Given, Random
from codiag.tensors import FactoredTensor

OBJECTIVES: dict[str, Loss | None] = {
    "least squares": None,
    "poisson": Poisson(),
    "bernoulli": Bernoulli(),
    "negative binomial": NegativeBinomial(),
    "huber": Huber(),
}
SHAPE, RANK = (14, 13, 12), 2
EVERY = pytest.mark.parametrize("name", OBJECTIVES)
LOSSES = pytest.mark.parametrize("name", [name for name, loss in OBJECTIVES.items() if loss is not None])


def drawn(name, shape=SHAPE, rank=RANK, seed=0):
    """Return entries drawn around components, and these."""
    rng, loss = np.random.default_rng(seed), OBJECTIVES[name]
    is_positive = loss is not None and loss.needs_nonnegative
    factors = [rng.gamma(2.0, size=(n, rank)) if is_positive else rng.standard_normal((n, rank)) for n in shape]
    model = np.einsum("ir,jr,kr->ijk", *factors)
    known = {"negative binomial": NegativeBinomial(0.2), "huber": Huber(0.1), "least squares": Huber(0.1)}
    return known.get(name, loss).sample(model, rng), factors


def fitted(name, tensor=None, rank=RANK, **options):
    method = Auto(**options.pop("method", {}))
    tensor = drawn(name)[0] if tensor is None else tensor
    return codiag.factorize(tensor, rank, loss=OBJECTIVES[name], method=method, rng=0, **options)


@dataclass
class Callback:
    """Keeps relative errors, and ends the fit, or interrupts it, after some."""

    ends_after: float = np.inf
    interrupts_after: float = np.inf
    errors: list[float] = field(default_factory=list)

    def __call__(self, components, error):
        assert components.shape == SHAPE
        self.errors.append(error)
        if len(self.errors) >= self.interrupts_after:
            raise KeyboardInterrupt
        return len(self.errors) >= self.ends_after


@EVERY
def test_a_monitor_sees_every_step_and_may_end_the_fit(name):
    seen, ended = Callback(), Callback(ends_after=3)
    assert fitted(name, method={"callback": seen}).converged
    assert len(seen.errors) > 3
    assert seen.errors[-1] == pytest.approx(min(seen.errors), rel=1e-3)
    with pytest.warns(codiag.ConvergenceWarning):
        fitted(name, method={"callback": ended})
    assert len(ended.errors) == 3


@EVERY
def test_an_interrupt_returns_the_best_that_the_monitor_has_seen(name):
    seen = Callback(interrupts_after=3)
    with pytest.warns(codiag.ConvergenceWarning):
        fit = fitted(name, method={"callback": seen})
    assert fit.history[-1].objective == min(seen.errors)


@EVERY
def test_the_first_interrupt_ends_the_search_with_the_best_so_far(name):
    tensor = np.where(np.random.default_rng(0).random(SHAPE) < 0.5, drawn(name)[0], np.nan)
    with interrupts_end_searches():
        INTERRUPTED.set()
        estimate = Auto().fit(codiag.Problem(tensor, 4, loss=OBJECTIVES[name]), np.random.default_rng(0))
    assert not estimate.converged
    assert any("interrupted" in stage.name for stage in estimate.history)


@EVERY
def test_the_time_limit_holds(name):
    """Of a problem that takes seconds, and whose steps take long."""
    problem = codiag.Problem(drawn(name, (60, 50, 40), 4)[0], 12, loss=OBJECTIVES[name])
    start = time.process_time()
    estimate = Auto(time_limit=0.01, max_work=np.inf).fit(problem, np.random.default_rng(0))
    assert time.process_time() - start < 1.0  # joint diagonalization, and one step of each kind
    assert any("out of time" in stage.name for stage in estimate.history)


@EVERY
def test_max_work_may_be_infinite(name):
    assert fitted(name, method={"max_work": np.inf}).converged


@EVERY
@pytest.mark.parametrize("constraints", ["nonnegative", Ridge(0.1)], ids=["nonnegative", "ridge"])
def test_constraints_hold(name, constraints):
    loss = OBJECTIVES[name]
    tensor, _ = drawn(name)
    if constraints == "nonnegative":
        tensor = np.abs(tensor)
        fit = fitted(name, tensor, method={"tol": 1e-4}, constraints=constraints)
        assert all(np.all(factor >= 0) for factor in fit.factors)
    else:
        fit = fitted(name, constraints=constraints)
        assert np.sum(fit.weights) < np.sum(fitted(name).weights)
        assert loss is None or not loss.needs_nonnegative or all(np.all(factor >= 0) for factor in fit.factors)


@EVERY
def test_missing_entries_are_found(name):
    tensor, factors = drawn(name)
    fit = fitted(name, np.where(np.random.default_rng(1).random(SHAPE) < 0.8, tensor, np.nan))
    assert fit.converged
    assert codiag.factor_error(fit, factors) < (0.5 if name == "bernoulli" else 0.2)


@EVERY
def test_starts_that_are_given_are_where_it_begins(name):
    tensor, factors = drawn(name)
    truth = Given(components=FactoredTensor(np.ones(RANK), factors))
    fit = fitted(name, tensor, method={"starts": [truth], "max_starts": 1})
    problem = codiag.Problem(tensor, RANK, loss=fit.problem.loss)
    best = minimize(problem, truth.components, Limits()).objective
    assert objective_of(problem).distance(fit._components) / 2 == pytest.approx(best, rel=1e-6)


@EVERY
def test_several_starts_are_compared(name):
    """One component of three leaves more than noise, and starts end at one minimum, or at several."""
    problem = codiag.Problem(drawn(name, rank=3)[0], 1, loss=OBJECTIVES[name])
    method = Auto(starts=[Random()], max_starts=3, max_work=np.inf)
    estimate = method.fit(problem, np.random.default_rng(0))
    assert sum(stage.name.startswith("rough") for stage in estimate.history) > 1


@LOSSES
def test_the_start_is_on_the_budget_of_the_search(name):
    names = [stage.name for stage in fitted(name).history]
    assert "rough least squares" in names
    assert names[-1] == "Fisher scoring"


@LOSSES
@pytest.mark.parametrize("method", [ALS(), NLS()], ids=["als", "nls"])
def test_methods_of_least_squares_refuse_a_loss_and_name_no_other_that_does(name, method):
    with pytest.raises(ValueError, match=r"^(ALS|NLS) cannot take .*loss into account; leave method out$"):
        codiag.factorize(drawn(name)[0], RANK, loss=OBJECTIVES[name], method=method)
