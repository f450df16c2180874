"""The options of a model of a crowd: whether they are what they must be, and what they say before any vote."""

from __future__ import annotations

from typing import Any

import numpy as np

from codiag._validation import as_flag, as_number
from codiag.models._crowd_em import Prior
from codiag.models._crowd_start import as_numbers
from codiag.models._vote_order import Order
from codiag.models._votes import Votes

WORDS = {"init": ("moments", "majority"), "prior": ("estimated", "uniform")}
"""What options may be that may also be arrays."""


def check_options(model: Any) -> None:
    """Raise unless the options of an estimator are what they must be."""
    as_number("em_rounds", model.em_rounds, integer=True, zero=True)
    as_flag("one_coin", model.one_coin)
    if model.copies not in ("share", "count"):
        raise ValueError(f"copies must be 'share' or 'count'; got {model.copies!r}")
    as_number("tol", model.tol, zero=True)
    as_number("pooling", model.pooling, zero=True)
    if model.pooling > 1:
        raise ValueError(f"pooling must be between 0 and 1; got {model.pooling}")
    if not isinstance(model.smoothing, str):
        as_number("smoothing", model.smoothing, zero=True)
    elif model.smoothing != "estimated":
        raise ValueError(f"smoothing must be 'estimated' or a number; got {model.smoothing!r}")
    elif model.pooling > 0:
        raise ValueError(
            f"pooling must be 0 where smoothing is 'estimated', which learns from all workers by itself; got "
            f"{model.pooling}. Give the votes to add, smoothing=1.0"
        )
    for name, words in WORDS.items():
        value = getattr(model, name)
        if isinstance(value, str) and value not in words:
            raise ValueError(f"{name} must be {words[0]!r}, {words[1]!r} or an array; got {value!r}")


def as_prior(
    votes: Votes, prior: Any, smoothing: float | str, pooling: float, *, one_coin: bool, order: Order | None = None
) -> Prior:
    """Return what is added to the votes; nothing where that is estimated later.

    Where votes are in an order of their own, shares of classes are given in that they came in.
    """
    k = votes.classes.size
    shares = None if isinstance(prior, str) else as_numbers("prior", prior)
    if isinstance(prior, str) and prior == "uniform":
        shares = np.full(k, 1 / k)
    if shares is not None and (shares.shape != (k,) or not np.all(shares > 0) or not abs(shares.sum() - 1) < 1e-6):
        raise ValueError(f"prior must hold {k} positive shares of sum one, one for each class; got {shares}")
    shares = shares if shares is None or order is None else order.applied(shares, "c")
    added = 0.0 if isinstance(smoothing, str) else float(smoothing)
    typical = pooled(votes) if pooling > 0 else np.full((k, k), 1 / k)
    cells = added * k * (pooling * typical + (1 - pooling) / k)
    return Prior(cells / k if one_coin else cells, added, shares, one_coin)


def pooled(votes: Votes) -> np.ndarray:
    """Return the confusion matrix (given, true) of all workers as one, the majority taken for the truth."""
    cells = (votes.by_worker @ votes.shares).reshape(votes.workers.size, votes.classes.size, -1).sum(axis=0) + 1
    return cells / cells.sum(axis=0)
