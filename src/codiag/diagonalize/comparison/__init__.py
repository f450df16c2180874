"""Diagonalizers of other authors, for comparison."""

from codiag.diagonalize.comparison._qrj1d import LUJ1D, QRJ1D, _shear_sweep
