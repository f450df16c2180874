"""The fuzzer: that it finds what is planted, that it knows every public name, and that a few inputs find nothing."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

import codiag
from fuzz.case import load_generators, make_case
from fuzz.known import KNOWN, is_known
from fuzz.reference import Point, best_als, composed, descend
from fuzz.runner import Plan, Summary, run
from fuzz.state import snapshot
from fuzz.watch import examine

MODULES = ("methods", "diagonalize", "tensors", "models", "metrics", "theory", "synthetic", "datasets",
           "drop_in", "drop_in.ajd", "extending", "io", "losses", "cli")  # fmt: skip
PLANTED = {
    "wrong relative_error": "relative_error",
    "not unit": "unit columns",
    "not sorted": "order",
    "double precision": "dtype",
    "not a minimum": "not converged",
    "a saddle": "saddle",
    "good of what cancels": "diagnosis",
    "shared memory": "copies",
    "changed input": "input changed",
    "changed state": "state changed",
    "printed": "printed",
    "warned": "warning",
    "nan": "not finite",
    "endless loop": "endless",
    "endless in C": "killed",
    "gone": "killed",
    "memory": "refused valid",
    "KeyError": "wrong exception",
    "LinAlgError": "wrong exception",
    "refusal from elsewhere": "not codiag's refusal",
    "refusal without a name": "names no argument",
    "nonsense": "nonsense accepted",
    "valid refused": "refused valid",
}


def public_names():
    """Yield the public names of codiag: those of `__all__`, or all that a module defines itself."""
    yield from (f"codiag.{name}" for name in codiag.__all__ if name != "__version__")
    for module in MODULES:
        found = importlib.import_module(f"codiag.{module}")
        own = [name for name, value in vars(found).items() if getattr(value, "__module__", "") == found.__name__]
        own = [name for name in own if not name.startswith("_") and callable(getattr(found, name))]
        yield from (f"codiag.{module}.{name}" for name in getattr(found, "__all__", own))


def test_every_public_name_has_a_generator():
    covered = {name for generator in load_generators().generators for name in generator.names}
    assert set(public_names()) - covered == set()


def test_generators_cover_nothing_that_is_gone():
    covered = {name for generator in load_generators().generators for name in generator.names}
    assert {name for name in covered if not is_there(name)} == set()


def is_there(name):
    module, _, attribute = name.rpartition(".")
    return hasattr(importlib.import_module(module), attribute)


@pytest.fixture(scope="module")
def planted():
    """Return the kinds of findings for every planted fault, as the workers report them."""
    registry = load_generators("fuzz.planted")
    names = [registry.chosen(np.random.default_rng([0, index])).names[0] for index in range(500)]
    numbers = tuple(names.index(generator.names[0]) for generator in registry.generators)
    plan = Plan(seed=0, numbers=numbers, module="fuzz.planted", limit=0.3)
    kinds: dict[str, set[str]] = {}
    for outcome in run(plan):
        kinds.setdefault(outcome.function, set()).update(finding.kind for finding in outcome.findings)
    return kinds


@pytest.mark.parametrize("fault", PLANTED)
def test_what_is_planted_is_found(planted, fault):
    if fault == "shared memory":
        pytest.importorskip("tensorly")
    assert PLANTED[fault] in planted[fault]


def test_an_input_that_ends_a_worker_once_is_not_blamed(planted):
    assert planted["gone once"] == set()


def test_an_input_is_the_same_for_the_same_seed_and_index():
    registry = load_generators()
    for index in range(20):
        first, second = (make_case(3, index, registry)[1] for _ in range(2))
        assert (first.function, first.spoiled) == (second.function, second.spoiled)
        for name, value in first.arguments.items():
            if isinstance(value, np.ndarray) and not isinstance(value, np.memmap):
                assert snapshot(value) == snapshot(second.arguments[name])


def test_the_reference_finds_exact_components():
    rng = np.random.default_rng(0)
    tensor = composed(np.ones(2), [rng.standard_normal((size, 2)) for size in (3, 4, 5)])
    assert best_als(tensor, 2, rng, n_sweeps=300) < 1e-3
    starts = [Point([rng.standard_normal((size, 2)) for size in tensor.shape], None, 3) for _ in range(5)]
    assert min(descend(tensor, start, 60)[1] for start in starts) < 1e-16
    assert min(descend(tensor, start, 60, exact=False)[1] for start in starts) < 1e-16


def test_derivatives_of_the_reference_are_those_of_differences():
    rng = np.random.default_rng(1)
    tensor = rng.standard_normal((3, 3, 3))
    for point in (
        Point([rng.standard_normal((3, 2)) for _ in range(3)], None, 3),
        Point([rng.standard_normal((3, 2))], np.array([1.0, -1.0]), 3),
    ):
        step = rng.standard_normal(point.jacobian().shape[1])
        ahead, behind = (point.moved(sign * 1e-6 * step).residual(tensor) for sign in (1, -1))
        np.testing.assert_allclose(-(ahead - behind).ravel() / 2e-6, point.jacobian() @ step, atol=1e-7)


def test_known_findings_have_a_reason():
    assert all(len(known.reason) > 20 for known in KNOWN)


def test_a_few_inputs_find_nothing_new():
    summary, new = Summary(), []
    for outcome in run(Plan(seed=0, inputs=20, limit=10.0)):
        summary.add(outcome)
        new += [(outcome.index, finding) for finding in outcome.findings if not is_known(finding)]
    assert new == []
    assert summary.valid >= summary.inputs / 3  # many generators draw limits on purpose, which may be refused


def test_examining_tells_a_refusal_from_a_finding():
    registry = load_generators()
    generator = next(one for one in registry.generators if "codiag.factorize" in one.names)
    case = generator.make(np.random.default_rng(0))
    case.arguments, case.valid, case.checks = {"tensor": np.zeros((2, 2, 2)), "rank": 1}, None, ()
    assert examine(generator, case).refused
    case.valid = True
    assert [finding.kind for finding in examine(generator, case).findings] == ["refused valid"]
