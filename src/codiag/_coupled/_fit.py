"""The result of coupled sets, and its methods."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtrc

from codiag._checks import as_share, attribute_hint
from codiag._coupled._sets import Sets
from codiag._text import Table, counted
from codiag.constraints import Constraint
from codiag.labels import Labels
from codiag.problem import History, LogEntry, Problem, most_components
from codiag.result import Factorization


class Test(NamedTuple):
    """The test of a component in a set: its weight there, the standard error, and the probability under noise."""

    place: int
    component: int
    weight: float
    error: float
    p_value: float


@dataclass(frozen=True, eq=False, repr=False)
class CoupledFit:
    r"""Tensors and matrices as sums of components with common factors along shared modes.

    Attributes
    ----------
    weights : array of shape (n_sets, rank)
        Of each component in each set, for unit columns. Components that explain most of all sets are first. A weight is
        negative if the component has the other sign than in an earlier set with the same modes.
    factors : dict of str to arrays of shape (d_m, rank)
        Unit columns by name of mode. NaN in rows of which nothing was observed.
    relative_errors : array of shape (n_sets,)
        :math:`\|T - \text{fit}\| / \|T\|` of each set, over the observed entries.
    noise_standard_deviations : array of shape (n_sets,)
        Of the noise of an entry, from the residuals and their degrees of freedom.
    converged : bool
        Whether the last steps reached their tolerance.
    history : tuple of LogEntry
        The starts and the last steps.
    p_missed : float
        The chance that a lower minimum was missed.
    entry_standard_errors : dict of str to arrays of shape (d_m, rank)
        Of the entries of unit columns, by name of mode.
    weight_standard_errors : array of shape (n_sets, rank)
        Of the weights.

    See Also
    --------
    factorize_coupled : Returns one.
    Factorization : The same for one tensor.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> rng = np.random.default_rng(0)
    >>> names = [("subject", "gene", "time"), ("subject", "metabolite")]
    >>> sets = [rng.standard_normal((9, 8, 7)), rng.standard_normal((9, 6))]
    >>> fit = codiag.factorize_coupled(sets, 1, modes=names, rng=0)
    >>> fit
    CoupledFit(1 component of 2 sets, shared: subject, relative_errors=[0.966, 0.749], converged=True)
    >>> {name: factor.shape for name, factor in fit.factors.items()}
    {'subject': (9, 1), 'gene': (8, 1), 'time': (7, 1), 'metabolite': (6, 1)}
    """

    weights: np.ndarray
    factors: Mapping[str, np.ndarray]
    relative_errors: np.ndarray
    noise_standard_deviations: np.ndarray
    converged: bool
    history: tuple[LogEntry, ...]
    p_missed: float
    _sets: Sets
    _rules: Sequence[Constraint | None]
    entry_standard_errors: Mapping[str, np.ndarray] = field(default_factory=dict)
    weight_standard_errors: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    _contributions: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    _removed: tuple[Test, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "history", History(self.history))

    @property
    def rank(self) -> int:
        """Number of components.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.factorize_coupled([np.ones((3, 4, 5))], 1, modes=[tuple("abc")], rng=0).rank
        1
        """
        return int(self.weights.shape[1])

    @property
    def labels(self) -> Labels:
        """Names of all modes, and labels of their indices.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> codiag.factorize_coupled([np.ones((3, 4, 5))], 1, modes=[tuple("abc")], rng=0).labels.names
        ('a', 'b', 'c')
        """
        return self._sets.labels

    @property
    def standard_errors(self) -> dict[str, np.ndarray]:
        r"""Standard errors :math:`(E\|\tilde a_r - a_r\|^2)^{1/2}` of unit columns, shape (rank,), by name of mode.

        First-order theory from the joint information of all sets, for white noise of its own variance in each;
        ``entry_standard_errors`` has one for each entry, ``weight_standard_errors`` those of the weights. They are zero
        for what constraints fix, infinite where the data leave a component free, and NaN above 4000 unknowns with
        missing entries or constraints.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> tensor = np.random.default_rng(0).standard_normal((3, 4, 5))
        >>> codiag.factorize_coupled([tensor], 1, modes=[tuple("abc")], rng=0).standard_errors["a"].shape
        (1,)
        """
        return {name: np.sqrt(np.nansum(errors**2, axis=0)) if not np.isnan(errors).all() else errors[0]
                for name, errors in self.entry_standard_errors.items()}  # fmt: skip

    def presence(self, level: float = 0.95) -> Table:
        r"""Return a table: which component is in which set.

        Parameters
        ----------
        level : float
            Level of the intervals, and one minus the chance that any absent component is called present.

        Returns
        -------
        Table
            A row for each component and set, with the columns ``component``, ``set``, ``share`` of the variance of the
            set, ``weight``, ``standard_error``, ``low`` and ``high``, ``p_value`` and ``present``. Make it a data frame
            by ``pandas.DataFrame(table)``.

        See Also
        --------
        CoupledFit.without_absent : The fit in which what is absent has a weight of zero, from which the table is made.

        Notes
        -----
        The test is that of what the component explains in the set while all else is free. In the set where it explains
        most, and where several of its modes are in that set only, a column is fitted to noise: the bound is the largest
        rank-one term of noise, :math:`\sum_m \sqrt{d_m}`, exceeded by t with a probability of at most
        :math:`e^{-t^2 / 2}`. With one such mode it is chi-squared with :math:`d_m` degrees of freedom, and one if all
        modes are shared. Probabilities are multiplied by the number of rows. A set that has more components than the
        data show can be written in many ways; so the least significant one is removed, the others are refitted and
        tested again. The row of what was removed is that before. Intervals are those of normal theory; the low end of
        what is not present is zero.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> rng = np.random.default_rng(0)
        >>> a, b, c, d = (rng.standard_normal((size, 2)) for size in (20, 15, 6, 10))
        >>> both, first = np.einsum("ir,jr,kr->ijk", a, b, c), a[:, :1] @ d[:, :1].T
        >>> noisy = [both + 0.1 * rng.standard_normal(both.shape), first + 0.1 * rng.standard_normal(first.shape)]
        >>> fit = codiag.factorize_coupled(noisy, 2, modes=[tuple("abc"), tuple("ad")], rng=0)
        >>> sorted(fit.presence()["present"].tolist())
        [False, True, True, True]
        """
        small = self.without_absent(level)
        removed = {(test.place, test.component): test for test in small._removed}
        shares = [small[place].explained_variance for place in range(len(self))]
        wide = NormalDist().inv_cdf((1 + level) / 2)
        rows = []
        for component in range(self.rank):
            for place, name in enumerate(self._sets.names):
                test = removed.get((place, component)) or small._test(place, component)
                low, high = test.weight - wide * test.error, test.weight + wide * test.error
                present = test.p_value <= 1 - level
                low = low if present else min(low, 0.0)
                share = float(shares[place][component])
                rows.append((component, name, share, test.weight, test.error, low, high, test.p_value, present))
        names = ("component", "set", "share", "weight", "standard_error", "low", "high", "p_value", "present")
        return Table(dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True)))

    def without_absent(self, level: float = 0.95) -> CoupledFit:
        """Return the fit in which a component has a weight of zero in sets where it explains no more than noise.

        Every component stays in one set at least. Factors of a component that no set has any more are NaN. Standard
        errors are those of the smaller model.

        Parameters
        ----------
        level : float
            One minus the chance that any absent component is called present.

        Returns
        -------
        CoupledFit
            With the same order of components.

        See Also
        --------
        CoupledFit.presence : The table of all tests.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> rng = np.random.default_rng(0)
        >>> a, b, c, d = (rng.standard_normal((size, 2)) for size in (20, 15, 6, 10))
        >>> both, first = np.einsum("ir,jr,kr->ijk", a, b, c), a[:, :1] @ d[:, :1].T
        >>> noisy = [both + 0.1 * rng.standard_normal(both.shape), first + 0.1 * rng.standard_normal(first.shape)]
        >>> fit = codiag.factorize_coupled(noisy, 2, modes=[tuple("abc"), tuple("ad")], rng=0)
        >>> [int(np.count_nonzero(each.weights)) for each in (fit, fit.without_absent())]
        [4, 3]
        """
        from codiag._coupled._presence import without_absent

        as_share("level", level)
        return without_absent(self, level)

    def _test(self, place: int, component: int, gain: float | None = None) -> Test:
        """Return the test of whether noise explains as much as a component does in a set, among all of them."""
        gain = max(float(self._contributions[place, component]) if gain is None else gain, 0.0)
        sets = self._sets
        is_strongest = place == int(np.argmax(self._contributions[:, component]))
        modes = sets.modes[place]
        own = [sets.sizes[mode] for mode in modes if is_strongest or sets.containing(mode) == [place]]
        if len(own) < 2:
            p_value = float(chdtrc(own[0] if own else 1, gain))
        else:
            p_value = math.exp(-(max(math.sqrt(gain) - sum(map(math.sqrt, own)), 0.0) ** 2) / 2)
        weight, error = self.weights[place, component], self.weight_standard_errors[place, component]
        return Test(place, component, float(weight), float(error), min(p_value * self.weights.size, 1.0))

    def describe(self) -> str:
        """Return sentences and references for a methods section.

        Returns
        -------
        str
            The model, the computation, and what to cite.

        Examples
        --------
        >>> import numpy as np
        >>> import codiag
        >>> fit = codiag.factorize_coupled([np.ones((3, 4, 5))], 1, modes=[tuple("abc")], rng=0)
        >>> print(fit.describe()[:48])
        A coupled CP decomposition with 1 component of 1
        """
        from codiag import __version__

        sets = self._sets
        shapes = "; ".join(
            f"{name} ({' x '.join(f'{sets.sizes[m]} {self.labels.names[m]}' for m in modes)}, "
            f"{100 * (1 - error**2):.4g} % of the variance explained)"
            for name, modes, error in zip(sets.names, sets.modes, self.relative_errors, strict=True)
        )
        rules = [f"{rule!r} on {name}" for rule, name in zip(self._rules, self.labels.names, strict=True) if rule]
        bound = f", with {', '.join(rules)}" if rules else ""
        return (
            f"A coupled CP decomposition with {counted(self.rank, 'component')} of {counted(len(self), 'set')} was "
            f"fitted by least squares weighted by the estimated noise variances of the sets{bound}: {shapes}. It was "
            f"computed with codiag {__version__} from {counted(len(self.history) - 1, 'start')}, and "
            f"{'converged' if self.converged else 'did not converge'}. Standard errors are by first-order theory, for "
            "white noise in each set.\n\nReferences: E. Acar, T. G. Kolda and D. M. Dunlavy, All-at-once optimization "
            "for coupled matrix and tensor factorizations, arXiv:1105.3422, 2011."
        )

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{attribute_hint(name)}")

    def __len__(self) -> int:
        return len(self._sets)

    def __getitem__(self, index: int | str) -> Factorization:
        """Return the components of one set, by its number or name, with the standard errors of the coupled fit.

        A matrix has another mode of size one.
        """
        sets = self._sets
        place = sets.names.index(index) if isinstance(index, str) else range(len(self))[index]
        modes, ones = sets.modes[place], [np.ones((1, self.rank))] * (2 // len(sets.modes[place]))
        names = [self.labels.names[mode] for mode in modes]
        factors = (*(self.factors[name] for name in names), *ones)
        values = [self.labels.values[mode] for mode in modes] + [None] * len(ones)
        labels = Labels((*names, *(["set"] * len(ones))), tuple(values))
        array = (sets.arrays[place] * sets.scales[place]).reshape([len(factor) for factor in factors])
        if self.rank <= most_components(array.shape):
            rules = [self._rules[mode] for mode in modes] + [None] * len(ones)
            problem = Problem(array, self.rank, constraints=rules, labels=labels)
        else:
            problem = Problem.of_result(self.weights[place], factors)
            problem = problem.stating(n_observed=int(sets.n_observed[place]), labels=labels)
        norm = float(sets.scales[place] * math.sqrt(sets.n_observed[place]))
        fit = Factorization(
            self.weights[place],
            factors,
            float(self.relative_errors[place]),
            self.converged,
            self.history,
            problem,
            _norm=norm,
        )
        errors = {
            "entry_standard_errors": (
                *(self.entry_standard_errors[name] for name in names),
                *(0 * one for one in ones),
            ),
            "weight_standard_errors": self.weight_standard_errors[place],
            "_noise": float(self.noise_standard_deviations[place]),
        }
        vars(fit).update(errors)
        return fit

    def __repr__(self) -> str:
        shared = [name for mode, name in enumerate(self.labels.names) if len(self._sets.containing(mode)) > 1]
        common = f", shared: {', '.join(shared)}" if shared else ""
        errors = ", ".join(f"{error:.3g}" for error in self.relative_errors)
        return (
            f"CoupledFit({counted(self.rank, 'component')} of {counted(len(self), 'set')}{common}, "
            f"relative_errors=[{errors}], converged={self.converged})"
        )
