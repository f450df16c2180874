"""Base classes of models: from data to a moment, and from the factors of the moment to parameters."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, NamedTuple, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator, clone

from codiag._checks import (
    ConvergenceWarning,
    as_generator,
    check_rng,
    explains_keywords,
)
from codiag._progress import progress_if
from codiag.methods import Auto, Method, as_method
from codiag.models.base._components import C, nearest_order
from codiag.models.base._parameters import USUAL, Rule
from codiag.problem import Problem
from codiag.result import Factorization, solve, warning_message

GAIN = 0.01
"""Nats by which the log-likelihood may still rise, as extrapolated, when steps of expectation maximization end."""
FIRST_STEPS = 40
"""Steps of expectation maximization from every start, before the worse half is left, again after twice as many."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Moments:
    """The moment to factorize; a model adds in a subclass what it needs to compute parameters from the factors.

    Attributes
    ----------
    problem : Problem or None
        The moment to factorize; None if parameters follow without factorization.
    warning_messages : tuple of str
        Texts of warnings about the data.
    hides_component : bool
        Whether the weakest component may be sampling noise; the number of components is then too large.

    See Also
    --------
    MomentModel.moments : Returns one.
    codiag.Problem : The problem to solve.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.extending import Moments
    >>> Moments(problem=codiag.Problem(np.ones((3, 3, 3)), 1)).warning_messages
    ()
    """

    problem: Problem | None
    warning_messages: tuple[str, ...] = ()
    hides_component: bool = False


M = TypeVar("M", bound=Moments)


class Run(NamedTuple, Generic[C]):
    """Steps of expectation maximization from one start: its number, 0 for the moments, and log-likelihoods by step."""

    start: int
    components: C
    levels: list[float]

    @property
    def level(self) -> float:
        """The last log-likelihood."""
        return self.levels[-1] if self.levels and self.levels[-1] == self.levels[-1] else -np.inf


class Model(BaseEstimator):
    """Base of all estimators: checks of parameters, and `fit`, which issues the warnings that `_fit` returns."""

    parameter_rules: ClassVar[dict[str, Rule]] = USUAL
    """What checks the value of each parameter, a function of its name and value; others are not checked."""

    unbounded: ClassVar[frozenset[str]] = frozenset()
    """Names of learned parameters that are not probabilities."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Name the right keyword if one of another library is given."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = explains_keywords(cls.__init__)  # type: ignore[method-assign]

    def __getattr__(self, name: str) -> Any:
        """Say that a learned attribute needs a fit."""
        if name.endswith("_") and not name.startswith("_") and not hasattr(type(self), name):
            raise AttributeError(
                f"{name} is not learned yet: this {type(self).__name__} is not fitted. Call fit, or partial_fit until "
                "the data determines the model"
            )
        return super().__getattribute__(name)  # raises again, also what a property of this name raised

    def fit(self, X: Any, y: object = None, *, progress: bool | None = None) -> Self:  # noqa: N803
        """Estimate the model.

        Parameters
        ----------
        X : array, data frame or list
            Samples, as the class describes them. For `codiag.models.CP` an array of shape (n, d_1, d_2, ...), NaN for
            missing entries.
        y : ignored
            Not used; there for the interface of scikit-learn.
        progress : bool, optional
            Whether to show a bar on the standard error, or below the cell of a notebook, if it takes more than two
            seconds. By default, one appears after ten, and never where the standard error is no terminal.

        Returns
        -------
        self
            The fitted model.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import CP
        >>> CP(1, random_state=0).fit(np.ones((4, 3, 2))).n_components_
        1
        """
        return self._fit_with_progress(progress, X)

    def _fit_with_progress(self, progress: bool | None, *data: Any) -> Self:
        """Fit the model, and issue the warnings at the call of the method that calls this."""
        with progress_if(progress, f"fitting {type(self).__name__}"):
            found = self._fit(*data)
        warn_caller(found, stacklevel=4)
        return self

    def _fit(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit` without issuing warnings, and return them.

        Parameters
        ----------
        data : data
            As for `fit`.

        Returns
        -------
        tuple of Warning
            The warnings of `fit`.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement _fit(data)")

    def check_parameters(self) -> None:
        """Raise unless parameters are valid, by `parameter_rules`.

        Examples
        --------
        >>> from codiag.models import CP
        >>> CP(n_components=3).check_parameters()
        >>> CP(n_components=0).check_parameters()  # refused
        Traceback (most recent call last):
            ...
        ValueError: n_components must be positive; got 0
        """
        for name, value in self.get_params(deep=False).items():
            if name in self.parameter_rules:
                self.parameter_rules[name](name, value)

    def _estimates(self) -> dict[str, Any]:
        """Return the learned parameters that have standard errors, by the names of their attributes."""
        raise NotImplementedError(f"{type(self).__name__} has no standard errors by the jackknife")

    def _leave_groups_out(self, data: Any, n_groups: int) -> Iterator[tuple[int, Any]]:
        """Yield for every group of samples their number, and the data of all others, as `_refit` takes it."""
        rows = data if hasattr(data, "iloc") or hasattr(data, "shape") else np.asarray(data)
        owners = random_groups(rows.shape[0], n_groups)
        for group in range(n_groups):
            kept = np.flatnonzero(owners != group)
            yield owners.size - kept.size, rows.iloc[kept] if hasattr(rows, "iloc") else rows[kept]

    def _refit(self, data: Any) -> Self:
        """Return a model fitted to other data, with components in the order of this fitted model."""
        raise NotImplementedError(f"{type(self).__name__} must implement _refit(data)")


class MomentModel(Model, Generic[M, C]):
    r"""Base of latent-variable models whose parameters are the factors of a moment.

    A subclass implements `moments`, from data to a `codiag.Problem`, and `parameters`, from its solution to the
    parameters of components. With `em_step`, steps of expectation maximization can follow. This class checks
    parameters, solves the problem, sorts the components, and sets learned attributes.

    Parameters
    ----------
    n_components : int, optional
        Number of components. None, if the rule of a model allows it, for as many as are above sampling noise.
    method : Method or str, optional
        Method that factorizes the moment; by default `codiag.methods.Auto`.
    max_iter : int
        Largest number of steps of expectation maximization after the moments; zero is the pure method of moments. Steps
        end before if `em_step` adds ``log_likelihood``, that of the parameters it was given, to the diagnostics: when
        it would rise by less than 0.01 in all further steps, by Aitken's extrapolation.
    random_state : int, optional
        Seed; the estimate does not depend on it if the data determines the components.

    Attributes
    ----------
    n_components_ : int
        Number of components.
    weights_, diagnostics_
        And every other field of the model's `Components`, with an underscore; components by weight, largest first.

    See Also
    --------
    Moments : The moment to factorize.
    Components : The learned parameters.
    codiag.models.SphericalGaussianMixture : A model of this kind.

    Examples
    --------
    Topics of documents of three words each, all about one topic: the frequencies of triples are
    :math:`\sum_i w_i\, \mu_i \otimes \mu_i \otimes \mu_i`.

    >>> from dataclasses import dataclass, replace
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.extending import Components, Diagnostics, MomentModel, Moments
    >>> @dataclass(frozen=True, eq=False, kw_only=True)
    ... class Topics(Components):
    ...     topics: np.ndarray
    >>> class TripleTopics(MomentModel):
    ...     def moments(self, data):
    ...         words = np.asarray(data)
    ...         counts = np.zeros((words.max() + 1,) * 3)
    ...         np.add.at(counts, tuple(words.T), 1 / len(words))
    ...         return Moments(problem=codiag.Problem(counts, self.n_components, symmetric=True))
    ...     def parameters(self, fit, moments):
    ...         sums = fit.factors[0].sum(axis=0)
    ...         topics = (fit.factors[0] / sums).T
    ...         return Topics(weights=fit.weights * sums**3, topics=topics, diagnostics=Diagnostics.of(fit))
    >>> rng = np.random.default_rng(0)
    >>> topics = np.array([[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]])
    >>> documents = [rng.choice(3, 3, p=topics[int(rng.random() < 0.3)]) for _ in range(20000)]
    >>> model = TripleTopics(2, random_state=0).fit(documents)
    >>> model.weights_.round(1).tolist(), model.topics_.round(1).tolist()
    ([0.7, 0.3], [[0.6, 0.3, 0.1], [0.1, 0.1, 0.8]])
    """

    default_method: ClassVar[Method] = Auto()
    _path: tuple[int, int] | None = None
    """Of a replicate of the jackknife: the number of the start and of the steps of EM that the fitted model has."""

    def __init__(
        self, n_components: int | None = 2, *, method: Any = None, max_iter: int = 0, random_state: int | None = None
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.max_iter = max_iter
        self.random_state = random_state

    def _fit(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit` without issuing warnings, and return them.

        Parameters
        ----------
        data : data
            As for `moments`.

        Returns
        -------
        tuple of Warning
            The warnings of `fit`.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> SphericalGaussianMixture(2, random_state=0)._fit(X)
        ()
        """
        self.check_parameters()
        moments_of = self.moments_function(data)
        if self.n_components is not None:
            return self.estimate(moments_of(self.n_components))
        return self.estimate(self._detectable(moments_of)[1])

    def moments_function(self, data: Any) -> Callable[[int], M]:
        """Return a function from a number of components to the moments.

        It is called for `n_components`, or for 1, 2, ... components if that is None. By default it calls `moments`, and
        each call reads the data again; a model that can should read the data once, here, and need not have `moments`.

        Parameters
        ----------
        data : data
            As for `fit`.

        Returns
        -------
        callable
            Returns what `moments` returns for a given number.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> moments = SphericalGaussianMixture().moments_function(X)
        >>> moments(2).hides_component, moments(3).hides_component
        (False, True)
        """

        def moments_of(k: int) -> M:
            model = self if k == self.n_components else clone(self).set_params(n_components=k)
            return model.moments(data)

        return moments_of

    def _detectable(self, moments_of: Callable[[int], M]) -> tuple[int, M]:
        """Return the largest number of components that sampling noise does not hide, and its moments."""
        k, moments = 1, moments_of(1)  # an error here is about the data; below, about the number
        while True:
            try:
                candidate = moments_of(k + 1)
            except ValueError:
                return k, moments
            if candidate.hides_component:
                return k, moments
            k, moments = k + 1, candidate

    def estimate(self, moments: M) -> tuple[Warning, ...]:
        """Estimate the model from moments and set learned attributes.

        Parameters
        ----------
        moments : Moments
            As `moments` returns them.

        Returns
        -------
        tuple of Warning
            Warnings about the data, and about the convergence of a method that the user chose.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2, random_state=0)
        >>> model.estimate(model.moments_function(X)(2)), model.means_.shape
        ((), (2, 3))
        """
        return self._set(*self._components_of(moments), moments)

    def _set(self, components: C, fit: Factorization | None, moments: M) -> tuple[Warning, ...]:
        """Set learned attributes, and return the warnings."""
        for name, value in vars(components).items():
            setattr(self, f"{name}_", value)
        self._components, self.n_components_ = components, int(components.weights.size)
        warning_messages: list[Warning] = [UserWarning(message) for message in moments.warning_messages]
        # The default method makes one start of few sweeps: its errors are far below those of the moments.
        if fit is not None and moments.problem is not None and self.method is not None:
            message = warning_message(fit, self._resolved_method())
            warning_messages += [] if message is None else [ConvergenceWarning(message)]
        return tuple(warning_messages)

    def _components_of(self, moments: M) -> tuple[C, Factorization | None]:
        """Return the components, sorted, and the factorization of the moment."""
        fit = None
        if moments.problem is not None:
            fit = solve(moments.problem, self._resolved_method(), as_seed(self.random_state))
        return self._refine(self.parameters(fit, moments), moments).sorted(), fit

    def moments(self, data: Any) -> M:
        """Check data and return the moment to factorize.

        Parameters
        ----------
        data : data
            As for `fit`.

        Returns
        -------
        Moments
            The problem, and what `parameters` needs besides its solution.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> SphericalGaussianMixture(2, random_state=0).moments(X).problem.tensor.shape
        (2, 2, 2)
        """
        if type(self).moments_function is MomentModel.moments_function:
            raise NotImplementedError(f"{type(self).__name__} must implement moments(data)")
        return self.moments_function(data)(cast("int", self.n_components))

    def parameters(self, fit: Any, moments: M) -> C:
        """Return the parameters of components, in any order, from the factors of the moment.

        Parameters
        ----------
        fit : Factorization, or None if the moments have no problem
            The solution of the problem.
        moments : Moments
            As `moments` returns them.

        Returns
        -------
        Components
            The parameters.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2)
        >>> moments = model.moments(X)
        >>> fit = codiag.factorize(moments.problem, method=model._resolved_method(), rng=0)
        >>> model.parameters(fit, moments).means.shape
        (2, 3)
        """
        raise NotImplementedError(f"{type(self).__name__} must implement parameters(fit, moments)")

    def em_step(self, components: C, moments: M) -> C:
        """Return components after one step of expectation maximization.

        Parameters
        ----------
        components : Components
            The current parameters.
        moments : Moments
            With the data, if the step needs it.

        Returns
        -------
        Components
            The parameters after the step.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2)
        >>> moments = model.moments(X)
        >>> fit = codiag.factorize(moments.problem, method=model._resolved_method(), rng=0)
        >>> model.em_step(model.parameters(fit, moments), moments).means.shape
        (2, 3)
        """
        raise ValueError(
            f"max_iter must be 0, since {type(self).__name__} has no steps of expectation maximization; got "
            f"{self.max_iter}"
        )

    def _refine(self, components: C, moments: M) -> C:
        """Return components after at most `max_iter` steps of expectation maximization from each start.

        Parameters
        ----------
        components : Components
            The parameters to start from.
        moments : Moments
            As `moments` returns them.

        Returns
        -------
        Components
            The parameters after the steps.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2, max_iter=3)
        >>> moments = model.moments(X)
        >>> fit = codiag.factorize(moments.problem, method=model._resolved_method(), rng=0)
        >>> model._refine(model.parameters(fit, moments), moments).means.shape
        (2, 3)
        """
        starts = [components, *(self._more_starts(components, moments) if self.max_iter > FIRST_STEPS else ())]
        if self._path is not None:
            start, n_steps = self._path
            return self._after_steps(starts[min(start, len(starts) - 1)], moments, n_steps)
        runs = [Run(number, start, []) for number, start in enumerate(starts)]
        n_steps = FIRST_STEPS
        while len(runs) > 1 and n_steps < self.max_iter:
            first, *others = (self._continued(run, moments, n_steps) for run in runs)
            others.sort(key=lambda run: -run.level)
            runs, n_steps = [first, *others[: max(1, len(others) // 2)]], 2 * n_steps
        first, *others = (self._continued(run, moments, self.max_iter) for run in runs)
        best = max(others, key=lambda run: run.level, default=first)
        best = best if best.level > first.level + 10 * GAIN else first  # else both end at one maximum
        if not best.levels:
            return components
        known = {"log_likelihood": best.level, "n_iter": len(best.levels), "start": best.start}
        return replace(best.components, diagnostics=components.diagnostics.extended(**known))

    def _more_starts(self, components: C, moments: M) -> list[C]:
        """Return other parameters from which EM starts, too."""
        return []

    def _continued(self, run: Run[C], moments: M, n_steps: int) -> Run[C]:
        """Return a run of EM after this many steps, or until its log-likelihood would rise by less than `GAIN`."""
        components, levels = run.components, list(run.levels)
        while len(levels) < n_steps and not is_near_limit(levels):
            components = self.em_step(components, moments)
            levels.append(components.diagnostics.get("log_likelihood", np.nan))
        return Run(run.start, components, levels)

    def _after_steps(self, components: C, moments: M, n_steps: int) -> C:
        """Return components after a number of steps of EM."""
        for _ in range(n_steps):
            components = self.em_step(components, moments)
        return components

    def _resolved_method(self) -> Method:
        """Return the method that factorizes the moment.

        Returns
        -------
        Method
            The configured method.

        Examples
        --------
        >>> from codiag.models import SphericalGaussianMixture
        >>> SphericalGaussianMixture(method="nls")._resolved_method().n_starts
        1
        """
        return self.default_method if self.method is None else as_method(self.method)

    def _estimates(self) -> dict[str, Any]:
        return {f"{name}_": getattr(self._components, name) for name in self._components.parameter_names()}

    def _unfitted(self) -> Self:
        """Return a model with these options, for as many components as this fitted model has."""
        model = clone(self).set_params(n_components=self.n_components_)
        if "n_iter" in self._components.diagnostics:
            model._path = (self._components.diagnostics.start, self._components.diagnostics.n_iter)
        return model

    def _refit(self, data: Any) -> Self:
        replicate = self._unfitted()
        replicate._fit(data)
        replicate._components = replicate._components.reordered(nearest_order(self._components, replicate._components))
        return replicate


def is_near_limit(levels: Sequence[float]) -> bool:
    """Return whether log-likelihoods by step are within `GAIN` of their limit, by Aitken's extrapolation."""
    if len(levels) < 3:
        return False
    before, gain = levels[-2] - levels[-3], levels[-1] - levels[-2]
    if not gain > 0 or not before > 0:
        return bool(gain <= 0)  # False for NaN: a model whose steps tell no likelihood
    return gain < before and gain**2 / (before - gain) < GAIN


def warn_caller(warning_messages: Iterable[Warning], stacklevel: int = 3) -> None:
    """Issue warnings at the line that called the public method that calls this function."""
    for warning in warning_messages:
        warnings.warn(warning, stacklevel=stacklevel)


def as_seed(random_state: Any) -> int | None:
    """Return a seed: `random_state` itself if it is None or an integer, else an integer drawn from that generator."""
    check_rng("random_state", random_state)
    if random_state is None or isinstance(random_state, int | np.integer):
        return None if random_state is None else int(random_state)
    return int(as_generator(random_state, "random_state").integers(2**31))


def random_groups(n: int, n_groups: int) -> np.ndarray:
    """Return the group (n,) of every sample, at random and in equal numbers, since the order of samples may matter."""
    if n < n_groups:
        raise ValueError(f"n_groups must be at most {n}, the number of samples; got {n_groups}")
    return np.random.default_rng(0xB10C).permutation(np.arange(n) % n_groups)
