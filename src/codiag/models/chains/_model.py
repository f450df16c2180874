"""Hidden Markov models of symbols, by moments of three consecutive symbols."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import numpy as np

from codiag._checks import UndeterminedError
from codiag._progress import progress_if
from codiag.models.chains._forward_backward import baum_welch_sums, from_baum_welch_sums
from codiag.models.chains._moments import (
    Chain,
    ChainMoments,
    ChainSums,
    correlation,
    counts_of_part,
    scaled_problem,
    stationary,
    time_blocks,
    views_of,
    with_symbols_of,
)
from codiag.models.chains._sequences import (
    CutSequences,
    numbered,
    sequences_in_parts,
    sequences_of_part,
    split_sequences,
)
from codiag.models.chains._states import HiddenStates
from codiag.models.base import (
    Blocks,
    Diagnostics,
    JackknifeModel,
    MappedProblem,
    PartialFit,
    Totals,
    check_reads,
    hidden_component,
    mixture_weights,
    on_simplex,
    warn_caller,
)
from codiag.parts import Parts
from codiag.result import Factorization


class HiddenMarkov(HiddenStates, PartialFit, JackknifeModel[ChainMoments, Chain]):
    r"""A hidden Markov model over symbols, by the method of moments.

    Given the state at the middle of three consecutive symbols, these are independent:
    :math:`E[x_1 \otimes x_2 \otimes x_3] = \sum_h \omega_h A_h \otimes O_h \otimes (O T)_h`. The second factor holds
    the emission probabilities O; with the third factor C, the transition matrix is :math:`T = O^+ C`.

    Names and conventions are those of hmmlearn: symbols are integers from zero, and sequences are concatenated, with
    their lengths. A list of sequences, and strings as symbols, are accepted as well.

    *Needs* sequences of three symbols or more, states with linearly independent emission probabilities (rows of
    `emissionprob_`), and a transition matrix of full rank. *Costs* one pass to count triples, work on a sparse tensor
    with one entry per different triple, and one pass for each Baum-Welch step: :math:`O(n k^3)`, parallel over blocks
    of the symbols, or :math:`O(n k^2)`, one symbol after the other, beyond 32 states. *Guarantees* errors proportional
    to one over the root of the number of symbols if `max_iter` is zero; the same estimate from every seed. *Fails* if
    states follow each other nearly at random, or emit nearly the same symbols: a warning then says that sampling noise
    hides them, or ``emission_condition`` in `diagnostics_` is large.

    Parameters
    ----------
    n_components : int, optional
        Number of states; at most the number of symbols. None for the number of singular values of the moment of
        neighboring symbols that are at least twice as large as sampling noise.
    method : Method or str, optional
        Method that factorizes the moment; by default `codiag.methods.Auto`.
    max_iter : int
        Number of Baum-Welch steps after the moments; zero is the pure method of moments.
    n_jackknife : int
        Number of blocks of time that are left out in turn for standard errors (jackknife), at least 2, better 20; zero
        for no standard errors. The model is estimated as many times more, Baum-Welch steps included. A block is a
        stretch of a sequence, or several short sequences, and should be much longer than the memory of the states.
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
    transmat_standard_errors_, emissionprob_standard_errors_, startprob_standard_errors_ : as the parameters
        Only if `n_jackknife` is positive. NaN for entries that are 0 or 1 with and without each block. If `startprob_`
        is estimated from first symbols (of several sequences, or by Baum-Welch steps), its standard errors are NaN
        unless a sequence begins in every block, which needs as many sequences as blocks: otherwise blocks of time leave
        out first symbols unevenly.
    diagnostics_ : Diagnostics
        How well the data determines the model.
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

    optional: ClassVar[frozenset[str]] = frozenset({"n_components"})

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        method: Any = None,
        max_iter: int = 10,
        n_jackknife: int = 0,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, method=method, max_iter=max_iter, random_state=random_state)
        self.n_jackknife = n_jackknife

    def fit(self, X: Any, lengths: Any = None, *, progress: bool | None = None) -> Self:  # noqa: N803
        """Estimate the model from symbols 0, 1, ... or strings.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1), or list of sequences
            Concatenated symbols, or sequences of symbols. Or in parts, each a sequence or a list of sequences: a dask
            bag or array, a list of delayed parts, a function that returns an iterator over parts, or an iterator, with
            which `max_iter` must be zero. Parts are read once for the moments, and once for every Baum-Welch step.
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
        parts = sequences_in_parts(X, lengths)
        with progress_if(progress, f"fitting {type(self).__name__}"):
            found = self.learn(split_sequences(X, lengths) if parts is None else parts)
        warn_caller(found)
        return self

    def partial_fit(self, X: Any, lengths: Any = None) -> Self:  # noqa: N803
        """Add sequences to those seen so far and estimate again, by moments alone.

        The estimate does not depend on the chunks or their order; a sequence that is cut in two loses the triples at
        the cut.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1), or list of sequences
            As for `fit`.
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
        if sequences_in_parts(X, lengths) is not None:
            raise ValueError(
                "X must be one chunk for partial_fit, symbols or a list of sequences; got parts. Call partial_fit for "
                "each of them, or fit for all"
            )
        warn_caller(self.learn_more(split_sequences(X, lengths)))
        return self

    def moments_by_number(self, data: list[np.ndarray] | Parts) -> Callable[[int], ChainMoments]:
        """Count symbols and triples in one pass, and return a function from a number of states to the moments."""
        if isinstance(data, Parts):
            check_reads(data, self.max_iter)
            blocks = data.reduce(counts_of_part, self.n_jackknife, numbered=True)
        else:
            blocks = Blocks.of(ChainSums.empty(), data, self.n_jackknife)
        sums = blocks.total()
        self._check_blocks(sums.size)

        parts = data if isinstance(data, Parts) and not data.once else None
        rows = None if isinstance(data, Parts) else numbered(data, sums.all_symbols())

        def moments_of(k: int) -> ChainMoments:
            moments = replace(self._moments_of(sums, k), blocks=blocks, seen=Blocks({0: sums}), parts=parts)
            return moments if rows is None else replace(moments, sequences=CutSequences.of(rows, k))

        return moments_of

    def _with_chunk(self, seen: Blocks | None, raw: list[np.ndarray]) -> Blocks:
        """Return the counts with sequences added."""
        self._given_number()
        if seen is None:
            return Blocks.of(ChainSums.empty(), raw, self.n_jackknife)
        return seen.with_part(raw, self.n_jackknife)

    def _estimate_seen(self, seen: Blocks) -> tuple[Warning, ...]:
        """Estimate the model from counts alone."""
        return self.estimate(replace(self._moments_of(seen.total(), self._given_number()), blocks=seen, seen=seen))

    def _without_block(self, block: int, others: ChainSums, moments: ChainMoments, components: Chain) -> ChainMoments:
        """Return the moments without a block; Baum-Welch steps read all sequences and leave the block out of sums."""
        rest, left_out = self._moments_of(others, components.weights.size, moments), (block, self.n_jackknife)
        return replace(rest, sequences=moments.sequences, parts=moments.parts, left_out=left_out)

    def _moments_of(self, sums: ChainSums, k: int, whole: ChainMoments | None = None) -> ChainMoments:
        """Return the moments of counts for k states, with the symbols of the whole data if that is given."""
        occurring = sums.symbols.size
        if k > occurring:
            raise UndeterminedError(f"n_components must be at most {occurring}, the number of symbols; got {k}")
        counts = sums.finish() if whole is None else with_symbols_of(sums.finish(), whole.counts)
        # Variances of counts are proportional to their means: divided by roots of frequencies, they are nearly equal.
        shares = counts.numbers / counts.numbers.sum()
        scales = [np.sqrt(np.bincount(row, weights=shares, minlength=occurring)) for row in counts.triples]
        size, noise = correlation(counts, scales, k)
        hidden = hidden_component(size, noise, k)
        mapped = MappedProblem.of(views_of(counts, scales), k) if self.strategy().needs_orthogonal else None
        return ChainMoments(
            problem=scaled_problem(counts, scales, k) if mapped is None else mapped.problem,
            complaints=hidden,
            hides_component=bool(hidden),
            counts=counts,
            use_firsts=counts.n_sequences > 0 and (counts if whole is None else whole.counts).n_sequences > 1,
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
        if moments.use_firsts:
            start = mixture_weights(emissions, counts.firsts / counts.n_sequences)
        emitted = np.full((k, counts.symbols.size), 1e-12 / counts.symbols.size)
        emitted[:, counts.seen] = emissions.T
        emitted /= emitted.sum(axis=1, keepdims=True)
        return Chain(
            weights=visited, startprob=start, transmat=transitions.T, emissionprob=emitted, diagnostics=diagnostics
        )

    def polished(self, components: Chain, moments: ChainMoments) -> Chain:
        """Return the model after Baum-Welch steps, if sequences can be read."""
        is_readable = moments.sequences is not None or moments.parts is not None
        return super().polished(components, moments) if is_readable else components

    def em_step(self, components: Chain, moments: ChainMoments) -> Chain:
        """Return the model after one Baum-Welch step."""
        model = components.startprob, components.transmat, components.emissionprob
        if moments.sequences is not None:
            sums = baum_welch_sums(moments.sequences, *model, kept=_kept(moments.sequences, moments.left_out))
        else:
            shared = moments.counts.symbols, moments.left_out, *model
            sums = cast("Parts", moments.parts).reduce(_step_of_part, *shared, numbered=True).values
        start, transitions, emissions = from_baum_welch_sums(*sums)
        visited = stationary(transitions.T)
        return replace(components, startprob=start, transmat=transitions, emissionprob=emissions, weights=visited)

    def keep(self, components: Chain, moments: ChainMoments) -> None:
        """Set learned attributes with the names of hmmlearn, and the symbols."""
        super().keep(components, moments)
        del self.weights_  # the stationary distribution, which hmmlearn computes by a method
        self.n_features, self.symbols_ = moments.counts.symbols.size, moments.counts.symbols

    def _standard_errors(self, components: Chain, moments: ChainMoments) -> dict[str, Any]:
        """Return standard errors by name."""
        errors = super()._standard_errors(components, moments)
        has_steps = self.max_iter and (moments.sequences is not None or moments.parts is not None)
        blocks = {} if moments.blocks is None else moments.blocks.sums
        is_uneven = any(sums.n_sequences == 0 for sums in blocks.values())
        if errors and is_uneven and (has_steps or moments.counts.n_sequences > 1):
            errors["startprob"] = np.full_like(components.startprob, np.nan)
        return errors


def _step_of_part(
    part: Any, symbols: np.ndarray, left_out: tuple[int, int] | None, *model: np.ndarray, place: int
) -> Totals:
    """Return the sums of a Baum-Welch step over the sequences of a part, without those of a block."""
    sequences = CutSequences.of(numbered(sequences_of_part(part), symbols), model[0].size)
    return Totals(*baum_welch_sums(sequences, *model, kept=_kept(sequences, left_out, place)))


def _kept(sequences: CutSequences, left_out: tuple[int, int] | None, place: int = 0) -> np.ndarray | None:
    """Return which of the concatenated symbols of a part do not belong to a block; None if no block is left out."""
    if left_out is None:
        return None
    block, n_jackknife = left_out
    return time_blocks(sequences.lengths, n_jackknife, place) != block
