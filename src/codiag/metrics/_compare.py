"""Which component of one fit is which of another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from codiag._arrays import to_double, to_host
from codiag._text import Table, html_paragraphs
from codiag.metrics._factors import unit_factors

SIMILAR = 0.85
"""Congruence from which two components are taken for the same: Lorenzo-Seva and ten Berge, Methodology 2, 2006."""


@dataclass(frozen=True, eq=False)
class Comparison:
    """The components of two fits side by side; print it to read it. Components are counted from 1.

    Attributes
    ----------
    table : dict
        By component of the first fit: ``component``, ``other`` (the component of the other fit, or 0 if it is new),
        ``congruence`` (the product of their cosines), the cosine in each mode, and ``weight_ratio``, the weight over
        that of the other component.
    missing : tuple of int
        Components of the other fit that are not in the first.

    See Also
    --------
    compare : Returns one.

    Examples
    --------
    >>> import codiag
    >>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 3, noise=0.01, rng=0).tensor
    >>> two, three = (codiag.factorize(tensor, rank, rng=0) for rank in (2, 3))
    >>> codiag.compare(three, two).table["component"].tolist()
    [1, 2, 3]
    """

    table: Table
    missing: tuple[int, ...]

    def __str__(self) -> str:
        lines = []
        for number, other, congruence in zip(*(self.table[n].tolist() for n in ("component", "other", "congruence")),
                                             strict=True):  # fmt: skip
            same = f"component {other} of the other fit (congruence {congruence:.2f})" if other else "new"
            lines.append(f"Component {number} is {same}.")
        lines += [f"Component {number} of the other fit has no counterpart." for number in self.missing]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_paragraphs(str(self))


def compare(fit: Any, other: Any) -> Comparison:
    """Compare the components of two fits of one tensor, whatever their ranks: which is which, and what is new.

    Parameters
    ----------
    fit, other : Factorization, pair (weights, factors), or sequence of factors
        Of tensors of one shape.

    Returns
    -------
    Comparison
        A table, with the cosines of the components that belong together; print it to read it.

    See Also
    --------
    match_components : Puts estimated components into the order of true ones.

    Examples
    --------
    >>> import codiag
    >>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
    >>> fits = [codiag.factorize(tensor, 2, rng=seed) for seed in (0, 1)]
    >>> print(codiag.compare(*fits))
    Component 1 is component 1 of the other fit (congruence 1.00).
    Component 2 is component 2 of the other fit (congruence 1.00).
    """
    ours, theirs = _known(fit, "fit"), _known(other, "other")
    if [factor.shape[0] for factor in ours] != [factor.shape[0] for factor in theirs]:
        shapes = [tuple(factor.shape[0] for factor in factors) for factors in (ours, theirs)]
        raise ValueError(f"other must be a fit of a tensor of the shape of that of fit, {shapes[0]}; got {shapes[1]}")
    cosines = np.stack([np.abs(one.conj().T @ two) for one, two in zip(ours, theirs, strict=True)])
    products = np.prod(cosines, axis=0)
    rows, columns = scipy.optimize.linear_sum_assignment(products, maximize=True)
    found = dict(zip(rows.tolist(), columns.tolist(), strict=True))
    weights = [_weights(of, factors) for of, factors in ((fit, ours), (other, theirs))]
    pairs = [(i, found.get(i)) for i in range(products.shape[0])]
    kept = [(i, j if j is not None and products[i, j] >= SIMILAR else None) for i, j in pairs]
    values = [[np.nan if j is None else mode[i, j] for i, j in pairs] for mode in (products, *cosines)]
    table = Table(component=np.arange(1, len(kept) + 1), other=np.array([0 if j is None else j + 1 for _, j in kept]))
    table["congruence"] = np.array(values[0])
    table |= {f"mode {mode}": np.array(column) for mode, column in enumerate(values[1:])}
    table["weight_ratio"] = np.array([np.nan if j is None else weights[0][i] / weights[1][j] for i, j in kept])
    present = {j for _, j in kept}
    return Comparison(table, tuple(j + 1 for j in range(products.shape[1]) if j not in present))


def _known(fit: Any, name: str) -> list[np.ndarray]:
    """Return unit factors, with zeros in rows that were never observed."""
    factors = getattr(getattr(fit, "_components", fit), "factors", fit)
    return unit_factors(factors, name)


def _weights(fit: Any, factors: list[np.ndarray]) -> np.ndarray:
    """Return the magnitudes of weights; one if there are none."""
    known = getattr(fit, "weights", None)
    return np.ones(factors[0].shape[1]) if known is None else np.abs(to_double(to_host(known)))
