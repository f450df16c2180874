"""Standard errors of models by the grouped jackknife: estimates without groups of samples, each left out in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from codiag._checks import as_number
from codiag.models.base._model import Model


def jackknife_standard_errors(
    model: Model,
    X: Any,  # noqa: N803
    *,
    n_groups: int = 20,
    **fit_params: Any,
) -> dict[str, Any]:
    r"""Return standard errors of the parameters of a fitted model, by the grouped jackknife.

    Samples are divided into groups at random: documents, rows, sequences (or stretches of time, if there are fewer
    sequences than groups). The model is estimated again without each group, by all steps of the fit. With
    :math:`h_b = n / n_b` for a group of :math:`n_b` of n samples and pseudo-values
    :math:`\tilde\theta_b = h_b \hat\theta - (h_b - 1) \hat\theta_{(b)}`, the variance is the mean of
    :math:`(\tilde\theta_b - \bar\theta)^2 / (h_b - 1)` over groups [1]_. The standard errors do not include the bias of
    an estimator.

    Parameters
    ----------
    model : estimator
        A fitted `LatentDirichlet`, `SingleTopic`, `HiddenMarkov`, `SphericalGaussianMixture`, `MultiviewMixture`, or a
        model of your own that derives from `codiag.extending.MomentModel`.
    X : data
        The data that it was fitted to, in memory.
    n_groups : int
        Number of groups. An error from g groups is itself known to about :math:`1 / \sqrt{2 g}`: 16 % of it for 20.
    **fit_params
        Further arguments of ``model.fit``, such as ``lengths``.

    Returns
    -------
    dict
        An array, or a list of arrays, of standard errors for each learned attribute, such as ``"weights_"``. NaN for
        probabilities that are 0 or 1 with and without each group: that they do not vary is no sign of certainty.

    See Also
    --------
    Factorization.bootstrap : Standard errors of a tensor fit.

    References
    ----------
    .. [1] Busing, Meijer & van der Leeden, "Delete-m jackknife for unequal m", Statistics and Computing 9 (1999).

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import SphericalGaussianMixture, jackknife_standard_errors
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
    >>> model = SphericalGaussianMixture(2, random_state=0).fit(X)
    >>> errors = jackknife_standard_errors(model, X)
    >>> bool(abs(errors["means_"].mean() - 1 / np.sqrt(500)) < 0.01)
    True
    """
    check_is_fitted(model)
    as_number("n_groups", n_groups, integer=True)
    if n_groups < 2:
        raise ValueError(f"n_groups must be at least 2, so that one can be left out; got {n_groups}")
    whole = model._estimates()
    sizes: list[float] = []
    replicates: list[dict[str, Any]] = []
    for size, rest in model._leave_groups_out(X, n_groups, **fit_params):
        try:
            replicates.append(model._refit(rest)._estimates())
        except ValueError as error:
            error.add_note(f"This was without group {len(sizes)} of {n_groups} of the samples, for standard errors.")
            raise
        sizes.append(size)
    ratios = np.sum(sizes) / np.array(sizes)
    return {
        name: _errors(value, [replicate[name] for replicate in replicates], ratios, name not in model.unbounded)
        for name, value in whole.items()
    }


def _errors(value: Any, others: list[Any], ratios: np.ndarray, are_shares: bool) -> Any:
    """Return standard errors of the type and shape of a parameter, given its estimates without each group."""
    if isinstance(value, list):
        pairs = zip(value, zip(*others, strict=True), strict=True)
        return [_errors(part, list(rest), ratios, are_shares) for part, rest in pairs]
    errors = (share_errors if are_shares else jackknife_errors)(np.asarray(value), np.stack(others), ratios)
    return errors if isinstance(value, np.ndarray) else float(errors)


def jackknife_errors(value: np.ndarray, others: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    """Return standard errors of an estimate, from estimates (groups, ...) without each group and ratios h (groups,)."""
    h = np.asarray(ratios).reshape(-1, *[1] * value.ndim)
    pseudo = h * value - (h - 1) * others
    center = len(others) * value - np.sum((1 - 1 / h) * others, axis=0)  # the mean of pseudo-values if h is constant
    return np.asarray(np.sqrt(np.mean((pseudo - center) ** 2 / (h - 1), axis=0)))


def share_errors(value: np.ndarray, others: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    """Return standard errors of probabilities; NaN if an entry is at 0 or 1 with and without each group."""
    errors = jackknife_errors(value, others, ratios)
    if value.ndim == 0 or value.shape[-1] == 1:  # the only probability of a row is certain
        return errors
    estimates = np.concatenate([value[None], others])
    # models keep probabilities inside by at most 1e-9
    fixed = [np.all(np.abs(estimates - bound) <= 1e-8, axis=0) for bound in (0, 1)]
    return np.where(fixed[0] | fixed[1], np.nan, errors)
