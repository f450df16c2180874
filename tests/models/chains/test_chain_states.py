"""Recursions over the states of a chain, and what a hidden Markov model says of sequences."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from codiag.models import HiddenMarkov
from codiag.models.chains import baum_welch_sums, forward_backward, path_log_probability, viterbi
from simulated import chain, matched


def parameters(k: int, d: int, seed: int, zeros: float = 0.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return start, transitions and emissions, some of which are zero."""
    rng = np.random.default_rng(seed)
    rows = [rng.dirichlet(np.ones(n), m) for m, n in ((1, k), (k, k), (k, d))]
    for matrix in rows[1:]:
        matrix[(rng.random(matrix.shape) < zeros) & (matrix < matrix.max(axis=1, keepdims=True))] = 0
        matrix /= matrix.sum(axis=1, keepdims=True)
    return rows[0][0], rows[1], rows[2]


def drawn(n: int, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray, seed: int) -> np.ndarray:
    rng, state, symbols = np.random.default_rng(seed), None, []
    for _ in range(n):
        state = rng.choice(start.size, p=start if state is None else transitions[state])
        symbols.append(rng.choice(emissions.shape[1], p=emissions[state]))
    return np.array(symbols)


def plain_recursion(symbols, start, transitions, emissions):
    """Return log-likelihood, state probabilities and expected transitions, one symbol after the other."""
    n, k = symbols.size, start.size
    past, scales = np.empty((n, k)), np.empty(n)
    for time, symbol in enumerate(symbols):
        predicted = start if time == 0 else past[time - 1] @ transitions
        past[time] = predicted * emissions[:, symbol]
        scales[time] = past[time].sum()
        past[time] /= scales[time]
    states, moves = past.copy(), np.zeros((k, k))
    for time in range(n - 2, -1, -1):  # after Rauch, Tung & Striebel
        predicted = past[time] @ transitions
        ratio = np.divide(states[time + 1], predicted, out=np.zeros(k), where=predicted > 0)
        pairs = past[time][:, None] * transitions * ratio
        states[time], moves = pairs.sum(axis=1), moves + pairs
    return np.log(scales).sum(), states, moves


def logs_of(chain_of):
    with np.errstate(divide="ignore"):
        return [np.log(one) for one in chain_of]


@pytest.mark.parametrize(("k", "zeros"), [(1, 0), (4, 0), (4, 0.4), (33, 0)])
def test_forward_and_backward_are_the_plain_recursion(k, zeros):
    chain_of = parameters(k, 6, 0, zeros)
    sequences = [drawn(n, *chain_of, seed=n) for n in (300, 3, 40, 1, 500)]
    wanted = [plain_recursion(sequence, *chain_of) for sequence in sequences]
    lengths = np.array([sequence.size for sequence in sequences])
    states, sums = forward_backward(np.concatenate(sequences), lengths, *logs_of(chain_of))
    assert_allclose(sums.log_likelihood, sum(one for one, _, _ in wanted), rtol=1e-12)
    assert_allclose(states, np.concatenate([one for _, one, _ in wanted]), atol=1e-10)
    assert_allclose(sums.moves, sum(one for _, _, one in wanted), rtol=1e-10, atol=1e-10)
    assert_allclose(sums.first, sum(one[0] for _, one, _ in wanted), atol=1e-10)


def test_states_that_the_past_excludes_stay_excluded():
    """The future speaks for the other state by more than any number: a chain that never leaves the first."""
    stays = np.array([1.0, 0.0]), np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[0.9, 0.1], [0.1, 0.9]])
    sums = baum_welch_sums(np.ones(3000, dtype=np.intp), np.array([3000]), *stays)
    assert_allclose(sums.first, [1, 0])
    assert_allclose(sums.moves, [[2999, 0], [0, 0]])
    assert_allclose(sums.shown, [[0, 3000], [0, 0]])


def test_impossible_sequences_have_no_states():
    never = np.array([1.0, 0.0]), np.eye(2), np.eye(2)
    states, sums = forward_backward(np.array([0, 1, 0]), np.array([3]), *logs_of(never))
    assert sums.log_likelihood == -np.inf
    assert_array_equal(states, 0)


def test_the_best_path_by_enumeration():
    k, chain_of = 3, logs_of(parameters(3, 4, 1))
    sequences = [np.array([0, 3, 1, 2, 0, 1, 3]), np.array([2]), np.array([1, 1, 0])]
    found = viterbi(np.concatenate(sequences), np.array([7, 1, 3]), *chain_of)
    total = 0.0
    for sequence, path in zip(sequences, np.split(found, [7, 8]), strict=True):
        paths = np.indices((k,) * sequence.size).reshape(sequence.size, -1).T
        scores = [path_log_probability(one, sequence, np.array([sequence.size]), *chain_of) for one in paths]
        assert_array_equal(path, paths[np.argmax(scores)])
        total += max(scores)
    whole = path_log_probability(found, np.concatenate(sequences), np.array([7, 1, 3]), *chain_of)
    assert whole == pytest.approx(total)


@pytest.fixture(scope="module")
def model() -> HiddenMarkov:
    return HiddenMarkov(3, random_state=0).fit(chain(20_000, 0)[0])


class TestWhatTheModelSays:
    def test_scores_of_samples(self, model):
        symbols = chain(600, 1)[0]
        likelihood, states = model.score_samples(symbols, lengths=[100, 500])
        assert likelihood == pytest.approx(model.score([symbols[:100], symbols[100:]]))
        assert_allclose(states.sum(axis=1), 1, rtol=1e-12)
        assert_array_equal(states, model.predict_proba(symbols, lengths=[100, 500]))

    def test_what_is_drawn_is_found_again(self, model):
        symbols, states = model.sample(20_000, random_state=1)
        assert symbols.shape == (20_000, 1)
        again = HiddenMarkov(3, random_state=0).fit(symbols)
        assert matched(again.emissionprob_, model.emissionprob_) < 0.05
        visits = np.bincount(states, minlength=3) / states.size
        assert_allclose(visits, model.get_stationary_distribution(), atol=0.03)
        pairs = np.zeros((3, 3))
        np.add.at(pairs, (states[:-1], states[1:]), 1)
        assert_allclose(pairs / pairs.sum(axis=1, keepdims=True), model.transmat_, atol=0.03)

    def test_samples_start_as_the_model_says(self, model):
        firsts = [model.sample(1, seed)[1][0] for seed in range(300)]
        assert_allclose(np.bincount(firsts, minlength=3) / 300, model.startprob_, atol=0.12)
        assert_array_equal(model.sample(20)[0], model.sample(20, random_state=0)[0])

    def test_names_are_drawn(self):
        names = np.array([f"s{place}" for place in range(8)])[chain(3000, 0)[0]]
        model = HiddenMarkov(3, max_iter=1, random_state=0).fit(names)
        symbols, states = model.sample(50)
        assert set(symbols[:, 0]) <= set(names)
        assert model.decode(symbols)[1].shape == states.shape

    def test_the_stationary_distribution_stays(self, model):
        shares = model.get_stationary_distribution()
        assert_allclose(shares @ model.transmat_, shares, atol=1e-12)
        assert shares.sum() == pytest.approx(1)

    def test_criteria(self, model):
        symbols = chain(600, 1)[0]
        free = 2 + 3 * 2 + 3 * 7  # start, transitions and emissions of eight symbols, rows of sum one
        assert model.aic(symbols) == pytest.approx(2 * free - 2 * model.score(symbols))
        parts = [symbols[:200], symbols[200:]]
        assert model.bic(parts) == pytest.approx(free * np.log(600) - 2 * model.score(parts))

    @pytest.mark.parametrize(
        ("call", "error", "words"),
        [
            (lambda model: model.sample(0), ValueError, "^n_samples must"),
            (lambda model: model.decode([0, 1], algorithm="best"), ValueError, 'must be "viterbi"'),
        ],
    )
    def test_mistakes(self, model, call, error, words):
        with pytest.raises(error, match=words):
            call(model)

    def test_results_agree_with_hmmlearn(self, model):
        pytest.importorskip("hmmlearn", reason="hmmlearn is not installed")
        symbols = chain(600, 1)[0][:, None]
        other = model.to_hmmlearn()
        for name in ("score", "aic", "bic"):
            assert getattr(model, name)(symbols) == pytest.approx(getattr(other, name)(symbols))
        for name in ("decode", "score_samples"):
            (ours, states), (theirs, their_states) = getattr(model, name)(symbols), getattr(other, name)(symbols)
            assert ours == pytest.approx(theirs)
            assert_allclose(states, their_states, atol=1e-9)
        assert_allclose(model.get_stationary_distribution(), other.get_stationary_distribution(), atol=1e-9)
        assert [one.shape for one in model.sample(7)] == [one.shape for one in other.sample(7)]
