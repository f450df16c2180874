"""The problem that methods solve: a tensor, a rank, and all that is known about the components."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import device, is_dask_array

from codiag._arrays import Array, TensorLike, all_equal, array_namespace, asarray_like, is_complex, real_part, to_host
from codiag._checks import as_rank, as_real_array
from codiag.constraints import Constraint, Constraints, ConstraintsLike, as_constraints, check_constraints
from codiag.labels import Labels, LabelsLike, read_labelled
from codiag.losses import Loss, as_loss
from codiag.problem._loss import absent_as, check_complex, check_loss, for_storage, implied_constraints
from codiag.problem._observed import ObservedTensor, after_first_look, combined_weights, without_missing
from codiag.problem._symmetry import (
    Symmetry,
    as_symmetry,
    groups_of,
    mean_over,
    n_parameters,
    shared_constraints,
)
from codiag.tensors import (
    Tensor,
    array_of,
    as_tensor,
    check_symmetric_shape,
    is_large,
    symmetric_part,
    tensor_of_array,
)
from codiag.tensors.entries import ObservedEntries


@dataclass(frozen=True, eq=False, init=False)
class Problem:
    r"""A tensor to factorize, and all that is known about its components; methods solve it.

    It is checked when it is built. Problems derived from it by `with_rank`, `with_tensor` and `with_constraints` share
    what was computed from the data, and check only what changed.

    Parameters
    ----------
    tensor : Tensor, or anything that `codiag.factorize` takes
        Of order three or more. Labels of an xarray.DataArray or a table are kept in `labels`.
    rank : int or "auto"
        Number of components; "auto" leaves it open, as rank 0, for `codiag.choose_rank`.
    loss : Loss or str, optional
        The noise distribution: an object of `codiag.losses`, or its name. By default plain least squares. Losses whose
        model must not be negative, such as that of counts, imply "nonnegative" if no constraints are given.
    constraints : Constraint, str, sequence with one for each mode, or dict from modes, optional
        What is known about the factors: objects of `codiag.constraints`, their names, or None for a free mode. A
        single one applies to every mode; a dict has numbers or names of modes.
    mask : array of bool in the shape of the tensor, optional
        True where an entry counts; the others are missing, as NaN and masked entries are. By default all count.
    weights : array in the shape of the tensor, optional
        Non-negative, proportional to 1 / variance of the entries: the mean of four measurements has weight 4.
    symmetric : bool or tuple of int, optional
        Whether all modes share one factor, or which of them do. False by default: symmetry is never detected, but a
        `codiag.tensors.Tensor` may declare it.
    second_moment : array of shape (d, d), optional
        For a symmetric tensor, :math:`\sum_i c_i u_i u_i^\top` with positive :math:`c_i`: it makes the factors
        orthogonal for methods that need that. Other methods ignore it.
    labels : Labels, sequence of str, or dict of str to labels, optional
        Names of the modes, and labels of their indices, for a tensor that brings none.

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
    >>> codiag.factor_error(codiag.factorize(problem, method="ojd1", rng=0), [u] * 3) < 1e-8
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
        rank: int | str,
        *,
        loss: Loss | str | None = None,
        constraints: ConstraintsLike = None,
        mask: Array | None = None,
        weights: Array | None = None,
        symmetric: bool | Sequence[int] = False,
        second_moment: Array | None = None,
        labels: LabelsLike = None,
    ) -> None:
        is_open = isinstance(rank, str) and rank.lower() == "auto"
        if isinstance(rank, str | None) and not is_open:
            raise TypeError(f"rank must be an integer, or 'auto' for what choose_rank chooses; got {rank!r}")
        wanted, noise = None if is_open else rank, as_loss(loss)
        raw, own_labels = read_labelled(tensor, absent_as(noise))
        checked, entry_weights, symmetry = _checked_data(raw, wanted, combined_weights(mask, weights), symmetric)
        known = _checked_labels(own_labels if labels is None else Labels.of(labels), checked)
        names = () if known is None else known.names
        data = ObservedTensor(checked, entry_weights, symmetry)
        if isinstance(loss, str) and noise is not None:
            noise = for_storage(noise, data)
        given = implied_constraints(noise, as_constraints(constraints, checked.order, names), checked.order)
        checked_fields: dict[str, Any] = {
            "constraints": shared_constraints(given, groups_of(symmetry, checked.order)),
            "second_moment": None if second_moment is None else _checked_moment(second_moment, checked),
            "labels": known,
            "data": data,
            "loss": noise,
        }
        if entry_weights is not None and not is_dask_array(entry_weights) and not _has_any(entry_weights):
            raise ValueError("mask and weights must be finite, not negative, and not all zero")
        self.__dict__.update(checked_fields)
        check_complex(noise, self.data, self.constraints)
        check_loss(noise, self.data, self.constraints)
        self.__dict__["rank"] = 0 if wanted is None else self._checked_rank(wanted)

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
                f"rank must be at most {limit}, the largest rank that a tensor of shape {self.tensor.shape} can have; "
                f"got {wanted}"
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
        self, tensor: Tensor, weights: Array | None, constraints: Constraints, symmetric: Symmetry = False
    ) -> Problem:
        """Return the problem on a part of the tensor, or on another form of it.

        Parameters
        ----------
        tensor : Tensor
            Not checked.
        weights : array of the shape of the tensor, or None
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
            data=ObservedTensor(tensor, weights, symmetric),
        )

    def with_weights(self, tensor: Tensor, weights: Array | None) -> Problem:
        """Return the problem on another tensor of the same shape, with other weights of its entries.

        Parameters
        ----------
        tensor : Tensor
            Not checked.
        weights : array of the shape of the tensor, or None
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
        data = ObservedTensor(tensor, weights, self.symmetric)
        return self._with(second_moment=None, labels=None, data=data, loss=None)

    def without_entries(self, indices: Sequence[tuple[int, ...]]) -> Problem:
        """Return the problem in which some entries are missing.

        Parameters
        ----------
        indices : sequence of tuples of int
            One for each entry.

        Returns
        -------
        Problem
            The same, but for these entries.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1).without_entries([(0, 1, 2)]).n_observed
        59
        """
        values, places = np.array(to_host(self.tensor.to_dense())), tuple(np.array(indices).T)
        weights = np.ones(values.shape) if self.weights is None else np.array(to_host(self.weights), dtype=np.float64)
        weights = weights * self.observed_mask()
        values[places], weights[places] = 0, 0.0
        reference = self.tensor.reference
        tensor = tensor_of_array(asarray_like(values, reference), symmetric=False)
        return self._with(data=ObservedTensor(tensor, asarray_like(weights, real_part(reference)), self.symmetric))

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
        return self.with_tensor(self.tensor.filled(self.weights)) if self.required_features else self

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
        data = ObservedTensor(self.tensor * scale, self.weights, self.symmetric)
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
        weights, moment = (None if array is None else to_host(array) for array in (self.weights, self.second_moment))
        return self._with(data=ObservedTensor(near, weights, self.symmetric), second_moment=moment)

    @property
    def has_data(self) -> bool:
        """Whether the tensor is there; a result of a large tensor refers to a problem without it.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1).has_data
        True
        """
        return not self.tensor.is_absent

    def drop_data(self) -> Problem:
        """Return the problem without its tensor, and without weights of the entries.

        Returns
        -------
        Problem
            With the shape, the number of observed entries, and everything else as in this one.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> problem = codiag.Problem(np.ones((3, 4, 5)), 1).drop_data()
        >>> problem.has_data, problem.tensor.shape, problem.n_observed
        (False, (3, 4, 5), 60)
        """
        if not self.has_data:
            return self
        reference = self.tensor.reference
        empty = array_namespace(reference).zeros(0, dtype=reference.dtype, device=device(reference))
        known = {"n_observed": self.data.n_observed, "n_independent": self.data.n_independent}
        data = ObservedTensor.absent(self.tensor.shape, self.symmetric, empty, **known)
        return self._with(data=data, second_moment=None)

    @classmethod
    def of_result(cls, weights: Array, factors: Sequence[Array]) -> Problem:
        """Return the problem without data that weights and factors of an unknown tensor answer.

        Parameters
        ----------
        weights : array of shape (rank,)
            The weights.
        factors : sequence of arrays of shape (d_m, rank)
            The factors.

        Returns
        -------
        Problem
            Of their shape and rank, free; symmetric if all factors are equal.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem.of_result(np.ones(2), [np.eye(4, 2)] * 3).tensor.shape
        (4, 4, 4)
        """
        problem = object.__new__(cls)
        shape = [int(factor.shape[0]) for factor in factors]
        data = ObservedTensor.absent(shape, all_equal(factors), factors[0][:0, 0])
        rank = int(weights.shape[0])
        problem.__dict__.update(rank=rank, constraints=None, second_moment=None, labels=None, loss=None, data=data)
        return problem

    def stating(self, *, n_observed: int, squared_norm: float = math.nan, **stated: Any) -> Problem:
        """Return a problem without data that states other things about it, unchecked.

        Parameters
        ----------
        n_observed : int
            Number of observed entries.
        squared_norm : float
            Sum of their squares; NaN if it is not known.
        **stated : Any
            The fields ``loss``, ``constraints`` and ``labels``.

        Returns
        -------
        Problem
            Without data.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1).drop_data().stating(n_observed=50).n_observed
        50
        """
        known = {"n_observed": n_observed, "squared_norm": squared_norm}
        data = ObservedTensor.absent(self.tensor.shape, self.symmetric, self.tensor.reference, **known)
        return self._with(data=data, **stated)

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
        return self._with(data=ObservedTensor(exact, self.weights, self.symmetric))

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
    def weights(self) -> Array | None:
        """Weights of the entries; None if all count equally.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1).weights is None
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
        """What a method must support, of "constraints", "loss", "missing entries" and "partial symmetry".

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
            "missing entries": self.entries is not None,
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
    def entries(self) -> ObservedEntries | None:
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
    def listed_entries(self) -> ObservedEntries:
        """The observed entries one by one, for losses; of a large tensor of counts those that are not zero.

        See Also
        --------
        Problem.entries : For least squares.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1, loss="poisson").listed_entries.size
        60
        """
        listed = self.loss is not None and self.loss.zero_gradient is not None and is_large(self.tensor.shape)
        return self.data.listed_entries if listed else self.data.all_entries

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
        mask = np.ones(self.tensor.shape, dtype=bool) if self.weights is None else to_host(self.weights) > 0
        return mask & self.tensor.stored_mask() if self.tensor.is_partial else mask

    @property
    def is_cone(self) -> bool:
        """Whether the columns of some factor may have one sign only.

        See Also
        --------
        codiag.constraints.NonNegative : A constraint of that kind.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1, constraints="nonnegative").is_cone
        True
        """
        return any(rule is not None and rule.is_cone for rule in self.constraints or ())

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
            if rule is None or not (rule.is_fixed or rule.is_manifold or rule.ties_rows or rule.ridge > 0):
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
    return Problem(tensor, rank, **stated)


def most_components(shape: Sequence[int]) -> int:
    """Return an upper bound of the rank of tensors of a shape."""
    return math.prod(sorted(shape)[:-1])


def _checked_data(tensor: Any, rank: Any, weights: Any, symmetric: Any) -> tuple[Tensor, Array | None, Symmetry]:
    """Return a tensor without NaN, the weights of its entries, and which modes share a factor."""
    has_weights = weights is not None
    tensor, weights = without_missing(tensor, weights)
    if weights is None:
        tensor, weights = after_first_look(tensor, rank)
    if not has_weights and weights is not None and not is_dask_array(weights) and not _has_any(weights):
        raise ValueError(f"tensor must have entries that are numbers; all {math.prod(weights.shape)} are NaN or masked")
    checked, weights, symmetry = _with_symmetry(tensor, weights, symmetric)
    if not checked.is_validated:
        checked.check()
    return checked, weights, symmetry


def _has_any(weights: Array) -> bool:
    """Return whether an entry has a weight other than zero."""
    xp = array_namespace(weights)
    return bool(xp.any(weights))


def _with_symmetry(tensor: Any, weights: Any, raw: Any) -> tuple[Tensor, Array | None, Symmetry]:
    """Return a tensor averaged over permutations of its shared modes, the weights of its entries, and these modes."""
    known = as_tensor(tensor)
    symmetric = as_symmetry(raw, known.shape) or known.symmetric
    weights = None if weights is None else known.weights_like(weights)
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
        given = ", ".join(f"{name} ({size or 'no labels'})" for name, size in zip(labels.names, sizes, strict=True))
        raise ValueError(
            f"labels must name the {tensor.order} modes of the tensor, {tensor.shape}, with as many labels as indices, "
            f"or None for a mode without; got {given}"
        )
    return labels
