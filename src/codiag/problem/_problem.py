"""What is asked: the object between the data and the methods."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj

from codiag._arrays import Array, TensorLike, moved, to_host
from codiag._checks import as_rank, as_real_array
from codiag.constraints import Constraint, ConstraintsLike, as_constraints
from codiag.problem._missing import after_first_look, without_missing
from codiag.problem._symmetry import (
    Symmetry,
    as_symmetry,
    groups_of,
    is_same_within,
    mean_over,
    shared_constraints,
    with_shared_modes,
)
from codiag.tensors import DaskTensor, Tensor, array_of, as_tensor, check_symmetric_shape, tensor_of_array
from codiag.tensors.entries import Entries, checked_weights, entries_of


@dataclass(frozen=True, eq=False, init=False)
class Problem:
    r"""A tensor to factorize, and all that is known about its components; methods solve it.

    Parameters
    ----------
    tensor : Tensor, or anything that `codiag.factorize` takes
        Of order three or more.
    rank : int
        Number of components.
    constraints : Constraint, str, or sequence with one for each mode, optional
        What is known about the factors: objects of `codiag.constraints`, their names, or None for a free mode. One
        alone holds for all modes.
    observed : array in the shape of the tensor, optional
        Which entries were observed, or non-negative weights for them. By default all entries count equally.
    second_moment : array of shape (d, d), optional
        For a symmetric tensor, :math:`\sum_i c_i u_i u_i^\top` with positive :math:`c_i`: it makes the factors
        orthogonal for methods that need that. Other methods ignore it.
    symmetric : bool or tuple of int, optional
        Whether all modes share one factor, or which of them do. By default detected for arrays, and declared by other
        tensors.

    See Also
    --------
    factorize : Takes a problem in place of a tensor.
    codiag.methods.Method : Solves it.

    Examples
    --------
    A second moment lets a method for orthogonal factors find others:

    >>> import numpy as np
    >>> import codiag
    >>> u = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0] + 0.2
    >>> problem = codiag.Problem(np.einsum("ir,jr,kr->ijk", u, u, u), 4, second_moment=u @ u.T)
    >>> codiag.factor_error(codiag.factorize(problem, method="ojd1", seed=0), [u] * 3) < 1e-8
    True
    """

    tensor: Tensor
    rank: int
    constraints: tuple[Constraint | None, ...] | None
    observed: Array | None
    second_moment: Array | None
    symmetric: Symmetry

    def __init__(
        self,
        tensor: TensorLike,
        rank: int,
        constraints: ConstraintsLike = None,
        observed: Array | None = None,
        second_moment: Array | None = None,
        symmetric: bool | Sequence[int] | None = None,
    ) -> None:
        weighted = observed is not None
        tensor, observed = without_missing(tensor, observed)
        if observed is None:
            tensor, observed = after_first_look(tensor, rank, symmetric)
        if isinstance(observed, np.ndarray) and not weighted and not observed.any():
            raise ValueError(f"tensor must have entries that are numbers; all {observed.size} are NaN or masked")
        known, weights, symmetry = _with_symmetry(tensor, observed, symmetric)
        if known.unseen:
            known.check()
        rank = _checked_rank(rank, known)
        given = as_constraints(constraints, known.shape, rank)
        if symmetric is None and not is_same_within(given, groups_of(symmetry, known.order)):
            known, symmetry = known.without_symmetry(), False  # was detected, and is not asked for
        checked = {
            "tensor": known,
            "rank": rank,
            "constraints": shared_constraints(given, groups_of(symmetry, known.order)),
            "observed": weights,
            "second_moment": None if second_moment is None else _checked_moment(second_moment, known),
            "symmetric": symmetry,
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def on(self, tensor: Tensor) -> Problem:
        """Ask for as many components of another tensor, with free factors and all entries known.

        Parameters
        ----------
        tensor : Tensor
            Such as a compressed one.

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
        >>> problem.on(as_tensor(np.ones((2, 2, 2)))).constraints is None
        True
        """
        return Problem(tensor, self.rank)

    def scaled(self, scale: float) -> Problem:
        """Ask the same of a multiple of the tensor.

        Parameters
        ----------
        scale : float
            What to multiply the tensor by.

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
        return self if scale == 1 else replace(self, tensor=self.tensor * scale)

    @cached_property
    def asks(self) -> frozenset[str]:
        """What a method must be able to honor: of "constraints", "observed" and "partial symmetry", what is given.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> sorted(codiag.Problem(np.ones((3, 4, 5)), 1, constraints="nonnegative").asks)
        ['constraints']
        """
        asked = {
            "constraints": self.constraints is not None,
            "observed": self.entries is not None,
            "partial symmetry": bool(self.shared),
        }
        return frozenset(name for name, is_asked in asked.items() if is_asked)

    @property
    def shared(self) -> tuple[int, ...]:
        """The modes that share a factor where some do, and not all.

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
        return groups_of(self.symmetric, self.tensor.order)

    @cached_property
    def entries(self) -> Entries | None:
        """What was observed of the tensor, or None where that is all of it.

        See Also
        --------
        Problem.n_entries : How many there are.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1).entries is None
        True
        """
        return entries_of(self.tensor, self.observed)

    @property
    def n_entries(self) -> int:
        """Number of independent entries that were observed.

        See Also
        --------
        Problem.n_parameters : How many parameters they determine.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> tensor = np.ones((3, 4, 5))
        >>> tensor[0, 0, 0] = np.nan
        >>> codiag.Problem(tensor, 1).n_entries
        59
        """
        shape = self.tensor.shape
        if self.entries is not None:
            return self.entries.n_sorted(self.groups)
        if not self.shared:
            return n_entries(self.tensor)
        return math.prod(math.comb(shape[group[0]] + len(group) - 1, len(group)) for group in self.groups)

    @property
    def mean_weight(self) -> float:
        """Mean weight of the entries that were observed.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 1, observed=np.full((3, 4, 5), 0.5)).mean_weight
        0.5
        """
        return 1.0 if self.entries is None else self.entries.mean_weight()

    @property
    def n_parameters(self) -> int:
        """Number of independent parameters of the components.

        See Also
        --------
        Problem.n_entries : The entries that determine them.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.Problem(np.ones((3, 4, 5)), 2).n_parameters
        20
        """
        if not self.shared:
            return n_parameters(self.tensor, self.rank)
        return self.rank * (sum(self.tensor.shape[group[0]] for group in self.groups) - len(self.groups) + 1)


def n_entries(tensor: Tensor) -> int:
    """Return the number of independent entries of a tensor."""
    shape, order = tensor.shape, tensor.order
    return math.comb(shape[0] + order - 1, order) if tensor.symmetric else math.prod(shape)


def n_parameters(tensor: Tensor, rank: int) -> int:
    """Return the number of independent parameters of so many components of a tensor."""
    return rank * (tensor.shape[0] if tensor.symmetric else sum(tensor.shape) - tensor.order + 1)


def most_components(shape: Sequence[int]) -> int:
    """Return a number of components that is enough for every tensor of a shape."""
    return math.prod(sorted(shape)[:-1])


def _with_symmetry(tensor: Any, observed: Any, raw: Any) -> tuple[Tensor, Array | None, Symmetry]:
    """Return a tensor, the weights of its entries, and which modes share a factor, over which it is averaged."""
    declared = raw is None or isinstance(raw, bool | np.bool_)
    is_array = is_array_api_obj(tensor) or isinstance(tensor, DaskTensor)
    if declared and not (raw and observed is not None and is_array):
        known = as_tensor(tensor, raw)
        return known, None if observed is None else _checked_observed(observed, known), known.symmetric
    known = as_tensor(tensor, False)
    symmetric = as_symmetry(raw, known.shape) or False
    shared = symmetric if isinstance(symmetric, tuple) else tuple(range(known.order))
    if observed is None:
        return as_tensor(tensor, True) if symmetric is True else with_shared_modes(known, shared), None, symmetric
    weights = _checked_observed(observed, known)
    stored = array_of(known)
    if stored is not None:
        check_symmetric_shape([known.shape[mode] for mode in shared])
        entries, weights = mean_over(stored, weights, shared)
        known = tensor_of_array(entries, symmetric=symmetric is True)
    return known, weights, symmetric


def _checked_rank(rank: object, tensor: Tensor) -> int:
    """Return the rank if some tensor of this shape can need it."""
    if rank is None:
        raise TypeError("rank must be an integer; got None")
    wanted = int(as_rank(rank))  # type: ignore[arg-type]
    limit = most_components(tensor.shape)
    if wanted > limit:
        raise ValueError(
            f"rank must be at most {limit}, which is enough for every tensor of shape {tensor.shape}; got {wanted}"
        )
    return wanted


def _checked_observed(observed: Array, tensor: Tensor) -> Array | None:
    weights = as_observed(observed, tensor)
    if weights is not None and not isinstance(tensor, DaskTensor) and not np.any(to_host(weights)):
        raise ValueError("observed must be finite, not negative, and not all zero")
    return weights


def as_observed(observed: Array, tensor: Tensor) -> Array | None:
    """Return weights of the entries, in the library and the precision of the tensor; None where all are one."""
    if isinstance(tensor, DaskTensor):
        return checked_weights(tensor, observed)
    given = to_host(observed) if hasattr(observed, "dtype") else np.asarray(observed)
    if given.dtype.kind not in "buif":
        raise TypeError(f"observed must be boolean, or hold weights; got an array of {given.dtype}")
    if given.shape != tensor.shape:
        raise ValueError(f"observed must have the shape of the tensor, {tensor.shape}; got {given.shape}")
    weights = given.astype(np.float64)
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("observed must be finite, not negative: true or a weight where an entry counts, else zero")
    return None if np.all(weights == 1) else moved(weights, tensor.reference)


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
