"""Standard errors by the grouped jackknife, where they are known: textbook formulas, Fisher information."""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import codiag
from codiag.models import (
    CP,
    HiddenMarkov,
    LatentDirichlet,
    MultiviewMixture,
    SingleTopic,
    SphericalGaussianMixture,
    jackknife_standard_errors,
)
from codiag.models.base import jackknife_errors, random_groups, share_errors
from simulated import chain, gaussians, mixed_corpus, single_topic_corpus, views


def binomial(shares, n):
    """Return the standard errors of shares of n independent draws."""
    return np.sqrt(shares * (1 - shares) / n)


def errors_of(model, data, n_groups):
    """Return standard errors of a model that is fitted first."""
    return jackknife_standard_errors(model.fit(data), data, n_groups=n_groups)


class TestFormula:
    def test_of_a_mean_it_is_the_textbook_formula(self):
        rows = np.random.default_rng(0).standard_normal((50, 3))
        without = (rows.sum(axis=0) - rows) / 49
        found = jackknife_errors(rows.mean(axis=0), without, np.full(50, 50))
        assert_allclose(found, rows.std(axis=0, ddof=1) / np.sqrt(50))

    def test_of_a_mean_over_groups_of_any_size(self):
        """Pseudo-values are the means of the groups, and their center is the mean of all, whatever the sizes."""
        rng = np.random.default_rng(0)
        sizes = rng.integers(5, 50, 20)
        sums = rng.standard_normal(20) * np.sqrt(sizes)
        mean, without = sums.sum() / sizes.sum(), (sums.sum() - sums) / (sizes.sum() - sizes)
        shares = sizes / sizes.sum()
        found = jackknife_errors(mean, without, 1 / shares)
        assert_allclose(found, np.sqrt(np.mean((sums / sizes - mean) ** 2 * shares / (1 - shares))))

    def test_groups_are_of_one_size(self):
        assert set(np.bincount(random_groups(103, 10), minlength=10)) == {10, 11}

    def test_shares_held_at_a_bound_are_unknown(self):
        value = np.array([[0.0, 0.3, 0.7], [1.0, 0.0, 0.0]])
        others = np.stack([value] * 4)
        others[0, 1] = [0.9, 0.1, 0.0]  # without a group, the second row moves but for one entry
        found = share_errors(value, others, np.full(4, 4))
        assert np.array_equal(np.isnan(found), [[True, False, False], [False, False, True]])
        known = ~np.isnan(found)
        assert_allclose(found[known], jackknife_errors(value, others, np.full(4, 4))[known])
        assert share_errors(np.ones(1), np.ones((4, 1)), np.full(4, 4)) == 0  # the only share of its row


class TestReplicates:
    """What is done without a group is what is done with all data."""

    def test_they_are_fits_without_a_group(self):
        """By rows that were left out by hand, with steps of EM as well."""
        sides = views(600, 0)[0]
        model = MultiviewMixture(3, max_iter=2, random_state=0).fit(sides)
        owners = random_groups(600, 5)
        others = [clone(model).fit([side[owners != group] for side in sides]) for group in range(5)]
        orders = [
            linear_sum_assignment(np.linalg.norm(model.means_[0][:, None] - other.means_[0], axis=2))[1]
            for other in others
        ]
        found = jackknife_standard_errors(model, sides, n_groups=5)
        weights = np.stack([other.weights_[order] for other, order in zip(others, orders, strict=True)])
        assert_allclose(found["weights_"], jackknife_errors(model.weights_, weights, np.full(5, 5)), rtol=1e-6)
        variances = np.stack([other.variances_ for other in others])
        assert_allclose(found["variances_"], jackknife_errors(model.variances_, variances, np.full(5, 5)), rtol=1e-6)
        assert [one.shape for one in found["means_"]] == [one.shape for one in model.means_]

    def test_the_model_stays_as_it_is(self):
        counts = mixed_corpus(300, 0)[0]
        model = LatentDirichlet(3, max_iter=0, random_state=0).fit(counts)
        before = copy.deepcopy(vars(model))
        found = jackknife_standard_errors(model, counts, n_groups=4)
        assert set(found) == {"weights_", "components_", "doc_topic_prior_", "topic_word_prior_"}
        assert vars(model).keys() == before.keys()
        assert_allclose(model.components_, before["components_"])

    @pytest.mark.parametrize(
        ("model", "draw", "name"),
        [
            (SphericalGaussianMixture(3, max_iter=3, random_state=0), gaussians, "means_"),
            (MultiviewMixture(3, max_iter=1, random_state=0), views, "weights_"),
        ],
        ids=["gaussian", "views"],
    )
    def test_errors_fall_like_the_root_of_the_number(self, model, draw, name):
        few, many = (errors_of(clone(model), draw(n, 1)[0], 25)[name] for n in (500, 4500))
        assert 2 < np.sqrt(np.mean(np.square(few)) / np.mean(np.square(many))) < 4.5

    @pytest.mark.parametrize(
        ("model", "draw", "rows", "names"),
        [
            (LatentDirichlet(3, max_iter=0, random_state=0), mixed_corpus, "components_", ("components_", "weights_")),
            (SingleTopic(4, random_state=0), single_topic_corpus, "components_", ("components_", "weights_")),
            (SphericalGaussianMixture(3, max_iter=0, random_state=0), gaussians, "means_", ("means_", "covariances_")),
        ],
        ids=["dirichlet", "single", "gaussian"],
    )
    def test_they_are_the_spread_over_data_sets(self, model, draw, rows, names):
        """Over 40 data sets, a spread is known to 11 %; standard errors from 20 groups, of five data sets, to 7 %."""
        truth, estimates, errors = draw(10, 0)[1], [], []
        for seed in range(40):
            data = draw(2000, seed)[0]
            found = clone(model).fit(data)
            order = linear_sum_assignment(np.linalg.norm(truth[:, None] - getattr(found, rows)[None], axis=2))[1]
            estimates.append([getattr(found, name)[order] for name in names])
            if seed < 5:
                told = jackknife_standard_errors(found, data)
                errors.append([told[name][order] for name in names])
        for place in range(len(names)):
            spread = np.std([one[place] for one in estimates], axis=0)
            told = np.sqrt(np.mean([np.square(one[place]) for one in errors], axis=0))
            used = spread > 0.2 * np.max(spread)  # words that topics hardly have are clipped at zero
            known = used & np.isfinite(told)  # NaN where they are held there without each group, too
            assert known.sum() > 0.9 * used.sum()
            assert 0.75 < np.mean(told[known] / spread[known]) < 1.25


class TestFisherInformation:
    """If components can be told apart, estimates are shares and means, whose errors are known."""

    def test_gaussians_far_apart(self):
        means, weights, variances = 30 * np.eye(3, 5), np.array([0.5, 0.3, 0.2]), np.array([0.5, 1.0, 2.0])
        rng = np.random.default_rng(0)
        h = rng.choice(3, 3000, p=weights)
        samples = means[h] + np.sqrt(variances[h])[:, None] * rng.standard_normal((3000, 5))
        found = errors_of(SphericalGaussianMixture(3, max_iter=2, random_state=0), samples, 40)
        n = 3000 * weights
        assert_allclose(np.sqrt(np.mean(found["means_"] ** 2, axis=1)), np.sqrt(variances / n), rtol=0.15)
        assert_allclose(found["weights_"], binomial(weights, 3000), rtol=0.3)
        assert_allclose(found["covariances_"], variances * np.sqrt(2 / (5 * n)), rtol=0.3)

    def test_one_gaussian_is_the_mean_of_its_samples(self):
        samples = np.random.default_rng(0).standard_normal((4000, 3)) * [1, 2, 3]
        found = errors_of(SphericalGaussianMixture(1, max_iter=0), samples, 100)
        assert_allclose(found["means_"][0], samples.std(axis=0) / np.sqrt(4000), rtol=0.25)

    @pytest.mark.parametrize(
        "model", [SingleTopic(2, max_iter=2, random_state=0), LatentDirichlet(2, max_iter=0, random_state=0)], ids=str
    )
    def test_topics_without_words_in_common(self, model):
        rng = np.random.default_rng(0)
        topics, weights = np.zeros((2, 8)), np.array([0.7, 0.3])
        topics[0, :4] = topics[1, 4:] = [0.4, 0.3, 0.2, 0.1]
        counts = rng.multinomial(10, topics[rng.choice(2, 1500, p=weights)])
        found = errors_of(model, counts, 30)["components_"]
        known = binomial(topics, 15000 * weights[:, None])
        assert_allclose(found[known > 0], known[known > 0], rtol=0.5)
        assert_allclose(np.mean(found[known > 0] / known[known > 0]), 1, atol=0.15)

    def test_chains_by_the_curvature_of_the_likelihood(self):
        """From differences of the log-likelihood along all pairs of parameters, at its maximum, nearly."""
        moves, shown = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
        rng = np.random.default_rng(0)
        states = (rng.random((100, 60)) < 1 / 3).astype(int)
        for time in range(1, 60):
            states[:, time] = rng.random(100) < moves[states[:, time - 1], 1]
        symbols = list(np.sum(np.cumsum(shown, axis=1)[states] < rng.random((100, 60, 1)), axis=2))
        model = HiddenMarkov(2, max_iter=20, random_state=0).fit(symbols)
        found = jackknife_standard_errors(model, symbols)
        errors = np.concatenate([found["transmat_"][[0, 1], [1, 0]], found["emissionprob_"][:, :2].ravel()])
        known = np.sqrt(np.diag(np.linalg.inv(_information(model, symbols))))
        assert_allclose(errors, known, rtol=0.5)  # known to 16 % from 20 groups
        assert_allclose(np.mean(errors / known), 1, atol=0.2)

    def test_beginnings_of_sequences(self):
        """Of chains whose states can be seen: shares of independent draws."""
        rng = np.random.default_rng(0)
        sequences = [(3 * (rng.random() < 0.25) + 3 * np.cumsum(rng.random(12) < 0.1)) % 6 for _ in range(300)]
        shown = [sequence.astype(int) + rng.integers(0, 3, 12) for sequence in sequences]
        found = errors_of(HiddenMarkov(2, max_iter=2, random_state=0), shown, 30)
        assert_allclose(found["startprob_"], binomial(0.25, 300), rtol=0.4)

    def test_dependence_in_time_counts(self):
        """Shares of symbols that stay for ten steps vary as if there were a ninth as many symbols."""
        stay, n = 0.9, 12000
        rng = np.random.default_rng(0)
        symbols = np.cumsum(rng.random(n) >= stay) % 2  # the chain has the eigenvalue 2 * stay - 1
        alone, memory = binomial(0.5, n), np.sqrt(stay / (1 - stay))  # of (1 + 0.8) / (1 - 0.8)
        found = errors_of(HiddenMarkov(1, max_iter=0), symbols, 30)
        assert_allclose(found["emissionprob_"], alone * memory, rtol=0.25)
        shuffled = errors_of(HiddenMarkov(1, max_iter=0), rng.permutation(symbols), 30)
        assert_allclose(shuffled["emissionprob_"], alone, rtol=0.25)

    def test_one_component_of_views_is_their_mean(self):
        sides = views(1000, 0)[0]
        found = errors_of(MultiviewMixture(1, max_iter=1), sides, 30)
        for errors, side in zip(found["means_"], sides, strict=True):
            assert_allclose(errors[0], side.std(axis=0) / np.sqrt(1000), rtol=0.4)

    def test_components_of_samples(self):
        """Over 40 draws of the noise, factors of CP are as far from those without noise as first-order theory says."""
        data = np.einsum("ir,jr,kr->ijk", *(np.random.default_rng(d).random((d, 2)) for d in (9, 5, 4)))
        truth = CP(2, random_state=0).fit(data).decomposition_
        rng, squares = np.random.default_rng(0), []
        for _ in range(40):
            model = CP(2, random_state=0).fit(data + 0.001 * rng.standard_normal(data.shape))
            matched = codiag.match_components(model.decomposition_, truth)
            triples = zip(matched.factors[1:], truth.factors[1:], model.factors_standard_errors_, strict=True)
            squares.append([np.mean(((a - b) / e[:, matched.permutation]) ** 2) for a, b, e in triples])
        assert_allclose(np.sqrt(np.mean(squares, axis=0)), 1, atol=0.2)


class TestWhatIsUnknown:
    """NaN, or an error, if leaving out groups shows nothing."""

    def test_words_that_a_topic_never_has(self):
        """Emissions of a symbol that the other state alone shows are clipped at zero, whatever is left out."""
        rng = np.random.default_rng(0)
        states = np.cumsum(rng.random(4000) < 0.1) % 2
        symbols = 2 * states + rng.integers(0, 2, 4000)
        model = HiddenMarkov(2, max_iter=0, random_state=0).fit(symbols)
        found = jackknife_standard_errors(model, symbols, n_groups=5)["emissionprob_"]
        unknown = np.isnan(found)
        assert unknown.any()
        assert np.all(model.emissionprob_[unknown] < 1e-8)
        assert np.all(found[~unknown] > 1e-6)

    def test_topics_after_variational_steps_have_none(self):
        counts = mixed_corpus(300, 0)[0]
        with pytest.raises(ValueError, match="^max_iter must"):
            errors_of(LatentDirichlet(3, max_iter=3, random_state=0), counts, 4)

    def test_a_constant_feature_is_known(self):
        samples = np.concatenate([gaussians(300, 0)[0], np.zeros((300, 1))], axis=1)
        found = errors_of(SphericalGaussianMixture(1, max_iter=0), samples, 5)
        assert found["means_"][0, -1] == 0
        assert found["weights_"] == 0

    @pytest.mark.filterwarnings("ignore:.*may be more than the data shows")
    @pytest.mark.parametrize(("lengths", "known"), [([600] * 3, False), ([150] * 12, True)])
    def test_beginnings_are_known_if_sequences_are_whole(self, lengths, known):
        symbols = chain(sum(lengths), 0)[0]
        model = HiddenMarkov(3, max_iter=2, random_state=0).fit(symbols, lengths=lengths)
        found = jackknife_standard_errors(model, symbols, n_groups=6, lengths=lengths)
        assert np.all(np.isfinite(found["startprob_"]) == known)
        assert np.mean(np.isfinite(found["transmat_"])) > 0.8  # a probability that stays at zero is unknown

    @pytest.mark.filterwarnings("ignore:.*may be more than the data shows")
    def test_symbols_that_one_group_alone_has(self):
        symbols = np.append(chain(1000, 0)[0], 9)
        for given in (symbols, np.array(list("abcdefghij"))[symbols]):
            model = HiddenMarkov(3, max_iter=0, random_state=0).fit(given)
            found = jackknife_standard_errors(model, given, n_groups=4)
            assert found["emissionprob_"].shape == model.emissionprob_.shape

    @pytest.mark.parametrize(
        ("n_groups", "error"), [(1, ValueError), (-1, ValueError), (301, ValueError), ("a", TypeError)]
    )
    def test_invalid_numbers_of_groups(self, n_groups, error):
        samples = gaussians(300, 0)[0]
        model = SphericalGaussianMixture(2, max_iter=0).fit(samples)
        with pytest.raises(error, match=r"^n_groups must"):
            jackknife_standard_errors(model, samples, n_groups=n_groups)

    def test_models_without_errors(self):
        with pytest.raises(NotFittedError):
            jackknife_standard_errors(SphericalGaussianMixture(2), np.eye(3))
        samples = np.ones((9, 5, 4))
        with pytest.raises(NotImplementedError, match="^CP has no"):
            jackknife_standard_errors(CP(1, random_state=0).fit(samples), samples, n_groups=3)

    def test_errors_name_the_group(self):
        samples = np.concatenate([np.eye(3)[:2], np.eye(3)[:2], np.eye(3)[2:]])
        model = SphericalGaussianMixture(3, max_iter=0, random_state=0)
        with pytest.warns(UserWarning, match="may be more"):
            model.fit(samples)
        with pytest.raises(ValueError, match=r"^n_components") as caught:
            jackknife_standard_errors(model, samples, n_groups=5)
        assert "This was without group" in caught.value.__notes__[0]


def _information(model, sequences, step=1e-3):
    """Return minus the second derivatives of the log-likelihood of a chain of two states and three symbols."""

    def score(moved):
        at = copy.copy(model)
        at.transmat_, at.emissionprob_ = model.transmat_.copy(), model.emissionprob_.copy()
        at.transmat_ += np.array([[-moved[0], moved[0]], [moved[1], -moved[1]]])
        at.emissionprob_ += np.array([[a, b, -a - b] for a, b in moved[2:].reshape(2, 2)])
        return at.score(sequences)

    axes = step * np.eye(6)
    ends = {sign: [score(sign * axis) for axis in axes] for sign in (1, -1)}
    middle = score(np.zeros(6))
    found = np.diag([up + down - 2 * middle for up, down in zip(ends[1], ends[-1], strict=True)])
    for i, j in itertools.combinations(range(6), 2):
        mixed = score(axes[i] + axes[j]) + score(-axes[i] - axes[j]) - 2 * middle
        found[i, j] = found[j, i] = (mixed - found[i, i] - found[j, j]) / 2
    return -found / step**2
