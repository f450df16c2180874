"""Hidden Markov models by moments of three symbols in a row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np

from codiag._checks import UndeterminedError
from codiag.models.chains._forward_backward import baum_welch_sums, from_baum_welch_sums
from codiag.models.chains._moments import (
    Chain,
    ChainMoments,
    ChainSums,
    correlation,
    scaled_problem,
    stationary,
    views_of,
    with_symbols_of,
)
from codiag.models.chains._parts import counts_of_part, kept_symbols, sequences_in_parts, steps_of_part
from codiag.models.chains._sequences import CutSequences, numbered, split_sequences
from codiag.models.chains._states import HiddenStates
from codiag.models.frame import (
    BlockedModel,
    Blocks,
    Diagnostics,
    MappedProblem,
    hidden_component,
    is_hidden,
    mixture_weights,
    on_simplex,
    warn_caller,
)
from codiag.parts import Parts
from codiag.result import Factorization


class HiddenMarkov(HiddenStates, BlockedModel[ChainMoments, Chain]):
    r"""A hidden Markov model over symbols, by the method of moments.

    Given the state at the middle of three symbols in a row they are independent:
    :math:`E[x_1 \otimes x_2 \otimes x_3] = \sum_h \omega_h A_h \otimes O_h \otimes (O T)_h`. The second factor is the
    emissions, and :math:`T = O^+ C` with the third.

    Names and conventions are those of hmmlearn: symbols are whole numbers from zero, one sequence after the other with
    their lengths. A list of sequences, and strings as symbols, are taken as well.

    *Needs* sequences with three symbols in a row, states that differ in what they emit (linearly independent rows of
    `emissionprob_`), and transitions of full rank. *Costs* one pass to count triples, work on a sparse tensor with as
    many entries as there are different triples, and for each step of `polish` a pass over blocks of the symbols, all
    blocks together, :math:`O(n k^3)`, or one symbol after the other, :math:`O(n k^2)`, beyond 32 states. *Guarantees*
    errors that fall like one over the root of the number of symbols with `polish` zero; the same answer from every
    seed. *Fails* where states follow each other nearly at random, or emit nearly the same symbols: then a warning says
    that sampling noise hides them, or ``emission_condition`` in `diagnostics_` is large.

    Parameters
    ----------
    n_components : int, optional
        Number of states; at most the number of symbols. None for as many as pairs of neighboring symbols show: one for
        each singular value of their moment that is twice as large as sampling noise, or larger. Moments are then formed
        once for each number that is tried.
    method : Method or str, optional
        How the moment is factorized; by default `codiag.methods.Auto`.
    polish : int
        Steps of Baum and Welch afterwards; zero is the pure method of moments.
    n_blocks : int
        Blocks of time that are left out in turn for standard errors (jackknife), at least 2, better 20; zero for none.
        The model is estimated as many times more, steps of `polish` included. A block is one stretch of a sequence, or
        some short sequences, and should be far longer than states are remembered.
    random_state : int, optional
        Seed; the answer does not depend on it where the data determines it.

    Attributes
    ----------
    transmat_ : array of shape (n_components, n_components)
        Row i: the probabilities of the states that follow state i. States that are visited most often in the long run
        come first.
    emissionprob_ : array of shape (n_components, n_features)
        Row i: the probabilities of the symbols in state i.
    startprob_ : array of shape (n_components,)
        The stationary distribution for one sequence; for several, what their beginnings tell.
    transmat_standard_errors_, emissionprob_standard_errors_, startprob_standard_errors_ : as the parameters
        Where `n_blocks` asks for them; NaN for entries held at 0 or 1 with and without each block. Those of
        `startprob_`, where it comes from beginnings of sequences (of several, or after steps of `polish`), are NaN
        unless a sequence begins in every block, for which there must be as many sequences as blocks: otherwise blocks
        of time leave out beginnings unevenly.
    diagnostics_ : Diagnostics
        How well the data determines the model.
    n_components_ : int
        Number of states.
    n_features : int
        Number of symbols.
    symbols_ : array of shape (n_features,)
        What the columns of `emissionprob_` stand for: 0, 1, ..., or the strings in their order.

    See Also
    --------
    SphericalGaussianMixture : Samples without an order.
    MultiviewMixture : Three views of a hidden class.

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
        polish: int = 10,
        n_blocks: int = 0,
        random_state: int | None = None,
    ) -> None:
        super().__init__(n_components, method=method, polish=polish, random_state=random_state)
        self.n_blocks = n_blocks

    def fit(self, X: Any, lengths: Any = None) -> Self:  # noqa: N803
        """Estimate the model from symbols 0, 1, ... or strings.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1), or list of sequences
            All symbols in a row, or sequences of symbols. Or in parts, each a sequence or a list of sequences: a dask
            bag or array, a list of delayed parts, a function that returns an iterator over parts, or an iterator, with
            which `polish` must be zero. They are read once for the moments, and once more for every step of `polish`.
        lengths : sequence of int, optional
            Where all symbols are in a row, how many of them belong to each sequence; by default all to one.

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
        >>> HiddenMarkov(2, polish=0, random_state=0).fit(symbols).transmat_.shape
        (2, 2)
        """
        parts = sequences_in_parts(X, lengths)
        warn_caller(self.learn(split_sequences(X, lengths) if parts is None else parts))
        return self

    def partial_fit(self, X: Any, lengths: Any = None) -> Self:  # noqa: N803
        """Add sequences to those seen so far and estimate again, by moments alone.

        What chunks there are, and in which order they come, makes no difference; a sequence that is cut in two loses
        the triples at the cut.

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
        >>> model = HiddenMarkov(2, polish=0, random_state=0)
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

    def moments(self, data: list[np.ndarray] | Parts) -> ChainMoments:
        """Return the moments of sequences of symbols, or of parts, which are read in one pass."""
        if isinstance(data, Parts):
            self._check_reads(data)
            found = self._of_blocks(data.reduce(counts_of_part, self.n_blocks, numbered=True))
            return replace(found, parts=None if data.once else data)
        found = self._of_blocks(Blocks.of(ChainSums.empty(), data, self.n_blocks))
        return replace(found, sequences=CutSequences.of(numbered(data, found.counts.symbols), self.n_asked()))

    def _of_blocks(self, blocks: Blocks) -> ChainMoments:
        """Return the moments of counts over all sequences, which alone are kept."""
        sums = blocks.total()
        self._check_blocks(sums.size)
        return replace(self._moments_of(sums), blocks=blocks, seen=Blocks({0: sums}))

    def _checked_part(self, raw: list[np.ndarray], *, first: bool) -> list[np.ndarray]:
        """Return sequences of symbols, which are checked before."""
        return raw

    def _with_part(self, seen: Blocks | None, part: list[np.ndarray]) -> Blocks:
        """Return the counts with sequences added."""
        if seen is None:
            return Blocks.of(ChainSums.empty(), part, self.n_blocks)
        self._check_same_blocks(seen)
        return seen.with_part(part)

    def _moments_of_seen(self, seen: Blocks, part: list[np.ndarray]) -> ChainMoments:
        """Return the moments after sequences were added."""
        return replace(self._moments_of(seen.total()), blocks=seen, seen=seen)

    def _with_others(self, others: ChainMoments, whole: ChainMoments, block: int, found: Chain) -> ChainMoments:
        """Return moments without a block, with all sequences, in which steps pass over it."""
        left_out = block, self.n_blocks
        return replace(others, sequences=whole.sequences, parts=whole.parts, left_out=left_out)

    def _moments_of(self, sums: ChainSums, like: ChainMoments | None = None) -> ChainMoments:
        """Return the moments that counts of symbols make."""
        k, occurring = self.n_asked(), sums.symbols.size
        if k > occurring:
            raise UndeterminedError(f"n_components must be at most {occurring}, the number of symbols; got {k}")
        counts = sums.finish() if like is None else with_symbols_of(sums.finish(), like.counts)
        # Counts have variances in proportion to their means: divided by roots of frequencies, nearly equal ones.
        shares = counts.numbers / counts.numbers.sum()
        scales = [np.sqrt(np.bincount(row, weights=shares, minlength=occurring)) for row in counts.triples]
        size, noise = correlation(counts, scales, k)
        # Methods for orthogonal factors are given views to whiten by.
        mapped = MappedProblem.of(views_of(counts, scales), k) if self.strategy().needs_orthogonal else None
        return ChainMoments(
            problem=scaled_problem(counts, scales, k) if mapped is None else mapped.problem,
            complaints=hidden_component(size, noise, k),
            hides_component=is_hidden(size, noise, k),
            counts=counts,
            beginnings=counts.n_sequences > 0 and (counts if like is None else like.counts).n_sequences > 1,
            scales=scales,
            correlation=size,
            noise=noise,
            mapped=mapped,
        )

    def parameters(self, fit: Factorization, moments: ChainMoments) -> Chain:
        """Return start, transitions and emissions."""
        counts, scales, k = moments.counts, moments.scales, fit.rank
        second, third = moments.factors(fit)
        # One state shows symbols as often as they occur; of several, none need do so.
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
        if moments.beginnings:
            start = mixture_weights(emissions, counts.firsts / counts.n_sequences)
        shown = np.full((k, counts.symbols.size), 1e-12 / counts.symbols.size)
        shown[:, counts.seen] = emissions.T
        shown /= shown.sum(axis=1, keepdims=True)
        return Chain(
            weights=visited, startprob=start, transmat=transitions.T, emissionprob=shown, diagnostics=diagnostics
        )

    def polished(self, components: Chain, moments: ChainMoments) -> Chain:
        """Return the model after steps of Baum and Welch, where sequences are at hand, or can be read."""
        at_hand = moments.sequences is not None or moments.parts is not None
        return super().polished(components, moments) if at_hand else components

    def em_step(self, components: Chain, moments: ChainMoments) -> Chain:
        """Return the model after one step of Baum and Welch."""
        found = components.startprob, components.transmat, components.emissionprob
        symbols, left_out = moments.counts.symbols, moments.left_out
        if moments.sequences is not None:
            kept = kept_symbols(moments.sequences.lengths, left_out)
            sums = baum_welch_sums(moments.sequences, *found, kept=kept)
        elif moments.parts is not None:
            sums = moments.parts.reduce(steps_of_part, symbols, left_out, *found, numbered=True).values
        start, transitions, emissions = from_baum_welch_sums(*sums)
        visited = stationary(transitions.T)
        return replace(components, weights=visited, startprob=start, transmat=transitions, emissionprob=emissions)

    def keep(self, components: Chain, moments: ChainMoments) -> None:
        """Set the attributes of hmmlearn, what the symbols are, and counts to which `partial_fit` adds."""
        self._keep_errors(components, moments)
        self.startprob_, self.transmat_ = components.startprob, components.transmat
        self.emissionprob_, self.diagnostics_ = components.emissionprob, components.diagnostics
        self.n_features, self.symbols_ = moments.counts.symbols.size, moments.counts.symbols
        self._seen = moments.seen

    def _standard_errors(self, found: Chain, moments: ChainMoments) -> dict[str, Any]:
        """Return standard errors by name."""
        errors = super()._standard_errors(found, moments)
        steps = self.polish and (moments.sequences is not None or moments.parts is not None)
        blocks = {} if moments.blocks is None else moments.blocks.sums
        uneven = any(sums.n_sequences == 0 for sums in blocks.values())
        if errors and uneven and (steps or moments.counts.n_sequences > 1):
            errors["startprob"] = np.full_like(found.startprob, np.nan)
        return errors
