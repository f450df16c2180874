"""Models of dask arrays, and of chunks that are added, are those of one array."""

from __future__ import annotations

import copy
from concurrent.futures import CancelledError

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from assertions import assert_same_to_rounding
from codiag._arrays import pass_with
from codiag.models import HiddenMarkov, LatentDirichlet, SingleTopic, SphericalGaussianMixture
from codiag.models.base import sum_over_rows
from codiag.models.chains import ChainSums
from simulated import chain, gaussians, single_topic_corpus


def large_vocabulary(n, seed=0, words=400):
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(words, 0.1), 3)
    rng = np.random.default_rng(seed)
    return rng.multinomial(40, rng.dirichlet(np.full(3, 0.3), n) @ topics).astype(float)


FITTED = {
    "dirichlet": (LatentDirichlet(3, max_iter=2, random_state=0), large_vocabulary(900), ("components_", "weights_")),
    "single": (SingleTopic(4, max_iter=2, random_state=0), single_topic_corpus(900, 0)[0], ("components_", "weights_")),
    "gaussian": (SphericalGaussianMixture(3, random_state=0), gaussians(900, 0)[0], ("means_", "covariances_")),
    "diagonal": (
        SphericalGaussianMixture(3, covariance_type="diag", random_state=0),
        gaussians(900, 0)[0],
        ("means_", "covariances_"),
    ),
}
FITTED["dirichlet, moments"] = (LatentDirichlet(3, max_iter=0, random_state=0), *FITTED["dirichlet"][1:])


@pytest.mark.parametrize("n_rows", [None, 1, 7, 100, 500])
def test_sums_do_not_depend_on_chunks(n_rows):
    rows = np.random.default_rng(0).random((100, 3))
    assert_allclose(sum_over_rows(lambda chunk: chunk.T @ chunk, rows, n_rows=n_rows), rows.T @ rows)


class TestDask:
    @pytest.mark.parametrize("name", FITTED)
    def test_arrays_are_fitted_like_the_whole(self, name):
        """Errors of the range are below 1e-7, times the noise; steps of topics are in single precision."""
        da = pytest.importorskip("dask.array")
        model, data, names = FITTED[name]
        whole = copy.deepcopy(model).fit(data)
        found = copy.deepcopy(model).fit(da.from_array(data, chunks=(120, data.shape[1] // 2)))
        for attribute in names:
            assert_allclose(getattr(found, attribute), getattr(whole, attribute), atol=1e-7)
        assert 0.3 < found.diagnostics_["sampling_noise"] / whole.diagnostics_["sampling_noise"] < 3
        assert found.n_features_in_ == data.shape[1]

    def test_blocks_may_be_sparse(self):
        da = pytest.importorskip("dask.array")
        model, data, _ = FITTED["dirichlet"]
        array = da.from_array(data, chunks=(120, -1))
        expected = copy.deepcopy(model).fit(array)
        found = copy.deepcopy(model).fit(array.map_blocks(sparse.csr_array))
        assert_same_to_rounding(found.components_, expected.components_)

    @pytest.mark.filterwarnings("ignore:.*may be more than the data shows")
    @pytest.mark.parametrize("max_iter", [0, 2])
    def test_blocks_of_symbols_are_sequences(self, max_iter):
        da = pytest.importorskip("dask.array")
        symbols = chain(2000, 0)[0]
        found = HiddenMarkov(3, max_iter=max_iter, random_state=0).fit(da.from_array(symbols, chunks=500))
        whole = HiddenMarkov(3, max_iter=max_iter, random_state=0).fit(symbols, lengths=[500] * 4)
        assert_allclose(found.emissionprob_, whole.emissionprob_, atol=1e-10)
        assert_allclose(found.transmat_, whole.transmat_, atol=1e-10)

    def test_blocks_may_be_empty(self):
        da = pytest.importorskip("dask.array")
        samples = gaussians(300, 0)[0]
        samples = samples[np.argsort(samples[:, 0])]
        array = da.from_array(samples, chunks=(50, -1))
        chosen = array[array[:, 0] > samples[120, 0]]
        found = SphericalGaussianMixture(2, max_iter=1, random_state=0).fit(chosen)
        whole = SphericalGaussianMixture(2, max_iter=1, random_state=0).fit(samples[121:])
        assert_allclose(found.means_, whole.means_, atol=1e-8)
        with pytest.raises(ValueError, match="^X must"):
            SphericalGaussianMixture(2).fit(array[array[:, 0] > 1e9])

    def test_components_are_counted(self):
        da = pytest.importorskip("dask.array")
        for model, data in (
            (SphericalGaussianMixture(None, max_iter=0), gaussians(5000, 3)[0]),
            (LatentDirichlet(None, max_iter=0), large_vocabulary(900)),
        ):
            assert model.fit(da.from_array(data, chunks=(1000, -1))).n_components_ == 3

    def test_a_block_that_is_wrong_is_named(self):
        da = pytest.importorskip("dask.array")
        data = large_vocabulary(400)
        data[350] *= -1
        with pytest.raises(ValueError, match="Negative values in") as caught:
            LatentDirichlet(3).fit(da.from_array(data, chunks=(100, -1)))
        assert caught.value.__notes__ == ["This was in block 3 of X."]

    @pytest.mark.slow
    @pytest.mark.filterwarnings("ignore")  # of tornado and asyncio
    def test_a_cluster(self, monkeypatch):
        monkeypatch.setattr("codiag._arrays._dask.IN_GRAPH", 0)  # copies are sent to workers
        distributed = pytest.importorskip("distributed")
        da = pytest.importorskip("dask.array")
        model, data, _ = FITTED["dirichlet, moments"]
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
        with distributed.Client(**options):
            found = copy.deepcopy(model).fit(da.from_array(data, chunks=(77, -1)))
        expected = copy.deepcopy(model).fit(da.from_array(data, chunks=(77, -1)))
        assert_allclose(found.components_, expected.components_, atol=1e-12)

    @pytest.mark.parametrize("scattered", [True, False])
    def test_a_pass_is_repeated_if_all_copies_are_lost(self, scattered, monkeypatch):
        monkeypatch.setattr("codiag._arrays._dask._reference", lambda content: (content, scattered))
        outcomes = iter([CancelledError, CancelledError, None])

        def run(held):
            error = next(outcomes)
            if error is not None:
                raise error
            return held

        if scattered:
            assert pass_with(5, run) == 5
        else:
            with pytest.raises(CancelledError):
                pass_with(5, run)


class TestChunks:
    def test_of_topics(self):
        data = large_vocabulary(900)
        model = LatentDirichlet(3, max_iter=0, random_state=0)
        for chunk in np.array_split(data, 5):
            model.partial_fit(chunk)
        whole = LatentDirichlet(3, max_iter=0, random_state=0).fit(data)
        assert np.max(np.abs(model.components_ - whole.components_)) < 0.05

    @pytest.mark.filterwarnings("ignore:.*may be more than the data shows")
    def test_of_gaussians(self):
        """Sums are around the mean of the first chunk, which may be far from the others."""
        samples = gaussians(2000, 0)[0]
        samples = samples[np.argsort(samples[:, 0])]
        model = SphericalGaussianMixture(3, random_state=0).fit(samples)
        for chunk in np.array_split(samples, 4):
            model.partial_fit(chunk)
        expected = SphericalGaussianMixture(3, max_iter=0, random_state=0).fit(samples)
        assert_allclose(model.means_, expected.means_, atol=1e-8)
        assert_allclose(model.covariances_, expected.covariances_, atol=1e-8)

    def test_of_chains(self):
        names = np.array(list("abcdefgh"))[chain(9000, 0)[0]]
        model = HiddenMarkov(3, random_state=0)
        for chunk in np.array_split(names, 3):
            model.partial_fit(chunk)
        expected = HiddenMarkov(3, max_iter=0, random_state=0).fit(names, lengths=[3000] * 3)
        assert_allclose(model.emissionprob_, expected.emissionprob_, atol=1e-12)
        assert_array_equal(model.symbols_, expected.symbols_)
        with pytest.raises(TypeError, match="^X must"):
            model.partial_fit([0, 1, 2])

    def test_a_first_sample_alone_is_kept(self):
        samples = gaussians(300, 0)[0]
        model = SphericalGaussianMixture(3, random_state=0)
        with pytest.warns(UserWarning, match="not fitted yet"):
            model.partial_fit(samples[:1])
        with pytest.raises(NotFittedError):
            model.predict(samples)
        whole = SphericalGaussianMixture(3, max_iter=0, random_state=0).fit(samples)
        assert_allclose(model.partial_fit(samples[1:]).means_, whole.means_, atol=1e-9)

    def test_a_short_sequence_is_kept(self):
        model = HiddenMarkov(3, random_state=0)
        with pytest.warns(UserWarning, match="not fitted yet"):
            model.partial_fit([0, 1])
        symbols = chain(3000, 0)[0]
        found = model.partial_fit(symbols)
        whole = HiddenMarkov(3, max_iter=0, random_state=0).fit([np.array([0, 1]), symbols])
        assert_allclose(found.transmat_, whole.transmat_, atol=1e-12)

    def test_fit_begins_anew(self):
        samples = gaussians(600, 0)[0]
        model = SphericalGaussianMixture(3, max_iter=0, random_state=0).fit(samples)
        expected = model.partial_fit(samples[:500]).means_
        assert_allclose(expected, model.fit(samples[:500]).means_, atol=1e-9)

    def test_the_noise_is_that_of_the_whole(self):
        """Signs are drawn anew in every chunk: the same ones add up if all sequences begin alike, and hide states."""
        rng = np.random.default_rng(0)
        states = np.cumsum(rng.random((800, 8)) < 0.4, axis=1) % 3
        sequences = list(np.where(rng.random(states.shape) < 0.8, states, 3))
        model = HiddenMarkov(3, max_iter=0, random_state=0)
        chunked = ChainSums.of(sequences[:20])
        for start in range(20, 800, 20):
            chunked = chunked + ChainSums.of(sequences[start : start + 20])
        assert 0.5 < model._moments_of(chunked, 3).noise / model._moments_of(ChainSums.of(sequences), 3).noise < 2

    def test_invalid_chunks(self):
        da = pytest.importorskip("dask.array")
        for model in (LatentDirichlet(2), SphericalGaussianMixture(2), HiddenMarkov(2)):
            with pytest.raises(ValueError, match="^X must"):
                model.partial_fit(da.ones((4, 1)))
            with pytest.raises(ValueError, match="^n_components must"):
                model.set_params(n_components=None).partial_fit(np.ones((4, 1), dtype=int))
        with pytest.raises(ValueError, match="^X must"):
            SphericalGaussianMixture(2).partial_fit(np.ones((2, 300)))
