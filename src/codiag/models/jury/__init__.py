"""Labels from judges who depend on each other."""

from codiag.models.jury._dependence import correlations, measure_dependence
from codiag.models.jury._families import family_evidence, family_shares, find_families
from codiag.models.jury._family_model import GUESSES, FamilyModel, expect_families, families_of, run_families
from codiag.models.jury._jury import Jury, dependence_among
from codiag.models.jury._ordered import QUALITY, OrderedModel, run_ordered
from codiag.models.jury._preferences import Preferences, preference_votes, with_position_bias
