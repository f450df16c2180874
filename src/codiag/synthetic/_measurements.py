"""Simulated measurements: fluorescence spectra of mixtures, and signals mixed to channels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.signal import lfilter

from codiag._checks import RNGLike, as_flag, as_generator, as_number
from codiag._text import ReprMixin
from codiag.synthetic._matrices import mild_factor
from codiag.synthetic._tensors import PlantedTensor
from codiag.tensors import FactoredTensor, check_shape

WARM_UP = 1000
"""Samples that are discarded at the beginning of filtered signals, so that these are stationary."""


@dataclass(frozen=True, eq=False, repr=False)
class Fluorescence(PlantedTensor):
    """Emission-excitation matrices of samples, and the concentrations and spectra from which they were made."""

    emission: np.ndarray  # wavelengths in nanometers
    excitation: np.ndarray


def fluorescence(
    shape: Sequence[int] = (15, 40, 25),
    rank: int = 4,
    *,
    noise: float = 0.02,
    scatter: bool = False,
    clip: bool = False,
    rng: RNGLike = None,
) -> Fluorescence:
    r"""Draw emission-excitation matrices of samples that mix a few fluorescent substances.

    The emission spectrum of a substance is a Gaussian peak, 30 to 90 nm above the highest peak of its excitation
    spectrum, which has a second, lower peak at a shorter wavelength. The tensor is
    :math:`T_{ijl} = \sum_r a_{ir} b_{jr} c_{lr}` with concentrations a, uniform on [0, 1], emission spectra b and
    excitation spectra c. Gaussian noise R is added with :math:`\|R\| = \epsilon \|T\|`.

    Parameters
    ----------
    shape : sequence of three int
        Numbers of samples, of emission wavelengths (280 to 500 nm) and of excitation wavelengths (240 to 400 nm).
    rank : int
        Number of substances, k.
    noise : float
        Norm of the noise relative to that of the tensor, :math:`\epsilon`.
    scatter : bool
        Whether entries that scattered light would dominate are missing (NaN): emission within 12 nm of the excitation
        wavelength (Rayleigh scatter of first order) or of twice that wavelength (of second order).
    clip : bool
        Whether negative entries are set to zero, as some instruments do. The noise then has a positive mean in entries
        with little light.
    rng : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same data.

    Returns
    -------
    Fluorescence
        With the ``tensor`` (samples, emission, excitation), NaN for missing entries; the ``weights`` (k,) of the
        substances; the ``factors`` (concentrations, emission spectra, excitation spectra), with unit columns; and the
        wavelengths ``emission`` and ``excitation`` in nanometers.

    See Also
    --------
    noisy_tensor : A tensor with random factors.
    codiag.constraints.NonNegative : The constraint for such data.

    Examples
    --------
    >>> import codiag
    >>> from codiag.synthetic import fluorescence
    >>> measured = fluorescence(scatter=True, rng=0)
    >>> fit = codiag.factorize(measured.tensor, 4, constraints="nonnegative", rng=0)
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
    rng = as_generator(rng)
    # nanometers
    emission, excitation = np.linspace(280.0, 500.0, sizes[1]), np.linspace(240.0, 400.0, sizes[2])
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
    """Draw the spectra of substances whose highest peaks are spread over the excitation wavelengths."""
    strata = (rng.permutation(rank) + rng.uniform(0.2, 0.8, rank)) / rank
    main = 250 + 130 * strata
    emitted = _peaks(emission, main + rng.uniform(30, 90, rank), rng.uniform(15, 30, rank))
    second = rng.uniform(0.2, 0.8, rank) * _peaks(
        excitation, main - rng.uniform(30, 60, rank), rng.uniform(8, 16, rank)
    )
    return emitted, _peaks(excitation, main, rng.uniform(10, 22, rank)) + second


def _peaks(wavelengths: np.ndarray, centers: np.ndarray, widths: np.ndarray) -> np.ndarray:
    """Return Gaussian peaks of height one, as columns."""
    return np.exp(-(((wavelengths[:, None] - centers) / widths) ** 2) / 2)


def _scattered(emission: np.ndarray, excitation: np.ndarray) -> np.ndarray:
    """Return a boolean array (emission, excitation): true for Rayleigh scatter of first or second order."""
    # nanometers, a typical value
    return np.any([np.abs(emission[:, None] - order * excitation) < 12.0 for order in (1, 2)], axis=0)


@dataclass(frozen=True, eq=False, repr=False)
class MixedSignals(ReprMixin):
    """Channels, and the sources and the mixing from which they were made."""

    channels: np.ndarray  # (n_samples, n_channels): sources @ mixing.T plus noise
    sources: np.ndarray  # (n_samples, k), of mean zero and unit variance
    mixing: np.ndarray  # (n_channels, k)
    kinds: tuple[str, ...]


def mixed_signals(
    n_samples: int,
    kinds: Sequence[str] = ("sinusoid", "autoregressive", "square", "bursts"),
    *,
    n_channels: int | None = None,
    noise: float = 0.0,
    rng: RNGLike = None,
) -> MixedSignals:
    r"""Draw sources of given kinds and mix them to channels, :math:`x_t = A s_t + \epsilon\, w_t`.

    Kinds of signals with correlation in time: ``"sinusoid"`` and ``"square"`` waves of random frequency and phase,
    ``"autoregressive"`` (Gaussian with a random resonance) and ``"bursts"`` (rare decaying excitations). Kinds with
    independent samples: ``"uniform"``, ``"binary"``, ``"laplace"``, ``"exponential"``, ``"sparse"`` (nine of ten
    samples are small) and ``"gaussian"``.

    Parameters
    ----------
    n_samples : int
        Number of samples in time.
    kinds : sequence of str
        The kind of each source.
    n_channels : int, optional
        Number of channels; by default the number of sources.
    noise : float
        Standard deviation of white noise in the channels, relative to the root mean square of the channels.
    rng : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same data.

    Returns
    -------
    MixedSignals
        With ``channels`` (n_samples, n_channels); ``sources`` (n_samples, k) of mean zero and unit variance; the
        ``mixing`` A (n_channels, k), a well-conditioned matrix with unit columns; and the ``kinds`` of the sources.

    See Also
    --------
    codiag.models.SOBI : A model of sources with different spectra.
    codiag.models.JADE : A model of sources that are not Gaussian.
    codiag.metrics.minimum_distance : The distance of an unmixing from the true one.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import mixed_signals
    >>> mixed = mixed_signals(1000, ["uniform", "laplace"], rng=0)
    >>> bool(np.allclose(mixed.channels, mixed.sources @ mixed.mixing.T))
    True
    """
    as_number("n_samples", n_samples, integer=True)
    as_number("noise", noise, zero=True)
    names = _checked_kinds(kinds)
    if n_samples < 2:
        raise ValueError(f"n_samples must be at least 2, for sources of unit variance; got {n_samples}")
    n_rows = len(names) if n_channels is None else n_channels
    as_number("n_channels", n_rows, integer=True)
    if n_rows < len(names):
        raise ValueError(f"n_channels must be at least {len(names)}, the number of sources; got {n_rows}")
    rng = as_generator(rng)
    sources = np.stack([KINDS[name](rng, n_samples) for name in names], axis=1)
    sources = sources - sources.mean(axis=0)
    deviations = sources.std(axis=0)
    sources = sources / np.where(deviations > 0, deviations, 1)
    mixing = mild_factor(n_rows, len(names), rng)
    clean = sources @ mixing.T
    deviation = noise * np.sqrt(np.mean(clean**2))
    return MixedSignals(clean + deviation * rng.standard_normal(clean.shape), sources, mixing, names)


def _checked_kinds(kinds: Any) -> tuple[str, ...]:
    is_sequence = hasattr(kinds, "__len__") and hasattr(kinds, "__iter__") and not isinstance(kinds, str)
    if not is_sequence or len(kinds) == 0 or any(not isinstance(name, str) or name not in KINDS for name in kinds):
        raise ValueError(f"kinds must be a sequence of names out of {', '.join(KINDS)}; got {kinds!r}")
    return tuple(kinds)


def _sinusoid(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.sin(2 * np.pi * (rng.uniform(0.005, 0.1) * np.arange(n) + rng.random()))


def _square(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where((rng.uniform(0.002, 0.05) * np.arange(n) + rng.random()) % 1 < 0.5, 1.0, -1.0)


def _autoregressive(rng: np.random.Generator, n: int) -> np.ndarray:
    radius, frequency = rng.uniform(0.5, 0.95), rng.uniform(0, np.pi)
    return _filtered(rng.standard_normal(n + WARM_UP), [1.0, -2 * radius * np.cos(frequency), radius**2])


def _bursts(rng: np.random.Generator, n: int) -> np.ndarray:
    excitations = rng.standard_normal(n + WARM_UP) * (rng.random(n + WARM_UP) < 0.02)
    return _filtered(excitations, [1.0, -rng.uniform(0.6, 0.95)])


def _sparse(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.standard_normal(n) * np.where(rng.random(n) < 0.1, 1.0, 0.1)


def _filtered(innovations: np.ndarray, denominator: Sequence[float]) -> np.ndarray:
    signal: np.ndarray = lfilter([1.0], denominator, innovations)[WARM_UP:]
    return signal


KINDS: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "sinusoid": _sinusoid,
    "square": _square,
    "autoregressive": _autoregressive,
    "bursts": _bursts,
    "uniform": lambda rng, n: rng.uniform(-1, 1, n),
    "binary": lambda rng, n: rng.choice([-1.0, 1.0], n),
    "laplace": lambda rng, n: rng.laplace(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "sparse": _sparse,
    "gaussian": lambda rng, n: rng.standard_normal(n),
}
