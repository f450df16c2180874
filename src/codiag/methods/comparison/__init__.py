"""Methods of other authors, for comparison."""

from codiag.methods.comparison._givens import Givens
from codiag.methods.comparison._lathauwer import Lathauwer
from codiag.methods.comparison._power import TPM
from codiag.methods.comparison._sd2 import SD2
