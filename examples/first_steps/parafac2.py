"""
Peaks that shift: PARAFAC2
==========================

Chromatograms of the same substances never line up: retention times drift from run to run. CP assumes that every profile
is the same in all runs, and breaks where peaks shift. PARAFAC2 lets the profiles change from run to run, as long as
their correlations stay the same.
"""

# %%
# Twelve runs of 80 points in time and 30 wavelengths. Three substances elute one after the other; each run is delayed
# by up to four points. Amounts and spectra are not negative.

import matplotlib.pyplot as plt
import numpy as np

import codiag

rng = np.random.default_rng(0)
time, wavelength = np.arange(80)[:, None], np.linspace(0, 1, 30)[:, None]
amounts = rng.uniform(0.2, 1.5, (12, 3))
spectra = np.exp(-((wavelength - [0.3, 0.45, 0.7]) ** 2) / [0.02, 0.05, 0.02])
delays = rng.integers(-4, 5, 12)
profiles = [np.exp(-((time - delay - [32, 40, 50]) ** 2) / 40) for delay in delays]
runs = [profile * amount @ spectra.T for profile, amount in zip(profiles, amounts, strict=True)]
runs = [run + 0.02 * rng.standard_normal(run.shape) for run in runs]

# %%
# CP of the same rank leaves far more than the noise, and its diagnosis says that profiles shift.

cp = codiag.factorize(np.stack(runs), 3, rng=0)
fit = codiag.parafac2(runs, 3, constraints={0: "nonnegative", 2: "nonnegative"}, rng=0)
print(f"relative error: CP {cp.relative_error:.4f}, PARAFAC2 {fit.relative_error:.4f}")
print(f"error of the spectra: CP {codiag.factor_error([cp.factors[2]], [spectra]):.3f}, ", end="")
print(f"PARAFAC2 {codiag.factor_error([fit.factors[2]], [spectra]):.3f}")

# %%
# A row of pictures for each substance: its amount in every run, its chromatograms, one line a run, and its spectrum.
# The lines of one substance have the same shape and are displaced against each other by the delays; they are drawn
# thin, so that twelve runs can be told apart.

figure = fit.plot()

# %%
# Standard errors come with the fit, of the evolving factors, too. The run with the shortest and the one with the
# longest delay, for the first substance: two curves of one shape, eight points apart at most. The band around each of
# them is 1.96 standard errors on either side.

figure, axes = plt.subplots(figsize=(7, 3))
for run in (int(np.argmin(delays)), int(np.argmax(delays))):
    profile, errors = fit.evolving[run][:, 0], fit.entry_standard_errors[1][run][:, 0]
    axes.plot(profile, label=f"delay {delays[run]}")
    axes.fill_between(np.arange(80), profile - 1.96 * errors, profile + 1.96 * errors, alpha=0.3)
axes.set(xlabel="time", title="Component 1 in two runs")
figure.legend()
plt.show()

# %%
# The diagnosis tests, run by run, whether the correlations are those of all, and says whether CP would do as well.

print(fit.diagnose())
print(fit.describe())
