"""The entry point: choose a method, call it, and warn once where it did not converge."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from codiag._arrays import Array
from codiag._checks import ConvergenceWarning, Seed, as_flag, explains_keywords
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
    weights: Array | Sequence[float] | None = None,
    init: Array | Sequence[Array] | None = None,
    seed: Seed = None,
) -> Diagonalization:
    r"""Find the factors that a stack of symmetric matrices has in common.

    Given :math:`M_l = U\, \mathrm{diag}(d_l)\, U^\top + \text{noise}`, find U with unit columns, and diagonals, that
    leave little energy off the diagonals of :math:`U^{-1} M_l U^{-\top}`: the least if U is orthonormal; for free
    factors, what no pair of them can lower in units of its own diagonals (see `UWEDGE`).

    Parameters
    ----------
    matrices : array of shape (n, d, d), or a sequence of matrices
        At least two symmetric matrices, NumPy, torch, CuPy or JAX; the result lives where they do. Never modified.
    diagonalizer : Diagonalizer, optional
        A configured method of `codiag.diagonalize`. By default `OrthogonalNewton` or `UWEDGE`.
    orthogonal : bool
        Constrain the factors to be orthonormal. Contradicting the `diagonalizer` is an error.
    weights : array of shape (n,), optional
        How much each matrix counts; with noise of unequal size, its inverse variance.
    init : array of shape (k, d), optional
        Inverse factors to start from, rows as in ``fit.inverse``: those of an earlier fit of similar matrices, say. No
        other start is then tried. Orthonormal rows where the factors are; a pair of arrays where the method is for
        matrices with different factors on the two sides.
    seed : int or numpy.random.Generator, optional
        Source of the random start: the same seed gives the same answer, on every device.

    Returns
    -------
    Diagonalization
        With ``matrices[l]`` close to ``fit.factor @ diag(fit.diagonals[l]) @ fit.factor.T``.

    Warns
    -----
    ConvergenceWarning
        Once, where the method did not converge; ``fit.converged`` is then false.

    See Also
    --------
    codiag.diagonalize : The methods, and which to use when.
    codiag.factorize : The same for tensors.
    codiag.drop_in.ajd.ajd : The interface of pyRiemann.

    Notes
    -----
    Many small problems are solved fastest on one BLAS thread each (``OMP_NUM_THREADS=1``): matrices of a few dozen rows
    cost less than waking a second one.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> factor = rng.standard_normal((3, 3))
    >>> matrices = [factor @ np.diag(rng.standard_normal(3)) @ factor.T for _ in range(4)]
    >>> fit = codiag.joint_diagonalize(matrices, seed=0)
    >>> bool(np.allclose(fit.reconstruct(), matrices))
    True
    >>> codiag.joint_diagonalize(matrices, init=fit.inverse).n_sweeps
    1
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
    fit = method(matrices, weights=weights, init=init, seed=seed)
    if not fit.converged:
        n, k = fit.diagonals.shape
        warnings.warn(
            f"{method.name} did not converge in {fit.n_sweeps} sweeps on {n} matrices of size {k} "
            f"(tol={method.tol:g}); the best iterate is returned",
            ConvergenceWarning,
            stacklevel=3,
        )
    return fit
