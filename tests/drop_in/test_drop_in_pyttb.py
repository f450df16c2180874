"""The functions of pyttb: the same optimum, in the same types."""

from __future__ import annotations

import numpy as np
import pytest

import codiag
from codiag.drop_in import cp_apr, gcp_opt, non_negative_parafac_hals
from codiag.losses import Bernoulli, Poisson


def counts(seed=0):
    rng = np.random.default_rng(seed)
    factors = [rng.gamma(2.0, size=(size, 2)) for size in (8, 9, 10)]
    return rng.poisson(np.einsum("ir,jr,kr->ijk", *factors)).astype(float)


def test_counts_are_fitted_as_factorize_does():
    tensor = counts()
    expected = codiag.factorize(tensor, 2, loss="poisson", rng=0)
    for _, _, info in (cp_apr(tensor, 2, printitn=0), gcp_opt(tensor, 2, "POISSON"), gcp_opt(tensor, 2, Poisson())):
        assert info["obj"] == pytest.approx(expected.deviance.total / 2)


def test_masked_entries_do_not_count():
    tensor, mask = counts(), np.random.default_rng(0).random((8, 9, 10)) < 0.8
    found = gcp_opt(np.where(mask, tensor, 99.0), 2, "POISSON", mask=mask)[2]["fit"]
    expected = codiag.factorize(np.where(mask, tensor, np.nan), 2, loss="poisson", rng=0)
    assert found.deviance.total == pytest.approx(expected.deviance.total)


def test_objectives_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="^objective must"):
        gcp_opt(counts(), 2, "RAYLEIGH")


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # options of SciPy that pyttb sets
def test_types_of_pyttb_go_in_and_come_out():
    """And pyttb's own optimum is no lower."""
    pyttb = pytest.importorskip("pyttb")
    from pyttb.gcp.fg_setup import Objectives
    from pyttb.gcp.optimizers import LBFGSB

    tensor = counts()
    ours, _, info = gcp_opt(pyttb.tensor(tensor), 2, Objectives.POISSON, LBFGSB(), printitn=0)
    assert isinstance(ours, pyttb.ktensor)
    start = pyttb.ktensor([np.asfortranarray(np.abs(factor) + 0.01) for factor in info["fit"].factors], ours.weights)
    theirs = pyttb.gcp_opt(pyttb.tensor(tensor), 2, Objectives.POISSON, LBFGSB(), init=start, printitn=0)[0]
    model = np.maximum(theirs.full().data, 1e-12)
    assert info["obj"] <= np.sum(Poisson().value(tensor, model)) * (1 + 1e-6)
    sparse = pyttb.tensor(tensor).to_sptensor()
    assert cp_apr(sparse, 2)[2]["obj"] == pytest.approx(info["obj"], rel=1e-6)
    clicks = (tensor > 5).astype(float)
    assert repr(gcp_opt(clicks, 1, Objectives.BERNOULLI_ODDS, LBFGSB())[2]["fit"].problem.loss) == repr(
        Bernoulli("odds")
    )


def test_errors_have_the_names_of_pyttb():
    with pytest.raises(ValueError, match="^input_tensor must"):
        cp_apr(np.zeros((3, 4, 5)), 1)
    with pytest.raises(ValueError, match="^data must"):
        gcp_opt(np.zeros((3, 4, 5)), 1, "POISSON")


def test_a_tensor_of_zeros_is_refused_whatever_the_method():
    for init in ("svd", "random"):
        with pytest.raises(ValueError, match="^tensor must"):
            non_negative_parafac_hals(np.zeros((3, 4, 5)), 1, init=init)


@pytest.mark.parametrize(("function", "name"), [(cp_apr, "input_tensor"), (gcp_opt, "data")])
def test_errors_name_what_a_tensor_is_called_here(function, name):
    rest = () if function is cp_apr else ("POISSON",)
    with pytest.raises(TypeError, match=f"^{name} must contain real or complex numbers"):
        function(np.full((2, 3, 4), "a"), 1, *rest)
