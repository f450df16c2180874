"""
Which dogs people mix up
========================

109 people looked at 807 photographs of dogs and said which of four breeds it is, ten votes a photograph [1]_. Norfolk
and Norwich terriers look alike; Irish wolfhounds and Scottish deerhounds do, too. Confusion matrices of workers, and
how sure the model is of every photograph, show it without anyone having told it the breeds.

.. [1] Zhou, Basu, Mao & Platt, "Learning from the wisdom of crowds by minimax entropy", NIPS 2012; votes as in Zhang,
   Chen, Zhou & Jordan, "Spectral Methods Meet EM", Journal of Machine Learning Research 17, 2016.
"""

# %%
# The data is found in a folder named by ``CODIAG_DATA_DIR``, or downloaded once. Breeds are numbered from 1 to 4.

import matplotlib.pyplot as plt
import numpy as np

from codiag.datasets import load_crowd
from codiag.models import DawidSkene

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

crowd = load_crowd("dog", download=True)
model = DawidSkene(random_state=0).fit(crowd.votes)
accuracy = crowd.accuracy(model.tasks_, model.labels_)
print(f"{accuracy:.1%} of the photographs labelled as the experts did")

# %%
# The confusion matrix of the average vote: workers count by the number of their votes.

table = model.worker_table()
share = table["votes"] / table["votes"].sum()
average = np.tensordot(share, model.confusion_matrices_, axes=1).T
print("true breed (rows), vote (columns)\n", average.round(2))

# %%
# Left, the average confusion matrix: two blocks of two. Hardly anyone takes a terrier for a hound, but within each pair
# about a quarter of the votes is wrong. Right, photographs by how sure the model is of them. Where it is surest it is
# right most often, but it is too sure throughout: it takes votes for independent given the breed, and a dog that
# misleads one person misleads many. Such a picture is worth drawing before probabilities of a model are used.

truth = dict(zip(crowd.truth["task"].tolist(), crowd.truth["truth"].tolist(), strict=True))
is_right = np.array([truth[task] for task in np.asarray(model.tasks_).tolist()]) == model.labels_
sure = model.probas_.max(axis=1)
figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained", width_ratios=(1, 1.15))
shown = left.imshow(average, cmap="magma_r", vmin=0, vmax=1)
for (row, column), value in np.ndenumerate(average):
    left.text(column, row, f"{value:.2f}", ha="center", va="center", color="white" if value > 0.5 else "black")
names = [f"breed {number}" for number in model.classes_]
left.set_xticks(range(4), names)
left.set_yticks(range(4), names)
left.set(xlabel="vote", ylabel="truth", title="The average worker")
left.spines[:].set_visible(False)

edges = np.array([0.25, 0.7, 0.9, 0.99, 0.999, 1.0 + 1e-9])
bins = np.digitize(sure, edges) - 1
for place in range(edges.size - 1):
    of = bins == place
    right.bar(place, is_right[of].mean(), color=COLORS[0], alpha=0.85)
    right.text(place, 0.03, f"{of.sum()}\nphotos", ha="center", color="white", fontsize=9)
    right.plot([place - 0.4, place + 0.4], [sure[of].mean()] * 2, color=COLORS[1], linewidth=3)
right.set_xticks(range(5), ["below 0.7", "0.7 - 0.9", "0.9 - 0.99", "0.99 -\n0.999", "above\n0.999"])
right.axhline(1, color="gray", linewidth=1)
right.set(ylim=(0, 1.05), xlabel="probability of the label", ylabel="share that is right")
right.set_title("Right (bars), and as sure as the model is (lines)")
plt.show()
