"""Base classes for diagonalizers of your own.

Derive from `Diagonalizer` and return an `Iterate`; the site shows a worked example under "Extending codiag".
"""

from codiag.diagonalize import Diagonalizer, Iterate

__all__ = ["Diagonalizer", "Iterate"]
