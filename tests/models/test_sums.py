"""Models of data in parts are those of the whole, wherever the parts are."""

from __future__ import annotations

import copy
from concurrent.futures import CancelledError
from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.exceptions import NotFittedError

from codiag.models import DawidSkene, HiddenMarkov, LatentDirichlet, SingleTopic, SphericalGaussianMixture
from codiag.models.chains import ChainSums
from codiag.models.mixtures import GaussianSums
from codiag.parts import as_parts, is_matrix, pass_with
from simulated import chain, gaussians, named_votes, single_topic_corpus


def large_vocabulary(n, seed=0, words=400):
    rng = np.random.default_rng(1)
    topics = rng.dirichlet(np.full(words, 0.1), 3)
    rng = np.random.default_rng(seed)
    return sparse.csr_array(rng.multinomial(40, rng.dirichlet(np.full(3, 0.3), n) @ topics).astype(float))


def rows_of(data, n_parts):
    cuts = np.linspace(0, data.shape[0], n_parts + 1).astype(int) ** 2 // data.shape[0]
    return [data[low:high] for low, high in pairwise(cuts)]


FITTED = {
    "dirichlet": (LatentDirichlet(3, max_iter=2, random_state=0), large_vocabulary(900), ("components_", "weights_")),
    "single": (SingleTopic(4, max_iter=2, random_state=0), single_topic_corpus(900, 0)[0], ("components_", "weights_")),
    "gaussian": (SphericalGaussianMixture(3, random_state=0), gaussians(900, 0)[0], ("means_", "covariances_")),
}
FITTED["dirichlet, moments"] = (LatentDirichlet(3, max_iter=0, random_state=0), *FITTED["dirichlet"][1:])


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("n_parts", [1, 9])
def test_parts_are_fitted_like_the_whole(name, n_parts):
    """Range, moments and the steps after them: errors of the range are below 1e-7, times the noise.

    Steps of `LatentDirichlet` are in single precision, and so are sums over some hundred documents.
    """
    model, data, names = FITTED[name]
    tolerance = 1e-7 if name == "dirichlet" else 1e-8
    parts = rows_of(data, n_parts)
    whole = copy.deepcopy(model).fit(data)
    for given in (parts, lambda: iter(parts)):
        found = copy.deepcopy(model).fit(given)
        for attribute in names:
            assert_allclose(getattr(found, attribute), getattr(whole, attribute), atol=tolerance)
        assert 0.3 < found.diagnostics_["sampling_noise"] / whole.diagnostics_["sampling_noise"] < 3
        assert found.n_features_in_ == data.shape[1]


class TestDask:
    """The same tree of sums everywhere: the same answer, to the last bit where parts are the same."""

    @pytest.mark.parametrize(
        ("name", "scheduler"), [(name, "threads") for name in FITTED] + [("dirichlet, moments", "synchronous")]
    )
    def test_arrays(self, name, scheduler):
        dask = pytest.importorskip("dask")
        da = pytest.importorskip("dask.array")
        model, data, names = FITTED[name]
        dense = data.toarray() if sparse.issparse(data) else data
        array = da.from_array(dense, chunks=(120, dense.shape[1] // 2))
        parts = [data[start : start + 120] for start in range(0, 900, 120)]
        expected = copy.deepcopy(model).fit(parts)
        with dask.config.set(scheduler=scheduler):
            found = copy.deepcopy(model).fit(array)
            if sparse.issparse(data):
                delayed = copy.deepcopy(model).fit([dask.delayed(part) for part in parts])
                assert_array_equal(delayed.components_, expected.components_)
                kept = copy.deepcopy(model).fit(array.rechunk((120, -1)).map_blocks(sparse.csr_array))
                assert_array_equal(kept.components_, expected.components_)
        for attribute in names:
            assert_allclose(getattr(found, attribute), getattr(expected, attribute), atol=1e-12)

    def test_bags_of_parts_and_sequences(self):
        bag = pytest.importorskip("dask.bag")
        model, data, _ = FITTED["dirichlet, moments"]
        found = copy.deepcopy(model).fit(bag.from_sequence(rows_of(data, 5), npartitions=2))
        assert_allclose(found.components_, copy.deepcopy(model).fit(data).components_, atol=1e-8)
        sequences = np.array_split(chain(4000, 0)[0], 6)
        found, whole = (
            HiddenMarkov(3, max_iter=1, random_state=0).fit(given)
            for given in (bag.from_sequence(sequences, npartitions=3), list(sequences))
        )
        assert_allclose(found.emissionprob_, whole.emissionprob_, atol=1e-12)
        assert_allclose(found.transmat_, whole.transmat_, atol=1e-12)

    @pytest.mark.filterwarnings("ignore")  # of tornado and asyncio
    def test_a_cluster(self, monkeypatch):
        monkeypatch.setattr("codiag.parts._parts.IN_GRAPH", 0)  # copies are sent to workers
        distributed = pytest.importorskip("distributed")
        da = pytest.importorskip("dask.array")
        model, data, _ = FITTED["dirichlet, moments"]
        options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "dashboard_address": ":0"}
        with distributed.Client(**options):
            found = copy.deepcopy(model).fit(da.from_array(data.toarray(), chunks=(77, -1)))
        expected = copy.deepcopy(model).fit(da.from_array(data.toarray(), chunks=(77, -1)))
        assert_allclose(found.components_, expected.components_, atol=1e-12)

    @pytest.mark.parametrize("scattered", [True, False])
    def test_a_pass_is_begun_again_where_all_copies_are_lost(self, scattered, monkeypatch):
        monkeypatch.setattr("codiag.parts._parts._reference", lambda content: (content, scattered))
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

    def test_a_part_that_is_wrong_is_named(self):
        dask = pytest.importorskip("dask")
        parts = rows_of(FITTED["dirichlet"][1], 4)
        for given in ([*parts, -parts[0]], [dask.delayed(part) for part in (*parts, -parts[0])]):
            with pytest.raises(ValueError, match="Negative values in data passed to X; this was in part 4 of X"):
                LatentDirichlet(3).fit(given)


def test_iterators_are_read_once_and_give_what_chunks_give():
    data = large_vocabulary(900)
    parts = rows_of(data, 5)
    chunks = LatentDirichlet(3, max_iter=0, random_state=0)
    for part in parts:
        chunks.partial_fit(part)
    model = LatentDirichlet(3, max_iter=0, random_state=0).fit(iter(parts))
    assert_allclose(model.components_, chunks.components_, atol=1e-12)
    assert np.max(np.abs(model.components_ - LatentDirichlet(3, max_iter=0).fit(data).components_)) < 0.05
    for kind in (LatentDirichlet, SphericalGaussianMixture):
        with pytest.raises(ValueError, match="max_iter must be 0 if X is an iterator"):
            kind(3).fit(iter([np.ones((3, 4))]))
    samples = gaussians(900, 0)[0]
    found = SphericalGaussianMixture(3, max_iter=0, random_state=0).fit(iter(rows_of(samples, 5)))
    assert_allclose(
        found.means_, SphericalGaussianMixture(3, max_iter=0, random_state=0).fit(samples).means_, atol=1e-9
    )
    once = as_parts(iter([np.ones((2, 1))]), is_matrix)
    once.reduce(GaussianSums.empty(1).of)
    with pytest.raises(ValueError, match="this iterator has been read"):
        once.reduce(GaussianSums.empty(1).of)


def test_chunks_of_gaussians_and_chains_add_up():
    samples = gaussians(2000, 0)[0]
    model = SphericalGaussianMixture(3, random_state=0).fit(samples)
    assert model.labels_.shape == (2000,)
    for part in rows_of(samples, 4):
        model.partial_fit(part)
    expected = SphericalGaussianMixture(3, max_iter=0, random_state=0).fit(samples)
    assert_allclose(model.means_, expected.means_, atol=1e-9)
    assert not hasattr(model, "labels_")  # they are not at hand
    symbols = chain(9000, 0)[0]
    names = np.array(list("abcdefgh"))[symbols]
    chunked = HiddenMarkov(3, random_state=0)
    for start in (0, 3000, 6000):
        chunked.partial_fit(names[start : start + 3000])
    expected = HiddenMarkov(3, max_iter=0, random_state=0).fit(names, [3000] * 3)
    assert_allclose(chunked.emissionprob_, expected.emissionprob_, atol=1e-12)
    assert_array_equal(chunked.symbols_, expected.symbols_)


def test_votes_in_parts_of_a_table():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(named_votes(), columns=["task", "worker", "label"])
    parts = [frame[start : start + 50] for start in range(0, len(frame), 50)]
    whole = DawidSkene(random_state=0).fit(frame)
    for given in (parts, iter(parts), [*parts, frame[:0]]):
        found = DawidSkene(random_state=0).fit(given)
        pd.testing.assert_frame_equal(found.confusion_, whole.confusion_, atol=1e-10)
        pd.testing.assert_frame_equal(found.probas_, whole.probas_, atol=1e-10)
    delayed = pytest.importorskip("dask").delayed
    pd.testing.assert_frame_equal(DawidSkene(random_state=0).fit(list(map(delayed, parts))).probas_, whole.probas_)
    with pytest.raises(TypeError, match="parts that are tables"):
        DawidSkene().fit(iter([np.ones((4, 4))]))


def test_parts_that_cannot_be_fitted():
    with pytest.raises(ValueError, match="parts with the same number of features; got 12 and 5"):
        LatentDirichlet(2).fit([np.ones((9, 12)), np.ones((9, 5))])
    with pytest.raises(ValueError, match="parts with the same number of features"):
        SphericalGaussianMixture(2).fit([np.eye(3), np.eye(4)])
    with pytest.raises(ValueError, match="in at least one part; got no part"):
        LatentDirichlet(2).fit(lambda: iter([]))
    with pytest.raises(ValueError, match="X must have at most 256 features"):
        SphericalGaussianMixture(2).fit([np.ones((2, 300))])
    with pytest.raises(ValueError, match="documents of two words or more; all 4 have fewer"):
        LatentDirichlet(2).fit([np.eye(2), np.eye(2)])
    with pytest.raises(ValueError, match="lengths must be None if X comes in parts"):
        HiddenMarkov(2).fit(lambda: iter([[0, 1]]), lengths=[2])


class TestEmptyParts:
    """They are normal where rows were chosen from parts: they add nothing."""

    def test_they_are_left_out(self):
        for model, data, name in (
            (LatentDirichlet(3, max_iter=1, random_state=0), large_vocabulary(300), "components_"),
            (SphericalGaussianMixture(3, max_iter=1, random_state=0), gaussians(300, 0)[0], "means_"),
        ):
            parts = [data[:0], data[:200], data[:0], data[200:]]
            found, whole = copy.deepcopy(model).fit(parts), copy.deepcopy(model).fit(data)
            assert_allclose(getattr(found, name), getattr(whole, name), atol=1e-8)
            once = copy.deepcopy(model).set_params(max_iter=0).fit(iter(parts))
            assert np.all(np.isfinite(getattr(once, name)))
            for nothing in ([data[:0], data[:0]], [], iter([]), lambda: iter([])):
                with pytest.raises(ValueError, match="X must contain samples, in at least one part"):
                    copy.deepcopy(model).fit(nothing)
        sequences = np.array_split(chain(3000, 0)[0], 6)
        found = HiddenMarkov(3, max_iter=1, random_state=0).fit(lambda: iter([[], sequences, []]))
        assert_allclose(found.transmat_, HiddenMarkov(3, max_iter=1, random_state=0).fit(sequences).transmat_)

    def test_of_dask(self):
        da = pytest.importorskip("dask.array")
        samples = gaussians(300, 0)[0]
        samples = samples[np.argsort(samples[:, 0])]
        array = da.from_array(samples, chunks=(50, -1))
        chosen = array[array[:, 0] > samples[120, 0]]
        found = SphericalGaussianMixture(2, max_iter=1, random_state=0).fit(chosen)
        whole = SphericalGaussianMixture(2, max_iter=1, random_state=0).fit(samples[121:])
        assert_allclose(found.means_, whole.means_, atol=1e-8)
        with pytest.raises(ValueError, match="empty ones alone"):
            SphericalGaussianMixture(2).fit(array[array[:, 0] > 1e9])


class TestChainsInParts:
    def test_the_noise_is_that_of_the_whole(self):
        """Signs are drawn anew in every part: the same ones add up where all sequences begin alike, and hide states."""
        rng = np.random.default_rng(0)
        states = np.cumsum(rng.random((800, 8)) < 0.4, axis=1) % 3
        parts = list(np.where(rng.random(states.shape) < 0.8, states, 3))
        model = HiddenMarkov(3, max_iter=0, random_state=0)
        whole, found = (model.moments(as_parts(iter(given), is_matrix)) for given in ([parts], parts))
        assert not found.complaints
        assert 0.5 < found.noise / whole.noise < 2
        chunked = ChainSums.empty()
        for part in parts:
            chunked.update([part])
        assert 0.5 < model._moments_of(chunked, 3).noise / whole.noise < 2

    def test_an_iterator_is_one_over_parts(self):
        sequences = np.array_split(chain(3000, 0)[0], 6)
        whole = HiddenMarkov(3, max_iter=0, random_state=0).fit(sequences)
        for parts in (sequences, [sequences[:2], sequences[2:]]):
            found = HiddenMarkov(3, max_iter=0, random_state=0).fit(iter(parts))
            assert_allclose(found.emissionprob_, whole.emissionprob_, atol=1e-12)
        with pytest.raises(ValueError, match="max_iter must be 0 if X is an iterator"):
            HiddenMarkov(3).fit(iter(sequences))
        with pytest.raises(TypeError, match="For an iterator over symbols give"):
            HiddenMarkov(3, max_iter=0).fit(iter([0, 1, 2]))

    def test_a_short_chunk_is_kept(self):
        model = HiddenMarkov(3, random_state=0)
        with pytest.warns(UserWarning, match="not fitted yet: n_components must be at most 2, the number of symbols"):
            model.partial_fit([0, 1])
        symbols = chain(3000, 0)[0]
        found = model.partial_fit(symbols)
        whole = HiddenMarkov(3, max_iter=0, random_state=0).fit([np.array([0, 1]), symbols])
        assert_allclose(found.transmat_, whole.transmat_, atol=1e-12)


def test_predictions_for_parts_are_those_for_the_whole():
    topics, samples = large_vocabulary(200), gaussians(200, 0)[0]
    sequences = np.array_split(chain(600, 0)[0], 4)
    delayed = pytest.importorskip("dask").delayed
    words = LatentDirichlet(3, random_state=0).fit(topics)
    for cut in (rows_of(topics, 3), iter(rows_of(topics, 3)), [delayed(part) for part in rows_of(topics, 3)]):
        assert_allclose(words.transform(cut), words.transform(topics))
    assert words.score(rows_of(topics, 3)) == pytest.approx(words.score(topics))
    assert words.perplexity(rows_of(topics, 3)) == pytest.approx(words.perplexity(topics))
    mixture = SphericalGaussianMixture(3, random_state=0).fit(rows_of(samples, 3))
    assert_allclose(mixture.predict_proba(rows_of(samples, 3)), mixture.predict_proba(samples))
    assert mixture.score(rows_of(samples, 3)) == pytest.approx(mixture.score(samples))
    assert_array_equal(mixture.fit_predict(rows_of(samples, 3)), mixture.predict(samples))
    with pytest.raises(ValueError, match="read again for fit_predict"):
        mixture.fit_predict(iter([samples]))
    states = HiddenMarkov(2, random_state=0).fit(sequences)
    assert_array_equal(states.predict(iter([sequences[:2], sequences[2:]])), states.predict(sequences))
    assert states.score([delayed(part) for part in sequences]) == pytest.approx(states.score(sequences))
    for model, parts in ((words, rows_of(topics, 3)), (mixture, rows_of(samples, 3)), (states, iter(sequences))):
        with pytest.raises(ValueError, match="Call partial_fit for each of them, or fit for all"):
            model.partial_fit(parts)


def test_a_first_sample_alone_is_kept():
    samples = gaussians(300, 0)[0]
    model = SphericalGaussianMixture(3, random_state=0)
    with pytest.warns(UserWarning, match="not fitted yet: n_components must be at most 1, the number of samples"):
        model.partial_fit(samples[:1])
    with pytest.raises(NotFittedError):
        model.predict(samples)
    whole = SphericalGaussianMixture(3, max_iter=0, random_state=0).fit(samples)
    assert_allclose(model.partial_fit(samples[1:]).means_, whole.means_, atol=1e-9)


def test_votes_of_two_kinds_in_parts():
    tasks, workers = np.repeat(np.arange(20), 3), np.tile(np.arange(3), 20)
    labels = tasks % 2
    parts = [(tasks[:30], workers[:30], labels[:30]), (tasks[30:], workers[30:], labels[30:].astype(str))]
    with pytest.raises(TypeError, match="label must be of one kind in all parts of X; got numbers in some and str in"):
        DawidSkene().fit(parts)
    whole = DawidSkene(random_state=0).fit(tuple(named_votes().T))
    with pytest.raises(TypeError, match="X must be votes in one table for predict"):
        whole.predict([parts[0], parts[0]])
