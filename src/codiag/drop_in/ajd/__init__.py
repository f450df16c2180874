"""Approximate joint diagonalization by the names of ``pyriemann.geometry.ajd``: change the import and nothing else."""

from codiag.drop_in._pyriemann_ajd import ajd, ajd_pham, rjd, uwedge

__all__ = ["ajd", "ajd_pham", "rjd", "uwedge"]
