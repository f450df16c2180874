"""Many random starts of a small tensor, taken a few sweeps at once; the lowest ones are worth a minimization."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from codiag._arrays import adjoint, conjugate, double, like, normal_draws, to_host
from codiag.least_squares import BRIEF_SWEEPS, SLOW, TINY, TOLERANCE
from codiag.problem import Log, Problem, n_affordable_starts
from codiag.starts._start import Start
from codiag.tensors import FactoredTensor, khatri_rao


@dataclass(frozen=True, kw_only=True, eq=False)
class Screened(Start):
    """Random components of a small complete array, the lowest of many after some alternating sweeps.

    The sweeps of all starts are products of stacks of small matrices, which cost hardly more than those of one. Factors
    of one sign are swept column by column. Starts that differ in their objective come first.
    """

    def generate(self, problem: Problem, rng: np.random.Generator, log: Log) -> Iterator[FactoredTensor]:
        n_starts = n_affordable_starts(problem, BRIEF_SWEEPS) if _applies(problem) else 0
        if n_starts < BRIEF_SWEEPS:  # so few are better minimized one by one
            return
        entries, rules = double(to_host(problem.tensor.to_dense())), problem.constraints
        signs = [rules is not None and rules[mode] is not None for mode in range(entries.ndim)]
        factors = [normal_draws(rng, (n_starts, size, problem.rank), entries) for size in entries.shape]
        factors = [np.abs(factor) if sign else factor for factor, sign in zip(factors, signs, strict=True)]
        objectives = _swept(entries, factors, signs)
        for index in _distinct_first(objectives):
            found = [like(factor[index], problem.tensor.reference) for factor in factors]
            yield FactoredTensor(like(np.ones(problem.rank), found[0]), found, symmetric=False)


def _applies(problem: Problem) -> bool:
    """Return whether a problem is one of plain least squares in each mode, or of one sign."""
    rules = [rule for rule in problem.constraints or () if rule is not None]
    is_free = problem.entries is None and not problem.shared and not problem.symmetric
    return is_free and all(rule.is_one_sided for rule in rules)


def _swept(entries: np.ndarray, factors: list[np.ndarray], signs: list[bool]) -> np.ndarray:
    """Take sweeps from all starts, in place, and return half their squared distances without that of zero."""
    unfolded = [np.moveaxis(entries, mode, 0).reshape(entries.shape[mode], -1) for mode in range(entries.ndim)]
    grams = [adjoint(factor) @ factor for factor in factors]
    objectives = np.zeros(factors[0].shape[0])
    for _ in range(BRIEF_SWEEPS):
        for mode, sign in enumerate(signs):
            others = [conjugate(factor) for other, factor in enumerate(factors) if other != mode]
            gram = np.prod([own for other, own in enumerate(grams) if other != mode], axis=0)
            product = unfolded[mode] @ khatri_rao(others)
            factors[mode] = _one_sided(factors[mode], product, gram) if sign else _free(product, gram)
            grams[mode] = adjoint(factors[mode]) @ factors[mode]
            inner = np.sum(product * conjugate(factors[mode]), axis=(1, 2))
            objectives = np.real(np.sum(gram * grams[mode], axis=(1, 2)) / 2 - inner)
    return objectives


def _free(product: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Return the factors of least squares for a stack of normal equations, as if singular ones were not quite so."""
    sizes = np.trace(gram, axis1=1, axis2=2).real[:, None, None] + TINY
    matrix = gram + TOLERANCE * sizes * np.eye(gram.shape[1])
    return np.swapaxes(np.linalg.solve(matrix, np.swapaxes(product, 1, 2)), 1, 2)


def _one_sided(factor: np.ndarray, product: np.ndarray, gram: np.ndarray) -> np.ndarray:
    """Return factors of one sign, each column once at its best for the others."""
    factor = factor.copy()
    for i in range(gram.shape[1]):
        size = gram[:, i, i, None]
        step = product[:, :, i] - (factor @ gram[:, :, i, None])[:, :, 0]
        best = np.maximum(factor[:, :, i] + step / np.maximum(size, TINY), 0.0)
        factor[:, :, i] = np.where(size > TINY, best, factor[:, :, i])
    return factor


def _distinct_first(objectives: np.ndarray) -> list[int]:
    """Return indices in ascending order of objectives, those that are as low as another one last."""
    order = np.argsort(objectives, kind="stable").tolist()
    scale, distinct = SLOW * float(np.max(np.abs(objectives))), list[int]()
    for index in order:
        if not distinct or objectives[index] - objectives[distinct[-1]] > scale:
            distinct.append(index)
    return distinct + [index for index in order if index not in distinct]
