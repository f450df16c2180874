"""The entry: slices and a rank in, a fit out."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from codiag._arrays import few_threads
from codiag._checks import ConvergenceWarning, RNGLike, as_generator, explains_keywords
from codiag._parafac2._fit import Parafac2Fit
from codiag._parafac2._model import Factors
from codiag._parafac2._slices import Slices
from codiag._parafac2._solve import as_rules, in_form, solve
from codiag._progress import progress_if
from codiag.constraints import ConstraintsLike


@explains_keywords
def parafac2(
    slices: Any,
    rank: int,
    *,
    constraints: ConstraintsLike = None,
    mask: Any = None,
    rng: RNGLike = None,
    progress: bool | None = None,
) -> Parafac2Fit:
    r"""Write matrices with common columns as components whose profiles along the rows change from matrix to matrix.

    PARAFAC2 is :math:`X_k \approx P_k B\, \mathrm{diag}(w \circ a_k)\, C^\top` with orthonormal columns of
    :math:`P_k`: the evolving factors :math:`P_k B` of slice k may differ from slice to slice, and have other numbers of
    rows, but their correlations :math:`B^\top B` are the same in all. It is for chromatograms whose peaks shift,
    patients seen on different days, and donors with different numbers of cells.

    Parameters
    ----------
    slices : list of arrays of shape (I_k, n_columns), array of order three, or data frame
        Arrays of NumPy, torch and others, sparse matrices of SciPy, data frames with equal columns, or a dict of them
        by name; an array or an xarray.DataArray with slices first; an xarray.Dataset whose variables share the
        dimension of the columns; or a long data frame with columns of slice, row, column and value, where a slice has
        the rows that are listed for it. NaN are missing; zeros of sparse slices are observed.
    rank : int
        Number of components, at most the number of columns, and of rows of the longest slice. A slice with fewer rows
        counts as padded by rows of zeros.
    constraints : dict, str or Constraint, optional
        ``{0: "nonnegative"}`` for A, ``{2: "nonnegative"}`` for C, or both; or one `codiag.constraints.Ridge` for all.
    mask : list of arrays of bool in the shapes of the slices, optional
        True where an entry counts; the others are missing.
    rng : int or numpy.random.Generator, optional
        The source of random numbers (SPEC 7), for random starts.
    progress : bool, optional
        None shows a bar after ten seconds in terminals and notebooks. True always shows one, and False never.

    Returns
    -------
    Parafac2Fit
        Unpacks as ``weights, (A, B, C), projections``, as in TensorLy, and has ``evolving``, the list of
        :math:`P_k B`, with standard errors.

    Warns
    -----
    ConvergenceWarning
        If the steps did not reach their tolerance.

    See Also
    --------
    factorize : CP, where profiles are the same in all slices.
    choose_rank : With ``model="parafac2"``, how many components to ask for.
    codiag.models.Parafac2 : An estimator of scikit-learn.

    Notes
    -----
    **Assumptions.** Four slices or more.

    **Complexity.** One pass over the slices to compress them, and a few over the compressed ones.

    **Guarantees.** A local minimum; ``fit.p_missed`` is the chance that a lower one was missed.

    **Limitations.** Fails if the correlations differ between slices, which ``fit.diagnose()`` tests.

    The slices are compressed by QR decompositions. Starts are compared in the space of the leading right singular
    vectors: joint diagonalization of the cross products :math:`X_k^\top X_k`, less those of noise; and singular
    vectors. Both begin with positive weights. Starts with signs and random starts follow unless the two agree and leave
    no more than noise. Steps are those of Gauss and Newton for A, B and C, with the best :math:`P_k` eliminated.

    Missing entries are filled by expectation maximization. Standard errors are then not known; `Parafac2Fit.bootstrap`
    gives some. A row that is missing as a whole is filled, too; leave it out of its slice if it was never measured.

    References
    ----------
    H. A. L. Kiers, J. M. F. ten Berge and R. Bro, "PARAFAC2 - Part I. A direct fitting algorithm for the PARAFAC2
    model", J. Chemometrics 13, 1999.

    Examples
    --------
    >>> import codiag
    >>> planted = codiag.synthetic.parafac2_slices((30, 25, 28, 31, 26), 12, 3, noise=0.01, rng=0)
    >>> fit = codiag.parafac2(planted.slices, 3, rng=0)
    >>> fit.converged, codiag.factor_error([fit.factors[2]], [planted.factors[2]]) < 0.05
    (True, True)
    >>> [each.shape for each in fit.evolving][:2]
    [(30, 3), (25, 3)]
    """
    data = Slices.of(slices, mask)
    n_components = data.check_rank(rank)
    with progress_if(progress, "fitting PARAFAC2"):
        fit = fitted(data, n_components, constraints, rng)
    if not fit.converged:
        warnings.warn(
            f"PARAFAC2 did not converge in {fit.history[-1].n_iter} iterations (relative error "
            f"{fit.relative_error:.6g}); a lower rank or a Ridge may be determined better",
            ConvergenceWarning,
            stacklevel=3,
        )
    return fit


def fitted(
    data: Slices, rank: int, constraints: ConstraintsLike, rng: RNGLike, start: Factors | None = None
) -> Parafac2Fit:
    """Return the fit of checked slices, from the usual starts or a given one."""
    from codiag import __version__

    rules = as_rules(constraints)
    with few_threads(float(np.sum(data.sizes)) * data.width * rank):
        found = solve(data, rank, rules, as_generator(rng, apart=True), start)
    return Parafac2Fit(
        *in_form(found),
        found.errors[0],
        found.converged,
        found.history,
        found.p_missed,
        data.labels,
        data.rows,
        data,
        rules,
        {"version": __version__, "rng": int(rng) if isinstance(rng, int | np.integer) else None},
        found.errors[1:],
    )
