"""The assessment of a fit: tables of components, samples, pairs and modes, and one list of advice."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from codiag._text import html_paragraphs, listed
from codiag.diagnosis._advice import advice_on
from codiag.diagnosis._data import Entry
from codiag.diagnosis._facts import DETERMINED, FAIR, NOT, UNKNOWN, Facts
from codiag.diagnosis._identifiability import kruskal_condition

if TYPE_CHECKING:
    from codiag.result import Factorization


@dataclass(frozen=True, eq=False)
class Assessment:
    """What is known about a fit; printed, it says which components the data determines, and gives advice.

    Tables are dicts of columns: ``pandas.DataFrame(assessment.components)`` is a data frame. Components are counted
    from 1, as in figures; they are in the order of the fit.

    Attributes
    ----------
    components : dict
        By component: ``weight``, ``explained_variance``, ``significance`` (its size relative to the largest rank-one
        term that noise may have, by sign flips), ``standard_error`` (the largest over modes), ``replication`` (its
        congruence in two halves of the data), ``verdict`` and ``reason``.
    samples : dict
        By mode and index: ``leverage``, ``residual`` (its root mean square, relative to the median of the mode), and
        ``carries``, the component that is there alone, or 0.
    pairs : dict
        By two components: ``congruence`` (the product of their cosines), ``separation`` (the distance of their columns
        in standard errors, in the mode where it is third largest), ``degenerate`` and ``separated``.
    modes : dict
        By mode: its ``size``, the ``condition`` number of its factor, whether noise is ``correlated`` along it, and the
        root mean square of ``shift``, in points, by which profiles move from sample to sample, 0 without shifts.
    entries : tuple of Entry
        Entries that carry a component alone, look like a code for missing values, or have much of the residual.
    residual_ratio : float
        The strongest rank-one term of the residual, relative to the largest that noise may have; NaN if unknown.
    core_consistency : float
        In percent; NaN without the data.
    p_missed : float
        The chance that a lower minimum was missed.
    unique : bool or None
        Whether Kruskal's condition is satisfied, which guarantees uniqueness; None if that was not determined.
    noise : str
        The noise for which standard errors are valid.
    advice : tuple of str
        What to do, the most important first: data, model, rank, optimum. At most three sentences.
    advised_rank : int or None
        The one rank that is advised, if one is.

    See Also
    --------
    codiag.Factorization.diagnose : Returns one.
    codiag.choose_rank : How many components to ask for, by the same assessment.

    Examples
    --------
    >>> import codiag
    >>> from codiag.synthetic import noisy_tensor
    >>> fit = codiag.factorize(noisy_tensor((6, 7, 8), 2, noise=0.01, rng=0).tensor, 2, rng=0)
    >>> print(fit.diagnose())
    2 of 2 components are determined.
    >>> fit.diagnose().components["verdict"].tolist()
    ['determined', 'determined']
    """

    components: Mapping[str, np.ndarray]
    samples: Mapping[str, np.ndarray]
    pairs: Mapping[str, np.ndarray]
    modes: Mapping[str, np.ndarray]
    entries: tuple[Entry, ...] = ()
    residual_ratio: float = math.nan
    core_consistency: float = math.nan
    p_missed: float = 0.0
    unique: bool | None = None
    noise: str = ""
    advice: tuple[str, ...] = ()
    advised_rank: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "entries", tuple(Entry(*entry) for entry in self.entries))

    @property
    def verdicts(self) -> tuple[str, ...]:
        """The verdict on each component.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((6, 7, 8), 2, noise=0.01, rng=0).tensor
        >>> codiag.factorize(tensor, 2, rng=0).diagnose().verdicts
        ('determined', 'determined')
        """
        return tuple(self.components["verdict"].tolist())

    @property
    def is_supported(self) -> bool:
        """Whether every component is significant, at least roughly determined, and replicates where that is known.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((6, 7, 8), 2, noise=0.01, rng=0).tensor
        >>> codiag.factorize(tensor, 2, rng=0).diagnose().is_supported
        True
        """
        known = self.components
        are_significant = bool(np.all(~(known["significance"] <= 1)))
        do_replicate = bool(np.all(~(known["replication"] < FAIR)))
        return are_significant and do_replicate and not {NOT, UNKNOWN} & set(self.verdicts)

    def __str__(self) -> str:
        verdicts, reasons = self.verdicts, self.components["reason"].tolist()
        n, n_all = verdicts.count(DETERMINED), len(verdicts)
        lines = [f"{n} of {n_all} component{'s are' if n_all > 1 else ' is'} determined."]
        groups: dict[tuple[str, str], list[int]] = {}
        for number, pair in enumerate(zip(verdicts, reasons, strict=True)):
            if pair[0] != DETERMINED:
                groups.setdefault(pair, []).append(number + 1)
        for (verdict, reason), numbers in groups.items():
            which = f"Component {numbers[0]} is" if len(numbers) == 1 else f"Components {listed(numbers)} are"
            lines.append(f"{which} {'of unknown accuracy' if verdict == UNKNOWN else verdict}: {reason}.")
        return "\n".join([*lines, *self.advice])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_paragraphs(str(self))


def assess(fit: Factorization, below: Factorization | None = None) -> Assessment:
    """Return what is known about a fit: about the data, each component, the model and the optimum.

    A component is *significant* if it exceeds the largest rank-one term that noise may have, by random sign flips of
    the residual. It is *determined* if its expected congruence with the true component is at least .95, *roughly
    determined* from .85 on; two components that are not separated in all modes but two are not.

    Parameters
    ----------
    fit : Factorization
        What `codiag.factorize` returns.
    below : Factorization, optional
        A fit of a lower rank to the same data: the least component cannot explain more than it leaves.

    Returns
    -------
    Assessment
        Tables, and advice; print it to read it.

    See Also
    --------
    codiag.Factorization.diagnose : The same as a method.

    Examples
    --------
    >>> import codiag
    >>> from codiag.diagnosis import assess
    >>> from codiag.synthetic import noisy_tensor
    >>> tensor = noisy_tensor((6, 7, 8), 2, noise=0.01, rng=0).tensor
    >>> tensor[1, 2, 3] = -999
    >>> print(assess(codiag.factorize(tensor, 3, rng=0)).advice[0])
    Entry (1, 2, 3) = -999 carries component 1 alone. If it is an error or stands for a missing value, make it NaN.
    """
    if not (hasattr(fit, "standard_errors") and hasattr(fit, "factors")):
        raise TypeError(f"fit must be a Factorization, what codiag.factorize returns; got {type(fit).__name__}")
    facts = Facts(fit, below)
    components, samples, pairs, modes = facts.tables()
    found = Assessment(
        components,
        samples,
        pairs,
        modes,
        facts.entries,
        facts.residual_ratio,
        facts.core_consistency,
        facts.p_missed,
        kruskal_condition(facts.factors),
        str(fit.noise_model),
    )
    advice, rank = advice_on(facts)
    return replace(found, advice=tuple(advice), advised_rank=rank)
