"""Assertions about factors, which have no natural order, sign or scale."""

from __future__ import annotations

import numpy as np

from codiag.metrics import match_components, unit_factors


def largest_distance(estimate, truth) -> float:
    """Return the largest distance of a component from the true one it is matched to, over all modes."""
    matched = match_components(estimate, truth).factors
    return max(
        float(np.max(np.linalg.norm(guess - true, axis=0)))
        for guess, true in zip(matched, unit_factors(truth, "truth"), strict=True)
    )


def assert_same_factors(estimate, truth, tolerance: float) -> None:
    distance = largest_distance(estimate, truth)
    assert distance <= tolerance, f"a factor is {distance:.3g} from the one it should be; allowed is {tolerance:.3g}"


def assert_unit_columns(factor, tolerance: float) -> None:
    np.testing.assert_allclose(np.linalg.norm(np.asarray(factor), axis=0), 1, atol=tolerance)


def assert_same_to_rounding(first, second) -> None:
    """Two runs of the same computation: sums may be taken in another order where memory is aligned otherwise."""
    largest = np.max(np.abs(second), initial=0.0, where=np.isfinite(second))
    np.testing.assert_allclose(first, second, rtol=0, atol=1e-8 * largest)
