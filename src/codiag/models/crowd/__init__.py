"""Labels from the votes of a crowd."""

from codiag.models.crowd._em import CrowdModel, Prior, counted, expect, maximize, one_coin
from codiag.models.crowd._forms import (
    SHOWN,
    as_column,
    as_frame,
    is_missing,
    named_columns,
    of_one_length,
    set_aside_invalid,
)
from codiag.models.crowd._model import DawidSkene, VoteModel, not_converged
from codiag.models.crowd._prior import HIGH, LEVEL, LOW, SKILL, TAILS, added_votes, beta_intervals, estimate_prior
from codiag.models.crowd._starts import estimate_crowd, random_groups
from codiag.models.crowd._tables import (
    CrowdTables,
    Tables,
    class_names,
    frame_of,
    keep_results,
    label_columns,
    least_confident_columns,
    worker_columns,
)
from codiag.models.crowd._votes import Votes, as_votes, with_known_classes
