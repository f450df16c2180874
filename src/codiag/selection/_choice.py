"""The result of a choice of the rank."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from codiag._text import html_table
from codiag.result import Factorization
from codiag.selection._evidence import Evidence

HEADINGS = ("rank", "error", "held out", "halves", "core %", "weight/se", "residual", "")
"""Headings of the printed table."""
LEGEND = (
    "error: relative error of the fit; held out: of entries that were left out; halves: congruence of the components "
    "of two halves of the data; core %: core consistency; weight/se: the smallest weight over its standard error; "
    "residual: its strongest direction against that of noise, above 1 where structure is left."
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
        The fit of every rank. Of a complete tensor without constraints, and under a loss, all but the one that was
        chosen end where further steps gain less than noise explains, before they have converged.
    evidence : tuple of Evidence
        The rows of `table`.

    See Also
    --------
    choose_rank : Returns one.
    codiag.reports.factorization_report : A page that shows it.

    Examples
    --------
    >>> import codiag
    >>> from codiag.synthetic import noisy_tensor
    >>> choice = codiag.choose_rank(noisy_tensor((8, 9, 10), 3, noise=0.01, seed=1).tensor, range(1, 6), seed=0)
    >>> choice.rank, choice.fit.rank
    (3, 3)
    >>> choice.table["rank"].tolist(), choice.table["flaw"].tolist()
    ([1, 2, 3, 4, 5], ['', '', '', 'fits noise', 'fits noise'])
    """

    rank: int | None
    reason: str
    fits: dict[int, Factorization]
    evidence: tuple[Evidence, ...]

    @property
    def fit(self) -> Factorization:
        """The fit of the rank that was chosen; an error where none is supported.

        See Also
        --------
        RankChoice.fits : The fits of all ranks.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((8, 7, 6), 2, noise=0.01, seed=0).tensor
        >>> choice = codiag.choose_rank(tensor, range(1, 4), seed=0)
        >>> choice.fit is choice.fits[choice.rank]
        True
        """
        if self.rank is None:
            raise ValueError(f"{self.reason} fits[rank] has the fit of each rank that was tried")
        return self.fits[self.rank]

    @cached_property
    def table(self) -> dict[str, np.ndarray]:
        """Columns by name, one row for each rank: ``pandas.DataFrame(choice.table)`` is a data frame.

        ``rank``; ``relative_error`` of the fit; ``core_consistency`` in percent; ``held_out_error``, relative;
        ``congruence`` of the halves; ``smallest_ratio``, of a weight to its standard error; ``residual_excess``;
        ``degenerate``; ``flaw``, empty where the components are sound. NaN is what was not computed.

        See Also
        --------
        RankChoice.rows : The same as text.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((8, 7, 6), 2, noise=0.01, seed=0).tensor
        >>> table = codiag.choose_rank(tensor, range(1, 4), seed=0).table
        >>> table["rank"].tolist(), bool(table["relative_error"][0] > table["relative_error"][1])
        ([1, 2, 3], True)
        """
        names = ["rank", "relative_error", "core_consistency", "held_out_error", "congruence", "smallest_ratio"]
        names += ["residual_excess", "degenerate", "flaw"]
        return {name: np.array([getattr(evidence, name) for evidence in self.evidence]) for name in names}

    def plot(self, axes: Any = None) -> Any:
        """Draw what speaks for each rank, the one that was chosen marked.

        Parameters
        ----------
        axes : sequence of four matplotlib axes, optional
            Where to draw errors, congruence and core consistency, ratios, and residuals. By default in a new figure.

        Returns
        -------
        matplotlib.figure.Figure
            With a panel for errors, congruence and core consistency, ratios, and residuals.

        See Also
        --------
        RankChoice.table : The numbers that are drawn.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((8, 7, 6), 2, noise=0.01, seed=0).tensor
        >>> figure = codiag.choose_rank(tensor, range(1, 4), seed=0).plot()
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
            Rank, error, held-out error, congruence of the halves, core consistency in percent, smallest weight over its
            standard error, residual against noise, and the verdict.

        See Also
        --------
        RankChoice.table : The same as numbers.

        Examples
        --------
        >>> import codiag
        >>> tensor = codiag.synthetic.noisy_tensor((8, 7, 6), 2, noise=0.01, seed=0).tensor
        >>> [row[0] for row in codiag.choose_rank(tensor, range(1, 4), seed=0).rows()]
        ['1', '2', '3']
        """
        return [_row(evidence, self.rank) for evidence in self.evidence]

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        rows = [HEADINGS, *self.rows()]
        widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
        lines = [
            "  ".join(cell.rjust(width) for cell, width in zip(row[:-1], widths[:-1], strict=True)) for row in rows
        ]
        marked = [f"{line}  {row[-1]}".rstrip() for line, row in zip(lines, rows, strict=True)]
        return "\n".join([self.reason, "", *marked])

    def _repr_html_(self) -> str:
        """Show the reason and the printed table in notebooks."""
        return html_table(self.reason, dict(zip(HEADINGS, zip(*self.rows(), strict=True), strict=True)))


def _row(evidence: Evidence, rank: int | None) -> tuple[str, ...]:
    """Return a row of the printed table."""
    verdict = "<- chosen" if evidence.rank == rank else evidence.flaw
    return (
        str(evidence.rank),
        f"{evidence.relative_error:.3g}",
        _shown(evidence.held_out_error, ".3g"),
        _shown(evidence.congruence, ".2f"),
        "< 0" if evidence.core_consistency < 0 else _shown(evidence.core_consistency, ".0f"),
        "> 1e6" if evidence.smallest_ratio > 1e6 else _shown(evidence.smallest_ratio, ".3g"),
        _shown(evidence.residual_excess, ".2f"),
        verdict,
    )


def _shown(value: float, form: str) -> str:
    return "-" if np.isnan(value) else format(value, form)
