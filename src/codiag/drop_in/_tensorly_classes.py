"""``CP``, ``CP_NN`` and ``CP_NN_HALS`` of TensorLy: functions as objects that store their arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from codiag.drop_in import _tensorly


class Decomposition(ABC):
    """Base class: stores the arguments of a function, and its result."""

    rank: float | str
    decomposition_: Any
    errors_: list[float]

    def _keep(self, given: dict[str, Any]) -> None:
        """Set the arguments of ``__init__`` as attributes."""
        vars(self).update({name: value for name, value in given.items() if name != "self"})

    @abstractmethod
    def _decompose(self, tensor: Any, **options: Any) -> Any:
        """Return components and their relative errors, step by step."""

    def fit_transform(self, tensor: Any) -> Any:
        """Factorize a tensor, and return its components.

        Parameters
        ----------
        tensor : array
            As the function takes it.

        Returns
        -------
        CPTensor or Factorization
            The result of the function, which is also ``decomposition_``.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.drop_in import CP
        >>> weights, factors = CP(rank=1, random_state=0).fit_transform(np.ones((3, 4, 5)))
        >>> [factor.shape for factor in factors]
        [(3, 1), (4, 1), (5, 1)]
        """
        options = {name: value for name, value in vars(self).items() if not name.endswith("_")}
        self.decomposition_, self.errors_ = self._decompose(tensor, **options, return_errors=True)
        return self.decomposition_

    def fit(self, tensor: Any) -> Any:
        """Factorize a tensor, and store its components.

        Parameters
        ----------
        tensor : array
            As the function takes it.

        Returns
        -------
        Decomposition
            The object itself.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.drop_in import CP
        >>> weights, factors = CP(rank=1, random_state=0).fit(np.ones((3, 4, 5))).decomposition_
        >>> [factor.shape for factor in factors]
        [(3, 1), (4, 1), (5, 1)]
        """
        self.fit_transform(tensor)
        return self

    def __repr__(self) -> str:
        return f"Rank-{self.rank} Non-Negative CP decomposition."


class CP(Decomposition):
    """Do what ``tensorly.decomposition.CP`` does: `parafac` as an object that stores its arguments.

    Parameters
    ----------
    rank, n_iter_max, init, svd, normalize_factors, orthogonalise, tol, random_state, verbose : as in `parafac`
        Arguments of the function.
    sparsity, l2_reg, mask, cvg_criterion, fixed_modes, svd_mask_repeats, linesearch, callback : as in `parafac`
        Arguments of the function.

    Attributes
    ----------
    decomposition_ : CPTensor or Factorization
        What `parafac` returns.
    errors_ : list of float
        Relative errors after every step.

    See Also
    --------
    parafac : The function.
    codiag.models.CP : An estimator of scikit-learn for samples along the first mode.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import CP
    >>> weights, factors = CP(1, random_state=0).fit_transform(np.ones((3, 4, 5)))
    >>> [factor.shape for factor in factors]
    [(3, 1), (4, 1), (5, 1)]
    """

    def __init__(
        self,
        rank: float | str,
        n_iter_max: int = 100,
        init: Any = "svd",
        svd: str = "truncated_svd",
        normalize_factors: bool = False,
        orthogonalise: bool | int = False,
        tol: float = 1e-8,
        random_state: Any = None,
        verbose: int | bool = 0,
        sparsity: float | None = None,
        l2_reg: float = 0,
        mask: Any = None,
        cvg_criterion: str = "abs_rec_error",
        fixed_modes: Any = None,
        svd_mask_repeats: int = 5,
        linesearch: bool = False,
        callback: Callable[[Any, float], Any] | None = None,
    ) -> None:
        self._keep(locals())

    def _decompose(self, tensor: Any, **options: Any) -> Any:
        return _tensorly.parafac(tensor, **options)

    def __repr__(self) -> str:
        return f"Rank-{self.rank} CP decomposition."


class CP_NN(Decomposition):  # noqa: N801
    """Do what ``tensorly.decomposition.CP_NN`` does: `non_negative_parafac` as an object that stores its arguments.

    Parameters
    ----------
    rank, n_iter_max, init, svd, tol, random_state, verbose, normalize_factors, mask : as in `non_negative_parafac`
        Arguments of the function.
    cvg_criterion, fixed_modes : as in `non_negative_parafac`
        Arguments of the function.

    Attributes
    ----------
    decomposition_ : CPTensor or Factorization
        What `non_negative_parafac` returns.
    errors_ : list of float
        Relative errors after every step.

    See Also
    --------
    non_negative_parafac : The function.
    CP_NN_HALS : The class with constraints for each mode.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import CP_NN
    >>> weights, factors = CP_NN(1, random_state=0).fit_transform(np.ones((3, 4, 5)))
    >>> all((factor >= 0).all() for factor in factors)
    True
    """

    def __init__(
        self,
        rank: float | str,
        n_iter_max: int = 100,
        init: Any = "svd",
        svd: str = "truncated_svd",
        tol: float = 1e-6,
        random_state: Any = None,
        verbose: int | bool = 0,
        normalize_factors: bool = False,
        mask: Any = None,
        cvg_criterion: str = "abs_rec_error",
        fixed_modes: Any = None,
    ) -> None:
        self._keep(locals())

    def _decompose(self, tensor: Any, **options: Any) -> Any:
        return _tensorly.non_negative_parafac(tensor, **options)


class CP_NN_HALS(Decomposition):  # noqa: N801
    """Do what ``tensorly.decomposition.CP_NN_HALS`` does: `non_negative_parafac_hals` as an object.

    Parameters
    ----------
    rank, n_iter_max, init, svd, tol, sparsity_coefficients, fixed_modes, nn_modes : as in `non_negative_parafac_hals`
        Arguments of the function.
    exact, verbose, normalize_factors, cvg_criterion, random_state : as in `non_negative_parafac_hals`
        Arguments of the function.

    Attributes
    ----------
    decomposition_ : CPTensor or Factorization
        What `non_negative_parafac_hals` returns.
    errors_ : list of float
        Relative errors after every step.

    See Also
    --------
    non_negative_parafac_hals : The function.
    CP_NN : The class with a mask.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import CP_NN_HALS
    >>> weights, factors = CP_NN_HALS(1, random_state=0).fit_transform(np.ones((3, 4, 5)))
    >>> all((factor >= 0).all() for factor in factors)
    True
    """

    def __init__(
        self,
        rank: float | str,
        n_iter_max: int = 100,
        init: Any = "svd",
        svd: str = "truncated_svd",
        tol: float = 1e-7,
        sparsity_coefficients: Any = None,
        fixed_modes: Any = None,
        nn_modes: Any = "all",
        exact: bool = False,
        verbose: int | bool = False,
        normalize_factors: bool = False,
        cvg_criterion: str = "abs_rec_error",
        random_state: Any = None,
    ) -> None:
        self._keep(locals())

    def _decompose(self, tensor: Any, **options: Any) -> Any:
        return _tensorly.non_negative_parafac_hals(tensor, **options)
