"""Hidden Markov models of symbols."""

from codiag.models.chains._forward_backward import baum_welch_sums, forward_backward, path_log_probability, viterbi
from codiag.models.chains._model import HiddenMarkov
from codiag.models.chains._moments import ChainSums
