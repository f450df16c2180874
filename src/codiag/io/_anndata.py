"""Single cells: means of groups as a tensor, cells as slices, and fits beside the cells in an AnnData object."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from codiag._arrays import to_host
from codiag.labels import Labelled, Labels, as_vector

if TYPE_CHECKING:
    from codiag._parafac2 import Parafac2Fit
    from codiag.result import Factorization


class GroupMeans(NamedTuple):
    """Means over the cells of each group with labels, NaN if a group is empty, and numbers of cells as weights."""

    tensor: Labelled
    weights: np.ndarray


def from_anndata(adata: Any, by: Sequence[str] = ("donor", "cell_type"), layer: str | None = None) -> GroupMeans:
    """Average the cells of each group, such as those of a donor and a type, into a labelled tensor.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells by genes. Cells without a group are left out.
    by : sequence of str
        Columns of ``adata.obs``, two or more: each is a mode; the last mode has the genes.
    layer : str, optional
        The layer of the values, such as logarithms of normalized counts; by default ``adata.X``.

    Returns
    -------
    GroupMeans
        ``tensor``, with NaN for groups without cells, and ``weights`` of its shape, the numbers of cells: the variance
        of a mean is inversely proportional to them.

    See Also
    --------
    slices_from_anndata : Cells themselves, for `codiag.parafac2`.
    to_anndata : The way back.

    Examples
    --------
    >>> import codiag
    >>> import numpy as np
    >>> import pandas as pd
    >>> from types import SimpleNamespace
    >>> obs = pd.DataFrame({"donor": list("aabbab"), "cell_type": list("TBTBTB"), "day": [1, 1, 1, 1, 2, 2]})
    >>> cells = SimpleNamespace(X=np.ones((6, 5)), obs=obs, var_names=list("vwxyz"), layers={})  # or an AnnData
    >>> tensor, weights = codiag.io.from_anndata(cells, by=("donor", "cell_type", "day"))
    >>> tensor.tensor.shape, int(weights[..., 0].sum()), tensor.labels.names
    ((2, 2, 2, 5), 6, ('donor', 'cell_type', 'day', 'gene'))
    """
    if isinstance(by, str) or len(by) < 2:
        raise ValueError(f"by must be two columns or more of adata.obs; got {by!r}. For one use slices_from_anndata")
    values = _values(adata, layer)
    codes, levels = zip(*(_groups(adata, name) for name in by), strict=True)
    is_known = np.all(np.stack(codes) >= 0, axis=0)
    shape = tuple(len(each) for each in levels)
    group = np.ravel_multi_index(tuple(code[is_known] for code in codes), shape)
    members = sparse.csr_array(
        (np.ones(group.size), (group, np.flatnonzero(is_known))), (math.prod(shape), len(codes[0]))
    )
    sums, counts = members @ values, np.bincount(group, minlength=math.prod(shape))[:, None]
    sums = sums.toarray() if sparse.issparse(sums) else np.asarray(sums)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    labels = Labels((*by, "gene"), (*levels, as_vector(list(adata.var_names))))
    weights = np.broadcast_to(counts, means.shape).astype(np.float64)
    return GroupMeans(Labelled(means.reshape(*shape, -1), labels), weights.reshape(*shape, -1))


def slices_from_anndata(adata: Any, by: str = "donor", layer: str | None = None) -> dict[Any, Any]:
    """Split cells into one matrix of cells by genes for each group, for `codiag.parafac2`.

    Parameters
    ----------
    adata : anndata.AnnData
        Cells by genes. Cells without a group are left out.
    by : str
        A column of ``adata.obs``.
    layer : str, optional
        The layer of the values; by default ``adata.X``.

    Returns
    -------
    dict
        A matrix for each group, sparse if the values are.

    See Also
    --------
    from_anndata : Means of groups.

    Examples
    --------
    >>> import codiag
    >>> import numpy as np
    >>> import pandas as pd
    >>> from types import SimpleNamespace
    >>> obs = pd.DataFrame({"donor": list("aabab")})
    >>> cells = SimpleNamespace(X=np.ones((5, 3)), obs=obs, var_names=list("xyz"), layers={})  # or an AnnData
    >>> {donor: matrix.shape for donor, matrix in codiag.io.slices_from_anndata(cells, by="donor").items()}
    {'a': (3, 3), 'b': (2, 3)}
    """
    values, (codes, levels) = _values(adata, layer), _groups(adata, by)
    values = sparse.csr_array(values) if sparse.issparse(values) else np.asarray(values)
    return {level: values[codes == code] for code, level in enumerate(levels.tolist())}


def to_anndata(fit: Factorization | Parafac2Fit, adata: Any, key: str = "codiag") -> None:
    """Write factors and their standard errors into an AnnData object.

    Parameters
    ----------
    fit : Factorization or Parafac2Fit
        A fit of `from_anndata`, or of `slices_from_anndata`.
    adata : anndata.AnnData
        The cells of the fit. It is changed.
    key : str
        What names begin with: ``adata.varm[key]`` has the factor of the genes, ``adata.obsm[f"{key}_donor"]`` the rows
        of the donors of each cell, or ``adata.obsm[key]`` those of the cells, and ``adata.uns[key]`` all else.
        Standard errors end in ``_standard_error``.

    See Also
    --------
    from_anndata : Makes the tensor.

    Examples
    --------
    >>> import codiag
    >>> import numpy as np
    >>> import pandas as pd
    >>> from types import SimpleNamespace
    >>> obs = pd.DataFrame({"donor": list("aabb"), "cell_type": list("TBTB")})
    >>> cells = SimpleNamespace(X=np.ones((4, 3)), obs=obs, var_names=list("xyz"), layers={}, uns={}, varm={}, obsm={})
    >>> tensor, weights = codiag.io.from_anndata(cells)
    >>> codiag.io.to_anndata(codiag.factorize(tensor, 1, weights=weights, rng=0), cells)
    >>> cells.varm["codiag"].shape, cells.obsm["codiag_donor"].shape
    ((3, 1), (4, 1))
    """
    labels = fit.problem.labels
    names = () if labels is None else labels.names
    if names[-1:] != ("gene",) and not hasattr(fit, "evolving"):
        raise ValueError(f"fit must be that of a tensor of from_anndata, whose last mode is 'gene'; got {names}")
    factors, errors = fit.factors, fit.entry_standard_errors
    if len(factors[-1]) != len(adata.var_names):
        raise ValueError(f"adata must have the {len(factors[-1])} genes of the fit; got {len(adata.var_names)}")
    adata.varm[key], adata.varm[f"{key}_standard_error"] = to_host(factors[-1]), to_host(errors[-1])
    rest = {"weights": to_host(fit.weights), "weights_standard_error": to_host(fit.weight_standard_errors),
            "relative_error": float(fit.relative_error), "converged": bool(fit.converged)}  # fmt: skip
    adata.uns[key] = rest
    if hasattr(fit, "evolving"):
        _write_cells(fit, adata, key)
        return
    for name, factor, error, levels in zip(names[:-1], factors, errors, labels.values, strict=False):  # type: ignore[union-attr]
        codes, known = _groups(adata, name)
        if not np.array_equal(known, levels):
            raise ValueError(f"adata must have the groups of the fit in its column {name!r}; got {list(known)}")
        rest |= {name: levels, f"factor_{name}": to_host(factor), f"factor_{name}_standard_error": to_host(error)}
        adata.obsm[f"{key}_{name}"] = np.where(codes[:, None] >= 0, to_host(factor)[codes], np.nan)


def _write_cells(fit: Any, adata: Any, key: str) -> None:
    """Write the evolving factors of the cells: the column of `obs` is the one with the groups and sizes of the fit."""
    groups, sizes = fit.labels.values[0], [len(each) for each in fit.evolving]
    for name in adata.obs:
        codes, levels = _groups(adata, name)
        if np.array_equal(levels, groups) and np.array_equal(np.bincount(codes[codes >= 0]), sizes):
            break
    else:
        raise ValueError("fit must be that of slices_from_anndata: no column of adata.obs has its groups of cells")
    cells = np.concatenate([np.flatnonzero(codes == code) for code in range(len(levels))])
    for ending, parts in (("", fit.evolving), ("_standard_error", fit.entry_standard_errors[1])):
        found = np.full((len(codes), fit.rank), np.nan)
        found[cells] = np.concatenate(parts)
        adata.obsm[f"{key}{ending}"] = found
    adata.uns[key] |= {name: groups, f"factor_{name}": fit.factors[0], "correlations": fit.correlations,
                       f"factor_{name}_standard_error": fit.entry_standard_errors[0]}  # fmt: skip


def _values(adata: Any, layer: str | None) -> Any:
    """Return the matrix of cells by genes."""
    if layer is not None and layer not in adata.layers:
        raise ValueError(f"layer must be one of adata.layers, {sorted(adata.layers)}; got {layer!r}")
    found = adata.X if layer is None else adata.layers[layer]
    if found is None:
        raise ValueError("adata.X must not be None; name a layer")
    return found


def _groups(adata: Any, name: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of the group of every cell, -1 if it has none, and the groups."""
    if name not in adata.obs:
        raise ValueError(f"by must name columns of adata.obs, {list(adata.obs)}; got {name!r}")
    column = adata.obs[name].astype("category").cat.remove_unused_categories()
    return np.asarray(column.cat.codes), as_vector(list(column.cat.categories))
