"""
A landscape in 200 colors
=========================

In 1992 an airplane took a picture of fields and woods in Indiana, 145 x 145 pixels, with 200 wavelengths from blue
through infrared in place of three colors [1]_. It comes with TensorLy. Components of such an image are a spectrum
each, and where it is seen; a model with so few numbers smooths the picture and keeps its spectra.

.. [1] Baumgardner, Biehl & Landgrebe, "220 Band AVIRIS Hyperspectral Image Data Set: June 12, 1992 Indian Pine Test
   Site 3", Purdue University Research Repository, 2015.
"""

# %%
# Every fourth wavelength will do. The first mode is the rows, the second the columns of the picture.

import matplotlib.pyplot as plt
import numpy as np
from tensorly.datasets import load_indian_pines

import codiag
from codiag.plotting import COLORS

data = load_indian_pines()
image = np.asarray(data.tensor)[:, :, ::4]
wavelengths = np.asarray(data.ticks[1])[::4]
image /= image.max()
print(image.shape)

# %%
# Light is not negative, nor are spectra.

fit = codiag.factorize(image, 8, constraints="nonnegative", seed=0)
kept = fit.to_tensor()
numbers = sum(factor.size for factor in fit.factors)
print(f"{numbers} numbers in place of {image.size}; {1 - fit.relative_error**2:.1%} of the energy")
