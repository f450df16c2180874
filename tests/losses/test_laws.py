"""Laws of losses, for all of them: derivatives, draws, information, and steps that never go up."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from cases import LOSSES
from codiag.constraints import Fixed
from codiag.least_squares import GeneralizedObjective, Limits, minimize
from codiag.tensors import FactoredTensor

EVERY = pytest.mark.parametrize("case", LOSSES.values(), ids=LOSSES)
BUT_GAUSSIAN = pytest.mark.parametrize(
    "case", [case for name, case in LOSSES.items() if name != "gaussian"], ids=[n for n in LOSSES if n != "gaussian"]
)
SHAPE, LARGER = (9, 8, 7), (19, 18, 17)  # fewer yes and no are fitted without error, by infinite logits


def pairs(case, n=200, seed=0):
    """Return entries, and models that need not be near them."""
    rng = np.random.default_rng(seed)
    drawn = np.prod([case.draw(rng, n, 1)[:, 0] for _ in range(3)], axis=0)
    return case.loss.sample(drawn, rng), np.prod([case.draw(rng, n, 1)[:, 0] for _ in range(3)], axis=0)


@EVERY
def test_the_derivative_is_that_of_the_value(case):
    data, model = pairs(case)
    step = 1e-5 * np.maximum(np.abs(model), 0.01)
    slope = (case.loss.value(data, model + step) - case.loss.value(data, model - step)) / (2 * step)
    np.testing.assert_allclose(case.loss.derivative(data, model), slope, rtol=1e-5, atol=1e-6)


@EVERY
def test_no_value_is_negative_and_that_of_the_mean_is_zero(case):
    data, model = pairs(case)
    assert np.all(case.loss.value(data, model) >= -1e-12)
    assert np.all(case.loss.fisher_information(data, model) > 0)
    assert np.all(case.loss.hessian_bound(data, model) >= 0)
    means = case.loss.mean(model)
    np.testing.assert_allclose(case.loss.value(means, model), 0.0, atol=1e-9 * np.max(np.abs(means)))
    np.testing.assert_allclose([case.loss.inverse_mean(float(mean)) for mean in means], model, rtol=1e-6)


@EVERY
def test_draws_have_the_mean_and_the_information_that_are_stated(case):
    """The score has mean zero, and the information as its variance: to five standard errors of 40,000 draws."""
    for model in pairs(case, 5)[1]:
        models = np.full(40_000, model)
        data = case.loss.sample(models, np.random.default_rng(0))
        assert abs(np.mean(data) - case.loss.mean(models)[0]) < 5 * np.std(data) / 200 + 1e-12
        scores = case.loss.derivative(data, models)
        assert abs(np.mean(scores)) < 5 * np.std(scores) / 200 + 1e-12
        if case.loss.fixed_dispersion:
            information = case.loss.fisher_information(data, models)[0]
            assert abs(np.mean(scores**2) - information) < 5 * np.std(scores**2) / 200 + 1e-9 * information


@BUT_GAUSSIAN
def test_the_gradient_is_that_of_the_objective(case):
    """With weights and missing entries; those that are missing may be anything."""
    tensor, rng = case.tensor(case.factors(SHAPE, 2)), np.random.default_rng(1)
    observed = rng.random(SHAPE) * (rng.random(SHAPE) < 0.7)
    objective = GeneralizedObjective(
        codiag.Problem(np.where(observed > 0, tensor, 1e3), 2, loss=case.loss, weights=observed)
    )
    point = np.concatenate(case.factors(SHAPE, 2, seed=5))
    gradient = objective.value_and_gradient(point)[1]
    for _ in range(5):
        move = 1e-6 * rng.standard_normal(point.shape)
        slope = (objective.value(point + move) - objective.value(point - move)) / 2
        assert slope == pytest.approx(np.sum(gradient * move), rel=1e-4, abs=1e-7 * np.linalg.norm(gradient) * 1e-6)


class Record:
    """Objectives after every step."""

    stopped = False

    def __init__(self):
        self.values = []

    def __call__(self, components, objective):
        self.values.append(objective)
        return False


@BUT_GAUSSIAN
def test_steps_never_go_up_and_end_where_no_move_leads_down(case):
    factors = case.factors(LARGER, 2)
    problem = codiag.Problem(case.tensor(factors), 2, loss=case.loss)
    start, record = FactoredTensor(np.ones(2), case.factors(LARGER, 2, seed=5)), Record()
    result = minimize(problem, start, Limits(callback=record))
    assert np.all(np.diff(record.values) <= 1e-12 * record.values[0])
    assert result.objective < 0.9 * GeneralizedObjective(problem).distance(start) / 2
    assert result.converged
    objective = GeneralizedObjective(problem)
    point = objective.parametrization.vectorize(result.components)
    value, gradient = objective.value_and_gradient(point)
    free = objective.free_variables(point, gradient)
    assert np.max(np.abs(free * gradient)) < 1e-3 * value / np.max(np.abs(point))
    assert np.all(gradient[free == 0] >= 0)


@BUT_GAUSSIAN
def test_missing_entries_do_not_count(case):
    factors = case.factors(LARGER, 2)
    tensor = case.tensor(factors)
    observed = np.random.default_rng(0).random(tensor.shape) < 0.8
    missing, hidden = (np.where(observed, tensor, other) for other in (np.nan, 1e6))
    fit = codiag.factorize(missing, 2, loss=case.loss, rng=0)
    other = codiag.factorize(hidden, 2, loss=case.loss, weights=observed, rng=0)
    np.testing.assert_allclose(fit.weights, other.weights, rtol=1e-7)
    assert fit.deviance.total == pytest.approx(other.deviance.total)


@BUT_GAUSSIAN
def test_the_fit_is_as_low_as_from_the_truth(case):
    factors = case.factors(LARGER, 2)
    tensor = case.tensor(factors)
    fit = codiag.factorize(tensor, 2, loss=case.loss, rng=0)
    problem = codiag.Problem(tensor, 2, loss=case.loss)
    best = minimize(problem, FactoredTensor(np.ones(2), factors), Limits()).objective
    assert fit.converged
    assert fit.deviance.total / 2 <= best * (1 + 1e-6)
    assert fit.problem.loss is case.loss
    assert 0 < fit.deviance.explained < 1


@BUT_GAUSSIAN
def test_fixed_factors_stay_and_standard_errors_say_so(case):
    factors = case.factors(LARGER, 2)
    rules = [Fixed(factors[0]), *(["nonnegative"] * 2 if case.loss.needs_nonnegative else [None] * 2)]
    fit = codiag.factorize(case.tensor(factors), 2, loss=case.loss, constraints=rules, rng=0)
    assert fit.converged
    assert codiag.factor_error(fit.factors[:1], factors[:1]) < 1e-12
    assert np.all(fit.standard_errors[0] == 0)
    assert np.all(fit.standard_errors[1:] > 0)


@pytest.mark.parametrize("name", ["poisson", "bernoulli, odds", "negative binomial"])
def test_zeros_in_factors_do_not_stop_steps(name):
    """Half of the entries of factors are zero: the end is that from the truth."""
    case, rng = LOSSES[name], np.random.default_rng(0)
    factors = [factor * (rng.random(factor.shape) < 0.5) for factor in case.factors((20, 22, 24), 3)]
    tensor = case.tensor(factors)
    fit = codiag.factorize(tensor, 3, loss=case.loss, rng=0)
    problem = codiag.Problem(tensor, 3, loss=case.loss)
    truth = FactoredTensor(np.ones(3), [factor + 1e-3 for factor in factors])
    assert fit.deviance.total / 2 <= minimize(problem, truth, Limits()).objective * (1 + 1e-5)
