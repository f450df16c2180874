"""Factorize tensors by jointly diagonalizing matrices.

A tensor is written as a sum of rank-one components, ``T = sum_i w_i a_i (x) b_i (x) c_i + noise`` (CP, PARAFAC). Random
projections or slices of the tensor are matrices with common factors; diagonalizing them jointly gives components
without a starting guess, and least squares improves them. The same is done for moments of data, whose components are
the parameters of latent-variable models.

======================== ==========================================================================
`factorize`              One tensor: dense, sparse, in chunks, with missing entries, under constraints.
`factorize_coupled`      Tensors and matrices that share modes.
`factorize_each`         Many tensors, in parallel.
`parafac2`               Matrices with common columns whose profiles evolve.
`compare`                Which component of one fit is which of another.
`choose_rank`            How many components the data supports, and why.
`joint_diagonalize`      The common factors of a stack of matrices.
`Factorization`          What `factorize` returns: weights, factors, standard errors, diagnosis, plots.
`CoupledFit`             What `factorize_coupled` returns.
`Parafac2Fit`            What `parafac2` returns.
`Diagonalization`        What `joint_diagonalize` returns.
`RankChoice`             What `choose_rank` returns.
`Problem`                What is asked of a method: tensor, rank, constraints, observed entries.
`match_components`       Match two sets of components, up to order and sign.
`factor_error`           The distance between two sets of components.
`ConvergenceWarning`     The one warning of a fit that did not converge.
`FailedFitsError`        Raised by `factorize_each` where some fits fail.
======================== ==========================================================================

Packages: `codiag.models` (scikit-learn estimators for crowds, networks, texts, sequences, signals), `codiag.methods`
(ways to factorize), `codiag.diagonalize` (ways to diagonalize), `codiag.tensors` (ways to store), `codiag.constraints`,
`codiag.inference`, `codiag.diagnosis`, `codiag.metrics`, `codiag.plotting`, `codiag.reports`, `codiag.io`,
`codiag.datasets`, `codiag.synthetic`, `codiag.extending` (classes to derive from), and `codiag.drop_in` (functions of
other libraries).

Examples
--------
>>> import codiag
>>> planted = codiag.synthetic.noisy_tensor((20, 15, 10), 3, noise=0.01, rng=0)
>>> weights, factors = codiag.factorize(planted.tensor, 3, rng=0)
>>> [factor.shape for factor in factors]
[(20, 3), (15, 3), (10, 3)]
>>> codiag.factor_error(factors, planted.factors) < 0.01
True
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from codiag._checks import ConvergenceWarning
    from codiag._coupled import CoupledFit, factorize_coupled
    from codiag._factorize import factorize
    from codiag._factorize_each import FailedFitsError, factorize_each
    from codiag._parafac2 import Parafac2Fit, parafac2
    from codiag.diagonalize import Diagonalization, joint_diagonalize
    from codiag.metrics import compare, factor_error, match_components
    from codiag.problem import Problem
    from codiag.result import Factorization
    from codiag.selection import RankChoice, choose_rank

__version__ = "0.3.0"

__all__ = [
    "ConvergenceWarning",
    "CoupledFit",
    "Diagonalization",
    "Factorization",
    "FailedFitsError",
    "Parafac2Fit",
    "Problem",
    "RankChoice",
    "__version__",
    "choose_rank",
    "compare",
    "factor_error",
    "factorize",
    "factorize_coupled",
    "factorize_each",
    "joint_diagonalize",
    "match_components",
    "parafac2",
]

_HOMES = {
    "ConvergenceWarning": "_checks",
    "CoupledFit": "_coupled",
    "Diagonalization": "diagonalize",
    "Factorization": "result",
    "FailedFitsError": "_factorize_each",
    "Parafac2Fit": "_parafac2",
    "Problem": "problem",
    "RankChoice": "selection",
    "choose_rank": "selection",
    "compare": "metrics",
    "factor_error": "metrics",
    "factorize": "_factorize",
    "factorize_coupled": "_coupled",
    "factorize_each": "_factorize_each",
    "joint_diagonalize": "diagonalize",
    "match_components": "metrics",
    "parafac2": "_parafac2",
}

_PACKAGES = (
    "cli",
    "constraints",
    "datasets",
    "diagnosis",
    "diagonalize",
    "drop_in",
    "extending",
    "inference",
    "io",
    "losses",
    "methods",
    "metrics",
    "models",
    "plotting",
    "reports",
    "synthetic",
    "tensors",
)

_UNLISTED = ("problem", "result", "selection")  # parts of others


def __getattr__(name: str) -> Any:
    """Import a function, a class or a package of codiag when it is first used; ``import codiag`` loads nothing."""
    if name in _HOMES:
        value = globals()[name] = getattr(import_module(f"codiag.{_HOMES[name]}"), name)
        return value
    if name in _PACKAGES or name in _UNLISTED:
        return import_module(f"codiag.{name}")
    from codiag._checks import attribute_hint

    raise AttributeError(f"module 'codiag' has no attribute {name!r}{attribute_hint(name) or _place(name)}")


def _place(name: str) -> str:
    """Return in which package a name is, for the text of an error."""
    packages = () if name.startswith("_") else (place for place in _PACKAGES if place not in ("cli", "drop_in"))
    homes = (f"; see codiag.{place}.{name}" for place in packages if name in import_module(f"codiag.{place}").__all__)
    return next(homes, "")


def __dir__() -> list[str]:
    """List what is public, packages that are not imported yet included."""
    return sorted([*__all__, *_PACKAGES])
