"""Factorizations in ``.npz`` files: arrays, and rules by their names and what they were made with; never code."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from dataclasses import astuple, fields, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag import constraints, losses
from codiag._arrays import to_host
from codiag._text import Table, save_arrays
from codiag.constraints import Combined, Constraint, as_constraints
from codiag.labels import Labels
from codiag.losses import as_loss
from codiag.problem import LogEntry, Problem
from codiag.result._linearization import Deviance, has_few_entries

if TYPE_CHECKING:
    from codiag.result._factorization import Factorization

FORMAT = "codiag factorization 2"

KNOWN = ("_noise_errors", "_sensitivity", "_noise_model", "_noise", "_assessment")
"""What standard errors and `diagnose` are made of, once it has been computed."""


@cache
def _kinds() -> dict[str, type]:
    """Return the constraints, losses and errors of codiag by name, which files hold with all their numbers."""
    from codiag.diagnosis import Assessment
    from codiag.inference import NoiseModel, Sensitivity, UnitErrors

    rules = {name: getattr(package, name) for package in (constraints, losses) for name in package.__all__}
    return rules | {kind.__name__: kind for kind in (UnitErrors, NoiseModel, Sensitivity, Assessment, Combined)}


class RuleNotGivenError(ValueError):
    """Raised if a loss or a constraint is not that of a file, or is not given where a file has its name only."""


def recorded(thing: Any, arrays: dict[str, np.ndarray], key: str) -> Any:
    """Return a constraint, a loss or errors as JSON can hold them; arrays that belong to them are added to `arrays`.

    What is not codiag's own has its name only.
    """
    if thing is None or isinstance(thing, float):
        return thing
    name, values = type(thing).__name__, dict[str, Any]()
    if _kinds().get(name) is not type(thing):
        return [name]
    for field in fields(_kinds()[name]):
        value, place = getattr(thing, field.name), f"{key}_{field.name}"
        value = value.item() if isinstance(value, np.generic) else value
        if isinstance(thing, Combined):
            values[field.name] = {"rules": [recorded(rule, arrays, f"{place}_{n}") for n, rule in enumerate(value)]}
        elif isinstance(value, list | tuple) and any(
            hasattr(part, "shape") or isinstance(part, list) for part in value
        ):
            values[field.name] = {"arrays": [part is not None for part in value]}
            arrays |= {f"{place}_{index}": np.asarray(part) for index, part in enumerate(value) if part is not None}
        elif isinstance(value, Table):
            values[field.name] = {"columns": [str(column) for column in value]}
            arrays |= {f"{place}_{column}": array for column, array in value.items()}
        elif hasattr(value, "shape"):
            arrays[place] = to_host(value)
        else:
            values[field.name] = value
    return [name, values]


def restored(record: Any, file: Mapping[str, np.ndarray], key: str, given: Any = None) -> Any:
    """Return what `recorded` wrote: the given constraint or loss if it is not codiag's own."""
    if isinstance(record, float):
        return record
    name, *stated = record or ["NoneType", {}]
    if given is not None or not stated:
        if type(given).__name__ != name:
            argument = key.split("_")[0]
            raise RuleNotGivenError(
                f"{argument} must be that of the fit, {name}: Factorization.load(path, {argument}=...), since a file "
                f"has no code and only the name of what is not codiag's own; got {given!r}"
            )
        return given
    if record is None:
        return None
    kind, values = _kinds()[name], {}
    for field in fields(kind):
        value, place = stated[0].get(field.name), f"{key}_{field.name}"
        if isinstance(value, dict) and "columns" in value:
            value = Table({column: file[f"{place}_{column}"] for column in value["columns"]})
        elif isinstance(value, dict) and "rules" in value:
            value = tuple(restored(rule, file, f"{place}_{n}") for n, rule in enumerate(value["rules"]))
        elif isinstance(value, dict):
            parts = enumerate(value["arrays"])
            value = tuple(file[f"{place}_{index}"] if is_there else None for index, is_there in parts)
        values[field.name] = file[place] if place in file else value if kind is Combined else _as_tuples(value)
    return kind(**values)


def _as_tuples(value: Any) -> Any:
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def write_fit(path: Path, fit: Factorization) -> None:
    """Write a fit, all of it or nothing."""
    meta = {
        "format": FORMAT,
        "relative_error": fit.relative_error,
        "norm": fit._norm,
        "converged": fit.converged,
        "symmetric": fit._symmetric,
        "order": len(fit.factors),
        "history": [list(stage) for stage in fit.history],
        "n_observed": fit.problem.n_observed,
        "settings": dict(fit._settings),
    }
    factors = fit.factors[:1] if fit._symmetric else fit.factors
    arrays = {f"factor_{mode}": to_host(factor) for mode, factor in enumerate(factors)}
    meta["loss"] = recorded(fit.problem.loss, arrays, "loss")
    meta["deviance"] = None if fit._deviance is None else astuple(fit._deviance)
    if fit.problem.constraints is not None:
        by_mode = enumerate(fit.problem.constraints)
        meta["constraints"] = [recorded(constraint, arrays, f"constraints_{mode}") for mode, constraint in by_mode]
    if fit.problem.labels is not None:
        meta["names"] = list(fit.problem.labels.names)
        meta["ordered"] = list(fit.problem.labels.ordered)
        meta["attributes"] = [_writable(attributes) for attributes in fit.problem.labels.attributes]
        arrays |= {
            f"labels_{mode}": values for mode, values in enumerate(fit.problem.labels.values) if values is not None
        }
    meta["known"] = {name: recorded(vars(fit)[name], arrays, name) for name in KNOWN if name in vars(fit)}
    if fit.problem.has_data and has_few_entries(fit.problem):
        meta["shared"] = fit.problem.symmetric
        arrays |= _data(fit.problem)
        arrays |= {} if fit._entry_weights is None else {"entry_weights": to_host(fit._entry_weights)}
    save_arrays(path, arrays | {"weights": to_host(fit.weights), "meta": np.array(json.dumps(meta))})


def _data(problem: Problem) -> dict[str, np.ndarray]:
    """Return the arrays of a problem."""
    weights = problem.observed_mask() if problem.tensor.is_partial and problem.weights is None else problem.weights
    arrays = {"tensor": problem.tensor.to_dense(), "problem_weights": weights, "second_moment": problem.second_moment}
    return {name: to_host(array) for name, array in arrays.items() if array is not None}


def _writable(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that are text or numbers, such as units."""
    return {str(key): value for key, value in attributes.items() if isinstance(value, str | int | float | bool)}


def _labels(meta: dict[str, Any], file: Any) -> Labels | None:
    names = meta.get("names")
    if names is None:
        return None
    values = tuple(file[key] if (key := f"labels_{mode}") in file else None for mode in range(len(names)))
    return Labels(names, values, tuple(meta.get("attributes", ())), tuple(meta.get("ordered", ())))


def read_fit(path: Path, kind: type[Factorization], loss: Any, rules: Any) -> Factorization:
    """Read a fit, or raise an error of almost any kind; nothing in the file is ever executed."""
    with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as file:
        meta = json.loads(str(file["meta"]))
        if meta["format"] != FORMAT:
            raise KeyError("format")
        order, symmetric = meta["order"], meta["symmetric"]
        factors = [file[f"factor_{mode}"] for mode in range(1 if symmetric else order)]
        deviance = meta["deviance"]
        fit = kind(
            weights=file["weights"],
            factors=tuple(factors * (order if symmetric else 1)),
            relative_error=meta["relative_error"],
            converged=meta["converged"],
            history=tuple(LogEntry(*stage) for stage in meta["history"]),
            _norm=meta["norm"],
            _deviance=None if deviance is None else Deviance(*deviance),
            _entry_weights=file.get("entry_weights"),
            _settings=meta["settings"],
        )
        stated = {
            "loss": restored(meta["loss"], file, "loss", as_loss(loss)),
            "constraints": _constraints(meta, file, as_constraints(rules, order)),
            "labels": _labels(meta, file),
        }
        fit = replace(fit, problem=_problem(fit, stated, meta, file))
        vars(fit).update({name: restored(record, file, name) for name, record in meta["known"].items()})
        return fit


def _problem(fit: Factorization, stated: dict[str, Any], meta: dict[str, Any], file: Any) -> Problem:
    """Return the problem of a file, without data if the file has none."""
    if "tensor" not in file:
        return fit.problem.stating(n_observed=meta["n_observed"], **stated)
    shared = meta["shared"]
    return Problem(
        file["tensor"],
        fit.rank,
        weights=file.get("problem_weights"),
        symmetric=tuple(shared) if isinstance(shared, list) else shared,
        second_moment=file.get("second_moment"),
        **stated,
    )


def _constraints(meta: dict[str, Any], file: Any, given: Any) -> tuple[Constraint | None, ...] | None:
    free = (None,) * meta["order"]
    pairs = enumerate(zip(meta.get("constraints") or free, given or free, strict=True))
    rules = tuple(restored(record, file, f"constraints_{mode}", rule) for mode, (record, rule) in pairs)
    return rules if any(rules) else None
