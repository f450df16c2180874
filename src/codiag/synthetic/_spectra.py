"""Fluorescence of mixtures, as spectrometers measure it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from codiag._checks import Seed, as_flag, as_generator, as_number
from codiag.synthetic._tensors import PlantedTensor
from codiag.tensors import FactoredTensor, check_shape

EXCITATION, EMISSION = (240.0, 400.0), (280.0, 500.0)
"""Wavelengths that are measured, in nanometers."""

BAND = 12.0
"""Half the width of the bands where scattered light hides fluorescence, in nanometers."""


@dataclass(frozen=True, eq=False)
class Fluorescence(PlantedTensor):
    """Emission-excitation matrices of samples, and the spectra and concentrations that they were made from.

    Attributes
    ----------
    tensor : numpy.ndarray of shape (n_samples, n_emission, n_excitation)
        NaN where an entry is missing.
    weights : numpy.ndarray of shape (k,)
        How bright each substance is.
    factors : tuple of three numpy.ndarray of shape (d_i, k)
        Concentrations, emission spectra and excitation spectra: unit columns, none of them negative.
    emission : numpy.ndarray of shape (n_emission,)
        Wavelengths in nanometers.
    excitation : numpy.ndarray of shape (n_excitation,)
        Wavelengths in nanometers.

    See Also
    --------
    fluorescence : Draws one.

    Examples
    --------
    >>> from codiag.synthetic import fluorescence
    >>> measured = fluorescence(seed=0)
    >>> measured.emission[[0, -1]].tolist(), measured.excitation[[0, -1]].tolist()
    ([280.0, 500.0], [240.0, 400.0])
    """

    emission: np.ndarray
    excitation: np.ndarray


def fluorescence(
    shape: Sequence[int] = (15, 40, 25),
    rank: int = 4,
    *,
    noise: float = 0.02,
    scatter: bool = False,
    clip: bool = False,
    seed: Seed = None,
) -> Fluorescence:
    r"""Draw emission-excitation matrices of samples that mix a few fluorescent substances.

    A substance emits a Gaussian peak, at a wavelength 30 to 90 nm longer than that of its highest excitation peak,
    whatever excites it; a second, lower peak of excitation lies at a shorter wavelength. Light adds up:
    :math:`T_{ijl} = \sum_r a_{ir} b_{jr} c_{lr}` with concentrations a, uniform on [0, 1], emission spectra b and
    excitation spectra c. Gaussian noise R is added with :math:`\|R\| = \epsilon \|T\|`.

    Parameters
    ----------
    shape : sequence of three int
        Samples, wavelengths of emission (280 to 500 nm) and wavelengths of excitation (240 to 400 nm).
    rank : int
        Number of substances, k.
    noise : float
        Norm of the noise relative to that of the tensor, :math:`\epsilon`.
    scatter : bool
        Whether entries are missing, as NaN, where scattered light would hide what substances emit: within 12 nm of the
        wavelength of excitation (Rayleigh scatter of first order) and of twice that (of second order).
    clip : bool
        Whether negative entries, which only noise can make, are set to zero as some instruments do. What is left of the
        noise then has a positive mean where little light is emitted.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same data.

    Returns
    -------
    Fluorescence
        A `PlantedTensor` with the wavelengths, ``emission`` and ``excitation``.

    See Also
    --------
    noisy_tensor : A tensor with random factors.
    codiag.constraints.NonNegative : The constraint that suits such data.

    Examples
    --------
    >>> import codiag
    >>> from codiag.synthetic import fluorescence
    >>> measured = fluorescence(scatter=True, seed=0)
    >>> fit = codiag.factorize(measured.tensor, 4, constraints="nonnegative", seed=0)
    >>> codiag.factor_error(fit, measured) < 0.1
    True
    """
    sizes = check_shape(shape, "shape")
    if len(sizes) != 3:
        raise ValueError(f"shape must be three sizes: samples, emission and excitation; got {sizes}")
    as_number("rank", rank, integer=True)
    as_number("noise", noise, zero=True)
    as_flag("scatter", scatter)
    as_flag("clip", clip)
    rng = as_generator(seed)
    emission, excitation = np.linspace(*EMISSION, sizes[1]), np.linspace(*EXCITATION, sizes[2])
    factors = (rng.uniform(size=(sizes[0], rank)), *_spectra(emission, excitation, rank, rng))
    norms = [np.linalg.norm(factor, axis=0) for factor in factors]
    weights = np.prod(norms, axis=0)
    factors = tuple(factor / norm for factor, norm in zip(factors, norms, strict=True))
    clean = FactoredTensor(weights, factors).to_dense()
    errors = rng.standard_normal(sizes)
    tensor = clean + noise * np.linalg.norm(clean) / np.linalg.norm(errors) * errors
    if clip:
        tensor = np.maximum(tensor, 0.0)
    if scatter:
        tensor[:, _scattered(emission, excitation)] = np.nan
    return Fluorescence(tensor, weights, factors, emission, excitation)


def _spectra(
    emission: np.ndarray, excitation: np.ndarray, rank: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the spectra of substances whose highest peaks are spread over the wavelengths of excitation."""
    strata = (rng.permutation(rank) + rng.uniform(0.2, 0.8, rank)) / rank
    main = 250 + 130 * strata
    emitted = _peaks(emission, main + rng.uniform(30, 90, rank), rng.uniform(15, 30, rank))
    second = rng.uniform(0.2, 0.8, rank) * _peaks(
        excitation, main - rng.uniform(30, 60, rank), rng.uniform(8, 16, rank)
    )
    return emitted, _peaks(excitation, main, rng.uniform(10, 22, rank)) + second


def _peaks(wavelengths: np.ndarray, places: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return Gaussian peaks of height one, a column each."""
    return np.exp(-(((wavelengths[:, None] - places) / widths) ** 2) / 2)


def _scattered(emission: np.ndarray, excitation: np.ndarray) -> np.ndarray:
    """Tell where light is scattered towards the detector, at the wavelength of excitation or twice that."""
    return np.any([np.abs(emission[:, None] - order * excitation) < BAND for order in (1, 2)], axis=0)
