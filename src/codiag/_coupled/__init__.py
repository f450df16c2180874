"""Coupled CP: tensors and matrices that share factors."""

from codiag._coupled._entry import factorize_coupled
from codiag._coupled._fit import CoupledFit
