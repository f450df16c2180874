"""Data sets that are tensors: fluorescence of water samples, and bacteria over time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from codiag.datasets._registry import check_contents, locate

NEAR_RAYLEIGH, NEAR_RAMAN, BELOW = 20.0, 12.0, 5.0
"""Nanometres around the scatter of water, and below the excitation, that are left out."""

RAMAN_SHIFT = 3400.0
"""Of water, in inverse centimetres."""

DIGITS = 1e4
"""Units in which a checksum counts entries that are not whole."""


@dataclass(frozen=True, eq=False)
class FluorescenceData:
    """Fluorescence of samples by emission and excitation.

    Attributes
    ----------
    tensor : array of shape (n_samples, n_emission, n_excitation)
        As measured, with the scatter of water.
    samples : array of str of shape (n_samples,)
        Names.
    emission, excitation : arrays
        Wavelengths in nanometres.

    See Also
    --------
    load_eem : Returns one.
    """

    tensor: np.ndarray
    samples: np.ndarray
    emission: np.ndarray
    excitation: np.ndarray

    def without_scatter(self) -> np.ndarray:
        """Return the tensor with NaN where light is scattered, and not fluorescence: Rayleigh's and Raman's lines.

        Returns
        -------
        numpy.ndarray
            Of the same shape; `codiag.factorize` takes NaN for missing.
        """
        emission, excitation = self.emission[:, None], self.excitation[None, :]
        raman = 1e7 / (1e7 / excitation - RAMAN_SHIFT)
        scattered = np.abs(emission - excitation) < NEAR_RAYLEIGH
        scattered |= np.abs(emission - 2 * excitation) < NEAR_RAYLEIGH
        scattered |= np.abs(emission - raman) < NEAR_RAMAN
        scattered |= emission < excitation - BELOW
        return np.where(scattered, np.nan, self.tensor)


def load_eem(*, download: bool = False) -> FluorescenceData:
    """Load the fluorescence of 15 water samples, the example of the R package staRdom.

    Parameters
    ----------
    download : bool
        The published file is one of R, which takes other software to read; so this raises unless the data set is in
        ``CODIAG_DATA_DIR`` or in the cache.

    Returns
    -------
    FluorescenceData
        ``tensor`` of shape (15, 99, 46), samples x emission x excitation, and ``without_scatter()``.

    See Also
    --------
    load_microbiome : Another tensor.
    codiag.choose_rank : How many substances fluoresce.

    Examples
    --------
    >>> from codiag.datasets import is_local, load_eem
    >>> eem = load_eem() if is_local("eem") else None
    """
    with np.load(locate("eem", download=download)[0], allow_pickle=False) as file:
        data = FluorescenceData(
            file["X"].astype(np.float64), file["samples"].astype(str), file["emission"], file["excitation"]
        )
    check_contents("eem", [np.rint(DIGITS * data.tensor), data.emission, data.excitation, data.samples])
    return data


def load_microbiome(*, download: bool = False) -> np.ndarray:
    """Load counts of bacteria in eight replicates over 110 days.

    Parameters
    ----------
    download : bool
        The published file is one of R, which takes other software to read; so this raises unless the data set is in
        ``CODIAG_DATA_DIR`` or in the cache.

    Returns
    -------
    array of shape (8, 28, 110)
        Counts, replicates x taxa x days. They are usually taken as ``log(count + 1)``, centred over taxa and replicates
        and scaled by taxon.

    See Also
    --------
    load_eem : Another tensor.

    Examples
    --------
    >>> from codiag.datasets import is_local, load_microbiome
    >>> counts = load_microbiome() if is_local("microbiome") else None
    """
    with np.load(locate("microbiome", download=download)[0], allow_pickle=False) as file:
        counts = np.asarray(file["counts"], dtype=np.float64)
    check_contents("microbiome", [counts])
    return counts
