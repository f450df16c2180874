"""Collapsed variational steps that polish topics, and the priors estimated on the way."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.special import gammaln, psi

from codiag.models import LatentDirichlet, SingleTopic
from codiag.models.topics import (
    PriorSums,
    Start,
    TopicCounts,
    WordPosteriors,
    estimated_prior,
    estimated_word_prior,
    expected_histogram,
    histogram,
    refined,
    topic_mixtures,
)
from simulated import matched, mixed_corpus, single_topic_corpus

WORDS, TOPICS = 7, 3


def small(kind="whole"):
    """Counts with repeated words, an empty document and a word that never occurs; of less than one, where wanted."""
    counts = np.random.default_rng(0).poisson(0.8, (12, WORDS)).astype(float)
    counts[4], counts[:, 5] = 0, 0
    return counts / 2 if kind == "halves" else counts


def known_of(posteriors, prior=0.3, word_prior=0.2):
    prior = np.full(TOPICS, prior) + 0.1 * np.arange(TOPICS)
    return TopicCounts(posteriors.words(), prior, word_prior)


def started(kind, counts):
    topics = np.random.default_rng(1).dirichlet(np.ones(WORDS), TOPICS)
    return kind(sparse.csr_array(counts), TOPICS).initialized(topics, np.full(TOPICS, 0.3))


def short_texts(n, seed, *, k=3, words=60, alpha_0=0.5):
    """Documents of two to eight words, and the topics they mix."""
    rng = np.random.default_rng(12)
    topics = rng.gamma(0.1, 1.0, (k, words)) / (10 + np.arange(words)) + 1e-12
    topics /= topics.sum(axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    mixtures = rng.dirichlet(np.full(k, alpha_0 / k), n)
    return sparse.csr_array(rng.multinomial(rng.integers(2, 9, n), mixtures @ topics).astype(float)), topics


def completed(model, counts):
    """Return the perplexity of half of the words, topics mixed as the other half says."""
    seen = counts.copy()
    seen.data = np.random.default_rng(0).binomial(counts.data.astype(int), 0.5).astype(float)
    hidden = (counts - seen).toarray()
    predicted = model.transform(seen) @ model.components_
    return np.exp(-np.sum(hidden * np.log(predicted)) / hidden.sum())


@pytest.mark.parametrize("kind", ["whole", "halves"])
def test_steps_conserve_words(kind):
    counts = small(kind)
    posteriors = started(WordPosteriors, counts)
    for _ in range(3):
        posteriors.step(known_of(posteriors))
        assert_allclose(posteriors.posterior.sum(axis=1), 1, atol=1e-6)
        assert_allclose(posteriors.words().sum(axis=0), counts.sum(axis=0), atol=1e-5)
        assert_allclose(posteriors.in_documents.sum(axis=1), counts.sum(axis=1), atol=1e-5)
        assert np.all(posteriors.posterior >= 0)


@pytest.mark.parametrize("kind", ["whole", "halves"])
def test_a_step_follows_the_formula(kind):
    """Entry by entry, in loops; and the probability of a word given all others, in the sum over topics."""
    counts = small(kind)
    posteriors = started(WordPosteriors, counts)
    known, shares, entry, likelihood = known_of(posteriors), posteriors.posterior.astype(float), 0, 0.0
    expected = np.empty_like(shares)
    for document, row in enumerate(counts):
        in_document = posteriors.in_documents[document].astype(float)
        for word in np.flatnonzero(row):
            own = min(row[word], 1) * shares[entry]
            raw = (in_document - own + known.prior) * (known.words[:, word] - own + known.word_prior)
            raw /= known.words.sum(axis=1) - own + WORDS * known.word_prior
            expected[entry] = raw / raw.sum()
            likelihood += row[word] * np.log(raw.sum() / (max(row.sum() - 1, 0) + known.prior.sum()))
            entry += 1
    assert posteriors.step(known) == pytest.approx(likelihood, rel=1e-5)
    assert_allclose(posteriors.posterior, expected, atol=1e-5)


def test_momentum_changes_the_way_and_not_the_end(monkeypatch):
    """Steps with and without lead to the same topics, those with in fewer steps."""
    raw, topics, prior = mixed_corpus(300, 0, length=60)
    counts, mean = sparse.csr_array(raw, dtype=float), raw.sum(axis=0) / raw.sum()
    start = Start.of((topics + mean) / 2, prior, mean, has_fixed_sum=False)

    def after(n_steps):
        return refined(counts, start, n_steps).counts.topics

    monkeypatch.setattr("codiag.models.topics._steps.TOLERANCE", 0.0)
    end, early = after(150), after(15)
    monkeypatch.setattr(WordPosteriors, "max_momentum", 0.0)
    assert_allclose(after(300), end, atol=1e-3)
    assert matched(early, end) < matched(after(15), end)


def test_numbers_of_other_words_are_not_negative():
    """Where the last change, extrapolated, would take away more words of a topic than there are."""
    posteriors = started(WordPosteriors, 20 * small())
    posteriors.in_documents_before = 3 * posteriors.in_documents
    posteriors.step(known_of(posteriors))
    assert np.all(np.isfinite(posteriors.posterior))
    assert np.all(posteriors.posterior >= 0)
    assert_allclose(posteriors.posterior.sum(axis=1), 1, atol=1e-6)


def test_a_step_of_documents_of_one_topic_follows_the_formula():
    """Topics are the words of documents, by the probability that they are about them, and a tenth of each word more."""
    counts, *_ = single_topic_corpus(300, 0)
    moments, model = (SingleTopic(4, max_iter=n, random_state=0).fit(counts) for n in (0, 1))
    joint = moments.weights_ * np.prod(moments.components_[None] ** counts[:, None], axis=2)
    shares = joint / joint.sum(axis=1, keepdims=True)
    words = shares.T @ counts + 0.1
    order = np.argsort(-shares.sum(axis=0), kind="stable")
    assert_allclose(model.weights_, shares.mean(axis=0)[order], rtol=1e-9)
    assert_allclose(model.components_, (words / words.sum(axis=1, keepdims=True))[order], rtol=1e-9)


def test_mixtures_of_short_documents_are_nearly_the_exact_ones():
    """Against the mean of the posterior, summed over all topics of four words."""
    rng = np.random.default_rng(3)
    topics, prior = rng.dirichlet(np.full(6, 0.5), 3), np.array([0.6, 0.3, 0.4])
    words = np.array([0, 2, 2, 4])
    total, expected = 0.0, np.zeros(3)
    for chosen in product(range(3), repeat=4):
        numbers = prior + np.bincount(chosen, minlength=3)
        weight = np.prod(topics[list(chosen), words]) * np.exp(np.sum(gammaln(numbers)))
        total, expected = total + weight, expected + weight * numbers / numbers.sum()
    counts = sparse.csr_array(np.bincount(words, minlength=6)[None].astype(float))
    assert_allclose(topic_mixtures(counts, topics, prior, 50)[0], expected / total, atol=0.06)
    assert_allclose(topic_mixtures(0 * counts, topics, prior, 5)[0], prior / prior.sum())


class TestPriors:
    def test_known_numbers_have_their_most_likely_prior(self):
        """Where the derivative of the likelihood of Dirichlet-multinomial counts is zero."""
        rng = np.random.default_rng(0)
        truth = np.array([0.8, 0.3, 0.1])
        lengths = rng.integers(2, 25, 4000)
        counts = rng.multinomial(lengths, rng.dirichlet(truth, 4000)).T.astype(float)
        absent = np.where(counts > 0, -np.inf, 0.0)
        known = PriorSums(expected_histogram(absent, counts), histogram(lengths[None].astype(float)), absent)
        prior = np.full(3, 1.0)
        for _ in range(40):
            prior = estimated_prior(known, prior)
        inside = np.sum(psi(counts + prior[:, None]) - psi(prior)[:, None], axis=1)
        assert_allclose(inside, np.sum(psi(lengths + prior.sum()) - psi(prior.sum())), rtol=1e-6)
        assert_allclose(prior, truth, rtol=0.15)

    def test_the_prior_of_words(self):
        rng = np.random.default_rng(0)
        words = rng.multinomial(3000, rng.dirichlet(np.full(400, 0.05), 6)).astype(float)
        found = 0.5
        for _ in range(40):
            found = estimated_word_prior(np.where(words > 0, -np.inf, 0.0), words, found)
        assert found == pytest.approx(0.05, rel=0.2)

    @pytest.mark.parametrize("alpha_0", [0.1, 0.5, 2.0])
    def test_how_mixed_documents_are_is_found(self, alpha_0):
        """Within a factor of two and a half: shares of words are taken for independent, which they are not."""
        counts, _ = short_texts(4000, 0, alpha_0=alpha_0)
        found = LatentDirichlet(3, random_state=0).fit(counts).doc_topic_prior_
        assert 1 / 2.5 < found.sum() / alpha_0 < 2.5

    def test_a_given_sum_is_kept(self):
        counts, _ = short_texts(1000, 0)
        model = LatentDirichlet(3, alpha_0=2.0, random_state=0).fit(counts)
        assert model.doc_topic_prior_.sum() == pytest.approx(2)
        assert np.ptp(model.doc_topic_prior_) > 0.01


class TestPolish:
    @pytest.mark.filterwarnings("ignore:.*documents have fewer than three words")
    def test_held_out_words_become_more_likely(self):
        counts, _ = short_texts(4000, 0)
        others, _ = short_texts(2000, 1)
        moments, model = (
            LatentDirichlet(3, random_state=0, **options).fit(counts) for options in ({"max_iter": 0}, {})
        )
        assert completed(model, others) < completed(moments, others)
        assert 1 <= model.n_iter_ <= 30
        assert model.topic_word_prior_ > 0

    @pytest.mark.parametrize("kind", [LatentDirichlet, SingleTopic])
    def test_the_order_of_documents_does_not_matter(self, kind):
        counts, _ = short_texts(1500, 0)
        model, other = (
            kind(3, max_iter=5, random_state=0).fit(counts[order])
            for order in (np.arange(1500), np.random.default_rng(0).permutation(1500))
        )
        assert_allclose(other.components_, model.components_, atol=1e-5)
        assert_allclose(other.weights_, model.weights_, atol=1e-5)

    @pytest.mark.parametrize("kind", [LatentDirichlet, SingleTopic])
    def test_documents_that_are_there_twice(self, kind):
        """The same topics but for what one word or document is worth."""
        counts, _ = short_texts(3000, 0)
        double = sparse.csr_array(sparse.vstack([counts, counts]))
        model, twice = (kind(3, max_iter=5, random_state=0).fit(given) for given in (counts, double))
        assert matched(twice.components_, model.components_) < 0.02

    def test_long_documents_show_topics_exactly(self):
        counts, topics, prior = mixed_corpus(400, 0, length=4000)
        model = LatentDirichlet(3, random_state=0).fit(counts)
        assert matched(model.components_, topics) < 0.03
        shares = np.random.default_rng(0).dirichlet(prior, 400)  # the first draws of the corpus
        assert_allclose(model.transform(counts)[:, 0].mean(), shares[:, 0].mean(), atol=0.02)

    def test_shares_that_are_not_kept_are_found_again(self, monkeypatch):
        counts = mixed_corpus(500, 0)[0]
        kept = LatentDirichlet(3, max_iter=4, random_state=0).fit(counts)
        monkeypatch.setattr("codiag.models.topics._steps.MAX_POSTERIOR_BYTES", 50_000)
        found = LatentDirichlet(3, max_iter=4, random_state=0).fit(counts)
        assert_allclose(found.components_, kept.components_, atol=1e-7)
        assert_allclose(found.doc_topic_prior_, kept.doc_topic_prior_, rtol=1e-6)

    @pytest.mark.filterwarnings("ignore:X is not of whole numbers", "ignore:n_components=3 may be more")
    @pytest.mark.parametrize("kind", [LatentDirichlet, SingleTopic])
    def test_fractions_and_huge_numbers(self, kind):
        counts = mixed_corpus(200, 0)[0]
        for scale in (0.3, 1e7):
            model = kind(3, max_iter=3, random_state=0).fit(scale * counts)
            assert np.all(np.isfinite(model.components_))
            assert np.all(np.isfinite(model.transform(scale * counts)))


class TestShortDocuments:
    def test_triples_are_needed(self):
        with pytest.raises(ValueError, match="^X must contain documents of three words"):
            LatentDirichlet(2).fit(np.random.default_rng(0).multinomial(2, np.full(6, 1 / 6), 50))

    def test_short_documents_count_in_full(self):
        """Nothing is said of them where steps follow that use all words; and they change what is found."""
        counts, _ = short_texts(3000, 0)
        pairs = counts[np.asarray(counts.sum(axis=1)).ravel() <= 2]
        assert pairs.shape[0] > 200
        longer = counts[np.asarray(counts.sum(axis=1)).ravel() > 2]
        all_of_them, fewer = (LatentDirichlet(3, random_state=0).fit(given) for given in (counts, longer))
        assert not np.allclose(all_of_them.components_, fewer.components_, atol=1e-4)
