"""Options of the wrong kind are refused where a strategy is made, by name."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import codiag
from cases import DIAGONALIZERS, METHODS
from codiag.diagonalize import UWEDGE, Jacobi
from codiag.methods import NOJD

WRONG = {
    "text": "wrong",
    "nan": math.nan,
    "minus one": -1,
    "zero": 0,
    "none": None,
    "list": [1, "a"],
    "object": object(),
}
OPTIONAL = {"rank", "max_rows", "n_projections", "diagonalizer", "init", "monitor", "plug_in", "starts", "max_seconds"}
MAY_BE_ZERO = {"statistical_tol", "orthogonalize", "max_replacements"}
STRATEGIES = {type(case.method).__name__: case.method for case in [*DIAGONALIZERS.values(), *METHODS.values()]}
PUBLIC = {name: method for name, method in STRATEGIES.items() if not name.startswith("_")}
OPTIONS = [(name, field.name) for name, method in PUBLIC.items() for field in dataclasses.fields(method)]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize(("name", "option"), OPTIONS, ids=str)
def test_wrong_kinds_are_refused_by_name(name, option, wrong):
    if (wrong == "none" and option in OPTIONAL) or (wrong == "zero" and option in MAY_BE_ZERO):
        pytest.skip("that is a choice")
    with pytest.raises((TypeError, ValueError), match=option) as caught:
        dataclasses.replace(STRATEGIES[name], **{option: WRONG[wrong]})
    assert type(caught.value) in (TypeError, ValueError)


@pytest.mark.parametrize("moment", [math.nan, [[1.0, math.nan], [math.nan, 1.0]], [[1.0, 2.0]], [1.0], 1j])
def test_second_moments_that_are_none(moment):
    with pytest.raises((TypeError, ValueError), match="second_moment must"):
        codiag.Problem(np.ones((2, 2, 2)), 1, symmetric=True, second_moment=moment)


@pytest.mark.parametrize("diagonalizer", [3, "uwedge", UWEDGE])
def test_diagonalizers_that_are_none(diagonalizer):
    with pytest.raises(TypeError, match="diagonalizer must be an object of codiag"):
        NOJD(diagonalizer=diagonalizer)


def test_diagonalizers_of_the_wrong_kind():
    with pytest.raises(ValueError, match="NOJD needs a diagonalizer with free factors"):
        NOJD(diagonalizer=Jacobi())
