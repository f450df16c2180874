"""PARAFAC2 behind other interfaces: TensorLy's, scikit-learn's, and the choice of the rank."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

import codiag
from codiag.drop_in import Parafac2, parafac2
from codiag.synthetic import parafac2_slices


@pytest.fixture(scope="module")
def truth():
    return parafac2_slices((14, 12, 15, 13) * 4, 9, 3, noise=0.02, rng=0)


class TestTensorly:
    @pytest.mark.parametrize("normalize", [False, True])
    def test_results_are_those_of_tensorly(self, truth, normalize):
        library = pytest.importorskip("tensorly.parafac2_tensor", reason="TensorLy is not installed")
        found, errors = parafac2(truth.slices, 3, normalize_factors=normalize, return_errors=True, random_state=0)
        assert isinstance(found, library.Parafac2Tensor)
        fit = codiag.parafac2(truth.slices, 3, rng=0)
        assert_allclose(library.parafac2_to_slices(found)[2], fit.to_slices()[2], atol=1e-6)
        assert_allclose(errors[-1], fit.relative_error, rtol=1e-6)
        assert errors[0] > errors[-1]
        assert np.all(found.weights == 1) != normalize

    def test_it_is_as_low_as_tensorlys(self, truth):
        theirs = pytest.importorskip("tensorly.decomposition", reason="TensorLy is not installed")
        expected = theirs.parafac2(truth.slices, 3, init="svd", random_state=0, return_errors=True)[1][-1]
        assert parafac2(truth.slices, 3, random_state=0, return_errors=True)[1][-1] < expected * (1 + 1e-6)

    @pytest.mark.filterwarnings("ignore:PARAFAC2 did not converge")
    def test_options(self, truth):
        with pytest.warns(UserWarning, match="mode 1 cannot be non-negative"):
            _, (a, _, c), _ = parafac2(truth.slices, 3, nn_modes="all", random_state=0)
        assert min(a.min(), c.min()) >= 0
        start = parafac2(truth.slices, 3, random_state=0)
        again = parafac2(truth.slices, 3, init=start)
        assert_allclose(again[1][2], start[1][2], atol=1e-4)
        seen = [np.random.default_rng(k).random(one.shape) < 0.9 for k, one in enumerate(truth.slices)]
        masked = parafac2(truth.slices, 3, mask=[one.astype(float) for one in seen], random_state=0)
        assert codiag.factor_error([masked[1][2]], [truth.factors[2]]) < 0.1
        with pytest.raises(ValueError, match="^init must be"):
            parafac2(truth.slices, 3, init="nothing")

    def test_the_class_passes_its_arguments_on(self, truth):
        model = Parafac2(3, normalize_factors=True, random_state=0)
        found = model.fit_transform(truth.slices)
        assert_allclose(found[0], parafac2(truth.slices, 3, normalize_factors=True, random_state=0)[0])
        assert repr(model) == "Rank-3 PARAFAC2 decomposition."


class TestEstimator:
    def test_a_list_in_and_weights_out(self, truth):
        model = codiag.models.Parafac2(3, random_state=0)
        weights = model.fit_transform(truth.slices)
        fit = model.decomposition_
        assert_allclose(weights, fit.factors[0] * fit.weights, atol=1e-5)
        assert_allclose(model.components_, fit.factors[2].T)
        assert model.get_feature_names_out().tolist() == ["parafac20", "parafac21", "parafac22"]
        assert clone(model).get_params() == model.get_params()

    def test_new_samples_have_the_columns_of_the_fit(self, truth):
        model = codiag.models.Parafac2(3, random_state=0).fit(truth.slices)
        with pytest.raises(ValueError, match="^new slices must have the 9 columns"):
            model.transform([one[:, :5] for one in truth.slices])


class TestRank:
    @pytest.mark.parametrize("rank", [1, 2, 3])
    def test_the_true_number_is_found(self, rank):
        slices = parafac2_slices((14, 12, 15, 13) * 5, 9, rank, noise=0.1, rng=rank).slices
        choice = codiag.choose_rank(slices, model="parafac2", rng=0)
        assert choice.rank == rank
        assert choice.fit.rank == rank
        assert str(rank) in choice.reason
        assert choice.table["rank"].tolist()[0] == 1

    def test_noise_has_no_components(self):
        noise = np.random.default_rng(0).standard_normal((12, 15, 9))
        assert codiag.choose_rank(noise, range(1, 3), model="parafac2", rng=0).rank is None

    def test_other_models_are_refused(self):
        with pytest.raises(ValueError, match="^model must be"):
            codiag.choose_rank(np.ones((4, 4, 4)), model="tucker")
