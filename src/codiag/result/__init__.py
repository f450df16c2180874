"""The result of a fit: components in their final form, errors, files, exports."""

from codiag.result._canonical import as_factorization, cancelling_pairs, canonical, congruences, whole_norm
from codiag.result._factorization import Factorization
from codiag.result._solve import complaint_about, safe_scale, solve
from codiag.result._transform import explained_share
