"""The result of PARAFAC2, and its methods."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._arrays import few_threads
from codiag._checks import RNGLike, as_generator, as_number, as_share, attribute_hint
from codiag._parafac2._errors import Sensitivity
from codiag._parafac2._model import Factors, Rules
from codiag._parafac2._slices import UNNAMED, Slices
from codiag._parafac2._solve import in_form, solve
from codiag._text import counted
from codiag.inference import Bootstrap, ConfidenceIntervals
from codiag.labels import Labels
from codiag.metrics import match_components
from codiag.problem import History, LogEntry, Problem

if TYPE_CHECKING:
    from codiag.diagnosis import Assessment


@dataclass(frozen=True, eq=False, repr=False)
class Parafac2Fit:
    r"""Slices as sums of components with evolving profiles, :math:`X_k \approx P_k B\, D_k C^\top`.

    Unpacks as ``weights, (A, B, C), projections = fit``, so that functions of TensorLy for a ``Parafac2Tensor`` take
    it as it is.

    Attributes
    ----------
    weights : array of shape (rank,)
        Largest first.
    factors : tuple of arrays
        A (n_slices, rank), the weights of the slices; B (rank, rank), the symmetric root of the correlations of the
        evolving factors; C (n_columns, rank). Columns have unit length. The largest entry of a column of C is positive,
        and so is the sum of a column of A. A slice and its projection may change their signs together; the largest
        component of a slice is positive.
    projections : tuple of arrays of shape (I_k, rank)
        Orthonormal columns. If a slice has fewer rows than components, its projection is a part of such an array.
    relative_error : float
        :math:`\|X - \text{fit}\| / \|X\|` over the observed entries of all slices.
    converged : bool
        Whether the last steps reached their tolerance.
    history : tuple of LogEntry
        The starts and the last steps.
    p_missed : float
        The chance that a lower minimum was missed: of n starts, h have met the lowest.
    labels : Labels
        Names of slices, rows and columns, and labels of slices and columns.
    rows : tuple of arrays, optional
        Labels of the rows of each slice.

    See Also
    --------
    parafac2 : Returns one.
    Factorization : The same for CP.

    Examples
    --------
    >>> import codiag
    >>> slices = codiag.synthetic.parafac2_slices((9, 8, 10, 9), 6, 2, rng=0).slices
    >>> weights, (a, b, c), projections = codiag.parafac2(slices, 2, rng=0)
    >>> a.shape, b.shape, c.shape, projections[2].shape
    ((4, 2), (2, 2), (6, 2), (10, 2))
    """

    weights: np.ndarray
    factors: tuple[np.ndarray, np.ndarray, np.ndarray]
    projections: tuple[np.ndarray, ...]
    relative_error: float
    converged: bool
    history: tuple[LogEntry, ...] = ()
    p_missed: float = 1.0
    labels: Labels = UNNAMED
    rows: tuple[np.ndarray, ...] | None = None
    _slices: Slices | None = None
    _rules: Rules = field(default_factory=Rules)
    _settings: Mapping[str, Any] = field(default_factory=dict)
    _errors: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", History(self.history))

    @property
    def rank(self) -> int:
        """Number of components.

        Examples
        --------
        >>> import codiag
        >>> codiag.parafac2(codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices, 2, rng=0).rank
        2
        """
        return int(self.weights.size)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of slices, of components (the rows of B), and of columns.

        Examples
        --------
        >>> import codiag
        >>> codiag.parafac2(codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices, 2, rng=0).shape
        (5, 2, 6)
        """
        a, b, c = self.factors
        return a.shape[0], b.shape[0], c.shape[0]

    @property
    def evolving(self) -> tuple[np.ndarray, ...]:
        """The evolving factors, an array :math:`P_k B` of shape (I_k, rank) for each slice, with unit columns.

        Examples
        --------
        >>> import codiag
        >>> fit = codiag.parafac2(codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices, 2, rng=0)
        >>> [each.shape for each in fit.evolving][:2]
        [(9, 2), (9, 2)]
        """
        return tuple(basis @ self.factors[1] for basis in self.projections)

    @property
    def correlations(self) -> np.ndarray:
        r"""The cross products :math:`\Phi = B^\top B` of the evolving factors, the same in all slices.

        Examples
        --------
        >>> import codiag
        >>> fit = codiag.parafac2(codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices, 2, rng=0)
        >>> fit.correlations.diagonal().round(6).tolist()
        [1.0, 1.0]
        """
        return np.asarray(self.factors[1].T @ self.factors[1])

    @property
    def problem(self) -> Problem:
        """What was asked, without the data: labels and constraints of A, B and C.

        Examples
        --------
        >>> import codiag
        >>> fit = codiag.parafac2(codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices, 2, rng=0)
        >>> fit.problem.has_data
        False
        """
        names, values = self.labels.names, self.labels.values
        signs = [self._rules.nonnegative_a, False, self._rules.nonnegative_c]
        return Problem.of_result(self.weights, self.factors).stating(
            labels=Labels((names[0], "coordinate", names[2]), values),
            constraints=["nonnegative" if sign else None for sign in signs] if any(signs) else None,
            n_observed=1,
        )

    @cached_property
    def _sensitivity(self) -> Sensitivity | None:
        """How noise moves the factors; None with missing entries, and where nothing is left."""
        if self._slices is None or self._slices.n_missing or np.any(self.weights == 0):
            return None
        a, b, c = self.factors
        free_a = a > 0 if self._rules.nonnegative_a else np.ones(a.shape, dtype=bool)
        free_c = c > 0 if self._rules.nonnegative_c else np.ones(c.shape, dtype=bool)
        found = Sensitivity(Factors(a * self.weights, b, c), free_a, free_c)
        return None if found.roots is None else found

    @cached_property
    def noise_variance(self) -> float:
        """Variance of the noise of an entry, from the residual and its degrees of freedom; NaN if that is not known.

        Examples
        --------
        >>> import codiag
        >>> slices = codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, noise=0.1, rng=0).slices
        >>> codiag.parafac2(slices, 2, rng=0).noise_variance > 0
        True
        """
        if self._slices is None or self._sensitivity is None:
            return np.nan
        distance = self.relative_error**2 * self._slices.squared_norm
        left = self._slices.n_observed - self._sensitivity.n_free(self._slices.sizes)
        return distance / left if left > 1 else np.nan

    @cached_property
    def entry_standard_errors(self) -> tuple[np.ndarray, tuple[np.ndarray, ...], np.ndarray]:
        """Standard errors of the entries of A, of the evolving factors of each slice, and of C.

        By first-order theory of least squares with white noise: valid if the model is right and errors are small. NaN
        with missing entries; `bootstrap` gives errors there, too. Entries at a bound have errors of zero. A ridge is
        not taken into account.

        See Also
        --------
        Parafac2Fit.standard_errors : One for each column.

        Examples
        --------
        >>> import codiag
        >>> slices = codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, noise=0.1, rng=0).slices
        >>> a, evolving, c = codiag.parafac2(slices, 2, rng=0).entry_standard_errors
        >>> a.shape, evolving[0].shape, c.shape
        ((5, 2), (9, 2), (6, 2))
        """
        a, _, c = self.factors
        if self._sensitivity is None:
            unknown = tuple(np.full(basis.shape, np.nan) for basis in self.projections)
            return np.full(a.shape, np.nan), unknown, np.full(c.shape, np.nan)
        variance, found = self.noise_variance, []
        for part, inside, outside in self._sensitivity.evolving():
            for k, own, beyond in zip(range(part.start, part.stop), inside, outside, strict=True):
                basis = self.projections[k]
                squares = np.einsum("ix,rxy,iy->ir", basis, own, basis, optimize=True)
                squares += (1 - np.minimum(np.sum(basis**2, axis=1), 1.0))[:, None] * beyond
                found.append(np.sqrt(variance * np.maximum(squares, 0.0)))
        error_a = np.sqrt(variance * self._sensitivity.variances_a()[0])
        return error_a, tuple(found), np.sqrt(variance * self._sensitivity.variances_c())

    @cached_property
    def standard_errors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        r"""Standard errors :math:`(E\|\tilde a_r - a_r\|^2)^{1/2}` of unit columns.

        Of A (rank,), of the evolving factors (n_slices, rank), and of C (rank,).

        See Also
        --------
        Parafac2Fit.entry_standard_errors : One for each entry.

        Examples
        --------
        >>> import codiag
        >>> slices = codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, noise=0.1, rng=0).slices
        >>> [errors.shape for errors in codiag.parafac2(slices, 2, rng=0).standard_errors]
        [(2,), (5, 2), (2,)]
        """
        a, evolving, c = self.entry_standard_errors
        return (
            np.linalg.norm(a, axis=0),
            np.stack([np.linalg.norm(each, axis=0) for each in evolving]),
            np.linalg.norm(c, axis=0),
        )

    @cached_property
    def weight_standard_errors(self) -> np.ndarray:
        """Standard errors of the weights, shape (rank,).

        Examples
        --------
        >>> import codiag
        >>> slices = codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, noise=0.1, rng=0).slices
        >>> codiag.parafac2(slices, 2, rng=0).weight_standard_errors.shape
        (2,)
        """
        if self._sensitivity is None:
            return np.full(self.rank, np.nan)
        return np.asarray(self.weights * np.sqrt(self.noise_variance * self._sensitivity.variances_a()[1]))

    def conf_int(self, level: float = 0.95) -> ConfidenceIntervals:
        """Return confidence intervals of the entries of A, of the evolving factors, and of C, and of the weights.

        Parameters
        ----------
        level : float
            The confidence level: the probability with which an interval contains the true value.

        Returns
        -------
        codiag.inference.ConfidenceIntervals
            ``factors`` has pairs (low, high) of arrays for A, then for the evolving factors of each slice, then for C.

        See Also
        --------
        Parafac2Fit.bootstrap : Intervals without a model of the noise.

        Examples
        --------
        >>> import codiag
        >>> slices = codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, noise=0.1, rng=0).slices
        >>> intervals = codiag.parafac2(slices, 2, rng=0).conf_int()
        >>> len(intervals.factors), intervals.factors[-1][0].shape
        (7, (6, 2))
        """
        as_share("level", level)
        times = NormalDist().inv_cdf((1 + level) / 2)
        error_a, errors, error_c = self.entry_standard_errors
        a, _, c = self.factors
        pairs = [(a, error_a), *zip(self.evolving, errors, strict=True), (c, error_c)]
        ends = [(value - times * error, value + times * error) for value, error in pairs]
        for place, is_bounded in ((0, self._rules.nonnegative_a), (-1, self._rules.nonnegative_c)):
            if is_bounded:
                ends[place] = np.maximum(ends[place][0], 0.0), ends[place][1]
        wide = times * self.weight_standard_errors
        return ConfidenceIntervals(tuple(ends), (self.weights - wide, self.weights + wide))

    def bootstrap(self, mode: int = 0, n: int = 200, *, rng: RNGLike = None) -> Bootstrap:
        """Draw slices with replacement, and refit, to see how far B and C depend on them.

        Parameters
        ----------
        mode : int
            The mode of the samples: 0, the slices.
        n : int
            Number of refits.
        rng : int or numpy.random.Generator, optional
            The source of random numbers.

        Returns
        -------
        codiag.inference.Bootstrap
            With ``conf_int()`` of B, C and the weights.

        See Also
        --------
        Parafac2Fit.conf_int : Intervals for white noise.

        Examples
        --------
        >>> import codiag
        >>> slices = codiag.synthetic.parafac2_slices((9,) * 8, 6, 2, noise=0.1, rng=0).slices
        >>> codiag.parafac2(slices, 2, rng=0).bootstrap(n=10, rng=0).entry_standard_errors[2].shape
        (6, 2)
        """
        as_number("n", n, integer=True)
        slices, n_slices, (a, b, c) = self._slices, len(self.projections), self.factors
        if mode != 0:
            raise ValueError(f"mode must be 0, that of the slices; got {mode!r}")
        if slices is None:
            raise ValueError("fit must have its slices to be refitted; drop_data() and files of sparse ones have none")
        if n_slices < 4:
            raise ValueError(f"fit must have four slices or more to be resampled; got {n_slices}")
        generator, refits = as_generator(rng, apart=True), []
        with few_threads(float(np.sum(slices.sizes)) * slices.width * self.rank):
            for _ in range(int(n)):
                chosen = np.sort(generator.integers(n_slices, size=n_slices))
                start = Factors(a[chosen] * self.weights, b, c)
                found = solve(slices.subset(chosen), self.rank, self._rules, generator, start)
                weights, (_, own_b, own_c), _ = in_form(found)
                order = match_components([own_c], [c]).permutation
                signs = np.where(np.sum(own_c[:, order] * c, axis=0) < 0, -1.0, 1.0)
                own_b = own_b[np.ix_(order, order)] * np.outer(signs, signs)
                refits.append((weights[order], own_b, own_c[:, order] * signs))
        all_weights, all_b, all_c = (np.stack(parts) for parts in zip(*refits, strict=True))
        return Bootstrap(self, 0, all_weights, (None, all_b, all_c))  # type: ignore[arg-type]

    @cached_property
    def _assessment(self) -> Assessment:
        from codiag._parafac2._diagnose import assess

        return assess(self)

    def diagnose(self) -> Assessment:
        """Say which components the data determine, and where the model does not hold.

        Returns
        -------
        codiag.diagnosis.Assessment
            ``samples`` has a row for each slice: its residual, and the misfit of its correlations, chi-squared with
            rank (rank - 1) / 2 degrees of freedom if they are the common ones. The advice names slices whose
            correlations differ, slices with fewer rows than components, weights whose sign is not determined, and says
            whether CP fits as well.

        See Also
        --------
        Factorization.diagnose : The same for CP, which says when profiles shift.

        Examples
        --------
        >>> import codiag
        >>> slices = codiag.synthetic.parafac2_slices((9,) * 8, 6, 2, noise=0.01, rng=0).slices
        >>> print(codiag.parafac2(slices, 2, rng=0).diagnose())
        2 of 2 components are determined.
        """
        return self._assessment

    def describe(self) -> str:
        """Return sentences and references for a methods section.

        Returns
        -------
        str
            The model, the computation, and what to cite.

        Examples
        --------
        >>> import codiag
        >>> fit = codiag.parafac2(codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices, 2, rng=0)
        >>> print(fit.describe()[:45])
        A PARAFAC2 decomposition with 2 components wa
        """
        from codiag._parafac2._exports import description

        return description(self)

    def transform(self, new: Any) -> np.ndarray:
        """Return the weights of new slices, for the B and C of the fit.

        Parameters
        ----------
        new : list of arrays of shape (I_k, n_columns)
            As `parafac2` takes them; NaN are missing.

        Returns
        -------
        array of shape (n, rank)
            Those of the slices of the fit are the rows of A times the weights.

        See Also
        --------
        codiag.models.Parafac2 : The same as a transformer of scikit-learn.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> slices = codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices
        >>> fit = codiag.parafac2(slices, 2, rng=0)
        >>> np.allclose(fit.transform(slices), fit.factors[0] * fit.weights)
        True
        """
        slices, (a, b, c) = Slices.of(new), self.factors
        if slices.width != c.shape[0]:
            raise ValueError(f"new slices must have the {c.shape[0]} columns of the fit; got {slices.width}")
        rules = Rules(nonnegative_a=self._rules.nonnegative_a, only_a=True)
        return solve(slices, self.rank, rules, as_generator(0), Factors(a * self.weights, b, c)).factors.a

    def to_slices(self) -> list[np.ndarray]:
        """Form the slices that the components add up to.

        Returns
        -------
        list of arrays of shape (I_k, n_columns)
            All entries of the fit.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> slices = codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices
        >>> np.allclose(codiag.parafac2(slices, 2, rng=0).to_slices()[0], slices[0])
        True
        """
        a, _, c = self.factors
        return [(one * (row * self.weights)) @ c.T for one, row in zip(self.evolving, a, strict=True)]

    def to_xarray(self, *, standard_errors: bool = True) -> Any:
        """Return weights and factors as labelled arrays, with their standard errors.

        Parameters
        ----------
        standard_errors : bool
            Whether to include them.

        Returns
        -------
        xarray.Dataset
            ``weights``, ``factor_SLICE`` (A), ``factor_COLUMN`` (C), ``correlations``, and ``evolving`` along slices,
            rows and components, with NaN beyond the last row of a slice.

        Examples
        --------
        >>> import codiag
        >>> fit = codiag.parafac2(codiag.synthetic.parafac2_slices((9, 8, 9, 7), 6, 2, rng=0).slices, 2, rng=0)
        >>> dict(fit.to_xarray()["evolving"].sizes)
        {'slice': 4, 'row': 9, 'component': 2}
        """
        from codiag._parafac2._exports import as_dataset

        return as_dataset(self, standard_errors=standard_errors)

    def plot(self, *, n_components: int = 12, bands: bool = True) -> Any:
        """Draw the components: weights of slices, evolving factors of all slices, and factors of columns.

        Parameters
        ----------
        n_components : int
            Largest number of components that are drawn.
        bands : bool
            Whether to draw pointwise 95 % confidence bands of A and C.

        Returns
        -------
        matplotlib.figure.Figure
            A row for each component.

        Examples
        --------
        >>> import codiag
        >>> slices = codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, noise=0.1, rng=0).slices
        >>> len(codiag.parafac2(slices, 2, rng=0).plot().axes)
        6
        """
        from codiag.plotting import draw_parafac2

        return draw_parafac2(self, n_components=n_components, bands=bands)

    def drop_data(self) -> Parafac2Fit:
        """Return the fit without the slices; errors that were computed stay.

        Returns
        -------
        Parafac2Fit
            A small one, for files.

        Examples
        --------
        >>> import codiag
        >>> fit = codiag.parafac2(codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices, 2, rng=0)
        >>> fit.drop_data().rank
        2
        """
        small = replace(self, _slices=None)
        kept = ("entry_standard_errors", "standard_errors", "weight_standard_errors", "noise_variance", "_assessment")
        vars(small).update({name: vars(self)[name] for name in kept if name in vars(self)})
        return small

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an ``.npz`` file of arrays, with the slices if the fit has them in memory and they are not sparse.

        Parameters
        ----------
        path : str or path
            The ending is added where it is missing.

        See Also
        --------
        Parafac2Fit.load : Reads the file.

        Examples
        --------
        >>> import tempfile
        >>> import codiag
        >>> fit = codiag.parafac2(codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices, 2, rng=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fit.save(f"{folder}/fit.npz")
        ...     codiag.Parafac2Fit.load(f"{folder}/fit.npz").shape
        (5, 2, 6)
        """
        from codiag._parafac2._exports import write_fit

        write_fit(path, self)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Parafac2Fit:
        """Read what `save` has written; nothing in the file is ever executed.

        Parameters
        ----------
        path : str or path
            Also as it was given to `save`, without the ending.

        Returns
        -------
        Parafac2Fit
            The fit.

        See Also
        --------
        Parafac2Fit.save : Writes the file.

        Examples
        --------
        >>> import tempfile
        >>> import codiag
        >>> fit = codiag.parafac2(codiag.synthetic.parafac2_slices((9,) * 5, 6, 2, rng=0).slices, 2, rng=0)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     fit.save(f"{folder}/fit")
        ...     codiag.Parafac2Fit.load(f"{folder}/fit").rank
        2
        """
        from codiag._parafac2._exports import read_fit

        return read_fit(path, cls)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{attribute_hint(name)}")

    def __iter__(self) -> Iterator[Any]:
        return iter((self.weights, list(self.factors), list(self.projections)))

    def __len__(self) -> int:
        return 3

    def __getitem__(self, index: int) -> Any:
        return (self.weights, list(self.factors), list(self.projections))[index]

    def __repr__(self) -> str:
        n_slices, _, width = self.shape
        return (
            f"Parafac2Fit({counted(self.rank, 'component')} of {counted(n_slices, 'slice')} with "
            f"{counted(width, 'column')}, relative_error={self.relative_error:.3g}, converged={self.converged})"
        )
