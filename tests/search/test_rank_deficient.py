"""Tensors with fewer components than asked for: every method returns as many columns as asked, or says no."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

import codiag
from cases import METHODS
from codiag._checks import UndeterminedError
from codiag.diagonalize import Diagonalizer
from codiag.methods import OJD, SD2, Lathauwer
from codiag.synthetic import unit_factor
from codiag.tensors import FactoredTensor
from experiments.simulated import orthogonal_model


def _tensors() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    vectors = rng.standard_normal((4, 5))
    slices = rng.standard_normal((5, 5, 5))
    slices[2:] = 0
    entry = np.zeros((3, 4, 5))
    entry[0, 0, 0] = 1
    return {
        "ones 3 5 3": np.ones((3, 5, 3)),
        "ones 6 2 4": np.ones((6, 2, 4)),
        "ones 5 5 5": np.ones((5, 5, 5)),
        "rank one": np.einsum("i,j,k->ijk", *vectors[:3]),
        "symmetric rank one": np.einsum("i,j,k->ijk", *[vectors[3]] * 3),
        "zero slices": slices,
        "repeated slices": np.repeat(rng.standard_normal((5, 5, 1)), 5, axis=2),
        "one entry": entry,
    }


TENSORS = _tensors()


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")  # several components in the place of one may cancel
@pytest.mark.parametrize("rank", [2, 3])
@pytest.mark.parametrize("tensor", TENSORS)
@pytest.mark.parametrize("name", METHODS)
def test_as_many_columns_as_asked_or_a_sentence(name, tensor, rank):
    refusal, fit = None, None
    try:
        fit = codiag.factorize(TENSORS[tensor], rank, method=METHODS[name].method, seed=0)
    except ValueError as error:
        refusal = error
    if fit is None:
        assert type(refusal) in (ValueError, UndeterminedError)  # not the LinAlgError of a routine below
        assert any(way_out in str(refusal) for way_out in ("rank must be at most", "use NOJD", "Use NOJD"))
        return
    assert fit.weights.shape == (rank,)
    for factor, size in zip(fit.factors, TENSORS[tensor].shape, strict=True):
        assert factor.shape == (size, rank)
        lengths = np.linalg.norm(factor, axis=0)
        np.testing.assert_allclose(lengths, 1, atol=1e-9)


def test_lathauwer_names_the_rank_there_is():
    with pytest.raises(ValueError, match=r"rank must be at most 1, the dimension.*got 3\. method=None"):
        codiag.factorize(np.ones((3, 5, 3)), 3, method=Lathauwer(), seed=0)


def test_one_singular_pair_is_no_error_of_linear_algebra():
    with pytest.raises(ValueError, match=r"projections are singular in each of n_pairs=1 pairs") as caught:
        codiag.factorize(TENSORS["one entry"], 2, method=SD2(n_pairs=1), seed=0)
    assert type(caught.value) in (ValueError, UndeterminedError)


class TestEveryDiagonalizationIsAStage:
    @staticmethod
    def count(monkeypatch) -> list[int]:
        sweeps: list[int] = []
        original = Diagonalizer.__call__

        def counted(self, *arguments, **options):
            fit = original(self, *arguments, **options)
            sweeps.append(fit.n_sweeps)
            return fit

        monkeypatch.setattr(Diagonalizer, "__call__", counted)
        return sweeps

    def test_before_and_after_whitening(self, monkeypatch):
        """The pass without whitening, the trial with free factors, and the pass after whitening."""
        sweeps = self.count(monkeypatch)
        tensor = FactoredTensor(np.linspace(1, 2, 5), [np.abs(unit_factor(8, 5, 0))] * 3).to_dense()
        stages = codiag.factorize(tensor, 5, method="ojd1", seed=0).stages
        diagonalizations = [stage for stage in stages if stage.name != "whiten"]
        assert [stage.sweeps for stage in diagonalizations] == sweeps
        assert all(stage.flops > 0 for stage in diagonalizations)
        names = ["diagonalize", "diagonalize along factors"]
        assert [stage.name for stage in stages] == [*names, "try free factors", "whiten", *names]

    @pytest.mark.parametrize("method", [OJD(), OJD(whiten=False)], ids=["looks", "does not"])
    def test_under_noise(self, monkeypatch, method):
        sweeps = self.count(monkeypatch)
        problem = orthogonal_model(10, 10, noise=1.0, seed=0)
        fit = codiag.factorize(problem.tensor, 10, method=method, seed=0)
        assert [stage.sweeps for stage in fit.stages] == sweeps
        assert len(sweeps) == (3 if method.whiten else 2)


@pytest.mark.filterwarnings("ignore::codiag.ConvergenceWarning")
@pytest.mark.parametrize("n_zero_slices", [0, 1, 2])
def test_slices_of_zeros_do_not_make_cancelling_components_look_like_a_fit_that_leaves_noise(n_zero_slices):
    # The form x^2 z + x y^2: two of its terms that cancel each other leave half of it, other pairs less.
    indices = np.indices((3, 3, 3)).sum(axis=0)
    tensor = np.pad((indices == 2).astype(float), (0, n_zero_slices))
    fit = codiag.factorize(tensor, 2, seed=0)
    assert fit.relative_error < 0.63
    assert not fit.converged


def test_equations_that_do_not_determine_all_components_leave_the_others_to_other_starts():
    tensor = np.zeros((7, 3, 3))
    tensor[[1, 2, 4, 6], [1, 1, 1, 2], [2, 1, 0, 0]] = 1
    assert codiag.factorize(tensor, 4, seed=0).relative_error < 1e-6


def test_givens_refuses_a_range_with_more_directions_than_components():
    tensor = np.zeros((4, 4, 4))
    for place in permutations(range(3)):
        tensor[place] = 1
    with pytest.raises(ValueError, match="tensor must have 2 directions that are stronger than all others for Givens"):
        codiag.factorize(tensor, 2, method="givens", seed=0)
