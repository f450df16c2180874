"""Hidden Markov models by moments of three symbols in a row."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from codiag._factorization import Factorization
from codiag._factorize import as_method, solve
from codiag._problem import Problem
from codiag._validation import as_number
from codiag.models._base import as_seed
from codiag.models._sampling_noise import random_signs, warn_if_hidden, weakest_direction
from codiag.models._second_moment import by_weight, component_errors, reordered
from codiag.models._sequences import known_symbols, numbered, split_sequences
from codiag.models._simplex import mixture_weights, on_simplex
from codiag.models._view_moments import ViewMoments, estimate_views
from codiag.tensors import CrossMomentTensor, SparseTensor

BLOCKS = 32
"""Parts of a chain that are taken for independent of each other, where its own sampling noise is told."""


class HiddenMarkov(BaseEstimator):
    r"""A hidden Markov model over symbols, by the method of moments.

    Given the state at the middle of three symbols in a row they are independent:
    :math:`E[x_1 \otimes x_2 \otimes x_3] = \sum_h \omega_h A_h \otimes O_h \otimes (O T)_h`. The second factor is the
    emissions, and :math:`T = O^+ C` with the third.

    Names and conventions are those of hmmlearn: symbols are whole numbers from zero, one sequence after the other with
    their lengths. A list of sequences, and strings as symbols, are taken as well.

    Parameters
    ----------
    n_components : int
        Number of states; at most the number of symbols.
    method : Method or str, optional
        How the moment is factorized; by default `codiag.methods.Auto`.
    polish : int
        Steps of Baum and Welch afterwards; zero is the pure method of moments.
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
    diagnostics_ : dict
    n_features : int
        Number of symbols.
    symbols_ : array of shape (n_features,)
        What the columns of `emissionprob_` stand for: 0, 1, ..., or the strings in their order.

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

    def __init__(
        self, n_components: int = 2, *, method: Any = None, polish: int = 10, random_state: int | None = None
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.polish = polish
        self.random_state = random_state

    def fit(self, X: Any, lengths: Any = None) -> HiddenMarkov:  # noqa: N803
        """Estimate the model from symbols 0, 1, ... or strings.

        Parameters
        ----------
        X : array of shape (n,) or (n, 1), or list of sequences
            All symbols in a row, or sequences of symbols.
        lengths : sequence of int, optional
            Where all symbols are in a row, how many of them belong to each sequence; by default all to one.
        """
        as_number("n_components", self.n_components, integer=True)
        as_number("polish", self.polish, integer=True, zero=True)
        seed = as_seed(self.random_state)
        raw = split_sequences(X, lengths)
        symbols = known_symbols(raw)
        sequences = numbered(raw, symbols)
        seen = np.unique(np.concatenate(sequences))
        if self.n_components > seen.size:
            raise ValueError(
                f"n_components must be at most {seen.size}, the number of symbols; got {self.n_components}"
            )
        start, transitions, shown, found = estimate_chain(
            [np.searchsorted(seen, sequence) for sequence in sequences], seen.size, self.n_components, self.method, seed
        )
        emissions = np.full((self.n_components, symbols.size), 1e-12 / symbols.size)
        emissions[:, seen] = shown
        emissions /= emissions.sum(axis=1, keepdims=True)
        for _ in range(self.polish):
            start, transitions, emissions = _baum_welch(sequences, start, transitions, emissions)
        order = by_weight(_stationary(transitions.T))
        self.startprob_, self.transmat_ = start[order], transitions[order][:, order]
        self.emissionprob_ = emissions[order]
        self.n_features, self.symbols_ = symbols.size, symbols
        self.diagnostics_ = reordered(found, order)
        return self

    def score(self, X: Any, lengths: Any = None) -> float:  # noqa: N803
        """Return the log-likelihood of all sequences."""
        check_is_fitted(self)
        parameters = self.startprob_, self.transmat_, self.emissionprob_
        return sum(float(np.sum(np.log(_forward(s, *parameters)[1]))) for s in self._sequences(X, lengths))

    def predict(self, X: Any, lengths: Any = None) -> np.ndarray:  # noqa: N803
        """Return the most probable path of states, after Viterbi."""
        check_is_fitted(self)
        logs = [np.log(np.maximum(p, 1e-300)) for p in (self.startprob_, self.transmat_, self.emissionprob_)]
        return np.concatenate([_viterbi(sequence, *logs) for sequence in self._sequences(X, lengths)])

    def predict_proba(self, X: Any, lengths: Any = None) -> np.ndarray:  # noqa: N803
        """Return the probability of every state at every time."""
        check_is_fitted(self)
        parameters = self.startprob_, self.transmat_, self.emissionprob_
        return np.concatenate([_posteriors(s, *parameters)[0] for s in self._sequences(X, lengths)])

    def to_hmmlearn(self) -> Any:
        """Return a ``hmmlearn.hmm.CategoricalHMM`` with these parameters, fit to be used or trained further."""
        from hmmlearn.hmm import CategoricalHMM

        check_is_fitted(self)
        model = CategoricalHMM(n_components=self.n_components, init_params="")
        model.n_features = self.n_features
        model.startprob_, model.transmat_ = self.startprob_.copy(), self.transmat_.copy()
        model.emissionprob_ = self.emissionprob_.copy()
        return model

    def _sequences(self, X: Any, lengths: Any) -> list[np.ndarray]:  # noqa: N803
        return numbered(split_sequences(X, lengths), self.symbols_)


def estimate_chain(
    sequences: list[np.ndarray], n_symbols: int, k: int, method: Any, seed: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
    """Return start (k,), transitions (k, k), emissions (k, symbols) and diagnostics, by moments alone."""
    windows = [np.stack([s[:-2], s[1:-1], s[2:]]) for s in sequences if s.size >= 3]
    if not windows:
        raise ValueError("X must hold a sequence of three symbols or more; all are shorter")
    triples = np.concatenate(windows, axis=1)
    # Counts have variances in proportion to their means: divided by roots of frequencies, nearly equal ones.
    scales = [np.sqrt(np.bincount(row, minlength=n_symbols) / row.size) for row in triples]
    values = 1 / (triples.shape[1] * np.prod([scale[row] for scale, row in zip(scales, triples, strict=True)], axis=0))
    size, noise = _correlation(triples, scales, k)
    warn_if_hidden(size, noise, k)
    second, third, fit = _emissions(triples, values, scales, k, method, seed)
    # One state shows symbols as often as they occur; of several, none need do so.
    frequencies = np.bincount(np.concatenate(sequences), minlength=n_symbols)[:, None]
    emissions, clipped = on_simplex(frequencies if k == 1 else scales[1][:, None] * second)
    following, _ = on_simplex(scales[2][:, None] * third)
    raw = np.linalg.lstsq(emissions, following, rcond=None)[0]  # T = O^+ C, columns of sum one
    transitions, moved = on_simplex(raw)
    stationary = _stationary(transitions)
    sizes = np.linalg.svd(emissions, compute_uv=False)
    found = {
        "weakest_correlation": size,
        "sampling_noise": noise,
        "relative_error": fit.relative_error,
        "clipped_mass": max(clipped, moved),
        "emission_condition": float(sizes[0] / max(sizes[-1], 1e-300)),
        "core_errors": component_errors(fit, np.arange(k)),
        "converged": fit.converged,
    }
    start = stationary
    if len(sequences) > 1:  # their beginnings tell
        first = np.bincount([sequence[0] for sequence in sequences], minlength=n_symbols) / len(sequences)
        start = mixture_weights(emissions, first)
    return start, transitions.T, emissions.T, found


def _emissions(
    triples: np.ndarray, values: np.ndarray, scales: list[np.ndarray], k: int, method: Any, seed: int | None
) -> tuple[np.ndarray, np.ndarray, Factorization]:
    """Return the second and third factor (symbols, k) of the scaled moment, and the fit they come from."""
    strategy = as_method(method)
    if strategy.needs_orthogonal:  # there are views to whiten by
        n = triples.shape[1]
        places = np.arange(n)
        shapes = [(n, scale.size) for scale in scales]
        views = [
            sparse.csr_array((1 / scale[row], (places, row)), shape=shape)
            for scale, row, shape in zip(scales, triples, shapes, strict=True)
        ]
        _, means, fit = estimate_views(ViewMoments(CrossMomentTensor(*views)), k, method, seed)
        return means[1].T, means[2].T, fit
    moment = SparseTensor(triples, values, tuple(scale.size for scale in scales))
    fit = solve(Problem(moment, k, symmetric=False), strategy, seed)
    return np.asarray(fit.factors[1]), np.asarray(fit.factors[2]), fit


def _stationary(transitions: np.ndarray) -> np.ndarray:
    """Return the distribution that transitions, columns of sum one, leave as it is; of several, the least."""
    k = transitions.shape[0]
    system = np.concatenate([transitions - np.eye(k), np.ones((1, k))])
    found = np.maximum(np.linalg.lstsq(system, np.append(np.zeros(k), 1.0), rcond=None)[0], 0)
    return found / found.sum()


def _correlation(triples: np.ndarray, scales: list[np.ndarray], k: int) -> tuple[float, float]:
    """Return the k-th singular value of scaled pairs of neighbours, and its sampling noise."""
    left, right = triples[0], triples[1]
    values = 1 / (left.size * scales[0][left] * scales[1][right])
    shape = scales[0].size, scales[1].size

    def pairs(signs: np.ndarray | float) -> sparse.csr_array:
        return sparse.csr_array((signs * values, (left, right)), shape=shape)

    signed = [pairs(signs) for signs in random_signs(left.size, n_blocks=BLOCKS)]
    return weakest_direction(pairs(1.0), signed, k)


def _forward(
    symbols: np.ndarray, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return filtered state probabilities and the predictive probability of every symbol."""
    likely = emissions.T[symbols]
    filtered, scales = np.empty_like(likely), np.empty(symbols.size)
    current = start
    for time in range(symbols.size):
        current = (current if time == 0 else current @ transitions) * likely[time]
        scales[time] = max(current.sum(), 1e-300)
        current = current / scales[time]
        filtered[time] = current
    return filtered, scales


def _posteriors(
    symbols: np.ndarray, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return smoothed state probabilities, and expected transitions."""
    filtered, scales = _forward(symbols, start, transitions, emissions)
    likely = emissions.T[symbols] / scales[:, None]
    backward = np.ones_like(filtered)
    for time in range(symbols.size - 2, -1, -1):
        backward[time] = transitions @ (likely[time + 1] * backward[time + 1])
    pairs = transitions * (filtered[:-1].T @ (likely[1:] * backward[1:]))
    return filtered * backward, pairs


def _baum_welch(
    sequences: list[np.ndarray], start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    first, moves, shown = np.zeros_like(start), np.zeros_like(transitions), np.zeros_like(emissions)
    for symbols in sequences:
        states, pairs = _posteriors(symbols, start, transitions, emissions)
        first, moves = first + states[0], moves + pairs
        for state in range(start.size):
            shown[state] += np.bincount(symbols, states[:, state], minlength=emissions.shape[1])
    rows = [matrix + 1e-10 for matrix in (first[None], moves, shown)]
    normal = [matrix / matrix.sum(axis=1, keepdims=True) for matrix in rows]
    return normal[0][0], normal[1], normal[2]


def _viterbi(symbols: np.ndarray, start: np.ndarray, transitions: np.ndarray, emissions: np.ndarray) -> np.ndarray:
    """Return the best path, all probabilities given as logarithms."""
    likely = emissions.T[symbols]
    best = start + likely[0]
    back = np.empty((symbols.size, start.size), dtype=np.intp)
    for time in range(1, symbols.size):
        options = best[:, None] + transitions
        back[time] = np.argmax(options, axis=0)
        best = options[back[time], np.arange(start.size)] + likely[time]
    path = np.empty(symbols.size, dtype=np.intp)
    path[-1] = np.argmax(best)
    for time in range(symbols.size - 1, 0, -1):
        path[time - 1] = back[time, path[time]]
    return path
