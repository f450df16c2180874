"""The problem that methods solve: a tensor, a rank, and all that is known about the components."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_dask_array

from codiag._arrays import Array, TensorLike, is_complex, to_host
from codiag._checks import as_rank, as_real_array
from codiag.constraints import Constraint, Constraints, ConstraintsLike, as_constraints, check_constraints
from codiag.labels import Labels, read_labelled
from codiag.losses import Loss, as_loss
from codiag.problem._loss import check_complex, check_loss, implied_constraints
from codiag.problem._observed import ObservedTensor, after_first_look, without_missing
from codiag.problem._symmetry import (
    Symmetry,
    as_symmetry,
    groups_of,
    mean_over,
    n_parameters,
    shared_constraints,
)
from codiag.tensors import Tensor, array_of, as_tensor, check_symmetric_shape, is_large, symmetric_part, tensor_of_array
from codiag.tensors.entries import Cells, Entries


@dataclass(frozen=True, eq=False, init=False)
class Problem:
    r"""A tensor to factorize, and all that is known about its components; methods solve it.

    It is checked when it is built. Problems derived from it by `with_rank`, `with_tensor` and `with_constraints` share
    what was computed from the data, and check only what changed.

    Parameters
    ----------
    tensor : Tensor, or anything that `codiag.factorize` takes
        Of order three or more. Labels of an xarray.DataArray or a table are kept in `labels`.
    rank : int
        Number of components.
    constraints : Constraint, str, sequence with one for each mode, or dict from modes, optional
        What is known about the factors: objects of `codiag.constraints`, their names, or None for a free mode. A
        single one applies to every mode.
    observed : array in the shape of the tensor, optional
        Which entries were observed, or non-negative weights for them. By default all entries count equally.
    symmetric : bool or tuple of int, optional
        Whether all modes share one factor, or which of them do. False by default: symmetry is never detected, but a
        `codiag.tensors.Tensor` may declare it.
    second_moment : array of shape (d, d), optional
        For a symmetric tensor, :math:`\sum_i c_i u_i u_i^\top` with positive :math:`c_i`: it makes the factors
        orthogonal for methods that need that. Other methods ignore it.
    labels : Labels, optional
        Names of modes and of their indices, for a tensor that brings none.
    loss : Loss or str, optional
        How entries scatter: an object of `codiag.losses`, or its name. By default plain least squares. Losses whose
        model must not be negative, such as that of counts, imply "nonnegative" if no constraints are given.

    See Also
    --------
    factorize : Takes a problem in place of a tensor.
    codiag.extending.Method : Solves it.

    Examples
    --------
    A second moment lets a method for orthogonal factors find others:

    >>> import numpy as np
    >>> import codiag
    >>> u = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0] + 0.2
    >>> problem = codiag.Problem(np.einsum("ir,jr,kr->ijk", u, u, u), 4, symmetric=True, second_moment=u @ u.T)
    >>> codiag.factor_error(codiag.factorize(problem, method="ojd1", seed=0), [u] * 3) < 1e-8
    True
    """

    rank: int
    constraints: tuple[Constraint | None, ...] | None
    second_moment: Array | None
    labels: Labels | None
    data: ObservedTensor
    loss: Loss | None

    def __init__(
        self,
        tensor: TensorLike,
        rank: int,
        *,
        constraints: ConstraintsLike = None,
        observed: Array | None = None,
        symmetric: bool | Sequence[int] = False,
        second_moment: Array | None = None,
        labels: Labels | None = None,
        loss: Loss | str | None = None,
    ) -> None:
        if rank is None:
            raise TypeError("rank must be an integer; got None")
        self._check_and_set(tensor, rank, constraints, observed, symmetric, second_moment, labels, loss)

    @classmethod
    def of_any_rank(
        cls,
        tensor: TensorLike,
        *,
        constraints: ConstraintsLike = None,
        observed: Array | None = None,
        symmetric: bool | Sequence[int] = False,
        labels: Labels | None = None,
        loss: Loss | str | None = None,
    ) -> Problem:
        """Check all but the rank, which `with_rank` then sets.

        Parameters
        ----------
        tensor : anything that `codiag.factorize` takes
            Of order three or more.
        constraints : Constraint, str, sequence with one for each mode, or dict from modes, optional
            What is known about the factors.
        observed : array in the shape of the tensor, optional
            Which entries were observed, or weights for them.
        symmetric : bool or tuple of int, optional
            Whether all modes share one factor, or which of them do.
        labels : Labels, optional
            Names of modes and of their indices.
        loss : Loss or str, optional
            How entries scatter.

        Returns
        -------
        Problem
            Of rank 0, which no method solves.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem.of_any_rank(np.ones((3, 4, 5))).with_rank(2).rank
        2
        """
        problem = object.__new__(cls)
        problem._check_and_set(tensor, None, constraints, observed, symmetric, None, labels, loss)
        return problem

    def _check_and_set(
        self,
        tensor: Any,
        rank: int | None,
        constraints: Any,
        observed: Any,
        symmetric: Any,
        moment: Any,
        labels: Any,
        loss: Any,
    ) -> None:
        scatter = as_loss(loss)
        raw, own_labels = read_labelled(tensor)
        checked, weights, symmetry = _checked_data(raw, rank, observed, symmetric)
        given = implied_constraints(scatter, as_constraints(constraints, checked.order), checked.order)
        checked_fields: dict[str, Any] = {
            "constraints": shared_constraints(given, groups_of(symmetry, checked.order)),
            "second_moment": None if moment is None else _checked_moment(moment, checked),
            "labels": _checked_labels(labels if labels is not None else own_labels, checked),
            "data": ObservedTensor(checked, weights, symmetry),
            "loss": scatter,
        }
        if weights is not None and not is_dask_array(weights) and not _has_any(weights):
            raise ValueError("observed must be finite, not negative, and not all zero")
        self.__dict__.update(checked_fields)
        check_complex(scatter, self.data, self.constraints)
        check_loss(scatter, self.data, self.constraints)
        self.__dict__["rank"] = 0 if rank is None else self._checked_rank(rank)

    def _with(self, **changes: Any) -> Problem:
        """Return this problem with some fields replaced, unchecked."""
        other = object.__new__(Problem)
        other.__dict__.update({field.name: self.__dict__[field.name] for field in fields(self)})
        other.__dict__.update(changes)
        return other

    def _checked_rank(self, rank: object) -> int:
        """Return the rank if a tensor of this shape can need it and the constraints allow it."""
        wanted, limit = int(as_rank(rank)), most_components(self.tensor.shape)  # type: ignore[arg-type]
        if wanted > limit:
            raise ValueError(
                f"rank must be at most {limit}, which is enough for every tensor of shape {self.tensor.shape}; got "
                f"{wanted}"
            )
        check_constraints(self.constraints, self.tensor.shape, wanted)
        return wanted

    def with_rank(self, rank: int) -> Problem:
        """Return the problem with another number of components.

        Parameters
        ----------
        rank : int
            Checked against the shape and the constraints.

        Returns
        -------
        Problem
            With everything else as in this one.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1).with_rank(2).rank
        2
        """
        return self if rank == self.rank else self._with(rank=self._checked_rank(rank))

    def with_tensor(self, tensor: Tensor) -> Problem:
        """Return the problem on another tensor, with free factors, all entries observed, and least squares.

        Parameters
        ----------
        tensor : Tensor
            Such as a compressed one; not checked.

        Returns
        -------
        Problem
            With the rank of this one.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.tensors import as_tensor
        >>> problem = codiag.Problem(np.ones((3, 4, 5)), 1, constraints="nonnegative")
        >>> problem.with_tensor(as_tensor(np.ones((2, 2, 2)))).constraints is None
        True
        """
        data = ObservedTensor(tensor, None, tensor.symmetric)
        return self._with(constraints=None, second_moment=None, labels=None, data=data, loss=None)

    def with_loss(self, loss: Loss | None) -> Problem:
        """Return the problem with another loss, such as one whose numbers are estimated.

        Parameters
        ----------
        loss : Loss, or None
            None for plain least squares; not checked.

        Returns
        -------
        Problem
            With everything else as in this one, constraints that the former loss implied included.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1, loss="poisson").with_loss(None).constraints[0]
        NonNegative()
        """
        return self if loss is self.loss else self._with(loss=loss)

    def with_constraints(self, constraints: Constraints) -> Problem:
        """Return the problem with other constraints.

        Parameters
        ----------
        constraints : tuple of Constraint or None, one for each mode, or None
            Equal for modes that share a factor; not checked.

        Returns
        -------
        Problem
            With everything else as in this one.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1, constraints="nonnegative").with_constraints(None).constraints is None
        True
        """
        return self if constraints is self.constraints else self._with(constraints=constraints)

    def with_part(
        self, tensor: Tensor, observed: Array | None, constraints: Constraints, symmetric: Symmetry = False
    ) -> Problem:
        """Return the problem on a part of the tensor, or on another form of it.

        Parameters
        ----------
        tensor : Tensor
            Not checked.
        observed : array of the shape of the tensor, or None
            Weights of its entries, not checked.
        constraints : tuple of Constraint or None, one for each mode, or None
            Those of the part, not checked.
        symmetric : bool or tuple of int
            Which modes of the part share a factor; by default each has its own.

        Returns
        -------
        Problem
            Of this rank, or of the largest that such a shape can need.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> problem = codiag.Problem(np.ones((4, 4, 5)), 2)
        >>> problem.with_part(codiag.tensors.as_tensor(np.ones((2, 4, 5))), None, None).tensor.shape
        (2, 4, 5)
        """
        free = constraints is None or all(constraint is None for constraint in constraints)
        return self._with(
            rank=min(self.rank, most_components(tensor.shape)),
            constraints=None if free else constraints,
            second_moment=None,
            labels=None,
            data=ObservedTensor(tensor, observed, symmetric),
        )

    def with_weights(self, tensor: Tensor, observed: Array | None) -> Problem:
        """Return the problem on another tensor of the same shape, with other weights of its entries.

        Parameters
        ----------
        tensor : Tensor
            Not checked.
        observed : array of the shape of the tensor, or None
            Weights of its entries, not checked.

        Returns
        -------
        Problem
            With the same rank, constraints and shared factors, by least squares.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> problem = codiag.Problem(np.ones((3, 4, 5)), 1)
        >>> problem.with_weights(problem.tensor, np.full((3, 4, 5), 2.0)).data.mean_weight
        2.0
        """
        data = ObservedTensor(tensor, observed, self.symmetric)
        return self._with(second_moment=None, labels=None, data=data, loss=None)

    def complete(self) -> Problem:
        """Return the problem on the tensor with missing entries filled, without constraints, for a start.

        Returns
        -------
        Problem
            This one if it is free and complete.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> tensor = np.ones((3, 4, 5))
        >>> tensor[0, 0, 0] = np.nan
        >>> codiag.Problem(tensor, 1).complete().entries is None
        True
        """
        return self.with_tensor(self.tensor.filled(self.observed)) if self.required_features else self

    def scaled(self, scale: float) -> Problem:
        r"""Return the problem on a multiple of the tensor, with penalties scaled accordingly.

        Ridge strengths are multiplied by :math:`c^{2 - 2/n}`, where c is the scale and n the number of modes whose
        factor is not fixed: then the minimizers of both problems have the same unit columns.

        Parameters
        ----------
        scale : float
            Multiplies the tensor.

        Returns
        -------
        Problem
            With everything else as in this one.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> round(codiag.Problem(np.ones((3, 4, 5)), 1).scaled(2.0).tensor.squared_norm(), 6)
        240.0
        """
        if scale == 1:
            return self
        constraints = self.constraints
        if constraints is not None:
            n_free = sum(constraint is None or not constraint.is_fixed for constraint in constraints)
            factor = scale ** (2 - 2 / max(n_free, 1))
            constraints = tuple(None if constraint is None else constraint.scaled(factor) for constraint in constraints)
        data = ObservedTensor(self.tensor * scale, self.observed, self.symmetric)
        return self._with(constraints=constraints, data=data)

    def on_host(self) -> Problem:
        """Return the problem with its arrays in the memory of the CPU.

        Returns
        -------
        Problem
            This one if its tensor is there.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> problem = codiag.Problem(np.ones((3, 4, 5)), 1)
        >>> problem.on_host() is problem
        True
        """
        near = self.tensor.on_host()
        if near is self.tensor:
            return self
        weights, moment = (None if array is None else to_host(array) for array in (self.observed, self.second_moment))
        return self._with(data=ObservedTensor(near, weights, self.symmetric), second_moment=moment)

    def in_double_precision(self) -> Problem:
        """Return the problem in double precision, if entries have weights or factors have constraints.

        Returns
        -------
        Problem
            This one if nothing is to be changed.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> problem = codiag.Problem(np.ones((3, 4, 5), dtype=np.float32), 1, constraints="nonnegative")
        >>> problem.in_double_precision().tensor.reference.dtype
        dtype('float64')
        """
        exact = self.tensor.in_double_precision() if self.required_features else self.tensor
        if exact is self.tensor:
            return self
        return self._with(data=ObservedTensor(exact, self.observed, self.symmetric))

    @property
    def tensor(self) -> Tensor:
        """The tensor to factorize.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1).tensor
        DenseTensor(3 x 4 x 5)
        """
        return self.data.tensor

    @property
    def observed(self) -> Array | None:
        """Weights of the entries; None if all count equally.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1).observed is None
        True
        """
        return self.data.weights

    @property
    def symmetric(self) -> Symmetry:
        """Whether all modes share a factor, or which of them do.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 3, 3)), 1, symmetric=True).symmetric
        True
        """
        return self.data.symmetric

    @cached_property
    def required_features(self) -> frozenset[str]:
        """What a method must support: of "constraints", "loss", "observed" and "partial symmetry", what there is.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> sorted(codiag.Problem(np.ones((3, 4, 5)), 1, constraints="nonnegative").required_features)
        ['constraints']
        """
        has = {
            "constraints": self.constraints is not None,
            "loss": self.loss is not None,
            "observed": self.entries is not None,
            "partial symmetry": bool(self.shared),
        }
        return frozenset(feature for feature, is_there in has.items() if is_there)

    @property
    def shared(self) -> tuple[int, ...]:
        """The modes that share a factor, if some do and not all.

        See Also
        --------
        Problem.groups : All modes, in groups.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 3, 5)), 1, symmetric=(0, 1)).shared
        (0, 1)
        """
        return self.symmetric if isinstance(self.symmetric, tuple) else ()

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The modes that share each factor.

        See Also
        --------
        Problem.shared : The modes that share a factor.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 3, 5)), 1, symmetric=(0, 1)).groups
        [(0, 1), (2,)]
        """
        return self.data.groups

    @property
    def entries(self) -> Entries | None:
        """The observed entries; None if all are observed and have weight one.

        See Also
        --------
        Problem.n_observed : How many there are.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1).entries is None
        True
        """
        return self.data.entries

    @cached_property
    def cells(self) -> Cells:
        """The observed entries one by one, for losses; of a large tensor of counts those that are not zero.

        See Also
        --------
        Problem.entries : For least squares.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1, loss="poisson").cells.size
        60
        """
        listed = self.loss is not None and self.loss.slope_at_zero is not None and is_large(self.tensor.shape)
        return self.data.cells if listed else self.data.all_cells

    def observed_mask(self) -> np.ndarray:
        """Return which entries were observed.

        Returns
        -------
        numpy.ndarray of bool, of the shape of the tensor
            True for observed entries.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> tensor = np.ones((3, 4, 5))
        >>> tensor[0, 0, 0] = np.nan
        >>> int(codiag.Problem(tensor, 1).observed_mask().sum())
        59
        """
        mask = np.ones(self.tensor.shape, dtype=bool) if self.observed is None else to_host(self.observed) > 0
        return mask & self.tensor.stored_mask() if self.tensor.is_partial else mask

    @property
    def is_one_sided(self) -> bool:
        """Whether the columns of some factor may have one sign only.

        See Also
        --------
        codiag.constraints.NonNegative : A constraint of that kind.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1, constraints="nonnegative").is_one_sided
        True
        """
        return any(rule is not None and rule.is_one_sided for rule in self.constraints or ())

    def unobserved_rows(self) -> list[np.ndarray]:
        """Return which rows of the factors nothing is known about.

        Returns
        -------
        list of numpy.ndarray of bool, one for each mode
            True for rows that no observed entry belongs to, in modes whose constraints say nothing about single rows.

        See Also
        --------
        Problem.observed_mask : Which entries were observed.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> tensor = np.ones((3, 4, 5))
        >>> tensor[:, :, 1] = np.nan
        >>> codiag.Problem(tensor, 1).unobserved_rows()[2].tolist()
        [False, True, False, False, False]
        """
        rows = [np.zeros(size, dtype=bool) for size in self.tensor.shape]
        if self.entries is None:
            return rows
        counts = self.entries.counts()
        for group in self.groups:
            rule = None if self.constraints is None else self.constraints[group[0]]
            if rule is None or not (rule.is_fixed or rule.is_curved or rule.ridge > 0):
                empty = np.sum([counts[mode] for mode in group], axis=0) == 0
                for mode in group:
                    rows[mode] = empty
        return rows

    @property
    def n_observed(self) -> int:
        """Number of observed entries.

        See Also
        --------
        Problem.n_independent : Without those that symmetry repeats.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> tensor = np.ones((3, 4, 5))
        >>> tensor[0, 0, 0] = np.nan
        >>> codiag.Problem(tensor, 1).n_observed
        59
        """
        return self.data.n_observed

    @property
    def n_independent(self) -> int:
        """Number of observed real numbers, those that symmetry makes equal counted once.

        See Also
        --------
        Problem.n_parameters : The number of parameters that they determine.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 3, 3)), 1, symmetric=True).n_independent
        10
        """
        return self.numbers_per_entry * self.data.n_independent

    @property
    def numbers_per_entry(self) -> int:
        """Real numbers that an entry holds: two if entries are complex, else one.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)) * 1j, 2).numbers_per_entry
        2
        """
        return 2 if is_complex(self.tensor.reference) else 1

    @property
    def n_parameters(self) -> int:
        """Number of independent real parameters of the components.

        See Also
        --------
        Problem.n_independent : The number of entries that determine them.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 2).n_parameters
        20
        """
        return self.numbers_per_entry * n_parameters(self.tensor.shape, self.groups, self.rank)


def as_problem(tensor: Any, rank: Any, **stated: Any) -> Problem:
    """Return the problem that the arguments of a function state; a `Problem` takes the place of all of them."""
    if isinstance(tensor, Problem):
        for name, value in {"rank": rank, **stated}.items():
            if value is not None and value is not False:
                raise TypeError(
                    f"{name} must be left out if a Problem is given, which has its own; got {name}={value!r}"
                )
        return tensor
    if isinstance(rank, str) and rank == "auto":
        return Problem.of_any_rank(tensor, **stated)
    if rank is None or isinstance(rank, str):
        raise TypeError(f"rank must be an integer, or 'auto' for what choose_rank chooses; got {rank!r}")
    return Problem(tensor, rank, **stated)


def most_components(shape: Sequence[int]) -> int:
    """Return a number of components that is enough for every tensor of a shape."""
    return math.prod(sorted(shape)[:-1])


def _checked_data(tensor: Any, rank: Any, observed: Any, symmetric: Any) -> tuple[Tensor, Array | None, Symmetry]:
    """Return a tensor without NaN, the weights of its entries, and which modes share a factor."""
    has_weights = observed is not None
    tensor, observed = without_missing(tensor, observed)
    if observed is None:
        tensor, observed = after_first_look(tensor, rank)
    if not has_weights and observed is not None and not is_dask_array(observed) and not _has_any(observed):
        raise ValueError(
            f"tensor must have entries that are numbers; all {math.prod(observed.shape)} are NaN or masked"
        )
    checked, weights, symmetry = _with_symmetry(tensor, observed, symmetric)
    if not checked.is_validated:
        checked.check()
    return checked, weights, symmetry


def _has_any(observed: Array) -> bool:
    """Return whether an entry has a weight other than zero."""
    xp = array_namespace(observed)
    return bool(xp.any(observed))


def _with_symmetry(tensor: Any, observed: Any, raw: Any) -> tuple[Tensor, Array | None, Symmetry]:
    """Return a tensor averaged over permutations of its shared modes, the weights of its entries, and these modes."""
    known = as_tensor(tensor)
    symmetric = as_symmetry(raw, known.shape) or known.symmetric
    weights = None if observed is None else known.weights_like(observed)
    if not symmetric or known.symmetric:
        return known, weights, symmetric
    shared = symmetric if isinstance(symmetric, tuple) else tuple(range(known.order))
    stored = array_of(known)
    if stored is None and symmetric is not True:
        return known, weights, symmetric  # least squares asks for no more than the mean over permutations
    if stored is None or weights is None:
        return symmetric_part(known, shared), weights, symmetric
    check_symmetric_shape([known.shape[mode] for mode in shared])
    entries, weights = mean_over(stored, weights, shared)
    return tensor_of_array(entries, symmetric=symmetric is True), weights, symmetric


def _checked_moment(second_moment: Array, tensor: Tensor) -> Array:
    """Return a second moment that fits the modes of a symmetric tensor."""
    moment = as_real_array(second_moment, "second_moment", "use its real part")
    if not tensor.symmetric:
        raise ValueError("second_moment is for symmetric tensors, and this one is not; leave it out, and use NOJD")
    size = tensor.shape[0]
    if tuple(moment.shape) != (size, size):
        raise ValueError(f"second_moment must have shape ({size}, {size}), as the modes; got {tuple(moment.shape)}")
    if not bool(array_namespace(moment).all(array_namespace(moment).isfinite(moment))):
        raise ValueError("second_moment must be finite; some of its entries are NaN or infinite")
    return moment


def _checked_labels(labels: Labels | None, tensor: Tensor) -> Labels | None:
    """Return labels that fit the shape of a tensor."""
    if labels is None:
        return None
    sizes = [None if values is None else len(values) for values in labels.values]
    fits = [size in (None, n) for size, n in zip(sizes, tensor.shape, strict=False)]
    if len(sizes) != tensor.order or not all(fits):
        raise ValueError(f"labels must be for the modes of the tensor, {tensor.shape}; got {sizes}")
    return labels
