"""Recover what three noisy, independent views of the same things have in common."""

from __future__ import annotations

import numpy as np

from codiag.models import MultiviewMixture


def simulate(n: int, rng: np.random.Generator) -> tuple[list[np.ndarray], list[np.ndarray], np.ndarray]:
    """Return three views of n samples, the means of every kind in each view, and how frequent kinds are."""
    weights = np.array([0.5, 0.3, 0.2])
    means = [rng.standard_normal((3, size)) for size in (8, 5, 12)]
    kind = rng.choice(3, n, p=weights)
    return [mean[kind] + rng.standard_normal((n, mean.shape[1])) for mean in means], means, weights


def main(n: int = 50_000) -> float:
    """Fit, and return the error of the means, averaged over views."""
    views, means, weights = simulate(n, np.random.default_rng(0))
    model = MultiviewMixture(3, random_state=0).fit(views)
    print("weights", model.weights_.round(3), "of", weights)
    errors = []
    for name, found, mean in zip("abc", model.means_, means, strict=True):
        distances = np.linalg.norm(found[:, None] - mean[None], axis=2).min(axis=0)
        errors.append(float(distances.mean() / np.linalg.norm(mean, axis=1).mean()))
        print(f"view {name}: relative error {errors[-1]:.3f}")
    print(f"weights should add up to one: {model.diagnostics_['weights_sum']:.3f}")
    return float(np.mean(errors))


if __name__ == "__main__":
    main()
