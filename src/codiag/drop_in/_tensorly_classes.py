"""``CP``, ``CP_NN`` and ``CP_NN_HALS`` of TensorLy: functions as objects that store their arguments."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, ClassVar

from codiag.drop_in._tensorly import non_negative_parafac, non_negative_parafac_hals, parafac


class Decomposition:
    """Base class: stores the arguments of a function, except for the tensor, and its result."""

    function: ClassVar[Callable[..., Any]]
    """The function, whose arguments those of the class are, by the same names and with the same defaults."""
    order: ClassVar[tuple[str, ...]] = ()
    """The names of the arguments, if their order is not that of the function."""
    __signature__: ClassVar[inspect.Signature]
    rank: float | str
    decomposition_: Any
    errors_: list[float]

    def __init_subclass__(cls) -> None:
        accepted = inspect.signature(cls.function).parameters
        names = cls.order or [name for name in accepted if name not in ("tensor", "tensor_slices", "return_errors")]
        cls.__signature__ = inspect.Signature([accepted[name] for name in names])

    def __init__(self, *args: Any, **options: Any) -> None:
        given = self.__signature__.bind(*args, **options)
        given.apply_defaults()
        vars(self).update(given.arguments)

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
        function = type(self).function
        function = getattr(sys.modules[function.__module__], function.__name__)  # which TensorLy's tests replace
        self.decomposition_, self.errors_ = function(tensor, **(options | {"return_errors": True}))
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

    function = staticmethod(parafac)

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

    function = staticmethod(non_negative_parafac)


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

    function = staticmethod(non_negative_parafac_hals)
    order = ("rank", "n_iter_max", "init", "svd", "tol", "sparsity_coefficients", "fixed_modes", "nn_modes", "exact",
             "verbose", "normalize_factors", "cvg_criterion", "random_state")  # fmt: skip
