"""PARAFAC2: matrices with common columns, whose profiles along the rows change from matrix to matrix."""

from codiag._parafac2._entry import fitted, parafac2
from codiag._parafac2._fit import Parafac2Fit
from codiag._parafac2._model import Factors
from codiag._parafac2._slices import Slices
