"""
Antibodies in a pipeline of scikit-learn
========================================

:class:`codiag.models.CP` is an estimator: samples are matrices, ``fit`` finds what they have in common, ``transform``
gives a sample one coefficient for each component, and the rest of scikit-learn goes on from there. Here, sera of 438
people with and without COVID-19 were measured against 6 antigens of the virus with 11 kinds of detection [1]_; the data
comes with TensorLy.

.. [1] Zohar et al., "Compromised humoral functional evolution tracks with SARS-CoV-2 mortality", Cell 183, 2020; Tan,
   Murphy, Alpay, Taylor & Meyer, "Tensor-structured decomposition improves systems serology analysis", Molecular
   Systems Biology 17, 2021.
"""

# %%
# A sample is a table of 6 x 11 numbers.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tensorly.datasets import load_covid19_serology

from codiag.constraints import Ridge
from codiag.models import CP

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

data = load_covid19_serology()
sera = np.asarray(data.tensor)
groups, antigens, detections = data.ticks
infected = groups != "Negative"
print(f"{sera.shape}: {infected.sum()} sera of people who were infected, {np.sum(~infected)} of others")

# %%
# Who is infected? A pipeline of two components and a classifier, judged on sera that it has not seen, beside the
# classifier on all 66 numbers. A small penalty keeps the two components from cancelling each other.

classifier = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=1000))
models = {
    "two components": make_pipeline(CP(2, constraints=Ridge(1.0), random_state=0), classifier),
    "all 66 numbers": make_pipeline(FunctionTransformer(np.reshape, kw_args={"shape": (-1, 66)}), classifier),
}
folds = StratifiedKFold(4, shuffle=True, random_state=0)
for name, model in models.items():
    share = cross_val_score(model, sera, infected, cv=folds, scoring="balanced_accuracy").mean()
    print(f"{name}: {share:.1%} right, both groups counting the same")

# %%
# Left, how much of the two components is in every serum, by group; lines are medians. Those who were not infected have
# little of either, those with a severe course have most, and those who died have less again. Right, what the components
# are: the first goes through all antigens and all detections but IgG1; the second is IgG1 nearly alone.

model = CP(2, constraints=Ridge(1.0), random_state=0).fit(sera)
amounts = model.transform(sera)
signs = np.sign(model.factors_[1].sum(axis=0))
names = ["Negative", "Mild", "Moderate", "Severe", "Deceased"]
figure, axes = plt.subplots(2, 3, figsize=(10.5, 4.8), layout="constrained", sharex="col", width_ratios=(1.3, 0.7, 1.2))
rng = np.random.default_rng(0)
for row, (people, antigen, detection) in enumerate(axes):
    for place, (name, color) in enumerate(zip(names, ("gray", *COLORS[:3], COLORS[6]), strict=True)):
        own = signs[row] * amounts[groups == name, row]
        people.scatter(place + rng.uniform(-0.3, 0.3, own.size), own, s=9, color=color, alpha=0.5, linewidths=0)
        people.hlines(np.median(own), place - 0.38, place + 0.38, color="black", linewidth=2.5)
    people.set(ylabel=f"component {row + 1}", yticks=[])
    antigen.bar(antigens, model.factors_[0][:, row], color="C0")
    detection.bar(detections, signs[row] * model.factors_[1][:, row], color="C0")
    for axis in (antigen, detection):
        axis.axhline(0, color="black", linewidth=0.8)
        axis.set(yticks=[])
axes[-1, 0].set_xticks(range(5), names)
for axis in axes[-1, 1:]:
    axis.tick_params(axis="x", rotation=90)
for axis, title in zip(axes[0], ("Sera, and their medians", "Antigens", "Detections"), strict=True):
    axis.set_title(title)
plt.show()
