"""What modes and their indices are called: kept with results, and never computed with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True, eq=False)
class Labels:
    """Names of modes, and labels of their indices.

    Attributes
    ----------
    names : tuple of str
        One for each mode.
    values : tuple of arrays of shape (d_m,), or None
        Numbers, dates or text; None for a mode whose indices are just counted.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.tables import Labels
    >>> Labels(("sample", "time"), (["a", "b"], np.arange(3.0))).values[0].tolist()
    ['a', 'b']
    """

    names: tuple[str, ...]
    values: tuple[np.ndarray | None, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(str(name) for name in self.names))
        object.__setattr__(self, "values", tuple(None if own is None else as_labels(own) for own in self.values))

    @classmethod
    def counted(cls, order: int) -> Labels:
        """Name modes by their numbers.

        Parameters
        ----------
        order : int
            How many modes there are.

        Returns
        -------
        Labels
        """
        return cls(tuple(f"mode_{mode}" for mode in range(order)), (None,) * order)

    def index(self, mode: int, size: int) -> np.ndarray:
        """Return the labels of a mode, numbers from 0 where it has none.

        Parameters
        ----------
        mode, size : int
            Which mode, and how many indices it has.

        Returns
        -------
        array of shape (size,)
        """
        own = self.values[mode]
        return np.arange(size) if own is None else own

    def difference(self, other: Labels, mode: int) -> str | None:
        """Return the name of a mode, another than the given one, whose labels or names differ.

        Parameters
        ----------
        other : Labels
        mode : int
            The one that is not compared.

        Returns
        -------
        str or None
            None where none does, or nothing is known of one or the other.
        """
        pairs = zip(self.names, other.names, self.values, other.values, strict=True)
        for place, (name, their_name, ours, theirs) in enumerate(pairs):
            same = ours is None or theirs is None or np.array_equal(ours, theirs)
            if place != mode and not (same and name == their_name):
                return name
        return None


class Labelled(NamedTuple):
    """A tensor and the labels of its modes; `codiag.factorize` takes it as it is.

    Attributes
    ----------
    tensor : array or Tensor
    labels : Labels or None

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.tables import Labelled, Labels
    >>> labels = Labels(("sample", "dose", "time"), (["a", "b", "c"], None, None))
    >>> codiag.factorize(Labelled(np.ones((3, 4, 5)), labels), 1, seed=0).labels.names
    ('sample', 'dose', 'time')
    """

    tensor: Any
    labels: Labels | None


def as_labels(raw: Any) -> np.ndarray:
    """Return labels as numbers, dates or text, whichever they are; what is none of these is written out."""
    values = np.asarray(raw)
    if values.dtype.kind in "biufmMU":
        return values
    return np.array([str(one) for one in values.tolist()], dtype=str)
