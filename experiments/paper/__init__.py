"""The experiments of the paper, by name, and its claims, by number."""

from dataclasses import replace

from experiments.claims import Claim
from experiments.paper import (
    accuracy,
    asymmetric,
    bounds,
    communities,
    convergence,
    crowd,
    drivers,
    flops,
    incoherence,
    orders,
    projections,
    starts,
    topic,
)
from experiments.paper.reasons import REASONS
from experiments.runs import Experiment

_MODULES = (
    projections,
    accuracy,
    drivers,
    incoherence,
    asymmetric,
    orders,
    flops,
    topic,
    communities,
    crowd,
    starts,
    convergence,
    bounds,
)
EXPERIMENTS: dict[str, Experiment] = {
    one.name: one for module in _MODULES for one in vars(module).values() if isinstance(one, Experiment)
}
CLAIMS: dict[int, Claim] = {
    claim.number: replace(claim, reasons=REASONS.get(claim.number, {}))
    for claim in sorted((claim for module in _MODULES for claim in module.CLAIMS), key=lambda claim: claim.number)
}
