"""Choices between two answers: votes do not depend on the sides, and position bias is what it is by construction."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from codiag.io import preference_votes
from codiag.models import DawidSkene


def shown_twice(n_tasks, bias, rng, *, better=0.7, ties=0.1):
    """Return choices of a judge for each bias, who sees every pair in both orders.

    A judge looks only at the side in a share of the cases, 2 |bias|, and otherwise prefers x with probability `better`.
    """
    rows = []
    for judge, shift in enumerate(bias):
        for task in range(n_tasks):
            likes = "x" if rng.random() < better else "y"
            for first, second in (("x", "y"), ("y", "x")):
                if rng.random() < ties:
                    choice = "tie"
                elif rng.random() < 2 * abs(shift):
                    choice = "first" if shift > 0 else "second"
                else:
                    choice = "first" if likes == first else "second"
                rows.append((task, f"judge {judge}", first, second, choice))
    return tuple(np.array(column) for column in zip(*rows, strict=True))


def swapped(pairs):
    task, judge, first, second, choice = pairs
    other = {"first": "second", "second": "first", "tie": "tie"}
    return task, judge, second, first, np.array([other[entry] for entry in choice.tolist()])


def test_votes_do_not_depend_on_the_sides():
    pairs = shown_twice(50, [0.0, 0.2, -0.3], np.random.default_rng(0))
    votes, bias, *_ = preference_votes(pairs)
    others, opposite, *_ = preference_votes(swapped(pairs))
    for column in votes:
        assert_array_equal(votes[column], others[column])
    assert_allclose(opposite["position_bias"], -bias["position_bias"], atol=1e-12)
    assert_allclose(opposite["standard_error"], bias["standard_error"])


def test_a_vote_is_what_is_preferred_in_both_orders():
    columns = {"task": [1, 1, 2, 2, 3, 3, 4], "judge": ["ann"] * 7}
    columns |= {"model_a": ["x", "y", "x", "y", "x", "y", "y"], "model_b": ["y", "x", "y", "x", "y", "x", "x"]}
    columns |= {"winner": ["model_a", "model_b", "A", "a", "Tie (bothbad)", "second", "first"]}
    votes, bias, invalid, _ = preference_votes(columns)
    assert dict(zip(votes["task"].tolist(), votes["label"].tolist(), strict=True)) == {
        1: "x",
        2: "tie",
        3: "tie",
        4: "y",
    }
    assert bias["pairs"].tolist() == [3]  # the fourth was shown in one order
    assert bias["position_bias"].tolist() == [pytest.approx(3 / 5 - 0.5)]  # three of five choices, one being a tie
    assert invalid == {}


@pytest.mark.parametrize("better", [0.5, 0.95])
def test_bias_is_that_of_the_side_whichever_answer_is_better(better):
    truth = np.array([0.0, 0.1, -0.25])
    estimates, errors = [], []
    for seed in range(60):
        bias = preference_votes(shown_twice(80, truth, np.random.default_rng(seed), better=better)).position_bias
        estimates.append(bias["position_bias"])
        errors.append(bias["standard_error"])
    assert_allclose(np.mean(estimates, axis=0), truth, atol=4 * 0.05 / np.sqrt(60))
    # Without bias, orders differ by nothing but ties: the standard error is larger, for what a judge might do.
    assert np.all(np.std(estimates, axis=0) < 1.2 * np.mean(errors, axis=0))
    assert_allclose(np.mean(errors, axis=0)[1:], np.std(estimates, axis=0)[1:], rtol=0.3)


def test_pairs_of_several_models_are_items_of_their_own():
    rows = [("q1", "ann", "x", "y", "first"), ("q1", "ann", "z", "x", "second"), ("q2", "bob", "y", "x", "first")]
    votes, bias, *_ = preference_votes(tuple(map(list, zip(*rows, strict=True))))
    assert list(zip(*(column.tolist() for column in votes.values()), strict=True)) == [
        ("q1: x (A), y (B)", "ann", "A"),
        ("q1: x (A), z (B)", "ann", "A"),
        ("q2: x (A), y (B)", "bob", "B"),
    ]
    assert bias["worker"].tolist() == ["ann", "bob"]
    assert np.all(np.isnan(bias["position_bias"]))  # nothing was shown in both orders


@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_frames_give_the_votes_of_columns(package):
    pairs = shown_twice(30, [0.0, 0.1, 0.2], np.random.default_rng(0))
    named = dict(
        zip(("task", "judge", "first", "second", "choice"), (column.tolist() for column in pairs), strict=True)
    )
    votes = preference_votes(pytest.importorskip(package).DataFrame(named)).votes
    assert_array_equal(votes["label"], preference_votes(pairs).votes["label"])
    assert DawidSkene(random_state=0, init="majority").fit(votes).classes_.tolist() == ["tie", "x", "y"]


def test_other_choices_are_set_aside_and_counted():
    task, judge, first, second, choice = shown_twice(50, [0.1], np.random.default_rng(0))
    choice = choice.astype(object)
    choice[[0, 4]], choice[9] = "ERROR", None
    _, _, invalid, _ = preference_votes((task, judge, first, second, choice))
    assert invalid == {"ERROR": 2, None: 1}


@pytest.mark.parametrize(("x", "y"), [("x", "y"), ("A", "B")])
def test_choices_may_be_the_names_of_answers(x, y):
    """Or sides, whatever answers are called."""
    task, judge, first, second, choice = shown_twice(50, [0.1], np.random.default_rng(0))
    first, second = (np.where(column == "x", x, y) for column in (first, second))
    by_side = preference_votes((task, judge, first, second, choice))
    if x == "x":
        named = np.where(choice == "first", first, np.where(choice == "second", second, "tie"))
        by_name = preference_votes((task, judge, first, second, named))
        assert_array_equal(by_name.votes["label"], by_side.votes["label"])
    else:
        assert set(by_side.votes["label"]) == {x, y, "tie"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"choice": ["good"] * 4}, "^choice must"),
        ({"first": ["A", "y"] * 2, "second": ["y", "A"] * 2, "choice": ["A"] * 4}, "^choice must be a side or"),
        ({"second": ["x", "x"] * 2}, "^first and second must"),
        ({"task": [1, 1, None, 2]}, "^pairs must"),
        ({"task": [1, 1]}, "^columns must"),
        ({"choice": None}, "^pairs must"),
    ],
)
def test_bad_pairs_are_refused(changes, message):
    columns = {"task": [1, 1, 2, 2], "judge": ["ann"] * 4, "first": ["x", "y"] * 2, "second": ["y", "x"] * 2}
    columns |= {"choice": ["first", "second"] * 2} | changes
    if columns["choice"] is None:
        columns = {name: columns[name] for name in ("task", "judge", "first")}
    with pytest.raises(ValueError, match=message):
        preference_votes(columns)


def arena(seed, n_tasks=150, n_judges=3, strengths=(1.0, 0.3, -0.2, -1.1), shared=0.0):
    """Return choices between answers of four models, whose judges share an opinion on a task's pair to some extent."""
    rng, strengths = np.random.default_rng(seed), np.array(strengths)
    rows = []
    for task in range(n_tasks):
        first, second = rng.choice(len(strengths), 2, replace=False)
        common = rng.logistic()
        for judge in range(n_judges):
            noise = common if rng.random() < shared else rng.logistic()
            won = strengths[first] - strengths[second] + noise > 0
            rows.append((f"t{task}", f"j{judge}", "ABCD"[first], "ABCD"[second], "first" if won else "second"))
    return tuple(map(list, zip(*rows, strict=True)))


def test_the_ranking_is_that_of_bradley_and_terry():
    strengths = np.array([1.0, 0.3, -0.2, -1.1])
    found = preference_votes(arena(0, n_tasks=4000, n_judges=1)).ranking
    assert found["answer"].tolist() == list("ABCD")
    assert np.all(np.diff(found["win rate"]) < 0)
    assert np.sum(found["choices"]) == 8000
    assert np.max(np.abs(found["strength"] - strengths + strengths.mean())) < 0.15
    for column in ("low", "high"):
        assert np.all(found[column] != found["strength"])


@pytest.mark.parametrize("shared", [0.0, 0.8])
def test_intervals_of_the_ranking_hold_also_if_judges_share_opinions(shared):
    """An opinion in common leaves the chances of each judge as they are, and so what very many tasks would give."""
    truth = np.array([1.0, 0.3, -0.2, -1.1])
    held = []
    for seed in range(60):
        found = preference_votes(arena(seed, shared=shared)).ranking
        true = (truth - truth.mean())[["ABCD".index(name) for name in found["answer"]]]
        held.append((found["low"] <= true) & (true <= found["high"]))
    assert 0.9 < np.mean(held) < 0.99  # 240 intervals of 95 %, four of each draw


def test_a_judge_who_never_prefers_the_second_and_groups_that_nobody_compares():
    always = preference_votes((["q"] * 3, ["a", "b", "c"], ["x"] * 3, ["y"] * 3, ["first"] * 3)).ranking
    assert always["answer"].tolist() == ["x", "y"]
    assert np.all(np.isfinite(always["strength"]))
    apart = preference_votes((["q", "r"], ["a", "a"], ["x", "u"], ["y", "v"], ["first", "tie"])).ranking
    assert np.all(np.isinf(apart["high"]))
