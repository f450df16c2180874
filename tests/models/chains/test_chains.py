"""Hidden Markov models by moments."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import linear_sum_assignment

from assertions import assert_same_to_rounding
from codiag.models import HiddenMarkov
from simulated import chain, matched


class TestChains:
    @pytest.mark.parametrize("max_iter", [0, 10])
    def test_a_chain(self, max_iter):
        symbols, transitions, emissions, states = chain(20_000, 0)
        model = HiddenMarkov(3, max_iter=max_iter, random_state=0).fit(symbols)
        assert matched(model.emissionprob_, emissions) < 0.05
        _, order = linear_sum_assignment(np.linalg.norm(emissions[:, None] - model.emissionprob_[None], axis=2))
        assert_allclose(model.transmat_[np.ix_(order, order)], transitions, atol=0.05)
        for rows in (model.transmat_, model.emissionprob_, model.startprob_[None]):
            assert_allclose(rows.sum(axis=1), 1, atol=1e-9)
        found = model.predict(symbols)
        overlap = np.array([[np.mean((found == i) & (states == j)) for j in range(3)] for i in range(3)])
        assert overlap[linear_sum_assignment(-overlap)].sum() > 0.7

    def test_likelihood_and_states_by_enumeration(self):
        """Sum and maximize over all paths of a short sequence."""
        model = HiddenMarkov(2, max_iter=3, random_state=0).fit(chain(2000, 0)[0][:, None])
        symbols = np.array([0, 3, 1, 2])
        paths = np.indices((2,) * 4).reshape(4, -1).T
        joint = model.startprob_[paths[:, 0]] * model.emissionprob_[paths[:, 0], symbols[0]]
        for step in range(1, 4):
            joint *= (
                model.transmat_[paths[:, step - 1], paths[:, step]] * model.emissionprob_[paths[:, step], symbols[step]]
            )
        assert model.score(symbols) == pytest.approx(np.log(joint.sum()))
        assert_array_equal(model.predict(symbols), paths[joint.argmax()])
        assert model.decode(symbols)[0] == pytest.approx(np.log(joint.max()))
        shares = np.array([[joint[paths[:, t] == s].sum() for s in range(2)] for t in range(4)]) / joint.sum()
        assert_allclose(model.predict_proba(symbols), shares, atol=1e-10)
        most = shares.argmax(axis=1)
        found, states = model.decode(symbols, algorithm="map")
        assert_array_equal(states, most)
        assert found == pytest.approx(np.log(joint[np.all(paths == most, axis=1)][0]))

    def test_steps_raise_the_likelihood(self):
        symbols = chain(3000, 0)[0]
        scores = [HiddenMarkov(3, max_iter=n, random_state=0).fit(symbols).score(symbols) for n in (0, 1, 3)]
        assert scores[0] < scores[1] < scores[2]

    def test_lengths(self):
        symbols = chain(6000, 0)[0]
        model = HiddenMarkov(3, random_state=0).fit(symbols, lengths=[2000, 4000])
        parts = model.score(symbols[:2000]) + model.score(symbols[2000:])
        assert model.score(symbols, lengths=[2000, 4000]) == pytest.approx(parts)

    def test_symbols_without_memory(self):
        with pytest.warns(UserWarning, match="may be more"):
            HiddenMarkov(3, max_iter=0, random_state=0).fit(np.random.default_rng(0).integers(0, 8, 3000))

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
        model = HiddenMarkov(3, max_iter=0, random_state=0).fit(symbols, lengths=[12] * 3000)
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
            ([0, 1, 0, 1], {"lengths": [0, 4]}, ValueError, "^lengths must"),
            ([5, 5, 5, 5], {}, ValueError, "^n_components must"),
            ([0, 1], {}, ValueError, "three symbols or more"),
            ([0, 0, 0, 0], {}, ValueError, "^n_components must"),
        ],
    )
    def test_mistakes(self, symbols, options, error, words):
        with pytest.raises(error, match=words):
            HiddenMarkov(2).fit(symbols, **options)

    def test_lengths_are_no_target(self):
        with pytest.raises(ValueError, match="^y must"):
            HiddenMarkov(2).fit([0, 1, 0, 1], [2, 2])

    def test_symbols_never_seen(self):
        model = HiddenMarkov(2, random_state=0).fit(chain(3000, 0)[0])
        with pytest.raises(ValueError, match="^X must"):
            model.predict([0, 9])


@pytest.mark.filterwarnings("ignore:.*may be more than the data shows")
class TestKindsOfSequences:
    def test_lists_of_sequences_are_sequences_with_lengths(self):
        symbols = chain(1500, 0)[0]
        parts = [symbols[:400], symbols[400:1100], symbols[1100:]]
        model = HiddenMarkov(3, max_iter=2, random_state=0).fit(symbols, lengths=[400, 700, 400])
        for kind in (parts, tuple(part.tolist() for part in parts), [part[:, None] for part in parts]):
            other = HiddenMarkov(3, max_iter=2, random_state=0).fit(kind)
            assert_same_to_rounding(other.emissionprob_, model.emissionprob_)
            assert other.score(kind) == model.score(symbols, lengths=[400, 700, 400])
            assert_array_equal(other.predict(kind), model.predict(symbols, [400, 700, 400]))

    @pytest.mark.slow
    def test_strings_are_symbols(self):
        symbols = chain(1500, 0)[0]
        names = np.array([f"s{place}" for place in range(8)])
        model = HiddenMarkov(3, max_iter=2, random_state=0).fit(symbols)
        assert_array_equal(model.symbols_, range(8))
        shown = names[symbols]
        kinds = (shown, shown.tolist(), shown.astype(object), [shown], [shown.tolist()])
        for kind in kinds:
            other = HiddenMarkov(3, max_iter=2, random_state=0).fit(kind)
            assert_array_equal(other.symbols_, names)
            assert_same_to_rounding(other.emissionprob_, model.emissionprob_)
        assert other.score(shown[:50]) == model.score(symbols[:50])
        with pytest.raises(ValueError, match="'s9' was not"):
            other.predict(["s1", "s9"])
        with pytest.raises(TypeError, match="as integers, as in fit"):
            model.predict(["s1", "s2"])

    def test_a_column_of_a_list_is_one_sequence(self):
        symbols = chain(300, 0)[0]
        column = HiddenMarkov(2, max_iter=1, random_state=0).fit([[symbol] for symbol in symbols.tolist()])
        assert_same_to_rounding(
            column.emissionprob_, HiddenMarkov(2, max_iter=1, random_state=0).fit(symbols).emissionprob_
        )

    @pytest.mark.parametrize(
        ("symbols", "lengths", "error", "words"),
        [
            ("abracadabra", None, TypeError, r"give list\(X\)"),
            (b"abc", None, TypeError, "list of sequences"),
            (7, None, TypeError, "list of sequences"),
            (None, None, TypeError, "list of sequences"),
            (np.array(3), None, TypeError, "list of sequences"),
            ({"a": 1}, None, TypeError, "list of sequences"),
            ([0, "a", 1], None, TypeError, "of one kind"),
            (["a", None, "b"], None, TypeError, "none missing"),
            ([[0, 1, 0], ["a", "b", "a"]], None, TypeError, "of one kind"),
            ([[0, 1, 0], []], None, ValueError, "in every sequence"),
            ([[0, 1, 0], [1, 0]], [3, 2], ValueError, "^lengths must"),
            ([0, 1, 0, 1], "ab", ValueError, "^lengths must"),
            ([0, 1, 0, 1], [[2, 2]], ValueError, "^lengths must"),
            ([0, 2 * 10**9, 0, 1], None, ValueError, "symbols below 10000000"),
            ([0, 10**30, 0, 1], None, ValueError, "64 bits"),
        ],
    )
    def test_invalid_sequences_are_refused(self, symbols, lengths, error, words):
        with pytest.raises(error, match=words):
            HiddenMarkov(2).fit(symbols, lengths=lengths)

    def test_symbols_that_never_occur_cost_nothing(self):
        """Work follows the symbols that occur: pairs of all numbers up to the largest would take terabytes."""
        sparse_numbers = HiddenMarkov(2, max_iter=0, random_state=0, method="ojd1").fit(chain(600, 0)[0] * 1000)
        dense_numbers = HiddenMarkov(2, max_iter=0, random_state=0, method="ojd1").fit(chain(600, 0)[0])
        assert_allclose(sparse_numbers.emissionprob_[:, ::1000], dense_numbers.emissionprob_, atol=1e-9)
        HiddenMarkov(2, max_iter=0, random_state=0, method="ojd1").fit([0, 10**6, 10**6] * 30 + [0, 0, 10**6] * 30)

    @pytest.mark.parametrize("symbols", [[0, 1, 2], [0, 1] * 20, [0] * 20 + [1] * 20, [[0, 1, 0]] * 9])
    def test_short_sequences(self, symbols):
        for k in (1, 2):
            model = HiddenMarkov(k, random_state=0).fit(symbols)
            for rows in (model.transmat_, model.emissionprob_, model.startprob_[None]):
                assert_allclose(rows.sum(axis=1), 1)
            numbers = [value for value in model.diagnostics_.values() if value is not None]
            assert all(np.all(np.isfinite(number)) for number in numbers)


def test_states_that_change_rarely_are_shown():
    """Two halves of such a chain have nothing in common, and yet its states are plain: warnings are errors here."""
    rng = np.random.default_rng(0)
    symbols = np.concatenate([rng.integers(0, 3, 1000), rng.integers(3, 6, 1000)])
    model = HiddenMarkov(2, random_state=0).fit(symbols)
    assert_allclose(np.sort(model.emissionprob_.reshape(2, 2, 3).sum(axis=2), axis=1), [[0, 1], [0, 1]], atol=0.01)
