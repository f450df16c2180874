"""Separate Gaussians without restarts, and hand the result to scikit-learn."""

from __future__ import annotations

import numpy as np
from sklearn.mixture import GaussianMixture

from codiag.models import SphericalGaussianMixture
from codiag.synthetic import unit_factor


def simulate(n: int, d: int, k: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return samples of a mixture with unequal weights, and its means."""
    means = 5 * unit_factor(d, k, rng).T
    which = rng.choice(k, n, p=rng.dirichlet(np.full(k, 3.0)))
    return means[which] + rng.standard_normal((n, d)), means


def error(found: np.ndarray, means: np.ndarray) -> float:
    """Return the mean distance of each true mean from the nearest that was found."""
    return float(np.linalg.norm(found[:, None] - means[None], axis=2).min(axis=0).mean())


def main(n: int = 20_000) -> float:
    """Compare moments, moments with EM, and EM from k-means; return the error of the second."""
    samples, means = simulate(n, d=20, k=10, rng=np.random.default_rng(0))
    moments = SphericalGaussianMixture(10, polish=0, random_state=0).fit(samples)
    polished = SphericalGaussianMixture(10, polish=10, random_state=0).fit(samples)
    usual = GaussianMixture(10, covariance_type="spherical", random_state=0).fit(samples)
    for name, found in (("moments", moments), ("moments and EM", polished), ("EM from k-means", usual)):
        print(f"{name:16s} error {error(found.means_, means):.3f}, log-likelihood {found.score(samples):.3f}")
    theirs = polished.to_sklearn()
    print("as a scikit-learn mixture:", theirs.predict(samples[:8]))
    return error(polished.means_, means)


if __name__ == "__main__":
    main()
