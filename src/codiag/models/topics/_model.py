"""Topics from word counts, by moments: documents that mix topics, or are about a single one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, NoReturn

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from codiag._checks import UndeterminedError
from codiag.methods import Method
from codiag.models.base import (
    CORE_METHOD,
    Blocks,
    JackknifeModel,
    PartialFit,
    PartsWithout,
    Totals,
    as_seed,
    block_of_rows,
    check_reads,
    hidden_component,
    refuse_iterator,
    refuse_parts,
)
from codiag.models.topics._moments import DocumentSums, TopicMoments, Topics, TopicStream, WordStatistics
from codiag.models.topics._posteriors import DocumentPosteriors, WordPosteriors, topic_posteriors
from codiag.models.topics._scores import TopicScores, topic_log_likelihood
from codiag.models.topics._steps import (
    MAX_SIMULATED_DOCUMENTS,
    N_SIMULATED,
    Estimated,
    Posteriors,
    Start,
    lengths_of,
    polished,
    simulated_counts,
    with_bias,
)
from codiag.models.topics._word_moments import INPUT, Documents, as_counts, as_matrix, check_pairs
from codiag.parts import Parts, as_parts, is_matrix
from codiag.result import Factorization

ALPHA_0 = 1.0
"""Sum of the Dirichlet parameters that moments assume if `alpha_0` is None; steps after them estimate it."""
N_TRIED = 10
"""Number of topics for which the second moment is decomposed first if `n_components` is None; doubled while needed."""


class LatentDirichlet(TopicScores, PartialFit, JackknifeModel[TopicMoments, Topics]):
    r"""Latent Dirichlet allocation by the method of moments: no random starts, no local optima.

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

    *Needs* counts of words, documents of two words or more, better three, and linearly independent topics. *Costs* a
    few dozen products of the counts, which are not copied, with as many columns as topics; then work on a core of k x k
    x k; for every variational step four bytes and a few nanoseconds per entry and topic, up to 1 GiB: for larger
    corpora, and for parts, each step repeats those before it. *Guarantees* errors proportional to one over the root of
    the number of documents if the model and `alpha_0` are right, and `max_iter` is zero; the same estimate from every
    seed and for any order of documents. *Fails* if documents are more or less mixed than `alpha_0` says and `max_iter`
    is zero, with a bias that more data does not remove, and if sampling noise hides topics, which a warning says. Steps
    have a bias of their own if topics have most words in common and documents are short.

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
    n_jackknife : int
        Number of blocks of documents that are left out in turn for standard errors (jackknife), at least 2, better 20;
        zero for no standard errors. The model is estimated as many times more, variational steps included.
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
        Eigenvalues of the second moment and their sampling noise, relative error of the fit, clipped mass.
    components_standard_errors_, weights_standard_errors_, doc_topic_prior_standard_errors_
        Of the same shapes, only if `n_jackknife` is positive; and a number, ``topic_word_prior_standard_errors_``. NaN
        for entries that are 0 or 1 with and without each block. Variational steps have a bias; after them these are
        root mean square errors, which include the squared bias as estimated from five simulated corpora and from the
        difference to moments. The error of `doc_topic_prior_` is then unknown (NaN) unless `alpha_0` is given: it can
        be twice too large, which simulated corpora do not show. All are NaN if simulated corpora do not determine the
        topics. For documents of few words, confidence intervals cover the truth less often than they should.
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
    `fit` also takes documents in parts, and does not keep all of them: a dask array with sparse or dense chunks of
    rows, a dask bag or a list of delayed parts, a list of matrices, or a function that returns an iterator over them.
    They are read once for the frequencies of words, about ten times for the range of the second moment, once for sums
    in that range, and once for every variational step. Sums are formed where the parts are, and added in a tree. The
    topics are those of one matrix, to about 1e-10 by moments and 1e-7 after steps, which are in single precision.
    Posteriors of words are not kept between steps but computed again, so that ten steps take the time of 55.

    An iterator can be read once, so that `max_iter` must be zero. As in `partial_fit`, documents are then kept until
    they show as many eigenvalues of the second moment as there are topics, four times above sampling noise. They fix
    the basis of all further sums: its angle to the true range has a sine of at most 1/4, and the topics are nearly as
    precise as from all documents at once. Up to 128 MiB of documents are kept; a warning says if these do not show the
    topics. Parts may be empty, or sorted. The documents of every part are assigned to all jackknife blocks, and sums
    take `n_jackknife` times the memory; `fit` keeps their total, `partial_fit` all of them.

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

    The same documents in parts, and standard errors of the weights of topics:

    >>> parts = np.array_split(counts, 10)
    >>> bool(np.allclose(LatentDirichlet(2, random_state=0).fit(parts).components_, model.components_))
    True
    >>> moments = LatentDirichlet(2, max_iter=0, n_jackknife=10, random_state=0).fit(parts)
    >>> bool(np.all(moments.weights_standard_errors_ < 0.05))
    True
    """

    default_method: ClassVar[Method] = CORE_METHOD
    optional: ClassVar[frozenset[str]] = frozenset({"n_components", "alpha_0"})
    posteriors: ClassVar[type[Posteriors]] = WordPosteriors
    """Of which steps after the moments compute posterior probabilities: words, or whole documents."""

    alpha_0: float | None

    def __init__(
        self,
        n_components: int | None = 10,
        *,
        alpha_0: float | None = None,
        method: Any = None,
        max_iter: int = 30,
        n_jackknife: int = 0,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, method=method, max_iter=max_iter, random_state=random_state)
        self.alpha_0 = alpha_0
        self.n_jackknife = n_jackknife

    def moments_by_number(self, data: Any) -> Callable[[int], TopicMoments]:
        """Return a function from a number of topics to the moments of counts (documents, words), whole or in parts."""
        parts = as_parts(data, is_matrix)
        if parts is not None and parts.once:
            if self.n_components is None:
                refuse_iterator(data)
            check_reads(parts, self.max_iter)
            return lambda k: self._of_iterator(parts, k)
        sums = self._document_sums(self._as_counts(data, first=True) if parts is None else parts, self.n_jackknife)
        self._check_blocks(sums.totals.n_documents)
        self.n_features_in_ = sums.totals.mean.size
        return lambda k: self._of_sums(sums.blocks(k), k, bool(self.max_iter), sums)

    def _document_sums(self, documents: Documents, n_jackknife: int) -> DocumentSums:
        first = N_TRIED if self.n_components is None else 0
        return DocumentSums(documents, self._assumed_alpha_0(), n_jackknife, as_seed(self.random_state), first)

    def _of_sums(
        self, blocks: Blocks, k: int, has_steps: bool = False, source: DocumentSums | None = None
    ) -> TopicMoments:
        """Return the moments for k topics of sums over documents, with these if they can be read again."""
        sums, alpha_0 = blocks.total(), self._assumed_alpha_0()
        check_pairs(int(sums.n_documents[1]), sums.n_seen)
        moments = TopicMoments.of(sums, k, alpha_0, orthogonal=self.strategy().needs_orthogonal)
        noise = sums.noise(alpha_0, moments.inner) if source is None else source.noise(sums, moments)
        hidden = hidden_component(float(moments.values[k - 1]), noise, k)
        return replace(
            moments,
            noise=noise,
            blocks=blocks,
            seen=TopicStream(blocks=Blocks({0: sums})),
            documents=None if source is None else source.documents,
            complaints=(*sums.complaints(has_steps=has_steps), *hidden),
            hides_component=bool(hidden),
        )

    def _of_iterator(self, parts: Parts, k: int) -> TopicMoments:
        """Return the moments of parts that can be read once; the first ones fix the basis."""
        stream = TopicStream()

        def add(part: Any) -> Totals:
            nonlocal stream
            counts = self._as_counts(as_matrix(part), first=stream.is_empty)
            stream = self._with_counts(stream, counts, k)
            return Totals(counts.shape[0])

        (n_documents,) = parts.reduce(add).values
        self._check_blocks(n_documents)
        moments = self._of_stream(stream, k)
        total = {0: moments.blocks.total()} if moments.blocks is not None else {}
        return replace(moments, seen=TopicStream(blocks=Blocks(total), n_basis=stream.n_basis))

    def _of_stream(self, stream: TopicStream, k: int) -> TopicMoments:
        """Return the moments of documents that were read once."""
        if stream.blocks is None:
            sums = self._document_sums(stream.documents(), self.n_jackknife)
            return replace(self._of_sums(sums.blocks(k), k, source=sums), seen=stream, documents=None)
        moments = self._of_sums(stream.blocks, k)
        return replace(moments, seen=stream, complaints=(*moments.complaints, *stream.complaints(k)))

    def _with_counts(self, stream: TopicStream, counts: sparse.csr_array, k: int) -> TopicStream:
        return stream.with_part(counts, k, self._assumed_alpha_0(), as_seed(self.random_state), self.n_jackknife)

    def _with_chunk(self, seen: TopicStream | None, raw: Any) -> TopicStream:
        """Return the documents seen so far, or sums over them, with further documents added."""
        refuse_parts(raw)
        k = self._given_number()
        counts = self._as_counts(raw, first=seen is None)
        return self._with_counts(TopicStream() if seen is None else seen, counts, k)

    def _estimate_seen(self, seen: TopicStream) -> tuple[Warning, ...]:
        """Estimate the model from the documents seen so far, or from sums over them."""
        return self.estimate(self._of_stream(seen, self._given_number()))

    def _without_block(
        self, block: int, others: WordStatistics, moments: TopicMoments, components: Topics
    ) -> TopicMoments:
        """Return the moments without a block, with the documents of the other blocks, for as many steps."""
        orthogonal = self.strategy().needs_orthogonal
        rest = TopicMoments.of(others, components.weights.size, moments.alpha_0, orthogonal=orthogonal)
        documents = moments.documents
        if documents is None:
            return rest
        if isinstance(documents, Parts):
            documents = PartsWithout(documents, as_matrix, self.n_jackknife, block)
        else:
            documents = documents[np.flatnonzero(block_of_rows(documents.shape[0], self.n_jackknife) != block)]
        return replace(rest, documents=documents, n_steps=components.n_iter)

    def parameters(self, fit: Factorization | None, moments: TopicMoments) -> Topics:
        """Return topics and their weights."""
        return moments.parameters(fit)

    def polished(self, components: Topics, moments: TopicMoments) -> Topics:
        """Return topics after collapsed variational steps, if documents can be read."""
        if not self.max_iter or moments.documents is None:
            return components
        topics, prior = components.components, components.doc_topic_prior
        start = Start.of(self.posteriors, topics, prior, moments.mean, has_fixed_sum=self.alpha_0 is not None)
        n_steps, settle = (self.max_iter, True) if moments.n_steps is None else (moments.n_steps, False)
        result = polished(moments.documents, start, n_steps, settle=settle)
        return replace(
            components,
            components=result.counts.topics,
            weights=result.weights,
            doc_topic_prior=result.counts.prior,
            topic_word_prior=result.counts.word_prior,
            n_iter=result.n_steps,
        )

    def _standard_errors(self, components: Topics, moments: TopicMoments) -> dict[str, Any]:
        """Return jackknife standard errors; after steps, root mean square errors that include their bias."""
        errors = super()._standard_errors(components, moments)
        if not errors or not components.n_iter or moments.documents is None or components.weights.size == 1:
            return errors
        return self._with_bias(errors, components, moments)

    def _with_bias(self, errors: dict[str, Any], components: Topics, moments: TopicMoments) -> dict[str, Any]:
        """Add the bias of steps to standard errors, from corpora simulated from the topics."""
        numbers, k = lengths_of(moments.documents), components.weights.size
        rng = np.random.default_rng(np.random.SeedSequence(as_seed(self.random_state) or 0, spawn_key=(19,)))
        simulated: list[Estimated] = []
        for _ in range(N_SIMULATED):
            counts = simulated_counts(components, numbers, rng)
            try:
                sums = self._document_sums(counts, 0)
                others = self._of_sums(sums.blocks(k), k, True, sums)
            except UndeterminedError:  # documents like these do not determine the topics
                simulated = []
                break
            others = replace(others, n_steps=components.n_iter)
            by_moments = self.parameters(self._solve(others), others)
            simulated.append(Estimated(by_moments, self.polished(by_moments, others)))
        if self.alpha_0 is None:  # simulated corpora do not show the bias of the estimated sum
            errors["doc_topic_prior"] = np.full(k, np.nan)
        share = min(1.0, MAX_SIMULATED_DOCUMENTS / numbers.sum())
        by_moments = self.parameters(self._solve(moments), moments)
        return with_bias(errors, Estimated(by_moments, components), simulated, share)

    def _as_counts(self, raw: Any, *, first: bool) -> sparse.csr_array:
        """Return counts, the one matrix that all moments and steps read."""
        return as_counts(validate_data(self, raw, reset=first, **INPUT), "X")

    def _assumed_alpha_0(self) -> float:
        """Return the sum of the Dirichlet parameters that moments assume."""
        return ALPHA_0 if self.alpha_0 is None else float(self.alpha_0)


class SingleTopic(LatentDirichlet):
    r"""The single topic model by moments: every document is about one topic.

    Then :math:`E_3 = \sum_i w_i \mu_i^{\otimes 3}`, and topics are the factors. `transform` returns the probability of
    each topic for each document. Attributes are those of `LatentDirichlet`, of which this is the limit for `alpha_0`
    zero, and documents may come in parts as there.

    *Needs*, *costs* and *guarantees* as `LatentDirichlet`. *Fails* if documents mix topics: mixtures then count as
    topics, with a bias that more data does not remove.

    Parameters
    ----------
    n_components : int, optional
        Number of topics. None for the number of eigenvalues of the second moment that are at least twice as large as
        sampling noise.
    method : Method or str, optional
        Method that factorizes the moment; by default `codiag.methods.Auto`.
    max_iter : int
        Largest number of collapsed variational steps after the moments. They leave each document out of its own update,
        estimate the Dirichlet parameter of topics, and end as those of `LatentDirichlet`. Zero is the pure method of
        moments.
    n_jackknife : int
        Number of blocks of documents that are left out in turn for standard errors (jackknife), at least 2, better 20;
        zero for no standard errors. The model is estimated as many times more, variational steps included.
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
    posteriors: ClassVar[type[Posteriors]] = DocumentPosteriors

    def __init__(
        self,
        n_components: int | None = 10,
        *,
        method: Any = None,
        max_iter: int = 0,
        n_jackknife: int = 0,
        random_state: int | None = None,
    ) -> None:
        JackknifeModel.__init__(self, n_components, method=method, max_iter=max_iter, random_state=random_state)
        self.n_jackknife = n_jackknife

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

    def to_sklearn(self) -> NoReturn:
        """Raise: scikit-learn has no model of documents about a single topic.

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

    def _with_bias(self, errors: dict[str, Any], components: Topics, moments: TopicMoments) -> dict[str, Any]:
        """Return standard errors unchanged: the bias of steps on single topics is small."""
        return errors

    def _shares(self, counts: sparse.csr_array) -> np.ndarray:
        return topic_posteriors(counts, self.components_, self.weights_)

    def _log_likelihood(self, counts: sparse.csr_array) -> float:
        return topic_log_likelihood(counts, self.components_, self.weights_)
