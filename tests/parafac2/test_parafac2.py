"""PARAFAC2: facts of the mathematics, of standard errors, and of results."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

import codiag
from codiag.synthetic import parafac2_slices

MIXED = (9, 8, 12, 10)


def planted(n=8, rank=3, *, sizes=MIXED, n_columns=7, **options):
    return parafac2_slices([sizes[k % len(sizes)] for k in range(n)], n_columns, rank, **options)


def error_of(fit, truth):
    """Return the distance of C, and of the magnitudes of A: a slice may change its sign."""
    known = [np.abs(truth.factors[0]), truth.factors[2]]
    return codiag.factor_error([np.abs(fit.factors[0]), fit.factors[2]], known)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("n", [4, 5, 12, 40])
def test_slices_without_noise_are_fitted_exactly(n, signed):
    truth = planted(n, signed=signed, rng=n)
    fit = codiag.parafac2(truth.slices, 3, rng=0)
    assert fit.relative_error < 1e-10
    assert fit.converged
    if n > 4 or not signed:
        assert error_of(fit, truth) < 1e-10


def test_the_fit_is_the_model():
    truth = planted(noise=0.1, rng=0)
    weights, (a, b, c), projections = fit = codiag.parafac2(truth.slices, 3, rng=0)
    for k, (one, basis) in enumerate(zip(fit.to_slices(), projections, strict=True)):
        assert_allclose(one, basis @ b @ np.diag(a[k] * weights) @ c.T)
        assert_allclose(basis.T @ basis, np.eye(3), atol=1e-12)
        assert_allclose(fit.evolving[k], basis @ b)
    left = [one - model for one, model in zip(truth.slices, fit.to_slices(), strict=True)]
    norms = [np.linalg.norm(np.concatenate(parts)) for parts in (left, truth.slices)]
    assert_allclose(fit.relative_error, norms[0] / norms[1])


def test_the_form_is_unique():
    weights, (a, b, c), _ = fit = codiag.parafac2(planted(signed=True, rng=1).slices, 3, rng=0)
    assert np.all(np.diff(weights) <= 0)
    for factor in (a, b, c):
        assert_allclose(np.linalg.norm(factor, axis=0), 1)
    assert_allclose(b, b.T, atol=1e-12)
    assert np.linalg.eigvalsh(b).min() > 0
    assert np.all(a.sum(axis=0) >= 0)
    assert np.all(c[np.argmax(np.abs(c), axis=0), np.arange(3)] > 0)
    assert_allclose(fit.correlations, b.T @ b)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_rotations_of_rows_change_nothing(noise):
    truth = planted(noise=noise, rng=2)
    rng = np.random.default_rng(0)
    turned = [np.linalg.qr(rng.standard_normal((one.shape[0],) * 2))[0] @ one for one in truth.slices]
    fits = [codiag.parafac2(slices, 3, rng=0) for slices in (truth.slices, turned)]
    for first, second in zip(fits[0].factors, fits[1].factors, strict=True):
        assert_allclose(first, second, atol=1e-5 if noise else 1e-10)


def test_rows_of_zeros_change_nothing():
    truth = planted(noise=0.1, rng=3)
    padded = [np.pad(one, ((0, 12 - len(one)), (0, 0))) for one in truth.slices]
    fits = [codiag.parafac2(slices, 3, rng=0) for slices in (truth.slices, padded)]
    for first, second in zip(fits[0].factors, fits[1].factors, strict=True):
        assert_allclose(first, second, atol=1e-5)
    assert_allclose(fits[1].projections[0][9:], 0, atol=1e-10)


def test_cp_is_parafac2_with_equal_profiles():
    tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 3, rng=0).tensor
    cp = codiag.factorize(tensor, 3, rng=0)
    fit = codiag.parafac2(tensor, 3, rng=0)
    expected = [np.abs(cp.factors[0]), cp.factors[2]]
    assert codiag.factor_error([np.abs(fit.factors[0]), fit.factors[2]], expected) < 1e-8
    signs = [np.sign(np.sum(one * fit.evolving[0])) for one in fit.evolving]
    assert_allclose(
        [sign * one for sign, one in zip(signs, fit.evolving, strict=True)], [fit.evolving[0]] * 9, atol=1e-8
    )


def test_that_cp_does_as_well_is_said():
    tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.05, rng=1).tensor
    assert "codiag.factorize" in str(codiag.parafac2(tensor, 2, rng=0).diagnose())
    slices = planted(sizes=(9,), rank=2, noise=0.05, rng=1).slices
    assert "codiag.factorize" not in str(codiag.parafac2(slices, 2, rng=0).diagnose())


def test_units_of_the_data_are_those_of_the_weights():
    truth = planted(noise=0.1, rng=4)
    fits = [codiag.parafac2([scale * one for one in truth.slices], 3, rng=0) for scale in (1.0, 1e6)]
    assert_allclose(fits[1].weights, 1e6 * fits[0].weights, rtol=1e-6)
    assert_allclose(fits[1].factors[2], fits[0].factors[2], atol=1e-6)


def test_one_component():
    truth = planted(4, 1, rng=0)
    assert error_of(codiag.parafac2(truth.slices, 1, rng=0), truth) < 1e-10
    assert codiag.parafac2(truth.slices[:2], 1, rng=0).relative_error < 1e-10


def test_mixed_signs_at_higher_rank_are_found():
    found = 0
    for seed in range(5):
        truth = planted(20, 4, sizes=(15,), n_columns=12, signed=True, noise=0.05, rng=seed)
        found += error_of(codiag.parafac2(truth.slices, 4, rng=0), truth) < 0.1
    assert found >= 4


def test_the_same_seed_gives_the_same_fit():
    slices = planted(signed=True, noise=0.1, rng=5).slices
    fits = [codiag.parafac2(slices, 3, rng=7) for _ in range(2)]
    assert np.array_equal(fits[0].factors[2], fits[1].factors[2])


class TestErrors:
    """Standard errors against errors of simulated fits, each near the true factors."""

    @pytest.fixture(scope="class")
    @classmethod
    def fits(cls):
        truth = parafac2_slices((20,) * 12, 12, 3, rng=1)
        rng = np.random.default_rng(2)
        scale = 0.05 * np.sqrt(np.mean(np.square(truth.slices)))
        noisy = [[one + scale * rng.standard_normal(one.shape) for one in truth.slices] for _ in range(30)]
        return truth, scale, [codiag.parafac2(slices, 3, rng=0) for slices in noisy]

    @staticmethod
    def pairs(truth, fit):
        """Yield errors and standard errors of the entries of A, of the evolving factors, and of C."""
        order = codiag.match_components([fit.factors[2]], [truth.factors[2]]).permutation
        signs = np.sign(np.sum(fit.factors[2][:, order] * truth.factors[2], axis=0))
        error_a, error_b, error_c = fit.entry_standard_errors
        yield fit.factors[0][:, order] - truth.factors[0], error_a[:, order]
        for own, basis, errors in zip(fit.evolving, truth.projections, error_b, strict=True):
            yield own[:, order] * signs - basis @ truth.factors[1], errors[:, order]
        yield fit.factors[2][:, order] * signs - truth.factors[2], error_c[:, order]

    def test_they_have_the_size_of_errors(self, fits):
        truth, _, found = fits
        squares = np.zeros((3, 2))
        for fit in found:
            pairs = list(self.pairs(truth, fit))
            for place, part in enumerate((pairs[:1], pairs[1:-1], pairs[-1:])):
                squares[place] += [sum(np.sum(each[side] ** 2) for each in part) for side in (0, 1)]
        assert_allclose(np.sqrt(squares[:, 0] / squares[:, 1]), 1, atol=0.12)

    def test_intervals_hold_as_often_as_they_say(self, fits):
        truth, _, found = fits
        inside = [np.abs(error) < 1.645 * own for fit in found for error, own in self.pairs(truth, fit)]
        assert 0.85 < np.mean(np.concatenate([each.ravel() for each in inside])) < 0.95

    def test_the_noise_is_known(self, fits):
        _, scale, found = fits
        assert_allclose(np.mean([fit.noise_variance for fit in found]), scale**2, rtol=0.02)

    def test_columns_sum_up_entries(self, fits):
        fit = fits[2][0]
        for whole, parts in zip(fit.standard_errors, fit.entry_standard_errors, strict=True):
            found = np.stack(parts) if isinstance(parts, tuple) else parts
            assert_allclose(whole, np.linalg.norm(found, axis=-2))

    def test_the_bootstrap_is_of_their_order(self):
        slices = planted(30, 2, noise=0.2, rng=8).slices
        fit = codiag.parafac2(slices, 2, rng=0)
        found = np.linalg.norm(fit.bootstrap(n=30, rng=0).entry_standard_errors[2], axis=0)
        assert np.all((found > 0.5 * fit.standard_errors[2]) & (found < 2 * fit.standard_errors[2]))


class TestMissing:
    def test_entries_that_are_missing_are_recovered(self):
        truth = planted(10, 2, sizes=(12,), rng=0)
        rng = np.random.default_rng(0)
        holes = [np.where(rng.random(one.shape) < 0.15, np.nan, one) for one in truth.slices]
        fit = codiag.parafac2(holes, 2, rng=0)
        assert error_of(fit, truth) < 1e-4
        assert_allclose(fit.to_slices(), truth.slices, atol=1e-3)
        assert np.isnan(fit.standard_errors[0]).all()

    def test_a_mask_is_as_nan(self):
        slices = planted(8, 2, sizes=(12,), noise=0.02, rng=0).slices
        seen = [np.random.default_rng(k).random(one.shape) < 0.8 for k, one in enumerate(slices)]
        holes = [np.where(known, one, np.nan) for known, one in zip(seen, slices, strict=True)]
        first, second = codiag.parafac2(holes, 2, rng=0), codiag.parafac2(slices, 2, mask=seen, rng=0)
        assert_allclose(first.factors[2], second.factors[2])

    def test_rows_that_are_missing_are_said_to_be(self):
        slices = planted(8, 2, sizes=(12,), noise=0.1, rng=0).slices
        slices[3][5] = np.nan
        assert "1 row of slices is missing as a whole" in str(codiag.parafac2(slices, 2, rng=0).diagnose())


class TestConstraints:
    @pytest.mark.parametrize("modes", [(0,), (2,), (0, 2)])
    def test_factors_are_not_negative(self, modes):
        rng = np.random.default_rng(0)
        a, c = (rng.random(shape) * (rng.random(shape) > 0.3) for shape in ((12, 3), (15, 3)))
        bases = [np.linalg.qr(rng.standard_normal((20, 3)))[0] for _ in a]
        slices = [
            basis @ np.diag(row) @ c.T + 0.03 * rng.standard_normal((20, 15))
            for basis, row in zip(bases, a, strict=True)
        ]
        fit = codiag.parafac2(slices, 3, constraints=dict.fromkeys(modes, "nonnegative"), rng=0)
        for mode in modes:
            assert fit.factors[mode].min() >= 0
        assert 2 not in modes or fit.factors[2].min() == 0
        assert codiag.factor_error([fit.factors[0], fit.factors[2]], [a, c]) < 0.1
        assert all(np.isfinite(each).all() for each in fit.standard_errors)
        assert fit.conf_int().factors[-1][0].min() >= (0 if 2 in modes else -np.inf)

    def test_a_ridge_shrinks(self):
        slices = planted(noise=0.1, rng=0).slices
        free, bound = (
            codiag.parafac2(slices, 3, constraints=rule, rng=0) for rule in (None, codiag.constraints.Ridge(0.5))
        )
        assert np.all(bound.weights < free.weights)
        assert "a ridge of 0.5 on all factors" in bound.describe()

    @pytest.mark.parametrize("rule", ["orthogonal", {1: "nonnegative"}, {0: codiag.constraints.Ridge(1.0)}])
    def test_others_are_refused(self, rule):
        with pytest.raises(ValueError, match="^constraints"):
            codiag.parafac2(planted(rng=0).slices, 2, constraints=rule)


class TestData:
    def test_sparse_slices_are_as_dense_ones(self):
        rng = np.random.default_rng(0)
        slices = [np.where(rng.random(one.shape) < 0.5, one, 0) for one in planted(10, 2, rng=0).slices]
        fits = [codiag.parafac2(each, 2, rng=0) for each in (slices, [sparse.csr_array(one) for one in slices])]
        assert_allclose(fits[0].relative_error, fits[1].relative_error, rtol=1e-6)
        assert_allclose(fits[0].factors[2], fits[1].factors[2], atol=1e-4)

    @pytest.mark.parametrize("is_sparse", [False, True])
    def test_many_slices_are_as_few(self, monkeypatch, is_sparse):
        slices = planted(200, 2, noise=0.1, rng=3).slices
        slices = [sparse.csr_array(one) for one in slices] if is_sparse else slices
        expected = codiag.parafac2(slices, 2, rng=0)
        monkeypatch.setattr("codiag._parafac2._search.MANY_ENTRIES", 100)  # starts on 20 slices
        monkeypatch.setattr("codiag._parafac2._model.SAMPLED", 500)  # the curvature in B and C from 29 slices
        fit = codiag.parafac2(slices, 2, rng=0)
        assert fit.converged
        assert_allclose(fit.relative_error, expected.relative_error, rtol=1e-6)
        assert_allclose(fit.factors[2], expected.factors[2], atol=1e-3)

    def test_empty_rows_of_sparse_slices_have_no_scores(self):
        slices = planted(8, 2, noise=0.1, rng=0).slices
        padded = [np.insert(one, 3, 0.0, axis=0) for one in slices]
        fits = [codiag.parafac2([sparse.csr_array(one) for one in each], 2, rng=0) for each in (slices, padded)]
        assert np.all(fits[1].projections[2][3] == 0)
        assert_allclose(np.delete(fits[1].projections[2], 3, axis=0), fits[0].projections[2], atol=1e-5)

    def test_tables_are_ragged(self):
        pytest.importorskip("xarray")
        slices = planted(6, 2, noise=0.1, rng=0).slices
        rows = [(f"patient {k}", 10 * k + i, f"taxon {j}", one[i, j])
                for k, one in enumerate(slices) for i in range(len(one)) for j in range(7)]  # fmt: skip
        table = pd.DataFrame(rows, columns=["patient", "day", "taxon", "count"])
        fit, expected = codiag.parafac2(table, 2, rng=0), codiag.parafac2(slices, 2, rng=0)
        assert_allclose(fit.factors[2], expected.factors[2], atol=1e-8)
        assert fit.labels.names == ("patient", "day", "taxon")
        assert fit.rows[1].tolist() == list(range(10, 18))
        assert fit.to_xarray()["factor_taxon"].coords["taxon"].values[1] == "taxon 1"

    def test_datasets_dicts_and_frames(self):
        xarray = pytest.importorskip("xarray")
        slices = planted(5, 2, noise=0.1, rng=0).slices
        names = [f"s{k}" for k in range(5)]
        dataset = xarray.Dataset(
            {name: ((f"row{k}", "column"), one) for k, (name, one) in enumerate(zip(names, slices, strict=True))}
        )
        frames = [pd.DataFrame(one, columns=list("abcdefg")) for one in slices]
        expected = codiag.parafac2(slices, 2, rng=0)
        for given in (dataset, dict(zip(names, slices, strict=True)), frames):
            fit = codiag.parafac2(given, 2, rng=0)
            assert_allclose(fit.factors[2], expected.factors[2])
        assert fit.labels.values[2].tolist() == list("abcdefg")

    def test_arrays_of_order_three(self):
        xarray = pytest.importorskip("xarray")
        slices = np.stack(planted(5, 2, sizes=(9,), noise=0.1, rng=0).slices)
        labelled = xarray.DataArray(slices, dims=("run", "time", "mass"), coords={"time": np.arange(9.0)})
        fit = codiag.parafac2(labelled, 2, rng=0)
        assert_allclose(fit.factors[2], codiag.parafac2(slices, 2, rng=0).factors[2])
        assert fit.labels.names == ("run", "time", "mass")

    @pytest.mark.parametrize(
        ("change", "rank", "message"),
        [
            (lambda slices: slices[:3], 2, "slices must be at least four"),
            (lambda slices: [*slices[:4], slices[4][:, :5]], 2, "slices must all have the same columns"),
            (lambda slices: [one[:2] for one in slices], 3, "rank must be at most 2"),
            (lambda slices: slices, 8, "rank must be at most 7"),
            (lambda slices: [*slices[:4], slices[4][:0]], 2, r"slices\[4\] must not be empty"),
            (lambda slices: [*slices[:4], slices[4] * np.inf], 2, r"slices\[4\] must be finite"),
            (lambda slices: [*slices[:4], slices[4][0]], 2, r"slices\[4\] must be a matrix"),
            (lambda slices: [0 * one for one in slices], 2, "slices must not all be zero"),
            (lambda _: [], 2, "slices must contain at least one"),
            (lambda slices: slices[0], 2, "slices must be an array of order three"),
        ],
    )  # fmt: skip
    def test_bad_input(self, change, rank, message):
        with pytest.raises(ValueError, match=f"^{message}"):
            codiag.parafac2(change(planted(5, 2, rng=0).slices), rank)

    def test_complex_slices_are_refused(self):
        with pytest.raises(TypeError, match="must be real"):
            codiag.parafac2([1j * one for one in planted(5, 2, rng=0).slices], 2)

    def test_slices_with_fewer_rows_than_components(self):
        truth = planted(10, 3, noise=0.02, rng=0)
        slices = [*truth.slices, truth.slices[0][:2]]
        fit = codiag.parafac2(slices, 3, rng=0)
        assert fit.projections[-1].shape == (2, 3)
        assert "Fewer rows than components" in str(fit.diagnose())


class TestResults:
    @pytest.fixture(scope="class")
    @classmethod
    def fit(cls):
        return codiag.parafac2(planted(8, 2, noise=0.05, rng=0).slices, 2, rng=0)

    def test_files(self, fit, tmp_path):
        fit.save(tmp_path / "fit")
        read = codiag.Parafac2Fit.load(tmp_path / "fit")
        for first, second in zip(fit.projections, read.projections, strict=True):
            assert np.array_equal(first, second)
        assert_allclose(read.standard_errors[2], fit.standard_errors[2])
        assert str(read.diagnose()) == str(fit.diagnose())
        (tmp_path / "bad.npz").write_bytes(b"nothing")
        with pytest.raises(ValueError, match=r"was not written by Parafac2Fit\.save"):
            codiag.Parafac2Fit.load(tmp_path / "bad.npz")

    def test_weights_of_new_slices(self, fit):
        truth = planted(8, 2, noise=0.05, rng=0)
        assert_allclose(fit.transform(truth.slices), fit.factors[0] * fit.weights, atol=1e-5)
        holes = [one.copy() for one in truth.slices]
        holes[2][3, 4] = np.nan
        assert_allclose(fit.transform(holes), fit.factors[0] * fit.weights, rtol=0.2)

    def test_a_slice_with_other_correlations_is_named(self):
        options = {"sizes": (15,), "n_columns": 10, "noise": 0.03, "rng": 0}
        slices = planted(12, 3, **options).slices
        slices[5] = planted(12, 3, correlation=-0.3, **options).slices[5]
        assert "slice 5:" in str(codiag.parafac2(slices, 3, rng=0).diagnose())

    def test_words(self, fit):
        assert "PARAFAC2 decomposition with 2 components" in fit.describe()
        assert repr(fit).startswith("Parafac2Fit(2 components of 8 slices with 7 columns")
        assert "joint diagonalization" in repr(fit.history)

    def test_data_can_be_dropped(self, fit):
        assert np.array_equal(fit.standard_errors[2], fit.drop_data().standard_errors[2])
        with pytest.raises(ValueError, match="^fit must have its slices"):
            fit.drop_data().bootstrap(n=2)
