"""Coupled sets: what they have in common with one tensor, invariances, presence, error bars, mistakes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import codiag
from assertions import assert_same_to_rounding
from codiag._coupled import CoupledObjective, Search, Sets

NAMES = [("a", "b", "c"), ("a", "d")]
SIZES = {"a": 14, "b": 9, "c": 8, "d": 10, "e": 7}


def drawn(seed=0, *, noise=0.1, presence=((1, 1, 1), (1, 1, 1)), names=NAMES):
    """Return normal factors, and noisy sets of them."""
    rng = np.random.default_rng([43, seed])
    factors = {name: rng.standard_normal((size, len(presence[0]))) for name, size in SIZES.items()}
    sets = []
    for modes, weights in zip(names, presence, strict=True):
        spec = ",".join(f"{name}r" for name in modes) + ",r->" + "".join(modes)
        clean = np.einsum(spec, *(factors[name] for name in modes), np.array(weights, float))
        sets.append(clean + noise * np.sqrt(np.mean(clean**2)) * rng.standard_normal(clean.shape))
    return factors, sets


def test_one_set_is_factorize():
    _, (tensor, _) = drawn()
    coupled = codiag.factorize_coupled([tensor], 3, modes=NAMES[:1], rng=0)
    alone = codiag.factorize(tensor, 3, rng=0)
    assert coupled.converged
    assert_allclose(coupled.weights[0], alone.weights, rtol=1e-6)
    for name, factor in zip("abc", alone.factors, strict=True):
        assert_allclose(coupled.factors[name], factor, atol=1e-6)
    assert_allclose([coupled.standard_errors[name] for name in "abc"], alone.standard_errors, rtol=1e-5)
    assert_allclose(coupled.weight_standard_errors[0], alone.weight_standard_errors, rtol=1e-5)
    assert coupled.noise_standard_deviations[0] == pytest.approx(alone._noise, rel=1e-6)


def test_two_copies_are_one_tensor_of_half_the_variance():
    """The mean of two measurements; but for their own weights, of which each component has one more."""
    rng = np.random.default_rng(1)
    _, (tensor, _) = drawn(noise=0.0)
    sigma = 0.1 * np.sqrt(np.mean(tensor**2))
    copies = [tensor + sigma * rng.standard_normal(tensor.shape) for _ in range(2)]
    coupled = codiag.factorize_coupled(copies, 3, modes=[NAMES[0]] * 2, rng=0)
    mean = codiag.factorize(sum(copies) / 2, 3, rng=0)
    order = codiag.match_components([coupled.factors[name] for name in "abc"], mean.factors).permutation
    for mode, name in enumerate("abc"):
        apart = coupled.factors[name][:, order] - mean.factors[mode]
        assert np.all(np.linalg.norm(apart, axis=0) < 0.2 * mean.standard_errors[mode])
        assert_allclose(coupled.standard_errors[name][order], mean.standard_errors[mode], rtol=0.1)


def test_units_and_the_order_of_sets_do_not_matter():
    _, (tensor, matrix) = drawn(noise=0.2)
    one = codiag.factorize_coupled([tensor, matrix], 3, modes=NAMES, rng=0)
    other = codiag.factorize_coupled([1e3 * tensor, matrix], 3, modes=NAMES, rng=0)
    turned = codiag.factorize_coupled([matrix, tensor], 3, modes=NAMES[::-1], rng=0)
    assert_allclose(other.weights, one.weights * [[1e3], [1]], rtol=1e-5)
    assert_allclose(turned.weights[::-1], one.weights, rtol=1e-3)
    for name in "abcd":
        assert_allclose(other.factors[name], one.factors[name], atol=1e-6)
        assert_allclose(turned.factors[name], one.factors[name], atol=1e-3)


@pytest.mark.parametrize("missing", [False, True])
def test_curvature_and_gradient_are_those_of_all_residuals(missing):
    """Of residuals over the standard deviations of the noise, differentiated numerically."""
    _, sets = drawn()
    if missing:
        sets[1][0, 3] = sets[0][1, 2, 3] = np.nan
    search = Search(Sets.of(sets, NAMES), 2, (None,) * 4, np.random.default_rng(0))
    variances, parts = np.array([0.5, 2.0]), [array.copy() for array in search.sets.arrays]
    objective = CoupledObjective(search.problem, search.sets, variances)
    point = np.random.default_rng(1).standard_normal((sum(search.sets.sizes) + 2, 2))

    def residuals(flat):
        *factors, weights = np.split(flat.reshape(point.shape), np.cumsum(search.sets.sizes))
        models = [np.einsum("ir,jr,kr,r->ijk", *factors[:3], weights[0]),
                  np.einsum("ir,jr,r->ij", factors[0], factors[3], weights[1])]  # fmt: skip
        rest = [
            (part - model) / np.sqrt(variance) for part, model, variance in zip(parts, models, variances, strict=True)
        ]
        return np.nan_to_num(np.concatenate([one.ravel() for one in rest]))

    flat, step = point.ravel(), 1e-6
    jacobian = np.stack([(residuals(flat + step * e) - residuals(flat - step * e)) / (2 * step)
                         for e in np.eye(flat.size)], axis=1)  # fmt: skip
    value, gradient = objective.value_and_gradient(point)
    assert value == pytest.approx(np.sum(residuals(flat) ** 2) / 2)
    assert objective.value(point) == pytest.approx(value)
    assert_allclose(gradient.ravel(), jacobian.T @ residuals(flat), atol=1e-5)
    curvature = objective.curvature(point)
    assert_allclose(curvature.matrix(), jacobian.T @ jacobian, atol=1e-5)
    move = np.random.default_rng(2).standard_normal(point.shape)
    assert_allclose(curvature.product(move).ravel(), curvature.matrix() @ move.ravel(), atol=1e-8)


@pytest.mark.parametrize(
    ("names", "presence"),
    [
        (NAMES, ((1, 1, 1), (1, 1, 0))),
        (NAMES, ((1, 1, 0), (1, 1, 1))),
        ([("a", "b", "c"), ("a", "d", "e")], ((1, 1, 0), (1, 0, 1))),
    ],
    ids=["tensor only", "matrix only", "two tensors"],
)
def test_components_in_one_set_only_are_found(names, presence):
    factors, sets = drawn(3, presence=presence, names=names)
    fit = codiag.factorize_coupled(sets, 3, modes=names, rng=0)
    small = fit.without_absent()
    order = codiag.match_components([small.factors["a"]], [factors["a"]]).permutation
    table = fit.presence()
    assert_array_equal(table["present"].reshape(3, 2)[order], np.array(presence).T > 0)
    assert_array_equal(small.weights.T[order] != 0, np.array(presence).T > 0)
    present = table["present"]
    assert np.all((table["low"] <= table["weight"]) & (table["weight"] <= table["high"]))
    assert np.all(table["low"][~present] <= 0)
    assert np.all(np.isfinite(small.weight_standard_errors))
    for place in range(2):
        shares = table["share"].reshape(3, 2)[:, place]
        assert shares.sum() == pytest.approx(1 - small.relative_errors[place] ** 2)


def test_a_chain_of_sets_and_a_matrix_between_shared_modes():
    names = [("a", "b", "c"), ("a", "d"), ("b", "d"), ("d", "e")]
    factors, sets = drawn(4, presence=((1, 1),) * 4, names=names, noise=0.05)
    fit = codiag.factorize_coupled(sets, 2, modes=names, rng=0)
    assert codiag.factor_error([fit.factors[name] for name in "abcde"], [factors[name] for name in "abcde"]) < 0.05


def test_missing_entries_and_rows():
    factors, sets = drawn(5, noise=0.05)
    rng = np.random.default_rng(0)
    sets = [np.where(rng.random(one.shape) < 0.7, one, np.nan) for one in sets]
    sets[1][:, 4] = np.nan
    fit = codiag.factorize_coupled([sets[0], np.ma.masked_invalid(sets[1])], 3, modes=NAMES, rng=0)
    assert codiag.factor_error([fit.factors[name] for name in "abc"], [factors[name] for name in "abc"]) < 0.1
    assert np.isnan(fit.factors["d"][4]).all()
    assert np.isnan(fit.entry_standard_errors["d"][4]).all()
    assert_allclose(np.nansum(fit.factors["d"] ** 2, axis=0), 1)
    assert np.isfinite(fit.standard_errors["d"]).all()
    rest = fit[1].to_tensor()[..., 0] - sets[1]
    assert np.sqrt(np.nansum(rest**2) / np.nansum(sets[1] ** 2)) == pytest.approx(fit.relative_errors[1])


def test_labels_of_shared_modes_are_matched():
    xarray = pytest.importorskip("xarray", reason="xarray is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    _, (tensor, matrix) = drawn(6, noise=0.05)
    subjects = [f"s{i}" for i in range(14)]
    plain = codiag.factorize_coupled(
        [tensor, np.where(np.arange(14)[:, None] == 13, np.nan, matrix)], 3, modes=NAMES, rng=0
    )
    first = xarray.DataArray(tensor, dims=list("abc"), coords={"a": subjects})
    second = pandas.DataFrame(matrix[:13][::-1], index=subjects[:13][::-1])
    fit = codiag.factorize_coupled({"x": first, "y": second}, 3, modes=NAMES, rng=0)
    assert_allclose(fit.factors["a"], plain.factors["a"], atol=1e-6)
    assert fit["y"].problem.labels.names == ("a", "d", "set")
    assert fit.presence()["set"].tolist()[:2] == ["x", "y"]
    by_dims = codiag.factorize_coupled(
        [first, xarray.DataArray(matrix[:13], dims=list("ad"), coords={"a": subjects[:13]})], 3, rng=0
    )
    assert_allclose(by_dims.factors["a"], plain.factors["a"], atol=1e-6)


def test_constraints_hold_and_weights_are_not_negative():
    rng = np.random.default_rng(7)
    factors = [rng.exponential(size=(size, 2)) * (rng.random((size, 2)) < 0.7) for size in (14, 9, 8, 10)]
    tensor, matrix = np.einsum("ir,jr,kr->ijk", *factors[:3]), factors[0] @ factors[3].T
    sets = [tensor + 0.1 * rng.standard_normal(tensor.shape), matrix + 0.1 * rng.standard_normal(matrix.shape)]
    fit = codiag.factorize_coupled(sets, 2, modes=NAMES, constraints="nonnegative", rng=0)
    assert all(np.all(factor >= 0) for factor in fit.factors.values())
    assert np.all(fit.weights >= 0)
    assert np.all(fit.entry_standard_errors["b"][fit.factors["b"] == 0] == 0)
    part = codiag.factorize_coupled(sets, 2, modes=NAMES, constraints={"d": "nonnegative"}, rng=0)
    assert np.all(part.factors["d"] >= 0)
    assert codiag.factor_error([fit.factors["a"]], factors[:1]) < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("missing", [False, True])
def test_standard_errors_are_those_of_draws(missing):
    squares = []
    for seed in range(30):
        factors, sets = drawn(100 + seed, noise=0.1)
        rng = np.random.default_rng(seed)
        sets = [np.where(rng.random(one.shape) < 0.8, one, np.nan) for one in sets] if missing else sets
        fit = codiag.factorize_coupled(sets, 3, modes=NAMES, rng=0)
        order = codiag.match_components([fit.factors["a"]], [factors["a"]]).permutation
        for name in "ad":
            unit = factors[name] / np.linalg.norm(factors[name], axis=0)
            found = fit.factors[name][:, order]
            found = found * np.sign(np.sum(found * unit, axis=0))
            squares.append([np.sum((found - unit) ** 2), np.sum(fit.standard_errors[name] ** 2)])
    errors, expected = np.mean(squares, axis=0)
    assert np.sqrt(errors / expected) == pytest.approx(1, abs=0.1)  # three times 1 / sqrt(2 * 30 * 60) is .05


def test_long_modes_have_the_errors_of_all_unknowns(monkeypatch):
    """In the ranges of the factors, and in all coordinates."""
    _, sets = drawn(8)
    short = codiag.factorize_coupled(sets, 3, modes=NAMES, rng=0)
    frames = [np.eye(len(factor)) for factor in short.factors.values()]
    monkeypatch.setattr("codiag._coupled._errors._frames", lambda *_: frames)
    whole = codiag.factorize_coupled(sets, 3, modes=NAMES, rng=0)
    for name in "abcd":
        assert_allclose(short.entry_standard_errors[name], whole.entry_standard_errors[name], rtol=1e-6)
    assert_allclose(short.weight_standard_errors, whole.weight_standard_errors, rtol=1e-6)


def test_the_same_seed_gives_the_same_answer_and_arguments_stay():
    _, sets = drawn(9)
    kept = [one.copy() for one in sets]
    one, other = (codiag.factorize_coupled(sets, 4, modes=NAMES, rng=5) for _ in range(2))
    assert_same_to_rounding(one.weights, other.weights)
    for array, before in zip(sets, kept, strict=True):
        assert_array_equal(array, before)


def test_parts_of_a_fit():
    _, sets = drawn(10)
    fit = codiag.factorize_coupled(sets, 3, modes=NAMES, rng=0)
    assert len(fit) == 2
    assert [part.shape for part in fit] == [(14, 9, 8), (14, 10, 1)]
    assert_array_equal(fit[0].standard_errors, [fit.standard_errors[name] for name in "abc"])
    assert fit[-1].relative_error == fit.relative_errors[1]
    low, high = fit[0].conf_int().factors[0]
    assert np.all(low < high)
    assert "14 a x 9 b x 8 c" in fit.describe()
    with pytest.raises(AttributeError, match="no attribute"):
        _ = fit.nothing


@pytest.mark.parametrize(
    ("sets", "rank", "options", "words"),
    [
        ([np.ones((3, 4, 5))], 1, {"modes": None}, "^modes must name"),
        ([np.ones((3, 4, 5))], 1, {"modes": [("a", "b")]}, r"^modes\[0\] must have 3"),
        ([np.ones((3, 4, 5))], 1, {"modes": [("a", "b", "b")]}, "different names"),
        ([np.ones((3, 4, 5))], 1, {"modes": NAMES}, "^modes must have a tuple"),
        ([np.ones((3, 4, 5)), np.ones((4, 2))], 1, {"modes": NAMES}, "equal sizes along the shared mode 'a'"),
        ([np.ones((3, 4, 5)), np.ones((3, 2))], 1, {"modes": [NAMES[0], ("d", "e")]}, "^modes must connect"),
        ([np.ones((3, 4)), np.ones((3, 2))], 1, {"modes": [("a", "b"), ("a", "d")]}, "order three or more"),
        ([np.ones((3, 4, 5)), np.zeros((3, 2))], 1, {"modes": NAMES}, r"^tensors\[1\] must have entries other"),
        ([np.full((3, 4, 5), np.inf)], 1, {"modes": NAMES[:1]}, r"^tensors\[0\] must have entries that are finite"),
        ([np.ones((3, 4, 5))], 9, {"modes": NAMES[:1]}, "^rank must leave"),
        ([np.ones((3, 4, 5))], 1, {"modes": NAMES[:1], "constraints": "unimodal"}, "^constraints of coupled sets"),
        ([np.ones((3, 4, 5))], 1, {"modes": NAMES[:1], "constraints": {"z": "nonnegative"}}, "^constraints"),
    ],
)  # fmt: skip
def test_mistakes(sets, rank, options, words):
    with pytest.raises(ValueError, match=words):
        codiag.factorize_coupled(sets, rank, **options)


def test_what_is_no_list():
    with pytest.raises(TypeError, match="^tensors must be a list"):
        codiag.factorize_coupled("text", 1, modes=NAMES)
    with pytest.raises(TypeError, match="^modes must be"):
        codiag.factorize_coupled([np.ones((3, 4, 5))], 1, modes="abc")
    with pytest.raises(TypeError, match=r"^tensors\[0\] must be real"):
        codiag.factorize_coupled([np.ones((3, 4, 5)) * 1j], 1, modes=NAMES[:1])
