"""``constrained_parafac`` of TensorLy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from codiag._checks import as_number
from codiag.constraints import L1, Constraint, NonNegative, Ridge, Smooth, Unimodal, as_constraints
from codiag.drop_in._tensorly import _answered, _as_modes, _check_hints, _request, _shape_of, _without_last

COVERED: dict[str, Callable[[Any], Constraint]] = {
    "unimodality": lambda _: Unimodal(),
    "non_negative": lambda _: NonNegative(),
    "l2_square_reg": lambda strength: Ridge(2 * strength),
    "l1_reg": L1,
    "smoothness": lambda strength: Smooth(strength, order=1),
}
"""The constraints of codiag that the arguments of TensorLy mean."""


def constrained_parafac(
    tensor: Any,
    rank: int,
    n_iter_max: int = 100,
    n_iter_max_inner: int = 10,
    init: Any = "svd",
    svd: str = "truncated_svd",
    tol_outer: float = 1e-8,
    tol_inner: float = 1e-6,
    random_state: Any = None,
    verbose: int | bool = 0,
    return_errors: bool = False,
    cvg_criterion: str = "abs_rec_error",
    fixed_modes: Any = None,
    non_negative: Any = None,
    l1_reg: Any = None,
    group_lasso: Any = None,
    l2_reg: Any = None,
    l2_square_reg: Any = None,
    unimodality: Any = None,
    normalize: Any = None,
    simplex: Any = None,
    normalized_sparsity: Any = None,
    soft_sparsity: Any = None,
    smoothness: Any = None,
    monotonicity: Any = None,
    hard_sparsity: Any = None,
) -> Any:
    """Do what ``tensorly.decomposition.constrained_parafac`` does, for five of its constraints.

    Parameters
    ----------
    tensor : array of order three or more
        Real; NaN are missing.
    rank : int
        Number of components.
    n_iter_max : int
        Steps of a start.
    n_iter_max_inner : int
        Accepted and ignored.
    init : {"svd", "random"}, CPTensor, or (weights, factors)
        As `parafac` takes it.
    svd : str
        Accepted and ignored.
    tol_outer : float
        Steps end when they are smaller than this, relative to the factors.
    tol_inner : float
        Accepted and ignored.
    random_state : int or numpy.random.Generator, optional
        The source of random numbers.
    verbose : int
        Whether to print the error after every step.
    return_errors : bool
        Whether to return the relative errors, too.
    cvg_criterion : str
        Accepted and ignored.
    fixed_modes : list of int, optional
        Modes whose factors stay as `init` has them.
    non_negative : bool, list, or dict from modes, optional
        Is `codiag.constraints.NonNegative`.
    l1_reg : float, list, or dict from modes, optional
        Is `codiag.constraints.L1`, on components, since TensorLy leaves the sizes of factors open.
    group_lasso, l2_reg : optional
        Refused.
    l2_square_reg : float, list, or dict from modes, optional
        Is `codiag.constraints.Ridge` of twice the strength.
    unimodality : bool, list, or dict from modes, optional
        Is `codiag.constraints.Unimodal`, without negative entries.
    normalize, simplex, normalized_sparsity, soft_sparsity : optional
        Refused.
    smoothness : float, list, or dict from modes, optional
        Is `codiag.constraints.Smooth` of order one, on components.
    monotonicity, hard_sparsity : optional
        Refused.

    Returns
    -------
    CPTensor, or CPTensor and list of float
        With weights of one, and the sizes of components in the first factor; with `l2_square_reg` evenly in all.

    See Also
    --------
    codiag.factorize : With standard errors, several constraints for a mode, and strengths by held-out entries.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import constrained_parafac
    >>> weights, factors = constrained_parafac(np.random.default_rng(0).random((5, 6, 7)), 1, smoothness={0: 1e9})
    >>> bool(np.ptp(factors[0]) < 1e-6)
    True
    """
    _check_hints(svd, cvg_criterion)
    as_number("n_iter_max_inner", n_iter_max_inner, integer=True)
    as_number("tol_inner", tol_inner, zero=True)
    given = {"non_negative": non_negative, "unimodality": unimodality, "l2_square_reg": l2_square_reg}
    given |= {"l1_reg": l1_reg, "smoothness": smoothness, "group_lasso": group_lasso, "l2_reg": l2_reg}
    given |= {"normalize": normalize, "simplex": simplex, "normalized_sparsity": normalized_sparsity}
    given |= {"soft_sparsity": soft_sparsity, "monotonicity": monotonicity, "hard_sparsity": hard_sparsity}
    refused = [
        name for name, value in given.items() if name not in COVERED and value is not None and value is not False
    ]
    if refused:
        raise ValueError(
            f"{refused[0]} must be left out: of TensorLy's constraints codiag has {', '.join(COVERED)}; a constraint "
            "of your own is a class derived from codiag.extending.Constraint"
        )
    order = len(_shape_of(tensor))
    rules = _rules({name: given[name] for name in COVERED}, order)
    fixed = _without_last(fixed_modes, order)
    options = {"rules": rules, "ridge": max((rule.ridge for rule in rules.values()), default=0.0)}
    request = _request(
        tensor,
        rank,
        init,
        fixed,
        random_state,
        n_iter_max,
        max(tol_outer, 0) or None,
        None,
        is_verbose=bool(verbose),
        **options,
    )
    return _answered(request, False, return_errors)


def _rules(given: Mapping[str, Any], order: int) -> dict[int, Constraint]:
    """Return the constraint of every mode that has one."""
    of_mode: dict[int, list[Constraint]] = {}
    for name, raw in given.items():
        for mode, value in enumerate(_by_mode(name, raw, order)):
            has_signs = name == "non_negative" and any(rule.is_cone for rule in of_mode.get(mode, []))
            if value is None or value is False or has_signs:
                continue
            if value is not True:
                as_number(name, value, zero=True)
            of_mode.setdefault(mode, []).append(COVERED[name](value))
    combined = as_constraints({mode: tuple(rules) for mode, rules in of_mode.items()}, order) or ()
    return {mode: rule for mode, rule in enumerate(combined) if rule is not None}


def _by_mode(name: str, raw: Any, order: int) -> list[Any]:
    """Return the value for each mode of one for all, a list, or a dict from modes."""
    if isinstance(raw, Mapping):
        _as_modes(name, list(raw), order)
        return [raw.get(mode) for mode in range(order)]
    if isinstance(raw, Sequence) and not isinstance(raw, str):
        if len(raw) != order:
            raise ValueError(f"{name} must have a value for each of {order} modes; got {len(raw)}")
        return list(raw)
    return [raw] * order
