"""Hidden Markov models of symbols, by moments of three consecutive symbols."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from codiag._arrays import is_dask
from codiag._checks import RankDeficientError, as_generator, as_number
from codiag.models.base import (
    Diagnostics,
    MappedProblem,
    MomentModel,
    PartialFit,
    as_seed,
    hidden_component,
    mixture_weights,
    n_starts,
    on_simplex,
    optional,
    positive_integer,
    random_groups,
    sum_over_rows,
    warn_caller,
)
from codiag.models.chains._forward_backward import (
    BaumWelchSums,
    baum_welch_sums,
    forward_backward,
    logarithms,
    path_log_probability,
    viterbi,
)
from codiag.models.chains._moments import (
    Chain,
    ChainMoments,
    ChainSums,
    correlation,
    counts_of_block,
    scaled_problem,
    stationary,
    views_of,
)
from codiag.models.chains._sequences import numbered, split_sequences
from codiag.result import Factorization


class HiddenMarkov(PartialFit, MomentModel[ChainMoments, Chain]):
    r"""A hidden Markov model over symbols, by the method of moments.

    Given the state at the middle of three consecutive symbols, these are independent:
    :math:`E[x_1 \otimes x_2 \otimes x_3] = \sum_h \omega_h A_h \otimes O_h \otimes (O T)_h`. The second factor holds
    the emission probabilities O; with the third factor C, the transition matrix is :math:`T = O^+ C`.

    Names and conventions are those of hmmlearn: symbols are integers from zero, and sequences are concatenated, with
    their lengths. A list of sequences, and strings as symbols, are accepted as well.

    Parameters
    ----------
    n_components : int, optional
        Number of states; at most the number of symbols. None for the number of singular values of the moment of
        neighboring symbols that are at least twice as large as sampling noise.
    method : Method or str, optional
        Method that factorizes the moment; by default `codiag.methods.Auto`.
    max_iter : int
        Largest number of Baum-Welch steps after the moments, which end when the log-likelihood would rise by less than
        0.01; zero is the pure method of moments. Of fewer than 16,000 symbols, and if more than 40 steps are allowed,
        they also start from random probabilities, up to eight times, and the most likely result is kept.
    random_state : int, optional
        Seed; the estimate does not depend on it if the data determines the states.

    Attributes
    ----------
    transmat_ : array of shape (n_components, n_components)
        Row i: the probabilities of the states that follow state i. States are sorted by their stationary probability,
        largest first.
    emissionprob_ : array of shape (n_components, n_features)
        Row i: the probabilities of the symbols in state i.
    startprob_ : array of shape (n_components,)
        For one sequence the stationary distribution; for several, estimated from their first symbols.
    diagnostics_ : Diagnostics
        How well the data determines the model: ``relative_error``, ``converged``, ``core_errors``, ``clipped_mass``,
        ``weakest_correlation`` (the last singular value of the moment of neighbors), ``sampling_noise`` and
        ``emission_condition`` (the condition number of the emission probabilities).
    n_components_ : int
        Number of states.
    n_features : int
        Number of symbols.
    symbols_ : array of shape (n_features,)
        The symbols of the columns of `emissionprob_`: 0, 1, ..., or the sorted strings.

    See Also
    --------
    SphericalGaussianMixture : Samples without an order.
    MultiviewMixture : Three independent views of each sample.

    Notes
    -----
    **Assumptions.** Sequences of three symbols or more, states with linearly independent emission probabilities (rows
    of `emissionprob_`), and a transition matrix of full rank.

    **Complexity.** One pass to count triples, work on a sparse tensor with one entry per different triple, and one pass
    for each Baum-Welch step, :math:`O(n k^2)`, one symbol after the other for all sequences at once.

    **Guarantees.** Errors proportional to one over the root of the number of symbols if `max_iter` is zero; the same
    estimate from every seed.

    **Limitations.** Fails if states follow each other nearly at random, or emit nearly the same symbols: a warning then
    says that sampling noise hides them, or ``emission_condition`` in `diagnostics_` is large.

    `fit` also takes a dask array of symbols; each of its blocks is a sequence. Triples are counted block by block, and
    every Baum-Welch step is one more pass. `partial_fit` adds sequences, by moments alone. `jackknife_standard_errors`
    leaves out sequences, or stretches of time if there are fewer sequences than groups; these should be much longer
    than the memory of the states, and standard errors of `startprob_` are NaN then.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import HiddenMarkov
    >>> rng = np.random.default_rng(0)
    >>> states = np.cumsum(rng.random(20000) < 0.1) % 2
    >>> symbols = np.where(rng.random(20000) < 0.9, states, 2)
    >>> HiddenMarkov(2, random_state=0).fit(symbols).transmat_.round(1).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    >>> names = np.array(["sun", "rain", "wind"])[symbols]
    >>> HiddenMarkov(2, random_state=0).fit([names[:9000], names[9000:]]).symbols_.tolist()
    ['rain', 'sun', 'wind']
    """

    parameter_rules = MomentModel.parameter_rules | {"n_components": optional(positive_integer)}
    _known: np.ndarray | None = None
    """Symbols of `emissionprob_`, if they are known before the fit."""

    def __init__(
        self, n_components: int | None = 2, *, method: Any = None, max_iter: int = 500, random_state: int | None = None
    ) -> None:
        super().__init__(n_components, method=method, max_iter=max_iter, random_state=random_state)

    def fit(self, X: Any, y: object = None, lengths: Any = None, *, progress: bool | None = None) -> Self:  # noqa: N803
        """Estimate the model from symbols 0, 1, ... or strings.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1), or list of sequences
            Concatenated symbols, or sequences of symbols; or a dask array of symbols, whose blocks are sequences.
        y : None
            Not used; there for the interface of scikit-learn.
        lengths : sequence of int, optional
            Lengths of the sequences if symbols are concatenated; by default all symbols are one sequence.
        progress : bool, optional
            Whether to show a bar on the standard error, or below the cell of a notebook, if it takes more than two
            seconds. By default, one appears after ten, and never where the standard error is no terminal.

        Returns
        -------
        self
            The fitted model.

        See Also
        --------
        HiddenMarkov.partial_fit : Sequences in chunks.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import HiddenMarkov
        >>> rng = np.random.default_rng(0)
        >>> states = np.cumsum(rng.random(3000) < 0.1) % 2
        >>> symbols = np.where(rng.random(3000) < 0.9, states, 2)
        >>> HiddenMarkov(2, max_iter=0, random_state=0).fit(symbols).transmat_.shape
        (2, 2)
        """
        check_no_target(y)
        return self._fit_with_progress(progress, X if is_dask(X) else split_sequences(X, lengths))

    def partial_fit(self, X: Any, y: object = None, lengths: Any = None) -> Self:  # noqa: N803
        """Add sequences to those seen so far and estimate again, by moments alone.

        The estimate does not depend on the chunks or their order; a sequence that is cut in two loses the triples at
        the cut.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1), or list of sequences
            As for `fit`, in memory.
        y : None
            Not used; there for the interface of scikit-learn.
        lengths : sequence of int, optional
            As for `fit`.

        Returns
        -------
        self
            The model.

        See Also
        --------
        HiddenMarkov.fit : All sequences at once.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import HiddenMarkov
        >>> rng = np.random.default_rng(0)
        >>> states = np.cumsum(rng.random(3000) < 0.1) % 2
        >>> symbols = np.where(rng.random(3000) < 0.9, states, 2)
        >>> model = HiddenMarkov(2, max_iter=0, random_state=0)
        >>> for chunk in np.split(symbols, 3):
        ...     model = model.partial_fit(chunk)
        >>> model.transmat_.shape
        (2, 2)
        """
        check_no_target(y)
        warn_caller(self._learn_more(X if is_dask(X) else split_sequences(X, lengths)))
        return self

    def moments_function(self, data: Any) -> Callable[[int], ChainMoments]:
        """Count symbols and triples in one pass, and return a function from a number of states to the moments."""
        self._seen = None
        if is_dask(data):
            sums, sequences = sum_over_rows(counts_of_block, data), data
        else:
            sums = ChainSums.of(data)
            sequences = numbered(data, sums.all_symbols() if self._known is None else self._known)
        return lambda k: replace(self._moments_of(sums, k), sequences=sequences)

    def _with_chunk(self, seen: ChainSums | None, raw: list[np.ndarray]) -> ChainSums:
        """Return the counts with sequences added."""
        return ChainSums.of(raw) if seen is None else seen + ChainSums.of(raw)

    def _estimate_seen(self, seen: ChainSums) -> tuple[Warning, ...]:
        """Estimate the model from counts alone."""
        return self.estimate(self._moments_of(seen, cast("int", self.n_components)))

    def _leave_groups_out(self, data: Any, n_groups: int, lengths: Any = None) -> Iterator[tuple[int, Any]]:
        """Yield for every group of sequences, or stretch of time, its number of symbols and the other sequences."""
        sequences = split_sequences(data, lengths)
        sizes = np.array([sequence.size for sequence in sequences])
        are_whole = sizes.size >= n_groups
        if are_whole:
            owners = np.repeat(random_groups(sizes.size, n_groups), sizes)
        else:
            owners = np.arange(sizes.sum()) * n_groups // sizes.sum()
        by_sequence = np.split(owners, np.cumsum(sizes)[:-1])
        for group in range(n_groups):
            kept = [_without(*pair, group) for pair in zip(sequences, by_sequence, strict=True)]
            yield int(np.sum(owners == group)), ([piece for pieces in kept for piece in pieces], are_whole)

    def _unfitted(self) -> Self:
        model = super()._unfitted()
        model._known = self.symbols_
        return model

    def _refit(self, data: tuple[list[np.ndarray], bool]) -> Self:
        """Return the model fitted to other sequences; its start probabilities are NaN if sequences were cut."""
        sequences, are_whole = data
        replicate = super()._refit(sequences)
        if not are_whole:
            unknown = np.full_like(self.startprob_, np.nan)
            replicate._components = replace(replicate._components, startprob=unknown)
        return replicate

    def _moments_of(self, counts: ChainSums, k: int) -> ChainMoments:
        """Return the moments of counts for k states."""
        occurring = counts.symbols.size
        if k > occurring:
            raise RankDeficientError(f"n_components must be at most {occurring}, the number of symbols; got {k}")
        if not counts.numbers.shape[1]:
            raise RankDeficientError("X must contain a sequence of three symbols or more; all are shorter")
        # Variances of counts are proportional to their means: divided by roots of frequencies, they are nearly equal.
        shares = counts.numbers[0] / counts.numbers[0].sum()
        scales = [np.sqrt(np.bincount(row, weights=shares, minlength=occurring)) for row in counts.triples]
        size, noise = correlation(counts, scales, k)
        hidden = hidden_component(size, noise, k)
        mapped = MappedProblem.of(views_of(counts, scales), k) if self._resolved_method().needs_orthogonal else None
        return ChainMoments(
            problem=scaled_problem(counts, scales, k) if mapped is None else mapped.problem,
            warning_messages=hidden,
            hides_component=bool(hidden),
            counts=counts,
            symbols=counts.all_symbols() if self._known is None else self._known,
            scales=scales,
            correlation=size,
            noise=noise,
            mapped=mapped,
        )

    def parameters(self, fit: Factorization, moments: ChainMoments) -> Chain:
        """Return start, transition and emission probabilities."""
        counts, scales, k = moments.counts, moments.scales, fit.rank
        second, third = moments.factors(fit)
        # One state emits symbols with their frequencies.
        emissions, clipped = on_simplex(counts.frequencies[:, None] if k == 1 else scales[1][:, None] * second)
        following, _ = on_simplex(scales[2][:, None] * third)
        raw = np.linalg.lstsq(emissions, following, rcond=None)[0]  # T = O^+ C, columns of sum one
        transitions, moved = on_simplex(raw)
        visited = stationary(transitions)
        sizes = np.linalg.svd(emissions, compute_uv=False)
        diagnostics = Diagnostics.of(
            fit,
            weakest_correlation=moments.correlation,
            sampling_noise=moments.noise,
            clipped_mass=max(clipped, moved),
            emission_condition=float(sizes[0] / max(sizes[-1], 1e-300)),
        )
        start = visited
        if counts.n_sequences > 1:
            start = mixture_weights(emissions, counts.firsts / counts.n_sequences)
        emitted = np.full((k, moments.symbols.size), 1e-12 / moments.symbols.size)
        emitted[:, counts.among(moments.symbols)] = emissions.T
        emitted /= emitted.sum(axis=1, keepdims=True)
        return Chain(
            weights=visited, startprob=start, transmat=transitions.T, emissionprob=emitted, diagnostics=diagnostics
        )

    def _refine(self, components: Chain, moments: ChainMoments) -> Chain:
        """Return the model after Baum-Welch steps, if sequences can be read."""
        return components if moments.sequences is None else super()._refine(components, moments)

    def em_step(self, components: Chain, moments: ChainMoments) -> Chain:
        """Return the model after one Baum-Welch step."""
        model = components.startprob, components.transmat, components.emissionprob
        if is_dask(moments.sequences):
            sums = sum_over_rows(_sums_of_block, moments.sequences, moments.symbols, *model)
        else:
            sums = baum_welch_sums(*moments.sequences, *model)
        start, transitions, emissions = sums.probabilities()
        return replace(
            components,
            startprob=start,
            transmat=transitions,
            emissionprob=emissions,
            weights=stationary(transitions.T),
            diagnostics=components.diagnostics.extended(log_likelihood=sums.log_likelihood),
        )

    def _more_starts(self, components: Chain, moments: ChainMoments) -> list[Chain]:
        """Return random probabilities, for sequences in memory."""
        if is_dask(moments.sequences):
            return []
        rng, (k, n_symbols) = as_generator(as_seed(self.random_state)), components.emissionprob.shape
        return [
            replace(
                components,
                startprob=rng.dirichlet(np.ones(k)),
                transmat=rng.dirichlet(np.ones(k), k),
                emissionprob=rng.dirichlet(np.ones(n_symbols), k),
            )
            for _ in range(n_starts(moments.sequences[0].size))
        ]

    def _set(self, components: Chain, fit: Factorization | None, moments: ChainMoments) -> tuple[Warning, ...]:
        """Set learned attributes by the names of hmmlearn, and return the warnings."""
        found = super()._set(components, fit, moments)
        del self.weights_  # the stationary distribution, which hmmlearn computes by a method
        self.n_features, self.symbols_ = moments.symbols.size, moments.symbols
        return found

    def score(self, X: Any, y: object = None, lengths: Any = None) -> float:  # noqa: N803
        """Return the log-likelihood of all sequences.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1), or list of sequences
            Symbols, as in `fit`.
        y : None
            Not used; there for the interface of scikit-learn.
        lengths : sequence of int, optional
            As in `fit`.

        Returns
        -------
        float
            The log-likelihood.

        See Also
        --------
        HiddenMarkov.score_samples : With the probabilities of states.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import HiddenMarkov
        >>> rng = np.random.default_rng(0)
        >>> states = np.cumsum(rng.random(3000) < 0.1) % 2
        >>> symbols = np.where(rng.random(3000) < 0.9, states, 2)
        >>> model = HiddenMarkov(2, max_iter=0, random_state=0).fit(symbols)
        >>> model.score(symbols) < 0
        True
        """
        check_no_target(y)
        return forward_backward(*self._read(X, lengths))[1].log_likelihood

    def score_samples(self, X: Any, lengths: Any = None) -> tuple[float, np.ndarray]:  # noqa: N803
        """Return the log-likelihood of all sequences, and the probability of every state at every time.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1), or list of sequences
            Symbols, as in `fit`.
        lengths : sequence of int, optional
            As in `fit`.

        Returns
        -------
        log_prob : float
            The log-likelihood of all sequences.
        posteriors : array of shape (n, n_components)
            The probability of every state at every time.

        See Also
        --------
        HiddenMarkov.predict_proba : The probabilities alone.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import HiddenMarkov
        >>> rng = np.random.default_rng(0)
        >>> states = np.cumsum(rng.random(3000) < 0.1) % 2
        >>> symbols = np.where(rng.random(3000) < 0.9, states, 2)
        >>> model = HiddenMarkov(2, max_iter=0, random_state=0).fit(symbols)
        >>> log_likelihood, posteriors = model.score_samples(symbols)
        >>> posteriors.shape
        (3000, 2)
        """
        states, sums = forward_backward(*self._read(X, lengths))
        return sums.log_likelihood, states

    def decode(self, X: Any, lengths: Any = None, algorithm: str = "viterbi") -> tuple[float, np.ndarray]:  # noqa: N803
        """Return the states of all sequences, and their joint log-probability with the symbols.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1), or list of sequences
            Symbols, as in `fit`.
        lengths : sequence of int, optional
            As in `fit`.
        algorithm : {"viterbi", "map"}
            The most probable path of states, or the most probable state at every time; the latter may be a path of
            probability zero.

        Returns
        -------
        log_prob : float
            Logarithm of the joint probability of these states and the symbols, for both algorithms; for "map",
            hmmlearn sums posterior probabilities instead.
        state_sequence : array of shape (n,)
            The states.

        See Also
        --------
        HiddenMarkov.predict : The path alone.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import HiddenMarkov
        >>> rng = np.random.default_rng(0)
        >>> states = np.cumsum(rng.random(3000) < 0.1) % 2
        >>> symbols = np.where(rng.random(3000) < 0.9, states, 2)
        >>> model = HiddenMarkov(2, max_iter=0, random_state=0).fit(symbols)
        >>> log_prob, path = model.decode(symbols)
        >>> path.shape
        (3000,)
        """
        if algorithm not in ("viterbi", "map"):
            raise ValueError(f'algorithm must be "viterbi" or "map"; got {algorithm!r}')
        known = self._read(X, lengths)
        path = viterbi(*known) if algorithm == "viterbi" else np.argmax(forward_backward(*known)[0], axis=1)
        return path_log_probability(path, *known), path

    def predict(self, X: Any, lengths: Any = None) -> np.ndarray:  # noqa: N803
        """Return the most probable path of states (Viterbi).

        Parameters
        ----------
        X : array of shape (n,) or (n, 1), or list of sequences
            Symbols, as in `fit`.
        lengths : sequence of int, optional
            As in `fit`.

        Returns
        -------
        array of shape (n,)
            The states.

        See Also
        --------
        HiddenMarkov.decode : With the probability of the path.
        HiddenMarkov.predict_proba : The probability of every state.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import HiddenMarkov
        >>> rng = np.random.default_rng(0)
        >>> states = np.cumsum(rng.random(3000) < 0.1) % 2
        >>> symbols = np.where(rng.random(3000) < 0.9, states, 2)
        >>> model = HiddenMarkov(2, max_iter=0, random_state=0).fit(symbols)
        >>> model.predict(symbols).shape
        (3000,)
        """
        return self.decode(X, lengths)[1]

    def predict_proba(self, X: Any, lengths: Any = None) -> np.ndarray:  # noqa: N803
        """Return the probability of every state at every time.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1), or list of sequences
            Symbols, as in `fit`.
        lengths : sequence of int, optional
            As in `fit`.

        Returns
        -------
        array of shape (n, n_components)
            The probabilities, with rows of sum one.

        See Also
        --------
        HiddenMarkov.predict : The most probable path.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import HiddenMarkov
        >>> rng = np.random.default_rng(0)
        >>> states = np.cumsum(rng.random(3000) < 0.1) % 2
        >>> symbols = np.where(rng.random(3000) < 0.9, states, 2)
        >>> model = HiddenMarkov(2, max_iter=0, random_state=0).fit(symbols)
        >>> model.predict_proba(symbols).shape
        (3000, 2)
        """
        return self.score_samples(X, lengths)[1]

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """Draw a sequence of symbols, and the states that emit them.

        Parameters
        ----------
        n_samples : int
            Number of symbols.
        random_state : int, optional
            Seed; by default that of the model.

        Returns
        -------
        X : array of shape (n_samples, 1)
            Symbols, as in `symbols_`.
        state_sequence : array of shape (n_samples,)
            The states.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import HiddenMarkov
        >>> rng = np.random.default_rng(0)
        >>> states = np.cumsum(rng.random(3000) < 0.1) % 2
        >>> symbols = np.where(rng.random(3000) < 0.9, states, 2)
        >>> model = HiddenMarkov(2, max_iter=0, random_state=0).fit(symbols)
        >>> drawn, hidden = model.sample(10, random_state=0)
        >>> drawn.shape, hidden.shape
        ((10, 1), (10,))
        """
        check_is_fitted(self)
        as_number("n_samples", n_samples, integer=True)
        rng = as_generator(self.random_state if random_state is None else random_state, "random_state")
        draws, ladders = rng.random(n_samples).tolist(), [_ladder(row) for row in self.transmat_]
        states = [bisect_right(_ladder(self.startprob_), draws[0])]
        for draw in draws[1:]:
            states.append(bisect_right(ladders[states[-1]], draw))
        path, symbols, heights = np.array(states), np.empty(n_samples, dtype=np.intp), rng.random(n_samples)
        for state in range(self.n_components_):
            times = path == state
            symbols[times] = np.searchsorted(_ladder(self.emissionprob_[state]), heights[times], side="right")
        return self.symbols_[symbols][:, None], path

    def aic(self, X: Any, lengths: Any = None) -> float:  # noqa: N803
        r"""Return Akaike's criterion for these sequences, :math:`2 p - 2 \log L`; lower is better.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1), or list of sequences
            Symbols, as in `fit`.
        lengths : sequence of int, optional
            As in `fit`.

        Returns
        -------
        float
            The criterion.

        See Also
        --------
        HiddenMarkov.bic : Penalizes states more.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import HiddenMarkov
        >>> rng = np.random.default_rng(0)
        >>> states = np.cumsum(rng.random(3000) < 0.1) % 2
        >>> symbols = np.where(rng.random(3000) < 0.9, states, 2)
        >>> model = HiddenMarkov(2, max_iter=0, random_state=0).fit(symbols)
        >>> model.aic(symbols) < model.bic(symbols)
        True
        """
        return 2 * self._n_parameters() - 2 * self.score(X, lengths=lengths)

    def bic(self, X: Any, lengths: Any = None) -> float:  # noqa: N803
        r"""Return Schwarz's criterion for these sequences, :math:`p \log n - 2 \log L`; lower is better.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1), or list of sequences
            Symbols, as in `fit`; n is their number.
        lengths : sequence of int, optional
            As in `fit`.

        Returns
        -------
        float
            The criterion.

        See Also
        --------
        HiddenMarkov.aic : Penalizes states less.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import HiddenMarkov
        >>> rng = np.random.default_rng(0)
        >>> states = np.cumsum(rng.random(3000) < 0.1) % 2
        >>> symbols = np.where(rng.random(3000) < 0.9, states, 2)
        >>> model = HiddenMarkov(2, max_iter=0, random_state=0).fit(symbols)
        >>> model.aic(symbols) < model.bic(symbols)
        True
        """
        known = self._read(X, lengths)
        likelihood = forward_backward(*known)[1].log_likelihood
        return float(self._n_parameters() * np.log(known[0].size) - 2 * likelihood)

    def get_stationary_distribution(self) -> np.ndarray:
        """Return the stationary probabilities of the states.

        Returns
        -------
        array of shape (n_components,)
            Probabilities whose sum is one.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import HiddenMarkov
        >>> rng = np.random.default_rng(0)
        >>> states = np.cumsum(rng.random(3000) < 0.1) % 2
        >>> symbols = np.where(rng.random(3000) < 0.9, states, 2)
        >>> model = HiddenMarkov(2, max_iter=0, random_state=0).fit(symbols)
        >>> round(float(model.get_stationary_distribution().sum()), 6)
        1.0
        """
        check_is_fitted(self)
        return stationary(self.transmat_.T)

    def to_hmmlearn(self) -> Any:
        """Return a ``hmmlearn.hmm.CategoricalHMM`` with these parameters, to use or to train further.

        Returns
        -------
        hmmlearn.hmm.CategoricalHMM
            The model, fitted.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import HiddenMarkov
        >>> rng = np.random.default_rng(0)
        >>> states = np.cumsum(rng.random(3000) < 0.1) % 2
        >>> symbols = np.where(rng.random(3000) < 0.9, states, 2)
        >>> model = HiddenMarkov(2, max_iter=0, random_state=0).fit(symbols)
        >>> model.to_hmmlearn().n_components
        2
        """
        from hmmlearn.hmm import CategoricalHMM

        check_is_fitted(self)
        model = CategoricalHMM(n_components=self.n_components_, init_params="")
        model.n_features = self.n_features
        model.startprob_, model.transmat_ = self.startprob_.copy(), self.transmat_.copy()
        model.emissionprob_ = self.emissionprob_.copy()
        return model

    def _n_parameters(self) -> int:
        """Return the number of free parameters."""
        return self.startprob_.size - 1 + (self.transmat_.shape[1] - 1 + self.n_features - 1) * self.startprob_.size

    def _read(self, X: Any, lengths: Any) -> tuple[np.ndarray, ...]:  # noqa: N803
        """Return concatenated symbols as numbers, lengths, and the logarithms of the parameters."""
        check_is_fitted(self)
        rows = numbered(split_sequences(X, lengths), self.symbols_)
        return *rows, *logarithms(self.startprob_, self.transmat_, self.emissionprob_)


def _sums_of_block(block: np.ndarray, symbols: np.ndarray, *model: np.ndarray) -> BaumWelchSums:
    """Return the sums of a Baum-Welch step over a block of a dask array, which is a sequence."""
    return baum_welch_sums(*numbered(split_sequences(block), symbols), *model)


def _without(sequence: np.ndarray, owners: np.ndarray, group: int) -> list[np.ndarray]:
    """Return the stretches of a sequence that do not belong to a group."""
    kept = owners != group
    cuts = np.flatnonzero(np.diff(kept)) + 1
    return [piece for piece, part in zip(np.split(sequence, cuts), np.split(kept, cuts), strict=True) if part[0]]


def check_no_target(y: object) -> None:
    """Raise if there is a target; hmmlearn has the lengths in its place."""
    if y is not None:
        raise ValueError("y must be None, as states are not given; for lengths of sequences give lengths=...")


def _ladder(probabilities: np.ndarray) -> list[float]:
    """Return cumulative probabilities without the last, so that bisection of a draw gives its index."""
    steps: list[float] = np.cumsum(probabilities)[:-1].tolist()
    return steps
