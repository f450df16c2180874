"""
Patients who are seen on different days
=======================================

Each patient has a table of visits by measurements, with its own number of visits on its own days. CP needs the same
rows for everybody; PARAFAC2 does not. A long data frame goes in as it is.
"""

# %%
# Thirty patients, 8 to 15 visits each, ten measurements. Two processes, such as an infection and its treatment, rise
# and fall at times that differ between patients.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import codiag

rng = np.random.default_rng(1)
names = [f"marker {number}" for number in range(10)]
loadings = rng.standard_normal((10, 2))
rows = []
for patient in range(30):
    days = np.sort(rng.choice(60, rng.integers(8, 16), replace=False))
    course = np.linalg.qr(rng.standard_normal((days.size, 2)))[0] @ np.array([[1.0, 0.4], [0.0, 0.9]])
    table = course * rng.uniform(0.5, 2, 2) @ loadings.T + 0.03 * rng.standard_normal((days.size, 10))
    rows += [
        (patient, day, name, value)
        for day, visit in zip(days, table, strict=True)
        for name, value in zip(names, visit, strict=True)
    ]
records = pd.DataFrame(rows, columns=["patient", "day", "marker", "value"])
print(records.head(3))

# %%
# How many components? Ranks are tried upward. One is supported if its components are significant, determined, and found
# in both halves of the patients.

choice = codiag.choose_rank(records, range(1, 4), model="parafac2", rng=0)
print(choice)

# %%
# Weights by patient, with their standard errors, and the markers of each component, all with their labels.

fit = choice.fit
print(fit)
print(fit.to_xarray()["factor_marker"].to_pandas().round(2))
print(f"error of the markers: {codiag.factor_error([fit.factors[2]], [loadings]):.3f}")

# %%
# A new patient gets weights for the same components.

new = [fit.to_slices()[0][:6], fit.to_slices()[1]]
print(fit.transform(new).round(2))

# %%
# How far would the markers differ with other patients? The bootstrap draws patients with replacement.

print(fit.bootstrap(n=50, rng=0))

# %%
# A row of pictures for each component: its weight in every patient, with 95 % bands, the course over the visits, one
# line a patient, though no two patients were seen as often, and the markers that take part in it.

figure = fit.plot()
plt.show()
