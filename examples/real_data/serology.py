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
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from tensorly.datasets import load_covid19_serology

from codiag.models import CP
from codiag.plotting import COLORS, MUTED, OURS

data = load_covid19_serology()
sera = np.asarray(data.tensor)
groups, antigens, detections = data.ticks
infected = groups != "Negative"
print(sera.shape, f"{np.isnan(sera).sum()} entries missing,", dict(zip(*np.unique(groups, return_counts=True), strict=True)))

# %%
# Who is infected? A pipeline of two components and a classifier, judged on sera that it has not seen, beside the
# classifier on all 66 numbers.

classifier = make_pipeline(StandardScaler(), LogisticRegression(class_weight="balanced", max_iter=1000))
models = {
    "two components": make_pipeline(CP(2, random_state=0), classifier),
    "all 66 numbers": make_pipeline(FunctionTransformer(np.reshape, kw_args={"shape": (-1, 66)}), classifier),
}
for name, model in models.items():
    share = cross_val_score(model, sera, infected, cv=4, scoring="balanced_accuracy").mean()
    print(f"{name}: {share:.1%} right, both groups counting the same")

# %%
# The components themselves: how much of each is in the sera of every group (left), and what each is, over antigens and
# detections (right).

model = CP(2, random_state=0).fit(sera)
amounts = model.transform(sera)
figure = plt.figure(figsize=(10.5, 4.2), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.5))
panel = left.subplots()
names = ["Negative", "Mild", "Moderate", "Severe", "Deceased"]
for name, color in zip(names, (MUTED, *COLORS[2:6]), strict=True):
    of = groups == name
    panel.scatter(*amounts[of].T, s=12, color=color, alpha=0.7, linewidths=0, label=name)
panel.legend(frameon=False, fontsize=9, markerscale=1.6)
panel.set(title="438 sera", xlabel="component 1", ylabel="component 2", xticks=[], yticks=[])
axes = right.subplots(2, 2, width_ratios=(1, 1.6), sharex="col")
for row, (antigen, detection) in enumerate(axes):
    for axis, labels, factor in ((antigen, antigens, model.factors_[0]), (detection, detections, model.factors_[1])):
        axis.bar(labels, factor[:, row], color=OURS)
        axis.axhline(0, color=MUTED, linewidth=0.8)
        axis.set(yticks=[])
        axis.tick_params(axis="x", rotation=90, labelsize=9)
    antigen.set_ylabel(f"component {row + 1}")
plt.show()
