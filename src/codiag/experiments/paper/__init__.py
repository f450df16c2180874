"""The experiments of the paper, by name, and its claims, by number."""

from dataclasses import replace

from codiag.experiments.claims import Claim
from codiag.experiments.paper import (
    accuracy,
    asymmetric,
    bounds,
    communities,
    convergence,
    crowd,
    flops,
    incoherence,
    orders,
    projections,
    starts,
    topic,
)
from codiag.experiments.paper.drivers import DRIVERS
from codiag.experiments.paper.reasons import REASONS
from codiag.experiments.runs import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        projections.PROJECTIONS,
        accuracy.ORTHOGONAL,
        accuracy.NONORTHOGONAL,
        DRIVERS,
        incoherence.INCOHERENCE,
        asymmetric.ASYMMETRIC,
        orders.ORDERS,
        flops.FLOPS,
        topic.TOPIC,
        communities.COMMUNITIES,
        crowd.CROWD,
        starts.STARTS,
        convergence.CONVERGENCE,
        bounds.BOUNDS,
    )
}
CLAIMS: dict[int, Claim] = {
    claim.number: replace(claim, reasons=REASONS.get(claim.number, {}))
    for claim in sorted(
        (
            claim
            for module in (
                projections,
                incoherence,
                accuracy,
                flops,
                asymmetric,
                orders,
                topic,
                communities,
                crowd,
                convergence,
                starts,
                bounds,
            )
            for claim in module.CLAIMS
        ),
        key=lambda claim: claim.number,
    )
}
