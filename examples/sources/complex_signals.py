"""
Complex signals: cross-spectra and cumulants
============================================

Eight antennas receive three radio signals from different directions. A signal arrives at each antenna with another
phase, so that mixtures and mixing are complex. :func:`codiag.joint_diagonalize` finds the mixing from Hermitian
matrices: from cross-spectra if the signals have different spectra, and from fourth-order cumulants if they are white.
"""

# %%
# The phase grows by the same angle from one antenna to the next, and this angle says where a signal comes from. The
# signals are autoregressions of different frequencies.

import matplotlib.pyplot as plt
import numpy as np
from scipy.signal import lfilter

import codiag
from codiag.metrics import minimum_distance

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]
rng = np.random.default_rng(0)


def circular(*shape):
    """Return complex noise of unit variance."""
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)) / np.sqrt(2)


n_antennas, n_signals, n_samples = 8, 3, 2**14
angles = np.array([-0.9, 0.2, 1.3])
mixing = np.exp(1j * np.outer(np.arange(n_antennas), angles))
poles = 0.9 * np.exp(2j * np.pi * np.array([-0.3, 0.05, 0.22]))
signals = np.stack([lfilter([1], [1, -pole], circular(n_samples)) for pole in poles])
signals /= np.std(signals, axis=1, keepdims=True)
received = mixing @ signals + 0.1 * circular(n_antennas, n_samples)

# %%
# Cross-spectra are means of products of Fourier transforms over windows of time: one Hermitian matrix for each
# frequency, all with the same mixing, and the spectra of the signals on the diagonals.

windows = received.reshape(n_antennas, -1, 128) * np.hanning(128)
transforms = np.fft.fft(windows, axis=2)
spectra = np.einsum("awf,bwf->fab", transforms, transforms.conj()) / windows.shape[1]
fit = codiag.joint_diagonalize(spectra, diagonalizer=codiag.diagonalize.UWEDGE(rank=n_signals), rng=0)
matching = codiag.match_components(fit.factor, mixing)
found_angles = np.angle(np.sum(matching.factors[0][1:] * matching.factors[0][:-1].conj(), axis=0))
print("angles:", angles, "found:", found_angles.round(3))
print("minimum distance of the unmixing:", round(minimum_distance(fit.inverse, mixing), 4))

# %%
# Symbols of a modem are white: all cross-spectra are alike. They are not Gaussian, so that their fourth-order cumulants
# do not vanish. In whitened coordinates the mixing is unitary, and diagonalizes the cumulant matrices of all pairs of
# coordinates (Cardoso and Souloumiac's JADE, for complex signals).

symbols = (rng.choice([-1, 1], (n_signals, 4000)) + 1j * rng.choice([-1, 1], (n_signals, 4000))) / np.sqrt(2)
received = mixing @ symbols + 0.1 * circular(n_antennas, 4000)
values, vectors = np.linalg.eigh(received @ received.conj().T / 4000)
whitening = (vectors[:, -n_signals:] / np.sqrt(values[-n_signals:])).conj().T
white = whitening @ received
unit = np.eye(n_signals)
cumulants = []
for i, j in np.ndindex(n_signals, n_signals):
    along = np.outer(unit[i], unit[j])
    along = along + along.T if i <= j else 1j * (along - along.T)
    weights = np.einsum("at,ab,bt->t", white.conj(), along, white).real
    fourth = (weights * white) @ white.conj().T / 4000
    cumulants.append(fourth - along - np.trace(along).real * unit)
cumulants = np.stack([(matrix + matrix.conj().T) / 2 for matrix in cumulants])
unitary = codiag.joint_diagonalize(cumulants, orthogonal=True, rng=0)
unmixed = unitary.inverse @ white
distance = minimum_distance(unitary.inverse @ whitening, mixing)
print("minimum distance by cumulants:", round(distance, 4))

# %%
# Left, the spectra of the signals as found (lines) and as they are (dots). In the middle, the phases of the mixing
# along the antennas: each signal has its slope, the direction that it comes from. Right, what one antenna receives from
# the modems (gray), and the symbols of one modem after unmixing: four clouds, turned by an unknown phase.

figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
frequencies = np.fft.fftshift(np.fft.fftfreq(128))
for place, color in enumerate(COLORS[:n_signals]):
    diagonal = np.fft.fftshift(fit.diagonals[:, matching.permutation[place]])
    density = 1 / np.abs(1 - poles[place] * np.exp(-2j * np.pi * frequencies)) ** 2
    left.plot(frequencies, diagonal / diagonal.max(), color=color)
    left.plot(frequencies[::4], (density / density.max())[::4], "o", markersize=3, color=color)
    column = matching.factors[0][:, place]
    middle.plot(np.unwrap(np.angle(column / column[0])), color=color)
    middle.plot(angles[place] * np.arange(n_antennas), "o", markersize=4, color=color)
left.set(xlabel="frequency", ylabel="spectrum, relative to its peak", title="Spectra")
middle.set(xlabel="antenna", ylabel="phase", title="Phases of the mixing")
right.plot(received[0].real, received[0].imag, ".", markersize=2, color="gray", alpha=0.4)
right.plot(unmixed[0].real, unmixed[0].imag, ".", markersize=2, color=COLORS[0])
right.set(aspect="equal", title="A modem, unmixed", xlabel="real part", ylabel="imaginary part")
plt.show()
