"""Keywords of other libraries get an answer, and signatures stay what they are for people, tools and scikit-learn."""

from __future__ import annotations

import inspect
import pickle
import re

import numpy as np
import pytest

import codiag
from codiag import models
from codiag._checks import ATTRIBUTES, OPTIONS, explains_keywords

ESTIMATORS = [getattr(models, name) for name in models.__all__ if hasattr(getattr(models, name), "fit")]
FUNCTIONS = [codiag.factorize, codiag.factorize_each, codiag.choose_rank, codiag.joint_diagonalize]
CUBE = np.random.default_rng(0).standard_normal((4, 3, 3))


@pytest.mark.parametrize(
    ("call", "keyword", "words"),
    [
        (codiag.factorize, "random_state", "here it is called rng"),
        (codiag.factorize, "observed", "here it is called mask, and is true where an entry counts"),
        (codiag.factorize, "n_components", "here it is called rank"),
        (codiag.factorize, "tol", "write method=codiag.methods.NLS(tol=...)"),
        (codiag.factorize, "n_iter_max", "write method=codiag.methods.NLS(max_iter=...)"),
        (codiag.factorize, "callback", "write method=codiag.methods.Auto(callback=...)"),
        (codiag.factorize, "non_negative", "write constraints='nonnegative'"),
        (codiag.factorize, "verbose", "logging.basicConfig(level='INFO')"),
        (codiag.factorize, "symetric", "did you mean symmetric?"),
        (
            codiag.factorize,
            "xyz",
            "it takes tensor, rank, loss, constraints, mask, weights, symmetric, init, method, labels, rng",
        ),
        (codiag.factorize_each, "random_state", "here it is called rng"),
        (codiag.choose_rank, "max_rank", "here it is called ranks"),
        (codiag.joint_diagonalize, "eps", "write diagonalizer=UWEDGE(tol=...)"),
        (codiag.joint_diagonalize, "seed", "here it is called rng"),
        (models.CP, "rank", "here it is called n_components"),
        (models.CP, "seed", "here it is called random_state"),
        (models.DawidSkene, "n_iter", "here it is called max_iter"),
        (models.HiddenMarkov, "n_states", "here it is called n_components"),
    ],
)
def test_a_keyword_of_another_library_is_answered(call, keyword, words):
    told = re.escape(f"{call.__name__}() got an unexpected keyword argument '{keyword}'; ") + ".*" + re.escape(words)
    with pytest.raises(TypeError, match=told):
        call(CUBE, **{keyword: 1})


@pytest.mark.parametrize("ways", OPTIONS.values())
def test_what_is_advised_can_be_written(ways):
    """The names are there and take the option, and the keyword is one that functions have."""
    keywords = {name for function in FUNCTIONS for name in inspect.signature(function).parameters}
    for way in ways:
        keyword, _, value = way.partition("=")
        assert keyword in keywords
        for place, option in re.findall(r"(?:codiag\.(?:\w+\.))?(\w+)\((\w+)=\.\.\.\)", value):
            owner = getattr(codiag.methods, place, None) or getattr(codiag.diagonalize, place)
            assert option in inspect.signature(owner).parameters


def test_signatures_stay_what_they_are():
    assert list(inspect.signature(codiag.factorize).parameters)[:2] == ["tensor", "rank"]
    for function in FUNCTIONS:
        assert pickle.loads(pickle.dumps(function)) is function
        assert not any(one.kind is one.VAR_KEYWORD for one in inspect.signature(function).parameters.values())
    for model in ESTIMATORS:
        assert set(inspect.signature(model).parameters) == set(model().get_params(deep=False))


def test_the_same_arguments_come_in_the_same_order():
    expected = list(inspect.signature(codiag.factorize).parameters)[2:]
    assert expected == "loss constraints mask weights symmetric init method labels rng progress".split()  # noqa: SIM905
    for function in (codiag.choose_rank, codiag.factorize_each):
        names = list(inspect.signature(function).parameters)
        assert names[2 : 2 + len(expected)] == expected
        assert set(names[2 + len(expected) :]) <= {"n_jobs", "model"}
    of_fit = {"mask", "weights", "symmetric", "labels", "progress"}  # of the data, or of a call, not of an estimator
    names = list(inspect.signature(models.CP).parameters)
    assert names[1:-1] == [name for name in expected if name not in of_fit | {"rng"}]
    assert names[-1] == "random_state"


@pytest.mark.parametrize(
    ("name", "place"),
    {
        "parafac": "codiag.factorize",
        "factorise": "codiag.factorize",
        "CP": "codiag.models.CP",
        "load": "codiag.Factorization.load",
        "DawidSkene": "codiag.models.DawidSkene",
        "SparseTensor": "codiag.tensors.SparseTensor",
        "core_consistency": "codiag.metrics.core_consistency",
        "to_tensorly": "codiag.io",
    }.items(),
)
def test_what_codiag_does_not_have_is_found_elsewhere(name, place):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; see {re.escape(place)}"):
        getattr(codiag, name)


@pytest.mark.parametrize(
    ("name", "place"),
    {
        "components": "fit.factors",
        "A": "fit.factors",
        "loadings": "fit.factors",
        "lambdas": "fit.weights",
        "reconstruct": "fit.to_tensor()",
        "score": "fit.relative_error",
        "bse": "fit.standard_errors",
        "loss": "fit.problem",
        "n_iter": "fit.history",
        "summary": "fit.diagnose()",
    }.items(),
)
def test_what_a_fit_does_not_have_is_found_elsewhere(name, place):
    fit = codiag.factorize(CUBE, 1, rng=0)
    with pytest.raises(AttributeError, match=f"has no attribute '{name}'; see {re.escape(place)}"):
        getattr(fit, name)


def test_every_place_that_is_named_exists():
    fit = codiag.factorize(CUBE, 1, rng=0)
    for place in ATTRIBUTES.values():
        for owner, path in re.findall(r"\b(codiag|fit)\.([\w.]+\w)", place):
            found = {"codiag": codiag, "fit": fit}[owner]
            for name in path.split("."):
                found = getattr(found, name)


def test_all_models_answer():
    for model in ESTIMATORS:
        known = set(inspect.signature(model).parameters)
        told = "here it is called random_state" if "random_state" in known else "it takes "
        with pytest.raises(TypeError, match=f"unexpected keyword argument 'rng'; {told}"):
            model(rng=1)


def test_errors_from_inside_a_function_are_its_own():
    @explains_keywords
    def outer(x):
        return inner(y=x)

    def inner(x):
        return x

    with pytest.raises(TypeError, match=r"unexpected keyword argument 'y'$"):
        outer(1)


def test_subclasses_have_their_own_names_and_keywords():
    class Passing(models.SOBI):
        def __init__(self, extra=1, **others):
            super().__init__(**others)
            self.extra = extra

    class Plain(models.SOBI):
        pass

    assert Passing(n_components=2).n_components == 2
    with pytest.raises(TypeError, match=r"Plain\(\) got an"):
        Plain(rank=2)
