"""Topics by moments."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from assertions import assert_same_to_rounding
from codiag.models import LatentDirichlet, SingleTopic
from codiag.models.topics import WordStatistics, as_counts, at_entries
from simulated import matched, mixed_corpus, single_topic_corpus


def test_words_are_unbiased_for_any_length():
    """Raw counts are not: the mean over many documents is the moment of three independent words."""
    rng = np.random.default_rng(0)
    word = rng.dirichlet(np.ones(4))
    counts = np.stack([rng.multinomial(length, word) for length in rng.integers(3, 9, 200_000)])
    mean, second, square, third = WordStatistics.of(as_counts(counts), np.eye(4)).finish()
    assert_allclose(mean, word, atol=3e-3)
    assert_allclose(second, np.outer(word, word), atol=3e-3)
    assert_allclose(square, np.outer(word, word), atol=3e-3)
    assert_allclose(third, np.einsum("i,j,k->ijk", word, word, word), atol=3e-3)


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
        polished = SingleTopic(4, max_iter=5, random_state=0).fit(counts)
        assert matched(polished.components_, topics) < matched(model.components_, topics)

    def test_mixed_topics(self):
        counts, topics, prior = mixed_corpus(20_000, 0)
        model = LatentDirichlet(3, alpha_0=1.0, max_iter=0, random_state=0).fit(counts)
        assert matched(model.components_, topics) < 0.05
        assert_allclose(model.doc_topic_prior_, prior, atol=0.03)

    def test_the_wrong_mixing_is_biased(self):
        """Documents taken for pure where they are mixed: no amount of data mends that."""
        counts, topics, _ = mixed_corpus(20_000, 0)
        assert matched(SingleTopic(3, random_state=0).fit(counts).components_, topics) > 0.1

    def test_chunks_add_up(self):
        counts, topics, _ = mixed_corpus(9000, 0)
        chunked = LatentDirichlet(3, max_iter=0, random_state=0)
        for start in range(0, 9000, 3000):
            chunked.partial_fit(counts[start : start + 3000])
        at_once = LatentDirichlet(3, max_iter=0, random_state=0).fit(counts)
        assert_allclose(chunked.components_, at_once.components_, atol=2e-3)
        assert matched(chunked.components_, topics) < 0.06

    def test_top_words_and_names(self):
        counts, *_ = single_topic_corpus(3000, 0)
        model = SingleTopic(4, random_state=0).fit(counts)
        vocabulary = [f"word{i}" for i in range(20)]
        words = model.top_words(vocabulary, n=3)
        assert [len(row) for row in words] == [3] * 4
        assert words[0][0] == vocabulary[model.components_[0].argmax()]
        assert list(model.get_feature_names_out()) == [f"singletopic{i}" for i in range(4)]
        with pytest.raises(ValueError, match="^vocabulary must"):
            model.top_words(["a"])
        with pytest.raises(ValueError, match="^vocabulary must"):
            model.top_words()

    def test_top_words_are_the_columns_of_a_data_frame(self):
        frame = pytest.importorskip("pandas").DataFrame(single_topic_corpus(3000, 0)[0]).add_prefix("word")
        model = SingleTopic(4, random_state=0).fit(frame)
        assert model.top_words(n=3) == model.top_words(list(frame.columns), n=3)

    def test_scikit_learn_goes_on_from_it(self):
        counts, *_ = mixed_corpus(3000, 0)
        model = LatentDirichlet(3, random_state=0).fit(counts)
        theirs = model.to_sklearn()
        assert_allclose(theirs.transform(counts[:50]), model.transform(counts[:50]), atol=0.15)

    def test_pickle(self):
        model = LatentDirichlet(3, random_state=0).fit(mixed_corpus(1000, 0)[0])
        again = pickle.loads(pickle.dumps(model))
        assert_same_to_rounding(again.components_, model.components_)

    def test_predictions_at_entries_alone(self, monkeypatch):
        parts = "codiag.models.base._components.blocks"
        monkeypatch.setattr(parts, lambda n, _: (slice(start, start + 4) for start in range(0, n, 4)))
        rng = np.random.default_rng(0)
        left, right = rng.random((6, 3)), rng.random((3, 8))
        counts = sparse.random(6, 8, density=0.4, random_state=0, format="csr")
        counts = sparse.csr_array(counts)
        rows, columns = counts.nonzero()
        assert_allclose(at_entries(left, right, counts), (left @ right)[rows, columns])

    @pytest.mark.filterwarnings("ignore:.*may be more than the data shows")
    def test_the_true_number_predicts_held_out_words_best(self):
        rng = np.random.default_rng(0)
        topics = rng.dirichlet(np.full(100, 0.1), 6)
        for _ in range(3):
            counts = rng.multinomial(60, rng.dirichlet(np.full(6, 0.2), 1500) @ topics)
            models = {k: LatentDirichlet(k, random_state=0).fit(counts[:1000]) for k in (2, 6, 12)}
            scores = {k: model.held_out_perplexity(counts[1000:]) for k, model in models.items()}
            assert min(scores, key=scores.get) == 6
            assert scores[6] > models[6].perplexity(counts[1000:])  # there the words show the mixtures themselves

    def test_half_words_cannot_be_divided(self):
        counts, *_ = single_topic_corpus(2000, 0)
        with pytest.raises(ValueError, match="^X must be whole numbers"):
            SingleTopic(4, random_state=0).fit(counts).held_out_perplexity(counts / 2)

    def test_short_documents_are_counted(self):
        counts, *_ = single_topic_corpus(2000, 0)
        counts[:7] = 0
        counts[:7, 0] = 1
        with pytest.warns(UserWarning, match="7 of 2000"):
            SingleTopic(4, random_state=0).fit(counts)

    @pytest.mark.parametrize(
        ("counts", "k", "words"),
        [
            (-np.ones((9, 5)), 2, "Negative values in data"),
            (np.full((9, 5), np.nan), 2, "NaN"),
            (np.ones((9, 5)), 6, "^n_components must"),
            (np.eye(5), 2, "documents of two"),
            (np.tile([3, 2, 1, 0, 0], (50, 1)), 4, "more than the"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:.*documents have fewer than three words")
    def test_mistakes(self, counts, k, words):
        with pytest.raises(ValueError, match=words):
            SingleTopic(k).fit(counts)

    def test_other_words_than_in_fit(self):
        model = SingleTopic(4, random_state=0).fit(single_topic_corpus(1000, 0)[0])
        with pytest.raises(ValueError, match="5 features, but"):
            model.transform(np.ones((2, 5)))

    def test_fractional_counts_warn(self):
        counts, *_ = single_topic_corpus(2000, 0)
        with pytest.warns(UserWarning, match="not for shares"):
            SingleTopic(4, random_state=0).fit(1.5 * counts)

    def test_diagnostics(self):
        found = LatentDirichlet(3, random_state=0).fit(mixed_corpus(5000, 0)[0]).diagnostics_
        assert 5 < found["second_moment_gap"] < np.inf
        assert found["second_moment"][2] > 5 * found["sampling_noise"]
        assert 0 <= found["clipped_mass"] < 0.2
        assert found["core_errors"].shape == (3,)

    def test_more_topics_than_there_are(self):
        with pytest.warns(UserWarning, match="n_components=5 may be"):
            model = LatentDirichlet(5, max_iter=0, random_state=0).fit(mixed_corpus(5000, 0)[0])
        assert model.diagnostics_["second_moment_gap"] < 3

    def test_likelihood_of_single_topics(self):
        """Against the sum over topics, and higher after steps; these have a prior, and need not raise it further."""
        counts, *_ = single_topic_corpus(3000, 0)
        models = [SingleTopic(4, max_iter=max_iter, random_state=0).fit(counts) for max_iter in (0, 1, 3)]
        scores = [model.score(counts) for model in models]
        assert scores[0] < min(scores[1:])
        by_hand = [np.log(models[0].weights_ @ np.prod(models[0].components_ ** row, axis=1)) for row in counts[:50]]
        assert models[0].score(counts[:50]) == pytest.approx(np.sum(by_hand), rel=1e-8)

    def test_a_failed_chunk_is_not_counted(self):
        counts, *_ = mixed_corpus(3000, 0)
        model = LatentDirichlet(3, max_iter=0, random_state=0).partial_fit(counts)
        before = model._seen.sums.n_documents[0]
        with pytest.raises(ValueError, match="expecting 20 features"):
            model.partial_fit(np.full((4, 5), 3))
        with pytest.raises(ValueError, match="^n_components must"):
            model.set_params(n_components=12).partial_fit(counts)
        assert model._seen.sums.n_documents[0] == before == 3000


def separated(n, seed=0, k=2):
    """Documents of topics without common words, in turns."""
    rng = np.random.default_rng(seed)
    return np.stack([np.roll(np.pad(rng.multinomial(20, [1 / 3] * 3), (0, 3 * k - 3)), 3 * (i % k)) for i in range(n)])


class TestSamplingNoise:
    """Warnings are errors in these tests: what is shown is not to be doubted."""

    @pytest.mark.parametrize("n", [20, 100, 1000])
    @pytest.mark.parametrize("kind", [SingleTopic, LatentDirichlet])
    @pytest.mark.parametrize("k", [2, 3])
    def test_separated_topics_are_shown(self, kind, n, k):
        model = kind(k, random_state=0).fit(separated(n, k=k))
        assert_allclose(np.sort(model.components_.reshape(k, k, 3).sum(axis=2), axis=1)[:, -1], 1, atol=0.01)
        assert model.diagnostics_["second_moment"][k - 1] > 2 * model.diagnostics_["sampling_noise"]

    def test_the_order_of_documents_does_not_matter(self):
        """Every second document about one topic, or the first half: the same data, and as well shown."""
        counts = separated(200)
        orders = (np.arange(200), np.argsort(np.arange(200) % 2), np.random.default_rng(0).permutation(200))
        models = [SingleTopic(2, random_state=0).fit(counts[order]) for order in orders]
        assert max(model.diagnostics_["sampling_noise"] for model in models) < 0.2

    def test_the_noise_is_that_of_the_moment(self):
        """With no second topic the second eigenvalue is sampling alone: the noise that is told beside it."""
        rng = np.random.default_rng(0)
        topic = rng.dirichlet(np.ones(30))
        ratios = []
        for _ in range(10):
            counts = rng.multinomial(20, topic, 300)
            with pytest.warns(UserWarning, match="n_components=2 may be"):
                found = SingleTopic(2, random_state=0).fit(counts).diagnostics_
            ratios.append(found["second_moment"][1] / found["sampling_noise"])
        assert 0.8 < np.mean(ratios) < 1.25

    def test_chunks_tell_their_noise(self):
        counts, *_ = mixed_corpus(4000, 0)
        noises = []
        for n_chunks in (1, 4):
            model = LatentDirichlet(3, max_iter=0, random_state=0).partial_fit(counts[:1000])
            for part in np.array_split(counts[1000:], n_chunks):
                model.partial_fit(part)
            noises.append(model.diagnostics_["sampling_noise"])
        assert_allclose(noises[1], noises[0])
        whole = LatentDirichlet(3, max_iter=0, random_state=0).fit(counts).diagnostics_["sampling_noise"]
        assert 0.6 < noises[0] / whole < 1.6

    def test_chunks_too_small_to_determine_topics_are_kept(self):
        """They are not raised away, whatever is missing: words in a document, documents, or topics."""
        counts = separated(100)
        model = LatentDirichlet(2, random_state=0)
        for chunk, words in ((np.eye(6), "two words or more"), (counts[:1], "is more than the data determines")):
            with pytest.warns(UserWarning, match=f"the model is not fitted yet: .*{words}.* partial_fit adds more"):
                model.partial_fit(chunk)
            with pytest.raises(NotFittedError):
                model.transform(counts)
        with pytest.warns(UserWarning, match="6 of 106"):
            model.partial_fit(counts[1:])
        with pytest.warns(UserWarning, match="6 of 106 documents"):
            whole = LatentDirichlet(2, max_iter=0, random_state=0).fit(np.concatenate([np.eye(6), counts]))
        assert_allclose(model.components_, whole.components_, atol=1e-10)

    @pytest.mark.filterwarnings("ignore:.*(fewer than three words|may be more than the data shows)")
    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_diagnostics_are_numbers(self, k):
        counts = np.concatenate([separated(30, k=3), np.zeros((5, 9), dtype=int), np.eye(9, dtype=int)])
        for model in (
            SingleTopic(k, random_state=0).fit(counts),
            LatentDirichlet(k, random_state=0).fit(counts),
            LatentDirichlet(k, random_state=0).partial_fit(counts).partial_fit(counts[:7]),
        ):
            numbers = [value for value in model.diagnostics_.values() if value is not None]
            assert all(np.all(np.isfinite(number)) for number in numbers)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"alpha_0": "a"}, TypeError, "^alpha_0 must"),
        ({"n_components": 2.5}, TypeError, "^n_components must"),
        ({"random_state": "abc"}, TypeError, "^random_state must"),
    ],
)
def test_invalid_options_are_refused(options, error, words):
    for fit in (LatentDirichlet(**options).fit, LatentDirichlet(**options).partial_fit):
        with pytest.raises(error, match=words):
            fit(separated(20))


@pytest.mark.parametrize("scale", [1e40, 1e120])
def test_documents_whose_words_cannot_be_counted_are_refused(scale):
    with pytest.raises(ValueError, match="^X must"):
        SingleTopic(2).fit(scale * separated(20))


@pytest.mark.parametrize("step", ["fit", "partial_fit"])
def test_counts_are_checked_once(step, monkeypatch):
    checked = []

    def counted(*given):
        checked.append(given)
        return as_counts(*given)

    for module in ("_word_moments", "_model"):
        monkeypatch.setattr(f"codiag.models.topics.{module}.as_counts", counted)
    getattr(LatentDirichlet(3, random_state=0), step)(mixed_corpus(300, 0)[0])
    assert len(checked) == 1


class TestCopies:
    """All sums over documents, and all steps after them, read one matrix of counts."""

    @pytest.fixture
    def made(self, monkeypatch):
        """Return a list to which sparse matrices are added as they are made."""
        made, init = [], sparse.csr_array.__init__

        def watched(self, *arguments, **options):
            init(self, *arguments, **options)
            made.append((self.nnz, self.indices))

        monkeypatch.setattr(sparse.csr_array, "__init__", watched)
        return made

    def copies(self, made, counts):
        """Return the number of matrices of a third of the entries or more that have indices of their own.

        Those of a matrix that adds up entries in their order are 0, 1, ..., and no copy.
        """
        own = {}
        for n_entries, indices in made:
            in_order = np.array_equal(indices, np.arange(indices.size))
            if 3 * n_entries > counts.nnz and not in_order and not np.shares_memory(indices, counts.indices):
                own[indices.__array_interface__["data"][0]] = indices
        return len(own)

    @pytest.mark.parametrize("kind", [SingleTopic, LatentDirichlet])
    def test_counts_are_never_copied(self, made, kind):
        counts = sparse.csr_array(mixed_corpus(600, 0)[0], dtype=np.float64)
        made.clear()
        kind(3, max_iter=2, random_state=0).fit(counts)
        assert made
        assert self.copies(made, counts) == 0

    def test_other_forms_are_converted_once(self, made):
        counts = mixed_corpus(600, 0)[0]
        LatentDirichlet(3, max_iter=2, random_state=0).fit(counts)
        assert self.copies(made, sparse.csr_array(counts)) == 1


@pytest.mark.parametrize("size", [2, 50, 700])
def test_chunks_may_come_in_any_order(size):
    """Of chunks too small to show the topics, or sorted by topic, none fixes what the topics are searched in."""
    counts, topics, _ = mixed_corpus(2100, 0)
    counts = counts[np.argsort(np.argmax(counts @ np.log(topics + 1e-3).T, axis=1))]
    model = LatentDirichlet(3, max_iter=0, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for chunk in [counts[:size], *(counts[start : start + 700] for start in range(size, 2100, 700))]:
            model.partial_fit(chunk)
    whole = LatentDirichlet(3, max_iter=0, random_state=0).fit(counts)
    assert matched(model.components_, topics) < matched(whole.components_, topics) + 0.005
