"""What is known about factors beforehand: one constraint for each mode."""

from codiag.constraints._base import Constraint
from codiag.constraints._fixed import Fixed
from codiag.constraints._names import CONSTRAINTS, as_constraints
from codiag.constraints._nonnegative import NonNegative

__all__ = ["CONSTRAINTS", "Constraint", "Fixed", "NonNegative", "as_constraints"]
