"""Constraints as plain data, for files: the kind by its name, and what it was made with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NoReturn

import numpy as np

from codiag._array import Array, to_host
from codiag.constraints._base import Constraint
from codiag.constraints._fixed import Fixed
from codiag.constraints._nonnegative import NonNegative
from codiag.constraints._orthogonal import Orthogonal
from codiag.constraints._ridge import Ridge

KINDS: dict[str, type[Constraint]] = {kind.__name__: kind for kind in (Fixed, NonNegative, Orthogonal, Ridge)}


@dataclass(frozen=True, eq=False)
class Unknown(Constraint):
    """A constraint that a file has the name of, and nothing else: not one of codiag's own."""

    by_rows: ClassVar[bool] = True

    name: str

    def project(self, factor: Array) -> NoReturn:
        raise ValueError(
            f"constraints of your own are not kept in files, and the factor had to satisfy {self.name}; use the fit "
            "itself, or put the constraint back with dataclasses.replace(fit, constraints=...)"
        )


def recorded(constraint: Constraint | None, arrays: dict[str, np.ndarray], place: str) -> list[Any] | None:
    """Return a constraint as JSON can hold it; arrays that belong to it are added to `arrays`, by the place."""
    if constraint is None:
        return None
    record: list[Any] = [type(constraint).__name__]
    if record[0] not in KINDS:
        return [record[0], constraint.by_rows]
    for field in fields(constraint):
        value = getattr(constraint, field.name)
        if isinstance(value, int | float):
            record.append(float(value))
        else:
            arrays[place] = to_host(value)
    return record


def restored(record: Sequence[Any] | None, file: Mapping[str, np.ndarray], place: str) -> Constraint | None:
    """Return the constraint that `recorded` wrote; one that is not codiag's own only tells its name."""
    if record is None:
        return None
    name, *values = record
    if name in KINDS:
        return KINDS[name](*values, *([file[place]] if place in file else []))
    return Unknown(name) if values[0] else None
