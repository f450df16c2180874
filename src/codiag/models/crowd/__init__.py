"""Labels from the votes of a crowd."""

from codiag.models.crowd._calibration import held_out_calibration
from codiag.models.crowd._dependence import correlations, given_classes, vote_weights
from codiag.models.crowd._em import (
    SKILL,
    CrowdModel,
    Prior,
    Run,
    added_votes,
    as_prior,
    estimate_prior,
    expect,
    maximize,
    one_coin,
    run_with_estimated_prior,
)
from codiag.models.crowd._families import PLAIN, family_evidence, family_shares
from codiag.models.crowd._family_model import FamilyModel, expect_families, families_of, run_families
from codiag.models.crowd._forms import NamedVotes, wanted_columns
from codiag.models.crowd._invalid import ValidVotes, valid_votes
from codiag.models.crowd._jury import is_order_better, label_jury, model_spread
from codiag.models.crowd._labelers import OrderedLabeler, fitted_powers
from codiag.models.crowd._model import DawidSkene
from codiag.models.crowd._ordered import QUALITY, OrderedModel, may_be_ordered, run_ordered
from codiag.models.crowd._preferences import Preferences, preference_votes, with_position_bias
from codiag.models.crowd._starts import estimate_crowd, random_groups, start_from_majority
from codiag.models.crowd._tables import (
    Tables,
    class_names,
    column_names,
    doubt_columns,
    label_columns,
    user_columns,
    worker_columns,
)
from codiag.models.crowd._uncertainty import HIGH, LEVEL, LOW, beta_intervals
from codiag.models.crowd._votes import Votes, VoteSums, as_votes, with_gold
