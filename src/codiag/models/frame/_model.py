"""The frame of every model: from data to a moment, from the components of the moment to parameters."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from codiag._checks import (
    ConvergenceWarning,
    as_generator,
    as_number,
    check_seed,
    explains_keywords,
    warn_of_former,
)
from codiag.methods import Auto, Method, as_method
from codiag.models.frame._components import Components
from codiag.problem import Problem
from codiag.result import complaint_about, solve

LARGEST_ALPHA = 1e6
"""Third moments are differences of terms of the order of its square: up to here double precision has digits left."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Moments:
    """What a model asks of its data; a model adds in a subclass what leads from the solution back to parameters.

    Attributes
    ----------
    problem : Problem or None
        The moment to factorize; None where parameters follow without.
    complaints : tuple of str
        What a user must be told about the data, sentences for warnings.
    hides_component : bool
        Whether the weakest component may be sampling noise alone, so that fewer are to be asked for.

    See Also
    --------
    MomentModel.moments : Returns one.
    codiag.Problem : The problem to solve.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.models import Moments
    >>> Moments(problem=codiag.Problem(np.ones((3, 3, 3)), 1)).complaints
    ()
    """

    problem: Problem | None
    complaints: tuple[str, ...] = ()
    hides_component: bool = False


M = TypeVar("M", bound=Moments)
C = TypeVar("C", bound=Components)


class Model(BaseEstimator):
    """What all estimators share: checks of parameters, and `fit`, which alone warns."""

    optional: ClassVar[frozenset[str]] = frozenset()
    """Parameters that may be None, for which the model then finds a value."""

    former_parameters: ClassVar[Mapping[str, str]] = {}
    """Parameters that were renamed, with their new names."""

    former_attributes: ClassVar[Mapping[str, str]] = {}
    """Learned attributes that were renamed, with their new names."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Let a model that is given a former keyword, or one of another library, say what it is called here."""
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = explains_keywords(cls.__init__, cls.former_parameters)  # type: ignore[method-assign]

    def __getattr__(self, name: str) -> Any:
        """Resolve the former names of learned attributes, with a DeprecationWarning."""
        new = type(self).former_attributes.get(name)
        if new is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        warn_of_former(f"{name} of {type(self).__name__}", new)
        return getattr(self, new)

    def fit(self, X: Any, y: object = None) -> Self:  # noqa: N803
        """Estimate the model.

        Parameters
        ----------
        X : data
            What the model is of.
        y : ignored
            Not used; there for the interface of scikit-learn.

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
        warn_caller(self.learn(X))
        return self

    def learn(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit`, silently, and return what is to be warned of.

        Parameters
        ----------
        data : data
            As users give it to `fit`.

        Returns
        -------
        tuple of Warning
            What `fit` warns of.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement learn(data)")

    def check_parameters(self) -> None:
        """Raise unless parameters are what they must be; models add checks of their own.

        Those that all models have by the same name, where this one has them: ``n_components``, ``polish``, ``alpha_0``,
        ``n_partitions``, ``n_blocks``, ``method``, ``random_state``.

        Examples
        --------
        >>> from codiag.models import CP
        >>> CP(n_components=3).check_parameters()
        >>> CP(n_components=0).check_parameters()  # refused
        Traceback (most recent call last):
            ...
        ValueError: n_components must be positive; got 0
        """
        given = self.get_params(deep=False)
        numbers = {"n_components": False, "n_partitions": False, "polish": True, "n_blocks": True}
        for name, zero in numbers.items():
            if name in given and not (given[name] is None and name in self.optional):
                as_number(name, given[name], integer=True, zero=zero)
        if "alpha_0" in given and not (given["alpha_0"] is None and "alpha_0" in self.optional):
            check_alpha(given["alpha_0"])
        if "method" in given:
            as_method(given["method"])
        if "random_state" in given:
            check_seed("random_state", given["random_state"])


class MomentModel(Model, Generic[M, C]):
    r"""A latent-variable model whose parameters are the factors of a moment: the base of all estimators here.

    A model is a subclass that implements `moments`, from data to a `codiag.Problem`, and `parameters`, from its
    solution to the parameters of components. With `em_step` it can be polished. Checks, the solution, the order of
    components, learned attributes and warnings are done here.

    Parameters
    ----------
    n_components : int, optional
        Number of components. None, where a model lists it in `optional`, for as many as sampling noise does not hide.
    method : Method or str, optional
        How the moment is factorized; by default `codiag.methods.Auto`.
    polish : int
        Steps of expectation maximization afterwards; zero is the pure method of moments.
    random_state : int, optional
        Seed; the answer does not depend on it where the data determines it.

    Attributes
    ----------
    n_components_ : int
        Number of components.
    weights_, diagnostics_
        As every field of the model's `Components`, with an underscore, components by weight, largest first.

    See Also
    --------
    Moments : What such a model asks of its data.
    Components : What it learns.
    SphericalGaussianMixture : A model of this kind.

    Examples
    --------
    Topics of documents of three words each, all about one topic: the frequencies of triples are
    :math:`\sum_i w_i\, \mu_i \otimes \mu_i \otimes \mu_i`.

    >>> from dataclasses import dataclass
    >>> import numpy as np
    >>> import codiag
    >>> from codiag.models import Components, Diagnostics, MomentModel, Moments
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

    def __init__(
        self, n_components: int | None = 2, *, method: Any = None, polish: int = 0, random_state: int | None = None
    ) -> None:
        self.n_components = n_components
        self.method = method
        self.polish = polish
        self.random_state = random_state

    def learn(self, data: Any) -> tuple[Warning, ...]:
        """Do the work of `fit`, silently, and return what is to be warned of.

        Parameters
        ----------
        data : data
            What `moments` takes.

        Returns
        -------
        tuple of Warning
            What `fit` warns of.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> SphericalGaussianMixture(2, random_state=0).learn(X)
        ()
        """
        self.check_parameters()
        if self.n_components is not None:
            return self.estimate(self.moments(data))
        found = self._with_number(self._n_shown(data))
        told = found.learn(data)
        for name in vars(found).keys() - self.get_params(deep=False).keys():
            setattr(self, name, getattr(found, name))
        return told

    def n_asked(self) -> int:
        """Return the number of components that is asked for, or say that one must be given.

        Returns
        -------
        int
            The number.

        Examples
        --------
        >>> from codiag.models import SphericalGaussianMixture
        >>> SphericalGaussianMixture(3).n_asked()
        3
        """
        if self.n_components is None:
            raise ValueError(
                "n_components must be given to partial_fit, since the number of components is found by `fit` of all "
                "data; got None"
            )
        return self.n_components

    def _with_number(self, k: int) -> Self:
        """Return the same model that is asked for k components."""
        model: Self = clone(self).set_params(n_components=k)
        return model

    def _n_shown(self, data: Any) -> int:
        """Return the number of components that sampling noise does not hide: before the first that it hides."""
        if isinstance(data, Iterator):
            raise ValueError(
                "n_components must be given where X is an iterator, which can be read once; got None. Give a list, a "
                "dask collection, or a function that returns an iterator"
            )
        self._with_number(1).moments(data)  # what is wrong with data is wrong here; what follows is about the number
        k = 1
        while True:
            try:
                if self._with_number(k + 1).moments(data).hides_component:
                    return k
            except ValueError:  # as many cannot be had from these data
                return k
            k += 1

    def estimate(self, moments: M) -> tuple[Warning, ...]:
        """Go from moments to learned attributes: solve, polish, order.

        Parameters
        ----------
        moments : Moments
            What `moments` returns.

        Returns
        -------
        tuple of Warning
            What a user must be told: the complaints of the moments, and of a fit by a method of the user's own.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2, random_state=0)
        >>> model.estimate(model.moments(X)), model.means_.shape
        ((), (2, 3))
        """
        complaints: list[Warning] = [UserWarning(complaint) for complaint in moments.complaints]
        fit, method = None, self.strategy()
        if moments.problem is not None:
            fit = solve(moments.problem, method, as_seed(self.random_state))
            # By default one start of few sweeps must do, and `diagnostics_` tell: the noise of moments is far larger.
            complaint = None if self.method is None else complaint_about(fit, moments.problem, method)
            complaints += [] if complaint is None else [ConvergenceWarning(complaint)]
        components = self.polished(self.parameters(fit, moments), moments).sorted()
        self.n_components_ = int(components.weights.size)
        self.keep(components, moments)
        return tuple(complaints)

    def moments(self, data: Any) -> M:
        """Check data and return the problem that it poses.

        Parameters
        ----------
        data : data
            As users give it to `fit`.

        Returns
        -------
        Moments
            The problem, and what leads from its solution back to parameters.

        See Also
        --------
        MomentModel.parameters : The way back.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> SphericalGaussianMixture(2, random_state=0).moments(X).problem.tensor.shape
        (2, 2, 2)
        """
        raise NotImplementedError(f"{type(self).__name__} must implement moments(data)")

    def parameters(self, fit: Any, moments: M) -> C:
        """Return the parameters of components, in any order, from the factors of the moment.

        Parameters
        ----------
        fit : Factorization, or None where the moments have no problem
            The solution of the problem.
        moments : Moments
            What `moments` returns.

        Returns
        -------
        Components
            The parameters.

        See Also
        --------
        MomentModel.moments : Poses the problem.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2)
        >>> moments = model.moments(X)
        >>> fit = codiag.factorize(moments.problem, method=model.strategy(), seed=0)
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
            With the data, if that is needed here.

        Returns
        -------
        Components
            The parameters after the step.

        See Also
        --------
        MomentModel.polished : Several steps.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2)
        >>> moments = model.moments(X)
        >>> fit = codiag.factorize(moments.problem, method=model.strategy(), seed=0)
        >>> model.em_step(model.parameters(fit, moments), moments).means.shape
        (2, 3)
        """
        raise ValueError(f"polish must be 0, since {type(self).__name__} has no steps to polish by; got {self.polish}")

    def polished(self, components: C, moments: M) -> C:
        """Return components after as many steps of expectation maximization as `polish` says.

        Parameters
        ----------
        components : Components
            The parameters to start from.
        moments : Moments
            What `moments` returns.

        Returns
        -------
        Components
            The parameters after the steps.

        See Also
        --------
        MomentModel.em_step : One step.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2, polish=3)
        >>> moments = model.moments(X)
        >>> fit = codiag.factorize(moments.problem, method=model.strategy(), seed=0)
        >>> model.polished(model.parameters(fit, moments), moments).means.shape
        (2, 3)
        """
        for _ in range(self.polish):
            components = self.em_step(components, moments)
        return components

    def keep(self, components: C, moments: M) -> None:
        """Set learned attributes: by default every field of the components, with an underscore.

        Parameters
        ----------
        components : Components
            In their final order.
        moments : Moments
            What `moments` returns.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> from codiag.models import SphericalGaussianMixture
        >>> rng = np.random.default_rng(0)
        >>> X = np.concatenate([rng.normal(mean, 1, (500, 3)) for mean in ([8, 0, 0], [0, 8, 0])])
        >>> model = SphericalGaussianMixture(2)
        >>> moments = model.moments(X)
        >>> fit = codiag.factorize(moments.problem, method=model.strategy(), seed=0)
        >>> model.keep(model.parameters(fit, moments).sorted(), moments)
        >>> model.means_.shape
        (2, 3)
        """
        for name, value in vars(components).items():
            setattr(self, f"{name}_", value)

    def strategy(self) -> Method:
        """Return the method that factorizes the moment, resolved from its name.

        Returns
        -------
        Method
            The configured method.

        Examples
        --------
        >>> from codiag.models import SphericalGaussianMixture
        >>> SphericalGaussianMixture(method="nls").strategy().n_starts
        1
        """
        return self.default_method if self.method is None else as_method(self.method)


def warn_caller(complaints: Iterable[Warning]) -> None:
    """Warn at the line that called the public method that calls this."""
    for warning in complaints:
        warnings.warn(warning, stacklevel=3)


def as_seed(random_state: Any) -> int | None:
    """Return the seed that `random_state` stands for: None, a whole number, or one drawn from a generator of NumPy."""
    check_seed("random_state", random_state)
    if random_state is None or isinstance(random_state, int | np.integer):
        return None if random_state is None else int(random_state)
    return int(as_generator(random_state, "random_state").integers(2**31))


def check_alpha(alpha_0: float) -> None:
    """Raise unless the total of a Dirichlet distribution is one that moments can be corrected for."""
    as_number("alpha_0", alpha_0, zero=True)
    if alpha_0 > LARGEST_ALPHA:
        raise ValueError(
            f"alpha_0 must be at most {LARGEST_ALPHA:g}: beyond that shares are all alike, and moments corrected for "
            f"them are differences of numbers that rounding makes equal; got {alpha_0:g}"
        )
