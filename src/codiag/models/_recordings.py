"""Recordings of several channels: one array, a list of arrays, or epochs, and what is made of them in the same form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array, validate_data

from codiag._validation import UndeterminedError

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

    def centered(self) -> tuple[np.ndarray, Recordings]:
        """Return the mean over all samples, and the recordings without it."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean = np.sum([array.mean(axis=0) * (len(array) / self.n_samples) for array in self.arrays], axis=0)
            largest = max(float(np.max(np.abs(array - mean))) for array in self.arrays)
        if not largest < 1e100:
            raise ValueError(f"X must hold numbers whose fourth powers are numbers; some are {largest:.0e}. Divide it")
        if largest < 1e-60:
            raise UndeterminedError(
                f"X must hold samples that differ; the largest distance from their mean is {largest:.0e}"
            )
        return mean, Recordings([array - mean for array in self.arrays], self.form)


def as_recordings(estimator: Any, raw: Any, *, first: bool, least: int = 2) -> Recordings:
    """Return recordings in double precision, or say what is wrong with them; the first sets the number of channels.

    An array of shape (n_samples, n_channels) is one recording, one of shape (n_epochs, n_channels, n_times) holds an
    epoch a recording, and a list of arrays of two axes holds recordings of any lengths.
    """
    if isinstance(raw, list | tuple) and raw and all(getattr(one, "ndim", 0) == 2 for one in raw):
        arrays = [as_samples(estimator, one, first and not place, 1) for place, one in enumerate(raw)]
        found = Recordings(arrays, "list")
    elif getattr(raw, "ndim", 2) == 3:
        cube = check_array(raw, allow_nd=True, dtype=np.float64, input_name="X")
        found = Recordings([as_samples(estimator, epoch.T, first, 1) for epoch in cube], "epochs")
    else:
        return Recordings([as_samples(estimator, raw, first, least)], "array")
    if found.n_samples < least:
        raise ValueError(f"X must hold at least {least} samples in all recordings; got {found.n_samples}")
    return found


def as_samples(estimator: Any, raw: Any, first: bool, least: int) -> np.ndarray:
    """Return samples of one recording, (n_samples, n_channels)."""
    with np.errstate(over="ignore", invalid="ignore"):  # sums of finite numbers may not be finite
        samples: np.ndarray = validate_data(estimator, raw, reset=first, dtype=np.float64, ensure_min_samples=least)
    return samples
