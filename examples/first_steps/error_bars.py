"""
Error bars, and what they mean
==============================

Every fit has standard errors of every entry of every factor. They are computed from the data alone, from the residual
and from the curvature of the problem. If the same measurement were repeated a hundred times, the interval of 1.96
standard errors to either side should contain the truth about 95 times. This can be checked.
"""

# %%
# The same tensor, measured 100 times with fresh noise.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import binom

import codiag

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

rng = np.random.default_rng(0)
day = np.linspace(0, 1, 30)
truth = [
    rng.gamma(2, size=(15, 2)),
    np.stack([np.exp(-((day - 0.35) ** 2) / 0.02), np.exp(-((day - 0.6) ** 2) / 0.03)], axis=1),
    rng.gamma(2, size=(12, 2)),
]
clean = np.einsum("ir,jr,kr->ijk", *truth)
truth = [factor / np.linalg.norm(factor, axis=0) for factor in truth]

n_repeats = 100
found, bars = np.empty((2, n_repeats, 30, 2))
for repeat in range(n_repeats):
    fit = codiag.factorize(clean + 0.5 * clean.std() * rng.standard_normal(clean.shape), 2, rng=0)
    match = codiag.match_components(fit, truth)
    found[repeat] = match.factors[1]
    bars[repeat] = 1.96 * fit.entry_standard_errors[1][:, match.permutation]

# %%
# Which intervals contain the truth?

inside = np.abs(found - truth[1]) <= bars
print(f"intervals that contain the truth: {inside.mean():.1%} of {inside.size}")

# %%
# On the left one of the hundred measurements, with its bands; the true curves are dashed. In the middle the interval of
# one entry, the blue curve at time 0.5, in every measurement, sorted: the few that miss the truth are red. On the right
# how many of the hundred intervals contain the truth, for every entry of both curves: they vary around 95, and the gray
# band is where 95 of 100 such counts should be.
#
# Standard errors describe random errors. They do not describe a wrong number of components, or data that do not follow
# the model: for that there is ``fit.diagnose()``.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(10.5, 3.9), layout="constrained", width_ratios=(1.3, 1, 1))
for component, color in enumerate(COLORS[:2]):
    curve, bar = found[0, :, component], bars[0, :, component]
    left.fill_between(day, curve - bar, curve + bar, color=color, alpha=0.3, linewidth=0)
    left.plot(day, curve, color=color, linewidth=2)
    left.plot(day, truth[1][:, component], color="black", linestyle="--", linewidth=1)
left.set(title="One measurement, bands of 95 %", xlabel="time", yticks=[], xlim=(0, 1))

at = int(np.argmin(np.abs(day - 0.5)))
order = np.argsort(found[:, at, 0])
colors = [COLORS[0] if one else COLORS[1] for one in inside[order, at, 0]]
places = np.arange(n_repeats)
middle.hlines(
    places, (found - bars)[order, at, 0], (found + bars)[order, at, 0], colors=colors, linewidth=1.3, alpha=0.7
)
middle.scatter(found[order, at, 0], places, s=4, c=colors)
middle.axvline(truth[1][at, 0], color="black", linestyle="--", linewidth=1)
middle.set(title=f"One entry: {inside[:, at, 0].sum()} of 100\nintervals contain the truth", xlabel="value", yticks=[])

right.axhspan(*binom.interval(0.95, n_repeats, 0.95), color="gray", alpha=0.25, linewidth=0)
right.axhline(95, color="black", linestyle="--", linewidth=1)
for component, color in enumerate(COLORS[:2]):
    right.plot(day, inside[:, :, component].sum(axis=0), "o", color=color, markersize=4)
right.set(title="All entries: how many of 100\nintervals contain the truth", xlabel="time", ylim=(80, 101))
plt.show()
