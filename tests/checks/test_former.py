"""Names that were renamed keep working for one minor version, and say what to write."""

from __future__ import annotations

import subprocess
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import codiag
from codiag import models
from codiag._checks import explains_keywords, former_names
from codiag.constraints import NonNegative
from codiag.diagonalize import UWEDGE
from codiag.methods import Auto
from codiag.models.base import Model
from codiag.synthetic import crowd_votes, worker_confusions
from codiag.tensors import as_tensor
from codiag.theory import standard_errors


def test_modules_resolve_former_names():
    getattribute = former_names("codiag.old", {"factorise": "codiag.factorize"})
    with pytest.warns(DeprecationWarning, match=r"codiag\.old\.factorise is now codiag\.factorize; the old name goes"):
        assert getattribute("factorise") is codiag.factorize
    with pytest.raises(AttributeError, match=r"module 'codiag\.old' has no attribute 'nothing'"):
        getattribute("nothing")


NAMES = (Path(__file__).parent / "names_0_2.txt").read_text().split()
"""Every public name of 0.2."""
GONE = {"codiag.metrics.Factors"}


@pytest.mark.parametrize("name", NAMES)
def test_names_of_the_last_version_work_or_say_what_to_write(name):
    module, own = name.rsplit(".", 1)
    if module == "codiag.plotting":
        pytest.importorskip("matplotlib")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if name in GONE:
            with pytest.raises(AttributeError, match=r"was removed in 0\.3; write "):
                getattr(import_module(module), own)
        else:
            getattr(import_module(module), own)
    assert all(one.category is DeprecationWarning and " is now codiag." in str(one.message) for one in caught)


def doubled(*, value=1):
    return 2 * value


def test_functions_take_former_keywords():
    renamed = explains_keywords(doubled, {"number": "value"})
    with pytest.warns(DeprecationWarning, match="number of doubled is now value"):
        assert renamed(number=3) == 6
    assert renamed(value=3) == 6
    with pytest.raises(TypeError, match="got value twice: number is its former name"):
        renamed(number=3, value=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        renamed(size=3)


class Renamed(Model):
    former_parameters: ClassVar = {"polish": "max_iter"}
    former_attributes: ClassVar = {"errors_": "confusion_"}

    def __init__(self, max_iter=0):
        self.max_iter = max_iter


def test_models_take_former_parameters_and_have_former_attributes():
    with pytest.warns(DeprecationWarning, match="polish of Renamed is now max_iter"):
        model = Renamed(polish=3)
    assert model.get_params() == {"max_iter": 3}
    with (
        pytest.raises(AttributeError, match="confusion_"),
        pytest.warns(DeprecationWarning, match="errors_ of Renamed"),
    ):
        _ = model.errors_
    model.confusion_ = 7
    with pytest.warns(DeprecationWarning, match="errors_ of Renamed is now confusion_"):
        assert model.errors_ == 7
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = model.nothing


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("codiag.tables", "read_votes"),
        ("codiag.tensors", "WordPairs"),
        ("codiag.methods.least_squares", "minimize"),
        ("codiag.synthetic", "worker_errors"),
        ("codiag.theory", "FirstOrder"),
        ("codiag.theory", "concentration"),
        ("codiag.theory", "condition"),
        ("codiag.theory", "first_order"),
        ("codiag.theory", "least_projections"),
        ("codiag.theory", "projections_for"),
        ("codiag.datasets", "available"),
        ("codiag.datasets", "at_hand"),
        *(("codiag.models", name) for name in ("Components", "Diagnostics", "MomentModel", "Moments")),
    ],
)
def test_former_modules_have_their_names(module, name):
    with pytest.warns(DeprecationWarning, match="the old name goes in"):
        assert callable(getattr(__import__(module, fromlist=[name]), name))


@pytest.mark.parametrize("name", ["tables.read_votes", "methods.least_squares.minimize"])
def test_former_modules_need_no_import(name):
    code = f"import codiag; codiag.{name}"
    said = subprocess.run([sys.executable, "-Wdefault", "-c", code], capture_output=True, text=True, check=True).stderr
    assert f"codiag.{name} is now codiag." in said


def test_standard_errors_of_a_diagonalization_were_a_function():
    fit = codiag.joint_diagonalize([[[1, 0], [0, 2]], [[2, 0], [0, 1]], [[1, 0], [0, 1]]], seed=0)
    with pytest.warns(DeprecationWarning, match=r"theory\.standard_errors\(fit\) is now fit\.standard_errors"):
        assert np.array_equal(standard_errors(fit), fit.standard_errors)


def test_confusion_matrices_of_a_crowd_were_errors():
    confusions = worker_confusions(3, 2, seed=0)
    with pytest.warns(DeprecationWarning, match="errors of crowd_votes is now confusions"):
        crowd = crowd_votes(4, errors=confusions, seed=0)
    with pytest.warns(DeprecationWarning, match="errors of Crowd is now confusions"):
        assert crowd.errors is crowd.confusions
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = crowd.nothing


def test_sample_weights_of_matrices_were_weights():
    matrices, weights = [[[1, 0], [0, 2]], [[2, 0], [0, 1]]], [1.0, 2.0]
    expected = codiag.joint_diagonalize(matrices, sample_weight=weights, seed=0)
    with pytest.warns(DeprecationWarning, match="weights of joint_diagonalize is now sample_weight"):
        fit = codiag.joint_diagonalize(matrices, weights=weights, seed=0)
    assert fit.off_diagonal == expected.off_diagonal
    with pytest.warns(DeprecationWarning, match=r"weights of Diagonalizer\.__call__ is now sample_weight"):
        UWEDGE()(matrices, weights=weights, seed=0)
    with pytest.warns(DeprecationWarning, match="weights of Diagonalization is now sample_weight"):
        assert fit.weights is fit.sample_weight
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = fit.nothing


PROBLEM = codiag.Problem(np.ones((2, 3, 4)), 1)
ATTRIBUTES = [(kind, old) for kind in (PROBLEM, NonNegative(), Auto()) for old in kind.former_attributes]


@pytest.mark.parametrize(("kind", "old"), ATTRIBUTES, ids=[f"{type(kind).__name__}.{old}" for kind, old in ATTRIBUTES])
def test_attributes_are_read_by_their_former_names(kind, old):
    new = kind.former_attributes[old]
    with pytest.warns(DeprecationWarning, match=f"{old} of {type(kind).__name__} is now {new}"):
        assert getattr(kind, old) == getattr(kind, new)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = kind.nothing


def test_constraints_and_methods_of_users_may_declare_former_names():
    with pytest.warns(DeprecationWarning, match="by_rows of Positive is now holds_by_rows"):

        class Positive(NonNegative):
            by_rows = False

    with pytest.warns(DeprecationWarning, match="honors of Picky is now supports"):

        class Picky(Auto):
            honors = frozenset()

    assert not Positive().holds_by_rows
    assert not Picky().supports


def test_sketches_of_tensors_were_looks():
    tensor = as_tensor(np.ones((2, 3, 4)))
    with pytest.warns(DeprecationWarning, match="look of Tensor is now sketch"):
        assert tensor.look().squared_norm == 24
    with pytest.warns(DeprecationWarning, match="unseen of Tensor is now not is_validated"):
        assert tensor.unseen is False
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = tensor.nothing


def test_confusion_matrices_of_a_crowd_were_called_errors():
    model = models.DawidSkene(init="majority").fit([[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 0, 1]])
    for old in ("errors_", "errors_standard_errors_", "errors_spread_"):
        new = old.replace("errors", "confusion", 1)
        with pytest.warns(DeprecationWarning, match=f"{old} of DawidSkene is now {new}"):
            assert getattr(model, old) is getattr(model, new)


BOTH = ["HiddenMarkov", "LatentDirichlet", "MixedMembershipCommunities", "MultiviewMixture", "SingleTopic"]
BOTH += ["SphericalGaussianMixture"]
PARAMETERS = [(kind, "polish", "max_iter") for kind in [*BOTH, "JADE", "NSS", "SOBI"]]
PARAMETERS += [(kind, "n_blocks", "n_jackknife") for kind in BOTH]
PARAMETERS += [("NSS", "n_blocks", "n_windows"), ("DawidSkene", "em_rounds", "max_iter")]


@pytest.mark.parametrize(("kind", "old", "new"), PARAMETERS)
def test_models_take_their_former_parameters(kind, old, new):
    """In the constructor, in `set_params`, and as attributes."""
    said = f"{old} of {kind} is now {new}"
    with pytest.warns(DeprecationWarning, match=said):
        model = getattr(codiag.models, kind)(**{old: 7})
    assert getattr(model, new) == 7
    with pytest.warns(DeprecationWarning, match=said):
        model.set_params(**{old: 5})
    assert model.get_params()[new] == 5
    with pytest.warns(DeprecationWarning, match=said):
        assert getattr(model, old) == 5
