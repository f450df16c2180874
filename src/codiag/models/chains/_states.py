"""Predictions of a hidden Markov model: scores, states and samples, with the names and conventions of hmmlearn."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from codiag._checks import as_generator, as_number
from codiag.models.base import Model
from codiag.models.chains._forward_backward import forward_backward, logarithms, path_log_probability, viterbi
from codiag.models.chains._moments import stationary
from codiag.models.chains._sequences import numbered, split_sequences


class HiddenStates(Model):
    """Scores, states and samples of a model that has `startprob_`, `transmat_`, `emissionprob_` and `symbols_`."""

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


def check_no_target(y: object) -> None:
    """Raise if there is a target; hmmlearn has the lengths in its place."""
    if y is not None:
        raise ValueError("y must be None, as states are not given; for lengths of sequences give lengths=...")


def _ladder(probabilities: np.ndarray) -> list[float]:
    """Return cumulative probabilities without the last, so that bisection of a draw gives its index."""
    steps: list[float] = np.cumsum(probabilities)[:-1].tolist()
    return steps
