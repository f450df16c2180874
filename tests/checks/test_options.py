"""Options of methods and diagonalizers: what their parsers refuse, and that every option goes through one."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import codiag
from cases import DIAGONALIZERS, METHODS
from codiag._checks import as_flag, as_number, as_share
from codiag.diagonalize import UWEDGE, Jacobi
from codiag.methods import NOJD

METHODS_OF_ALL_KINDS = [case.method for case in [*DIAGONALIZERS.values(), *METHODS.values()]]
STRATEGIES = {type(method).__name__: method for method in METHODS_OF_ALL_KINDS if type(method).__name__[0] != "_"}


@pytest.mark.parametrize("wrong", ["3", math.nan, math.inf, -1, 0, None, [1], 1j, object], ids=str)
def test_numbers_that_are_refused(wrong):
    with pytest.raises((TypeError, ValueError), match="^tol must"):
        as_number("tol", wrong)


@pytest.mark.parametrize("wrong", [2.5, 1e300, "3", True, -1, 0, None], ids=str)
def test_integers_that_are_refused(wrong):
    with pytest.raises((TypeError, ValueError), match="^max_sweeps must"):
        as_number("max_sweeps", wrong, integer=True)


@pytest.mark.parametrize("wrong", ["no", 2, math.nan, None], ids=str)
def test_flags_that_are_refused(wrong):
    with pytest.raises(TypeError, match="^compress must"):
        as_flag("compress", wrong)


@pytest.mark.parametrize("wrong", [-0.1, 1.5, math.nan, "half"], ids=str)
def test_shares_that_are_refused(wrong):
    with pytest.raises((TypeError, ValueError), match="^share must"):
        as_share("share", wrong)


def test_what_is_accepted():
    as_number("tol", 1e-8)
    as_number("tol", np.float32(0.5))
    as_number("max_sweeps", np.int64(3), integer=True)
    as_number("max_replacements", 0, integer=True, zero=True)
    as_flag("compress", np.bool_(True))
    as_share("share", 0.5)


def refusal(strategy, option):
    """Return what is said about an option that is no number, flag, text or array."""
    try:
        dataclasses.replace(strategy, **{option: object()})
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def test_every_option_is_checked_where_it_is_set_and_refused_by_its_name():
    options = [(name, field.name) for name, method in STRATEGIES.items() for field in dataclasses.fields(method)]
    assert [(name, option) for name, option in options if option not in refusal(STRATEGIES[name], option)] == []


@pytest.mark.parametrize("moment", [math.nan, [[1.0, math.nan], [math.nan, 1.0]], [[1.0, 2.0]], [1.0], 1j])
def test_second_moments_that_are_none(moment):
    with pytest.raises((TypeError, ValueError), match="^second_moment must"):
        codiag.Problem(np.ones((2, 2, 2)), 1, symmetric=True, second_moment=moment)


@pytest.mark.parametrize("diagonalizer", [3, "uwedge", UWEDGE])
def test_diagonalizers_that_are_none(diagonalizer):
    with pytest.raises(TypeError, match="^diagonalizer must"):
        NOJD(diagonalizer=diagonalizer)


def test_diagonalizers_of_the_wrong_kind():
    with pytest.raises(ValueError, match="^NOJD needs"):
        NOJD(diagonalizer=Jacobi())
