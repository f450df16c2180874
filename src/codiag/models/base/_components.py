"""The parameters of components, diagnostics of their estimate, probabilities, and one order of the components."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from scipy.optimize import linear_sum_assignment, nnls

from codiag._arrays import blocks
from codiag.result import Factorization


@dataclass(frozen=True, eq=False, kw_only=True)
class Components:
    """Parameters of a model by component, and diagnostics of the estimate.

    A model adds fields in a subclass: arrays, or lists of arrays, with one row per component. Fields that do not belong
    to single components are named in `shared`. If more than rows must be permuted, the subclass overrides `reordered`.

    Attributes
    ----------
    weights : array of shape (n_components,)
        Weights of the components, by which they are sorted, largest first.
    diagnostics : Diagnostics
        How well the data determines the components.

    See Also
    --------
    MomentModel.parameters : Returns a subclass.
    Diagnostics : Quality of the estimate.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.extending import Components, Diagnostics
    >>> components = Components(weights=np.array([0.3, 0.7]), diagnostics=Diagnostics(core_errors=np.array([0.1, 0.2])))
    >>> components.sorted().weights.tolist(), components.sorted().diagnostics.core_errors.tolist()
    ([0.7, 0.3], [0.2, 0.1])
    """

    shared: ClassVar[frozenset[str]] = frozenset()
    """Names of fields that do not have one row per component."""
    key: ClassVar[str] = "weights"
    """Name of the field whose rows identify components when two estimates are compared."""

    weights: np.ndarray
    diagnostics: Diagnostics

    def reordered(self, order: np.ndarray) -> Self:
        """Return the components in a new order, with all fields that belong to them.

        Parameters
        ----------
        order : array of int, shape (n_components,)
            Indices of the components, in the new order.

        Returns
        -------
        Components
            The same components.

        See Also
        --------
        Components.sorted : By weight.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.extending import Components, Diagnostics
        >>> components = Components(weights=np.array([0.3, 0.7]), diagnostics=Diagnostics())
        >>> components.reordered(np.array([1, 0])).weights.tolist()
        [0.7, 0.3]
        """
        by_component = {name: value for name, value in vars(self).items() if name not in self.shared}
        return replace(self, **{name: _reordered(value, order) for name, value in by_component.items()})

    def parameter_names(self) -> tuple[str, ...]:
        """Return the names of the fields that are arrays, lists of arrays or real numbers.

        Returns
        -------
        tuple of str
            Names of fields.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.extending import Components, Diagnostics
        >>> Components(weights=np.array([0.3, 0.7]), diagnostics=Diagnostics()).parameter_names()
        ('weights',)
        """
        return tuple(name for name, value in vars(self).items() if isinstance(value, np.ndarray | list | float))

    def sorted(self) -> Self:
        """Return the components by weight, largest first; components of equal weight keep their order.

        Returns
        -------
        Components
            The same components.

        See Also
        --------
        Components.reordered : In any order.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.extending import Components, Diagnostics
        >>> Components(weights=np.array([0.3, 0.7]), diagnostics=Diagnostics()).sorted().weights.tolist()
        [0.7, 0.3]
        """
        return self.reordered(np.argsort(-self.weights, kind="stable"))


C = TypeVar("C", bound=Components)


def _reordered(value: Any, order: np.ndarray) -> Any:
    if isinstance(value, Diagnostics):
        return value.reordered(order)
    return [rows[order] for rows in value] if isinstance(value, list) else value[order]


def nearest_order(reference: C, estimate: C) -> np.ndarray:
    """Return the order of an estimate's components that brings their key fields closest to those of a reference."""
    rows, others = getattr(reference, reference.key), getattr(estimate, estimate.key)
    if isinstance(rows, list):  # several views, which may have different units
        units = [max(float(np.linalg.norm(view)), 1e-300) for view in rows]
        rows, others = (
            np.hstack([view / unit for view, unit in zip(views, units, strict=True)]) for views in (rows, others)
        )
    return linear_sum_assignment(np.linalg.norm(rows[:, None] - others[None], axis=2))[1]


def common_order(estimates: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Return one order of columns for each estimate (m, k), all aligned with the estimate closest to the others."""
    n, k = len(estimates), estimates[0].shape[1]
    products = np.hstack(estimates)
    products = (products.T @ products).reshape(n, k, n, k)
    similarity = np.zeros((n, n))
    orders = np.empty((n, n, k), dtype=np.int64)
    for i in range(n):
        for j in range(i, n):
            order = linear_sum_assignment(-products[i, :, j])[1]
            orders[i, j], orders[j, i] = order, np.argsort(order)
            similarity[i, j] = similarity[j, i] = products[i, range(k), j, order].sum()
    return list(orders[int(np.argmax(similarity.sum(axis=1)))])


def on_simplex(columns: np.ndarray) -> tuple[np.ndarray, float]:
    """Return columns as positive numbers of sum one, and the share of their mass that was clipped."""
    signed = columns * np.where(columns.sum(axis=0) < 0, -1.0, 1.0)
    positive = np.maximum(signed, 0)
    clipped = float(np.sum(positive - signed) / max(np.sum(np.abs(signed)), 1e-300))
    positive += 1e-12 / columns.shape[0]
    return positive / positive.sum(axis=0), clipped


def on_simplex_rows(rows: np.ndarray) -> np.ndarray:
    """Return rows with negative entries clipped and sum one; rows without positive entries become uniform."""
    positive = np.maximum(rows, 0)
    sums = positive.sum(axis=1, keepdims=True)
    return np.where(sums > 0, positive / np.where(sums > 0, sums, 1), 1 / rows.shape[1])


def mixture_weights(components: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return positive weights of sum one with which the columns approximate the mean best (least squares)."""
    weights = nnls(components, mean, maxiter=100 + 10 * components.shape[1])[0] + 1e-12
    return weights / weights.sum()


def products_at(left: np.ndarray, right: np.ndarray, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """Return the inner products of rows of two matrices (n, k), pair by pair, in blocks."""
    values = np.empty(rows.size)
    for some in blocks(rows.size, left.shape[1]):
        values[some] = np.einsum("ek,ek->e", left[rows[some]], right[columns[some]])
    return values


class Diagnostics(Mapping[str, Any]):
    """How well the data determines a model, by name; ``diagnostics["converged"]`` is ``diagnostics.converged``.

    Every model lists its own names. Those of the fit of a moment are ``relative_error``, ``converged`` and
    ``core_errors``: standard errors (n_components,) or (3, n_components) of the unit factors of the moment, estimated
    from the residual of the fit. Sampling errors are larger. They are infinite for components that the moment does not
    separate. ``core_errors`` is None if it separates none, or if there is no residual: the moment of two components has
    no more entries than parameters.

    Parameters
    ----------
    **values
        The diagnostics by name.

    See Also
    --------
    codiag.Factorization.diagnose : Diagnostics of the fit of a tensor.
    MomentModel : Stores diagnostics in ``diagnostics_``.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.extending import Diagnostics
    >>> diagnostics = Diagnostics(relative_error=0.1, core_errors=np.array([0.2, 0.3]))
    >>> diagnostics["relative_error"], diagnostics.reordered(np.array([1, 0])).core_errors
    (0.1, array([0.3, 0.2]))
    """

    def __init__(self, **values: Any) -> None:
        vars(self).update(values)

    @classmethod
    def of(cls, fit: Factorization, **known: Any) -> Diagnostics:
        """Return the diagnostics of the fit of a moment, and others.

        Parameters
        ----------
        fit : Factorization
            Fit of the moment.
        **known
            Further diagnostics.

        Returns
        -------
        Diagnostics
            Relative error and convergence of the fit, standard errors of its factors, and the further ones.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.extending import Diagnostics
        >>> fit = codiag.factorize(np.ones((3, 4, 5)), 1, rng=0)
        >>> Diagnostics.of(fit, clipped_mass=0.0).converged
        True
        """
        errors = fit.standard_errors
        is_known = np.any(np.isfinite(errors)) and not np.any(np.isnan(errors))
        quality = {"relative_error": fit.relative_error, "converged": fit.converged}
        return cls(**quality | {"core_errors": errors if is_known else None} | known)

    def reordered(self, order: np.ndarray) -> Diagnostics:
        """Return the diagnostics with components in a new order.

        Parameters
        ----------
        order : array of int, shape (n_components,)
            Indices of the components, in the new order.

        Returns
        -------
        Diagnostics
            The same diagnostics.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.extending import Diagnostics
        >>> Diagnostics(core_errors=np.array([0.1, 0.2])).reordered(np.array([1, 0])).core_errors.tolist()
        [0.2, 0.1]
        """
        errors = self.get("core_errors")
        return self if errors is None else self.extended(core_errors=errors[..., order])

    def extended(self, **values: Any) -> Diagnostics:
        """Return the diagnostics with further ones, or new values of these.

        Parameters
        ----------
        **values
            Diagnostics by name.

        Returns
        -------
        Diagnostics
            All of them.

        Examples
        --------
        >>> from codiag.extending import Diagnostics
        >>> Diagnostics(converged=True).extended(n_iter=3)
        Diagnostics(converged=True, n_iter=3)
        """
        return Diagnostics(**{**self, **values})

    def __getitem__(self, name: str) -> Any:
        return vars(self)[name]

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{name} is not among these diagnostics: {', '.join(vars(self))}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"diagnostics cannot be changed; {name} was to be set")

    def __iter__(self) -> Iterator[str]:
        return iter(vars(self))

    def __len__(self) -> int:
        return len(vars(self))

    def __repr__(self) -> str:
        return f"Diagnostics({', '.join(f'{name}={value!r}' for name, value in self.items())})"
