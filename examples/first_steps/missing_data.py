"""
Missing data
============

Instruments saturate, patients skip a visit, sensors drop out. Entries that are NaN, or masked, are missing: the fit is
that of the others. Here nine of ten entries are lost, and the tenth is enough.
"""

# %%
# A film of 40 frames: four lights, each flickering at its own pace. A random nine of ten pixels are not recorded.

import matplotlib.pyplot as plt
import numpy as np

import codiag

rng = np.random.default_rng(0)
time, row, column = (np.linspace(0, 1, size)[:, None] for size in (40, 30, 40))
factors = [
    1 + 0.9 * np.sin(2 * np.pi * (time * [1, 2, 3, 5] + [0, 0.3, 0.6, 0.8])),
    np.exp(-((row - [0.25, 0.5, 0.75, 0.3]) ** 2) / 0.02),
    np.exp(-((column - [0.3, 0.7, 0.4, 0.8]) ** 2) / [0.01, 0.03, 0.05, 0.01]),
]
film = np.einsum("ir,jr,kr->ijk", *factors)
recorded = film + 0.05 * film.std() * rng.standard_normal(film.shape)
recorded[rng.random(film.shape) < 0.9] = np.nan

# %%
# The call is the same as without holes.

fit = codiag.factorize(recorded, 4, rng=0)
restored = fit.to_tensor()
print(f"{fit.problem.n_observed} of {film.size} entries observed")
print(f"relative error of what was never recorded: {np.linalg.norm(restored - film) / np.linalg.norm(film):.4f}")

# %%
# How many entries does it take? The film has 40 + 30 + 40 numbers for each of its four components, 440 together. Errors
# grow as fewer entries are left: not much faster than the inverse square root of their number, even with only five
# entries for each unknown.

shares = np.array([0.0, 0.5, 0.8, 0.9, 0.95])
errors, predicted = [], []
for share in shares:
    partly = np.where(
        rng.random(film.shape) < share, np.nan, film + 0.05 * film.std() * rng.standard_normal(film.shape)
    )
    trial = codiag.factorize(partly, 4, rng=0)
    errors.append(codiag.factor_error(trial, factors))
    predicted.append(trial.standard_errors.mean())
    print(f"{share:4.0%} missing: error of the factors {errors[-1]:.4f}, predicted {predicted[-1]:.4f}")

# %%
# One frame as it was recorded, with everything that was lost in gray; the same frame restored; and as it really was.
# Below, errors of the factors against what is missing: measured, and by the standard errors of the fit.

figure = plt.figure(figsize=(9, 5.6), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=(1.15, 1))
for panel, frames, title in zip(
    top.subplots(1, 3), (recorded, restored, film), ("Recorded: 1 pixel in 10", "Restored", "The truth"), strict=True
):
    panel.set_facecolor("#c9ced6")
    panel.imshow(frames[9], cmap="magma", vmin=0, vmax=film[9].max())
    panel.set(title=title, xticks=[], yticks=[])
panel = bottom.subplots()
panel.plot(1 - shares, errors, "o-", color="C0", label="error of the factors")
panel.plot(1 - shares, predicted, "s--", color="C1", label="predicted from the data alone")
panel.set(xscale="log", xlabel="share of the entries that was recorded", ylabel="error")
panel.set_yscale("log")
panel.minorticks_off()
panel.set_xticks([1, 0.5, 0.2, 0.1, 0.05], ["100 %", "50 %", "20 %", "10 %", "5 %"])
panel.invert_xaxis()
panel.legend(frameon=False)
plt.show()
