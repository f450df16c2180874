"""Hidden Markov models by moments."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment

from codiag.models import HiddenMarkov
from codiag.models.hmm import _forward
from simulated import chain, matched


class TestChains:
    @pytest.mark.parametrize("polish", [0, 10])
    def test_a_chain(self, polish):
        symbols, transitions, emissions, states = chain(50_000, 0)
        model = HiddenMarkov(3, polish=polish, random_state=0).fit(symbols)
        assert matched(model.emissionprob_, emissions) < 0.05
        _, order = linear_sum_assignment(np.linalg.norm(emissions[:, None] - model.emissionprob_[None], axis=2))
        assert_allclose(model.transmat_[np.ix_(order, order)], transitions, atol=0.05)
        for rows in (model.transmat_, model.emissionprob_, model.startprob_[None]):
            assert_allclose(rows.sum(axis=1), 1, atol=1e-9)
        overlap = np.array(
            [[np.mean((model.predict(symbols) == i) & (states == j)) for j in range(3)] for i in range(3)]
        )
        assert overlap[linear_sum_assignment(-overlap)].sum() > 0.7

    def test_likelihood_and_states_by_enumeration(self):
        """Sum and maximize over all paths of a short sequence."""
        model = HiddenMarkov(2, polish=3, random_state=0).fit(chain(2000, 0)[0][:, None])
        symbols = np.array([0, 3, 1, 2])
        paths = np.indices((2,) * 4).reshape(4, -1).T
        joint = model.startprob_[paths[:, 0]] * model.emissionprob_[paths[:, 0], symbols[0]]
        for step in range(1, 4):
            joint *= (
                model.transmat_[paths[:, step - 1], paths[:, step]] * model.emissionprob_[paths[:, step], symbols[step]]
            )
        assert model.score(symbols) == pytest.approx(np.log(joint.sum()))
        assert_array_equal(model.predict(symbols), paths[joint.argmax()])
        shares = np.array([[joint[paths[:, t] == s].sum() for s in range(2)] for t in range(4)]) / joint.sum()
        assert_allclose(model.predict_proba(symbols), shares, atol=1e-10)

    def test_steps_raise_the_likelihood(self):
        symbols = chain(3000, 0)[0]
        scores = [HiddenMarkov(3, polish=polish, random_state=0).fit(symbols).score(symbols) for polish in (0, 1, 3)]
        assert scores[0] < scores[1] < scores[2]

    def test_lengths(self):
        symbols = chain(6000, 0)[0]
        model = HiddenMarkov(3, random_state=0).fit(symbols, lengths=[2000, 4000])
        parts = model.score(symbols[:2000]) + model.score(symbols[2000:])
        assert model.score(symbols, lengths=[2000, 4000]) == pytest.approx(parts)
        assert _forward(symbols[:5], model.startprob_, model.transmat_, model.emissionprob_)[0].shape == (5, 3)

    def test_symbols_without_memory(self):
        with pytest.warns(UserWarning, match="may be more than the data shows"):
            HiddenMarkov(3, polish=0, random_state=0).fit(np.random.default_rng(0).integers(0, 8, 3000))

    def test_beginnings_of_many_sequences(self):
        """A chain that starts in one state and leaves it for good: not where it is stationary."""
        rng = np.random.default_rng(0)
        emissions = np.array([[0.8, 0.1, 0.1, 0], [0.1, 0.8, 0.1, 0], [0, 0.1, 0.1, 0.8]])
        ladder = np.array([[0.8, 0.2, 0.0], [0.0, 0.8, 0.2], [0.0, 0.0, 1.0]])
        symbols = []
        for _ in range(3000):
            state = 0
            for _ in range(12):
                symbols.append(rng.choice(4, p=emissions[state]))
                state = rng.choice(3, p=ladder[state])
        model = HiddenMarkov(3, polish=0, random_state=0).fit(symbols, lengths=[12] * 3000)
        first = np.argmin(np.linalg.norm(model.emissionprob_ - emissions[0], axis=1))
        assert model.startprob_[first] > 0.85

    def test_hmmlearn_goes_on_from_it(self):
        pytest.importorskip("hmmlearn", reason="hmmlearn is not installed")
        symbols = chain(5000, 0)[0]
        model = HiddenMarkov(3, random_state=0).fit(symbols)
        assert model.to_hmmlearn().score(symbols[:, None]) == pytest.approx(model.score(symbols), rel=1e-6)

    @pytest.mark.parametrize(
        ("symbols", "options", "error", "words"),
        [
            ([0.5, 1.0], {}, TypeError, "symbols as integers"),
            ([-1, 0, 1], {}, ValueError, "not negative; got -1"),
            (np.array([[0, 1], [1, 0]]), {}, ValueError, "shape"),
            ([[0, 1], [1, 0]], {}, ValueError, "three symbols or more"),
            ([0, 1, 0, 1], {"lengths": [3]}, ValueError, "add up to 4"),
            ([0, 1, 0, 1], {"lengths": [0, 4]}, ValueError, "lengths must be positive integers"),
            ([5, 5, 5, 5], {}, ValueError, "n_components must be at most 1"),
            ([0, 1], {}, ValueError, "three symbols or more"),
            ([0, 0, 0, 0], {}, ValueError, "n_components must be at most 1"),
        ],
    )
    def test_mistakes(self, symbols, options, error, words):
        with pytest.raises(error, match=words):
            HiddenMarkov(2).fit(symbols, **options)

    def test_symbols_never_seen(self):
        model = HiddenMarkov(2, random_state=0).fit(chain(3000, 0)[0])
        with pytest.raises(ValueError, match="X must hold symbols below 8"):
            model.predict([0, 9])
