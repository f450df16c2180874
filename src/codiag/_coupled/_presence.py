"""Which component is in which set: the least significant one is removed, and the others are refitted."""

from __future__ import annotations

import numpy as np

from codiag._arrays import few_threads
from codiag._checks import as_generator
from codiag._coupled._fit import CoupledFit, Test
from codiag._coupled._form import in_form, separated
from codiag._coupled._objective import CoupledObjective
from codiag._coupled._search import Found, Parts, Search

MOST_TRIALS = 4
"""Components that are removed on trial, of which the one that costs least goes: far from a minimum of the smaller
model, the linear prediction may be wrong."""


def without_absent(fit: CoupledFit, level: float) -> CoupledFit:
    """Return what `CoupledFit.without_absent` does."""
    while True:
        known = [fit._test(int(i), int(r)) for i, r in zip(*np.nonzero(fit.weights), strict=True)]
        n_left = np.count_nonzero(fit.weights, axis=0)
        doubtful = [test for test in known if test.p_value > 1 - level and n_left[test.component] > 1]
        doubtful.sort(key=lambda test: float(fit._contributions[test.place, test.component]))
        trials = [(*_without(fit, test), test) for test in doubtful[:MOST_TRIALS]]
        if not trials:
            return fit
        gain, found, test = min(trials, key=lambda trial: trial[0])
        test = fit._test(test.place, test.component, gain)
        if test.p_value <= 1 - level:
            return fit
        fit = in_form(found, fit._sets, fit._rules, (*fit._removed, test))


def _without(fit: CoupledFit, test: Test) -> tuple[float, Found]:
    """Return the minimum in which one more weight is zero, and by how much it is higher, in noise variances."""
    sets, absent = fit._sets, fit.weights == 0
    absent[test.place, test.component] = True
    search = Search(sets, fit.rank, fit._rules, as_generator(0), absent)
    variances = (fit.noise_standard_deviations / sets.scales) ** 2
    search.objective = CoupledObjective(search.problem, sets, variances)
    factors = [np.nan_to_num(factor) for factor in fit.factors.values()]
    start = separated(Parts(factors, np.where(absent, 0.0, fit.weights / sets.scales[:, None])), sets)
    with few_threads(float(sets.n_observed.max()) * fit.rank):
        found = search.finished(start, fit.p_missed)
    distances = found.objective.distances(search.point(found.end.parts))
    return float(np.sum((distances - fit.relative_errors**2 * sets.n_observed) / variances)), found
