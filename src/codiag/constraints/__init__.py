"""What is known about factors beforehand: one constraint for each mode."""

from codiag.constraints._base import Constraint
from codiag.constraints._fixed import Fixed
from codiag.constraints._names import CONSTRAINTS, as_constraints
from codiag.constraints._nonnegative import NonNegative
from codiag.constraints._orthogonal import Orthogonal
from codiag.constraints._ridge import Ridge

__all__ = ["CONSTRAINTS", "Constraint", "Fixed", "NonNegative", "Orthogonal", "Ridge", "as_constraints"]
