"""Topics from word counts, by moments: one topic a document, or a mixture of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, NoReturn

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from codiag._checks import UndeterminedError
from codiag.models.frame import as_seed
from codiag.models.topics._bias import MOST_DOCUMENTS, N_CORPORA, Estimated, lengths_of, simulated_counts, with_bias
from codiag.models.topics._likelihood import log_likelihood, topic_log_likelihood, topic_posteriors
from codiag.models.topics._moment_model import MomentTopics
from codiag.models.topics._moments import TopicMoments, Topics
from codiag.models.topics._shares import SharedWords, topic_mixtures
from codiag.models.topics._variational import Shared, SharedDocuments
from codiag.result import solve


class LatentDirichlet(MomentTopics):
    r"""Latent Dirichlet allocation by the method of moments: no random starts, no local optima.

    With :math:`\alpha_0` the sum of the Dirichlet parameters, the moments

    .. math:: M_2 = (\alpha_0 + 1) E_2 - \alpha_0 E_1 E_1^\top, \quad
        M_3 = \tfrac12 (\alpha_0 + 1) (\alpha_0 + 2) E_3 - \tfrac12 \alpha_0 (\alpha_0 + 1) (E_2 \otimes E_1 + \dots)
        + \alpha_0^2 E_1^{\otimes 3}

    of the unbiased word moments are :math:`\sum_i \frac{\alpha_i}{\alpha_0} \mu_i^{\otimes 2}` and
    :math:`\sum_i \frac{\alpha_i}{\alpha_0} \mu_i^{\otimes 3}`: the topics are the factors. Nothing of size words x
    words is ever formed.

    What follows are collapsed variational steps from these topics (CVB0; Asuncion et al., 2009), in which topics and
    mixtures are integrated out and a word never counts for itself, with the parameters of both Dirichlet distributions
    estimated on the way (Minka's fixed point). Expectation maximization, which has no such prior, overfits short
    documents.

    *Needs* counts of words, documents of two words or more, better three, and topics that are linearly independent.
    *Costs* a few dozen products of the counts, which are read where they are and never copied, with as many columns as
    topics; then work on a core of k x k x k; four bytes and a few nanoseconds for each entry and topic in every step of
    `polish`, up to 1 GiB: of larger corpora, and of parts, a step does those before it again. *Guarantees* errors that
    fall like one over the root of the number of documents where the model holds, `alpha_0` is right and `polish` is
    zero; the same answer from every seed and in any order of documents. *Fails* where documents are more or less mixed
    than `alpha_0` says and `polish` is zero, with a bias that more data does not remove, and where sampling noise hides
    topics, which a warning says. Steps have a bias of their own where topics share most of their words and documents
    are short.

    Parameters
    ----------
    n_components : int, optional
        Number of topics. None for as many as the second moment shows: one for each eigenvalue that is twice as large as
        sampling noise, or larger. Moments are then formed once for each number that is tried.
    alpha_0 : float, optional
        Sum of the Dirichlet parameters: how mixed documents are. Zero means one topic each. None to estimate it by the
        steps of `polish`: moments begin with 1, which is also what they alone take it for.
    method : Method or str, optional
        How the moment is factorized; by default `codiag.methods.Auto`.
    polish : int
        Most collapsed variational steps afterwards; they end before once the mean log-probability of a word, given all
        other words, changes by less than 0.001 twice in a row, or 0.002 in documents of 18 words and more, where steps
        have momentum. They lower the perplexity of real text. Zero is the pure method of moments, which is consistent.
    n_blocks : int
        Blocks of documents that are left out in turn for standard errors (jackknife), at least 2, better 20; zero for
        none. The model is estimated as many times more, steps of `polish` included.
    random_state : int, optional
        Seed; the answer does not depend on it where the data determines it.

    Attributes
    ----------
    components_ : array of shape (n_components, words)
        The topics, rows of sum one, the most frequent first.
    weights_ : array of shape (n_components,)
        Expected share of each topic.
    doc_topic_prior_ : array of shape (n_components,)
        The Dirichlet parameters of the mixtures, of sum `alpha_0` where that is given, but for a floor that keeps every
        topic possible; after steps of `polish` not in proportion to `weights_`.
    topic_word_prior_ : float
        The Dirichlet parameter of the topics that steps have estimated; zero without.
    n_iter_ : int
        How many steps there were.
    diagnostics_ : Diagnostics
        Eigenvalues of the second moment and the sampling noise beside them, relative error of the fit, mass clipped
        away.
    components_standard_errors_, weights_standard_errors_, doc_topic_prior_standard_errors_
        Of the same shapes, where `n_blocks` asks for them; and a number, ``topic_word_prior_standard_errors_``. NaN for
        entries held at 0 or 1 with and without each block. After steps of `polish`, which have a bias, they are root
        mean square errors: beside the variance they hold the square of that bias, as five simulated corpora and the
        distance from moments alone show it, and are larger than estimates vary. `doc_topic_prior_` has no known error
        then (NaN), unless `alpha_0` is given: it is up to twice too large, which corpora that are simulated from it do
        not show. All are NaN where corpora like this one do not show its topics. Of documents of few words, intervals
        hold the truth less often than they say.
    n_components_ : int
        Number of topics.
    n_features_in_ : int
        Number of words.

    See Also
    --------
    SingleTopic : Documents with one topic each.
    codiag.datasets.load_kos : A corpus.
    codiag.reports.topics_report : A page about topics.

    Notes
    -----
    `fit` takes documents in parts, too, and never holds all of them: a dask array with sparse or dense chunks of rows,
    a dask bag or a list of delayed parts, a list of matrices, or a function that returns an iterator over them. They
    are read once for the frequencies of words, about ten times for the range of the second moment, once for sums in
    that range, and once for every step of `polish`; sums are formed where the parts are, and added in a tree. The
    topics are those of one matrix, to about 1e-10 by moments and 1e-7 after steps, which are in single precision. What
    belongs to words is not kept from one step to the next, but found again, so that ten steps take the time of 55.

    An iterator can be read once, so that `polish` must be zero. As with `partial_fit`, documents are then kept until
    they show as many directions of the second moment as there are topics, four times above sampling noise, and fix the
    basis that sums are formed in from then on: the angle to the true range has a sine of at most 1/4, and the topics
    are nearly as precise as from all documents at once. Up to 128 MiB of them are kept; a warning says where these do
    not show the topics. Parts may be empty, or sorted. Where `n_blocks` is set, the documents of every part are dealt
    to all blocks, and sums take that many times the memory; `fit` keeps their total alone, `partial_fit` all of them.

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

    The same documents in parts, and how well they determine the shares of the topics:

    >>> parts = np.array_split(counts, 10)
    >>> bool(np.allclose(LatentDirichlet(2, random_state=0).fit(parts).components_, model.components_))
    True
    >>> moments = LatentDirichlet(2, polish=0, n_blocks=10, random_state=0).fit(parts)
    >>> bool(np.all(moments.weights_standard_errors_ < 0.05))
    True
    """

    shared_out: ClassVar[type[Shared]] = SharedWords

    def __init__(
        self,
        n_components: int | None = 10,
        *,
        alpha_0: float | None = None,
        method: Any = None,
        polish: int = 30,
        n_blocks: int = 0,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, method=method, polish=polish, random_state=random_state)
        self.alpha_0 = alpha_0
        self.n_blocks = n_blocks

    def _standard_errors(self, found: Topics, moments: TopicMoments) -> dict[str, Any]:
        """Return standard errors by leaving out blocks; after steps, with the bias of these."""
        errors = super()._standard_errors(found, moments)
        documents = moments.counts if moments.counts is not None else moments.parts
        if not errors or not found.n_iter or documents is None or found.weights.size == 1:
            return errors
        numbers, seed = lengths_of(documents), as_seed(self.random_state)
        rng = np.random.default_rng(np.random.SeedSequence(seed or 0, spawn_key=(19,)))
        simulated: list[Estimated] = []
        for _ in range(N_CORPORA):
            counts = simulated_counts(found, numbers, rng)
            try:
                others = replace(self._of_counts(counts, steps=True), counts=counts, n_steps=found.n_iter)
            except UndeterminedError:  # documents like these do not show the topics that were found
                simulated = []
                break
            start = self._by_moments(others)
            simulated.append(Estimated(start, self.polished(start, others)))
        if self.alpha_0 is None:  # how mixed documents are has a bias that simulated ones do not show
            errors["doc_topic_prior"] = np.full(found.weights.size, np.nan)
        share = min(1.0, MOST_DOCUMENTS / numbers.sum())
        return with_bias(errors, Estimated(self._by_moments(moments), found), simulated, share)

    def _by_moments(self, moments: TopicMoments) -> Topics:
        """Return topics before any steps."""
        problem = moments.problem
        fit = None if problem is None else solve(problem, self.strategy(), as_seed(self.random_state))
        return self.parameters(fit, moments)

    def _shares(self, counts: sparse.csr_array) -> np.ndarray:
        return topic_mixtures(counts, self.components_, self.doc_topic_prior_, n_steps=20)

    def _log_likelihood(self, counts: sparse.csr_array) -> float:
        return log_likelihood(counts, self._shares(counts), self.components_)

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
        >>> model = LatentDirichlet(2, polish=0, random_state=0).fit(counts)
        >>> model.to_sklearn().transform(counts[:3]).shape
        (3, 2)
        """
        from sklearn.decomposition import LatentDirichletAllocation

        check_is_fitted(self)
        prior = float(np.mean(self.doc_topic_prior_))
        model = LatentDirichletAllocation(self.n_components_, doc_topic_prior=min(prior, 1.0), random_state=0)
        model.fit(np.ones((1, self.n_features_in_)))
        model.doc_topic_prior_ = prior  # which fit refuses above one, and the rest of the model does not
        scale = 1e4  # pseudo-counts: high enough for the expectation to be the topics
        model.components_ = scale * self.components_ + 1e-3
        mean = model.components_ / model.components_.sum(axis=1, keepdims=True)
        model.exp_dirichlet_component_ = mean
        return model


class SingleTopic(MomentTopics):
    r"""The single topic model by moments: every document is about one topic.

    Then :math:`E_3 = \sum_i w_i \mu_i^{\otimes 3}`, and topics are the factors. `transform` gives the probability of
    each topic for each document. Attributes are those of `LatentDirichlet` with `alpha_0` zero, and documents may come
    in parts as there.

    *Needs*, *costs* and *guarantees* as `LatentDirichlet`. *Fails* where documents mix topics: they are then taken for
    topics of their own, with a bias that more data does not remove.

    Parameters
    ----------
    n_components : int, optional
        Number of topics. None for as many as the second moment shows: one for each eigenvalue that is twice as large as
        sampling noise, or larger. Moments are then formed once for each number that is tried.
    method : Method or str, optional
        How the moment is factorized; by default `codiag.methods.Auto`.
    polish : int
        Most collapsed variational steps afterwards, in which a document never counts for itself, and the Dirichlet
        parameter of topics is estimated; they end as those of `LatentDirichlet`. Zero is the pure method of moments.
    n_blocks : int
        Blocks of documents that are left out in turn for standard errors (jackknife), at least 2, better 20; zero for
        none. The model is estimated as many times more, steps of `polish` included.
    random_state : int, optional
        Seed; the answer does not depend on it where the data determines it.

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
    shared_out: ClassVar[type[Shared]] = SharedDocuments

    def __init__(
        self,
        n_components: int | None = 10,
        *,
        method: Any = None,
        polish: int = 0,
        n_blocks: int = 0,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, method=method, polish=polish, random_state=random_state)
        self.n_blocks = n_blocks

    def predict(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the most probable topic of each document of X, of shape (documents, words).

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

    def to_sklearn(self) -> NoReturn:
        """Refuse: scikit-learn has no model of one topic a document.

        See Also
        --------
        LatentDirichlet.to_sklearn : The model that scikit-learn has.

        Examples
        --------
        >>> from codiag.models import SingleTopic
        >>> SingleTopic().to_sklearn()  # refused
        Traceback (most recent call last):
            ...
        NotImplementedError: scikit-learn has no model of one topic a document; use LatentDirichlet
        """
        raise NotImplementedError("scikit-learn has no model of one topic a document; use LatentDirichlet")

    def _shares(self, counts: sparse.csr_array) -> np.ndarray:
        return topic_posteriors(counts, self.components_, self.weights_)

    def _log_likelihood(self, counts: sparse.csr_array) -> float:
        return topic_log_likelihood(counts, self.components_, self.weights_)
