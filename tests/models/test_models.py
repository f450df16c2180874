"""Latent-variable models: consistent, the same from every seed, and at home in scikit-learn."""

from __future__ import annotations

import copy
import functools
import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import codiag
from cases import MODELS
from codiag.extending import Components, Diagnostics, MomentModel, Moments
from codiag.methods import ALS, NOJD
from codiag.models import (
    HiddenMarkov,
    LatentDirichlet,
    MixedMembershipSBM,
    MultiviewMixture,
    SingleTopic,
    SphericalGaussianMixture,
)
from codiag.models.base import Model
from codiag.tensors import symmetrize
from simulated import gaussians, matched

EVERY = pytest.mark.parametrize("name", MODELS)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*may be more than the data shows")
@EVERY
def test_errors_fall_like_the_root_of_the_samples(name):
    """From 1e3 to 1e6 samples the slopes are between -0.485 and -0.555; here on fewer, for time."""
    sizes = [3000, 10_000, 30_000]
    errors = [np.mean([MODELS[name].error(n, seed) for seed in range(6)]) for n in sizes]
    slope = np.polyfit(np.log(sizes), np.log(errors), 1)[0]
    assert -0.62 < slope < -0.38
    assert errors[-1] < 0.05


@functools.cache
def estimate_by_default(name):
    return MODELS[name].estimate(5000, random_state=0)


@EVERY
def test_every_seed_gives_the_same_answer(name):
    first = estimate_by_default(name)
    # Of chains this short, Baum-Welch ends higher from random probabilities than from the moments, to 0.01 nats.
    atol = 0.05 if name == "HiddenMarkov" else 1e-6
    for seed in (1, 2, None):
        found = MODELS[name].estimate(5000, random_state=seed)
        if name == "HiddenMarkov":  # two of its states are about as frequent, and may change places
            found = found[linear_sum_assignment(np.abs(first[:, None] - found).sum(axis=2))[1]]
        assert_allclose(found, first, atol=atol)


@EVERY
@pytest.mark.parametrize("method", ["nojd1", "ojd1", "tpm", "als"])
def test_any_method_serves(name, method):
    method = ALS(init=NOJD()) if method == "als" else method  # from a random start it may end anywhere
    found = MODELS[name].estimate(5000, method=method, random_state=0)
    assert matched(found, estimate_by_default(name)) < 0.1


@parametrize_with_checks([SphericalGaussianMixture(2), SphericalGaussianMixture(1, max_iter=0)])
@pytest.mark.filterwarnings("ignore")
def test_gaussian_mixtures_keep_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


EXCEPTIONS = {
    "check_transformer_n_iter": "the pure method of moments takes no steps",
    "check_fit2d_1feature": "a vocabulary of one word has one topic, which is found: there is no error to word",
}


@parametrize_with_checks([LatentDirichlet(1, max_iter=0), SingleTopic(1)], expected_failed_checks=lambda _: EXCEPTIONS)
@pytest.mark.filterwarnings("ignore")
def test_topics_keep_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@EVERY
def test_parameters_are_stored_and_cloned(name):
    model = MODELS[name].kind(3, max_iter=2)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(n_components=2).n_components == 2


@pytest.mark.filterwarnings("ignore:.*may be more than the data shows")
@EVERY
def test_diagnostics_are_reordered_with_components(name):
    """Components of about the same weight change places in EM; one step moves them little, so that they are known."""
    case, moved = MODELS[name], 0
    for seed in range(20):
        data = case.alike(seed)
        before, after = (case.kind(3, max_iter=max_iter, random_state=0).fit(data) for max_iter in (0, 1))
        for model in (before, after):
            assert np.all(np.diff(case.weights(model)) < 1e-9)
        distances = np.linalg.norm(case.parameters(after)[:, None] - case.parameters(before)[None], axis=2)
        order = linear_sum_assignment(distances)[1]
        assert_allclose(after.diagnostics_["core_errors"], before.diagnostics_["core_errors"][..., order])
        moved += not np.array_equal(order, range(3))
        if moved == 2:
            return
    pytest.fail("components have kept their places, and nothing was shown")


BLOCKS = np.kron(np.eye(2), np.triu(np.ones((8, 8)), 1))
ANY_DATA = {case.kind: case.draw(300, 0)[0] for case in MODELS.values()}
ANY_DATA[MixedMembershipSBM] = BLOCKS + BLOCKS.T


@pytest.mark.parametrize("kind", ANY_DATA, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("seed", "error"), [("abc", TypeError), (-1, ValueError), (1.5, TypeError)])
def test_invalid_seeds_are_refused(kind, seed, error):
    with pytest.raises(error, match="random_state must"):
        kind(2, random_state=seed).fit(ANY_DATA[kind])


@pytest.mark.parametrize("kind", ANY_DATA, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore:.*may be more than the data shows")
def test_generators_of_numpy_are_seeds(kind):
    for seed in (np.random.RandomState(0), np.random.default_rng(0), np.int64(3), 2**70):
        kind(2, random_state=seed).fit(ANY_DATA[kind])


def test_one_component_is_the_mean():
    """By moments alone, and however little the data looks like one component."""
    rng = np.random.default_rng(0)
    samples = np.concatenate([rng.standard_normal((20, 3)), 9 + rng.standard_normal((10, 3))])
    gaussian = SphericalGaussianMixture(1, max_iter=0).fit(samples)
    assert_allclose(gaussian.means_[0], samples.mean(axis=0), atol=1e-12)
    assert_allclose(gaussian.covariances_[0], samples.var(axis=0).mean())
    views = [samples[:, :2], samples, samples[:, 1:]]
    for found, view in zip(MultiviewMixture(1).fit(views).means_, views, strict=True):
        assert_allclose(found[0], view.mean(axis=0))
    counts = np.array([[5, 5, 0, 0], [0, 0, 5, 5]] * 10)
    for kind in (SingleTopic, LatentDirichlet):
        assert_allclose(kind(1, max_iter=0).fit(counts).components_, 0.25)
    assert_allclose(HiddenMarkov(1, max_iter=0).fit([0, 1, 0, 2] * 9).emissionprob_, [[0.5, 0.25, 0.25]])


class TestConvergence:
    @pytest.mark.parametrize(
        ("kind", "steps"),
        [
            (LatentDirichlet, ["fit", "partial_fit"]),
            (SphericalGaussianMixture, ["fit", "fit_predict"]),
            (MultiviewMixture, ["fit"]),
            (HiddenMarkov, ["fit"]),
        ],
    )
    def test_a_given_method_that_does_not_converge_warns(self, kind, steps):
        data = {case.kind: case for case in MODELS.values()}[kind].draw(5000, 0)[0]
        for step in steps:
            with pytest.warns(codiag.ConvergenceWarning, match="ALS did not") as caught:
                getattr(kind(3, method=ALS(max_iter=1), random_state=0), step)(data)
            assert [warning.filename for warning in caught] == [__file__]

    def test_the_default_leaves_it_to_the_diagnostics(self, monkeypatch):
        """Where its few sweeps do not converge, they end well below the noise of the moments."""
        monkeypatch.setattr(SphericalGaussianMixture, "default_method", ALS(max_iter=3))
        (samples, *_), silent = gaussians(10_000, 1), SphericalGaussianMixture(3, random_state=0)
        assert not any(isinstance(message, codiag.ConvergenceWarning) for message in silent._fit(samples))
        assert not silent.diagnostics_["converged"]


class Slices(MomentModel):
    """Components of a symmetric tensor that is the data itself."""

    def moments(self, data):
        return Moments(problem=codiag.Problem(data, self.n_components, symmetric=True), warning_messages=("take care",))

    def parameters(self, fit, moments):
        return Components(weights=fit.weights[::-1], diagnostics=Diagnostics.of(fit).reordered(np.arange(2)[::-1]))


class TestBase:
    """A model of somebody else: what the base does for it."""

    def data(self):
        rng = np.random.default_rng(0)
        u = rng.standard_normal((4, 2))
        return symmetrize(np.einsum("ir,jr,kr,r->ijk", u, u, u, [1.0, 5.0]) + 0.01 * rng.standard_normal((4, 4, 4)))

    @pytest.mark.filterwarnings("ignore:take care")
    def test_components_and_diagnostics_are_in_one_order(self):
        data = self.data()
        fit = codiag.factorize(codiag.Problem(data, 2, symmetric=True), rng=0)
        model = Slices(2, random_state=0).fit(data)
        assert_allclose(model.weights_, fit.weights)
        assert_allclose(model.diagnostics_.core_errors, fit.standard_errors)

    def test_warnings_point_to_the_call_of_fit(self):
        with pytest.warns(UserWarning, match="take care") as caught:
            Slices(2, random_state=0).fit(self.data())
        assert [warning.filename for warning in caught] == [__file__]

    @pytest.mark.parametrize(
        ("options", "error", "words"),
        [
            ({"n_components": 0}, ValueError, "^n_components must"),
            ({"n_components": None}, TypeError, "^n_components must"),
            ({"max_iter": -1}, ValueError, "^max_iter must"),
            ({"max_iter": 1}, ValueError, "^max_iter must"),
            ({"method": "newton"}, ValueError, "^method must"),
            ({"random_state": "a"}, TypeError, "^random_state must"),
        ],
    )
    def test_parameters_are_checked(self, options, error, words):
        with pytest.raises(error, match=words):
            Slices(**options).fit(self.data())

    @pytest.mark.parametrize("kind", [kind for kind in vars(codiag.models).values() if isinstance(kind, type)])
    def test_every_rule_is_of_a_parameter_and_names_it(self, kind):
        model = kind()
        model.check_parameters()
        own = {
            name for name in kind.parameter_rules if kind.parameter_rules[name] is not Model.parameter_rules.get(name)
        }
        assert own <= set(model.get_params())
        for name in set(kind.parameter_rules) & set(model.get_params()):
            with pytest.raises((TypeError, ValueError), match=f"^{name} "):
                clone(model).set_params(**{name: "nonsense"}).check_parameters()

    def test_a_model_may_have_no_method_and_no_seed(self):
        class Counter(Model):
            def __init__(self, n_components=2):
                self.n_components = n_components

            def _fit(self, data):
                self.check_parameters()
                return ()

        Counter(3).fit(self.data())
        with pytest.raises(ValueError, match="^n_components must"):
            Counter(0).fit(self.data())

    def test_missing_methods_are_named(self):
        with pytest.raises(NotImplementedError, match="^MomentModel must"):
            MomentModel().fit(self.data())


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (SingleTopic(3), lambda: np.random.default_rng(0).multinomial(9, np.full(6, 1 / 6), 60)),
        (SphericalGaussianMixture(3), lambda: np.random.default_rng(0).standard_normal((60, 4))),
        (MultiviewMixture(3), lambda: list(np.random.default_rng(0).standard_normal((3, 60, 4)))),
        (HiddenMarkov(3, max_iter=1), lambda: np.random.default_rng(0).integers(0, 5, 300)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_hidden_components_warn_once_at_the_call_of_fit(model, data):
    with pytest.warns(UserWarning, match="may be more") as caught:
        model.set_params(random_state=0).fit(data())
    assert [warning.filename for warning in caught] == [__file__]


def test_diagnostics_are_a_mapping_with_attributes():
    found = SphericalGaussianMixture(3, random_state=0).fit(gaussians(500, 0)[0]).diagnostics_
    assert found["relative_error"] == found.relative_error
    assert set(found) == set(vars(found))
    assert "sampling_noise=" in repr(found)
    assert found.get("weights_sum") is None
    with pytest.raises(KeyError):
        found["nothing"]
    with pytest.raises(AttributeError, match="^nothing is not"):
        _ = found.nothing
    with pytest.raises(AttributeError):
        found.relative_error = 0.0
    assert pickle.loads(pickle.dumps(found)).relative_error == copy.deepcopy(found).relative_error


COUNTING = pytest.mark.parametrize("name", [name for name in MODELS if name != "PoissonMixture"])


@COUNTING
def test_the_number_of_components_is_found_if_none_is_given(name):
    case = MODELS[name]
    data = case.draw(20_000, 3)[0]
    model = case.kind(None, **case.pure, random_state=0).fit(data)
    assert (model.n_components_, model.n_components) == (case.n_components, None)
    given = case.kind(case.n_components, **case.pure, random_state=0).fit(data)
    assert given.n_components_ == case.n_components
    assert_allclose(case.parameters(model), case.parameters(given), atol=1e-12)


def alone(seed):
    """Return data of every model with one component: all samples alike, and symbols in no order."""
    rng = np.random.default_rng(seed)
    words = rng.multinomial(15, rng.dirichlet(np.full(12, 0.5)), 2000)
    return {
        "SingleTopic": words,
        "LatentDirichlet": words,
        "SphericalGaussianMixture": 5 + rng.standard_normal((2000, 8)),
        "MultiviewMixture": [1 + rng.standard_normal((2000, d)) for d in (8, 9, 10)],
        "HiddenMarkov": rng.choice(10, 5000, p=rng.dirichlet(np.ones(10))),
    }


@COUNTING
def test_one_component_is_counted_as_one(name):
    for seed in range(3):
        assert MODELS[name].kind(None, max_iter=0, random_state=0).fit(alone(seed)[name]).n_components_ == 1


def test_numbers_that_cannot_be_determined_must_be_given():
    with pytest.raises(ValueError, match="^X must"):
        SphericalGaussianMixture(None).fit(np.ones((10, 3)))
    with pytest.raises((TypeError, ValueError), match=r"^n_components"):
        MODELS["PoissonMixture"].kind(None).fit(MODELS["PoissonMixture"].draw(50, 0)[0])
