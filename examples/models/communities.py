"""
Communities that overlap
========================

In a network of 1000 nodes and five communities some nodes belong to more than one.
:class:`codiag.models.MixedMembershipSBM` counts stars of three edges, a tensor whose components are the
communities, and gives every node a share in each.
"""

# %%
# A network of which the memberships are known.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment

from codiag.metrics import overlapping_nmi
from codiag.models import MixedMembershipSBM
from codiag.synthetic import mixed_membership_graph

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

graph = mixed_membership_graph(1000, 5, alpha_0=0.2, inside=0.3, outside=0.02, rng=0)
model = MixedMembershipSBM(alpha_0=0.2, random_state=0).fit(graph.adjacency)
belongs = model.overlapping_labels()
score = overlapping_nmi(belongs, graph.memberships >= 0.3)
print(f"{model.n_components_} communities, with {belongs.sum(axis=0).tolist()} members")
print(f"{(belongs.sum(axis=1) > 1).sum()} of 1000 nodes belong to more than one")
print(f"overlapping NMI with the truth {score:.2f}")

# %%
# Nodes on the plane: every community is a corner of a pentagon, and a node is placed between the corners by its shares.
# Pure members sit in the corners and mixed ones on the lines between. Left as found, right as the truth has it; colors
# are the strongest true community on both sides, so that a node of the wrong color would be an error.

shares = model.memberships_ / model.memberships_.sum(axis=1, keepdims=True)
order = linear_sum_assignment(-shares.T @ graph.memberships)[0][
    np.argsort(linear_sum_assignment(-shares.T @ graph.memberships)[1])
]
angles = np.pi / 2 + 2 * np.pi * np.arange(5) / 5
corners = np.stack([np.cos(angles), np.sin(angles)], axis=1)
jitter = 0.02 * np.random.default_rng(0).standard_normal((1000, 2))
strongest = np.array(COLORS)[np.argmax(graph.memberships, axis=1)]
figure, panels = plt.subplots(1, 2, figsize=(9.4, 4.7), layout="constrained")
for panel, mixture, name in zip(panels, (shares[:, order], graph.memberships), ("Found", "True"), strict=True):
    panel.fill(*corners.T, facecolor="none", edgecolor="#c9ced6", linewidth=1)
    panel.scatter(*(mixture @ corners + jitter).T, s=14, color=strongest, alpha=0.6, linewidths=0)
    panel.set(title=f"{name} memberships", xticks=[], yticks=[], aspect="equal")
    panel.spines[:].set_visible(False)
plt.show()
