"""Names that were renamed keep working for one minor version, and say what to write."""

from __future__ import annotations

from typing import ClassVar

import pytest

import codiag
from codiag._checks import explains_keywords, former_names
from codiag.models.frame import Model


def test_modules_resolve_former_names():
    getattribute = former_names("codiag.old", {"factorise": "codiag.factorize"})
    with pytest.warns(DeprecationWarning, match=r"codiag\.old\.factorise is now codiag\.factorize; the old name goes"):
        assert getattribute("factorise") is codiag.factorize
    with pytest.raises(AttributeError, match=r"module 'codiag\.old' has no attribute 'nothing'"):
        getattribute("nothing")


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
        *(("codiag.models", name) for name in ("Components", "Diagnostics", "MomentModel", "Moments")),
    ],
)
def test_former_modules_have_their_names(module, name):
    with pytest.warns(DeprecationWarning, match="the old name goes in"):
        assert callable(getattr(__import__(module, fromlist=[name]), name))


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
