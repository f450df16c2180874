"""Latent-variable models: consistent, the same from every seed, and at home in scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from codiag.methods import ALS, NOJD
from codiag.models import HiddenMarkov, LatentDirichlet, MultiviewMixture, SingleTopic, SphericalGaussianMixture
from codiag.models.hmm import _forward
from codiag.models.text import at_entries
from codiag.synthetic import unit_factor


def matched(estimate, truth):
    """Return the mean distance of rows after matching, relative to their length."""
    distances = np.linalg.norm(estimate[:, None] - truth[None], axis=2)
    rows, columns = linear_sum_assignment(distances)
    return distances[rows, columns].mean() / np.linalg.norm(truth, axis=1).mean()


def single_topic_corpus(n, seed, *, words=20, k=4, length=10):
    rng = np.random.default_rng(5)
    topics, weights = rng.dirichlet(np.full(words, 0.4), k), np.array([0.4, 0.3, 0.2, 0.1])
    rng = np.random.default_rng(seed)
    return rng.multinomial(length, topics[rng.choice(k, n, p=weights)]), topics, weights


def mixed_corpus(n, seed, *, words=20, k=3, length=40):
    rng = np.random.default_rng(6)
    topics, prior = rng.dirichlet(np.full(words, 0.4), k), np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng(seed)
    return rng.multinomial(length, rng.dirichlet(prior, n) @ topics), topics, prior


def gaussians(n, seed, *, d=6, k=3):
    rng = np.random.default_rng(7)
    means, weights, variances = 3 * unit_factor(d, k, rng).T, np.array([0.5, 0.3, 0.2]), np.array([0.5, 1.0, 1.5])
    rng = np.random.default_rng(seed)
    h = rng.choice(k, n, p=weights)
    return means[h] + np.sqrt(variances[h])[:, None] * rng.standard_normal((n, d)), means, weights, variances


def views(n, seed, *, k=3):
    rng = np.random.default_rng(8)
    means, weights = [rng.standard_normal((k, d)) for d in (4, 5, 6)], np.array([0.5, 0.3, 0.2])
    rng = np.random.default_rng(seed)
    h = rng.choice(k, n, p=weights)
    return [mean[h] + 0.5 * rng.standard_normal((n, mean.shape[1])) for mean in means], means, weights


def chain(n, seed, *, k=3, symbols=8):
    rng = np.random.default_rng(9)
    transitions = 0.75 * np.eye(k) + 0.25 * np.array([[0.0, 0.9, 0.1], [0.1, 0.0, 0.9], [0.9, 0.1, 0.0]])
    emissions = rng.dirichlet(np.full(symbols, 0.3), k)
    rng = np.random.default_rng(seed)
    states, draws = np.zeros(n, dtype=int), rng.random(n)
    ladder = np.cumsum(transitions, axis=1)
    for step in range(1, n):
        states[step] = min(np.searchsorted(ladder[states[step - 1]], draws[step]), k - 1)
    shown = (np.cumsum(emissions, axis=1)[states] < rng.random(n)[:, None]).sum(axis=1)
    return np.minimum(shown, symbols - 1), transitions, emissions, states


def topic_error(n, seed):
    counts, topics, _ = single_topic_corpus(n, seed)
    return matched(SingleTopic(4, random_state=0).fit(counts).components_, topics)


def lda_error(n, seed):
    counts, topics, _ = mixed_corpus(n, seed)
    return matched(LatentDirichlet(3, alpha_0=1.0, polish=0, random_state=0).fit(counts).components_, topics)


def gaussian_error(n, seed):
    samples, means, *_ = gaussians(n, seed)
    return matched(SphericalGaussianMixture(3, polish=0, random_state=0).fit(samples).means_, means)


def view_error(n, seed):
    data, means, _ = views(n, seed)
    return matched(MultiviewMixture(3, random_state=0).fit(data).means_[0], means[0])


def chain_error(n, seed):
    symbols, _, emissions, _ = chain(n, seed)
    return matched(HiddenMarkov(3, polish=0, random_state=0).fit(symbols).emissionprob_, emissions)


ERRORS = {
    "SingleTopic": topic_error,
    "LatentDirichlet": lda_error,
    "SphericalGaussianMixture": gaussian_error,
    "MultiviewMixture": view_error,
    "HiddenMarkov": chain_error,
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*may be more than the data shows")
@pytest.mark.parametrize("name", ERRORS)
def test_errors_fall_like_the_root_of_the_samples(name):
    """From 1e3 to 1e6 samples the slopes are between -0.485 and -0.555; here on fewer, for time."""
    sizes = [3000, 10_000, 30_000, 100_000]
    errors = [np.mean([ERRORS[name](n, seed) for seed in range(4)]) for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.62 < slope < -0.38
    assert errors[-1] < 0.05


MODELS = {
    "SingleTopic": lambda **options: SingleTopic(4, **options).fit(single_topic_corpus(5000, 0)[0]).components_,
    "LatentDirichlet": lambda **options: LatentDirichlet(3, **options).fit(mixed_corpus(5000, 0)[0]).components_,
    "SphericalGaussianMixture": lambda **options: (
        SphericalGaussianMixture(3, **options).fit(gaussians(5000, 0)[0]).means_
    ),
    "MultiviewMixture": lambda **options: MultiviewMixture(3, **options).fit(views(5000, 0)[0]).means_[0],
    "HiddenMarkov": lambda **options: HiddenMarkov(3, **options).fit(chain(5000, 0)[0]).emissionprob_,
}


@pytest.mark.parametrize("name", MODELS)
def test_every_seed_gives_the_same_answer(name):
    first = MODELS[name](random_state=0)
    for seed in (1, 2, None):
        assert_allclose(MODELS[name](random_state=seed), first, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("method", ["nojd1", "ojd1", "tpm", "als"])
def test_any_method_serves(name, method):
    method = ALS(init=NOJD()) if method == "als" else method  # from a random start it may end anywhere
    found, best = MODELS[name](method=method, random_state=0), MODELS[name](random_state=0)
    assert matched(found, best) < 0.1


@parametrize_with_checks([SphericalGaussianMixture(2), SphericalGaussianMixture(1, polish=0)])
@pytest.mark.filterwarnings("ignore")
def test_gaussian_mixtures_keep_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


SHORT = "the documents of the check have fewer than three words, and say nothing about triples"
EXCEPTIONS = {
    "check_fit_score_takes_y": SHORT,
    "check_estimators_nan_inf": SHORT,
    "check_estimator_sparse_tag": SHORT,
    "check_estimator_sparse_array": SHORT,
    "check_estimator_sparse_matrix": SHORT,
    "check_fit2d_1feature": "a vocabulary of one word has one topic, which is found: there is no error to word",
}


@parametrize_with_checks([LatentDirichlet(1, polish=0), SingleTopic(1)], expected_failed_checks=lambda _: EXCEPTIONS)
@pytest.mark.filterwarnings("ignore")
def test_topics_keep_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "model",
    [
        SingleTopic(4),
        LatentDirichlet(3, alpha_0=0.5),
        SphericalGaussianMixture(3),
        MultiviewMixture(3),
        HiddenMarkov(3),
    ],
    ids=lambda model: type(model).__name__,
)
def test_parameters_are_stored_and_cloned(model):
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(n_components=2).n_components == 2


class TestTopics:
    def test_single_topics(self):
        counts, topics, weights = single_topic_corpus(20_000, 0)
        model = SingleTopic(4, random_state=0).fit(sparse.csr_matrix(counts))
        assert matched(model.components_, topics) < 0.05
        assert_allclose(model.weights_, weights, atol=0.02)
        assert_allclose(model.components_.sum(axis=1), 1, atol=1e-12)
        assert np.all(model.components_ >= 0)
        posterior = model.transform(counts)
        assert_allclose(posterior.sum(axis=1), 1, atol=1e-12)
        assert_array_equal(model.predict(counts), posterior.argmax(axis=1))
        polished = SingleTopic(4, polish=5, random_state=0).fit(counts)
        assert matched(polished.components_, topics) < matched(model.components_, topics)

    def test_mixed_topics(self):
        counts, topics, prior = mixed_corpus(20_000, 0)
        model = LatentDirichlet(3, alpha_0=1.0, polish=0, random_state=0).fit(counts)
        assert matched(model.components_, topics) < 0.05
        assert_allclose(model.doc_topic_prior_, prior, atol=0.03)

    def test_the_wrong_mixing_is_biased(self):
        """Documents taken for pure where they are mixed: no amount of data mends that."""
        counts, topics, _ = mixed_corpus(20_000, 0)
        assert matched(SingleTopic(3, random_state=0).fit(counts).components_, topics) > 0.1

    def test_polishing_lowers_perplexity(self):
        counts, _, _ = mixed_corpus(3000, 0)
        perplexities = [
            LatentDirichlet(3, polish=polish, random_state=0).fit(counts).perplexity(counts) for polish in (0, 5)
        ]
        assert perplexities[1] < perplexities[0]

    def test_chunks_add_up(self):
        counts, topics, _ = mixed_corpus(9000, 0)
        chunked = LatentDirichlet(3, polish=0, random_state=0)
        for start in range(0, 9000, 3000):
            chunked.partial_fit(counts[start : start + 3000])
        at_once = LatentDirichlet(3, polish=0, random_state=0)
        at_once.basis_ = chunked.basis_
        at_once.partial_fit(counts)
        assert_allclose(chunked.components_, at_once.components_, atol=1e-8)
        assert matched(chunked.components_, topics) < 0.06

    def test_top_words_and_names(self):
        counts, *_ = single_topic_corpus(3000, 0)
        model = SingleTopic(4, random_state=0).fit(counts)
        vocabulary = [f"word{i}" for i in range(20)]
        words = model.top_words(vocabulary, n=3)
        assert [len(row) for row in words] == [3] * 4
        assert words[0][0] == vocabulary[model.components_[0].argmax()]
        assert list(model.get_feature_names_out()) == [f"singletopic{i}" for i in range(4)]
        with pytest.raises(ValueError, match="vocabulary must have 20 words"):
            model.top_words(["a"])

    def test_scikit_learn_goes_on_from_it(self):
        counts, *_ = mixed_corpus(3000, 0)
        model = LatentDirichlet(3, random_state=0).fit(counts)
        theirs = model.to_sklearn()
        assert_allclose(theirs.transform(counts[:50]), model.transform(counts[:50]), atol=0.15)

    def test_pickle(self):
        model = LatentDirichlet(3, random_state=0).fit(mixed_corpus(1000, 0)[0])
        again = pickle.loads(pickle.dumps(model))
        assert_array_equal(again.components_, model.components_)

    def test_predictions_at_entries_alone(self):
        rng = np.random.default_rng(0)
        left, right = rng.random((6, 3)), rng.random((3, 8))
        counts = sparse.random(6, 8, density=0.4, random_state=0, format="csr")
        counts = sparse.csr_array(counts)
        rows, columns = counts.nonzero()
        assert_allclose(at_entries(left, right, counts, block=4), (left @ right)[rows, columns])

    def test_short_documents_are_counted(self):
        counts, *_ = single_topic_corpus(2000, 0)
        counts[:7] = 0
        counts[:7, 0] = 1
        with pytest.warns(UserWarning, match="7 of 2000 documents have fewer than three words"):
            SingleTopic(4, random_state=0).fit(counts)

    @pytest.mark.parametrize(
        ("counts", "k", "words"),
        [
            (-np.ones((9, 5)), 2, "Negative values in data"),
            (np.full((9, 5), np.nan), 2, "NaN"),
            (np.ones((9, 5)), 6, "n_components must be at most 5, the number of words"),
            (np.eye(5), 2, "documents of three words or more; all 5 have fewer"),
            (np.tile([3, 2, 1, 0, 0], (50, 1)), 4, "more than the data determines"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*documents have fewer than three words")
    def test_mistakes(self, counts, k, words):
        with pytest.raises(ValueError, match=words):
            SingleTopic(k).fit(counts)

    def test_other_words_than_in_fit(self):
        model = SingleTopic(4, random_state=0).fit(single_topic_corpus(1000, 0)[0])
        with pytest.raises(ValueError, match="5 features, but SingleTopic is expecting 20"):
            model.transform(np.ones((2, 5)))

    def test_what_is_not_counted(self):
        counts, *_ = single_topic_corpus(2000, 0)
        with pytest.warns(UserWarning, match="not for shares or tf-idf weights"):
            SingleTopic(4, random_state=0).fit(1.5 * counts)

    def test_diagnostics(self):
        found = LatentDirichlet(3, random_state=0).fit(mixed_corpus(5000, 0)[0]).diagnostics_
        assert 5 < found["second_moment_gap"] < np.inf
        assert found["second_moment"][2] > 5 * found["sampling_noise"]
        assert 0 <= found["clipped_mass"] < 0.2
        assert found["core_errors"].shape == (3,)

    def test_more_topics_than_there_are(self):
        with pytest.warns(UserWarning, match="n_components=5 may be more than the data shows"):
            model = LatentDirichlet(5, polish=0, random_state=0).fit(mixed_corpus(5000, 0)[0])
        assert model.diagnostics_["second_moment_gap"] < 3

    def test_likelihood_of_single_topics(self):
        """Against the sum over topics, and rising with every step."""
        counts, *_ = single_topic_corpus(3000, 0)
        models = [SingleTopic(4, polish=polish, random_state=0).fit(counts) for polish in (0, 1, 3)]
        scores = [model.score(counts) for model in models]
        assert scores[0] < scores[1] < scores[2]
        by_hand = [np.log(models[0].weights_ @ np.prod(models[0].components_ ** row, axis=1)) for row in counts[:50]]
        assert models[0].score(counts[:50]) == pytest.approx(np.sum(by_hand), rel=1e-8)
        with pytest.raises(NotImplementedError, match="use LatentDirichlet"):
            models[0].to_sklearn()

    def test_a_failed_chunk_is_not_counted(self):
        counts, *_ = mixed_corpus(3000, 0)
        model = LatentDirichlet(3, polish=0, random_state=0).partial_fit(counts)
        before = model._statistics.n_documents.copy()
        with pytest.raises(ValueError, match="expecting 20 features"):
            model.partial_fit(np.full((4, 5), 3))
        with pytest.raises(ValueError, match="n_components must be at most 9"):
            model.set_params(n_components=12).partial_fit(counts)
        assert_array_equal(model._statistics.n_documents, before)


class TestMixtures:
    def test_gaussians(self):
        samples, means, weights, variances = gaussians(50_000, 0)
        for polish in (0, 10):
            model = SphericalGaussianMixture(3, polish=polish, random_state=0).fit(samples)
            assert matched(model.means_, means) < 0.05
            assert_allclose(model.weights_, weights, atol=0.03)
            assert_allclose(model.covariances_, variances, atol=0.2 if polish == 0 else 0.05)
        shares = model.predict_proba(samples[:100])
        assert_allclose(shares.sum(axis=1), 1, atol=1e-12)
        assert_array_equal(model.predict(samples[:100]), shares.argmax(axis=1))
        theirs = model.to_sklearn()
        assert_allclose(theirs.predict_proba(samples[:100]), shares, atol=1e-8)
        assert theirs.score(samples[:100]) == pytest.approx(model.score(samples[:100]))

    @pytest.mark.parametrize("shift", [0.0, 1.0, -100.0, 1e5])
    @pytest.mark.parametrize("scale", [1.0, 1e-6])
    def test_the_origin_and_the_unit_do_not_matter(self, shift, scale):
        samples, means, *_ = gaussians(20_000, 0)
        centre = samples.mean(axis=0)
        moved = scale * (samples - centre + shift)
        model = SphericalGaussianMixture(3, random_state=0).fit(moved)
        assert matched(model.means_ / scale - shift + centre, means) < 0.02
        assert_allclose(model.covariances_ / scale**2, [0.5, 1.0, 1.5], atol=0.1)

    def test_scikit_learn_starts_from_it(self):
        samples, *_ = gaussians(3000, 0)
        model = SphericalGaussianMixture(3, random_state=0).fit(samples)
        assert matched(model.to_sklearn().fit(samples).means_, model.means_) < 0.05

    def test_more_gaussians_than_there_are(self):
        with pytest.warns(UserWarning, match="n_components=5 may be more than the data shows"):
            SphericalGaussianMixture(5, polish=0, random_state=0).fit(gaussians(3000, 0)[0])

    def test_a_view_smaller_than_the_mixture(self):
        rng = np.random.default_rng(0)
        means, weights = [rng.standard_normal((3, d)) for d in (2, 5, 6)], np.array([0.5, 0.3, 0.2])
        h = rng.choice(3, 100_000, p=weights)
        data = [mean[h] + 0.3 * rng.standard_normal((h.size, mean.shape[1])) for mean in means]
        model = MultiviewMixture(3, random_state=0).fit(data)
        assert_allclose(model.weights_, weights, atol=0.02)
        for found, mean in zip(model.means_, means, strict=True):
            assert matched(found, mean) < 0.05

    def test_views_that_do_not_correlate(self):
        rng = np.random.default_rng(0)
        with pytest.warns(UserWarning, match="may be more than the data shows"):
            MultiviewMixture(3, random_state=0).fit([rng.standard_normal((2000, 4)) for _ in range(3)])

    def test_polished_views(self):
        """Gaussian noise, and white: steps of EM improve on moments, and samples are told apart."""
        rng = np.random.default_rng(0)
        means, weights = [2 * rng.standard_normal((3, d)) for d in (4, 5, 6)], np.array([0.5, 0.3, 0.2])
        h = rng.choice(3, 3000, p=weights)
        noise = (0.5, 1.0, 1.5)
        data = [
            mean[h] + s * rng.standard_normal((h.size, mean.shape[1])) for mean, s in zip(means, noise, strict=True)
        ]
        errors = []
        for polish in (0, 10):
            model = MultiviewMixture(3, polish=polish, random_state=0).fit(data)
            errors.append(np.mean([matched(found, mean) for found, mean in zip(model.means_, means, strict=True)]))
        assert errors[1] < errors[0]
        assert_allclose(np.sqrt(model.variances_), noise, rtol=0.05)
        assert_allclose(model.predict_proba(data).sum(axis=1), 1, atol=1e-12)
        order = np.argsort(linear_sum_assignment(np.linalg.norm(model.means_[0][:, None] - means[0][None], axis=2))[1])
        assert np.mean(order[h] == model.predict(data)) > 0.95

    def test_more_gaussians_than_features(self):
        with pytest.raises(ValueError, match="n_components must be at most 6, the number of features"):
            SphericalGaussianMixture(7).fit(gaussians(100, 0)[0])

    def test_views(self):
        data, means, weights = views(50_000, 0)
        model = MultiviewMixture(3, random_state=0).fit(data)
        for found, mean in zip(model.means_, means, strict=True):
            assert matched(found, mean) < 0.1
        assert_allclose(model.weights_, weights, atol=0.03)
        assert model.diagnostics_["weights_sum"] == pytest.approx(1, abs=0.1)

    @pytest.mark.parametrize(
        ("data", "words"),
        [
            ([np.ones((4, 3))] * 2, "X must be three views"),
            ([np.ones((4, 3)), np.ones((5, 3)), np.ones((4, 3))], "the same number each"),
            ([np.ones((4, 3)), np.ones((4, 2)), np.ones((4, 2))], "n_components must be at most 2"),
        ],
    )
    def test_views_that_are_none(self, data, words):
        with pytest.raises(ValueError, match=words):
            MultiviewMixture(3).fit(data)


class TestChains:
    def test_a_chain(self):
        symbols, transitions, emissions, states = chain(50_000, 0)
        model = HiddenMarkov(3, random_state=0).fit(symbols)
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
            ([[0, 1], [1, 0]], {}, ValueError, "shape"),
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
