"""Random data whose answer is known.

The same `Seed` gives the same data.

======================================= ================================= ==========================================
Function                                Returns                           Data
======================================= ================================= ==========================================
`noisy_tensor`                          `PlantedTensor`                   A tensor of any shape and rank.
`paper_tensor`                          `PlantedTensor`                   One of the paper's experiments.
`orthogonal_model`                      `PlantedTensor`                   The authors' orthogonal experiments.
`nonorthogonal_model`                   `PlantedTensor`                   The authors' non-orthogonal experiments.
`fluorescence`                          `Fluorescence`                    Emission-excitation spectra of mixtures.
`matrix_stack`                          `Stack`                           Matrices with a common factor.
`projection_stack`                      `Stack`                           Projections of a tensor.
`mixed_signals`                         `MixedSignals`                    Sources mixed to channels.
`crowd_votes`                           `Crowd`                           Votes of workers.
`mixed_membership_graph`                `Graph`                           A network with communities.
======================================= ================================= ==========================================

Parts of these: `unit_factor`, `mild_factor` and `orthonormal_factor` draw factors, `worker_errors` confusion matrices,
`unit_noise` noise of operator norm one, and `operator_norm` measures that norm.

Examples
--------
>>> from codiag.synthetic import noisy_tensor
>>> planted = noisy_tensor((6, 5, 4), 2, noise=0.1, seed=0)
>>> planted.tensor.shape, planted.weights.shape, [factor.shape for factor in planted.factors]
((6, 5, 4), (2,), [(6, 2), (5, 2), (4, 2)])
"""

from codiag._checks import Seed
from codiag.synthetic._crowds import Crowd, crowd_votes, worker_errors
from codiag.synthetic._factors import mild_factor, orthonormal_factor, unit_factor
from codiag.synthetic._graphs import Graph, mixed_membership_graph
from codiag.synthetic._norms import operator_norm, unit_noise
from codiag.synthetic._signals import MixedSignals, mixed_signals
from codiag.synthetic._spectra import Fluorescence, fluorescence
from codiag.synthetic._stacks import Stack, matrix_stack, projection_stack
from codiag.synthetic._tensors import PlantedTensor, noisy_tensor, nonorthogonal_model, orthogonal_model, paper_tensor

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
