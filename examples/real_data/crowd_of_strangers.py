"""
Can these workers be trusted?
=============================

In 2008, 164 strangers on the internet answered for small pay whether one sentence follows from another: 800 questions,
ten answers each, not always the same [1]_. :class:`codiag.models.DawidSkene` estimates the truth and the accuracy of
every worker from the votes alone. The truth has been published, and so the estimates can be judged.

.. [1] Snow, O'Connor, Jurafsky & Ng, "Cheap and fast, but is it good?", EMNLP 2008; votes as in Zhang, Chen, Zhou &
   Jordan, "Spectral Methods Meet EM", Journal of Machine Learning Research 17, 2016.
"""

# %%
# The data is found in a folder named by ``CODIAG_DATA_DIR``, or downloaded once.

import matplotlib.pyplot as plt
import numpy as np

from codiag.datasets import load_crowd
from codiag.models import DawidSkene

crowd = load_crowd("rte", download=True)
model = DawidSkene(random_state=0).fit(crowd.votes)
majority = DawidSkene(init="majority", max_iter=0).fit(crowd.votes)
print(f"right by majority of votes {crowd.accuracy(majority.tasks_, majority.labels_):.1%}")
print(f"right by the model         {crowd.accuracy(model.tasks_, model.labels_):.1%}")

# %%
# How often was every worker really right? The model is not told; it gives an interval that should contain the long-run
# accuracy of nine workers in ten. The share of right answers among only 20 votes scatters around that accuracy by
# chance, and so it is outside the interval more often.

truth = dict(zip(crowd.truth["task"].tolist(), crowd.truth["truth"].tolist(), strict=True))
right = np.array([truth[task] for task in crowd.votes["task"].tolist()]) == crowd.votes["label"]
table = model.worker_table()
actual = np.array([right[crowd.votes["worker"] == worker].mean() for worker in table["worker"]])
n_votes = np.asarray(table["votes"])
low, high = table["accuracy_low_90"], table["accuracy_high_90"]
inside = (low <= actual) & (actual <= high)
print(f"the share that a worker really got right is in the interval for {inside.mean():.0%} of the workers")

# %%
# Every worker is a bar from the lower to the upper end of the interval, and a dot for the share of answers that was
# really right, red where it is outside. With hundreds of votes, on the left, bars are short; with 20, on the right,
# they are long. The dashed line is what guessing gives: the busiest workers of all are no better, and the model knows.
# Their votes count for next to nothing, where the majority would count them all.

order = np.argsort(-n_votes, kind="stable")[:60]
places = np.arange(order.size)
figure, (left, right_panel) = plt.subplots(1, 2, figsize=(9.6, 4.6), layout="constrained", width_ratios=(1.9, 1))
left.vlines(places, low[order], high[order], color="gray", linewidth=4, alpha=0.6)
left.scatter(places, actual[order], s=26, color=np.where(inside[order], "C0", "C1"), zorder=3)
left.axhline(0.5, color="black", linestyle="--", linewidth=1)
left.set(
    ylim=(0, 1.02), xticks=[], xlabel="the 60 workers with most votes, busiest first", ylabel="share of right answers"
)
left.set_title("Estimated without the truth (bars), and true (dots)")

right_panel.scatter(table["accuracy"], actual, s=8 + n_votes / 4, color="C0", alpha=0.5, linewidths=0)
right_panel.plot([0, 1], [0, 1], color="gray", linewidth=1)
right_panel.set(xlim=(0.3, 1.02), ylim=(0.3, 1.02), xlabel="estimated", ylabel="true")
right_panel.set_title("All workers; area: votes")
plt.show()
