"""The experiments of the paper, by name, and its claims, by number."""

from dataclasses import replace

from experiments.claims import Claim
from experiments.messages import REASONS
from experiments.paper import (
    accuracy,
    asymmetric,
    bounds,
    communities,
    convergence,
    crowd,
    drivers,
    flops,
    growth,
    incoherence,
    norms,
    orders,
    projections,
    readme,
    starts,
    topic,
)
from experiments.runs import Experiment

_MODULES = (
    projections,
    accuracy,
    communities,
    bounds,
    crowd,
    topic,
    asymmetric,
    flops,
    incoherence,
    orders,
    convergence,
    starts,
    growth,
    norms,
    drivers,
    readme,
)
"""In the order of the paper: Figures 1 to 3, Tables 1 and 2, then the supplementary material and the text."""
EXPERIMENTS: dict[str, Experiment] = {
    one.name: one for module in _MODULES for one in vars(module).values() if isinstance(one, Experiment)
}
CLAIMS: dict[int, Claim] = {
    claim.number: replace(claim, reasons=REASONS.get(claim.number, {}))
    for claim in sorted((claim for module in _MODULES for claim in module.CLAIMS), key=lambda claim: claim.number)
}
