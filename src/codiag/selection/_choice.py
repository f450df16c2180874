"""The result of a choice of the rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from codiag._text import Table, html_table, text_table
from codiag.diagnosis import FAIR, Facts
from codiag.result import Factorization
from codiag.selection._upward import Tried

HEADINGS = ("rank", "error", "held out", "split-half", "CORCONDIA", "significance", "std. error", "")
"""Headings of the printed table."""
LEGEND = (
    "error: relative error of the fit; held out: relative error of held-out entries; split-half: the least congruence "
    "of a component in two halves of the data; CORCONDIA: core consistency in percent; significance: the least size "
    "of a component relative to the largest rank-one term of noise; std. error: the largest of a unit factor."
)
"""Meaning of the headings."""


@dataclass(frozen=True, eq=False, repr=False)
class RankChoice:
    """The rank that a tensor supports, and what speaks for and against all that were tried; print it to read it.

    Attributes
    ----------
    rank : int or None
        The number of components, or None where no rank is supported.
    reason : str
        Why, in a sentence.
    fits : dict of int to Factorization
        The fit of every rank that was tried. All but the one that was chosen may end before they have converged.
    tried : tuple
        The evidence for every rank that was tried.
    set_aside : tuple of (index, value)
        Entries that are far out of line, and are missing in the fit of the chosen rank.
    entries_in_words : str
        A sentence on them, or nothing.

    See Also
    --------
    choose_rank : Returns one.
    codiag.reports.factorization_report : A page that shows it.

    Examples
    --------
    >>> import codiag
    >>> from codiag.synthetic import noisy_tensor
    >>> choice = codiag.choose_rank(noisy_tensor((8, 9, 10), 3, noise=0.01, rng=1).tensor, range(1, 6), rng=0)
    >>> choice.rank, choice.fit.rank
    (3, 3)
    >>> choice.table["rank"].tolist(), choice.table["flaw"].tolist()
    ([1, 2, 3, 4, 5], ['', '', '', 'not significant', 'not significant'])
    """

    rank: int | None
    reason: str
    fits: dict[int, Factorization]
    tried: tuple[Tried, ...] = ()
    set_aside: tuple[tuple[tuple[int, ...], float], ...] = ()
    entries_in_words: str = ""

    @property
    def fit(self) -> Factorization:
        """The fit of the rank that was chosen; an error where none is supported.

        See Also
        --------
        RankChoice.fits : The fits of all ranks.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((8, 7, 6), 2, noise=0.01, rng=0).tensor
        >>> choice = codiag.choose_rank(tensor, range(1, 4), rng=0)
        >>> choice.fit is choice.fits[choice.rank]
        True
        """
        if self.rank is None:
            raise ValueError(f"{self.reason} fits[rank] has the fit of each rank that was tried")
        return self.fits[self.rank]

    @cached_property
    def table(self) -> dict[str, np.ndarray]:
        """Columns by name, one row for each rank: ``pandas.DataFrame(choice.table)`` is a data frame.

        ``rank``; ``relative_error`` of the fit; ``held_out_error``, relative; ``congruence`` of the halves, the least
        of all components; ``core_consistency`` in percent; ``significance``, the least size of a component relative to
        the largest term that noise may have; ``standard_error``, the largest of a unit factor; ``flaw``, empty if the
        rank is supported. NaN is what was not computed.

        See Also
        --------
        RankChoice.rows : The same as text.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((8, 7, 6), 2, noise=0.01, rng=0).tensor
        >>> table = codiag.choose_rank(tensor, range(1, 4), rng=0).table
        >>> table["rank"].tolist(), bool(table["relative_error"][0] > table["relative_error"][1])
        ([1, 2, 3], True)
        """
        rows = [_numbers(one) for one in self.tried]
        names = ["rank", "relative_error", "held_out_error", "congruence", "core_consistency"]
        names += ["significance", "standard_error", "flaw"]
        return Table({name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)})

    def plot(self, axes: Any = None) -> Any:
        """Draw what speaks for each rank, the one that was chosen marked.

        Parameters
        ----------
        axes : sequence of four matplotlib axes, optional
            Where to draw errors, congruence and core consistency, significances, and standard errors. By default in a
            new figure.

        Returns
        -------
        matplotlib.figure.Figure
            With these four panels.

        See Also
        --------
        RankChoice.table : The numbers that are drawn.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((8, 7, 6), 2, noise=0.01, rng=0).tensor
        >>> figure = codiag.choose_rank(tensor, range(1, 4), rng=0).plot()
        >>> len(figure.axes) >= 4
        True
        """
        from codiag.plotting import draw_choice

        return draw_choice(self, axes)

    def rows(self) -> list[tuple[str, ...]]:
        """Return the rows of the printed table, what was not computed as a dash.

        Returns
        -------
        list of tuples of str
            Rank, error, held-out error, congruence of the halves, core consistency in percent, least significance,
            largest standard error, and the verdict.

        See Also
        --------
        RankChoice.table : The same as numbers.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((8, 7, 6), 2, noise=0.01, rng=0).tensor
        >>> [row[0] for row in codiag.choose_rank(tensor, range(1, 4), rng=0).rows()]
        ['1', '2', '3']
        """
        return [_row(one, self.rank) for one in self.tried]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"{self.reason}\n\n{text_table(self._columns())}"

    def _repr_html_(self) -> str:
        """Show the reason and the printed table in notebooks."""
        return html_table(self.reason, self._columns())

    def _columns(self) -> dict[str, tuple[str, ...]]:
        return dict(zip(HEADINGS, zip(*self.rows(), strict=True), strict=True))


def entries_in_words(entries: Sequence[tuple[tuple[int, ...], float]], facts: Facts) -> str:
    """Return a sentence on entries that were set aside, by the labels of their indices, or nothing."""
    if len(entries) == 1:
        return f"Entry {facts.named_entries(entries)} is far out of line and was set aside."
    return f"Entries {facts.named_entries(entries)} are far out of line and were set aside." if entries else ""


def _numbers(one: Tried) -> tuple[object, ...]:
    """Return a row of the table."""
    facts = one.facts
    return (
        one.rank,
        one.fit.relative_error,
        one.held_out_error,
        one.congruence,
        facts.core_consistency,
        float(np.min(facts.significances)),
        float(np.max(facts.errors)),
        one.flaw or ("does not replicate" if one.congruence < FAIR else ""),
    )


def _row(one: Tried, rank: int | None) -> tuple[str, ...]:
    """Return a row of the printed table."""
    number, *values, flaw = _numbers(one)
    forms = (".3g", ".3g", ".2f", ".0f", ".3g", ".2g")
    shown = [_shown(value, form) for value, form in zip(values, forms, strict=True)]  # type: ignore[arg-type]
    return (str(number), *shown, "<- chosen" if one.rank == rank else str(flaw))


def _shown(value: float, form: str) -> str:
    if np.isnan(value):
        return "-"
    if np.isinf(value):
        return "inf"
    return "> 1e6" if value > 1e6 else "< 0" if value < 0 else format(value, form)
