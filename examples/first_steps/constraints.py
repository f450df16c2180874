"""
Say what is known: constraints
==============================

Concentrations are not negative; one spectrum may be known from a reference; a mode may be smooth or small. What is
known goes into the fit as a constraint, one for all modes or one for each, and every constraint that is true makes the
answer better.
"""

# %%
# Three substances in strong noise. Two of them have spectra that overlap almost everywhere.

import matplotlib.pyplot as plt
import numpy as np

import codiag
from codiag.constraints import Fixed

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

rng = np.random.default_rng(2)
emission, excitation = np.linspace(0, 1, 50), np.linspace(0, 1, 30)
truth = [
    1 + 0.15 * rng.standard_normal((12, 3)),
    np.exp(-((emission[:, None] - [0.35, 0.45, 0.75]) ** 2) / 0.02),
    np.exp(-((excitation[:, None] - [0.3, 0.4, 0.65]) ** 2) / 0.015),
]
clean = np.einsum("ir,jr,kr->ijk", *truth)
samples = clean + 1.2 * clean.std() * rng.standard_normal(clean.shape)

# %%
# Three fits: without any constraint, with factors that are not negative, and with the emission spectra known from a
# reference measurement on top of that.

fits = {
    "no constraint": codiag.factorize(samples, 3, rng=0),
    "non-negative": codiag.factorize(samples, 3, constraints="nonnegative", rng=0),
    "emission known": codiag.factorize(samples, 3, constraints=["nonnegative", Fixed(truth[1]), "nonnegative"], rng=0),
}
errors = {name: codiag.factor_error(fit.factors[2], truth[2]) for name, fit in fits.items()}

# %%
# Excitation spectra as each fit sees them (lines, with bands that contain the truth in 95 of 100 cases) over true ones
# (shaded). Without constraints they dip below zero where there is nothing; non-negative ones stay at zero there and
# waver less; with the emission spectra given, less is left to find, and it is found a little better still.

figure, panels = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained", sharey=True)
for panel, (name, fit) in zip(panels, fits.items(), strict=True):
    match = codiag.match_components(fit, truth)
    bars = 1.96 * fit.entry_standard_errors[2][:, match.permutation]
    for component, color in enumerate(COLORS[:3]):
        true = truth[2][:, component] / np.linalg.norm(truth[2][:, component])
        own, bar = match.factors[2][:, component], bars[:, component]
        panel.fill_between(excitation, true, color=color, alpha=0.18, linewidth=0)
        panel.fill_between(excitation, own - bar, own + bar, color=color, alpha=0.3, linewidth=0)
        panel.plot(excitation, own, color=color, linewidth=1.8)
    panel.axhline(0, color="#22303c", linewidth=0.8)
    panel.set(title=f"{name}\nerror {errors[name]:.2f}", xlabel="excitation", yticks=[], xlim=(0, 1))
plt.show()
