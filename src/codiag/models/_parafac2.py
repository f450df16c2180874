"""PARAFAC2 of slices, as a scikit-learn transformer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from codiag._checks import ConvergenceWarning
from codiag._parafac2 import Slices, fitted
from codiag.constraints import ConstraintsLike
from codiag.models.base import Model, as_seed


class Parafac2(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Model):
    r"""PARAFAC2 of samples that are matrices with the same columns, as a scikit-learn transformer.

    Sample k is :math:`X_k \approx P_k B\, \mathrm{diag}(x_k)\, C^\top` with orthonormal columns of :math:`P_k`, such
    as a chromatogram whose peaks shift. Samples may have different numbers of rows.

    Parameters
    ----------
    n_components : int
        Number of components.
    constraints : dict, str or Constraint, optional
        As in `codiag.parafac2`.
    random_state : int, optional
        Seed of random starts.

    Attributes
    ----------
    decomposition_ : Parafac2Fit
        The fit to the samples, with evolving factors, standard errors and ``diagnose()``.
    components_ : array of shape (n_components, n_columns)
        The transposed factor C, unit rows.
    n_components_ : int
        Number of components.
    n_features_in_ : int
        Number of columns.

    See Also
    --------
    codiag.parafac2 : The function behind it.
    CP : For samples whose rows are the same.

    Notes
    -----
    **Assumptions.** Four samples or more.

    **Complexity.** As `codiag.parafac2`.

    **Guarantees.** A local minimum, and says how likely a lower one was missed.

    **Limitations.** Fails if the correlations of profiles differ between samples, which ``diagnose()`` tests.

    Examples
    --------
    >>> import codiag
    >>> from codiag.models import Parafac2
    >>> slices = codiag.synthetic.parafac2_slices((9, 8, 10, 9, 7, 8), 6, 2, rng=0).slices
    >>> model = Parafac2(2, random_state=0).fit(slices[:5])
    >>> model.transform(slices[5:]).shape
    (1, 2)
    """

    integers: ClassVar[Mapping[str, int]] = {"n_components": 1}

    def __init__(
        self, n_components: int = 2, *, constraints: ConstraintsLike = None, random_state: int | None = None
    ) -> None:
        self.n_components = n_components
        self.constraints = constraints
        self.random_state = random_state

    def _fit(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit` without issuing warnings, and return them.

        Parameters
        ----------
        data : list of arrays of shape (I_k, n_columns)
            As in `codiag.parafac2`.

        Returns
        -------
        tuple of Warning
            The warnings of `fit`.

        Examples
        --------
        >>> import codiag
        >>> from codiag.models import Parafac2
        >>> Parafac2(2, random_state=0)._fit(codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices)
        ()
        """
        self.check_parameters()
        slices = Slices.of(data)
        fit = fitted(slices, slices.check_rank(self.n_components), self.constraints, as_seed(self.random_state))
        self.decomposition_, self.components_, self.n_components_ = fit, fit.factors[2].T, fit.rank
        self.n_features_in_ = slices.width
        return () if fit.converged else (ConvergenceWarning("PARAFAC2 did not converge; try fewer components"),)

    def transform(self, X: Any) -> np.ndarray:  # noqa: N803
        """Return the weights of components in samples.

        Parameters
        ----------
        X : list of arrays of shape (I_k, n_columns)
            NaN are missing.

        Returns
        -------
        array of shape (n, n_components)
            For the samples of `fit`, the rows of A times the weights.

        See Also
        --------
        codiag.Parafac2Fit.transform : The same as a method of the fit.

        Examples
        --------
        >>> import codiag
        >>> from codiag.models import Parafac2
        >>> slices = codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices
        >>> Parafac2(2, random_state=0).fit_transform(slices).shape
        (5, 2)
        """
        check_is_fitted(self)
        return self.decomposition_.transform(X)

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.three_d_array, tags.input_tags.allow_nan = False, True, True
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags
