"""Approximate joint diagonalization by the names of ``pyriemann.geometry.ajd``: change the import and nothing else.

============= ====================================================================
`ajd`         One of the others, by name.
`ajd_pham`    Covariance matrices, by maximum likelihood.
`rjd`         Orthonormal diagonalizers.
`uwedge`      Symmetric matrices of any kind.
============= ====================================================================

Examples
--------
>>> import numpy as np
>>> from codiag.drop_in.ajd import rjd
>>> V, D = rjd(np.array([np.diag([1.0, 2.0]), np.diag([3.0, 1.0])]))
>>> D.shape
(2, 2, 2)
"""

from codiag.drop_in._pyriemann_ajd import ajd, ajd_pham, rjd, uwedge

__all__ = ["ajd", "ajd_pham", "rjd", "uwedge"]
