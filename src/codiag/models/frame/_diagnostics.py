"""What tells a user when not to trust an estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from codiag.result import Factorization


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Diagnostics(Mapping[str, Any]):
    """How well the data determines a model; a mapping, too: ``found["clipped_mass"]`` is ``found.clipped_mass``.

    A value is None where a model does not have it.

    Attributes
    ----------
    relative_error : float
        Of the fit to the moment that was factorized.
    converged : bool
        Whether that fit, or expectation maximization where it ends the estimate, reached its tolerance.
    core_errors : array of shape (n_components,) or (3, n_components)
        Standard errors of the unit factors of the moment, as the residual of the fit shows them; sampling makes them
        larger. None where there is no residual: the moment of two components has no more entries than parameters.
    clipped_mass : float
        Share of the parameters that had to be changed to make them probabilities.
    second_moment : list of float
        Its leading eigenvalues, one more than there are components.
    second_moment_gap : float
        Ratio of the last eigenvalue that belongs to a component to the next.
    weakest_correlation : float
        The last singular value of the second moment of two views that belongs to a component.
    sampling_noise : float
        What sampling alone would show of that last value. One that is not far above belongs to no component.
    weights_sum : float
        Sum of the weights before they were divided by it; far from one, views are not independent.
    emission_condition : float
        Condition number of the emission probabilities of a hidden Markov model.
    init : str
        Where expectation maximization started: "moments", "majority" or "given".
    reason : str
        Why it did not start from moments.
    n_partitions : int
        Random partitions of workers or nodes that were averaged.
    em_rounds : int
        Rounds of expectation maximization.
    log_likelihood : list of float
        After each of them.
    agreement : float
        Mean cosine of the components of single partitions with their average.
    standard_error : float
        Of a membership, as partitions differ; None where there was only one.
    isolated : int
        Nodes without links.

    See Also
    --------
    codiag.Factorization.diagnose : What is said about a fit of a tensor.
    MomentModel : Keeps one in ``diagnostics_``.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import Diagnostics
    >>> found = Diagnostics(relative_error=0.1, core_errors=np.array([0.2, 0.3]))
    >>> found["relative_error"], found.reordered(np.array([1, 0])).core_errors.tolist(), found.clipped_mass
    (0.1, [0.3, 0.2], None)
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
        """Return what a fit tells, and whatever else is known.

        Parameters
        ----------
        fit : Factorization
            Of the moment.
        **known
            Other fields.

        Returns
        -------
        Diagnostics
            With the relative error of the fit, whether it converged, and the other fields.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.models import Diagnostics
        >>> fit = codiag.factorize(np.ones((3, 4, 5)), 1, seed=0)
        >>> Diagnostics.of(fit, clipped_mass=0.0).converged
        True
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            errors = fit.standard_errors
        kept = errors if np.all(np.isfinite(errors)) else None
        return cls(**{"relative_error": fit.relative_error, "converged": fit.converged, "core_errors": kept} | known)

    def reordered(self, order: np.ndarray) -> Diagnostics:
        """Return the same with what belongs to single components in a new order of these.

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
        >>> from codiag.models import Diagnostics
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
