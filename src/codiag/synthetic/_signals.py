"""Signals of several kinds, mixed to channels as sensors record them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.signal import lfilter

from codiag._checks import Seed, as_generator, as_number
from codiag.synthetic._factors import mild_factor

WARM_UP = 1000
"""Samples before the first that is kept, so that filters have forgotten where they began."""


@dataclass(frozen=True, eq=False)
class MixedSignals:
    """Channels, and the sources and the mixing that they were made from.

    Attributes
    ----------
    channels : numpy.ndarray of shape (n_samples, n_channels)
        ``sources @ mixing.T`` and noise.
    sources : numpy.ndarray of shape (n_samples, k)
        Of mean zero and unit variance.
    mixing : numpy.ndarray of shape (n_channels, k)
        The mixing matrix A.
    kinds : tuple of str
        What each source is.

    See Also
    --------
    mixed_signals : Draws one.

    Examples
    --------
    >>> from codiag.synthetic import mixed_signals
    >>> mixed = mixed_signals(1000, ["sinusoid", "bursts"], n_channels=3, seed=0)
    >>> mixed.channels.shape, mixed.mixing.shape, mixed.kinds
    ((1000, 3), (3, 2), ('sinusoid', 'bursts'))
    """

    channels: np.ndarray
    sources: np.ndarray
    mixing: np.ndarray
    kinds: tuple[str, ...]


def mixed_signals(
    n_samples: int,
    kinds: Sequence[str] = ("sinusoid", "autoregressive", "square", "bursts"),
    *,
    n_channels: int | None = None,
    noise: float = 0.0,
    seed: Seed = None,
) -> MixedSignals:
    r"""Draw sources of given kinds and mix them to channels, :math:`x_t = A s_t + \epsilon\, w_t`.

    Kinds with an order in time: ``"sinusoid"`` and ``"square"`` waves of random frequency and phase,
    ``"autoregressive"``, Gaussian with a random resonance, ``"bursts"``, rare decaying excitations, and ``"loud"``,
    Gaussian with a variance that changes slowly. Independent samples: ``"uniform"``, ``"binary"``, ``"laplace"``,
    ``"exponential"``, ``"sparse"``, nine of ten of them small, and ``"gaussian"``.

    Parameters
    ----------
    n_samples : int
        Length of the recording.
    kinds : sequence of str
        One for each source.
    n_channels : int, optional
        By default as many as sources.
    noise : float
        Standard deviation of white noise in the channels, relative to the root mean square of these.
    seed : int, sequence of int or numpy.random.Generator, optional
        The same seed gives the same data.

    Returns
    -------
    MixedSignals
        With a mixing of mild condition, whose columns have unit length.

    See Also
    --------
    codiag.models.SOBI : Separates sources with different spectra.
    codiag.models.JADE : Separates sources that are not Gaussian.
    codiag.models.NSS : Separates sources whose variances change.
    codiag.metrics.minimum_distance : Compares an unmixing with the truth.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.synthetic import mixed_signals
    >>> mixed = mixed_signals(1000, ["uniform", "laplace"], seed=0)
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
    rng = as_generator(seed)
    sources = np.stack([KINDS[name](rng, n_samples) for name in names], axis=1)
    sources = sources - sources.mean(axis=0)
    spread = sources.std(axis=0)
    sources = sources / np.where(spread > 0, spread, 1)
    mixing = mild_factor(n_rows, len(names), rng)
    clean = sources @ mixing.T
    size = noise * np.sqrt(np.mean(clean**2))
    return MixedSignals(clean + size * rng.standard_normal(clean.shape), sources, mixing, names)


def _checked_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    listed = hasattr(kinds, "__len__") and hasattr(kinds, "__iter__") and not isinstance(kinds, str)
    if not listed or len(kinds) == 0 or any(not isinstance(name, str) or name not in KINDS for name in kinds):
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


def _loud(rng: np.random.Generator, n: int) -> np.ndarray:
    period = rng.uniform(0.1, 0.5) * n
    return rng.standard_normal(n) * np.exp(np.sin(2 * np.pi * (np.arange(n) / period + rng.random())))


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
    "loud": _loud,
    "uniform": lambda rng, n: rng.uniform(-1, 1, n),
    "binary": lambda rng, n: rng.choice([-1.0, 1.0], n),
    "laplace": lambda rng, n: rng.laplace(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "sparse": _sparse,
    "gaussian": lambda rng, n: rng.standard_normal(n),
}
