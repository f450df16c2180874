"""The losses that users name."""

from __future__ import annotations

from codiag.losses._base import Loss
from codiag.losses._bernoulli import Bernoulli
from codiag.losses._gaussian import Gaussian
from codiag.losses._huber import Huber
from codiag.losses._negative_binomial import NegativeBinomial
from codiag.losses._poisson import Poisson

LOSSES: dict[str, Loss] = {
    "gaussian": Gaussian(),
    "poisson": Poisson(),
    "bernoulli": Bernoulli(),
    "negative_binomial": NegativeBinomial(),
    "huber": Huber(),
}


def as_loss(loss: object) -> Loss | None:
    """Return the loss that is given or named; None for plain least squares."""
    if isinstance(loss, str) and loss.lower() in LOSSES:
        loss = LOSSES[loss.lower()]
    if isinstance(loss, str):
        raise ValueError(f"loss must be one of {', '.join(LOSSES)}, or an object of codiag.losses; got {loss!r}")
    if loss is None or (isinstance(loss, Gaussian) and not loss.has_covariance):
        return None
    if isinstance(loss, Loss):
        return loss
    hint = "; did you forget the parentheses?" if isinstance(loss, type) else ""
    raise TypeError(f"loss must be None, a name or an object of codiag.losses; got {loss!r}{hint}")
