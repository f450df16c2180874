from __future__ import annotations

import pytest

from codiag.diagonalize import round_robin


@pytest.mark.parametrize("size", range(2, 12))
def test_round_robin_meets_every_pair_once_in_disjoint_rounds(size):
    rounds = round_robin(size)
    pairs = [(int(p), int(q)) for first, second in rounds for p, q in zip(first, second, strict=True)]
    assert sorted(pairs) == [(p, q) for p in range(size) for q in range(p + 1, size)]
    for first, second in rounds:
        assert len({*first.tolist(), *second.tolist()}) == 2 * len(first)
