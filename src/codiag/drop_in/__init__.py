"""Other libraries' functions, done by codiag: change the import and nothing else."""

from codiag.drop_in._tensorly_cp import CP, parafac

__all__ = ["CP", "parafac"]
