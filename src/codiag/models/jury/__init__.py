"""Labels from judges who depend on each other."""

from codiag.models.jury._dependence import correlations, find_copies, residual_correlations
from codiag.models.jury._families import family_evidence, find_families
from codiag.models.jury._family_model import run_families
from codiag.models.jury._jury import Jury, dependence_among
from codiag.models.jury._ordered import run_ordered
from codiag.models.jury._preferences import Preferences, preference_votes, with_position_bias
