"""
Signaling of immune cells: four modes
=====================================

Eight kinds of cells answer to 13 variants of the signaling protein interleukin-2, at 12 doses and 4 times: a tensor of
four modes that comes with TensorLy [1]_. Some combinations were not measured. Which patterns of response are there, and
which cells follow which?

.. [1] Orcutt-Jahns, Emmel, Snyder, Posner, Carlson & Meyer, "Multivalency enhances the specificity of Fc-cytokine
   fusions", bioRxiv, 2021.
"""

# %%
# Missing entries are NaN, and stay what they are. Labels go with the tensor, so that figures and tables have them.

import matplotlib.pyplot as plt
import numpy as np
from tensorly.datasets import load_IL2data

import codiag

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

data = load_IL2data()
ligands, hours, doses, cells = data.ticks
responses = np.asarray(data.tensor)
print(f"{responses.shape}, {np.isnan(responses).sum()} entries missing")

# %%
# Responses are amounts, and so are the factors. Ligands and cells, whose labels are text, are in no order; hours and
# doses are.

labels = {"ligand": ligands, "hours": hours, "dose": doses, "cells": cells}
fit = codiag.factorize(responses, 3, constraints="nonnegative", labels=labels, rng=0)
print(fit)
print(fit.diagnose())

# %%
# A row is a component, a column a mode. The last is the response of regulatory T cells (Treg) to small doses: it peaks
# below 1 nM, is strongest in cells with much of the receptor IL2Ra, and falls at higher doses, where the others take
# over. The first is how all cells alike answer to natural IL-2 and IL-15 at high doses, the second the answer to the
# altered ligands. What one looks for in a drug against autoimmune disease is a ligand with much of the last and little
# of the first, such as the bivalent ones (Biv).

figure, axes = plt.subplots(
    fit.rank, 4, figsize=(10.5, 5.8), layout="constrained", sharex="col", width_ratios=(1.6, 0.8, 1, 1.2)
)
for component, (ligand, hour, dose, cell) in enumerate(axes):
    a, b, c, d = (factor[:, component] for factor in fit.factors)
    ligand.bar(ligands, a, color=COLORS[component])
    hour.plot(hours, b, "o-", color=COLORS[component])
    dose.semilogx(doses, c, "o-", markersize=4, color=COLORS[component])
    cell.bar(cells, d, color=COLORS[component])
    for axis in (ligand, hour, dose, cell):
        axis.set(yticks=[], ylim=(0, None))
for axis, name in zip(axes[-1], ("ligand", "hours", "dose (nM)", "cells"), strict=True):
    axis.set_xlabel(name, color="black")
for axis in axes[-1, [0, 3]]:
    axis.tick_params(axis="x", rotation=90, labelsize=8)
plt.show()
