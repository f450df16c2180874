"""
A reaction watched in four modes
================================

Hormones such as adrenaline are oxidized to substances that glow, and these change again within minutes. The data that
comes with TensorLy [1]_ has experiments with other concentrations, each with the fluorescence at 12 wavelengths of
emission, 10 of excitation and at 60 times. Spectra, and the course of the reaction, come out of the numbers without
any chemistry going in.

.. [1] Nikolajsen, Booksh, Hansen & Bro, "Quantifying catecholamines using multi-way kinetic modelling", Analytica
   Chimica Acta 475, 2003.
"""

# %%
# Without the experiments that the authors call outliers, and without those that lack measurements, 27 of 64 are left.
# (Missing entries could stay, see :doc:`/gallery/first_steps/missing_data`; it would take longer.) Every third time
# will do.

import matplotlib.pyplot as plt
import numpy as np
from tensorly.datasets import load_kinetic

import codiag

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

data = load_kinetic()
_, emission, excitation, minutes = (np.asarray(ticks) for ticks in data.ticks)
complete = ~np.asarray(data.missing_values_position).any(axis=(1, 2, 3))
complete[data.outlier_measurements_idx] = False
tensor = np.asarray(data.tensor)[complete][..., ::3]
minutes = minutes[::3]
print(tensor.shape)

# %%
# Three substances: concentrations, spectra and courses that are not negative.

fit = codiag.factorize(tensor, 3, constraints="nonnegative", rng=0)
print(fit)

# %%
# A substance has the same color in all panels. The blue one is there after five minutes and then slowly goes; the
# orange one builds up all the time. Blue and orange are excited by nearly the same light, orange and green emit nearly
# the same: what one mode can hardly tell apart, another can. On the left, how much of each is in every experiment.

figure, axes = plt.subplots(1, 4, figsize=(10.8, 3.5), layout="constrained", width_ratios=(1.3, 1, 1, 1.2))
for component, color in enumerate(COLORS[:3]):
    amount, emitted, excited, course = (factor[:, component] for factor in fit.factors)
    bottom = (fit.factors[0] * fit.weights)[:, :component].sum(axis=1)
    axes[0].bar(range(amount.size), amount * fit.weights[component], bottom=bottom, color=color, width=0.9)
    axes[1].plot(emission, emitted, color=color, linewidth=2)
    axes[2].plot(excitation, excited, color=color, linewidth=2)
    axes[3].plot(minutes, course, color=color, linewidth=2)
for axis, title, label in zip(
    axes,
    ("Amounts", "Emission", "Excitation", "Course of the reaction"),
    ("experiment", "nm", "nm", "minutes"),
    strict=True,
):
    axis.set(title=title, xlabel=label, yticks=[], ylim=(0, None))
plt.show()
