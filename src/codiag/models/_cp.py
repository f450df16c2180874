"""The CP decomposition of samples with two modes of features or more, as a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn import get_config
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from codiag._arrays import Array, asarray_like, to_host
from codiag._checks import ConvergenceWarning, as_real_array
from codiag.constraints import ConstraintsLike
from codiag.labels import Labelled, is_xarray, read_labelled, read_like
from codiag.losses import Loss
from codiag.methods import as_method
from codiag.models.base import Model, as_seed, optional, positive_integer
from codiag.problem import Problem, most_components
from codiag.result import Factorization, as_array_of_samples, explained_share, solve, warning_message
from codiag.selection import fit_with_chosen_rank
from codiag.tensors import FactoredTensor


class CP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    r"""The CP decomposition (PARAFAC) of samples along the first mode, as a scikit-learn transformer.

    Sample s is :math:`X_s \approx \sum_i x_{si}\, b_i \otimes c_i \otimes \dots`, an array of features with two modes
    or more, such as a spectrum for each time. `fit` computes the factors of the features, `transform` the coefficients
    of samples.

    Parameters
    ----------
    n_components : int, optional
        Number of components; None for the choice of `codiag.choose_rank`, and an error if it finds none.
    loss : Loss or str, optional
        The noise distribution, as in `codiag.factorize`: "poisson" for counts.
    constraints : Constraint, str, or sequence with one for each mode, optional
        As in `codiag.factorize`; the first of a sequence is for the coefficients of samples.
    init : fit, (weights, factors) or factors, optional
        As in `codiag.factorize`: the first start.
    method : Method or str, optional
        As in `codiag.factorize`; by default `codiag.methods.Auto`.
    random_state : int, optional
        Seed; the estimate does not depend on it if the data determines the components.

    Attributes
    ----------
    decomposition_ : Factorization
        The fit to the samples, with standard errors, ``diagnose()`` and more; samples are its first mode.
    factors_ : list of arrays of shape (d_m, n_components)
        Unit columns, for each mode of the features.
    factors_standard_errors_ : list of arrays of shape (d_m, n_components)
        Standard errors of the entries, for white noise; as ``decomposition_.entry_standard_errors``.
    n_components_ : int
        Number of components.
    n_features_in_ : int
        Size of the first mode of the features.

    See Also
    --------
    codiag.factorize : The function behind it.
    codiag.drop_in.CP : The class of TensorLy.

    Notes
    -----
    **Assumptions.** Samples with two modes of features or more; entries may be missing.

    **Complexity.** As `codiag.factorize`; `transform` takes one pass over the samples.

    **Guarantees.** The least-squares components, unique up to order and signs under mild conditions, and the
    least-squares coefficients of new samples.

    **Limitations.** Fails if components are degenerate, which a warning says.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import CP
    >>> a, b, c = (np.random.default_rng(size).random((size, 2)) for size in (20, 5, 4))
    >>> X = np.einsum("ir,jr,kr->ijk", a, b, c)
    >>> model = CP(2, random_state=0).fit(X[:15])
    >>> coefficients = model.transform(X[15:])
    >>> coefficients.shape, np.allclose(model.inverse_transform(coefficients), X[15:]), round(model.score(X[15:]), 6)
    ((5, 2), True, 1.0)
    """

    precisions: ClassVar[list[str]] = ["float64", "float32"]
    parameter_rules = Model.parameter_rules | {"n_components": optional(positive_integer)}

    def __init__(
        self,
        n_components: int | None = 2,
        *,
        loss: Loss | str | None = None,
        constraints: ConstraintsLike = None,
        init: Any = None,
        method: Any = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.loss = loss
        self.constraints = constraints
        self.init = init
        self.method = method
        self.random_state = random_state

    def _fit(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit` without issuing warnings, and return them.

        Parameters
        ----------
        data : array of shape (n, d_1, d_2, ...)
            As in `codiag.factorize`; NaN are missing.

        Returns
        -------
        tuple of Warning
            The warnings of `fit`.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import CP
        >>> CP(1, random_state=0)._fit(np.ones((4, 3, 2)))
        ()
        """
        if isinstance(self.n_components, str):
            raise TypeError(f"n_components must be an integer, or None for choose_rank's; got {self.n_components!r}")
        self.check_parameters()
        plain, labels = read_labelled(data)
        samples = self._checked(plain, reset=True)
        stated = {"loss": self.loss, "constraints": self.constraints, "symmetric": False, "labels": labels}
        fit = self._fitted(samples, stated)
        self.decomposition_ = fit
        self.factors_ = list(fit.factors[1:])
        self.n_components_ = fit.rank
        message = warning_message(fit, as_method(self.method))
        return () if message is None else (ConvergenceWarning(message),)

    @property
    def factors_standard_errors_(self) -> list[np.ndarray]:
        """Standard errors of the entries of `factors_`; computed on access.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import CP
        >>> X = np.ones((4, 3, 2)) + 0.01 * np.random.default_rng(0).standard_normal((4, 3, 2))
        >>> [errors.shape for errors in CP(1, random_state=0).fit(X).factors_standard_errors_]
        [(3, 1), (2, 1)]
        """
        check_is_fitted(self)
        return list(self.decomposition_.entry_standard_errors[1:])

    def _fitted(self, samples: Any, stated: dict[str, Any]) -> Factorization:
        """Return the fit of samples, with the rank chosen if it is not given."""
        rng = as_seed(self.random_state)
        if self.n_components is None:
            problem = Problem(samples, "auto", **stated)
            return fit_with_chosen_rank(problem, as_method(self.method, self.init), rng, "n_components cannot be None")
        limit = most_components(samples.shape)
        if self.n_components > limit:
            raise ValueError(
                f"n_components must be at most {limit}, the largest rank of samples of shape {samples.shape}; "
                f"got {self.n_components}"
            )
        return solve(Problem(samples, self.n_components, **stated), as_method(self.method, self.init), rng)

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return the coefficients of samples for the fitted factors of the features, under the same constraints.

        Parameters
        ----------
        X : array of shape (n, d_1, d_2, ...)
            NaN are missing. Labels of the features must be those of the fit; see `codiag.Factorization.transform`.

        Returns
        -------
        array of shape (n, n_components)
            A pandas data frame after ``set_output(transform="pandas")``, indexed by the labels of the samples. Of an
            xarray.DataArray a DataArray, with the coordinate of its samples and the dimension ``component``.

        See Also
        --------
        CP.inverse_transform : From coefficients to samples.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import CP
        >>> samples = np.ones((4, 3, 2))
        >>> CP(1, random_state=0).fit(samples).transform(samples[:2]).shape
        (2, 1)
        """
        check_is_fitted(self)
        samples = self._read(X)
        coefficients, labels = self.decomposition_.transform(samples), samples.labels
        if labels is not None and is_xarray(X) and self._output() == "default":
            return as_array_of_samples(coefficients, X, labels.names[0])
        if labels is None or labels.values[0] is None or self._output() != "pandas":
            return coefficients
        return _as_frame(coefficients, labels.values[0], labels.names[0])

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """Return the samples that have given coefficients; under a loss, their means.

        Parameters
        ----------
        X : array of shape (n, n_components)
            The coefficients, one sample in each row.

        Returns
        -------
        array of shape (n, d_1, d_2, ...)
            The samples.

        See Also
        --------
        CP.transform : The coefficients of samples.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import CP
        >>> model, samples = CP(1, random_state=0), np.ones((4, 3, 2))
        >>> np.allclose(model.inverse_transform(model.fit_transform(samples)), samples)
        True
        """
        check_is_fitted(self)
        rows = as_real_array(X, "X", "use its real part")
        rank = self.decomposition_.rank
        if rows.ndim != 2 or rows.shape[1] != rank:
            raise ValueError(f"X must have shape (n, {rank}), coefficients of samples; got {tuple(rows.shape)}")
        others = [asarray_like(to_host(factor), rows) for factor in self.factors_]
        model = FactoredTensor(asarray_like(np.ones(rank), rows), [rows, *others], symmetric=False).to_dense()
        loss = self.decomposition_.problem.loss
        return model if loss is None else loss.mean(model)

    def score(self, X: Any, y: object = None) -> float:  # noqa: N803
        """Return the explained share of samples: one minus squared distance over squared norm of observed entries.

        Under a loss, it is the share of the deviance of their mean.

        More components also explain more of new samples, up to their noise: the number that explains most is not the
        true number of components.

        Parameters
        ----------
        X : array of shape (n, d_1, d_2, ...)
            NaN are missing.
        y : ignored
            Not used; there for the interface of scikit-learn.

        Returns
        -------
        float
            At most one; for the samples of `fit` it is ``decomposition_.explained_deviance``.

        See Also
        --------
        CP.transform : The coefficients of the samples.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import CP
        >>> samples = np.ones((4, 3, 2))
        >>> round(CP(1, random_state=0).fit(samples).score(samples), 6)
        1.0
        """
        check_is_fitted(self)
        return explained_share(self.decomposition_, self._read(X))

    def _read(self, raw: Any) -> Labelled:
        """Return new samples with their labels, with features in the order of the fit."""
        fit = self.decomposition_
        plain, labels = read_like(raw, fit.problem.labels, 0)
        given = tuple(getattr(plain, "shape", ()))
        if len(given) > 1 and given[1:] != fit.shape[1:]:
            sizes = ", ".join(str(size) for size in fit.shape[1:])
            alone = ". A single sample is X[None]" if given == fit.shape[1:] else ""
            raise ValueError(
                f"X must have shape (n, {sizes}), samples with the features of the fit; got {given}{alone}"
            )
        return Labelled(self._checked(plain, reset=False), labels)

    def _output(self) -> str:
        """Return the container that scikit-learn is configured to return from `transform`."""
        configured = getattr(self, "_sklearn_output_config", {}).get("transform")
        return str(configured or get_config()["transform_output"])

    def _checked(self, raw: Any, *, reset: bool) -> Any:
        """Return samples in a form that `codiag.Problem` takes."""
        foreign = hasattr(raw, "mttkrp") or (is_array_api_obj(raw) and not isinstance(raw, np.ndarray))
        if foreign or isinstance(raw, np.ma.MaskedArray):
            samples = raw
            if reset:
                self.n_features_in_ = int(raw.shape[1])
        else:
            options = {"allow_nd": True, "ensure_all_finite": "allow-nan", "dtype": [np.float64, np.float32]}
            samples = validate_data(self, raw, reset=reset, **options)
        if len(samples.shape) < 3:
            raise ValueError(
                f"X must have shape (n, d_1, d_2, ...), samples with two modes of features or more; got "
                f"{tuple(samples.shape)}. For one mode of features use sklearn.decomposition.PCA"
            )
        if 0 in samples.shape:
            raise ValueError(f"X must not be empty; got shape {tuple(samples.shape)}")
        return samples

    @property
    def _n_features_out(self) -> int:
        return self.decomposition_.rank

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array, tags.input_tags.allow_nan = False, True, True
        tags.transformer_tags.preserves_dtype = self.precisions
        return tags


def _as_frame(coefficients: Array, names: np.ndarray, name: str) -> Any:
    from pandas import DataFrame, Index

    return DataFrame(to_host(coefficients), Index(names, name=name))
