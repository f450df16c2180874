"""
The truth behind votes that disagree
====================================

Twenty workers label 1000 tasks, each about a third of them, with four classes to choose from. A fifth of the workers
votes against the truth on purpose. :class:`codiag.models.DawidSkene` finds out who can be trusted from nothing but
which votes go together, and weighs the votes by it.
"""

# %%
# A crowd of which the truth is known.

import matplotlib.pyplot as plt
import numpy as np

from codiag.models import DawidSkene
from codiag.synthetic import crowd_votes, worker_confusions

crowd = crowd_votes(1000, worker_confusions(20, 4, adversarial=0.2, rng=0), density=0.3, rng=1)
model = DawidSkene(random_state=0).fit(crowd.votes)
majority = DawidSkene(init="majority", max_iter=0).fit(crowd.votes)
right = np.mean(model.labels_ == crowd.truth[model.tasks_])
voted = np.mean(majority.labels_ == crowd.truth[majority.tasks_])
print(f"{right:.1%} of the labels are right; of those of the majority {voted:.1%}")

# %%
# The true accuracy of every worker, from the confusion matrices that the votes were drawn from.

table = model.worker_table()
prior = np.bincount(crowd.truth, minlength=4) / crowd.truth.size
actual = np.array([np.diag(errors) @ prior for errors in crowd.confusions[np.asarray(table["worker"], dtype=int)]])

# %%
# Left, how often each worker is right: estimated, with intervals of 90 % (bars), and true (dashes). The workers at the
# bottom do worse than chance (dashed), and their votes are evidence all the same: against the label they name. Right,
# the confusion matrices of the best and of the worst.

order = np.argsort(table["accuracy"])
figure = plt.figure(figsize=(9.8, 4.6), layout="constrained")
left, right_part = figure.subfigures(1, 2, width_ratios=(1.7, 1))
panel = left.subplots()
places = np.arange(order.size)
spread = [table["accuracy"] - table["accuracy_low_90"], table["accuracy_high_90"] - table["accuracy"]]
panel.errorbar(
    table["accuracy"][order],
    places,
    xerr=np.array(spread)[:, order],
    fmt="o",
    color="C0",
    ecolor="gray",
    elinewidth=5,
    markersize=6,
)
panel.vlines(actual[order], places - 0.4, places + 0.4, color="C1", linewidth=2)
panel.axvline(0.25, color="black", linestyle="--", linewidth=1)
panel.set(xlim=(0, 1), yticks=[], ylabel="workers", xlabel="share of right votes")
panel.set_title(f"{right:.0%} of labels right, by majority {voted:.0%}")
for axis, worker, name in zip(right_part.subplots(2, 1), (order[-1], order[0]), ("Best", "Worst"), strict=True):
    image = axis.imshow(model.confusion_matrices_[worker].T, cmap="magma_r", vmin=0, vmax=1)
    axis.set(xticks=[], yticks=[], xlabel="vote", ylabel="truth", title=f"{name} worker")
plt.show()
