"""The result of a fit: components in their final form, errors, files, exports."""

from codiag.result._exports import as_array_of_samples, long_columns
from codiag.result._factorization import Factorization
from codiag.result._linearization import has_few_entries
from codiag.result._separation import separation
from codiag.result._solve import (
    as_factorization,
    canonical,
    congruences,
    degenerate_pairs,
    solve,
    solve_together,
    warning_message,
    whole_norm,
)
from codiag.result._transform import explained_share, fixed_sizes
from codiag.result._whitening import given_covariances, unwhitened, whitened, whitened_fit
