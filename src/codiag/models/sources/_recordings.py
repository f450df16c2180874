"""Recordings of several channels: one array, a list of arrays, or epochs, and what is made of them in the same form."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from codiag._checks import UndeterminedError
from codiag.models.mixtures import as_rows

LARGEST = 1e100
"""Numbers from which on fourth powers are beyond those of double precision."""
LONGEST = 2**13
"""Samples of a piece that is transformed at a time, at most: correlations across its ends are left out."""


@dataclass(frozen=True, eq=False)
class Recordings:
    """Recordings of the same channels, (n_samples, n_channels) each, and the form in which they were given."""

    arrays: list[np.ndarray]
    form: str  # "array", "list" or "epochs"

    @property
    def n_samples(self) -> int:
        """How many samples there are in all recordings."""
        return sum(array.shape[0] for array in self.arrays)

    def mapped(self, function: Callable[[np.ndarray], np.ndarray]) -> Any:
        """Return what a function of the samples of a recording gives, in the form of the recordings."""
        made = [function(array) for array in self.arrays]
        if self.form == "array":
            return made[0]
        return made if self.form == "list" else np.stack([array.T for array in made])

    def pieces(self) -> Iterator[np.ndarray]:
        """Yield the recordings in pieces of nearly equal lengths, short enough for the cache when transformed."""
        for array in self.arrays:
            yield from np.array_split(array, -(-array.shape[0] // LONGEST))

    def leading(self, n_samples: int) -> Recordings:
        """Return the first samples, so many over all recordings where there are that many."""
        ends = np.cumsum([0] + [len(array) for array in self.arrays])
        kept = [array[: n_samples - end] for array, end in zip(self.arrays, ends, strict=False) if end < n_samples]
        return Recordings(kept, "list")

    def centered(self) -> tuple[np.ndarray, Recordings]:
        """Return the mean over all samples, and the recordings without it."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.sum([array.mean(axis=0) * (len(array) / self.n_samples) for array in self.arrays], axis=0)
            largest = max(float(np.max(np.abs(array - mean))) for array in self.arrays)
        _check_size(largest)
        if largest < 1e-60:
            raise UndeterminedError(
                f"X must hold samples that differ; the largest distance from their mean is {largest:.0e}"
            )
        return mean, Recordings([array - mean for array in self.arrays], self.form)


FORMS = "(n_samples, n_channels), (n_epochs, n_channels, n_times), or a list of arrays of the former shape"
"""What recordings may be, in words."""
GAPS = "Leave these samples out, and give the stretches between them as a list of recordings"


def as_recordings(estimator: Any, raw: Any, *, first: bool, least: int = 2) -> Recordings:
    """Return recordings in double precision, or say what is wrong with them; the first sets the number of channels.

    An array of shape (n_samples, n_channels) is one recording, one of shape (n_epochs, n_channels, n_times) holds an
    epoch a recording, and a list of arrays of two axes holds recordings of any lengths.
    """
    form = _form_of(estimator, raw)
    if form == "array":
        return Recordings([as_samples(estimator, raw, first, least)], "array")
    if form == "list":
        arrays = [as_samples(estimator, one, first and not place, 1) for place, one in enumerate(raw)]
    else:
        cube = check_array(raw, allow_nd=True, dtype=np.float64, input_name="X", ensure_all_finite=False)
        if 0 in cube.shape:
            raise ValueError(f"X must hold epochs, channels and times, at least one each; got shape {cube.shape}")
        arrays = [as_samples(estimator, epoch.T, first and not place, 1) for place, epoch in enumerate(cube)]
    found = Recordings(arrays, form)
    if found.n_samples < least:
        raise ValueError(f"X must hold at least {least} samples in all recordings; got {found.n_samples}")
    return found


def _form_of(estimator: Any, raw: Any) -> str:
    """Return the form of recordings, or say that it is none."""
    if isinstance(raw, Iterator) or (callable(raw) and not hasattr(raw, "__array__")):
        raise TypeError(
            f"X must be at hand for {type(estimator).__name__}, {FORMS}, since samples are read more than once; got "
            f"{type(raw).__name__}. Concatenate the parts"
        )
    _check_mask(raw)
    if raw is None or (isinstance(raw, str | bytes | Mapping | set) and not hasattr(raw, "ndim")):
        raise TypeError(f"X must be {FORMS}; got {type(raw).__name__}")
    if isinstance(raw, list | tuple):
        axes = [_n_axes(one) for one in raw]
        if axes and all(getattr(one, "ndim", 0) == 2 for one in raw):
            return "list"
        if max(axes, default=0) > 1:
            raise ValueError(f"X must be {FORMS}; got a list whose first items have {axes[:3]} axes")
        return "array"
    n_axes = getattr(raw, "ndim", 2)
    if n_axes > 3:
        raise ValueError(f"X must be {FORMS}; got an array of {n_axes} axes")
    return "epochs" if n_axes == 3 else "array"


def _n_axes(item: Any) -> int:
    """Return the number of axes of an array, or how deep lists are nested, as the first items have it."""
    if isinstance(item, list | tuple):
        return 1 + (_n_axes(item[0]) if item else 0)
    return int(getattr(item, "ndim", 0))


def _check_mask(raw: Any) -> None:
    n_masked = int(np.sum(np.ma.getmaskarray(raw))) if np.ma.isMaskedArray(raw) else 0
    if n_masked:
        raise ValueError(f"X must hold all samples; {n_masked} entries are masked. {GAPS}")


def _check_size(largest: float) -> None:
    if not largest < LARGEST:
        raise ValueError(f"X must hold numbers whose fourth powers are numbers; some are {largest:.0e}. Divide it")


def rank_advice(n_samples: int, n_channels: int) -> str:
    """Return what to tell users where covariances of so few samples are singular, nothing where they need not be."""
    if n_samples > n_channels:
        return ""
    return (
        f"X has {n_samples} samples of {n_channels} channels, and covariances of so few are singular. If its rows are "
        "channels, transpose it: rows are samples, (n_samples, n_channels), and epochs (n_epochs, n_channels, n_times)"
    )


def samples_of_part(part: Any) -> np.ndarray:
    """Return the samples of a part of a stream, (n_samples, n_channels); the parts of a bag are lists of arrays."""
    for one in part if isinstance(part, list | tuple) else [part]:
        _check_mask(one)
    samples = check_array(as_rows(part), dtype=np.float64, input_name="X", ensure_all_finite=False)
    return summable(_finite(samples))


def summable(samples: np.ndarray) -> np.ndarray:
    """Return samples, or say that their products are not numbers."""
    _check_size(float(np.max(np.abs(samples))))
    return samples


def as_samples(estimator: Any, raw: Any, first: bool, least: int) -> np.ndarray:
    """Return samples of one recording, (n_samples, n_channels)."""
    _check_mask(raw)
    samples: np.ndarray = validate_data(
        estimator, raw, reset=first, dtype=np.float64, ensure_min_samples=least, ensure_all_finite=False
    )
    return _finite(samples)


def _finite(samples: np.ndarray) -> np.ndarray:
    """Return samples, or say where they are not numbers."""
    finite = np.isfinite(samples)
    if not finite.all():
        sample, channel = np.argwhere(~finite)[0]
        kind = "NaN" if np.any(np.isnan(samples)) else "infinity"
        raise ValueError(
            f"X must hold finite numbers. Input X contains {kind}: {np.sum(~finite)} of {samples.size} entries, the "
            f"first in sample {sample}, channel {channel}. {GAPS}"
        )
    return samples
