"""Hidden Markov models of symbols, by moments of three consecutive symbols."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from codiag._arrays import is_dask
from codiag._checks import RankDeficientError
from codiag.models.base import (
    Diagnostics,
    MappedProblem,
    MomentModel,
    PartialFit,
    hidden_component,
    mixture_weights,
    on_simplex,
    optional,
    positive_integer,
    random_groups,
    sum_over_rows,
    warn_caller,
)
from codiag.models.chains._forward_backward import BaumWelchSums, baum_welch_sums
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
from codiag.models.chains._states import HiddenStates, check_no_target
from codiag.result import Factorization


class HiddenMarkov(HiddenStates, PartialFit, MomentModel[ChainMoments, Chain]):
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
        Number of Baum-Welch steps after the moments; zero is the pure method of moments.
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
        self, n_components: int | None = 2, *, method: Any = None, max_iter: int = 10, random_state: int | None = None
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
        visited = stationary(transitions.T)
        return replace(components, startprob=start, transmat=transitions, emissionprob=emissions, weights=visited)

    def _set(self, components: Chain, fit: Factorization | None, moments: ChainMoments) -> tuple[Warning, ...]:
        """Set learned attributes by the names of hmmlearn, and return the warnings."""
        found = super()._set(components, fit, moments)
        del self.weights_  # the stationary distribution, which hmmlearn computes by a method
        self.n_features, self.symbols_ = moments.symbols.size, moments.symbols
        return found


def _sums_of_block(block: np.ndarray, symbols: np.ndarray, *model: np.ndarray) -> BaumWelchSums:
    """Return the sums of a Baum-Welch step over a block of a dask array, which is a sequence."""
    return baum_welch_sums(*numbered(split_sequences(block), symbols), *model)


def _without(sequence: np.ndarray, owners: np.ndarray, group: int) -> list[np.ndarray]:
    """Return the stretches of a sequence that do not belong to a group."""
    kept = owners != group
    cuts = np.flatnonzero(np.diff(kept)) + 1
    return [piece for piece, part in zip(np.split(sequence, cuts), np.split(kept, cuts), strict=True) if part[0]]
