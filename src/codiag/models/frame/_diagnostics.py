"""Diagnostics of an estimate: how well the data determines it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from codiag.result import Factorization


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Diagnostics(Mapping[str, Any]):
    """How well the data determines a model; also a mapping: ``diagnostics["isolated"]`` is ``diagnostics.isolated``.

    A value is None if the model does not have it.

    Attributes
    ----------
    relative_error : float
        Relative error of the fit to the moment.
    converged : bool
        Whether the fit of the moment reached its tolerance; if expectation maximization ends the estimate, whether that
        did.
    core_errors : array of shape (n_components,) or (3, n_components)
        Standard errors of the unit factors of the moment, estimated from the residual of the fit; sampling errors are
        larger. None if there is no residual: the moment of two components has no more entries than parameters.
    clipped_mass : float
        Share of the parameters that had to be changed to make them probabilities.
    second_moment : list of float
        Leading eigenvalues of the second moment, one more than there are components.
    second_moment_gap : float
        Eigenvalue of the last component, divided by the eigenvalue that follows.
    weakest_correlation : float
        Singular value of the last component in the second moment of two views.
    sampling_noise : float
        Size that an eigenvalue or singular value of the second moment can have by sampling alone. A component whose
        value is not far above it may not exist.
    weights_sum : float
        Sum of the weights before normalization; if it is far from one, views are not independent.
    emission_condition : float
        Condition number of the emission probabilities of a hidden Markov model.
    init : str
        Start of expectation maximization: "moments", "majority" or "given".
    reason : str
        Why expectation maximization did not start from moments.
    n_partitions : int
        Number of random partitions of workers or nodes over which estimates were averaged.
    em_rounds : int
        Number of iterations of expectation maximization.
    log_likelihood : list of float
        Log-likelihood after each iteration.
    agreement : float
        Mean cosine between the components of single partitions and their average.
    standard_error : float
        Standard error of a membership, from the differences between partitions; None if there was one partition.
    isolated : int
        Number of nodes without links.

    See Also
    --------
    codiag.Factorization.diagnose : Diagnostics of the fit of a tensor.
    MomentModel : Stores diagnostics in ``diagnostics_``.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.extending import Diagnostics
    >>> diagnostics = Diagnostics(relative_error=0.1, core_errors=np.array([0.2, 0.3]))
    >>> diagnostics["relative_error"], diagnostics.clipped_mass, diagnostics.reordered(np.array([1, 0])).core_errors
    (0.1, None, array([0.3, 0.2]))
    """

    relative_error: float | None = None
    converged: bool | None = None
    core_errors: np.ndarray | None = None
    clipped_mass: float | None = None
    second_moment: list[float] | None = None
    second_moment_gap: float | None = None
    weakest_correlation: float | None = None
    sampling_noise: float | None = None
    weights_sum: float | None = None
    emission_condition: float | None = None
    init: str | None = None
    reason: str | None = None
    n_partitions: int | None = None
    em_rounds: int | None = None
    log_likelihood: list[float] | None = None
    agreement: float | None = None
    standard_error: float | None = None
    isolated: int | None = None

    @classmethod
    def of(cls, fit: Factorization, **known: Any) -> Diagnostics:
        """Return the diagnostics of the fit of a moment, with further fields.

        Parameters
        ----------
        fit : Factorization
            Fit of the moment.
        **known
            Further fields.

        Returns
        -------
        Diagnostics
            Relative error and convergence of the fit, standard errors of its factors, and the further fields.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.extending import Diagnostics
        >>> fit = codiag.factorize(np.ones((3, 4, 5)), 1, seed=0)
        >>> Diagnostics.of(fit, clipped_mass=0.0).converged
        True
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = fit.standard_errors
        of_fit: dict[str, Any] = {"relative_error": fit.relative_error, "converged": fit.converged}
        of_fit["core_errors"] = errors if np.all(np.isfinite(errors)) else None
        return cls(**of_fit | known)

    def reordered(self, order: np.ndarray) -> Diagnostics:
        """Return the diagnostics with components in a new order.

        Parameters
        ----------
        order : array of int, shape (n_components,)
            Indices of the components, in the new order.

        Returns
        -------
        Diagnostics
            The same diagnostics.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.extending import Diagnostics
        >>> Diagnostics(core_errors=np.array([0.1, 0.2])).reordered(np.array([1, 0])).core_errors.tolist()
        [0.2, 0.1]
        """
        errors = self.core_errors
        return self if errors is None else replace(self, core_errors=errors[..., order])

    def __getitem__(self, name: str) -> Any:
        if name not in self.__dataclass_fields__:
            raise KeyError(name)
        return getattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return (field.name for field in fields(self))

    def __len__(self) -> int:
        return len(fields(self))

    def __repr__(self) -> str:
        return f"Diagnostics({', '.join(f'{name}={value!r}' for name, value in self.items() if value is not None)})"
