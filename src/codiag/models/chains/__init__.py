"""Hidden Markov models of symbols."""

from codiag.models.chains._forward_backward import (
    baum_welch_sums,
    best_paths,
    filtered,
    from_baum_welch_sums,
    path_log_probability,
    smoothed,
)
from codiag.models.chains._model import HiddenMarkov
from codiag.models.chains._moments import ChainSums, time_blocks
from codiag.models.chains._sequences import CutSequences
