"""
Substances in mixtures, from their fluorescence
===============================================

Light of one wavelength shines on a sample, light of another comes back. Every substance has its own excitation and its
own emission spectrum, and mixtures of them add up: samples x emission x excitation is a tensor, and its components are
the substances. Nobody has to say what they look like.
"""

# %%
# Fifteen mixtures of four substances, with noise, and with the bands where light is merely scattered taken out: NaN is
# missing.

import matplotlib.pyplot as plt
import numpy as np

import codiag
from codiag.synthetic import fluorescence

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

measured = fluorescence((15, 40, 25), 4, noise=0.1, scatter=True, clip=True, rng=7)
fit = codiag.factorize(measured.tensor, 4, constraints="nonnegative", rng=0)
found = codiag.match_components(fit, measured).factors
print(f"{np.isnan(measured.tensor).mean():.0%} of the entries missing, relative error {fit.relative_error:.3f}")

# %%
# Where the spectra peak, and how the concentrations that were found go with the true ones.


def peak(wavelengths, spectrum):
    """Return where a spectrum is highest, by a parabola through three points."""
    top = int(np.clip(np.argmax(spectrum), 1, len(spectrum) - 2))
    before, at, after = spectrum[top - 1 : top + 2]
    return wavelengths[top] + (wavelengths[1] - wavelengths[0]) * (before - after) / (2 * (before - 2 * at + after))


print("           emission peak (nm)    excitation peak (nm)  concentrations:")
print("substance     found      true       found      true      correlation")
for substance in range(4):
    peaks = [
        peak(axis, factors[mode][:, substance])
        for mode, axis in ((1, measured.emission), (2, measured.excitation))
        for factors in (found, measured.factors)
    ]
    alike = np.corrcoef(found[0][:, substance], measured.factors[0][:, substance])[0, 1]
    print("{:9d}{:10.1f}{:10.1f}{:12.1f}{:10.1f}{:17.4f}".format(substance + 1, *peaks, alike))

largest_error = max(np.linalg.norm(own - true, axis=0).max() for own, true in zip(found, measured.factors, strict=True))

# %%
# One sample as it was measured, with scattered light left out in gray; concentrations in all samples, found against
# true; and the spectra, found (lines) over true (shaded). A chemist reads off the last two which substances these are.

figure, ((sample, amounts), (emission, excitation)) = plt.subplots(2, 2, figsize=(9.5, 6.6), layout="constrained")
brightest = int(np.argmax(np.nansum(measured.tensor, axis=(1, 2))))
sample.set_facecolor("#d5d8dc")
sample.pcolormesh(measured.excitation, measured.emission, measured.tensor[brightest], cmap="magma", rasterized=True)
sample.set(xlabel="excitation (nm)", ylabel="emission (nm)", title="One of 15 samples, as measured")
limit = 1.08 * measured.factors[0].max()
amounts.plot([0, limit], [0, limit], color="#b2bec3", linewidth=1)
for substance, color in enumerate(COLORS[:4]):
    amounts.scatter(measured.factors[0][:, substance], found[0][:, substance], s=30, color=color, alpha=0.85)
    for panel, mode, axis in ((emission, 1, measured.emission), (excitation, 2, measured.excitation)):
        panel.fill_between(axis, measured.factors[mode][:, substance], color=color, alpha=0.2, linewidth=0)
        panel.plot(axis, found[mode][:, substance], color=color, linewidth=2)
        panel.set(xlim=(axis[0], axis[-1]), yticks=[])
amounts.set(xlim=(0, limit), ylim=(0, limit), xticks=[], yticks=[], xlabel="true", ylabel="found")
amounts.set_title("Concentrations in all samples")
emission.set(xlabel="emission (nm)", ylim=(0, None), title="Emission spectra: found, over true")
excitation.set(xlabel="excitation (nm)", ylim=(0, None), title="Excitation spectra: found, over true")
plt.show()
