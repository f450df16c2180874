"""
Friends and dormitories
=======================

In September 2005, 769 students of Caltech had 16,656 friendships on Facebook [1]_. Caltech assigns its students to
eight houses. :class:`codiag.models.MixedMembershipSBM` sees nothing but who is whose friend, and finds
communities to which a student can belong in parts: are they the houses?

.. [1] Traud, Mucha & Porter, "Social structure of Facebook networks", Physica A 391, 2012.
"""

# %%
# The data is found in a folder named by ``CODIAG_DATA_DIR``, or downloaded once.

from itertools import pairwise

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from codiag.datasets import load_facebook
from codiag.models import MixedMembershipSBM

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

network = load_facebook("Caltech36", download=True)
houses = network.attributes["dorm"]
known = np.unique(houses[houses > 0])
model = MixedMembershipSBM(known.size, random_state=0).fit(network.adjacency)

# %%
# How much of each community lives in each house? Communities are put in the order of the houses that they fit best.

shares = model.memberships_ / model.memberships_.sum(axis=1, keepdims=True)
counts = np.array([[shares[houses == house, place].sum() for house in known] for place in range(known.size)])
belongs = counts / counts.sum(axis=1, keepdims=True)
order = linear_sum_assignment(-belongs.T)[1]
shares, belongs = shares[:, order], belongs[order]
lives = houses > 0
agreement = np.mean(known[np.argmax(shares[lives], axis=1)] == houses[lives])
print(f"{agreement:.0%} of the students whose house is known belong most to the community of their house")

# %%
# Left, the friendships, with students sorted by their strongest community (colors): blocks on the diagonal are
# communities, and what is outside them are friends elsewhere. Right, who lives where: six of the eight communities are
# a house each, almost pure, and two have people of several houses.

strongest = np.argmax(shares, axis=1)
rank = np.lexsort((-shares.max(axis=1), strongest))
rows, columns = network.adjacency[rank][:, rank].nonzero()
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4.9), layout="constrained", width_ratios=(1.1, 1))
left.scatter(columns, rows, s=0.4, color="#22303c", alpha=0.35, linewidths=0, rasterized=True)
edges = np.concatenate([[0], np.cumsum(np.bincount(strongest, minlength=known.size))])
for place, (begin, end) in enumerate(pairwise(edges)):
    left.fill_between([begin, end], begin, end, color=COLORS[place], alpha=0.3, linewidth=0)
left.set(xlim=(0, rank.size), ylim=(rank.size, 0), xticks=[], yticks=[], aspect="equal")
left.set_title("16,656 friendships, by community")
image = right.imshow(belongs, cmap="magma_r", vmin=0, vmax=1)
right.set(xlabel="house", ylabel="community", title="Where members of a community live")
right.set_xticks(range(known.size), [chr(ord("A") + place) for place in range(known.size)])
right.set_yticks(range(known.size), range(1, known.size + 1))
for place, tick in enumerate(right.get_yticklabels()):
    tick.set(color=COLORS[place], fontweight="bold")
right.spines[:].set_visible(False)
figure.colorbar(image, ax=right, shrink=0.8, label="share")
plt.show()
