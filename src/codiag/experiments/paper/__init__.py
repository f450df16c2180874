"""The experiments of the paper, by name."""

from codiag.experiments.paper.accuracy import ASYMMETRIC, NONORTHOGONAL, ORTHOGONAL
from codiag.experiments.paper.bounds import BOUNDS
from codiag.experiments.paper.communities import COMMUNITIES
from codiag.experiments.paper.convergence import CONVERGENCE
from codiag.experiments.paper.crowd import CROWD
from codiag.experiments.paper.projections import FLOPS, PROJECTIONS
from codiag.experiments.paper.topic import TOPIC
from codiag.experiments.runs import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        PROJECTIONS,
        ORTHOGONAL,
        NONORTHOGONAL,
        ASYMMETRIC,
        FLOPS,
        TOPIC,
        CONVERGENCE,
        CROWD,
        COMMUNITIES,
        BOUNDS,
    )
}
