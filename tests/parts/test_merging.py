"""Sums over data merge: in any parts, in any order."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from codiag.models.chains import ChainSums
from codiag.models.crowd import VoteSums
from codiag.models.base import ViewSums, leave_one_out, merged
from codiag.models.mixtures import GaussianSums
from codiag.models.topics import WordStatistics
from simulated import chain, gaussians, named_votes, views


@dataclass(frozen=True)
class SumsCase:
    """Sums, data that is cut into parts, and the moments that do not depend on how."""

    empty: Any
    data: Any
    cut: Callable[[Any, np.ndarray], Any]
    moments: Callable[[Any], list[np.ndarray]]  # arrays that make up what `finish` returns


def _central_of(sums):
    moments = sums.finish()
    return [moments.center, moments.unit, moments.second, moments.cube]


def _views_of(sums):
    found = sums.finish(alpha_0=0.4)
    pairs = [found.pairs(left, right) for left, right in ((0, 1), (1, 2), (0, 2))]
    return [*(found.mean(mode) for mode in range(3)), *pairs, found.third.to_dense()]


def _votes_of(sums):
    votes = sums.finish()
    return [votes.counts.toarray(), *(names == sorted(names) for names in (votes.tasks.tolist(),))]


RNG = np.random.default_rng(0)
COUNTS = sparse.csr_array(RNG.poisson(0.6, (60, 12)).astype(float))
SUMS = {
    "words": SumsCase(
        WordStatistics.empty(RNG.standard_normal((12, 4))), COUNTS, lambda c, rows: c[rows], lambda s: [*s.finish(0.7)]
    ),
    "gaussian": SumsCase(GaussianSums.empty(6), gaussians(60, 0)[0] + 30, lambda x, rows: x[rows], _central_of),
    "chain": SumsCase(
        ChainSums.empty(),
        np.array_split(chain(900, 0)[0], 60),
        lambda sequences, rows: [sequences[row] for row in rows],
        lambda s: [np.asarray(part) for place, part in enumerate(s.finish()) if place != 4],
    ),
    "views": SumsCase(
        ViewSums.empty(4, 5, 6),
        (RNG.random(60), *views(60, 0)[0]),
        lambda columns, rows: tuple(column[rows] for column in columns),
        _views_of,
    ),
    "votes": SumsCase(VoteSums(), named_votes(), lambda table, rows: tuple(table[rows].T), _votes_of),
}
EVERY = pytest.mark.parametrize("case", SUMS.values(), ids=SUMS)


def parts_of(case, n_parts, seed):
    """Return sums over parts of unequal sizes, samples dealt at random."""
    rng = np.random.default_rng(seed)
    n = len(case.data) if not isinstance(case.data, tuple) and not sparse.issparse(case.data) else 60
    order, cuts = rng.permutation(n), np.sort(rng.choice(np.arange(1, n), n_parts - 1, replace=False))
    return n, [case.empty.of(case.cut(case.data, np.sort(rows))) for rows in np.split(order, cuts)]


def assert_same(case, one, other):
    for mine, theirs in zip(case.moments(one), case.moments(other), strict=True):
        assert_allclose(mine, theirs, rtol=1e-10, atol=1e-10 * max(np.max(np.abs(theirs)), 1e-300))


@EVERY
@pytest.mark.parametrize("seed", range(3))
def test_merging_equals_one_pass(case, seed):
    n, parts = parts_of(case, 2 + 3 * seed, seed)
    whole = copy.copy(case.empty).update(case.cut(case.data, np.arange(n)))
    assert_same(case, merged([case.empty, *parts]), whole)
    assert sum(part.size for part in parts) == pytest.approx(whole.size)


@EVERY
def test_merging_is_associative_and_commutative(case):
    _, (a, b, c) = parts_of(case, 3, 9)
    assert_same(case, merged([merged([a, b]), c]), merged([a, merged([b, c])]))
    assert_same(case, merged([a, b, c]), merged([c, b, a]))
    assert_same(case, merged([a, case.empty]), merged([case.empty, a]))


@EVERY
def test_merging_changes_the_first_alone_and_updating_is_in_place(case):
    _, (a, b) = parts_of(case, 2, 4)
    before = [copy.deepcopy(case.moments(part)) for part in (a, b)]
    total = copy.copy(a)
    assert total.merge(b) is total
    for part, kept in zip((a, b), before, strict=True):
        for mine, theirs in zip(case.moments(part), kept, strict=True):
            assert_array_equal(mine, theirs)


def test_each_block_is_left_out_once():
    case = SUMS["words"]
    _, parts = parts_of(case, 7, 1)
    for place, others in enumerate(leave_one_out(parts)):
        assert_same(case, others, merged([part for other, part in enumerate(parts) if other != place]))


def test_sums_of_other_kinds_are_not_merged():
    with pytest.raises(ValueError, match="sums must have the same basis"):
        WordStatistics.empty(np.eye(3)).merge(WordStatistics.empty(2 * np.eye(3)))
    with pytest.raises(TypeError, match="other must be WordStatistics"):
        WordStatistics.empty(np.eye(3)).merge(GaussianSums.empty(3))
    with pytest.raises(TypeError, match="symbols of one kind"):
        ChainSums.empty().update([np.arange(4)]).merge(ChainSums.empty().of([np.array(["a", "b", "c"])]))
