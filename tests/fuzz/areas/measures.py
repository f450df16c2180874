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


def _unit(array: np.ndarray) -> np.ndarray:
    return array / np.linalg.norm(array, axis=0)


@covers(
    "codiag.theory.error_bound",
    "codiag.theory.projection_concentration",
    "codiag.theory.minimum_projections",
    "codiag.theory.projections_needed",
    weight=2,
)
def bounds(rng: np.random.Generator) -> Case:
    """The theorems, for factors of either kind."""
    d = int(rng.integers(1, 7))
    k = int(rng.integers(1, d + 1))
    orthogonal = bool(rng.random() < 0.5)
    factor = np.linalg.qr(rng.standard_normal((d, k)))[0] if orthogonal else _unit(rng.standard_normal((d, k)))
    shared = {"factor": factor, "orthogonal": orthogonal, "delta": choose(rng, 0.05, 0.5)}
    weighted = {"weights": rng.uniform(0.1, 2, k), "noise": choose(rng, 0.0, 1e-3)}
    name, arguments = choose(
        rng,
        ("error_bound", {**shared, **weighted, "n_projections": choose(rng, None, 10**6)}),
        ("projection_concentration", {**shared, "n_projections": int(rng.integers(1, 1000))}),
        ("minimum_projections", shared),
        ("projections_needed", {**shared, **weighted, "accuracy": choose(rng, 1e-3, 0.5, 10.0)}),
    )
    valid = True if orthogonal or k < d or d > 1 else None
    return Case(f"codiag.theory.{name}", getattr(theory, name), arguments, valid, (finite,))


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


@covers(
    *(f"codiag.theory.{name}" for name in ("afsari_bound", "project_noise", "projected_diagonals")),
    "codiag.theory.first_order_perturbation",
    weight=1.5,
)
def perturbation(rng: np.random.Generator) -> Case:
    """What noise does to first order."""
    d, n = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    k = int(rng.integers(1, d + 1))
    orthogonal = bool(rng.random() < 0.5)
    factor = np.linalg.qr(rng.standard_normal((d, k)))[0] if orthogonal else _unit(rng.standard_normal((d, k)))
    noise = rng.standard_normal((n, d, d))
    noise = noise + noise.transpose(0, 2, 1)
    diagonals, directions = rng.standard_normal((n, k)), rng.standard_normal((n, d))
    ties = choose(rng, "", "", "", "equal", "proportional", "zero")  # errors of such components are infinite
    if ties:
        diagonals[:] = diagonals[:, :1]
        diagonals[:, 0] *= {"equal": 1.0, "proportional": -2.0, "zero": 0.0}[ties]
    problem = {"factor": factor, "diagonals": diagonals, "noise": noise}
    name, arguments = choose(
        rng,
        ("first_order_perturbation", {**problem, "orthogonal": orthogonal}),
        ("afsari_bound", problem),
        ("project_noise", {"noise": rng.standard_normal((d, d, d)), "directions": directions}),
        ("projected_diagonals", {"factor": factor, "weights": rng.uniform(1, 2, k), "directions": directions}),
    )
    uses_ties = bool(ties) and "diagonals" in arguments
    valid = None if ties == "zero" and name == "afsari_bound" else True
    checks = (_without_nan,) if uses_ties else (finite,)
    return Case(f"codiag.theory.{name}", getattr(theory, name), arguments, valid, checks, infinite=uses_ties)


def _without_nan(found: Any, given: dict[str, Any]) -> Problems:
    """Infinite errors are a result, NaN is not."""
    arrays = [found] if isinstance(found, np.ndarray) else [found.matrix, found.displacements, found.errors]
    if any(np.any(np.isnan(array)) for array in arrays):
        yield "not finite", "NaN"


@covers(
    *(f"codiag.theory.{name}" for name in ("expected_errors", "optimal_directions", "worst_errors", "worst_noise")),
    *(f"codiag.theory.{name}" for name in ("projections_for_ratio", "random_projection_ratio")),
    weight=2,
)
def directions(rng: np.random.Generator) -> Case:
    """Directions of projections: their law, their errors, the best ones, and the worst noise."""
    d = int(rng.integers(2, 7))
    k = int(rng.integers(1, d + 1))
    orthogonal, symmetric = (bool(rng.random() < 0.5) for _ in range(2))
    factor = np.linalg.qr(rng.standard_normal((d, k)))[0] if orthogonal else _unit(rng.standard_normal((d, k)))
    problem = {"factor": factor, "weights": rng.uniform(0.1, 2, k)}
    rows = rng.standard_normal((int(rng.integers(d, 2 * d + 2)), d))
    name, arguments = choose(
        rng,
        ("expected_errors", {**problem, "directions": rows, "orthogonal": orthogonal, "symmetric": symmetric}),
        ("optimal_directions", {**problem, "symmetric": symmetric, "floor": choose(rng, 0.0, 0.3)}),
        ("worst_errors", {**problem, "orthogonal": orthogonal, "plug_in": choose(rng, True, False)}),
        ("worst_noise", {"direction": rows[0], "other": choose(rng, None, rows[1])}),
        ("projections_for_ratio", {"ratio": choose(rng, 1.01, 1.1, 3.0), "size": d, "symmetric": symmetric}),
        ("random_projection_ratio", {"size": d, "n_projections": int(rng.integers(3, 50)), "symmetric": symmetric}),
    )
    checks = (_in_order,) if name == "worst_errors" else (finite,)
    infinite = name == "random_projection_ratio"  # of one or two projections
    return Case(f"codiag.theory.{name}", getattr(theory, name), arguments, True, checks, infinite=infinite)


def _in_order(found: theory.WorstErrors, arguments: dict[str, Any]) -> Problems:
    if not np.all((found.attained >= 0) & (found.attained <= found.bound * (1 + 1e-9))):
        yield "metric", f"attained {found.attained}, bound {found.bound}"


@covers("codiag.theory.diagnose", "codiag.theory.Diagnosis", weight=1)
def diagnoses(rng: np.random.Generator) -> Case:
    """What fits say of themselves."""
    k, sizes = int(rng.integers(1, 4)), [int(rng.integers(1, 6)) for _ in range(3)]
    factors = tuple(_unit(factor) for factor in _factors(rng, sizes, k))
    error = choose(rng, 0.0, 1e-3, 0.5)
    fit = codiag.Factorization(np.sort(rng.uniform(0.1, 2, k))[::-1].copy(), factors, error, 3.0, True)

    def said(found: Any, given: dict[str, Any]) -> Problems:
        if len(found.verdicts) != k or len(found.reasons) != k or not str(found):
            yield "diagnosis", f"{found.verdicts} for {k} components"

    return Case("codiag.theory.diagnose", theory.diagnose, {"fit": fit}, True, (said,))
