"""Other libraries' functions, done by codiag: change the import and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from codiag._validation import as_number
from codiag.factorization import Factorization
from codiag.factorize import factorize_for
from codiag.methods import NLS, Auto, Method
from codiag.tensors import FactoredTensor


def parafac(
    tensor: Any,
    rank: int,
    n_iter_max: int = 100,
    init: Any = "svd",
    svd: str = "truncated_svd",
    normalize_factors: bool = False,
    orthogonalise: bool | int = False,
    tol: float = 1e-8,
    random_state: Any = None,
    verbose: int | bool = 0,
    return_errors: bool = False,
    sparsity: float | None = None,
    l2_reg: float = 0,
    mask: Any = None,
    cvg_criterion: str = "abs_rec_error",
    fixed_modes: Any = None,
    svd_mask_repeats: int = 5,
    linesearch: bool = False,
    callback: Callable[[Any, float], Any] | None = None,
) -> Any:
    """Do what ``tensorly.decomposition.parafac`` does, with its arguments in its order.

    ``init="svd"`` stands for the start codiag finds best, joint diagonalization; "random" and a CPTensor (or any pair
    of weights and factors) are what they say. An iteration is a Gauss-Newton step, `tol` the relative size of the last
    one. Of the rest, `svd`, `svd_mask_repeats` and `cvg_criterion` must be what TensorLy has by default, since they
    name details of its algorithm; options that would change the result raise.

    Returns
    -------
    CPTensor of TensorLy where it is installed, otherwise `Factorization`; both unpack as ``weights, factors``.
    With `return_errors`, a pair of that and the list of relative errors, step by step.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import parafac
    >>> weights, factors = parafac(np.ones((3, 4, 5)), 1, random_state=0)
    >>> [factor.shape for factor in factors]
    [(3, 1), (4, 1), (5, 1)]
    """
    given = {
        "svd": (svd, "truncated_svd"),
        "svd_mask_repeats": (svd_mask_repeats, 5),
        "cvg_criterion": (cvg_criterion, "abs_rec_error"),
        "orthogonalise": (orthogonalise, False),
        "verbose": (verbose, 0),
        "sparsity": (sparsity, None),
        "l2_reg": (l2_reg, 0),
        "mask": (mask, None),
        "fixed_modes": (fixed_modes or None, None),
        "linesearch": (linesearch, False),
    }
    for name, (value, default) in given.items():
        if value is not default and not (np.isscalar(value) and value == default):
            shown = repr(value) if np.isscalar(value) else "..."
            raise ValueError(
                f"{name}={shown} is not supported by codiag.drop_in.parafac; leave it out, or use TensorLy"
            )
    as_number("n_iter_max", n_iter_max, integer=True)
    errors: list[float] = []

    def monitor(components: FactoredTensor, error: float) -> bool:
        errors.append(error)
        return callback is not None and callback(_as_cp(components), error) is True

    method = _method(init, {"tol": tol or 1e-16, "max_sweeps": n_iter_max, "monitor": monitor})
    symmetric = None if isinstance(init, str) else False  # a start of one's own may have modes apart
    fit = factorize_for(tensor, rank, method=method, symmetric=symmetric, seed=random_state, stacklevel=3)
    errors.append(fit.relative_error)
    if not normalize_factors:
        fit = _with_unit_weights(fit)
    result = _as_cp(fit)
    return (result, errors) if return_errors else result


def _method(init: Any, options: dict[str, Any]) -> Method:
    if not isinstance(init, str):
        return NLS(init=init, max_replacements=0, **options)
    if init == "svd":
        return Auto(**options)
    if init == "random":
        return NLS(**options)
    raise ValueError(f"init must be 'svd', 'random', a CPTensor or a pair (weights, factors); got {init!r}")


def _with_unit_weights(fit: Factorization) -> Factorization:
    """Return the fit with its weights in the first factor, as TensorLy leaves them."""
    first, *others = fit.factors
    return replace(fit, weights=fit.weights * 0 + 1, factors=(first * fit.weights, *others))


def _as_cp(fit: Factorization | FactoredTensor) -> Any:
    try:
        from tensorly.cp_tensor import CPTensor
    except ModuleNotFoundError:
        return fit if isinstance(fit, Factorization) else (fit.weights, list(fit.factors))
    return CPTensor((fit.weights, list(fit.factors)))
