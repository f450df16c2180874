"""Other libraries' functions, done by codiag: change the import and nothing else."""

from codiag.drop_in import ajd as ajd
from codiag.drop_in import crowdkit as crowdkit
from codiag.drop_in._tensorly_classes import CP, CP_NN, CP_NN_HALS
from codiag.drop_in._tensorly_cp import parafac
from codiag.drop_in._tensorly_nonnegative import non_negative_parafac, non_negative_parafac_hals

__all__ = ["CP", "CP_NN", "CP_NN_HALS", "non_negative_parafac", "non_negative_parafac_hals", "parafac"]
