"""The result of a factorization, and its methods."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from array_api_compat import array_namespace

from codiag._arrays import Array, all_equal, epsilon, to_double, to_host
from codiag._checks import RNGLike, as_flag, as_share, attribute_hint
from codiag._text import as_npz, as_path, counted, escape_control, reason_of
from codiag.constraints import ConstraintsLike
from codiag.labels import Labels
from codiag.losses import Loss
from codiag.problem import History, LogEntry, Problem, combined_weights
from codiag.result._files import KNOWN, RuleNotGivenError, read_fit, write_fit
from codiag.result._linearization import Deviance, has_few_entries, linearization_of
from codiag.tensors import FactoredTensor

if TYPE_CHECKING:
    from codiag.diagnosis import Assessment
    from codiag.inference import Bootstrap, ConfidenceIntervals, NoiseModel, Sensitivity, UnitErrors
    from codiag.selection import RankChoice


@dataclass(frozen=True, eq=False, repr=False)
class Factorization:
    r"""A tensor as a sum of components, :math:`T \approx \sum_i w_i\, a_i \otimes b_i \otimes c_i \otimes \dots`.

    Unpacks as ``weights, factors = fit``, so that functions of TensorLy and TLViz take it as it is.

    Attributes
    ----------
    weights : array of shape (rank,)
        Largest first. Positive, except where the sign cannot go elsewhere: for a symmetric tensor of even order, and
        where all modes have the same constraint.
    factors : tuple of arrays of shape (d_m, rank)
        Unit columns, one array per mode; one and the same for all modes if symmetric. The largest entry of a column is
        positive in all modes but the last, and in all modes of a symmetric tensor of even order; modes with constraints
        keep their signs.
    relative_error : float
        :math:`\|T - \text{fit}\| / \|T\|`, over the observed entries, with their weights. For large tensors the value
        is extrapolated from the last pass, accurate to about 1e-9 of itself.
    converged : bool
        Whether the method reached its tolerance, with components that do not diverge.
    history : tuple of LogEntry
        The stages of the computation: name, iterations, objective and seconds of each.
    problem : Problem
        The problem that was asked: tensor, rank, loss with the numbers that were estimated, constraints, weights of the
        entries, symmetry and labels. It has no data (``problem.has_data``) if the tensor is not in memory or has more
        than two million entries, unless constraints or missing entries make standard errors depend on them; and after
        `drop_data`.
    rank_choice : RankChoice, optional
        How the rank was chosen, if it was given as "auto". Files do not have it.

    See Also
    --------
    factorize : Returns one.
    Diagonalization : The same for stacks of matrices.
    codiag.factor_error : Compares two of them.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> fit = codiag.factorize(np.ones((3, 4, 5)), 1, rng=0)
    >>> weights, factors = fit
    >>> fit.rank, fit.shape, fit.converged
    (1, (3, 4, 5), True)
    """

    weights: Array
    factors: tuple[Array, ...]
    relative_error: float
    converged: bool
    history: tuple[LogEntry, ...] = ()
    problem: Problem = None  # type: ignore[assignment]
    rank_choice: RankChoice | None = None
    _norm: float = math.nan
    _deviance: Deviance | None = None
    _entry_weights: Array | None = None
    _settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", History(self.history))
        if cast("Any", self.problem) is None:
            object.__setattr__(self, "problem", Problem.of_result(self.weights, self.factors))

    @property
    def rank(self) -> int:
        """Number of components.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.factorize(np.ones((3, 4, 5)), 1, rng=0).rank
        1
        """
        return int(self.weights.shape[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.factorize(np.ones((3, 4, 5)), 1, rng=0).shape
        (3, 4, 5)
        """
        return tuple(int(factor.shape[0]) for factor in self.factors)

    @cached_property
    def _symmetric(self) -> bool:
        """Whether all modes share a factor."""
        return all_equal(self.factors)

    @cached_property
    def _labels(self) -> Labels:
        """The labels of the problem, or numbers in words."""
        names = tuple(f"mode {mode}" for mode in range(len(self.shape)))
        return self.problem.labels or Labels(names, (None,) * len(names))

    @cached_property
    def _components(self) -> FactoredTensor:
        """The components with zeros in rows that were never observed."""
        return FactoredTensor(self.weights, list(map(_without_nan, self.factors)), symmetric=self._symmetric)

    @property
    def deviance(self) -> Deviance:
        """The deviance: twice the loss over the observed entries, for least squares the residual sum of squares.

        See Also
        --------
        Factorization.explained_variance : The share of each component.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.factorize(np.ones((3, 4, 5)), 1, loss="poisson", rng=0).deviance.total < 1e-9
        True
        """
        if self._deviance is not None:
            return self._deviance
        return Deviance((self.relative_error * self._norm) ** 2, self._norm**2)

    @cached_property
    def explained_variance(self) -> np.ndarray:
        r"""Share of the variance that each component explains, shape (rank,).

        :math:`w_i \langle a_i \otimes b_i \otimes c_i, \text{fit} \rangle / \|T\|^2`. At a minimum of least squares the
        shares add up to :math:`1 - \text{relative\_error}^2`. Shares of degenerate components can be above
        one and below zero. Under a loss they are shares of the explained deviance.

        See Also
        --------
        Factorization.relative_error : What all components together leave.

        Examples
        --------
        >>> import codiag
        >>> fit = codiag.factorize(codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.1, rng=0).tensor, 2, rng=0)
        >>> bool(abs(fit.explained_variance.sum() - (1 - fit.relative_error**2)) < 1e-6)
        True
        """
        factors, weights = [to_double(to_host(factor)) for factor in self._components.factors], to_host(self.weights)
        gram = math.prod(factor.conj().T @ factor for factor in factors)
        products = np.real(weights.conj() * (gram @ weights))
        total = float(np.sum(products))
        explained = 1 - self.relative_error**2 if self._deviance is None else self._deviance.explained
        return products * (explained / total) if total > 0 else np.zeros(self.rank)

    @cached_property
    def _noise(self) -> float:
        """Standard deviation of the noise of an entry of mean weight; NaN without residual degrees of freedom."""
        from codiag.inference import noise_level

        return noise_level(self)

    @cached_property
    def standard_errors(self) -> np.ndarray:
        r"""Standard errors :math:`(E\|\tilde a_i - a_i\|^2)^{1/2}` of the factors, shape (n_modes, rank).

        First-order theory of least squares, for the noise that the residual shows (`noise_model`): valid at the end of
        a fit by least squares (`codiag.methods.Auto`, `codiag.methods.NLS`), if the model is right and errors are
        small. Computed when asked for, at the cost of inverting a matrix of ``sum(min(d_m, rank)) * rank`` rows.

        What constraints fix has standard errors of zero: entries of non-negative factors that are zero, and fixed
        factors; orthogonal columns move together. Weights of entries are taken to be inversely proportional to the
        variance of their noise, and the strength of a ridge to be the variance of the noise over that of the entries of
        the factor, so that what a ridge shrinks counts as uncertain. Factors with rows for which too little was
        observed have infinite errors; `diagnose` names these rows. Rows that were never observed are NaN, as in the
        factors, and do not count. Errors of fits with constraints or missing entries, if noise is not white or unknowns
        are more than 500, are those of 16 to 100 draws of the noise, and known to 7 to 18 %.

        See Also
        --------
        Factorization.entry_standard_errors : One for each entry.
        Factorization.weight_standard_errors : Those of the weights.
        Factorization.diagnose : What they mean.

        Examples
        --------
        >>> import codiag
        >>> planted = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0)
        >>> fit = codiag.factorize(planted.tensor, 2, rng=0)
        >>> fit.standard_errors.shape, bool(fit.standard_errors.max() < 0.1)
        ((3, 2), True)
        """
        known = [np.where(np.isnan(errors), 0.0, errors) for errors in self.entry_standard_errors]
        unknown = np.stack([np.all(np.isnan(errors), axis=0) for errors in self.entry_standard_errors])
        return np.where(unknown, np.nan, np.stack([np.linalg.norm(errors, axis=0) for errors in known]))

    @cached_property
    def entry_standard_errors(self) -> tuple[np.ndarray, ...]:
        """Standard errors of the entries of the factors, in the shapes of these: error bars for what is drawn of them.

        The squares of `standard_errors` are the sums of their squares over rows. Entries of rows for which too little
        was observed have infinite errors; those of the other rows are as if these rows were known.

        See Also
        --------
        Factorization.standard_errors : One for each column.
        Factorization.plot : Draws them as bands.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
        >>> fit = codiag.factorize(tensor, 2, rng=0)
        >>> [errors.shape for errors in fit.entry_standard_errors]
        [(9, 2), (8, 2), (7, 2)]
        """
        return tuple(map(self._times_noise, self._noise_errors.entries))

    @cached_property
    def weight_standard_errors(self) -> np.ndarray:
        """Standard errors of the weights, shape (rank,), by the same theory.

        See Also
        --------
        Factorization.standard_errors : Those of the factors.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
        >>> fit = codiag.factorize(tensor, 2, rng=0)
        >>> bool((fit.weight_standard_errors < fit.weights).all())
        True
        """
        return self._times_noise(self._noise_errors.weights)

    @cached_property
    def _noise_errors(self) -> UnitErrors:
        from codiag.inference import noise_errors

        return noise_errors(self)

    @cached_property
    def _linearization(self) -> Problem | None:
        """The weighted least squares whose errors are those of the fit, to first order; None without its problem."""
        return linearization_of(self)

    @property
    def _restricted(self) -> Problem | None:
        """The same, if entries are missing or have weights, or factors have constraints."""
        around = self._linearization
        return around if around is not None and around.required_features else None

    @property
    def _data(self) -> Problem | None:
        """The same, if its entries are in memory and not many."""
        around = self._linearization
        return around if around is not None and has_few_entries(around) else None

    @cached_property
    def _noise_model(self) -> NoiseModel | None:
        """Variances and correlations that the residual shows; None without the entries."""
        from codiag.inference import noise_model_of

        return noise_model_of(self)

    @property
    def _is_exact(self) -> bool:
        """Whether only rounding is left."""
        return self.relative_error < 1e3 * epsilon(self.factors[0])

    @cached_property
    def _assessment(self) -> Assessment:
        from codiag.diagnosis import assess

        return assess(self)

    @cached_property
    def _sensitivity(self) -> Sensitivity:
        """How noise of unit variance moves the components, and how much each of them explains."""
        from codiag.inference import sensitivity_of

        return sensitivity_of(self)

    @property
    def noise_model(self) -> NoiseModel:
        """The noise for which standard errors and confidence intervals are valid; print it to read it.

        See Also
        --------
        Factorization.conf_int : What follows from it.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
        >>> print(codiag.factorize(tensor, 2, rng=0).noise_model)
        white: the same variance in all entries, and no correlations
        """
        from codiag.inference import described_noise_model

        return described_noise_model(self)

    def conf_int(self, level: float = 0.95) -> ConfidenceIntervals:
        """Return confidence intervals of every entry of every factor, and of the weights.

        Parameters
        ----------
        level : float
            The confidence level: the probability with which an interval contains the true value, if the model and
            `noise_model` are right.

        Returns
        -------
        codiag.inference.ConfidenceIntervals
            ``factors``, with a pair of arrays (low, high) for each mode, and ``weights``, one such pair. Entries of
            non-negative factors that are zero have intervals from zero to where they could be if they were free.

        See Also
        --------
        Factorization.entry_standard_errors : Half their widths, up to a factor.
        Factorization.bootstrap : Intervals without a model of the noise.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
        >>> fit = codiag.factorize(tensor, 2, rng=0)
        >>> low, high = fit.conf_int().weights
        >>> bool((low < fit.weights).all() and (fit.weights < high).all())
        True
        """
        from codiag.inference import intervals

        as_share("level", level)
        return intervals(self, level)

    def bootstrap(
        self,
        mode: int = 0,
        n: int = 200,
        *,
        rng: RNGLike = None,
        n_jobs: int | None = None,
        progress: bool | None = None,
    ) -> Bootstrap:
        """Draw samples along a mode with replacement, and refit, to see how far the other modes depend on the samples.

        Valid for the factors of the other modes, whatever the noise within a sample is like, if samples are independent
        of each other. Weights vary with the samples, too. Every refit begins at this fit, and takes some milliseconds.

        Parameters
        ----------
        mode : int
            The mode of the samples.
        n : int
            How often samples are drawn.
        rng : int or numpy.random.Generator, optional
            The same seed gives the same answer.
        n_jobs : int, optional
            Number of processes, -1 for as many as there are cores.
        progress : bool, optional
            None shows a bar after ten seconds in terminals and notebooks. True always shows one, or prints a line every
            ten seconds where there is no terminal. False never does.

        Returns
        -------
        codiag.inference.Bootstrap
            With ``conf_int()``, ``entry_standard_errors``, ``weight_standard_errors`` and ``plot()``.

        See Also
        --------
        Factorization.conf_int : Under a model of the noise.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((20, 8, 7), 2, noise=0.01, rng=0).tensor
        >>> low, high = codiag.factorize(tensor, 2, rng=0).bootstrap(n=20, rng=0).conf_int().weights
        >>> bool((low < high).all())
        True
        """
        from codiag.inference import bootstrap

        return bootstrap(self, mode, n, rng, n_jobs, progress=progress)

    def drop_data(self) -> Factorization:
        """Return the fit without the tensor, to save memory.

        Standard errors and what `diagnose` needs are computed first.

        Returns
        -------
        Factorization
            The same, with the same standard errors, but no `bootstrap`.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
        >>> codiag.factorize(tensor, 2, rng=0).drop_data().problem.has_data
        False
        """
        known = {name: getattr(self, name) for name in KNOWN}
        bare = replace(self, problem=self.problem.drop_data(), _entry_weights=None)
        vars(bare).update(known)
        return bare

    def _times_noise(self, errors: np.ndarray) -> np.ndarray:
        """Scale errors by unit noise; infinite ones, of what is not determined, stay infinite without noise."""
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(errors), np.inf, self._noise * errors)

    def diagnose(self) -> Assessment:
        """Return what the data shows of each component, and what to do; print it to read it. It is computed once.

        Returns
        -------
        codiag.diagnosis.Assessment
            One list of advice, and tables: ``components``, ``samples``, ``pairs`` and ``modes``; ``p_missed``, the
            chance that a lower minimum was missed.

        See Also
        --------
        codiag.diagnosis.assess : The same as a function.
        codiag.choose_rank : How many components to ask for.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
        >>> codiag.factorize(tensor, 2, rng=0).diagnose().verdicts
        ('determined', 'determined')
        """
        return self._assessment

    def describe(self) -> str:
        """Return two sentences and the references for a methods section.

        Returns
        -------
        str
            Version, seed, method, constraints, loss, starts, and how confidence intervals were made.

        See Also
        --------
        codiag.reports.factorization_report : A page with it.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
        >>> print(codiag.factorize(tensor, 2, rng=0).describe()[:74])
        A CP (PARAFAC) decomposition with 2 components was fitted to a tensor of 9
        """
        from codiag.result._description import description

        return description(self)

    def transform(self, new: Any, mode: int = 0, *, mask: Any = None, weights: Any = None) -> Any:
        r"""Return the coefficients of new samples along a mode, with the factors of the other modes as they are.

        Coefficients :math:`x_i` make :math:`\sum_i x_i\, b_i \otimes c_i \otimes \dots` least distant from a sample,
        over the entries observed; weights are included, so that those of the data that was fitted are
        ``fit.factors[mode] * fit.weights``, as exactly as the fit is at an optimum: to 1e-8 of the largest for fits by
        the default method, or "nls", that have converged, in double precision; where the tensor is so large that last
        steps would cost much (33 million entries times rank, or two million), to a twentieth of a standard error. A
        degenerate fit has no optimum. Coefficients of new samples are non-negative, or shrunk by ridges, where those of
        the fit were. Constraints that concern all samples together (orthogonal columns, and fixed factors of this mode)
        do not apply to new samples, whose coefficients are free.

        Parameters
        ----------
        new : array or Tensor of shape (d_0, ..., n, ...)
            As in `codiag.factorize`, with n samples along the mode and the others in the sizes of the fit. NaN and
            masked entries are missing.
        mode : int
            Which mode the samples are along, counted from 0, or from the end if negative.
        mask : array of bool in the shape of `new`, optional
            True where an entry counts.
        weights : array in the shape of `new`, optional
            Non-negative, proportional to 1 / variance of the entries.

        Returns
        -------
        array of shape (n, rank)
            In the library and the precision of `new`. Where the entries of a sample do not determine its coefficients,
            the smallest of those that fit. Of an xarray.DataArray a DataArray, with the coordinate of its samples and
            the dimension ``component``.

        See Also
        --------
        codiag.models.CP : The same as a transformer of scikit-learn.
        Factorization.to_tensor : The way back.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> a, b, c = (np.random.default_rng(size).random((size, 2)) for size in (6, 5, 4))
        >>> fit = codiag.factorize(np.einsum("ir,jr,kr->ijk", a, b, c), 2, rng=0)
        >>> np.allclose(fit.transform(fit.to_tensor()), fit.factors[0] * fit.weights)
        True
        >>> sample = fit.to_tensor()[3:4]
        >>> sample[0, 1, :] = np.nan  # not observed
        >>> np.allclose(fit.transform(sample), fit.factors[0][3] * fit.weights)
        True
        """
        from codiag.result._transform import transform

        return transform(self, new, mode, combined_weights(mask, weights))

    def plot(self, *, n_components: int = 12, spatial: Sequence[int] | None = None, bands: bool = True) -> Any:
        """Draw the components, mode by mode, with bands of standard errors, in the labels of the data.

        As `codiag.plotting.components`, which also draws on axes that you have; `codiag.plotting.residuals` and
        `codiag.plotting.leverage` show the residual, and which indices determine the fit.

        Parameters
        ----------
        n_components : int
            Largest number of components that are drawn, those with the largest weights.
        spatial : pair of int, optional
            Two modes that are the rows and the columns of an image.
        bands : bool
            Whether to draw pointwise 95 % confidence bands.

        Returns
        -------
        matplotlib.figure.Figure
            A row for each component, a column for each mode.

        See Also
        --------
        codiag.plotting.components : The same on axes that you have.
        codiag.plotting.residuals : What the fit leaves of the data.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
        >>> figure = codiag.factorize(tensor, 2, rng=0).plot()
        >>> len(figure.axes)
        6
        """
        from codiag.plotting import components

        return components(self, n_components=n_components, spatial=spatial, bands=bands)

    def to_tensor(self) -> Array:
        """Form the tensor that the components add up to.

        Returns
        -------
        array of shape (d_0, d_1, ...)
            All entries of the fit.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> np.allclose(codiag.factorize(np.ones((3, 4, 5)), 1, rng=0).to_tensor(), 1)
        True
        """
        return FactoredTensor(self.weights, self.factors, symmetric=self._symmetric).to_dense()

    def predict(self, indices: Any) -> Array:
        """Return entries of the fit, without forming the tensor.

        Parameters
        ----------
        indices : array of int of shape (n, n_modes)
            A row of indices for each entry, counted from 0.

        Returns
        -------
        array of shape (n,)
            The same as ``fit.to_tensor()[tuple(indices.T)]``.

        See Also
        --------
        Factorization.to_tensor : All entries.
        Factorization.transform : Coefficients of new samples.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> fit = codiag.factorize(np.arange(1.0, 4)[:, None, None] * np.ones((3, 4, 5)), 1, rng=0)
        >>> fit.predict([[0, 3, 4], [2, 0, 0]]).round(6)
        array([1., 3.])
        """
        from codiag.result._exports import entries_at

        return entries_at(self, indices)

    def to_xarray(self, *, standard_errors: bool = True) -> Any:
        """Return weights and factors as labelled arrays, with their standard errors.

        Parameters
        ----------
        standard_errors : bool
            Whether to compute them, if they are not known yet, and to include them.

        Returns
        -------
        xarray.Dataset
            ``weights`` along the dimension ``component``, counted from 0, and for each mode ``factor_NAME`` along the
            mode and ``component``, in the labels of the data, coordinates with their attributes; modes without names
            are ``mode_0``, ``mode_1``, ... Standard errors are ``weights_standard_error`` and
            ``factor_NAME_standard_error``.

        See Also
        --------
        Factorization.to_table : A data frame instead.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> dict(codiag.factorize(np.ones((3, 4, 5)), 1, rng=0).to_xarray().sizes)
        {'component': 1, 'mode_0': 3, 'mode_1': 4, 'mode_2': 5}
        """
        from codiag.result._exports import as_dataset

        as_flag("standard_errors", standard_errors)
        return as_dataset(self, standard_errors=standard_errors)

    def to_table(self, library: str = "pandas", *, standard_errors: bool = True) -> Any:
        """Return the entries of all factors as one data frame, a row for each.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow", ...}
            The library of the data frame, one that narwhals can make frames of.
        standard_errors : bool
            Whether to include standard errors and the bounds of 95 % confidence intervals.

        Returns
        -------
        data frame
            With the columns ``component``, counted from 0, ``weight``, ``mode`` (its name), ``label`` (as text if modes
            have labels of several kinds), ``value``, ``standard_error``, ``low`` and ``high``.

        See Also
        --------
        Factorization.to_xarray : Labelled arrays instead.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> table = codiag.factorize(np.ones((3, 4, 5)), 1, rng=0).to_table()
        >>> table.shape, list(table.columns)[:5]
        ((12, 8), ['component', 'weight', 'mode', 'label', 'value'])
        """
        from codiag.result._exports import as_table

        as_flag("standard_errors", standard_errors)
        return as_table(self, library, standard_errors=standard_errors)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an ``.npz`` file of arrays, completely or not at all.

        It has the data if the fit has: if `problem` holds a tensor in memory of at most two million entries. Then all
        works after `load` as before. ``fit.drop_data().save(path)`` writes no data, but the standard errors. Otherwise
        it has the standard errors if they were computed before. Saving computes nothing. `rank_choice` is not saved.

        A loss and constraints are saved with all their numbers if they are codiag's own, and else by name only.

        Parameters
        ----------
        path : str or path
            The ending is added where it is missing. `to_table` returns a table.

        See Also
        --------
        Factorization.load : Reads the file.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import codiag
        >>> fit = codiag.factorize(np.ones((3, 4, 5)), 1, rng=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fit.save(f"{folder}/fit.npz")
        ...     codiag.Factorization.load(f"{folder}/fit.npz").shape
        (3, 4, 5)
        """
        name = str(as_path("path", path))
        if name.lower().endswith((".csv", ".tsv", ".xlsx", ".parquet", ".json")):
            raise ValueError(f"path must end in .npz; got {name}. fit.to_table() returns a table, which pandas writes")
        write_fit(Path(name if name.lower().endswith(".npz") else name + ".npz"), self)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], *, loss: Loss | None = None, constraints: ConstraintsLike = None
    ) -> Factorization:
        """Read what `save` has written; nothing in the file is ever executed.

        Parameters
        ----------
        path : str or path
            Also as it was given to `save`, without the ending.
        loss : Loss, optional
            The loss of the fit, if it is not one of `codiag.losses`: a file has its name only.
        constraints : Constraint or sequence with one for each mode, optional
            The constraints of the fit, if one of them is not of `codiag.constraints`.

        Returns
        -------
        Factorization
            The fit, in NumPy arrays.

        See Also
        --------
        Factorization.save : Writes the file.

        Examples
        --------
        >>> import tempfile
        >>> import numpy as np
        >>> import codiag
        >>> fit = codiag.factorize(np.ones((3, 4, 5)), 1, rng=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fit.save(f"{folder}/fit.npz")
        ...     np.array_equal(codiag.Factorization.load(f"{folder}/fit.npz").weights, fit.weights)
        True
        """
        path = as_npz(path)
        try:
            return read_fit(path, cls, loss, constraints)
        except RuleNotGivenError:
            raise
        except Exception as error:  # damage shows as errors of almost any kind
            raise ValueError(
                f"{path} was not written by Factorization.save, or is damaged: {reason_of(error)}"
            ) from error

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{attribute_hint(name)}")

    def __iter__(self) -> Iterator[Any]:
        return iter((self.weights, list(self.factors)))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return (self.weights, list(self.factors))[index]

    def __repr__(self) -> str:
        kind = "symmetric " if self._symmetric else ""
        return (
            f"Factorization({counted(self.rank, 'component')} of a {kind}tensor {self._sizes()}, "
            f"relative_error={self.relative_error:.3g}, converged={self.converged})"
        )

    def _repr_html_(self) -> str:
        from codiag.result._exports import fit_html

        return fit_html(self)

    def _sizes(self) -> str:
        labels = self.problem.labels
        names = [""] * len(self.shape) if labels is None else [f" {escape_control(name)}" for name in labels.names]
        return " x ".join(f"{size}{name}" for size, name in zip(self.shape, names, strict=True))


def _without_nan(factor: Array) -> Array:
    """Return a factor with zeros in place of rows that were never observed; itself if there are none."""
    xp = array_namespace(factor)
    if not bool(xp.isnan(xp.sum(factor))):
        return factor
    return xp.where(xp.isnan(factor), xp.zeros_like(factor), factor)
