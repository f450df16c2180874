"""The entry point: choose a method, call it, and warn if it did not converge."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from codiag._arrays import Array
from codiag._checks import ConvergenceWarning, RNGLike, as_flag, explains_keywords
from codiag.diagonalize._base import Diagonalizer, check_method
from codiag.diagonalize._diagonalization import Diagonalization
from codiag.diagonalize._orthogonal_newton import OrthogonalNewton
from codiag.diagonalize._uwedge import UWEDGE


@explains_keywords
def joint_diagonalize(
    matrices: Array | Sequence[Array],
    *,
    diagonalizer: Diagonalizer | None = None,
    orthogonal: bool = False,
    sample_weight: Array | Sequence[float] | None = None,
    init: Array | Sequence[Array] | None = None,
    rng: RNGLike = None,
) -> Diagonalization:
    r"""Find the factors that a stack of symmetric or Hermitian matrices has in common.

    Given :math:`M_l = U\, \mathrm{diag}(d_l)\, U^\top + \text{noise}`, find U with unit columns such that the matrices
    :math:`U^{-1} M_l U^{-\top}` have a small off-diagonal energy. It is minimal for orthonormal factors. For free
    factors, no change of a single pair lowers it in units of the diagonals (see `codiag.diagonalize.UWEDGE`).

    Complex matrices that are Hermitian up to rounding, such as cross-spectra, are
    :math:`M_l = U\, \mathrm{diag}(d_l)\, U^{\mathsf H}` with real diagonals; those that are symmetric are
    :math:`M_l = U\, \mathrm{diag}(d_l)\, U^\top` with complex ones. Factors are determined up to phases, and the
    largest entry of each column is real and positive. Orthonormal factors of complex matrices are unitary.

    Parameters
    ----------
    matrices : array of shape (n, d, d), or a sequence of matrices
        At least two matrices, real symmetric, complex Hermitian or complex symmetric; NumPy, torch, CuPy or JAX. The
        result is on the same device. Never modified.
    diagonalizer : Diagonalizer, optional
        A configured method of `codiag.diagonalize`. By default `codiag.diagonalize.OrthogonalNewton` or
        `codiag.diagonalize.UWEDGE`.
    orthogonal : bool
        Constrain the factors to be orthonormal. Contradicting the `diagonalizer` is an error.
    sample_weight : array of shape (n,), optional
        Weight of each matrix in the objective; for noise of unequal size, its inverse variance.
    init : array of shape (k, d), optional
        Inverse factors to start from, rows as in ``fit.inverse``, for example those of an earlier fit of similar
        matrices. No other start is then tried. The rows must be orthonormal if the factors are; a pair of arrays if the
        method is for matrices with different factors on the two sides.
    rng : int or numpy.random.Generator, optional
        Source of the random start: the same seed gives the same answer, on every device.

    Returns
    -------
    Diagonalization
        With ``matrices[l]`` close to ``fit.factor @ diag(fit.diagonals[l]) @ fit.right_factor.T``, where
        ``fit.right_factor`` is ``fit.factor``, or its conjugate if the matrices are Hermitian.

    Warns
    -----
    ConvergenceWarning
        If the method did not converge; ``fit.converged`` is then false.

    See Also
    --------
    codiag.diagonalize : The methods, and when to use which.
    codiag.factorize : Factors of tensors.
    codiag.drop_in.ajd.ajd : The interface of pyRiemann.

    Notes
    -----
    Small problems run on one BLAS thread: for matrices with a few dozen rows a second thread costs more than it gains.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> factor = rng.standard_normal((3, 3))
    >>> matrices = [factor @ np.diag(rng.standard_normal(3)) @ factor.T for _ in range(4)]
    >>> fit = codiag.joint_diagonalize(matrices, rng=0)
    >>> bool(np.allclose(fit.reconstruct(), matrices))
    True
    >>> codiag.joint_diagonalize(matrices, init=fit.inverse).n_sweeps
    1

    Hermitian matrices with complex factors:

    >>> factor = rng.standard_normal((3, 3)) + 1j * rng.standard_normal((3, 3))
    >>> matrices = [factor @ np.diag(rng.standard_normal(3)) @ factor.conj().T for _ in range(4)]
    >>> fit = codiag.joint_diagonalize(matrices, rng=0)
    >>> fit.hermitian, bool(np.allclose(fit.reconstruct(), matrices))
    (True, True)
    """
    as_flag("orthogonal", orthogonal)
    if diagonalizer is None:
        diagonalizer = OrthogonalNewton() if orthogonal else UWEDGE()
    method = check_method(diagonalizer)
    if orthogonal and not method.orthogonal:
        raise ValueError(
            f"orthogonal=True contradicts {method!r}, which leaves the factors free; "
            "use OrthogonalNewton(), Jacobi() or TwoSided(orthogonal=True)"
        )
    fit = method(matrices, sample_weight=sample_weight, init=init, rng=rng)
    if not fit.converged:
        n, k = fit.diagonals.shape
        warnings.warn(
            f"{method.name} did not converge in {fit.n_sweeps} sweeps on {n} matrices of size {k} "
            f"(tol={method.tol:g}); the best iterate is returned",
            ConvergenceWarning,
            stacklevel=3,
        )
    return fit
