"""
In a pipeline of scikit-learn: handwritten digits
=================================================

:class:`codiag.models.CP` is an estimator: samples are matrices, or more, ``fit`` finds what they have in common, and
``transform`` gives every sample a coefficient for each component. The images of digits that come with scikit-learn are
such samples: 1797 of 8 x 8 pixels.
"""

# %%
# Components of the training images feed a classifier. Images stay images: nothing is flattened before.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from codiag.models import CP
from codiag.plotting import MUTED, OURS, THEIRS

images, digits = load_digits(return_X_y=True)
images = images.reshape(-1, 8, 8)[:800]
train, test, train_digits, test_digits = train_test_split(images, digits, random_state=0)

# %%
# How does the share of digits that are recognized grow with the number of components? A component of CP is a row
# profile times a column profile, 16 numbers; one of PCA is a free image of 64.

ranks = [2, 4, 8, 16]
flatten = FunctionTransformer(lambda samples: samples.reshape(len(samples), -1))
scores = {"CP": [], "PCA": []}
for rank in ranks:
    models = {
        "CP": make_pipeline(CP(rank, constraints="nonnegative", random_state=0), StandardScaler(), LogisticRegression(max_iter=500)),
        "PCA": make_pipeline(flatten, PCA(rank), StandardScaler(), LogisticRegression(max_iter=500)),
    }
    for name, model in models.items():
        scores[name].append(model.fit(train, train_digits).score(test, test_digits))
print("components ", ranks)
for name, values in scores.items():
    print(f"{name:11s}", np.round(values, 3))

# %%
# Left, digits recognized against the number of components. Right, some images above what 16 components keep of them:
# with 16 coefficients for 64 pixels the digits stay readable, made of nothing but products of rows and columns.

model = CP(16, constraints="nonnegative", random_state=0).fit(train)
shown = [int(np.argmax(test_digits == digit)) for digit in range(10)]
kept = model.inverse_transform(model.transform(test[shown]))

figure = plt.figure(figsize=(10, 3.9), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.6))
panel = left.subplots()
panel.plot(ranks, scores["PCA"], "s--", color=THEIRS, label="PCA, 64 numbers each")
panel.plot(ranks, scores["CP"], "o-", color=OURS, label="CP, 16 numbers each")
panel.axhline(0.1, color=MUTED, linewidth=1, linestyle=":")
panel.set(title="Digits recognized", xlabel="components", ylim=(0, 1))
panel.legend(frameon=False, loc="lower right")
for place, (top, bottom) in enumerate(right.subplots(2, 10).T):
    top.imshow(test[shown[place]], cmap="magma", vmin=0, vmax=16)
    bottom.imshow(kept[place], cmap="magma", vmin=0, vmax=16)
    for axis in (top, bottom):
        axis.set(xticks=[], yticks=[])
    if place == 0:
        top.set_ylabel("image")
        bottom.set_ylabel("kept")
right.suptitle("What 16 components keep of an image", fontsize=11)
plt.show()
