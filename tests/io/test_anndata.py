"""AnnData objects, and a stand-in with the same attributes."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

import codiag
from codiag.io import from_anndata, slices_from_anndata, to_anndata
from codiag.synthetic import parafac2_slices

pd = pytest.importorskip("pandas", reason="pandas is not installed")


def stand_in(values, obs, genes, layers=None):
    return SimpleNamespace(X=values, obs=obs, var_names=pd.Index(genes), layers=layers or {}, uns={}, varm={}, obsm={})


def real(values, obs, genes, layers=None):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    obs = obs.set_axis([f"cell {k}" for k in range(len(obs))])
    return anndata.AnnData(X=values, obs=obs, var=pd.DataFrame(index=genes), layers=layers or {})


pytestmark = pytest.mark.filterwarnings("ignore:The 'future.infer_string' option")  # of pandas, by anndata
KINDS = pytest.mark.parametrize("kind", [stand_in, real])
GENES = [f"g{j}" for j in range(12)]


def drawn(kind, *, is_sparse=False):
    """Return cells of six donors and four types, whose means are of rank two, and the factors."""
    rng = np.random.default_rng(0)
    donors, types = np.repeat(np.arange(6), 40), np.tile(np.arange(4), 60)
    factors = [rng.uniform(0.5, 1.5, (size, 2)) for size in (6, 4, 12)]
    means = np.einsum("cr,cr,jr->cj", factors[0][donors], factors[1][types], factors[2])
    values = means + 0.01 * rng.standard_normal(means.shape)
    obs = pd.DataFrame({"donor": [f"d{k}" for k in donors], "cell_type": [f"t{k}" for k in types]})
    obs.loc[(donors == 2) & (types == 1), "cell_type"] = None
    values = sparse.csr_matrix(values) if is_sparse else values
    return kind(values, obs, GENES, {"double": 2 * values}), factors


@KINDS
@pytest.mark.parametrize("is_sparse", [False, True])
def test_means_are_those_of_the_groups(kind, is_sparse):
    cells, _ = drawn(kind, is_sparse=is_sparse)
    (tensor, labels), weights = from_anndata(cells)
    assert labels.names == ("donor", "cell_type", "gene")
    assert labels.values[1].tolist() == ["t0", "t1", "t2", "t3"]
    is_group = np.asarray((cells.obs["donor"] == "d3") & (cells.obs["cell_type"] == "t2"))
    dense = cells.X.toarray() if is_sparse else cells.X
    assert_allclose(tensor[3, 2], dense[is_group].mean(axis=0))
    assert_array_equal(weights[3, 2], is_group.sum())
    assert np.isnan(tensor[2, 1]).all()
    assert_array_equal(weights[2, 1], 0)
    assert_allclose(from_anndata(cells, layer="double").tensor.tensor[0], 2 * tensor[0])


@KINDS
def test_fits_are_written_beside_the_cells(kind):
    cells, factors = drawn(kind)
    tensor, weights = from_anndata(cells)
    fit = codiag.factorize(tensor, 2, weights=weights, rng=0)
    assert codiag.factor_error(fit, factors) < 0.02
    to_anndata(fit, cells, key="cp")
    assert_array_equal(cells.varm["cp"], fit.factors[2])
    assert_array_equal(cells.varm["cp_standard_error"], fit.entry_standard_errors[2])
    assert_array_equal(cells.obsm["cp_donor"][45], fit.factors[0][1])
    assert np.isnan(cells.obsm["cp_cell_type"][81]).all()
    assert_array_equal(cells.uns["cp"]["factor_donor_standard_error"], fit.entry_standard_errors[0])
    assert cells.uns["cp"]["donor"].tolist() == [f"d{k}" for k in range(6)]


@KINDS
def test_slices_are_the_cells_of_each_group(kind):
    truth = parafac2_slices((14, 9, 12, 10, 11), 12, 2, noise=0.05, rng=0)
    order = np.random.default_rng(0).permutation(56)
    obs = pd.DataFrame({"donor": np.repeat(list("abcde"), (14, 9, 12, 10, 11))[order]})
    cells = kind(np.concatenate(truth.slices)[order], obs, GENES)
    slices = slices_from_anndata(cells, by="donor")
    assert {name: len(one) for name, one in slices.items()} == {"a": 14, "b": 9, "c": 12, "d": 10, "e": 11}
    fit = codiag.parafac2(slices, 2, rng=0)
    to_anndata(fit, cells)
    places = np.flatnonzero(obs["donor"] == "c")
    assert_array_equal(cells.obsm["codiag"][places], fit.evolving[2])
    assert_array_equal(cells.obsm["codiag_standard_error"][places], fit.entry_standard_errors[1][2])
    assert_array_equal(cells.varm["codiag"], fit.factors[2])
    assert cells.uns["codiag"]["donor"].tolist() == list("abcde")


def test_files_hold_what_was_written(tmp_path):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    cells, _ = drawn(real)
    tensor, weights = from_anndata(cells)
    to_anndata(codiag.factorize(tensor, 2, weights=weights, rng=0), cells)
    cells.obs = cells.obs.astype("category")
    with anndata.settings.override(allow_write_nullable_strings=True):  # of pandas 3, in obs
        cells.write_h5ad(tmp_path / "cells.h5ad")
    read = anndata.read_h5ad(tmp_path / "cells.h5ad")
    assert_array_equal(read.uns["codiag"]["factor_donor"], cells.uns["codiag"]["factor_donor"])
    assert list(read.uns["codiag"]["cell_type"]) == ["t0", "t1", "t2", "t3"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda cells: from_anndata(cells, by="donor"), "by must be two columns"),
        (lambda cells: from_anndata(cells, by=("donor", "day")), "by must name columns"),
        (lambda cells: from_anndata(cells, layer="counts"), "layer must be one of"),
        (lambda cells: slices_from_anndata(cells, by="day"), "by must name columns"),
        (lambda cells: to_anndata(codiag.factorize(np.ones((3, 4, 5)), 1, rng=0), cells), "fit must be that of"),
    ],
)  # fmt: skip
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        call(drawn(stand_in)[0])
