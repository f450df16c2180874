"""Classes to derive from, and the engine to build on, if you extend codiag.

======================= ===========================================================================
`Constraint`            What is known about the factor of a mode.
`Loss`                  The noise distribution of entries.
`Diagonalizer`          A joint diagonalizer of matrices; it returns an `Iterate`.
`Start`                 A generator of starts for the search of `codiag.methods.Auto`.
`Method`                A way to solve a `codiag.Problem`; it returns an `Estimate` with its `LogEntry` objects.
`MomentModel`           A latent-variable model: from data to `Moments`, from components to parameters (`Components`,
                        with `Diagnostics`).
`LeastSquares`          The objective: values, derivatives, solutions mode by mode, constraints.
`minimize`              From a start to a minimum, within `Limits`; it returns components, their objective,
                        the number of sweeps and whether these converged.
`best_rank_one`         The best single component.
======================= ===========================================================================

Each is shown by a worked example of the site, under "Extending codiag".

Examples
--------
>>> import numpy as np
>>> import codiag
>>> from codiag.extending import Components, Diagnostics, MomentModel, Moments
>>> class SymmetricComponents(MomentModel):
...     def moments(self, data):
...         return Moments(problem=codiag.Problem(data, self.n_components, symmetric=True))
...     def parameters(self, fit, moments):
...         return Components(weights=fit.weights, diagnostics=Diagnostics.of(fit))
>>> SymmetricComponents(1, random_state=0).fit(np.ones((2, 2, 2))).weights_.round(3).tolist()
[2.828]
"""

from codiag._checks import public_names
from codiag.constraints import Constraint
from codiag.diagonalize import Diagonalizer, Iterate
from codiag.least_squares import LeastSquares, Limits, OptimizeResult, best_rank_one, minimize
from codiag.losses import Loss
from codiag.methods import Method
from codiag.models.base import Components, Diagnostics, MomentModel, Moments
from codiag.problem import Estimate, LogEntry
from codiag.starts import Start

__all__ = [
    "Components",
    "Constraint",
    "Diagnostics",
    "Diagonalizer",
    "Estimate",
    "Iterate",
    "LeastSquares",
    "Limits",
    "LogEntry",
    "Loss",
    "Method",
    "MomentModel",
    "Moments",
    "Start",
    "best_rank_one",
    "minimize",
]

__dir__ = public_names(__all__)
