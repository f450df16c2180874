"""Random data whose answer is known: factors, stacks of matrices, tensors, spectra, signals, votes and graphs."""

from codiag.synthetic._crowds import Crowd, crowd_votes, worker_errors
from codiag.synthetic._factors import Seed, mild_factor, orthonormal_factor, unit_factor
from codiag.synthetic._graphs import Graph, mixed_membership_graph
from codiag.synthetic._norms import operator_norm, unit_noise
from codiag.synthetic._signals import MixedSignals, mixed_signals
from codiag.synthetic._spectra import Fluorescence, fluorescence
from codiag.synthetic._stacks import Stack, matrix_stack, projection_stack
from codiag.synthetic._tensors import (
    PlantedTensor,
    noisy_tensor,
    nonorthogonal_model,
    orthogonal_model,
    paper_tensor,
)

__all__ = [
    "Crowd",
    "Fluorescence",
    "Graph",
    "MixedSignals",
    "PlantedTensor",
    "Seed",
    "Stack",
    "crowd_votes",
    "fluorescence",
    "matrix_stack",
    "mild_factor",
    "mixed_membership_graph",
    "mixed_signals",
    "noisy_tensor",
    "nonorthogonal_model",
    "operator_norm",
    "orthogonal_model",
    "orthonormal_factor",
    "paper_tensor",
    "projection_stack",
    "unit_factor",
    "unit_noise",
    "worker_errors",
]
