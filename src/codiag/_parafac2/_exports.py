"""Other forms of a fit of PARAFAC2: sentences, datasets of xarray, files."""

from __future__ import annotations

import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._parafac2._model import Rules
from codiag._parafac2._slices import Slices
from codiag._text import as_npz, as_path, counted, reason_of, save_arrays
from codiag.labels import Labels
from codiag.problem import LogEntry

if TYPE_CHECKING:
    from codiag._parafac2._fit import Parafac2Fit

FORMAT = "codiag parafac2 1"

REFERENCES = (
    "H. A. L. Kiers, J. M. F. ten Berge and R. Bro, PARAFAC2 - Part I. A direct fitting algorithm for the PARAFAC2 "
    "model, J. Chemometrics 13, 1999; P. Tichavsky and A. Yeredor, Fast approximate joint diagonalization "
    "incorporating weight matrices, IEEE Trans. Signal Process. 57(3), 2009 (start by joint diagonalization)"
)


def description(fit: Parafac2Fit) -> str:
    """Return what `Parafac2Fit.describe` does."""
    rows = [basis.shape[0] for basis in fit.projections]
    sizes = str(rows[0]) if len(set(rows)) == 1 else f"{min(rows)} to {max(rows)}"
    rules = fit._rules
    signs = [name for name, is_bound in (("A", rules.nonnegative_a), ("C", rules.nonnegative_c)) if is_bound]
    bound = f", with no negative entries of {' and '.join(signs)}" if signs else ""
    bound += f", with a ridge of {rules.ridge:.3g} on all factors" if rules.ridge else ""
    n_starts = sum("steps" not in stage.name and "missing" not in stage.name for stage in fit.history)
    seed = fit._settings.get("rng")
    return (
        f"A PARAFAC2 decomposition with {counted(fit.rank, 'component')} was fitted to {fit.shape[0]} slices of "
        f"{sizes} rows and {counted(fit.shape[2], 'column')} by least squares{bound}; it explains "
        f"{100 * (1 - fit.relative_error**2):.4g} % of the variance. It was computed with codiag "
        f"{fit._settings.get('version')}{'' if seed is None else f' (rng={seed})'}, the best of "
        f"{counted(n_starts, 'start')}, and {'converged' if fit.converged else 'did not converge'}. Standard "
        f"errors and confidence intervals are by first-order theory, for white noise.\n\nReferences: {REFERENCES}."
    )


def as_dataset(fit: Parafac2Fit, *, standard_errors: bool) -> Any:
    """Return what `Parafac2Fit.to_xarray` does."""
    from xarray import Dataset

    slice_name, row, column = fit.labels.names
    n_slices, rank, _ = fit.shape
    most = max(basis.shape[0] for basis in fit.projections)

    def padded(arrays: Any) -> np.ndarray:
        whole = np.full((n_slices, most, rank), np.nan)
        for k, one in enumerate(arrays):
            whole[k, : len(one)] = one
        return whole

    a, _, c = fit.factors
    variables: dict[str, Any] = {
        "weights": ("component", fit.weights),
        f"factor_{slice_name}": ((slice_name, "component"), a),
        f"factor_{column}": ((column, "component"), c),
        "correlations": (("component", "other_component"), fit.correlations),
        "evolving": ((slice_name, row, "component"), padded(fit.evolving)),
    }
    if standard_errors:
        error_a, errors, error_c = fit.entry_standard_errors
        variables["weights_standard_error"] = ("component", fit.weight_standard_errors)
        variables[f"factor_{slice_name}_standard_error"] = ((slice_name, "component"), error_a)
        variables[f"factor_{column}_standard_error"] = ((column, "component"), error_c)
        variables["evolving_standard_error"] = ((slice_name, row, "component"), padded(errors))
    coords: dict[str, Any] = {"component": np.arange(rank), "other_component": np.arange(rank)}
    pairs = zip(fit.labels.names, fit.labels.values, strict=True)
    coords |= {name: values for name, values in pairs if values is not None}
    if fit.rows is not None and len({len(one) for one in fit.rows}) == 1 and np.all(fit.rows[0] == fit.rows[-1]):
        coords[row] = fit.rows[0]
    return Dataset(variables, coords, {"relative_error": fit.relative_error, "converged": int(fit.converged)})


def write_fit(path: Any, fit: Parafac2Fit) -> None:
    """Write what `Parafac2Fit.save` does."""
    name = str(as_path("path", path))
    arrays: dict[str, np.ndarray] = {"weights": fit.weights}
    arrays |= dict(zip(("a", "b", "c"), fit.factors, strict=True))
    arrays["sizes"] = np.array([basis.shape[0] for basis in fit.projections])
    arrays["projections"] = np.concatenate(fit.projections)
    if fit._slices is not None and not fit._slices.is_sparse:
        arrays["slices"] = fit._slices.matrix
    if fit.rows is not None:
        arrays["rows"] = np.concatenate(fit.rows)
    arrays |= {f"labels_{i}": values for i, values in enumerate(fit.labels.values) if values is not None}
    meta = {"format": FORMAT, "relative_error": fit.relative_error, "converged": bool(fit.converged),
            "history": [list(stage) for stage in fit.history], "p_missed": fit.p_missed, "names": fit.labels.names,
            "rules": asdict(fit._rules), "settings": dict(fit._settings)}  # fmt: skip
    target = Path(name if name.lower().endswith(".npz") else name + ".npz")
    save_arrays(target, arrays | {"meta": np.array(json.dumps(meta))})


def read_fit(path: Any, kind: type[Parafac2Fit]) -> Parafac2Fit:
    """Read what `Parafac2Fit.load` does."""
    path = as_npz(path)
    try:
        with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as file:
            return _read(file, kind)
    except Exception as error:  # damage shows as errors of almost any kind
        raise ValueError(f"{path} was not written by Parafac2Fit.save, or is damaged: {reason_of(error)}") from error


def _read(file: Any, kind: type[Parafac2Fit]) -> Parafac2Fit:
    meta = json.loads(str(file["meta"]))
    if meta["format"] != FORMAT:
        raise KeyError("format")
    ends = np.cumsum(file["sizes"])[:-1]
    labels = Labels(tuple(meta["names"]), tuple(file.get(f"labels_{i}") for i in range(3)))
    rows = tuple(np.split(file["rows"], ends)) if "rows" in file else None
    return kind(
        file["weights"],
        (file["a"], file["b"], file["c"]),
        tuple(np.split(file["projections"], ends)),
        meta["relative_error"],
        meta["converged"],
        tuple(LogEntry(*stage) for stage in meta["history"]),
        meta["p_missed"],
        labels,
        rows,
        Slices(file["slices"], file["sizes"], labels, rows) if "slices" in file else None,
        Rules(**meta["rules"]),
        meta["settings"],
    )
