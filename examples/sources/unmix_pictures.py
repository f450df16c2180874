"""
Two photographs, mixed and told apart
=====================================

Two photographs that come with scikit-learn are printed over each other twice, once with more of the one and once with
more of the other. :class:`codiag.models.JADE` knows nothing of temples and flowers: it looks for the two pictures that
are independent of each other in the fourth moment.
"""

# %%
# Gray values of the photographs, every second pixel, and two mixtures of them.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_images

from codiag.metrics import minimum_distance
from codiag.models import JADE

pictures = np.stack([image[::2, ::2].mean(axis=2) for image in load_sample_images().images])
flat = pictures.reshape(2, -1).T
flat = (flat - flat.mean(axis=0)) / flat.std(axis=0)
mixing = np.array([[0.6, 0.5], [0.4, 0.6]])
mixed = flat @ mixing.T

# %%
# Joint diagonalization of cumulant matrices finds the sources, up to their order and sign.

model = JADE(2).fit(mixed)
found = model.transform(mixed)
alike = np.corrcoef(flat, found, rowvar=False)[:2, 2:]
order = np.argmax(np.abs(alike), axis=1)
found = found[:, order] * np.sign(alike[[0, 1], order])
distance = minimum_distance(model.components_, mixing)
print(f"minimum distance from the truth {distance:.3f} (0 is perfect, 1 the worst)")
print("correlation of what was found with the photographs", np.abs(alike[[0, 1], order]).round(3))

# %%
# Above, what is given: in both mixtures the temple and the flower show through each other. Below, what was found in
# them. A faint trace of the other picture can remain where the photographs themselves are alike: they are only nearly
# independent.

figure, axes = plt.subplots(2, 2, figsize=(8.4, 5.8), layout="constrained")
for row, pair, name in zip(axes, (mixed, found), ("Mixture", "Found"), strict=True):
    for place, axis in enumerate(row):
        low, high = np.quantile(pair[:, place], [0.01, 0.99])
        axis.imshow(pair[:, place].reshape(pictures.shape[1:]), cmap="gray", vmin=low, vmax=high)
        axis.set(title=f"{name} {place + 1}", xticks=[], yticks=[])
        axis.spines[:].set_visible(False)
plt.show()
