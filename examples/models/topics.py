"""
Topics that documents mix
=========================

Every document mixes a few topics, and every topic prefers some words. :class:`codiag.models.LatentDirichlet` finds the
topics from how often pairs and triples of words occur together, and says how certain they are.
"""

# %%
# A corpus of 2000 short texts about biology, finance, sport and politics; each topic loves four words and knows all
# others.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from codiag.models import LatentDirichlet

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

words = "cell gene protein virus market stock price bank goal team match coach vote party law court".split()  # noqa: SIM905
themes = ("biology", "finance", "sport", "politics")
rng = np.random.default_rng(0)
truth = np.full((4, 16), 0.01)
for topic in range(4):
    truth[topic, 4 * topic : 4 * topic + 4] = rng.uniform(0.5, 1.5, 4)
truth /= truth.sum(axis=1, keepdims=True)
shares = rng.dirichlet(np.full(4, 0.25), 2000)
counts = rng.multinomial(60, shares @ truth)

# %%
# Fit, and look at the words.

model = LatentDirichlet(4, random_state=0).fit(counts)
for weight, top in zip(model.weights_, model.top_words(words, 4), strict=True):
    print(f"{weight:.2f}  {' '.join(top)}")
order = linear_sum_assignment(np.linalg.norm(truth[:, None] - model.components_[None], axis=2))[1]
error = np.linalg.norm(model.components_[order] - truth, axis=1).mean()
print(f"mean distance from the true topics: {error:.4f}")

# %%
# Left, the topics: what was found (bars) ends where the truth is (dashes). Right, how forty of the documents mix them:
# what the model says (above), and the truth (below). A document is a column, and with 60 words in it shares are right
# to a few hundredths.

found = model.transform(counts[:40])[:, order]
sort = np.lexsort((-found.max(axis=1), np.argmax(found, axis=1)))
figure = plt.figure(figsize=(10.5, 4.8), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1, 1.2))
panel = left.subplots()
for topic, color in enumerate(COLORS[:4]):
    own = slice(4 * topic, 4 * topic + 4)
    panel.barh(range(16)[own], model.components_[order[topic], own], color=color, alpha=0.8, label=themes[topic])
    panel.vlines(truth[topic, own], np.arange(16)[own] - 0.4, np.arange(16)[own] + 0.4, color="black", linewidth=2)
panel.set_yticks(range(16), words)
panel.invert_yaxis()
panel.legend(frameon=False, loc="lower right")
panel.set(title="Words of topics: found, true (dashes)", xlabel="probability", xlim=(0, 0.62))
for axis, mixture, name in zip(right.subplots(2, 1, sharex=True), (found, shares[:40]), ("Found", "True"), strict=True):
    below = np.zeros(40)
    for topic, color in enumerate(COLORS[:4]):
        axis.bar(range(40), mixture[sort, topic], bottom=below, color=color, width=1)
        below += mixture[sort, topic]
    axis.set(title=f"{name} mixtures of 40 documents", xticks=[], yticks=[], xlim=(-0.5, 39.5), ylim=(0, 1))
plt.show()
