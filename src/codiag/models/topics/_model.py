"""Topics from word counts, by moments: documents that mix topics, or are about a single one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self, cast

import numpy as np
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from codiag._arrays import is_dask
from codiag._checks import as_generator, as_number
from codiag.methods import Method
from codiag.models.base import (
    CORE_METHOD,
    MomentModel,
    PartialFit,
    as_seed,
    dirichlet_sum,
    hidden_component,
    optional,
    positive_integer,
    products_at,
    sum_over_rows,
)
from codiag.models.topics._moments import DocumentSums, TopicMoments, Topics, WordStatistics
from codiag.models.topics._posteriors import topic_log_joint, topic_mixtures, topic_posteriors
from codiag.models.topics._steps import WORD_PRIOR, Start, refined, single_topic_sums
from codiag.models.topics._word_moments import INPUT, as_counts, range_of_pairs
from codiag.result import Factorization

CLEAR = 4
"""Ratio of the weakest of k eigenvalues to sampling noise from which on `partial_fit` fixes a basis. The sine of the
angle between the basis and the true range is at most 1 / CLEAR."""


class SeenDocuments(NamedTuple):
    """Sums over the documents of `partial_fit`, and their sampling noise times the root of their number."""

    sums: WordStatistics
    unit_noise: float


class TopicModel(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PartialFit, MomentModel[TopicMoments, Topics]):
    """What both models of topics have in common."""

    default_method: ClassVar[Method] = CORE_METHOD
    parameter_rules = MomentModel.parameter_rules | {"n_components": optional(positive_integer)}
    unbounded: ClassVar[frozenset[str]] = frozenset({"doc_topic_prior_", "topic_word_prior_"})
    alpha_0: float | None

    def moments_function(self, data: Any) -> Callable[[int], TopicMoments]:
        """Return a function from a number of topics to the moments of counts (documents, words)."""
        self._seen = None
        documents = data if is_dask(data) else self._as_counts(data, first=True)
        source = self._document_sums(documents)
        self.n_features_in_ = source.totals.shares.size
        return lambda k: replace(self._of_documents(source, k, bool(self.max_iter)), documents=documents)

    def _document_sums(self, documents: Any) -> DocumentSums:
        first = 10 if self.n_components is None else 0
        return DocumentSums(documents, self._assumed_alpha_0(), as_seed(self.random_state), first)

    def _of_documents(self, source: DocumentSums, k: int, has_steps: bool = False) -> TopicMoments:
        sums = source.sums(k)
        return self._of_sums(sums, k, source.noise(sums, k), has_steps)

    def _of_sums(self, sums: WordStatistics, k: int, noise: float, has_steps: bool = False) -> TopicMoments:
        """Return the moments for k topics of sums over documents."""
        orthogonal = self._resolved_method().needs_orthogonal
        moments = TopicMoments.of(sums, k, self._assumed_alpha_0(), orthogonal=orthogonal)
        hidden = hidden_component(float(moments.values[k - 1]), noise, k)
        warning_messages = (*sums.warning_messages(has_steps=has_steps), *hidden)
        return replace(moments, noise=noise, warning_messages=warning_messages, hides_component=bool(hidden))

    def _with_chunk(self, seen: sparse.csr_array | SeenDocuments | None, raw: Any) -> sparse.csr_array | SeenDocuments:
        """Return the documents seen so far, or sums over them once they show the topics, with further documents."""
        counts = self._as_counts(raw, first=seen is None)
        if isinstance(seen, SeenDocuments):
            return seen._replace(sums=seen.sums + WordStatistics.of(counts, seen.sums.basis))
        documents = counts if seen is None else sparse.vstack([seen, counts], format="csr")
        k, rng = cast("int", self.n_components), as_seed(self.random_state)
        try:
            source = self._document_sums(documents)
            moments = self._of_documents(source, k)
        except ValueError:  # too few documents; `_estimate_seen` says so
            return documents
        if moments.values[k - 1] < CLEAR * moments.noise:
            return documents
        width = min(3 * k, documents.shape[1])
        basis = range_of_pairs(documents, source.totals, width, self._assumed_alpha_0(), rng)
        return SeenDocuments(WordStatistics.of(documents, basis), moments.noise * math.sqrt(documents.shape[0]))

    def _estimate_seen(self, seen: sparse.csr_array | SeenDocuments) -> tuple[Warning, ...]:
        """Estimate the model from the documents seen so far, or from sums over them."""
        k = cast("int", self.n_components)
        if not isinstance(seen, SeenDocuments):
            return self.estimate(self._of_documents(self._document_sums(seen), k))
        return self.estimate(self._of_sums(seen.sums, k, seen.unit_noise / math.sqrt(seen.sums.n_documents[0])))

    def parameters(self, fit: Factorization | None, moments: TopicMoments) -> Topics:
        """Return topics and their weights."""
        return moments.parameters(fit)

    def _unfitted(self) -> Self:
        """Return a model that takes as many steps as this fitted one."""
        return super()._unfitted().set_params(max_iter=self._components.n_iter)

    def _as_counts(self, raw: Any, *, first: bool) -> sparse.csr_array:
        """Return counts, the one matrix that all moments and steps read."""
        return as_counts(validate_data(self, raw, reset=first, **INPUT), "X")

    def _assumed_alpha_0(self) -> float:
        """Return the sum of the Dirichlet parameters that moments assume."""
        return 1.0 if self.alpha_0 is None else float(self.alpha_0)

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the share of each topic in each document, rows of sum one.

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
            Counts, as in `fit`, in memory.

        Returns
        -------
        array of shape (documents, n_components)
            The shares.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SingleTopic
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
        >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 500)])
        >>> model = SingleTopic(2, random_state=0).fit(counts)
        >>> model.transform(counts[:3]).shape
        (3, 2)
        """
        return self._shares(self._counts(X))

    def score(self, X: Any, y: object = None) -> float:  # noqa: N803
        """Return the log-likelihood of documents, as sequences of words.

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
            Counts, as in `fit`, in memory.
        y : ignored
            Not used; there for the interface of scikit-learn.

        Returns
        -------
        float
            The log-likelihood.

        See Also
        --------
        LatentDirichlet.perplexity : The same per word.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SingleTopic
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
        >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 500)])
        >>> model = SingleTopic(2, random_state=0).fit(counts)
        >>> model.score(counts) < 0
        True
        """
        return self._log_likelihood(self._counts(X))

    def perplexity(self, X: Any) -> float:  # noqa: N803
        """Return the exponential of minus the mean log-likelihood of a word.

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
            Counts, as in `fit`, in memory.

        Returns
        -------
        float
            At least one; lower is better.

        See Also
        --------
        LatentDirichlet.score : The log-likelihood.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SingleTopic
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
        >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 500)])
        >>> model = SingleTopic(2, random_state=0).fit(counts)
        >>> 1 < model.perplexity(counts) < 4
        True
        """
        counts = self._counts(X)
        return float(np.exp(-self._log_likelihood(counts) / max(float(counts.sum()), 1)))

    def held_out_perplexity(self, X: Any, random_state: Any = 0) -> float:  # noqa: N803
        """Return the perplexity of half of the words of each document, given the other half (document completion).

        Of documents that were not fitted, it compares numbers of topics: more topics always describe the documents that
        were fitted better, but not always what they predict.

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
            Counts, whole numbers, of documents that were not fitted.
        random_state : int, optional
            Seed of the halves.

        Returns
        -------
        float
            At least one; lower is better.

        See Also
        --------
        LatentDirichlet.perplexity : Of the words that show the mixtures, too.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import LatentDirichlet
        >>> rng = np.random.default_rng(0)
        >>> topics = rng.dirichlet(np.full(20, 0.1), 3)
        >>> counts = np.array([rng.multinomial(40, mix @ topics) for mix in rng.dirichlet(np.full(3, 0.3), 1500)])
        >>> models = {k: LatentDirichlet(k, random_state=0).fit(counts[:1000]) for k in (1, 3)}
        >>> models[3].held_out_perplexity(counts[1000:]) < models[1].held_out_perplexity(counts[1000:])
        True
        """
        counts = self._counts(X)
        if not np.all(counts.data == np.round(counts.data)):
            raise ValueError("X must be whole numbers of words, which are divided at random; it has fractions")
        seen, rest, rng = counts.copy(), counts.copy(), as_generator(random_state, "random_state")
        seen.data = rng.binomial(counts.data.astype(np.int64), 0.5).astype(counts.data.dtype)
        rest.data = counts.data - seen.data
        return float(np.exp(-log_likelihood(rest, self._shares(seen), self.components_) / max(float(rest.sum()), 1)))

    def top_words(self, vocabulary: Sequence[str] | np.ndarray | None = None, n: int = 10) -> list[list[str]]:
        """Return the most probable words of every topic.

        Parameters
        ----------
        vocabulary : sequence of str, optional
            The word of every column of the counts; by default the columns of the data frame that was fitted.
        n : int
            Number of words of each topic.

        Returns
        -------
        list of lists of str
            Words by topic, the most probable first.

        See Also
        --------
        codiag.reports.topics_report : A page with these words.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SingleTopic
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
        >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 500)])
        >>> model = SingleTopic(2, random_state=0).fit(counts)
        >>> sorted(model.top_words(["bread", "milk", "ball", "goal"], n=2))
        [['bread', 'milk'], ['goal', 'ball']]
        """
        check_is_fitted(self)
        as_number("n", n, integer=True)
        if vocabulary is None:
            vocabulary = getattr(self, "feature_names_in_", None)
        if vocabulary is None:
            raise ValueError(
                f"vocabulary must be the {self.n_features_in_} words, unless the model was fitted to a data frame with "
                "words for columns; got None"
            )
        if isinstance(vocabulary, str) or not hasattr(vocabulary, "__len__"):
            raise TypeError(f"vocabulary must be the {self.n_features_in_} words, a sequence; got {vocabulary!r}")
        if len(vocabulary) != self.n_features_in_:
            raise ValueError(f"vocabulary must have {self.n_features_in_} words, as in fit; got {len(vocabulary)}")
        return [[str(vocabulary[word]) for word in np.argsort(-topic)[:n]] for topic in self.components_]

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        tags.input_tags.sparse = True
        return tags

    def _shares(self, counts: sparse.csr_array) -> np.ndarray:
        """Return the shares (documents, k) of topics in documents."""
        return topic_mixtures(counts, self.components_, self.doc_topic_prior_, n_steps=20)

    def _log_likelihood(self, counts: sparse.csr_array) -> float:
        """Return the log-likelihood of documents."""
        return log_likelihood(counts, self._shares(counts), self.components_)

    def _counts(self, raw: Any) -> sparse.csr_array:
        """Return counts, with the words of `fit`."""
        check_is_fitted(self)
        return as_counts(validate_data(self, raw, reset=False, **INPUT), "X")


class LatentDirichlet(TopicModel):
    r"""Latent Dirichlet allocation by the method of moments, without random starts.

    With :math:`\alpha_0` the sum of the Dirichlet parameters, the moments

    .. math:: M_2 = (\alpha_0 + 1) E_2 - \alpha_0 E_1 E_1^\top, \quad
        M_3 = \tfrac12 (\alpha_0 + 1) (\alpha_0 + 2) E_3 - \tfrac12 \alpha_0 (\alpha_0 + 1) (E_2 \otimes E_1 + \dots)
        + \alpha_0^2 E_1^{\otimes 3}

    of the unbiased word moments are :math:`\sum_i \frac{\alpha_i}{\alpha_0} \mu_i^{\otimes 2}` and
    :math:`\sum_i \frac{\alpha_i}{\alpha_0} \mu_i^{\otimes 3}`: the topics are the factors. Nothing of size words x
    words is formed.

    Collapsed variational steps from these topics follow (CVB0; Asuncion et al., 2009). They integrate over topics and
    mixtures, leave each word out of its own update, and estimate the parameters of both Dirichlet distributions
    (Minka's fixed point). Expectation maximization has no such prior, and overfits short documents.

    Parameters
    ----------
    n_components : int, optional
        Number of topics. None for the number of eigenvalues of the second moment that are at least twice as large as
        sampling noise.
    alpha_0 : float, optional
        Sum of the Dirichlet parameters of the mixtures: large if documents mix many topics, zero if each has a single
        one. None to estimate it by the variational steps; moments then assume 1.
    method : Method or str, optional
        Method that factorizes the moment; by default `codiag.methods.Auto`.
    max_iter : int
        Largest number of collapsed variational steps after the moments. They end when the mean log-probability of a
        word, given all other words, changes by less than 0.001 in two consecutive steps (0.002 in documents of 18 words
        or more, where steps have momentum). They lower the perplexity of real text. Zero is the pure method of moments,
        which is consistent.
    random_state : int, optional
        Seed; the estimate does not depend on it if the data determines the topics.

    Attributes
    ----------
    components_ : array of shape (n_components, words)
        The topics, rows of sum one, the most frequent first.
    weights_ : array of shape (n_components,)
        Expected share of each topic.
    doc_topic_prior_ : array of shape (n_components,)
        The Dirichlet parameters of the mixtures. Their sum is `alpha_0` if that is given, but at least 0.01, so that
        every topic is possible. After variational steps they are not proportional to `weights_`.
    topic_word_prior_ : float
        The Dirichlet parameter of the topics, estimated by the steps; zero without steps.
    n_iter_ : int
        Number of steps.
    diagnostics_ : Diagnostics
        ``second_moment`` (its leading eigenvalues), ``second_moment_gap``, ``sampling_noise`` and ``clipped_mass``; of
        the fit of the third moment ``relative_error``, ``converged`` and ``core_errors``.
    n_components_ : int
        Number of topics.
    n_features_in_ : int
        Number of words.

    See Also
    --------
    SingleTopic : Documents about a single topic each.
    codiag.datasets.load_kos : A corpus.
    codiag.reports.topics_report : A page about topics.

    Notes
    -----
    **Assumptions.** Counts of words, documents of two words or more, of three if there are several topics, and
    linearly independent topics.

    **Complexity.** A few dozen products of the counts, which are not copied, with as many columns as topics; then work
    on a core of k x k x k; for every variational step four bytes and a few nanoseconds per entry and topic, up to 1
    GiB: for larger corpora, and for dask arrays, each step repeats those before it.

    **Guarantees.** Errors proportional to one over the root of the number of documents if the model and `alpha_0` are
    right, and `max_iter` is zero; the same estimate from every seed and for any order of documents.

    **Limitations.** Fails if documents are more or less mixed than `alpha_0` says and `max_iter` is zero, with a bias
    that more data does not remove, and if sampling noise hides topics, which a warning says. Steps have a bias of their
    own if topics have most words in common and documents are short.

    `fit` also takes a dask array with sparse or dense blocks of documents, and keeps none of them. It is read once for
    the frequencies of words, about ten times for the range of the second moment, once for sums in that range, and once
    for every variational step. Sums are formed where the blocks are, and added in a tree. The topics are those of one
    matrix, to about 1e-10 by moments and 1e-7 after steps, which are in single precision. Posteriors of words are not
    kept between steps but computed again, so that ten steps take the time of 55. The sampling noise is estimated from
    the first block.

    `partial_fit` keeps documents until they show as many eigenvalues of the second moment as there are topics, four
    times above sampling noise. They fix the basis of all further sums: its angle to the true range has a sine of at
    most 1/4, and the topics are nearly as precise as from all documents at once.

    Standard errors are those of `jackknife_standard_errors`, of topics by moments (``max_iter=0``). After variational
    steps it refuses: their bias exceeds the sampling error, and intervals of 90 % would contain 48 % of the true
    probabilities of words (2000 documents of 40 words that mix three topics; 90 % by moments).

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import LatentDirichlet
    >>> rng = np.random.default_rng(0)
    >>> topics = rng.dirichlet(np.full(8, 0.3), 2)
    >>> mixtures = rng.dirichlet([0.5, 0.5], 2000)
    >>> counts = np.array([rng.multinomial(30, mixture @ topics) for mixture in mixtures])
    >>> model = LatentDirichlet(2, random_state=0).fit(counts)
    >>> model.components_.shape, model.transform(counts[:3]).shape
    ((2, 8), (3, 2))

    Standard errors of the weights of topics by moments:

    >>> from codiag.models import jackknife_standard_errors
    >>> moments = LatentDirichlet(2, max_iter=0, random_state=0).fit(counts)
    >>> bool(np.all(jackknife_standard_errors(moments, counts, n_groups=10)["weights_"] < 0.05))
    True
    """

    parameter_rules = TopicModel.parameter_rules | {"alpha_0": optional(dirichlet_sum)}

    def __init__(
        self,
        n_components: int | None = 10,
        *,
        alpha_0: float | None = None,
        method: Any = None,
        max_iter: int = 30,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, method=method, max_iter=max_iter, random_state=random_state)
        self.alpha_0 = alpha_0

    def _refine(self, components: Topics, moments: TopicMoments) -> Topics:
        """Return topics after collapsed variational steps, if documents can be read."""
        if not self.max_iter or moments.documents is None:
            return components
        topics, prior = components.components, components.doc_topic_prior
        start = Start.of(topics, prior, moments.mean, has_fixed_sum=self.alpha_0 is not None)
        result = refined(moments.documents, start, self.max_iter)
        return replace(
            components,
            components=result.counts.topics,
            weights=result.weights,
            doc_topic_prior=result.counts.prior,
            topic_word_prior=result.counts.word_prior,
            n_iter=result.n_steps,
        )

    def _estimates(self) -> dict[str, Any]:
        if self.n_iter_:
            raise ValueError(
                "max_iter must be 0 for standard errors of topics, since the bias of variational steps exceeds the "
                f"sampling error; got a model after {self.n_iter_} steps"
            )
        return super()._estimates()

    def to_sklearn(self) -> Any:
        """Return a fitted ``sklearn.decomposition.LatentDirichletAllocation`` with these topics.

        Returns
        -------
        sklearn.decomposition.LatentDirichletAllocation
            The model, fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import LatentDirichlet
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
        >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 500)])
        >>> model = LatentDirichlet(2, max_iter=0, random_state=0).fit(counts)
        >>> model.to_sklearn().transform(counts[:3]).shape
        (3, 2)
        """
        from sklearn.decomposition import LatentDirichletAllocation

        check_is_fitted(self)
        prior = float(np.mean(self.doc_topic_prior_))
        model = LatentDirichletAllocation(self.n_components_, doc_topic_prior=min(prior, 1.0), random_state=0)
        model.fit(np.ones((1, self.n_features_in_)))
        model.doc_topic_prior_ = prior  # fit refuses values above one, other methods accept them
        scale = 1e4  # pseudo-counts, large enough for the expectation to equal the topics
        model.components_ = scale * self.components_ + 1e-3
        mean = model.components_ / model.components_.sum(axis=1, keepdims=True)
        model.exp_dirichlet_component_ = mean
        return model


class SingleTopic(TopicModel):
    r"""The single topic model by moments: every document is about one topic.

    Then :math:`E_3 = \sum_i w_i \mu_i^{\otimes 3}`, and topics are the factors. `transform` returns the probability of
    each topic for each document. Attributes are those of `LatentDirichlet`, of which this is the limit for `alpha_0`
    zero, and documents may be a dask array or come in chunks as there.

    Assumptions, complexity and guarantees are those of `LatentDirichlet`. It fails if documents mix topics: mixtures
    then count as topics, with a bias that more data does not remove.

    Parameters
    ----------
    n_components : int, optional
        Number of topics. None for the number of eigenvalues of the second moment that are at least twice as large as
        sampling noise.
    method : Method or str, optional
        Method that factorizes the moment; by default `codiag.methods.Auto`.
    max_iter : int
        Number of steps of expectation maximization after the moments, with a Dirichlet prior of parameter 1.1 for the
        topics: each has a tenth of an occurrence of every word more than it shows. Zero is the pure method of moments.
    random_state : int, optional
        Seed; the estimate does not depend on it if the data determines the topics.

    See Also
    --------
    LatentDirichlet : Documents that mix topics.
    codiag.datasets.load_kos : A corpus.
    codiag.reports.topics_report : A page about topics.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import SingleTopic
    >>> rng = np.random.default_rng(0)
    >>> topics = rng.dirichlet(np.full(8, 0.3), 2)
    >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 1000)])
    >>> SingleTopic(2, random_state=0).fit(counts).weights_.round(1).tolist()
    [0.5, 0.5]
    """

    alpha_0: float | None = 0.0

    def __init__(
        self, n_components: int | None = 10, *, method: Any = None, max_iter: int = 0, random_state: int | None = None
    ) -> None:
        super().__init__(n_components, method=method, max_iter=max_iter, random_state=random_state)

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the most probable topic of each document.

        Parameters
        ----------
        X : array or sparse matrix of shape (documents, words)
            Counts.

        Returns
        -------
        array of shape (documents,)
            The topics.

        See Also
        --------
        LatentDirichlet.transform : The shares of topics.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SingleTopic
        >>> rng = np.random.default_rng(0)
        >>> topics = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
        >>> counts = np.array([rng.multinomial(10, topics[i]) for i in rng.integers(0, 2, 500)])
        >>> model = SingleTopic(2, random_state=0).fit(counts)
        >>> model.predict(counts).shape
        (500,)
        """
        return np.argmax(self.transform(X), axis=1)

    def _refine(self, components: Topics, moments: TopicMoments) -> Topics:
        if not self.max_iter or moments.documents is None:
            return components
        found = super()._refine(components, moments)
        return replace(found, topic_word_prior=WORD_PRIOR, n_iter=self.max_iter)

    def em_step(self, components: Topics, moments: TopicMoments) -> Topics:
        """Return topics and weights after one step of expectation maximization."""
        sums = sum_over_rows(single_topic_sums, moments.documents, components.components, components.weights)
        words = sums.words + WORD_PRIOR
        topics = words / words.sum(axis=1, keepdims=True)
        return replace(components, components=topics, weights=sums.documents / sums.documents.sum())

    def _shares(self, counts: sparse.csr_array) -> np.ndarray:
        return topic_posteriors(counts, self.components_, self.weights_)

    def _log_likelihood(self, counts: sparse.csr_array) -> float:
        return topic_log_likelihood(counts, self.components_, self.weights_)


def at_entries(left: np.ndarray, right: np.ndarray, counts: sparse.csr_array) -> np.ndarray:
    """Return the entries of ``left @ right`` at the non-zero entries of the counts."""
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    return products_at(left, np.ascontiguousarray(right.T), rows, counts.indices)


def log_likelihood(counts: sparse.csr_array, mixtures: np.ndarray, topics: np.ndarray) -> float:
    """Return the log-likelihood of all words, given mixtures (documents, k) with rows of sum one."""
    return float(np.sum(counts.data * np.log(np.maximum(at_entries(mixtures, topics, counts), 1e-300))))


def topic_log_likelihood(counts: sparse.csr_array, topics: np.ndarray, weights: np.ndarray) -> float:
    """Return the log-likelihood of documents about a single topic each."""
    return float(np.sum(logsumexp(topic_log_joint(counts, topics, weights), axis=1)))
