"""The entry: tensors and matrices with named modes in, a fit out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from codiag._arrays import few_threads
from codiag._checks import ConvergenceWarning, RNGLike, as_generator, as_rank, explains_keywords
from codiag._coupled._fit import CoupledFit
from codiag._coupled._form import in_form
from codiag._coupled._search import Search
from codiag._coupled._sets import Sets
from codiag._progress import progress_if
from codiag.constraints import Constraint, Constraints, ConstraintsLike, as_constraints, check_constraints


@explains_keywords
def factorize_coupled(
    tensors: Sequence[Any] | Mapping[str, Any],
    rank: int,
    *,
    modes: Sequence[Sequence[str]] | None = None,
    constraints: ConstraintsLike = None,
    rng: RNGLike = None,
) -> CoupledFit:
    r"""Write tensors and matrices that share modes as components with common factors along these.

    .. math:: T^{(n)} \approx \sum_r w_{nr} \bigotimes_{m \in n} a^{(m)}_r

    where a mode m of the same name has the same factor in all sets n: the metabolites, genes and questionnaires of one
    group of subjects. The noise of each set has a variance of its own, which is estimated, so that units do not matter.

    Parameters
    ----------
    tensors : list, or dict from names, of arrays
        Tensors and matrices, at least one of order three or more: arrays, xarray.DataArrays, and what else `factorize`
        takes; also data frames of pandas as matrices. NaN and masked entries are missing.
    rank : int
        Number of components in all sets together. A component may be in one set only.
    modes : list of tuples of str, optional
        The names of the modes of each set, such as ``[("subject", "gene", "time"), ("subject", "metabolite")]``. By
        default those that xarray.DataArrays and tables have. Sets are matched by their labels along a shared mode if
        all have some; what a set does not have is missing there.
    constraints : dict from names of modes, str or Constraint, optional
        ``{"gene": "nonnegative"}``, or one for all modes, as in `factorize`; those with Gauss-Newton steps that are not
        penalties.
    rng : int or numpy.random.Generator, optional
        The source of random numbers (SPEC 7), for random starts.

    Returns
    -------
    CoupledFit
        With ``factors``, a dict of unit columns by name of mode; ``weights``, a row for each set; standard errors;
        ``presence()``, which component is in which set; and ``fit[n]``, the `Factorization` of one set.

    Warns
    -----
    ConvergenceWarning
        If the steps did not reach their tolerance.

    See Also
    --------
    factorize : One tensor.
    parafac2 : Matrices that share one mode, whose profiles along the other change.

    Notes
    -----
    **Assumptions.** Noise is independent, with one variance in each set. A matrix is determined by what it shares with
    a tensor: two components that are in one matrix only can be rotated into each other.

    **Complexity.** Gauss-Newton steps in the factors of all modes; a step reads all sets once or twice.

    **Guarantees.** A local minimum; ``fit.p_missed`` is the chance that a lower one was missed.

    **Limitations.** Dense sets in memory, real numbers. Standard errors are those of white noise.

    Starts are the fit of each tensor alone, completed in the other sets, and random ones. Components that explain
    little are exchanged for the strongest terms of the residuals. Noise variances are those of the residuals over
    their degrees of freedom; a shared parameter counts in each set by its share of the information.

    References
    ----------
    E. Acar, T. G. Kolda and D. M. Dunlavy, "All-at-once optimization for coupled matrix and tensor factorizations",
    arXiv:1105.3422, 2011.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> subject, gene, time, metabolite = (rng.standard_normal((size, 2)) for size in (20, 15, 6, 10))
    >>> genes = np.einsum("ir,jr,kr->ijk", subject, gene, time)
    >>> metabolites = 1000 * subject @ metabolite.T
    >>> names = [("subject", "gene", "time"), ("subject", "metabolite")]
    >>> fit = codiag.factorize_coupled([genes, metabolites], 2, modes=names, rng=0)
    >>> fit.weights.shape, codiag.factor_error([fit.factors["subject"]], [subject]) < 1e-6
    ((2, 2), True)
    >>> [fit[n].shape for n in range(2)]
    [(20, 15, 6), (20, 10, 1)]
    """
    sets = Sets.of(tensors, modes)
    n_components = int(as_rank(rank) or 0)
    if sets.n_parameters(n_components) >= sets.n_observed.sum():
        raise ValueError(
            f"rank must leave fewer parameters than the {sets.n_observed.sum()} entries that were observed; {rank} has "
            f"{sets.n_parameters(n_components)}"
        )
    rules = _as_rules(constraints, sets, n_components)
    work = float(max(array.size for array in sets.arrays)) * n_components
    with progress_if(None, "fitting coupled sets"), few_threads(work):
        fit = in_form(Search(sets, n_components, rules, as_generator(rng, apart=True)).run(), sets, rules)
    if not fit.converged:
        warnings.warn(
            f"the coupled fit did not converge in {fit.history[-1].n_iter} iterations (relative errors "
            f"{np.round(fit.relative_errors, 4).tolist()}); a lower rank may be determined better",
            ConvergenceWarning,
            stacklevel=3,
        )
    return fit


def _as_rules(raw: ConstraintsLike, sets: Sets, rank: int) -> tuple[Constraint | None, ...]:
    """Return the constraint of each named mode."""
    order = len(sets.sizes)
    rules: Constraints = as_constraints(raw, order, sets.labels.names)
    check_constraints(rules, sets.sizes, rank)
    for name, rule in zip(sets.labels.names, rules or (), strict=False):
        if rule is not None and (not rule.supports_gauss_newton or not rule.is_hard or rule.is_fixed):
            raise ValueError(
                "constraints of coupled sets must be 'nonnegative' or 'orthogonal', without penalties; got "
                f"{rule!r} for {name!r}. Give that to codiag.factorize, with one set"
            )
    return rules or (None,) * order
