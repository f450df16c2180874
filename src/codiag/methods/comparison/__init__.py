"""Methods of other authors, for comparison."""

from codiag.methods.comparison._orthogonal import TPM, Givens
from codiag.methods.comparison._slices import SD2, Lathauwer
