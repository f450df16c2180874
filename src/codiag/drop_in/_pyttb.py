"""The functions of pyttb for counts and for other losses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from codiag import factorize
from codiag.io import to_pyttb
from codiag.losses import Bernoulli, Gaussian, Loss, NegativeBinomial, Poisson
from codiag.result import Factorization

OBJECTIVES: dict[str, Loss] = {
    "GAUSSIAN": Gaussian(),
    "POISSON": Poisson(),
    "POISSON_LOG": Poisson("log"),
    "BERNOULLI_ODDS": Bernoulli("odds"),
    "BERNOULLI_LOGIT": Bernoulli("logit"),
    "NEGATIVE_BINOMIAL": NegativeBinomial(),
}


def cp_apr(input_tensor: Any, rank: int, *_: Any, **__: Any) -> tuple[Any, Any, dict[str, Any]]:
    """Fit counts by a sum of non-negative components, as ``pyttb.cp_apr`` does, by `codiag.losses.Poisson`.

    Parameters
    ----------
    input_tensor : pyttb.tensor, pyttb.sptensor, or anything that `codiag.factorize` takes
        Counts.
    rank : int
        Number of components.
    *_, **__
        Options of the algorithms of pyttb, its start among them: accepted and ignored.

    Returns
    -------
    M : pyttb.ktensor
        The components. The `codiag.Factorization` if pyttb is not installed.
    Minit : the same
        There is no random start: the components again.
    output : dict
        ``"fit"``, the `codiag.Factorization` with standard errors, ``"obj"``, half its deviance, and ``"nTotalIters"``.

    See Also
    --------
    gcp_opt : Other losses.
    codiag.losses.Poisson : The loss.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import cp_apr  # was: from pyttb import cp_apr
    >>> components, _, output = cp_apr(np.ones((3, 4, 5)), 1)
    >>> output["fit"].converged
    True
    """
    return _outputs(_fitted("input_tensor", input_tensor, rank, loss="poisson"))


def gcp_opt(
    data: Any, rank: int, objective: Any, *_: Any, mask: Any = None, **__: Any
) -> tuple[Any, Any, dict[str, Any]]:
    """Fit components under a loss, as ``pyttb.gcp_opt`` does.

    Parameters
    ----------
    data : pyttb.tensor, pyttb.sptensor, or anything that `codiag.factorize` takes
        The entries.
    rank : int
        Number of components.
    objective : pyttb.gcp.fg_setup.Objectives, str, or Loss
        "GAUSSIAN", "POISSON", "POISSON_LOG", "BERNOULLI_ODDS", "BERNOULLI_LOGIT" or "NEGATIVE_BINOMIAL", or an object
        of `codiag.losses`.
    *_
        The optimizer of pyttb: accepted and ignored.
    mask : pyttb.tensor or array, optional
        Which entries were observed.
    **__
        Further options of pyttb, its start among them: accepted and ignored.

    Returns
    -------
    M : pyttb.ktensor
        The components. The `codiag.Factorization` if pyttb is not installed.
    initial_guess : the same
        There is no random start: the components again.
    info : dict
        ``"fit"``, the `codiag.Factorization` with standard errors, ``"obj"``, half its deviance, and ``"nTotalIters"``.

    See Also
    --------
    cp_apr : Counts.
    codiag.losses : The losses.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.drop_in import gcp_opt  # was: from pyttb import gcp_opt
    >>> gcp_opt(np.ones((3, 4, 5)), 1, "POISSON")[2]["fit"].rank
    1
    """
    name = getattr(objective, "name", objective)
    loss = objective if isinstance(objective, Loss) else OBJECTIVES.get(str(name).upper())
    if loss is None:
        raise ValueError(
            f"objective must be one of {', '.join(OBJECTIVES)}, or an object of codiag.losses; got {objective!r}"
        )
    mask = None if mask is None else np.asarray(getattr(mask, "data", mask)) != 0
    return _outputs(_fitted("data", data, rank, loss=loss, mask=mask))


def _fitted(name: str, data: Any, rank: int, **options: Any) -> Factorization:
    """Return the fit of data; errors have this name for what is a tensor elsewhere."""
    try:
        return factorize(_plain(data), rank, rng=0, **options)
    except (TypeError, ValueError) as error:
        raise type(error)(re.sub(r"^tensor\b", name, str(error))) from error


def _plain(data: Any) -> Any:
    """Return the array of a dense tensor of pyttb, and anything else as it is."""
    is_dense = type(data).__name__ == "tensor" and isinstance(getattr(data, "data", None), np.ndarray)
    return np.asarray(data.data, dtype=np.float64) if is_dense else data


def _outputs(fit: Factorization) -> tuple[Any, Any, dict[str, Any]]:
    try:
        components = to_pyttb(fit)
    except ImportError:
        components = fit
    n_steps = sum(stage.n_iter for stage in fit.history)
    return components, components, {"fit": fit, "obj": fit.deviance.total / 2, "nTotalIters": n_steps}
