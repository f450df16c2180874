"""Sentences for a methods section: what was fitted, how, and what to cite."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from codiag._text import counted

if TYPE_CHECKING:
    from codiag.result._factorization import Factorization

CP = "T. G. Kolda and B. W. Bader, Tensor decompositions and applications, SIAM Review 51(3), 2009"
START = (
    "V. Kuleshov, A. T. Chaganty and P. Liang, Tensor factorization via matrix factorization, AISTATS 2015 (start by "
    "joint diagonalization)"
)
STEPS = (
    "A.-H. Phan, P. Tichavsky and A. Cichocki, Low complexity damped Gauss-Newton algorithms for CANDECOMP/PARAFAC, "
    "SIAM J. Matrix Anal. Appl. 34(1), 2013"
)
LOSSES = "D. Hong, T. G. Kolda and J. A. Duersch, Generalized canonical polyadic decomposition, SIAM Review 62(1), 2020"
ROBUST = (
    "H. White, A heteroskedasticity-consistent covariance matrix estimator, Econometrica 48(4), 1980 (standard errors)"
)


def description(fit: Factorization) -> str:
    """Return what `Factorization.describe` does."""
    return f"{_of_model(fit)} {_of_search(fit)}\n\nReferences: {'; '.join(_references(fit))}."


def _of_model(fit: Factorization) -> str:
    problem, sizes = fit.problem, " x ".join(map(str, fit.shape))
    n_missing = math.prod(fit.shape) - problem.n_observed
    share = 100 * n_missing / math.prod(fit.shape)
    missing = f", of which {share:.2g} % of the entries are missing," if n_missing else ""
    rules = [None if rule is None else repr(rule) for rule in problem.constraints or ()]
    bound = ""
    if rules and len(set(rules)) == 1:
        bound = f", with the constraint {rules[0]} on all factors"
    elif any(rules):
        on = [f"{rule} on {name}" for name, rule in zip(fit._labels.names, rules, strict=True) if rule]
        bound = f", with the constraints {', '.join(on)}"
    shared = f", one factor for modes {problem.shared}" if problem.shared else ""
    shared = ", one factor for all modes" if problem.symmetric is True else shared
    by = "least squares" if problem.loss is None else f"the loss {problem.loss!r}"
    components = counted(fit.rank, "component")
    share = 100 * fit.deviance.explained
    what = "variance" if problem.loss is None else "deviance"
    return (
        f"A CP (PARAFAC) decomposition with {components} was fitted to a tensor of {sizes}{missing} by "
        f"{by}{bound}{shared}; it explains {share:.4g} % of the {what}."
    )


def _of_search(fit: Factorization) -> str:
    from codiag import __version__

    known = fit._settings
    method, seed = known.get("method", "a method that is not known"), known.get("rng")
    seeded = f", rng={seed}" if seed is not None else ""
    n_starts = sum(stage.name.startswith("rough") for stage in fit.history)
    starts = f", the best of {n_starts} starts" if n_starts > 1 else ""
    ended = "converged" if fit.converged else "did not converge"
    chosen = (
        ""
        if fit.rank_choice is None
        else f" The number of components was chosen by significance (sign flips), standard errors and replication in "
        f"halves of the data. {fit.rank_choice.reason}"
    )
    return (
        f"It was computed with codiag {known.get('version', __version__)} (method {method}{seeded}){starts}, and "
        f"{ended}. Confidence intervals are by first-order theory, for noise that is {fit.noise_model}.{chosen}"
    )


def _references(fit: Factorization) -> list[str]:
    found = [CP, START, STEPS]
    found += [LOSSES] if fit.problem.loss is not None else []
    return [*found, ROBUST] if not fit.noise_model.is_white else found
