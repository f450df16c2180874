"""Recordings of channels: arrays, epochs, lists of recordings and objects of MNE, in double precision."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from codiag._checks import RankDeficientError


@dataclass(frozen=True, eq=False)
class Recordings:
    """Recordings of the same channels, (n_samples, n_channels) each, and the form in which they were given."""

    arrays: list[np.ndarray]
    form: str  # "array", "list" or "epochs"

    @property
    def n_samples(self) -> int:
        """Number of samples of all recordings."""
        return sum(array.shape[0] for array in self.arrays)

    def mapped(self, function: Callable[[np.ndarray], np.ndarray]) -> Recordings:
        """Return recordings of a function of the samples."""
        return Recordings([function(array) for array in self.arrays], self.form)

    def in_form(self) -> Any:
        """Return an array, a list, or epochs (n_epochs, n_channels, n_times), as the recordings were given."""
        if self.form == "array":
            return self.arrays[0]
        return self.arrays if self.form == "list" else np.stack([array.T for array in self.arrays])

    def pieces(self) -> Iterator[np.ndarray]:
        """Yield the recordings in pieces of nearly equal lengths, short enough for a transform in the cache."""
        for array in self.arrays:
            # correlations across the ends of pieces are left out
            yield from np.array_split(array, -(-array.shape[0] // 2**13))

    def check_number(self) -> None:
        """Raise unless there are more samples than channels."""
        n_channels = self.arrays[0].shape[1]
        if self.n_samples <= n_channels:
            raise RankDeficientError(
                f"X must have more samples than channels; got {self.n_samples} samples of {n_channels} channels. If "
                "its rows are channels, transpose it: (n_samples, n_channels), or (n_epochs, n_channels, n_times)"
            )


def as_recordings(estimator: Any, raw: Any, *, first: bool, least: int = 2) -> Recordings:
    """Return recordings in double precision; `first` if they set the number of channels of the estimator.

    An array of shape (n_samples, n_channels) is one recording, an array of shape (n_epochs, n_channels, n_times) holds
    one recording per epoch, and a list of arrays of two axes holds recordings of any lengths.
    """
    raw = _from_mne(raw)
    if isinstance(raw, list | tuple) and raw and all(getattr(item, "ndim", 0) == 2 for item in raw):
        form, arrays = "list", list(raw)
    elif getattr(raw, "ndim", 2) == 3:
        form, arrays = "epochs", [epoch.T for epoch in np.ma.asanyarray(raw)]
    else:
        form, arrays = "array", [raw]
    if not arrays:
        raise ValueError(f"X must contain one epoch or more; got shape {raw.shape}")
    n_needed = least if form == "array" else 1
    checked = [
        _in_double(partial(validate_data, estimator, reset=first and not place, ensure_min_samples=n_needed), array)
        for place, array in enumerate(arrays)
    ]
    if any(np.iscomplexobj(array) for array in checked) and not estimator.takes_complex:
        raise ValueError("Complex data not supported: X must be real. codiag.models.SOBI takes complex recordings")
    return Recordings(checked, form)


def as_sources(raw: Any) -> np.ndarray:
    """Return sources, (n_samples, n_components) or (n_epochs, n_components, n_times), in double precision."""
    return _in_double(lambda X, **checks: check_array(X, allow_nd=True, input_name="X", **checks), raw)  # noqa: N803


def _from_mne(raw: Any) -> Any:
    """Return the samples of objects of MNE: of continuous ones, (n_samples, n_channels), and of epochs, as they are.

    Whatever has a method `get_data` counts, such as Raw, Epochs and Evoked; other data is returned unchanged.
    """
    read = getattr(raw, "get_data", None)
    if not callable(read) or hasattr(raw, "__array__"):
        return raw
    data = np.asarray(read())
    return data.T if data.ndim == 2 else data


def _in_double(check: Callable[..., np.ndarray], raw: Any) -> np.ndarray:
    """Return an array that was checked, in double precision; checks of scikit-learn refuse complex ones."""
    n_masked = int(np.sum(np.ma.getmaskarray(raw))) if np.ma.isMaskedArray(raw) else 0
    if n_masked:
        raise ValueError(
            f"X must contain all samples; {n_masked} entries are masked. Give the stretches between them as a list"
        )
    entries = raw if sparse.issparse(raw) else np.asarray(raw)
    if entries.dtype.kind != "c":
        return check(X=raw, dtype=np.float64)
    return check(X=entries.real, dtype=np.float64) + 1j * check(X=entries.imag, dtype=np.float64)
