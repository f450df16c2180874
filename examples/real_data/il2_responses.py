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
from codiag.plotting import COLORS, INK

data = load_IL2data()
ligands, hours, doses, cells = data.ticks
responses = np.asarray(data.tensor)
responses = np.where(np.isnan(responses), np.nan, np.maximum(responses, 0))  # of differences to the unstimulated cells
print(f"{responses.shape}, {np.isnan(responses).sum()} entries missing")

# %%
# Responses are amounts, and so are the factors.

fit = codiag.factorize(responses, 3, constraints="nonnegative", seed=0)
print(fit)
print(fit.diagnose())

# %%
# Each row is a component; a column a mode. One component is the response of regulatory T cells (Treg), which starts at
# small doses: these cells carry the high-affinity receptor. Another is that of killer cells (CD8+ and NK), at the
# highest doses only, and to other ligands. This is what one looks for in a drug: a ligand with much of the first and
# little of the second.

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
    axis.set_xlabel(name, color=INK)
for axis in axes[-1, [0, 3]]:
    axis.tick_params(axis="x", rotation=90, labelsize=8)
plt.show()
