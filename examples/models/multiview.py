"""
Three views of the same things
==============================

Each of 20,000 things is seen three times: by eight numbers, by five and by twelve, every view with noise of its own.
There are three kinds of things. Within a view the kinds overlap; what the views have *in common* gives them away.
:class:`codiag.models.MultiviewMixture` needs no model of the noise: only that it is independent between views.
"""

# %%
# Kinds, and what is seen of them.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import PCA

from codiag.models import MultiviewMixture

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

rng = np.random.default_rng(0)
weights = np.array([0.5, 0.3, 0.2])
means = [rng.standard_normal((3, size)) for size in (8, 5, 12)]
kind = rng.choice(3, 20_000, p=weights)
views = [mean[kind] + 1.5 * rng.standard_normal((kind.size, mean.shape[1])) for mean in means]

# %%
# The means of every kind in every view, from products of the three views.

model = MultiviewMixture(3, random_state=0).fit(views)
order = linear_sum_assignment(np.linalg.norm(means[0][:, None] - model.means_[0][None], axis=2))[1]
errors = [
    np.linalg.norm(found[order] - mean, axis=1).mean() / np.linalg.norm(mean, axis=1).mean()
    for found, mean in zip(model.means_, means, strict=True)
]
print("weights", model.weights_[order].round(3), "of", weights)
print("relative errors of the means, by view", np.round(errors, 3))
print(f"weights should add up to one: {model.diagnostics_['weights_sum']:.3f}")

# %%
# Every view in the plane that spreads its true means. Dots are things, in the color of their true kind, which the model
# does not know; circles are the true means and crosses those it found. In the middle view the clouds overlap so much
# that no clustering of it alone would find three.

figure, panels = plt.subplots(1, 3, figsize=(10.5, 3.8), layout="constrained")
for panel, view, mean, found, name in zip(panels, views, means, model.means_, "abc", strict=True):
    plane = PCA(2).fit(mean)
    panel.scatter(*plane.transform(view[:3000]).T, s=7, color=np.array(COLORS)[kind[:3000]], alpha=0.45, linewidths=0)
    panel.scatter(*plane.transform(mean).T, s=190, facecolors="none", edgecolors="black", linewidths=2)
    panel.scatter(*plane.transform(found).T, s=100, marker="x", color="black", linewidths=2.5)
    panel.set(title=f"View {name}: {mean.shape[1]} numbers", xticks=[], yticks=[])
plt.show()
