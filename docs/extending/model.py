r"""A latent-variable model of your own, in one file: a mixture of independent Poisson counts.

**The model.** Every sample belongs to a hidden component h, drawn with probability :math:`w_h`; given h, its counts
:math:`x_1, \dots, x_d` are independent Poisson variables with rates :math:`\lambda_{h1}, \dots, \lambda_{hd}`:
transcripts of cell types, events of kinds of days, purchases of kinds of customers.

**Step 1: a moment whose components are the parameters.** For a Poisson variable :math:`E[x (x - 1)] = \lambda^2` and
:math:`E[x (x - 1) (x - 2)] = \lambda^3`. So *factorial* moments, in which a count is multiplied by what is left of it,
have no special diagonal:

.. math:: M_3 = \sum_h w_h\, \lambda_h \otimes \lambda_h \otimes \lambda_h, \qquad
          M_2 = \sum_h w_h\, \lambda_h \lambda_h^\top, \qquad M_1 = \sum_h w_h \lambda_h.

**Step 2: from data to a problem.** A subclass of `codiag.extending.MomentModel` implements ``moments(data)``, which
checks the data and returns `Moments` with a `codiag.Problem`. Here the tensor is the raw third moment, contracted
sample by sample, plus a sparse tensor that corrects the entries with repeated indices; neither is formed. The second
moment goes into the problem, for methods that need orthogonal factors. A subclass of `Moments` carries what is needed
later.

**Step 3: from factors to parameters.** ``parameters(fit, moments)`` returns a `Components`, whose fields have one row
for each component. With unit factors u and :math:`U^+` the pseudo-inverse of their matrix, :math:`m = U^+ M_1` is
:math:`w_h |\lambda_h|`, and the diagonal c of :math:`U^+ M_2 U^{+\top}` is :math:`w_h |\lambda_h|^2`; so
:math:`w = m^2 / c` and :math:`|\lambda| = c / m`.

**Step 4: maximize the likelihood.** ``em_step`` is one step of expectation maximization. With it, users can set
``max_iter=20``: the moments start near the right maximum of the likelihood, and the steps converge to it.

**What follows without further work.** Checks of ``n_components``, ``method``, ``max_iter`` and ``random_state``, any
method of factorization, the order of components by weight, the learned attributes ``weights_``, ``rates_`` and
``diagnostics_``, and the parameters of a scikit-learn estimator.

**How it is tested.** One line in ``MODELS`` of ``tests/cases.py`` runs every contract of models on it: the answer does
not depend on the seed, any method serves, errors fall like the root of the number of samples.

Run this file to see the errors with and without these steps: ``python docs/extending/model.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax
from sklearn.utils.validation import check_array, check_is_fitted

import codiag
from codiag.extending import Components, Diagnostics, MomentModel, Moments
from codiag.tensors import CrossMomentTensor, SparseTensor


@dataclass(frozen=True, eq=False, kw_only=True)
class CountMoments(Moments):
    """The problem, the counts it comes from, and their first two factorial moments."""

    counts: np.ndarray
    first: np.ndarray
    second: np.ndarray


@dataclass(frozen=True, eq=False, kw_only=True)
class PoissonComponents(Components):
    """Weights of the components, and in each row of `rates` the means of the counts of one."""

    rates: np.ndarray


class PoissonMixture(MomentModel):
    r"""A mixture of independent Poisson counts.

    Parameters
    ----------
    n_components, method, max_iter, random_state
        As in `codiag.extending.MomentModel`.

    Notes
    -----
    **Assumptions.** At most as many components as counts, with linearly independent rates.

    **Complexity.** A few passes over the counts.

    **Guarantees.** Errors that fall like :math:`1 / \sqrt n`, from every seed the same.

    **Limitations.** Fails where counts vary more than Poisson variables do: the surplus looks like components of its
    own.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> counts = rng.poisson(np.array([[9, 1, 1], [1, 1, 9]])[(rng.random(5000) < 0.3).astype(int)])
    >>> model = PoissonMixture(2, random_state=0).fit(counts)
    >>> model.weights_.round(1).tolist(), model.rates_.round().tolist()
    ([0.7, 0.3], [[9.0, 1.0, 1.0], [1.0, 1.0, 9.0]])
    """

    def moments(self, data: Any) -> CountMoments:
        counts = check_array(data, dtype=np.float64, ensure_min_samples=2, input_name="X")
        if np.any(counts < 0) or np.any(counts != np.round(counts)):
            raise ValueError("X must contain counts, whole numbers that are not negative")
        n, d = counts.shape
        if self.n_components > d:
            raise ValueError(f"n_components must be at most {d}, the number of counts; got {self.n_components}")
        first, raw = counts.mean(axis=0), counts.T @ counts / n
        (i, j), l = np.indices((d, d)).reshape(2, -1), np.arange(d)
        places = np.hstack([[i, i, j], [i, j, i], [j, i, i], [l, l, l]])
        values = np.concatenate([-raw[i, j], -raw[i, j], -raw[i, j], 2 * first])  # equal places are added up
        third = CrossMomentTensor(counts, counts, counts) + SparseTensor(places, values, (d, d, d), symmetric=True)
        second = raw - np.diag(first)
        problem = codiag.Problem(third, self.n_components, second_moment=second)
        return CountMoments(problem=problem, counts=counts, first=first, second=second)

    def parameters(self, fit: codiag.Factorization, moments: CountMoments) -> PoissonComponents:
        inverse = np.linalg.pinv(fit.factors[0])
        mass, square = inverse @ moments.first, np.diag(inverse @ moments.second @ inverse.T)
        weights = np.maximum(mass**2 / square, 1e-9)
        rates = np.maximum((fit.factors[0] * square / mass).T, 1e-9)
        return PoissonComponents(weights=weights / weights.sum(), rates=rates, diagnostics=Diagnostics.of(fit))

    def em_step(self, components: PoissonComponents, moments: CountMoments) -> PoissonComponents:
        shares = softmax(_joint(moments.counts, components.weights, components.rates), axis=1)
        mass = shares.sum(axis=0) + 1e-9
        return replace(
            components,
            weights=mass / mass.sum(),
            rates=np.maximum(shares.T @ moments.counts / mass[:, None], 1e-9),
        )

    def predict_proba(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the probability of each component for each sample, shape (n, n_components)."""
        check_is_fitted(self)
        return softmax(_joint(check_array(X, dtype=np.float64), self.weights_, self.rates_), axis=1)

    def score(self, X: Any, y: object = None) -> float:  # noqa: N803
        """Return the mean log-likelihood of samples, up to a constant of the data."""
        check_is_fitted(self)
        return float(np.mean(logsumexp(_joint(check_array(X, dtype=np.float64), self.weights_, self.rates_), axis=1)))


def _joint(counts: np.ndarray, weights: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """Return the logarithm of the probability of component and counts together, shape (n, n_components)."""
    return counts @ np.log(rates).T - rates.sum(axis=1) + np.log(weights)


def draw(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return counts of a mixture of three components, their rates and their weights."""
    weights, rates = np.array([0.5, 0.3, 0.2]), np.random.default_rng(10).gamma(0.5, 1.5, size=(3, 8))
    rng = np.random.default_rng(seed)
    return rng.poisson(rates[rng.choice(3, n, p=weights)]), rates, weights


def main(n: int = 5000) -> dict[str, float]:
    """Estimate a mixture from n samples by moments, and polished; return the relative errors of the rates."""
    counts, rates, weights = draw(n, seed=0)
    errors = {}
    for name, max_iter in (("moments", 0), ("moments, then 20 steps", 20)):
        model = PoissonMixture(3, max_iter=max_iter, random_state=0).fit(counts)
        errors[name] = float(np.linalg.norm(model.rates_ - rates[np.argsort(-weights)]) / np.linalg.norm(rates))
        print(f"{name:24s}error of the rates {errors[name]:.4f}, log-likelihood {model.score(counts):.4f}")
    return errors


if __name__ == "__main__":
    main()
