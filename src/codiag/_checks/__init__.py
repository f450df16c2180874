"""Checks of arguments, and the error classes of codiag."""

from codiag._checks._arguments import (
    ConvergenceWarning,
    RankDeficientError,
    RNGLike,
    as_finite,
    as_flag,
    as_generator,
    as_number,
    as_number_array,
    as_rank,
    as_real_array,
    as_sample_weight,
    as_share,
    as_stack,
    check_n_jobs,
    check_rng,
    check_square,
    not_finite,
)
from codiag._checks._names import ATTRIBUTES, OPTIONS, attribute_hint, explains_keywords, public_names
