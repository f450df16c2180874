"""Several sums over a tensor from one pass, and from its blocks."""

from __future__ import annotations

import functools
import itertools
import logging
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from codiag._arrays import to_host
from codiag.tensors import (
    Core,
    DenseTensor,
    Products,
    SquaredDistance,
    SquaredNorm,
    Tensor,
    added,
)
from tensor_cases import EVERY_CUBE, EVERY_SHAPE, TENSORS, entries_of, made, moved

laws = settings(max_examples=25, deadline=None, derandomize=True)


def some_sums(tensor, seed=0):
    """Return one of each kind of sum, and of some kinds two."""
    rng = np.random.default_rng(seed)
    factors = moved(tensor, *(rng.standard_normal((size, 3)) for size in tensor.shape))
    others = moved(tensor, *(rng.standard_normal((size, 2)) for size in tensor.shape))
    (weights,) = moved(tensor, rng.standard_normal(3))
    return [
        SquaredNorm(),
        Products(factors),
        Products(others, [tensor.order - 1]),
        Products(others, [1, 0]),
        SquaredDistance(weights, factors),
        Core(tuple(others)),
        Core((None, *others[1:])),
        Core((*others[:-1], None)),
        Core((None, factors[1], None, *others[3:])),
    ]


def numbers(result):
    if isinstance(result, Tensor):
        return [to_host(result.to_dense())]
    return [to_host(array) for array in result] if isinstance(result, list) else [np.asarray(result)]


def assert_same(result, expected, **tolerance):
    for one, other in zip(numbers(result), numbers(expected), strict=True):
        assert one.shape == other.shape
        assert_allclose(one, other, **tolerance)


@EVERY_SHAPE
def test_reading_together_is_reading_one_after_the_other(kind, shape, blocks):
    tensor, _ = made(kind, shape)
    asked = some_sums(tensor)
    for one, result in zip(asked, tensor.read(*asked), strict=True):
        assert_same(result, one.of(tensor), rtol=1e-11, atol=1e-12)
        assert isinstance(result, Tensor) == isinstance(one, Core)


@EVERY_CUBE
def test_cores_of_equal_bases_stay_symmetric(kind, shape):
    tensor, _ = made(kind, shape, symmetric=True)
    (basis,) = moved(tensor, np.random.default_rng(0).standard_normal((shape[0], 2)))
    same, different = tensor.read(Core([basis] * len(shape)), Core([basis, *[2 * basis] * (len(shape) - 1)]))
    assert same.symmetric
    assert not different.symmetric


def cuts(data, size):
    places = data.draw(st.lists(st.integers(1, max(size - 1, 1)), max_size=3, unique=True))
    ends = [0, *sorted(place for place in places if place < size), size]
    return [slice(*pair) for pair in itertools.pairwise(ends)]


@laws
@given(
    data=st.data(), shape=st.sampled_from([(4, 5, 6), (3, 4, 2, 5)]), kind=st.sampled_from(["dense", "sparse", "plain"])
)
def test_shares_of_blocks_add_up_to_the_whole(data, shape, kind):
    """In blocks of any sizes, added in any order and grouping."""
    entries = entries_of(shape)
    tensor = DenseTensor(entries)
    layout = [cuts(data, size) for size in shape]
    places = data.draw(st.permutations(list(itertools.product(*layout))))
    asked, parts = some_sums(tensor), []
    for ranges in places:
        block = TENSORS[kind](entries[ranges], False)
        results = block.read(*(pickle.loads(pickle.dumps(one.restricted_to(ranges))) for one in asked))
        parts.append([one.shares(result, ranges) for one, result in zip(asked, results, strict=True)])
    half = data.draw(st.integers(0, len(parts)))
    for number, one in enumerate(asked):
        first, second = ([part[number] for part in side] for side in (parts[:half], parts[half:]))
        together = added(functools.reduce(added, first, {}), functools.reduce(added, second, {}))
        assert_same(one.total(together, tensor), one.of(tensor), rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_shows_in_the_squared_norm(bad):
    entries = np.ones((3, 4, 5))
    entries[1, 2, 3] = bad
    total, *_ = DenseTensor(entries, symmetric=False, check=False).read(
        SquaredNorm(), Products([np.ones((size, 2)) for size in entries.shape])
    )
    assert not math.isfinite(total)
    assert math.isnan(total) == math.isnan(bad)


def test_reads_are_logged_part_by_part(monkeypatch, caplog):
    monkeypatch.setattr("codiag._arrays._namespace.BLOCK", 40)
    tensor = DenseTensor(entries_of((4, 5, 6)))
    with caplog.at_level(logging.DEBUG, "codiag.reads"):
        tensor.read(SquaredNorm(), Products([np.ones((size, 2)) for size in tensor.shape]))
    assert [(record.shape, record.part, record.n_parts) for record in caplog.records] == [
        (tensor.shape, part, 4) for part in (1, 2, 3, 4)
    ]
    assert "SquaredNorm, Products" in caplog.text
