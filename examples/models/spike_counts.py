"""
Spikes by neuron, time and trial
================================

Spikes of neurons in bins of time, over repeated trials: small counts. Components are groups of neurons that fire
together, with a time course in the trial and a strength that changes from trial to trial.
"""

# %%
# Two groups: one that answers the stimulus and tires, and one that ramps up as the task is learnt.

import matplotlib.pyplot as plt
import numpy as np

import codiag

rng = np.random.default_rng(0)
time, trial = np.linspace(0, 1, 40), np.linspace(0, 1, 50)
courses = np.stack([np.exp(-((time - 0.3) ** 2) / 0.01), time**2], axis=1) + 0.02
strengths = np.stack([np.exp(-2 * trial), 0.2 + trial], axis=1)
neurons = rng.gamma(0.7, size=(30, 2))
rates = np.einsum("ir,jr,kr->ijk", neurons, courses, strengths)
spikes = rng.poisson(rates)
print(f"{spikes.mean():.2f} spikes a bin, at most {spikes.max()}")

# %%
# How many groups do the spikes show? A quarter of the bins is left out four times, and predicted.

choice = codiag.choose_rank(spikes, range(1, 4), loss="poisson", rng=0)
print(choice.reason)
fit = choice.fit
print(fit.diagnose())

# %%
# Time courses above and strengths below, with intervals of 90 %; dotted lines are the truth. The first group answers
# early in the trial and tires from trial to trial, the second one ramps up within the trial and over trials. Intervals
# are narrow although most bins have no spike.

figure, axes = plt.subplots(2, 2, figsize=(8, 5), layout="constrained")
truth = [neurons, courses, strengths]
unit = [factor / np.linalg.norm(factor, axis=0) for factor in truth]
order = np.argmax(unit[1].T @ fit.factors[1], axis=1)
intervals = fit.conf_int(0.9).factors
for row, (mode, grid, name) in enumerate(((1, time, "time in the trial"), (2, trial, "trial"))):
    for column, component in enumerate(order):
        axis, (low, high) = axes[row, column], intervals[mode]
        axis.fill_between(grid, low[:, component], high[:, component], alpha=0.3)
        axis.plot(grid, fit.factors[mode][:, component])
        axis.plot(grid, unit[mode][:, column], "k:")
        axis.set_xlabel(name)
plt.show()
