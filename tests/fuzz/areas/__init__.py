"""Calls of public functions, by area: what draws them, and how many of them beside the others."""

from . import factorizing, joint, models, others

AREAS = {
    "factorize": (factorizing.defaults(), 5),
    "methods": (factorizing.methods(), 4),
    "constraints": (factorizing.constrained(), 1),
    "losses": (factorizing.losses(), 1),
    "choose_rank": (factorizing.rank_choices(), 1),
    "files of fits": (factorizing.saved(), 1),
    "joint_diagonalize": (joint.stacks_and_methods(), 5),
    "functions of TensorLy": (others.of_tensorly(), 2),
    "matching": (others.matching(), 2),
    "sparse tensors": (others.sparse_tensors(), 1),
    "mixtures": (models.mixtures(), 2),
    "chains": (models.chains(), 1),
    "topics": (models.topics(), 1),
    "crowds": (models.crowds(), 2),
}
