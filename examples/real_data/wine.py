"""
Three kinds of wine
===================

178 wines from three cultivars of one region in Italy, with 13 chemical measurements each: data that comes with
scikit-learn. :class:`codiag.models.SphericalGaussianMixture` is not told the cultivars. It starts from the third moment
of the measurements, where other mixtures start at random, and so there is one answer and not one for each seed.
"""

# %%
# Measurements in units of their standard deviations; a variance for each measurement in each group.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from codiag.models import SphericalGaussianMixture

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

wine = load_wine()
samples = StandardScaler().fit_transform(wine.data)
model = SphericalGaussianMixture(3, covariance_type="diag", max_iter=100, random_state=0).fit(samples)
groups = model.predict(samples)

# %%
# Groups and cultivars.

table = np.array([[np.sum((groups == group) & (wine.target == kind)) for kind in range(3)] for group in range(3)])
order = linear_sum_assignment(-table.T)[1]
print("groups (rows), cultivars (columns)\n", table[order])
right = table[order].trace() / table.sum()
print(f"{right:.1%} of the wines are in the group of their cultivar")

# %%
# Left, the wines in the plane in which they vary most: colors are the groups that were found, circles around a dot mark
# wines of another cultivar. Right, the means of the groups: what each kind of wine has more of (right of zero), or
# less.

figure, (left, right_panel) = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", width_ratios=(1.2, 1))
plane = PCA(2).fit(samples)
places = plane.transform(samples)
for kind, group in enumerate(order):
    of = groups == group
    left.scatter(*places[of].T, s=28, color=COLORS[kind], alpha=0.8, linewidths=0, label=f"group {kind + 1}")
    wrong = of & (wine.target != kind)
    left.scatter(*places[wrong].T, s=90, facecolors="none", edgecolors="black", linewidths=1.4)
    right_panel.plot(model.means_[group], range(13), "o", color=COLORS[kind], markersize=7, alpha=0.85)
left.set(xticks=[], yticks=[], title=f"178 wines: {right:.0%} in the group of their cultivar")
left.legend(frameon=False)
right_panel.axvline(0, color="black", linewidth=0.8)
names = [name.replace("od280/od315_of_diluted_wines", "od280/od315").replace("_", " ") for name in wine.feature_names]
right_panel.set_yticks(range(13), names)
right_panel.set(title="Means of the groups", xlabel="standard deviations from the average wine")
right_panel.grid(axis="y", color="#e3e6ea", linewidth=0.8)
plt.show()
