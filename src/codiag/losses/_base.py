"""The base class of losses, and the losses that users name."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from codiag._arrays import Array


@dataclass(frozen=True, eq=False)
class Loss(ABC):
    r"""The noise distribution of entries around a sum of components; pass it to `codiag.factorize` as ``loss=``.

    With entries :math:`x` and a model :math:`\eta`, which is the sum of components, a fit minimizes
    :math:`\sum_j o_j\, \ell(x_j, \eta_j)` over observed entries j with weights :math:`o_j`. Twice the value is the
    deviance: zero where the model is best for the entry. A subclass implements `value`, `derivative`,
    `fisher_information`, `mean` and `sample`; the rest has defaults.

    See Also
    --------
    codiag.losses.Poisson : Counts.
    codiag.losses.Bernoulli : Binary data.
    codiag.losses.Huber : Entries with outliers.
    codiag.factorize : Takes a loss.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.losses import Poisson
    >>> Poisson().derivative(np.array([3.0, 0.0]), np.array([3.0, 2.0])).tolist()
    [0.0, 1.0]
    """

    zero_gradient: ClassVar[float | None] = None
    """Derivative of the value at entries of zero, if it is the same for every model; otherwise None.

    Then the zeros of a sparse tensor need not be visited: their sum is a product of column sums.
    """
    scales_with_mean: ClassVar[bool] = False
    """Whether the variance of an entry grows with its mean, so that starts divide each row by the root of its sum."""
    fixed_dispersion: ClassVar[bool] = True
    """Whether the loss says how large variances are, and not only how large relative to each other."""

    @property
    def needs_nonnegative(self) -> bool:
        """Whether the model must not be negative; then factors are not, unless constraints say so anyway.

        Examples
        --------
        >>> from codiag.losses import Poisson
        >>> Poisson().needs_nonnegative, Poisson("log").needs_nonnegative
        (True, False)
        """
        return False

    @property
    def infinite_at(self) -> tuple[float, ...]:
        """Entries for which the best model is infinite: if components can fit them alone, there is no best fit.

        Examples
        --------
        >>> from codiag.losses import Bernoulli, Poisson
        >>> Bernoulli().infinite_at, Poisson().infinite_at
        ((0.0, 1.0), ())
        """
        return ()

    @property
    def has_covariance(self) -> bool:
        """Whether noise is correlated, or differs between indices of a mode: then the tensor is whitened.

        Examples
        --------
        >>> from codiag.losses import Gaussian, Poisson
        >>> Gaussian("modes").has_covariance, Poisson().has_covariance
        (True, False)
        """
        return False

    def covariances(self, shape: tuple[int, ...]) -> list[np.ndarray] | None:
        """Return the covariances of the noise along each mode; None if they are to be estimated, or there are none.

        Parameters
        ----------
        shape : tuple of int
            Of the tensor.

        Returns
        -------
        list of arrays of shape (d_m, d_m), or None
            One for each mode.

        Examples
        --------
        >>> from codiag.losses import Poisson
        >>> Poisson().covariances((3, 4, 5)) is None
        True
        """
        return None

    @abstractmethod
    def value(self, data: Array, model: Array) -> Array:
        """Return half the deviance of every entry; infinite where the model excludes the entry.

        Parameters
        ----------
        data, model : arrays of one shape
            Entries, and the sum of components.

        Returns
        -------
        array of the same shape
            Never negative.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.losses import Poisson
        >>> Poisson().value(np.array([3.0, 0.0]), np.array([3.0, 2.0])).tolist()
        [0.0, 2.0]
        """

    @abstractmethod
    def derivative(self, data: Array, model: Array) -> Array:
        """Return the derivative of `value` by the model.

        Parameters
        ----------
        data, model : arrays of one shape
            Entries, and the sum of components.

        Returns
        -------
        array of the same shape
            Finite wherever the value is.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.losses import Poisson
        >>> Poisson().derivative(np.array([1.0]), np.array([2.0])).tolist()
        [0.5]
        """

    @abstractmethod
    def fisher_information(self, data: Array, model: Array) -> Array:
        """Return the expected curvature of `value`: the Fisher information of an entry about the model.

        Parameters
        ----------
        data, model : arrays of one shape
            Entries, NaN for missing ones, and the sum of components. Most losses need the model alone.

        Returns
        -------
        array of the same shape
            Positive.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.losses import Poisson
        >>> Poisson().fisher_information(np.array([1.0]), np.array([2.0])).tolist()
        [0.5]
        """

    def hessian_bound(self, data: Array, model: Array) -> Array:
        """Return the weights of entries in steps: by default the information.

        Parameters
        ----------
        data, model : arrays of one shape
            Entries, and the sum of components.

        Returns
        -------
        array of the same shape
            Not negative. It decides how fast steps converge, not where.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.losses import Poisson
        >>> Poisson().hessian_bound(np.array([3.0]), np.array([2.0])).tolist()
        [0.75]
        """
        return self.fisher_information(data, model)

    @abstractmethod
    def mean(self, model: Array) -> Array:
        """Return the mean of entries, given the sum of components: the inverse of the link.

        Parameters
        ----------
        model : array
            Sums of components.

        Returns
        -------
        array of the same shape
            Expected entries.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.losses import Bernoulli
        >>> Bernoulli("odds").mean(np.array([1.0, 3.0])).tolist()
        [0.5, 0.75]
        """

    def inverse_mean(self, mean: float) -> float:
        """Return the sum of components that gives a mean: by default the mean itself.

        Parameters
        ----------
        mean : float
            Expected entry.

        Returns
        -------
        float
            Such that `Loss.mean` gives it back.

        Examples
        --------
        >>> from codiag.losses import Bernoulli
        >>> Bernoulli().inverse_mean(0.5)
        0.0
        """
        return mean

    @abstractmethod
    def sample(self, model: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Draw entries around a model.

        Parameters
        ----------
        model : numpy.ndarray
            Sums of components.
        rng : numpy.random.Generator
            Where random numbers come from.

        Returns
        -------
        numpy.ndarray of float, of the same shape
            One entry for each of the model.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.losses import Poisson
        >>> Poisson().sample(np.full(3, 1e-9), np.random.default_rng(0)).tolist()
        [0.0, 0.0, 0.0]
        """

    def working_response(self, data: Array) -> Array:
        """Return the model that entries suggest by themselves, for a start by least squares: by default the entries.

        Parameters
        ----------
        data : array
            Entries.

        Returns
        -------
        array of the same shape
            Finite.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.losses import Bernoulli
        >>> Bernoulli().working_response(np.array([0.5, 1.0])).tolist()
        [0.0, 2.0]
        """
        return data

    def fit_dispersion(self, data: np.ndarray, model: np.ndarray, degrees_of_freedom: float) -> Loss:
        """Return the loss with numbers that were left open estimated from a fit: by default itself.

        Parameters
        ----------
        data, model : arrays of shape (n,)
            Observed entries, and the fit.
        degrees_of_freedom : float
            Residual degrees of freedom: the number of entries minus that of parameters.

        Returns
        -------
        Loss
            One that leaves no number open.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.losses import NegativeBinomial
        >>> counts = np.array([0.0, 8.0, 1.0, 7.0])
        >>> round(NegativeBinomial().fit_dispersion(counts, np.full(4, 4.0), 4).dispersion, 3)
        0.531
        """
        return self

    def for_unlisted_zeros(self) -> Loss:
        """Return the loss that the name of this one stands for if the zeros of a tensor are too many to be visited.

        Returns
        -------
        Loss
            This one, if there is no other.

        Examples
        --------
        >>> from codiag.losses import Bernoulli
        >>> Bernoulli().for_unlisted_zeros()
        Bernoulli(link='rate')
        """
        return self

    def check(self, least: float, largest: float) -> None:  # noqa: B027
        """Raise if entries cannot have been drawn from the loss.

        Parameters
        ----------
        least, largest : float
            Of the observed entries.

        Examples
        --------
        >>> from codiag.losses import Poisson
        >>> Poisson().check(0.0, 17.0)
        """
