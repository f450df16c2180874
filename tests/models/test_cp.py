"""`codiag.models.CP`: the components of samples, at home in scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import parametrize_with_checks

import codiag
from assertions import assert_same_to_rounding
from codiag.models import CP
from codiag.tensors import DenseTensor
from tensor_cases import LIBRARIES


def samples(n=20, noise=0.01, seed=0):
    rng = np.random.default_rng(seed)
    a, b, c = (rng.random((size, 3)) for size in (n, 6, 5))
    data = np.einsum("ir,jr,kr->ijk", a, b, c)
    return data + noise * rng.standard_normal(data.shape), a


class Folded(CP):
    """CP of rows: a sample is a row with a second mode of one, so that the checks of scikit-learn can be run.

    They give estimators matrices, whose rows are no samples of CP. All checks of data are CP's.
    """

    def fit(self, X, y=None):  # noqa: N803
        return super().fit(folded(X))

    def transform(self, X):  # noqa: N803
        return super().transform(folded(X))

    def score(self, X, y=None):  # noqa: N803
        return super().score(folded(X))

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = True
        return tags


def folded(rows):
    """Return matrices with a third mode, and what is none as it is."""
    plain = np.asarray(rows) if isinstance(rows, list) or hasattr(rows, "__array__") else rows
    return plain[:, :, None] if isinstance(plain, np.ndarray) and plain.ndim == 2 else plain


NO_NAMES = "features along two modes have no names"
NOT_FOR_IT = {
    "check_dataframe_column_names_consistency": NO_NAMES,
    "check_n_features_in_after_fitting": "says the shape that samples must have",
    "check_estimators_empty_data_messages": "names all three sizes",
}


@parametrize_with_checks([Folded(1)], expected_failed_checks=lambda _: NOT_FOR_IT)
@pytest.mark.filterwarnings("ignore")
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "name",
    [
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_valid_tag_types",
        "check_mixin_order",
        "check_get_params_invariance",
        "check_set_params",
    ],
)
def test_checks_of_scikit_learn_that_need_no_data(name):
    getattr(estimator_checks, name)("CP", CP(3, constraints="nonnegative"))


def test_tags_of_scikit_learn():
    tags = CP().__sklearn_tags__()
    assert tags.input_tags.three_d_array
    assert tags.input_tags.allow_nan
    assert not tags.input_tags.two_d_array


def test_it_is_the_factorization_of_the_samples():
    data, _ = samples()
    model = CP(3, random_state=0).fit(data)
    fit = codiag.factorize(data, 3, symmetric=False, rng=0)
    assert_same_to_rounding(model.decomposition_.weights, fit.weights)
    for ours, expected in zip(model.factors_, fit.factors[1:], strict=True):
        assert_same_to_rounding(ours, expected)
    assert_allclose(model.transform(data), fit.factors[0] * fit.weights, atol=1e-7)
    assert_array_equal(CP(3, random_state=0).fit_transform(data), model.transform(data))
    assert_allclose(model.inverse_transform(model.transform(data)), fit.to_tensor(), atol=1e-7)
    assert model.score(data) == pytest.approx(1 - fit.relative_error**2, abs=1e-12)


def test_the_score_is_the_explained_share_of_observed_entries():
    data, _ = samples(30)
    data[np.random.default_rng(1).random(data.shape) < 0.3] = np.nan
    model = CP(3, random_state=0).fit(data[:20])
    new = data[20:]
    left = new - model.inverse_transform(model.transform(new))
    assert model.score(new) == pytest.approx(1 - np.nansum(left**2) / np.nansum(new**2), abs=1e-12)
    assert 0.99 < model.score(new) < 1
    assert model.score(np.zeros((2, 6, 5))) == 1


def test_constraints_hold_for_new_samples():
    data, _ = samples(noise=0.3)
    model = CP(3, constraints="nonnegative", random_state=0).fit(data)
    found = model.transform(samples(noise=1.0, seed=5)[0])
    assert np.all(found >= 0)
    assert np.any(found == 0)


def test_it_takes_part_in_pipelines_and_searches():
    data, a = samples(40)
    y = a @ [1.0, -2.0, 0.5]
    pipeline = make_pipeline(CP(3, random_state=0), StandardScaler(), Ridge(1e-6))
    search = GridSearchCV(pipeline, {"cp__n_components": [2, 3]}, cv=2).fit(data, y)
    assert search.best_params_ == {"cp__n_components": 3}
    assert search.best_score_ > 0.98
    assert clone(search.best_estimator_[0]).get_params() == search.best_estimator_[0].get_params()


def test_searches_go_by_the_explained_share():
    data, _ = samples(12)
    search = GridSearchCV(CP(random_state=0), {"n_components": [2, 3]}, cv=2).fit(data)
    assert search.best_params_ == {"n_components": 3}
    assert search.best_score_ > 0.99


def test_output_can_be_a_data_frame():
    pandas = pytest.importorskip("pandas")
    data, _ = samples()
    model = CP(2, random_state=0).fit(data)
    assert model.get_feature_names_out().tolist() == ["cp0", "cp1"]
    frame = model.set_output(transform="pandas").transform(data)
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == ["cp0", "cp1"]


@pytest.mark.slow
def test_the_number_of_components_may_be_chosen():
    data, _ = samples()
    model = CP(None, random_state=0).fit(data)
    assert model.n_components_ == codiag.choose_rank(data, rng=0).rank == 3
    assert_allclose(model.transform(data), CP(3, random_state=0).fit(data).transform(data), atol=1e-6)


def test_copies_are_the_same():
    data, _ = samples()
    model = CP(3, constraints="nonnegative", random_state=0).fit(data)
    assert_array_equal(pickle.loads(pickle.dumps(model)).transform(data), model.transform(data))


@pytest.mark.parametrize("library", [*LIBRARIES, "tensor", "masked", "float32"])
def test_samples_may_come_from_anywhere(library):
    others = {"tensor": DenseTensor, "masked": np.ma.masked_array, "float32": np.float32}
    data, _ = samples()
    given = (LIBRARIES | others)[library](data)
    found = CP(3, random_state=0).fit(given).transform(given)
    assert_allclose(
        np.asarray(found), CP(3, random_state=0).fit_transform(data), atol=1e-4 if library == "float32" else 1e-7
    )


@pytest.mark.parametrize(
    ("data", "options", "error", "said"),
    [
        (np.ones((5, 4)), {}, ValueError, "^X must"),
        (np.ones((3, 4, 2)), {"n_components": 9}, ValueError, "^n_components must"),
        (np.ones((3, 4, 2)), {"n_components": 1.5}, TypeError, "^n_components must"),
        (np.ones((3, 0, 2)), {}, ValueError, "^X must"),
        (np.ones((3, 4, 2)), {"n_components": "auto"}, TypeError, "^n_components must"),
        (np.random.default_rng(0).normal(size=(5, 6, 7)), {"n_components": None}, ValueError, "n_components cannot be"),
        (np.ones((3, 4, 2)), {"constraints": "positive"}, ValueError, "^constraints must"),
        (np.full((3, 4, 2), np.inf), {}, ValueError, "infinity"),
    ],
)
def test_invalid_data_is_refused(data, options, error, said):
    with pytest.raises(error, match=said):
        CP(**options).fit(data)


def test_invalid_new_samples_are_refused():
    model = CP(1, random_state=0).fit(np.ones((4, 3, 2)))
    with pytest.raises(ValueError, match="must have shape"):
        model.transform(np.ones((4, 3, 5)))
    with pytest.raises(ValueError, match="^X must"):
        model.transform(np.ones((4, 7, 2)))
    with pytest.raises(ValueError, match="^X must"):
        model.transform(np.ones((3, 2)))
    with pytest.raises(ValueError, match="^X must"):
        model.inverse_transform(np.ones((4, 3)))


def test_failures_are_one_warning():
    rng = np.random.default_rng(0)
    with pytest.warns(codiag.ConvergenceWarning) as told:
        CP(3, method=codiag.methods.ALS(max_iter=1), random_state=0).fit(rng.random((5, 6, 7)))
    assert len(told) == 1
    assert told[0].filename == __file__
