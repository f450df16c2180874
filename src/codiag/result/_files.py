"""Factorizations in ``.npz`` files; constraints and losses by their names, and what they were made with."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._arrays import to_host
from codiag._text import save_arrays
from codiag.constraints import Constraint, Fixed, NonNegative, Orthogonal, Ridge
from codiag.labels import Labels
from codiag.losses import Bernoulli, Huber, Loss, NegativeBinomial, Poisson, Scatter
from codiag.problem import Stage
from codiag.result._scored import Deviance

KINDS: dict[str, type] = {
    kind.__name__: kind for kind in (Fixed, NonNegative, Orthogonal, Ridge, Bernoulli, Huber, NegativeBinomial, Poisson)
}
"""Constraints and losses that files can hold, by name."""


def _name_of(rule: Constraint | Loss) -> str:
    name = type(rule).__name__
    if KINDS.get(name) is not type(rule):
        raise ValueError(
            f"constraints and loss must be codiag's own to be kept in a file; got {name}. Pickle the fit instead, or "
            "save dataclasses.replace(fit, constraints=None, goodness=None)"
        )
    return name


def recorded(constraint: Constraint | None, arrays: dict[str, np.ndarray], key: str) -> list[Any] | None:
    """Return a constraint as JSON can hold it; arrays that belong to it are added to `arrays`, by the place."""
    if constraint is None:
        return None
    record: list[Any] = [_name_of(constraint)]
    for field in fields(constraint):
        value = getattr(constraint, field.name)
        if isinstance(value, int | float):
            record.append(float(value))
        else:
            arrays[key] = to_host(value)
    return record


def restored(record: Sequence[Any] | None, file: Mapping[str, np.ndarray], key: str) -> Constraint | None:
    """Return the constraint that `recorded` wrote."""
    if record is None:
        return None
    name, *values = record
    constraint: Constraint = KINDS[name](*values, *([file[key]] if key in file else []))
    return constraint


if TYPE_CHECKING:
    from codiag.result._factorization import Factorization

FORMAT = "codiag factorization 1"


def write_fit(path: Path, fit: Factorization) -> None:
    """Write a fit, all of it or nothing."""
    meta = {
        "format": FORMAT,
        "relative_error": fit.relative_error,
        "norm": fit.norm,
        "converged": fit.converged,
        "symmetric": fit.symmetric,
        "order": len(fit.factors),
        "residual_excess": fit.residual_excess,
        "stages": [list(stage) for stage in fit.stages],
        "n_observed": fit.n_observed,
    }
    if fit.goodness is not None:
        meta["loss"] = [_name_of(fit.goodness.loss), asdict(fit.goodness.loss)]
        meta["deviance"] = [getattr(fit.goodness, part.name) for part in fields(fit.goodness)[1:]]
    factors = fit.factors[:1] if fit.symmetric else fit.factors
    arrays = {f"factor_{mode}": to_host(factor) for mode, factor in enumerate(factors)}
    if fit.constraints is not None:
        by_mode = enumerate(fit.constraints)
        meta["constraints"] = [recorded(constraint, arrays, f"constraint_{mode}") for mode, constraint in by_mode]
    if fit.labels is not None:
        meta["names"] = list(fit.labels.names)
        meta["attributes"] = [_writable(attributes) for attributes in fit.labels.attributes]
        arrays |= {f"labels_{mode}": values for mode, values in enumerate(fit.labels.values) if values is not None}
    if fit.problem is not None or "sensitivity" in vars(fit):
        meta |= {"noise": fit.noise, "n_parameters": fit.sensitivity.n_parameters}
        meta["undetermined"] = fit.sensitivity.undetermined
        arrays |= {f"sensitivity_{mode}": fit.sensitivity.entries[mode] for mode in range(len(factors))}
        arrays |= {"worth": fit.sensitivity.worth, "sensitivity_weights": fit.sensitivity.weights}
    if fit.scatter is not None:
        meta |= {"explains_residual": fit.scatter.explains_residual, "replication": fit.residual_replication}
        arrays |= fit.scatter.to_arrays()
        arrays |= {f"error_{mode}": fit.entry_standard_errors[mode] for mode in range(len(factors))}
        arrays["weight_errors"] = fit.weight_standard_errors
    save_arrays(path, arrays | {"weights": to_host(fit.weights), "meta": np.array(json.dumps(meta))})


def _writable(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that are text or numbers, such as units."""
    return {str(key): value for key, value in attributes.items() if isinstance(value, str | int | float | bool)}


def read_fit(path: Path, kind: type[Factorization]) -> Factorization:
    """Read a fit, or raise an error of almost any kind; nothing in the file is ever executed."""
    with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as file:
        meta = json.loads(str(file["meta"]))
        if meta["format"] != FORMAT:
            raise KeyError("format")
        order, symmetric = meta["order"], meta["symmetric"]
        factors = [file[f"factor_{mode}"] for mode in range(1 if symmetric else order)]
        fit = kind(
            weights=file["weights"],
            factors=tuple(factors * (order if symmetric else 1)),
            relative_error=meta["relative_error"],
            norm=meta["norm"],
            converged=meta["converged"],
            stages=tuple(Stage(*stage) for stage in meta["stages"]),
            residual_excess=meta.get("residual_excess"),
            symmetric=symmetric,
            n_observed=meta.get("n_observed"),
            constraints=_constraints(meta, file),
            labels=_labels(meta, file),
            goodness=_goodness(meta),
        )
        if "worth" in file:
            _restore_sensitivity(fit, meta, file)
        if "explains_residual" in meta:
            _restore_noise(fit, meta, file)
        return fit


def _goodness(meta: dict[str, Any]) -> Deviance | None:
    """Return the loss and its deviance; None for least squares."""
    if "loss" not in meta:
        return None
    name, options = meta["loss"]
    return Deviance(KINDS[name](**options), *meta["deviance"])


def _constraints(meta: dict[str, Any], file: Any) -> Any:
    records = meta.get("constraints")
    if records is None:
        return None
    return tuple(restored(record, file, f"constraint_{mode}") for mode, record in enumerate(records))


def _labels(meta: dict[str, Any], file: Any) -> Labels | None:
    names = meta.get("names")
    if names is None:
        return None
    values = tuple(file[key] if (key := f"labels_{mode}") in file else None for mode in range(len(names)))
    return Labels(names, values, tuple(meta.get("attributes", ())))


def _restore_noise(fit: Factorization, meta: dict[str, Any], file: Any) -> None:
    order = len(fit.factors)
    scatter = Scatter.from_arrays(file, fit.shape, explains_residual=meta["explains_residual"])
    errors = [file[f"error_{mode}"] for mode in range(1 if fit.symmetric else order)] * (order if fit.symmetric else 1)
    vars(fit).update(
        scatter=scatter,
        residual_replication=meta["replication"],
        entry_standard_errors=tuple(errors),
        weight_standard_errors=file["weight_errors"],
    )


def _restore_sensitivity(fit: Factorization, meta: dict[str, Any], file: Any) -> None:
    from codiag.theory import Sensitivity

    order = len(fit.factors)
    entries = [file[f"sensitivity_{mode}"] for mode in range(1 if fit.symmetric else order)]
    rows = tuple(tuple(mode) for mode in meta["undetermined"])
    worth = file["worth"]
    weights = file["sensitivity_weights"] if "sensitivity_weights" in file else np.full_like(worth, np.nan)
    entries = entries * (order if fit.symmetric else 1)
    known = Sensitivity(tuple(entries), worth, meta["n_parameters"], rows, weights)
    vars(fit).update(sensitivity=known, noise=meta["noise"])
