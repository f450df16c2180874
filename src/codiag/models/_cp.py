"""Components of samples with more than one mode of features each, as a transformer of scikit-learn."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from array_api_compat import is_array_api_obj
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from codiag._array import Array, like, to_host
from codiag._factorize import as_method, complaint_about, solve, with_labels
from codiag._labelled import read_labelled
from codiag._problem import Problem
from codiag._transform import explained_share
from codiag._validation import ConvergenceWarning, as_real_array
from codiag.models._base import Model, as_seed
from codiag.tensors import FactoredTensor, Tensor


class CP(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    r"""The CP decomposition (PARAFAC) of samples along the first mode, as a transformer of scikit-learn.

    Sample s is :math:`X_s \approx \sum_i x_{si}\, b_i \otimes c_i \otimes \dots`: a matrix or more of features, such as
    a spectrum for each time. `fit` finds the factors of the features, `transform` the coefficients of samples.

    *Needs* samples with two modes of features or more, of which entries may be missing. *Costs* what
    `codiag.factorize` does; `transform` one pass over the samples. *Guarantees* the least-squares components, unique up
    to order and signs under mild conditions, and of new samples the least-squares coefficients. *Fails* where
    components are degenerate, which a warning says.

    Parameters
    ----------
    n_components : int
        Number of components.
    constraints : Constraint, str, or sequence with one for each mode, optional
        As in `codiag.factorize`; of a sequence the first is for the coefficients of samples.
    method : Method or str, optional
        As in `codiag.factorize`; by default `codiag.methods.Auto`.
    random_state : int, optional
        Seed; the answer does not depend on it where the data determines it.

    Attributes
    ----------
    factorization_ : Factorization
        The fit to the samples, with standard errors, `diagnose` and all else; samples are its first mode.
    factors_ : list of arrays of shape (d_m, n_components)
        Unit columns, for each mode of the features.
    n_features_in_ : int
        Size of the first mode of the features.

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

    def __init__(
        self,
        n_components: int = 2,
        *,
        constraints: Any = None,
        method: Any = None,
        random_state: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.constraints = constraints
        self.method = method
        self.random_state = random_state

    def learn(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit`, silently, and return what is to be warned of.

        Parameters
        ----------
        data : array of shape (n, d_1, d_2, ...)
            As in `codiag.factorize`; NaN are missing.

        Returns
        -------
        tuple of Warning
        """
        self.check_parameters()
        plain, labels = read_labelled(data)
        samples = self._checked(plain, reset=True)
        limit = math.prod(sorted(samples.shape)[:-1])
        if self.n_components > limit:
            raise ValueError(
                f"n_components must be at most {limit}, which is enough for all samples of shape {samples.shape}; "
                f"got {self.n_components}"
            )
        method = as_method(self.method)
        problem = Problem(samples, self.n_components, self.constraints, symmetric=False)
        fit = solve(problem, method, as_seed(self.random_state))
        self.factorization_ = fit if labels is None else with_labels(fit, labels)
        self.factors_ = list(self.factorization_.factors[1:])
        complaint = complaint_about(self.factorization_, problem, method)
        return () if complaint is None else (ConvergenceWarning(complaint),)

    def transform(self, X: Any) -> Array:  # noqa: N803
        """Return the coefficients of samples, with the factors of the features as fitted, under the same constraints.

        Parameters
        ----------
        X : array of shape (n, d_1, d_2, ...)
            NaN are missing.

        Returns
        -------
        array of shape (n, n_components)
            See `codiag.Factorization.transform`.
        """
        check_is_fitted(self)
        return self.factorization_.transform(self._checked(X, reset=False))

    def inverse_transform(self, X: Any) -> Array:  # noqa: N803
        """Return the samples that have given coefficients.

        Parameters
        ----------
        X : array of shape (n, n_components)

        Returns
        -------
        array of shape (n, d_1, d_2, ...)
        """
        check_is_fitted(self)
        rows = as_real_array(X, "X", "use its real part")
        rank = self.factorization_.rank
        if rows.ndim != 2 or rows.shape[1] != rank:
            raise ValueError(f"X must have shape (n, {rank}), coefficients of samples; got {tuple(rows.shape)}")
        others = [like(to_host(factor), rows) for factor in self.factors_]
        return FactoredTensor(like(np.ones(rank), rows), [rows, *others], symmetric=False).to_dense()

    def score(self, X: Any, y: object = None) -> float:  # noqa: N803
        """Return the explained share of samples: one minus squared distance over squared norm, where observed.

        More components explain more of new samples, too, up to their noise: the number that explains most is not the
        number of components there are.

        Parameters
        ----------
        X : array of shape (n, d_1, d_2, ...)
            NaN are missing.
        y : ignored

        Returns
        -------
        float
            At most one; for the samples that were fitted ``1 - factorization_.relative_error ** 2``.
        """
        check_is_fitted(self)
        return explained_share(self.factorization_, self._checked(X, reset=False))

    def _checked(self, raw: Any, *, reset: bool) -> Any:
        """Return samples as `codiag.Problem` takes them, or say what is wrong with them."""
        foreign = isinstance(raw, Tensor) or (is_array_api_obj(raw) and not isinstance(raw, np.ndarray))
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
        return samples

    @property
    def _n_features_out(self) -> int:
        return self.factorization_.rank

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array, tags.input_tags.allow_nan = False, True, True
        tags.transformer_tags.preserves_dtype = self.precisions
        return tags
