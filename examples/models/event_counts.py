"""
Events by user, place and hour
==============================

Visits of users to places through the week: half a million cells, most of them empty. Least squares fits the busiest
users and places; the loss of counts, :class:`codiag.losses.Poisson`, gives every visit its weight.
"""

# %%
# Three habits, each with its users, places and hours. Visits are drawn one by one, and counted.

import matplotlib.pyplot as plt
import numpy as np

import codiag
from codiag.tensors import SparseTensor

rng = np.random.default_rng(0)
hours = np.arange(168)
habits = {
    "work": ((hours % 24 > 8) & (hours % 24 < 18) & (hours < 120)).astype(float),
    "evenings": np.exp(-((hours % 24 - 20) ** 2) / 4),
    "weekends": ((hours >= 120) & (hours % 24 > 9)).astype(float),
}
week = np.stack(list(habits.values()), axis=1) + 0.02
chances = [rng.gamma(0.5, size=(60, 3)) + 1e-9, rng.gamma(0.5, size=(50, 3)) + 1e-9, week]
chances = [chance / chance.sum(axis=0) for chance in chances]
kinds = rng.choice(3, 8000, p=[0.5, 0.3, 0.2])
coords = [np.array([rng.choice(len(chance), p=chance[:, kind]) for kind in kinds]) for chance in chances]
visits = SparseTensor(np.stack(coords), np.ones(len(kinds)), (60, 50, 168))

# %%
# The same tensor by least squares and by its own loss.

plain = codiag.factorize(visits.to_dense(), 3, constraints="nonnegative", rng=0)
fit = codiag.factorize(visits, 3, loss="poisson", rng=0)
for name, found in (("least squares", plain), ("Poisson", fit)):
    print(f"{name}: factor error {codiag.factor_error(found, chances):.2f}")
print(f"explained deviance {fit.deviance.explained:.2f}, dispersion {fit.deviance.dispersion:.2f}")

# %%
# Hours of the week, as found and as they are in truth. Working hours fill five days and leave nights empty, evenings
# have a peak on every day, and weekends begin at hour 120. Small counts leave the curves rough, but no habit has the
# hours of another.

figure, axes = plt.subplots(3, 1, figsize=(8, 5), sharex=True, layout="constrained")
matched = codiag.match_components(fit, chances)
unit = chances[2] / np.linalg.norm(chances[2], axis=0)
for component, (axis, name) in enumerate(zip(axes, habits, strict=True)):
    axis.plot(hours, matched.factors[2][:, component], label="found")
    axis.plot(hours, unit[:, component], "k:", label="truth")
    axis.set_ylabel(name)
axes[0].legend()
axes[-1].set_xlabel("hour of the week")
plt.show()
