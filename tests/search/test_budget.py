"""The work of a search is bounded, by what its first minimum took and by the clock, and says so."""

from __future__ import annotations

import logging
import signal
import time

import numpy as np
import pytest

import codiag
from assertions import assert_same_to_rounding
from codiag.least_squares import (
    Budget,
    LeastSquares,
    Limits,
    interrupts_end_searches,
    minimize,
    step_seconds,
    sweep_seconds,
)
from codiag.methods import Auto
from codiag.problem import Problem
from codiag.search import LocalMinimum, local_minimum
from codiag.starts import Tournament
from codiag.synthetic import noisy_tensor, unit_factor
from codiag.tensors import FactoredTensor

pytestmark = pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")


def misfit(shape=(22, 23, 24), seed=0):
    """Return data that fits no model: a smooth random field, which always leaves more than noise."""
    field = np.random.default_rng(seed).standard_normal(shape)
    for axis in range(len(shape)):
        field = np.cumsum(field, axis=axis)
    return field - field.mean()


def n_starts(fit):
    return sum(stage.name.startswith("rough least squares") for stage in fit.history)


def test_a_budget_is_a_number_of_sweeps_after_the_first_minimum():
    """The same one for all methods and machines: its unit is 300 plain sweeps over the stored entries."""
    problem = Problem(np.ones((50, 50, 50)), 10)
    price = sweep_seconds(problem)
    budget = Budget(max_work=3.0)
    assert not budget.spend(10.0)
    budget.start(problem)
    assert budget.left == pytest.approx(900 * price)
    assert not budget.spend(899 * price)
    assert budget.spend(2 * price)
    assert budget.left == 0
    budget.start(problem)  # only the first minimum counts
    assert budget.is_over
    assert not budget.renewed(problem).spend(899 * price)
    assert Budget(time_limit=1e-9).renewed(problem).is_over


def test_more_work_is_allowed_once_where_the_model_is_shown_to_hold():
    problem = Problem(np.ones((50, 50, 50)), 10)
    budget = Budget(max_work=3.0)
    budget.start(problem)
    assert budget.spend(901 * sweep_seconds(problem))
    for _ in range(2):
        budget.extend()
    assert budget.left == pytest.approx((8 * 900 - 901) * sweep_seconds(problem))


def end_of(tensor, components):
    """Return components as the end of a search."""
    problem = Problem(tensor, components.rank)
    return LocalMinimum(problem, minimize(problem, components, Limits(0)))


def test_a_model_is_shown_if_but_a_few_components_are_missed():
    """A residual without the terms of a few components is noise: there is a best fit to search for."""
    rng = np.random.default_rng(0)
    factors = [unit_factor(size, 16, rng) for size in (14, 15, 16)]
    components = FactoredTensor(rng.uniform(1, 2, 16), factors, symmetric=False)
    tensor = components.to_dense() + 1e-4 * rng.standard_normal((14, 15, 16))
    assert end_of(tensor, components).shows_model
    assert end_of(tensor, components.columns(list(range(14)))).shows_model
    assert not end_of(tensor, components.columns(list(range(11)))).shows_model
    assert not end_of(misfit((14, 15, 16)), components.columns(list(range(8)))).shows_model
    assert not end_of(rng.standard_normal((14, 15, 16)), components.columns(list(range(4)))).shows_model


def test_steps_cost_more_on_larger_problems():
    small, large = (step_seconds(Problem(np.ones((size,) * 3), 2)) for size in (5, 50))
    assert small < large < step_seconds(Problem(np.ones((50,) * 3), 20))


@pytest.mark.slow
def test_more_work_searches_on_and_less_says_so():
    little, much = (codiag.factorize(misfit(), 8, method=Auto(max_work=max_work), rng=0) for max_work in (1.0, 100.0))
    assert n_starts(little) < n_starts(much)
    assert much.relative_error <= little.relative_error * (1 + 1e-9)
    assert any("out of budget" in stage.name and stage.p_missed > 0 for stage in little.history)
    assert not any("out of budget" in stage.name for stage in much.history)
    assert "max_work" in str(little.diagnose())


def test_the_same_seed_gives_the_same_answer_however_busy_the_machine_is(monkeypatch):
    """Work is counted, not measured."""
    fits = [codiag.factorize(misfit(), 6, rng=0)]
    clock = time.perf_counter
    monkeypatch.setattr(time, "perf_counter", lambda: 1e3 * clock())
    fits.append(codiag.factorize(misfit(), 6, rng=0))
    assert_same_to_rounding(fits[0].weights, fits[1].weights)


@pytest.mark.parametrize("stated", [{}, {"constraints": "nonnegative"}, {"weights": misfit() > -1}], ids=str)
def test_the_clock_ends_a_fit_with_the_best_so_far(stated):
    tensor = np.abs(misfit())
    fit = codiag.factorize(tensor, 9, method=Auto(time_limit=1e-6, max_work=1e9), rng=0, **stated)
    assert not fit.converged
    assert any("out of time" in stage.name for stage in fit.history)
    assert np.all(np.isfinite(fit.weights))


@pytest.mark.parametrize("time_limit", [0, -1.0, "soon"])
def test_wrong_limits_are_refused_by_name(time_limit):
    with pytest.raises((ValueError, TypeError), match="time_limit must"):
        Auto(time_limit=time_limit)


def test_an_interrupt_returns_the_best_so_far_if_there_is_a_monitor():
    seen = []

    def interrupt(components, error):
        seen.append(error)
        if len(seen) == 5:
            raise KeyboardInterrupt

    fit = codiag.factorize(misfit(), 6, method=Auto(callback=interrupt), rng=0)
    assert fit.relative_error == pytest.approx(min(seen[:5]), rel=1e-6)
    assert not fit.converged
    assert any("interrupted" in stage.name for stage in fit.history)


def test_an_interrupt_before_anything_was_found_is_one(monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("codiag.search._loop.minimize_with_estimates", interrupt)
    with pytest.raises(KeyboardInterrupt):
        codiag.factorize(misfit(), 2, rng=0)


def test_vanished_components_of_one_sign_are_revived():
    """No step leads away from a component that is zero, where every term of the residual would help."""
    rng = np.random.default_rng(0)
    planted = [rng.random((size, 2)) for size in (6, 7, 8)]
    problem = Problem(np.einsum("ir,jr,kr->ijk", *planted), 2, constraints="nonnegative")
    factors = [np.stack([factor[:, 0], 0 * factor[:, 0]], axis=1) for factor in planted]
    start = FactoredTensor(np.ones(2), factors, symmetric=False)
    stuck = LocalMinimum(problem, minimize(problem, start, Limits()))
    assert LeastSquares(problem).relative_error(stuck.result.components) > 0.1
    end, _ = local_minimum(problem, start, Limits(), 0)
    assert LeastSquares(problem).relative_error(end.result.components) < 1e-6


@pytest.mark.parametrize("seed", range(5))
def test_one_component_of_one_sign_is_found_among_mixed_signs(seed):
    """Projected, the best free component may vanish; the largest entry is a component that does not."""
    tensor = np.random.default_rng(seed).standard_normal((2, 5, 3, 4))
    fit = codiag.factorize(tensor, 1, constraints="nonnegative", rng=0)
    assert fit.relative_error**2 <= 1 - tensor.max() ** 2 / np.sum(tensor**2) + 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_one_component_of_a_small_tensor_is_the_best_one(seed):
    """Rank one has local minima, too: no power iteration from twenty random vectors ends lower."""
    tensor = np.random.default_rng(seed).standard_normal((4, 4, 2, 3))
    problem, rng = Problem(tensor, 1), np.random.default_rng(1)
    starts = [FactoredTensor(np.ones(1), [rng.standard_normal((size, 1)) for size in tensor.shape]) for _ in range(20)]
    lowest = min(minimize(problem, start, Limits()).objective for start in starts)
    assert (codiag.factorize(tensor, 1, rng=0).relative_error * np.linalg.norm(tensor)) ** 2 / 2 < lowest * (1 + 1e-9)


@pytest.fixture
def terminal(monkeypatch):
    """A standard error that is a terminal."""
    monkeypatch.setattr("codiag._progress._bar.is_interactive", lambda: True)


def test_a_bar_is_shown_where_it_is_wanted(terminal, capsys):
    codiag.factorize(misfit(), 2, rng=0, progress=True)
    assert "factorizing" in capsys.readouterr().err
    codiag.choose_rank(misfit((6, 7, 8)), [1, 2], rng=0, progress=True)
    assert "choosing the rank" in capsys.readouterr().err
    codiag.factorize_each([misfit((4, 5, 6))] * 2, 1, rng=0, progress=True)
    assert "factorizing tensors" in capsys.readouterr().err
    codiag.factorize(misfit(), 2, rng=0, progress=False)
    assert capsys.readouterr().err == ""


def test_a_bar_appears_by_itself_on_a_terminal_where_it_lasts(terminal, capsys, monkeypatch):
    codiag.factorize(misfit(), 2, rng=0)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("codiag._progress._bar.SECONDS", 1e-9)
    codiag.factorize(misfit(), 2, rng=0)
    assert "factorizing" in capsys.readouterr().err


@pytest.mark.parametrize("loss", [None, "poisson"])
def test_lines_are_written_where_there_is_no_terminal(loss, capsys, monkeypatch):
    monkeypatch.setattr("codiag._progress._bar.SECONDS", 0.0)
    counts = np.random.default_rng(0).poisson(1.0, (3, 4, 5)).astype(float)
    codiag.choose_rank(counts, [1, 2], loss=loss, rng=0)
    assert capsys.readouterr().err == ""
    codiag.choose_rank(counts, [1, 2], loss=loss, rng=0, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert all(line.startswith("choosing the rank ") for line in lines)
    assert any("rank 1" in line for line in lines)
    assert any("rank 2" in line for line in lines)


def test_progress_leaves_loggers_as_they_are(caplog):
    """Records go where the user's configuration sends them: by default those below a warning go nowhere."""
    with caplog.at_level(logging.WARNING):
        codiag.factorize(misfit(), 2, rng=0, progress=True)
    assert caplog.records == []
    assert {logging.getLogger(name).level for name in ("codiag", "codiag.reads")} == {logging.NOTSET}


def test_progress_is_yes_or_no():
    with pytest.raises(TypeError, match=r"^progress must"):
        codiag.factorize(misfit(), 2, rng=0, progress="bar")


def test_the_first_interrupt_ends_a_search_and_the_second_everything():
    """As on the command line; afterwards all is as it was."""
    before = signal.getsignal(signal.SIGINT)
    with interrupts_end_searches():
        signal.raise_signal(signal.SIGINT)
        fit = codiag.factorize(misfit(), 6, rng=0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert any(stage.name.endswith("interrupted") and stage.p_missed > 0 for stage in fit.history)
    assert 0 < fit.relative_error < 1
    assert not any("interrupted" in stage.name for stage in codiag.factorize(misfit(), 6, rng=0).history)
    assert signal.getsignal(signal.SIGINT) is before


def test_a_start_that_is_right_is_the_only_one(monkeypatch):
    """A few of many components may be weak in noise; too many components to be diagonalized are met at random."""

    def refuse(*_):
        raise AssertionError("many random starts were swept")

    monkeypatch.setattr(Tournament, "generate", refuse)
    weak = noisy_tensor((30, 30, 30), 30, noise=0.05, rng=1).tensor
    many = FactoredTensor(np.ones(16), [unit_factor(12, 16, rng=seed) for seed in range(3)]).to_dense()
    many += 1e-4 * np.random.default_rng(0).standard_normal(many.shape)
    for tensor, rank in ((weak, 30), (many, 16)):
        fit = codiag.factorize(tensor, rank, rng=0)
        assert sum(stage.name.startswith("rough") for stage in fit.history) == 1
        assert fit.relative_error < 0.06
