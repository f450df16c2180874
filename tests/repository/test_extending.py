"""The worked examples of docs/extending run, and do what they say. Laws run on them through tests/cases.py."""

from __future__ import annotations

import ast
import doctest
import runpy

import numpy as np
import pytest
from numpy.testing import assert_allclose

import codiag
from codiag.extending import Diagonalizer, Method
from codiag.methods import Auto
from codiag.models import SingleTopic
from codiag.tensors import DenseTensor
from extending import FOLDER, example
from simulated import matched, single_topic_corpus

pytestmark = pytest.mark.slow

NAMES = ("tensor", "constraint", "loss", "diagonalizer", "start", "method", "model")
EVERY = pytest.mark.parametrize("name", NAMES)


def test_every_file_is_tested_and_linked():
    assert {path.stem for path in FOLDER.glob("*.py")} == set(NAMES)
    page = (FOLDER / "README.md").read_text()
    assert all(f"]({name}.py)" in page for name in NAMES)


@EVERY
def test_the_examples_in_its_docstrings_hold(name):
    result = doctest.testmod(example(name))
    assert result.attempted > 0
    assert result.failed == 0


@EVERY
def test_it_runs_as_a_script(name, capsys):
    """And warns of nothing: warnings are errors here."""
    runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")
    told = capsys.readouterr()
    assert told.out
    assert not told.err


@EVERY
def test_it_needs_nothing_private(name):
    """Neither modules with an underscore, nor attributes of objects that are not its own."""
    tree = ast.parse((FOLDER / f"{name}.py").read_text())
    imported = [
        part
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for full in [getattr(node, "module", None) or "", *(alias.name for alias in node.names)]
        for part in full.split(".")
    ]
    assert "codiag" in imported
    assert [part for part in imported if part.startswith("_") and part != "__future__"] == []
    own = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)} | {"_replace"}  # of named tuples
    reached = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and node.attr.startswith("_")}
    assert reached <= own


class TestTensor:
    def test_a_tensor_too_large_to_form_is_factorized(self, capsys):
        assert example("tensor").main() < 1e-12

    @pytest.mark.parametrize("shape", [(5, 6, 7), (2, 3, 4, 3)], ids=str)
    def test_any_core_and_bases_agree_with_the_entries(self, shape):
        rng = np.random.default_rng(0)
        core, bases = rng.standard_normal((3,) * len(shape)), [rng.standard_normal((size, 3)) for size in shape]
        tensor = example("tensor").TuckerTensor(core, bases)
        entries = DenseTensor(tensor.to_dense())
        directions = [rng.standard_normal((2, size)) for size in shape[2:]]
        weights, factors = np.ones(2), [rng.standard_normal((size, 2)) for size in shape]
        assert_allclose(tensor.project(*directions), entries.project(*directions), atol=1e-12)
        for ours, theirs in zip(tensor.mttkrps(factors), entries.mttkrps(factors), strict=True):
            assert_allclose(ours, theirs, atol=1e-11)
        assert tensor.squared_norm() == pytest.approx(entries.squared_norm())
        assert tensor.inner(weights, factors) == pytest.approx(entries.inner(weights, factors))
        assert tensor.squared_distance(weights, factors) == pytest.approx(entries.squared_distance(weights, factors))

    def test_mistakes(self):
        kind = example("tensor").TuckerTensor
        with pytest.raises(ValueError, match="^bases must"):
            kind(np.ones((2, 2, 2)), [np.ones((5, 3))] * 3)
        with pytest.raises(ValueError, match="symmetric=True needs"):
            kind(np.ones((2, 2, 2)), [np.ones((5, 2)), np.ones((5, 2)), np.zeros((5, 2))], symmetric=True)


def test_the_constraint_lowers_the_error(capsys):
    free, known = example("constraint").main()
    assert known < 0.7 * free


def test_the_loss_lowers_the_error(capsys):
    plain, own = example("loss").main()
    assert own < 0.7 * plain


def test_the_diagonalizer_finds_what_the_default_finds(capsys):
    assert example("diagonalizer").main() < 1e-7


class TestStart:
    def test_it_finds_the_best_minimum_more_often_than_the_default(self, capsys):
        n_best = example("start").main(n_tensors=2)
        assert n_best["default starts"] < n_best["coarse to fine"] == 2

    @pytest.mark.parametrize("widths", [(2, 2), (0, 1, 1)], ids=str)
    def test_mistakes(self, widths):
        method = Auto(starts=[example("start").CoarseToFine(widths=widths)])
        with pytest.raises(ValueError, match="^widths must"):
            codiag.factorize(np.ones((4, 5, 6)), 1, method=method)

    def test_modes_that_share_a_factor_have_one_width(self):
        method = Auto(starts=[example("start").CoarseToFine(widths=(1, 2, 2))])
        with pytest.raises(ValueError, match="^widths must"):
            codiag.factorize(np.ones((4, 4, 4)), 1, symmetric=True, method=method)


class TestMethod:
    def test_it_is_right_for_orthogonal_factors_and_for_whitened_ones(self, capsys):
        errors = example("method").main()
        assert errors["orthogonal factors"] < 1e-8
        assert errors["other factors, second moment given"] < 1e-8
        assert errors["other factors"] > 1e-3

    def test_it_serves_in_a_model(self):
        method: Method = example("method").Deflation()
        counts, topics, _ = single_topic_corpus(5000, 0)
        found, best = (SingleTopic(4, method=one, random_state=0).fit(counts) for one in (method, None))
        assert matched(found.components_, topics) < matched(best.components_, topics) + 0.1

    def test_second_moments_of_a_lower_rank_are_refused(self):
        problem = codiag.Problem(np.ones((3, 3, 3)), 2, symmetric=True, second_moment=np.ones((3, 3)))
        with pytest.raises(ValueError, match="^second_moment must"):
            codiag.factorize(problem, method=example("method").Deflation())


class TestModel:
    def test_polish_lowers_the_error(self, capsys):
        errors = example("model").main()
        assert errors["moments, then 20 steps"] < errors["moments"] < 0.05

    def test_components_are_told_apart(self):
        counts, _, weights = example("model").draw(5000, 1)
        shares = example("model").PoissonMixture(3, random_state=0).fit(counts).predict_proba(counts)
        assert_allclose(shares.sum(axis=1), 1)
        assert_allclose(np.sort(shares.mean(axis=0)), np.sort(weights), atol=0.03)

    @pytest.mark.parametrize("wrong", [[[1, 2], [-1, 3]], [[0.5, 1], [1, 2]], [[1, 2], [np.nan, 1]]], ids=str)
    def test_what_are_no_counts(self, wrong):
        with pytest.raises(ValueError, match="X"):
            example("model").PoissonMixture(1).fit(wrong)

    def test_more_components_than_counts(self):
        with pytest.raises(ValueError, match="^n_components must"):
            example("model").PoissonMixture(3).fit([[1, 2], [3, 4]])


def test_what_of_ones_own_returns_something_else_is_named():
    class Plain(Diagonalizer):
        def iterate(self, stack, rng):
            return np.eye(stack.shape[-1])

    class Nothing(Method):
        def fit(self, problem, rng):
            return None

    stack = np.random.default_rng(0).standard_normal((4, 3, 3))
    with pytest.raises(TypeError, match=r"Plain\.iterate must return"):
        codiag.joint_diagonalize(stack + np.swapaxes(stack, 1, 2), diagonalizer=Plain())
    with pytest.raises(TypeError, match=r"Nothing\.fit must return"):
        codiag.factorize(stack, 2, method=Nothing())
