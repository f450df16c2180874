"""Ways to factorize a tensor: configured objects to pass to `codiag.factorize`.

=================== =============== ==========================================================================
Method              Name            When to use it
=================== =============== ==========================================================================
`Auto`              ``"auto"``      By default: joint diagonalization, then least squares.
`NLS`               ``"nls"``       Least squares from random starts, or from a start of your own.
`ALS`               ``"als"``       Alternating least squares, for comparison with other libraries.
`OJD`               ``"ojd1"``      The paper's method for orthogonal factors, or with a second moment.
`NOJD`              ``"nojd1"``     The paper's method for factors that are not orthogonal.
`TPM`               ``"tpm"``       The tensor power method, for comparison.
=================== =============== ==========================================================================

Constraints, missing entries and weights of entries need `Auto`, `NLS` or `ALS`. The names ``"ojd0"`` and ``"nojd0"``
are the variants without plug-in projections. To write a method of your own, derive from `codiag.extending.Method`.

Examples
--------
>>> import codiag
>>> from codiag.methods import NLS
>>> planted = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0)
>>> fit = codiag.factorize(planted.tensor, 2, method=NLS(n_starts=5), rng=0)
>>> codiag.factor_error(fit, planted) < 0.05
True
"""

from codiag._checks import public_names
from codiag.methods._als import ALS
from codiag.methods._auto import DEFAULT, METHODS, Auto, as_method, is_default
from codiag.methods._joint import NOJD, OJD, random_directions
from codiag.methods._method import Init, Method, check_init, checked_fit, start_from
from codiag.methods._nls import NLS
from codiag.methods._tpm import TPM
from codiag.problem import Estimate, LogEntry

__all__ = ["ALS", "NLS", "NOJD", "OJD", "TPM", "Auto"]

__dir__ = public_names(__all__)
