"""Metrics and theory: functions of small arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

import codiag
from codiag import metrics, theory

from ..arrays import choose
from ..case import Case, covers
from ..invariants import Problems, finite, has_shape


def _factors(rng: np.random.Generator, sizes: list[int], k: int) -> list[np.ndarray]:
    return [rng.standard_normal((size, k)) for size in sizes]


def _as_estimate(rng: np.random.Generator, factors: list[np.ndarray]) -> Any:
    """Return factors as they are, as a fit, or as a pair with weights."""
    weights = np.ones(factors[0].shape[1])
    fit = codiag.Factorization(weights, tuple(factors), 0.1, 1.0, True)
    return choose(
        rng, factors, tuple(factors), fit, (weights, factors), codiag.tensors.FactoredTensor(weights, factors)
    )


@covers(
    *(f"codiag.metrics.{name}" for name in ("factor_error", "match_components", "nearest_error")),
    "codiag.factor_error",
    "codiag.match_components",
    weight=2,
)
def matching(rng: np.random.Generator) -> Case:
    """Distances of factors, whatever form they come in."""
    k = int(rng.integers(1, 5))
    sizes = [int(rng.integers(1, 6)) for _ in range(int(choose(rng, 1, 3, 3, 4)))]
    truth = _factors(rng, sizes, k)
    noise = choose(rng, 0.0, 1e-3, 1.0)
    order = rng.permutation(k)
    estimate = [factor[:, order] + noise * rng.standard_normal(factor.shape) for factor in truth]
    alone = len(sizes) == 1
    arguments = {
        "estimate": estimate[0] if alone else _as_estimate(rng, estimate),
        "truth": truth[0] if alone else _as_estimate(rng, truth),
    }
    name = choose(rng, "factor_error", "match_components", "nearest_error")

    def measured(found: Any, given: dict[str, Any]) -> Problems:
        if name == "match_components":
            yield from has_shape(found.permutation, (k,), "permutation")
            if sorted(found.permutation.tolist()) != list(range(k)):
                yield "shape", f"permutation {found.permutation}"
        elif not 0 <= found <= 2 or (noise == 0 and found > 1e-6):
            yield "metric", f"{name} of the same components is {found}"

    return Case(f"codiag.metrics.{name}", getattr(metrics, name), arguments, True, (measured,), ("factors",))


@covers("codiag.metrics.recovery_curve", "codiag.metrics.overlapping_nmi", weight=1.5)
def covers_of_nodes(rng: np.random.Generator) -> Case:
    """Communities against communities."""
    n = int(rng.integers(2, 30))
    truth = (rng.random((n, int(rng.integers(1, 4)))) < choose(rng, 0.0, 0.3, 1.0)).astype(int)
    if rng.random() < 0.5:
        estimate = (rng.random((n, int(rng.integers(1, 4)))) < 0.4).astype(choose(rng, int, bool, float))
        arguments: dict[str, Any] = {"estimate": estimate, "truth": truth, "variant": choose(rng, "mgh", "lfk")}

        def share(found: Any, given: dict[str, Any]) -> Problems:
            if not -1e-9 <= found <= 1 + 1e-9:
                yield "metric", f"information of {found}"

        return Case("codiag.metrics.overlapping_nmi", metrics.overlapping_nmi, arguments, True, (share,))
    arguments = {
        "memberships": rng.dirichlet(np.ones(3), n),
        "truth": truth,
        "thresholds": [0.1, 0.5],
        "level": choose(rng, 0.01, 0.5),
    }

    def curve(found: Any, given: dict[str, Any]) -> Problems:
        yield from has_shape(found.recovery, (2,), "recovery")
        if not np.all((found.recovery >= 0) & (found.recovery <= 1)) or not np.all(found.error >= 0):
            yield "metric", f"recovery {found.recovery}, error {found.error}"

    return Case("codiag.metrics.recovery_curve", metrics.recovery_curve, arguments, True, (curve,))


@covers(
    *(f"codiag.theory.{name}" for name in ("incoherence", "factor_condition", "uniqueness_moduli", "kruskal_rank")),
    "codiag.theory.kruskal_condition",
    weight=1.5,
)
def identifiability(rng: np.random.Generator) -> Case:
    """What tells whether components are unique."""
    d, k = int(rng.integers(1, 6)), int(rng.integers(1, 6))
    factor = rng.standard_normal((d, k))
    if k > 1 and rng.random() < 0.3:
        factor[:, -1] = factor[:, 0]
    name, arguments = choose(
        rng,
        ("incoherence", {"factor": factor}),
        ("factor_condition", {"factor": factor}),
        ("uniqueness_moduli", {"diagonals": factor}),
        ("kruskal_rank", {"factor": factor, "tol": 1e-8}),
        ("kruskal_condition", {"factors": [factor, factor, rng.standard_normal((3, k))]}),
    )
    infinite = name == "factor_condition"  # of columns that are the same, and of empty ones
    checks = () if infinite else (finite,)
    return Case(f"codiag.theory.{name}", getattr(theory, name), arguments, True, checks, infinite=infinite)


@covers("codiag.theory.diagnose", "codiag.theory.Diagnosis", weight=1)
def diagnoses(rng: np.random.Generator) -> Case:
    """What fits say of themselves."""
    k, sizes = int(rng.integers(1, 4)), [int(rng.integers(1, 6)) for _ in range(3)]
    factors = tuple(factor / np.linalg.norm(factor, axis=0) for factor in _factors(rng, sizes, k))
    error = choose(rng, 0.0, 1e-3, 0.5)
    fit = codiag.Factorization(np.sort(rng.uniform(0.1, 2, k))[::-1].copy(), factors, error, 3.0, True)

    def said(found: Any, given: dict[str, Any]) -> Problems:
        if len(found.verdicts) != k or len(found.reasons) != k or not str(found):
            yield "diagnosis", f"{found.verdicts} for {k} components"

    return Case("codiag.theory.diagnose", theory.diagnose, {"fit": fit}, True, (said,))
