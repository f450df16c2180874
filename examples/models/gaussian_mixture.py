"""
A mixture of Gaussians without restarts
=======================================

Where EM for mixtures ends depends on where it begins: from an unlucky start two components share a cluster, and two
clusters share a component. :class:`codiag.models.SphericalGaussianMixture` starts from the third moment of the samples,
which has all means in it, and EM only has to finish.
"""

# %%
# Ten clusters in 20 dimensions, with unequal weights.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from codiag.models import SphericalGaussianMixture
from codiag.synthetic import unit_factor

rng = np.random.default_rng(0)
means = 5 * unit_factor(20, 10, rng).T
samples = means[rng.choice(10, 10_000, p=rng.dirichlet(np.full(10, 3.0)))] + rng.standard_normal((10_000, 20))

# %%
# Ours, with moments alone and with EM after them, and scikit-learn's from five seeds: started at random samples, as the
# textbook has it, and from k-means, its default.


def error(found):
    """Return the mean distance of each true mean from the nearest that was found."""
    return np.linalg.norm(found[:, None] - means[None], axis=2).min(axis=0).mean()


moments = SphericalGaussianMixture(10, max_iter=0, random_state=0).fit(samples)
polished = SphericalGaussianMixture(10, max_iter=10, random_state=0).fit(samples)
baselines = {
    f"EM from {start}, seed {seed}": GaussianMixture(
        10, covariance_type="spherical", init_params=init, random_state=seed
    ).fit(samples)
    for start, init in (("samples", "random_from_data"), ("k-means", "kmeans"))
    for seed in range(5)
}
for name, model in {"moments": moments, "moments and EM": polished, **baselines}.items():
    print(f"{name:24s}error {error(model.means_):.3f}, log-likelihood {model.score(samples):.3f}")
print("as a scikit-learn mixture:", polished.to_sklearn().predict(samples[:8]))

# %%
# The samples in the plane of their two largest principal components, where most of the clusters overlap. Circles are
# the true means; crosses are what the models found. On the left every circle has its cross. On the right is the worst
# of the ten others: some circles are empty, and some crosses lie between two of them.

plane = PCA(2).fit(samples)
worst = max(baselines.values(), key=lambda model: error(model.means_))
figure, panels = plt.subplots(1, 2, figsize=(9.8, 4.6), layout="constrained", sharex=True, sharey=True)
for panel, model, color, name in (
    (panels[0], polished, "C0", f"Moments and EM: error {error(polished.means_):.2f}"),
    (panels[1], worst, "C1", f"EM, the worst start: error {error(worst.means_):.2f}"),
):
    panel.scatter(*plane.transform(samples[:4000]).T, s=6, color="gray", alpha=0.45, linewidths=0, rasterized=True)
    panel.scatter(*plane.transform(means).T, s=170, facecolors="none", edgecolors="black", linewidths=1.8)
    panel.scatter(*plane.transform(model.means_).T, s=90, marker="x", color=color, linewidths=2.5)
    panel.set(title=name, xticks=[], yticks=[])
plt.show()
