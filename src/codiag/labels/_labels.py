"""Names of modes and labels of their indices, and arrays of names: results carry them, algorithms do not see them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date
from numbers import Real
from typing import Any, NamedTuple, Self, TypeAlias

import numpy as np

from codiag._arrays import TensorLike


@dataclass(frozen=True, eq=False)
class Labels:
    """Names of modes, and labels of their indices.

    Attributes
    ----------
    names : tuple of str
        One for each mode, all different.
    values : tuple of arrays of shape (d_m,), or None
        Numbers, dates or text; None for a mode without labels, whose indices are numbers from 0.
    attributes : tuple of dict
        What else is known of the labels of each mode: the attributes of a coordinate of xarray, such as ``units``.
    ordered : tuple of str
        Names of modes whose labels are text in an order, such as weekdays: neighbours may have correlated noise, and
        their profiles are drawn as lines. Numbers and dates always are in order.

    See Also
    --------
    labelled_tensor : Reads them from a table.
    codiag.Factorization.to_table : The factors with their labels.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.io import Labels
    >>> Labels(("sample", "time"), (["a", "b"], np.arange(3.0))).values[0].tolist()
    ['a', 'b']
    """

    names: tuple[str, ...]
    values: tuple[np.ndarray | None, ...]
    attributes: tuple[Mapping[str, Any], ...] = ()
    ordered: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(str(name) for name in self.names))
        if len(set(self.names)) < len(self.names):
            raise ValueError(f"names of modes must be different; got {self.names}")
        if len(self.values) != len(self.names):
            raise ValueError(
                f"values must be labels, or None, for each of {len(self.names)} modes; got {len(self.values)}"
            )
        object.__setattr__(self, "values", tuple(None if raw is None else as_labels(raw) for raw in self.values))
        if len(self.attributes) not in (0, len(self.names)):
            raise ValueError(
                f"attributes must be dicts for each of {len(self.names)} modes, or none; got {len(self.attributes)}"
            )
        known = tuple(dict(each) for each in self.attributes) or tuple({} for _ in self.names)
        object.__setattr__(self, "attributes", known)
        if set(self.ordered) - set(self.names):
            raise ValueError(f"ordered must be names of modes, of {self.names}; got {self.ordered}")

    @property
    def are_ordered(self) -> tuple[bool, ...]:
        """Whether the indices of each mode are in an order.

        Examples
        --------
        >>> from codiag.io import Labels
        >>> Labels(("patient", "time", "day"), (["a", "b"], [0.0, 0.5], ["Mon", "Tue"]), ordered=("day",)).are_ordered
        (False, True, True)
        """
        pairs = zip(self.names, self.values, strict=True)
        return tuple(name in self.ordered or own is None or own.dtype.kind in "biufmM" for name, own in pairs)

    @classmethod
    def of(cls, raw: Any) -> Self:
        """Read what users give for labels: names of modes, or labels of their indices by name.

        Parameters
        ----------
        raw : Labels, sequence of str, or dict of str to labels or None
            Labels are returned as they are.

        Returns
        -------
        Labels
            With the modes in the order of the sequence or the dict.

        Examples
        --------
        >>> from codiag.io import Labels
        >>> Labels.of(["sample", "time"]).values
        (None, None)
        >>> Labels.of({"sample": ["a", "b"], "time": None}).names
        ('sample', 'time')
        """
        if isinstance(raw, cls):
            return raw
        if isinstance(raw, Mapping):
            return cls(tuple(raw), tuple(raw.values()))
        if isinstance(raw, Sequence) and not isinstance(raw, str) and all(isinstance(name, str) for name in raw):
            return cls(tuple(raw), (None,) * len(raw))
        raise TypeError(
            f"labels must be names of the modes, or a dict of names to labels of the indices; got {type(raw).__name__}"
        )

    @classmethod
    def counted(cls, order: int) -> Self:
        """Name modes by their numbers.

        Parameters
        ----------
        order : int
            The number of modes.

        Returns
        -------
        Labels
            With the names ``mode_0``, ``mode_1``, ..., and no labels of indices.

        Examples
        --------
        >>> from codiag.io import Labels
        >>> Labels.counted(3).names
        ('mode_0', 'mode_1', 'mode_2')
        """
        return cls(tuple(f"mode_{mode}" for mode in range(order)), (None,) * order)

    def title(self, mode: int) -> str:
        """Return the name of a mode, with the unit of its labels if it is known.

        Parameters
        ----------
        mode : int
            The mode.

        Returns
        -------
        str
            As on the axes of plots.

        Examples
        --------
        >>> from codiag.io import Labels
        >>> labels = Labels(("sample", "emission"), (None, [300, 310]), ({}, {"units": "nm"}))
        >>> labels.title(0), labels.title(1)
        ('sample', 'emission (nm)')
        """
        unit = self.attributes[mode].get("units")
        return f"{self.names[mode]} ({unit})" if isinstance(unit, str) and unit else self.names[mode]

    def index(self, mode: int, size: int) -> np.ndarray:
        """Return the labels of a mode, numbers from 0 if it has none.

        Parameters
        ----------
        mode, size : int
            The mode, and the number of its indices.

        Returns
        -------
        array of shape (size,)
            The labels, or the numbers from 0 to ``size - 1``.

        Examples
        --------
        >>> from codiag.io import Labels
        >>> labels = Labels(("sample", "time"), (["a", "b"], None))
        >>> labels.index(0, 2).tolist(), labels.index(1, 3).tolist()
        (['a', 'b'], [0, 1, 2])
        """
        labels = self.values[mode]
        return np.arange(size) if labels is None else labels

    def difference(self, other: Self, mode: int) -> str | None:
        """Return the name of the first mode, except the given one, whose name or labels differ.

        Parameters
        ----------
        other : Labels
            The labels to compare with.
        mode : int
            The mode that is not compared.

        Returns
        -------
        str or None
            None if no mode differs; a mode without labels differs from none.

        Examples
        --------
        >>> from codiag.io import Labels
        >>> old = Labels(("sample", "time"), (["a", "b"], [0.0, 0.5]))
        >>> new = Labels(("sample", "time"), (["c", "d"], [0.0, 1.0]))
        >>> old.difference(new, mode=0), old.difference(new, mode=1)
        ('time', 'sample')
        """
        pairs = zip(self.names, other.names, self.values, other.values, strict=True)
        for at, (name, their_name, ours, theirs) in enumerate(pairs):
            same = ours is None or theirs is None or _are_equal(ours, theirs)
            if at != mode and not (same and name == their_name):
                return name
        return None


LabelsLike: TypeAlias = Labels | Sequence[str] | Mapping[str, Any] | None
"""Labels as users give them: names of the modes, or a dict from names to labels of the indices."""


class Labelled(NamedTuple):
    """A tensor and the labels of its modes; `codiag.factorize` takes it as it is.

    Attributes
    ----------
    tensor : array or Tensor
        The entries.
    labels : Labels or None
        The names of the modes and the labels of their indices, if there are any.

    See Also
    --------
    labelled_tensor : Makes one from a long table.
    Labels : The names and labels.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.io import Labelled, Labels
    >>> labels = Labels(("sample", "dose", "time"), (["a", "b", "c"], None, None))
    >>> codiag.factorize(Labelled(np.ones((3, 4, 5)), labels), 1, rng=0).problem.labels.names
    ('sample', 'dose', 'time')
    """

    tensor: TensorLike
    labels: Labels | None


def as_labels(raw: Any) -> np.ndarray:
    """Return labels as an array of numbers, dates or text; other objects become text.

    Dates of Python and of pandas become dates, in universal time if they have a time zone. Different labels stay
    different: if 1 and "1" are among them, both are written as in Python.
    """
    values = np.asarray(raw) if hasattr(raw, "__array__") else as_vector(list(raw))
    if values.dtype.kind in "biufmMU":
        return values
    if values.dtype.kind == "S":
        return np.char.decode(values, "utf-8", "replace")
    listed = values.tolist()
    if listed and all(isinstance(label, Real) and not isinstance(label, bool) for label in listed):
        return np.array(listed)
    if listed and all(isinstance(label, date) for label in listed):
        return np.array([_without_zone(label) for label in listed], dtype="datetime64")
    texts = [str(label) for label in listed]
    if len({(isinstance(label, str), text) for label, text in zip(listed, texts, strict=True)}) > len(set(texts)):
        texts = [repr(label) for label in listed]
    return np.array(texts, dtype=str)


def _without_zone(label: Any) -> Any:
    return label.astimezone(UTC).replace(tzinfo=None) if getattr(label, "tzinfo", None) else label


def _are_equal(ours: np.ndarray, theirs: np.ndarray) -> bool:
    """Return whether labels are the same; NaN equals NaN, and NaT equals NaT."""
    numbers = "biuf"
    if ours.dtype.kind != theirs.dtype.kind and not (ours.dtype.kind in numbers and theirs.dtype.kind in numbers):
        return False
    return bool(np.array_equal(ours, theirs, equal_nan=ours.dtype.kind != "U"))


def as_vector(entries: list[Any]) -> np.ndarray:
    """Return a vector of unchanged entries; NumPy would convert mixed lists to strings and tuples to rows."""
    if len({type(entry) for entry in entries}) == 1 and isinstance(entries[0], str | int | float | np.generic):
        return np.asarray(entries)
    vector = np.empty(len(entries), dtype=object)
    vector[:] = entries
    return vector


def sorted_names(entries: list[Any]) -> np.ndarray:
    """Return the different entries, sorted if they can be compared, else in the order of their first occurrence."""
    names = list(dict.fromkeys(entries))
    try:
        return as_vector(sorted(names))
    except TypeError:
        return as_vector(names)


def encoded(entries: list[Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return the different entries, as `sorted_names`, and the place of every entry among them."""
    names = sorted_names(entries)
    places = {name: place for place, name in enumerate(names.tolist())}
    return names, np.fromiter((places[entry] for entry in entries), dtype=np.int64, count=len(entries))
