"""Coupled CP: tensors and matrices that share factors."""

from codiag._coupled._entry import factorize_coupled
from codiag._coupled._fit import CoupledFit
from codiag._coupled._objective import CoupledObjective
from codiag._coupled._search import Search
from codiag._coupled._sets import Sets
