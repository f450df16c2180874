"""Random data with known components; the same seed gives the same data.

========================= ===========================================================
Function                  Data
========================= ===========================================================
`noisy_tensor`            A tensor of any shape and rank.
`parafac2_slices`         Slices of PARAFAC2, with evolving factors.
`count_events`            Counts of events, in a sparse tensor.
`fluorescence`            Emission-excitation spectra of mixtures.
`matrix_stack`            Matrices with a common factor.
`mixed_signals`           Sources mixed to channels.
`crowd_votes`             Votes of workers.
`mixed_membership_graph`  A network with communities.
`unit_factor`             A factor with random unit columns.
`orthonormal_factor`      A factor with random orthonormal columns.
`worker_confusions`       Confusion matrices of workers.
========================= ===========================================================

Examples
--------
>>> from codiag.synthetic import noisy_tensor
>>> planted = noisy_tensor((6, 5, 4), 2, noise=0.1, rng=0)
>>> planted.tensor.shape, planted.weights.shape, [factor.shape for factor in planted.factors]
((6, 5, 4), (2,), [(6, 2), (5, 2), (4, 2)])
"""

from codiag._checks import RNGLike, public_names
from codiag.synthetic._latent_variables import (
    Crowd,
    Graph,
    crowd_votes,
    mixed_membership_graph,
    worker_confusions,
)
from codiag.synthetic._matrices import Stack, matrix_stack, mild_factor, orthonormal_factor, unit_factor
from codiag.synthetic._measurements import Fluorescence, MixedSignals, fluorescence, mixed_signals
from codiag.synthetic._slices import PlantedSlices, parafac2_slices
from codiag.synthetic._tensors import CountedEvents, PlantedTensor, count_events, noisy_tensor

__all__ = [
    "count_events",
    "crowd_votes",
    "fluorescence",
    "matrix_stack",
    "mixed_membership_graph",
    "mixed_signals",
    "noisy_tensor",
    "orthonormal_factor",
    "parafac2_slices",
    "unit_factor",
    "worker_confusions",
]

__dir__ = public_names(__all__)
