"""Approximate joint diagonalization by the names of ``pyriemann.geometry.ajd``: change the import and nothing else.

Arguments, defaults, shapes, conventions and the warning without convergence are those of pyriemann. The steps are those
of codiag, so that numbers of iterations differ.

============= ====================================================================
`ajd`         One of the others, by name.
`ajd_pham`    Covariance matrices, by maximum likelihood.
`jade`        Orthonormal diagonalizers, as rows: pyriemann 0.13 and later.
`rjd`         The same as columns: pyriemann up to 0.12.
`uwedge`      Symmetric matrices of any kind.
============= ====================================================================

Examples
--------
>>> import numpy as np
>>> from codiag.drop_in.ajd import jade
>>> V, D = jade(np.array([np.diag([1.0, 2.0]), np.diag([3.0, 1.0])]))
>>> D.shape
(2, 2, 2)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.optimize

from codiag._arrays import (
    Array,
    adjoint,
    asarray_like,
    conjugate,
    is_complex,
    is_hermitian,
    real_part,
    signs_of,
    to_double,
    to_host,
)
from codiag._checks import ConvergenceWarning, as_finite, as_number, as_number_array, as_stack, public_names
from codiag.diagonalize import UWEDGE, Diagonalization, OrthogonalNewton, most_likely

__all__ = ["ajd", "ajd_pham", "jade", "rjd", "uwedge"]


Result = tuple[Array, Array]


def jade(X: Array, *, init: Array | None = None, eps: float = 1e-8, n_iter_max: int = 100) -> Result:  # noqa: N803
    """Find the orthonormal matrix that diagonalizes best, as ``pyriemann.geometry.ajd.jade`` of 0.13 does.

    Parameters
    ----------
    X : array of shape (n_matrices, n, n)
        Symmetric matrices, of NumPy or any other array library; never modified.
    init : array of shape (n, n), optional
        Orthonormal rows to start from.
    eps : float
        Stop when the largest rotation falls below it; values above 1e-8, which would save one step, count as 1e-8.
    n_iter_max : int
        Largest number of steps.

    Returns
    -------
    V : array of shape (n, n)
        The diagonalizer: orthonormal rows, in the order and with the signs nearest to `init`, by default the identity.
    D : array of shape (n_matrices, n, n)
        ``V @ X @ V.T``.

    See Also
    --------
    rjd : The transpose, which pyriemann returned up to 0.12.
    ajd : Calls a method by its name.
    codiag.diagonalize.OrthogonalNewton : The method that is used.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in.ajd import jade
    >>> V, D = jade(np.array([[[2.0, 1.0], [1.0, 2.0]], [[0.0, 1.0], [1.0, 0.0]]]))
    >>> np.sort(np.diag(D[0])).round(12).tolist()
    [1.0, 3.0]
    """
    return _orthonormal(X, init, eps, n_iter_max, "jade")


def rjd(X: Array, *, init: Array | None = None, eps: float = 1e-8, n_iter_max: int = 100) -> Result:  # noqa: N803
    """Find the orthonormal matrix that diagonalizes best, as ``pyriemann.geometry.ajd.rjd`` does up to 0.12.

    Parameters
    ----------
    X : array of shape (n_matrices, n, n)
        Symmetric or Hermitian matrices, of NumPy or any other array library; never modified.
    init : array of shape (n, n), optional
        Orthonormal columns to start from.
    eps : float
        Stop when the largest rotation falls below it; values above 1e-8, which would save one step, count as 1e-8.
    n_iter_max : int
        Largest number of steps.

    Returns
    -------
    V : array of shape (n, n)
        The diagonalizer: orthonormal columns, in the order and with the signs nearest to `init`, by default the
        identity.
    D : array of shape (n_matrices, n, n)
        ``V.conj().T @ X @ V``.

    See Also
    --------
    jade : The transpose, which pyriemann returns from 0.13 on.
    ajd : Calls a method by its name.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in.ajd import rjd
    >>> V, D = rjd(np.array([[[2.0, 1.0], [1.0, 2.0]], [[0.0, 1.0], [1.0, 0.0]]]))
    >>> np.sort(np.diag(D[0])).round(12).tolist()
    [1.0, 3.0]
    """
    given = None if init is None else to_host(as_number_array(init, "init"))
    start = given if given is None or given.ndim != 2 else given.conj().T
    rows, entries = _orthonormal(X, start, eps, n_iter_max, "rjd")
    return adjoint(rows), entries


def _orthonormal(matrices: Array, init: Array | None, eps: float, n_iter_max: int, name: str) -> Result:
    """Return orthonormal rows that diagonalize best, and the matrices in their coordinates."""
    stack = _as_stack(matrices, name)
    start = None if init is None else _as_init(init, stack)
    method = OrthogonalNewton(tol=_step_size(eps), max_sweeps=_sweeps(n_iter_max), statistical_tol=0.0)
    fit = method(stack, init=None if start is None else asarray_like(start, stack), rng=0)
    rows = _in_order(_completed(fit), np.eye(stack.shape[1]) if start is None else start)
    _warn_unless(fit.converged, name, fit.n_sweeps, stacklevel=4)
    inverse = asarray_like(rows, stack)
    return inverse, _transformed(inverse, stack)


def uwedge(X: Array, *, init: Array | None = None, eps: float = 1e-7, n_iter_max: int = 100) -> Result:  # noqa: N803
    """Diagonalize by uniformly weighted least squares, as ``pyriemann.geometry.ajd.uwedge`` does.

    Parameters
    ----------
    X : array of shape (n_matrices, n, n)
        Symmetric matrices, of NumPy or any other array library; never modified.
    init : array of shape (n, n), optional
        Diagonalizer to start from. By default starts are computed from the matrices, more than one if the noise is
        large.
    eps : float
        Stop when the largest relative step falls below it; values above 1e-8, which would save one step, count as 1e-8.
    n_iter_max : int
        Largest number of steps from each start.

    Returns
    -------
    V : array of shape (n, n)
        The diagonalizer: rows scaled so that the first of the matrices gets diagonals of 1 and -1, in the order nearest
        to `init`, by default the strongest first.
    D : array of shape (n_matrices, n, n)
        ``V @ X @ V.conj().T``.

    See Also
    --------
    ajd : Calls a method by its name.
    codiag.diagonalize.UWEDGE : The method that is used.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in.ajd import uwedge
    >>> rng = np.random.default_rng(0)
    >>> mixing = rng.standard_normal((3, 3))
    >>> V, D = uwedge(mixing @ (np.eye(3) * rng.uniform(1, 2, (5, 1, 3))) @ mixing.T)
    >>> (D.round(12) + 0.0)[0].tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    stack = _as_stack(X, "uwedge")
    start = None if init is None else _as_init(init, stack)
    method = UWEDGE(tol=_step_size(eps), max_sweeps=_sweeps(n_iter_max), statistical_tol=0.0)
    fit = method(stack, init=None if start is None else asarray_like(start, stack), rng=0)
    rows = _completed(fit) if start is None else _in_order(_completed(fit), start)
    _warn_unless(fit.converged, "uwedge", fit.n_sweeps)
    first = np.abs(np.einsum("ia,ab,ib->i", rows, to_double(to_host(stack[0, ...])), rows.conj()))
    rows = rows / np.sqrt(np.where(first > 1e-12 * np.max(first), first, 1))[:, None]
    inverse = asarray_like(rows, stack)
    return inverse, _transformed(inverse, stack)


def ajd_pham(
    X: Array,  # noqa: N803
    *,
    init: Array | None = None,
    eps: float = 1e-6,
    n_iter_max: int = 20,
    sample_weight: Array | None = None,
) -> Result:
    """Diagonalize covariance matrices by maximum likelihood, as ``pyriemann.geometry.ajd.ajd_pham`` does.

    Parameters
    ----------
    X : array of shape (n_matrices, n, n)
        Positive definite matrices, symmetric or Hermitian, of NumPy or any other array library; never modified.
    init : array of shape (n, n), optional
        Diagonalizer to start from. By default the one of the mean and of a combination of the matrices.
    eps : float
        Stop when the largest relative step falls below it.
    n_iter_max : int
        Largest number of sweeps. A sweep of Pham's algorithm passes over n (n - 1) / 2 pairs; here it counts as ten
        steps, each of which changes all pairs at once.
    sample_weight : array of shape (n_matrices,), optional
        Weights of the matrices, positive.

    Returns
    -------
    V : array of shape (n, n)
        The diagonalizer: rows in the order and with the signs nearest to `init`, by default the identity, and with
        coefficients of unit norm with respect to the rows of `init`.
    D : array of shape (n_matrices, n, n)
        ``V @ X @ V.conj().T``.

    See Also
    --------
    ajd : Calls a method by its name.
    codiag.joint_diagonalize : The interface of this library.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in.ajd import ajd_pham
    >>> rng = np.random.default_rng(0)
    >>> mixing = rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3))
    >>> V, D = ajd_pham(mixing @ (np.eye(3) * rng.uniform(1, 2, (5, 1, 3))) @ mixing.conj().T)
    >>> bool(np.allclose(D, np.eye(3) * D))
    True
    """
    stack = _as_positive_definite(X)
    start = None if init is None else _as_init(init, stack)
    weights = asarray_like(_as_weights(sample_weight, stack), real_part(stack[:1, :1, :1]))
    first = None if start is None else asarray_like(start, stack)
    iterate = most_likely(stack, weights, first, _step_size(eps, 1.0), 10 * _sweeps(n_iter_max))
    _warn_unless(iterate.converged, "ajd_pham", iterate.n_sweeps)
    inverse = asarray_like(_in_order(to_host(iterate.left), np.eye(stack.shape[1]) if start is None else start), stack)
    return inverse, _transformed(inverse, stack)


METHODS: dict[str, Callable[..., Result]] = {"ajd_pham": ajd_pham, "jade": jade, "rjd": rjd, "uwedge": uwedge}


def ajd(
    X: Array,  # noqa: N803
    method: str | Callable[..., Result] = "ajd_pham",
    init: Array | None = None,
    eps: float = 1e-6,
    n_iter_max: int = 100,
    **kwargs: Any,
) -> Result:
    """Diagonalize by a method given by its name or as a function, as ``pyriemann.geometry.ajd.ajd`` does.

    Parameters
    ----------
    X : array of shape (n_matrices, n, n)
        Matrices of the kind that the method is for.
    method : {"ajd_pham", "jade", "rjd", "uwedge"} or callable
        Called as ``method(X, init=init, eps=eps, n_iter_max=n_iter_max, **kwargs)``.
    init : array of shape (n, n), optional
        The start, as in the methods.
    eps : float
        The tolerance, as in the methods.
    n_iter_max : int
        The largest number of iterations, as in the methods.
    **kwargs
        Further arguments of the method.

    Returns
    -------
    V : array of shape (n, n)
        The diagonalizer.
    D : array of shape (n_matrices, n, n)
        The matrices, nearly diagonal.

    See Also
    --------
    ajd_pham : For covariance matrices.
    jade : For orthonormal diagonalizers.
    uwedge : For symmetric matrices of any kind.
    codiag.joint_diagonalize : The interface of this library.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in.ajd import ajd
    >>> V, D = ajd(np.array([[[2.0, 1.0], [1.0, 2.0]], [[3.0, 1.0], [1.0, 3.0]]]), method="jade")
    >>> V.shape, D.shape
    ((2, 2), (2, 2, 2))
    """
    function = METHODS.get(method) if isinstance(method, str) else method
    if not callable(function) or isinstance(function, type):
        raise ValueError(f"method must be one of {', '.join(METHODS)}, or a function; got {method!r}")
    return function(X, init=init, eps=eps, n_iter_max=n_iter_max, **kwargs)


def _as_stack(matrices: Array, name: str) -> Array:
    stack = as_stack(matrices, symmetric=True)
    if is_complex(stack) and not is_hermitian(stack):
        raise ValueError(
            f"X must be Hermitian for {name} if it is complex; got symmetric matrices. codiag.joint_diagonalize is for "
            "those"
        )
    return stack


def _as_positive_definite(matrices: Array) -> Array:
    """Return positive definite matrices, symmetric or Hermitian."""
    stack = _as_stack(matrices, "ajd_pham")
    host = to_host(stack)
    try:
        np.linalg.cholesky(host)
    except np.linalg.LinAlgError:
        lowest = np.linalg.eigvalsh(host)
        worst = int(np.argmin(lowest[:, 0] / lowest[:, -1]))
        raise ValueError(
            f"X must be positive definite for ajd_pham; the smallest eigenvalue of matrix {worst} is "
            f"{lowest[worst, 0]:.3g}, the largest {lowest[worst, -1]:.3g}. Use uwedge for other symmetric matrices"
        ) from None
    return stack


def _as_init(init: Array, stack: Array) -> np.ndarray:
    """Return an invertible start, complex if the matrices are."""
    size = int(stack.shape[1])
    rows = as_finite("init", init, (size, size), allow_complex=is_complex(stack))
    if np.linalg.matrix_rank(rows) < size:
        raise ValueError(f"init must be invertible; its rank is {np.linalg.matrix_rank(rows)}, not {size}")
    return rows


def _as_weights(sample_weight: Array | None, stack: Array) -> np.ndarray:
    n = int(stack.shape[0])
    values = np.ones(n) if sample_weight is None else as_finite("sample_weight", sample_weight, (n,))
    if np.any(values <= 0):
        raise ValueError(f"sample_weight must be strictly positive; the smallest is {values.min():.3g}")
    return values / np.sum(values)


def _step_size(eps: float, largest: float = 1e-8) -> float:
    """Return the tolerance on a step; that of pyriemann is on the gain of a sweep, of the order of its square."""
    as_number("eps", eps, zero=True)
    return min(max(eps, 1e-15), largest)


def _sweeps(n_iter_max: int) -> int:
    as_number("n_iter_max", n_iter_max, integer=True)
    return int(n_iter_max)


def _completed(fit: Diagonalization) -> np.ndarray:
    """Return square inverse factors: those of singular matrices are completed by a basis of the null space."""
    inverse, factor = (to_double(to_host(array)) for array in (fit.inverse, fit.factor))
    size, k = factor.shape
    return inverse if k == size else np.vstack([inverse, adjoint(np.linalg.qr(factor, mode="complete")[0][:, k:])])


def _in_order(rows: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Return rows in the order and with the signs, or phases, nearest to a start, and of its scale."""
    coefficients = rows @ np.linalg.inv(start)
    norms = np.linalg.norm(coefficients, axis=1, keepdims=True)
    sizes = np.abs(coefficients) / norms
    index, match = scipy.optimize.linear_sum_assignment(-sizes.T)
    phases = conjugate(signs_of(coefficients[match, index]))
    return np.asarray(rows[match] * (phases[:, None] / norms[match]))


def _transformed(inverse: Array, stack: Array) -> Array:
    return inverse @ stack @ adjoint(inverse)


def _warn_unless(converged: bool, name: str, n_steps: int, *, stacklevel: int = 3) -> None:
    if not converged:
        warnings.warn(
            f"{name} did not converge in {n_steps} steps; a larger n_iter_max may be enough",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


__dir__ = public_names(__all__)
