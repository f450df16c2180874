"""
A reaction watched in four modes
================================

Hormones such as adrenaline are oxidized to substances that glow, and these change again within minutes. The data that
comes with TensorLy [1]_ has 64 experiments, each with the fluorescence at 12 wavelengths of emission, 10 of excitation
and 60 times. Spectra and the course of the reaction come out of the numbers without any chemistry going in.

.. [1] Nikolajsen, Booksh, Hansen & Bro, "Quantifying catecholamines using multi-way kinetic modelling", Analytica
   Chimica Acta 475, 2003.
"""

# %%
# Some measurements are missing, and five experiments are outliers by the authors' own account.

import matplotlib.pyplot as plt
import numpy as np
from tensorly.datasets import load_kinetic

import codiag
from codiag.plotting import COLORS

data = load_kinetic()
_, emission, excitation, minutes = (np.asarray(ticks) for ticks in data.ticks)
missing = np.asarray(data.missing_values_position).astype(bool)
tensor = np.where(missing, np.nan, np.asarray(data.tensor))
tensor = np.delete(tensor, data.outlier_measurements_idx, axis=0)
