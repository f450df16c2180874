"""
Topics of a political blog
==========================

3430 entries of the blog Daily Kos in the year 2004, as counts of words [1]_: the Iraq war, the primaries, Bush against
Kerry, elections of senators. :class:`codiag.models.LatentDirichlet` finds topics from how often words occur together
in pairs and triples, and shares of topics for every entry.

.. [1] Newman, "Bag of Words", UCI Machine Learning Repository, 2008.
"""

# %%
# The data is found in a folder named by ``CODIAG_DATA_DIR``, or downloaded once. Words of fewer than 50 uses are left
# out.

import matplotlib.pyplot as plt
import numpy as np

from codiag.datasets import load_kos
from codiag.models import LatentDirichlet

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

corpus = load_kos(download=True)
frequent = np.asarray(corpus.counts.sum(axis=0)).ravel() >= 50
counts, words = corpus.counts[:, frequent], corpus.vocabulary[frequent]
model = LatentDirichlet(6, random_state=0).fit(counts)
for weight, top in zip(model.weights_, model.top_words(words, 8), strict=True):
    print(f"{weight:.2f}  {' '.join(top)}")

# %%
# Each panel is a topic, with its share of all entries and the words that are most typical of it: bars are how probable
# a word is in the topic. Read down a panel and the topic names itself: the war, the candidates, the race for Congress,
# the primaries. The last two, by their words, are notices on polls and elections that the blog repeated before each
# vote.

figure, axes = plt.subplots(2, 3, figsize=(9.5, 5.6), layout="constrained")
for topic, axis in enumerate(axes.flat):
    top = np.argsort(-model.components_[topic])[:8]
    axis.barh(words[top], model.components_[topic, top], color=COLORS[topic], alpha=0.85)
    axis.invert_yaxis()
    axis.set(xticks=[], title=f"{model.weights_[topic] / model.weights_.sum():.0%} of the text")
    axis.tick_params(axis="y", length=0, labelcolor="black")
    axis.spines["bottom"].set_visible(False)
plt.show()
