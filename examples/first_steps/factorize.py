"""
Factorize a tensor
==================

A tensor of three modes is a stack of tables: here 20 samples, each measured at 60 times in 40 channels. Three
processes overlap in it, each with an amount in every sample, a course over time and a strength in every channel.
:func:`codiag.factorize` tells them apart from the numbers alone.
"""

# %%
# The data: a sum of three products, and noise as large as a fifth of it.

import matplotlib.pyplot as plt
import numpy as np

import codiag

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

rng = np.random.default_rng(0)
time, channel = np.linspace(0, 1, 60), np.linspace(0, 1, 40)
amounts = rng.gamma(2, size=(20, 3))
courses = np.stack([np.exp(-4 * time), np.sin(2.5 * np.pi * time) ** 2, time**2], axis=1)
strengths = np.exp(-((channel[:, None] - [0.25, 0.45, 0.7]) ** 2) / [0.01, 0.02, 0.03])

clean = np.einsum("ir,jr,kr->ijk", amounts, courses, strengths)
tensor = clean + 0.2 * clean.std() * rng.standard_normal(clean.shape)

# %%
# One line finds the components. There is nothing to tune, no number of restarts, and the seed only matters where the
# data leaves the answer open.

fit = codiag.factorize(tensor, 3, rng=0)
print(fit)
print(fit.diagnose())

# %%
# Weights come largest first, and columns of factors have unit length: one array for each mode. Standard errors say how
# far each factor is from the truth, without knowing it; here the truth is known, and they are right.

weights, factors = fit
found = codiag.match_components(fit, [amounts, courses, strengths])
print("standard errors", fit.standard_errors.mean(axis=0).round(4))
print("true error     ", round(codiag.factor_error(fit, [amounts, courses, strengths]), 4))

# %%
# On the left one of the 20 samples, as it was measured. On the right the components: what was found (lines) over what
# was put in (shaded). The courses overlap all the time and the channels overlap, too, and yet each is found as it is.
# The factors of a matrix are determined only up to a rotation; those of a tensor with three modes are unique.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", width_ratios=(1, 1.2, 1.2))
left.pcolormesh(channel, time, tensor[int(np.argmax(amounts.min(axis=1)))], cmap="magma", rasterized=True)
left.set(title="One of 20 samples", xlabel="channel", ylabel="time")
for panel, mode, axis, truth in ((middle, 1, time, courses), (right, 2, channel, strengths)):
    for component, color in enumerate(COLORS[:3]):
        true = truth[:, component] / np.linalg.norm(truth[:, component])
        panel.fill_between(axis, true, color=color, alpha=0.2, linewidth=0)
        panel.plot(axis, found.factors[mode][:, component], color=color, linewidth=2)
middle.set(title="Courses: found, over the truth", xlabel="time", yticks=[], xlim=(0, 1), ylim=(0, None))
right.set(title="Strengths: found, over the truth", xlabel="channel", yticks=[], xlim=(0, 1), ylim=(0, None))
plt.show()
