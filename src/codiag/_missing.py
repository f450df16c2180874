"""Entries that are missing: NaN, masked, or said to be."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from codiag._array import Array, like, to_host


def without_missing(raw: Any, observed: Any) -> tuple[Any, Any]:
    """Return an array with zeros where entries are missing, and which are not; what is no array stays as it is.

    Missing are NaN, what a masked array masks, and what `observed` gives no weight, whatever stands there. None in
    place of the second where nothing is missing.
    """
    if isinstance(raw, np.ma.MaskedArray):
        hidden = np.ma.getmaskarray(raw)
        raw, observed = raw.filled(0), _both(observed, ~hidden) if hidden.any() else observed
    if not is_array_api_obj(raw) or getattr(raw, "ndim", 0) < 3 or not hasattr(raw, "dtype"):
        return raw, observed
    xp = array_namespace(raw)
    if observed is not None and np.shape(observed) == tuple(raw.shape):
        given = np.asarray(to_host(observed) if is_array_api_obj(observed) else observed)
        if given.dtype.kind in "buif" and not np.all(given > 0):
            raw = _zeroed(raw, given > 0)
    if not xp.isdtype(raw.dtype, "real floating") or not bool(xp.isnan(xp.sum(raw))):
        return raw, observed
    known = ~np.isnan(to_host(raw))
    return (raw, observed) if known.all() else (_zeroed(raw, known), _both(observed, known))


def _zeroed(raw: Array, known: np.ndarray) -> Array:
    xp = array_namespace(raw)
    return xp.where(xp.astype(like(known, raw), xp.bool), raw, xp.zeros_like(raw))


def _both(observed: Any, known: np.ndarray) -> np.ndarray:
    """Return weights of entries that are known and were said to be observed."""
    if observed is None:
        return known
    given = np.asarray(to_host(observed) if is_array_api_obj(observed) else observed)
    return np.where(known, given, 0) if given.shape == known.shape else given
