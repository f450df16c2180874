"""Labels from the votes of a crowd."""

from codiag.models.crowd._copies import RATES, _joint, _scores, common_rate, examine, meetings, with_shared_votes
from codiag.models.crowd._em import CrowdModel, Prior, Run, expect, maximize, one_coin
from codiag.models.crowd._files import read_gold, votes_in
from codiag.models.crowd._gold import with_gold
from codiag.models.crowd._model import DawidSkene
from codiag.models.crowd._prior import SKILL, added_votes, as_prior, estimate_prior, run_with_estimated_prior
from codiag.models.crowd._starts import estimate_crowd, random_groups, start_from_majority
from codiag.models.crowd._tables import Tables, class_names
from codiag.models.crowd._uncertainty import beta_intervals
from codiag.models.crowd._votes import Votes, VoteSums, as_votes, wanted_columns
