"""Standard errors of parameters from estimates without blocks of the data, each left out in turn.

Models with standard errors from estimates without blocks of the data, each left out in turn.

Models with standard errors from sums over blocks of the data, each left out in turn.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from scipy.optimize import linear_sum_assignment

from codiag.models.frame._components import Components
from codiag.models.frame._model import MomentModel, Moments, as_seed
from codiag.models.frame._partial_fit import SummedModel, SummedMoments
from codiag.models.frame._sums import Blocks, block_of_rows, leave_one_out
from codiag.parts import Parts
from codiag.result import solve

C = TypeVar("C", bound=Components)

AT_BOUND = 1e-8
"""Distance from 0 or 1 within which shares are at that bound: models keep them a little inside, by 1e-9 at most."""


def jackknife(whole: C, replicates: Sequence[C], sizes: np.ndarray) -> dict[str, Any]:
    """Return standard errors of the parameters of components, by name: arrays, lists of arrays or numbers, as these.

    Replicate b is the estimate without block b, of the given size; its components may come in any order.
    """
    aligned = [replicate.reordered(nearest_order(whole, replicate)) for replicate in replicates]
    ratios = np.sum(sizes) / np.asarray(sizes, dtype=np.float64)
    errors: dict[str, Any] = {}
    for name in whole.parameter_names():
        value, others = getattr(whole, name), [getattr(one, name) for one in aligned]
        errors_of = jackknife_errors if name in whole.unbounded else share_errors
        if isinstance(value, list):
            pairs = zip(value, zip(*others, strict=True), strict=True)
            errors[name] = [errors_of(part, np.stack(rest), ratios) for part, rest in pairs]
        else:
            found = errors_of(np.asarray(value), np.stack([np.asarray(one) for one in others]), ratios)
            errors[name] = found if isinstance(value, np.ndarray) else float(found)
    return errors


def jackknife_errors(value: np.ndarray, others: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    r"""Return standard errors of an estimate, from estimates (blocks, ...) without each of the blocks.

    Block b holds a share :math:`1 / h_b` of the data. With pseudo-values :math:`h_b \theta - (h_b - 1) \theta_b` and
    their mean :math:`\bar\theta` the variance is the mean over blocks of their squared distances from it, each over
    :math:`h_b - 1` (Busing, Meijer & van der Leeden, 1999); where blocks are of one size this is the delete-a-group
    jackknife.
    """
    h = np.asarray(ratios).reshape(-1, *[1] * value.ndim)
    pseudo = h * value - (h - 1) * others
    # For blocks of one size this is the mean of the pseudo-values.
    center = len(others) * value - np.sum((1 - 1 / h) * others, axis=0)
    return np.asarray(np.sqrt(np.mean((pseudo - center) ** 2 / (h - 1), axis=0)))


def share_errors(value: np.ndarray, others: np.ndarray, ratios: np.ndarray, unit: float = 1.0) -> np.ndarray:
    """Return standard errors of shares or rates, NaN for those held at 0, or at the unit, with and without each block.

    That such an estimate does not vary is no sign of certainty. The only share of its row is certain.
    """
    errors = jackknife_errors(value, others, ratios)
    if value.ndim == 0 or value.shape[-1] == 1:
        return errors
    every = np.concatenate([value[None], others]) / unit
    held = [np.all(np.abs(every - bound) <= AT_BOUND, axis=0) for bound in (0, 1)]
    return np.where(held[0] | held[1], np.nan, errors)


def nearest_order(whole: C, replicate: C) -> np.ndarray:
    """Return the order in which the components of a replicate are nearest to those of the whole."""
    rows, others = (getattr(one, one.key) for one in (whole, replicate))
    if isinstance(rows, list):  # of several views, each in a unit of its own
        units = [max(float(np.linalg.norm(part)), 1e-300) for part in rows]
        rows, others = (
            np.hstack([part / unit for part, unit in zip(one, units, strict=True)]) for one in (rows, others)
        )
    return linear_sum_assignment(np.linalg.norm(rows[:, None] - others[None], axis=2))[1]


M = TypeVar("M", bound=Moments)


class ReplicatedModel(MomentModel[M, C]):
    """A model that is estimated again without each of some blocks of the data, where standard errors are asked for.

    All that makes the estimate is done again, the steps of `polish` too: standard errors are those of what is
    reported. A subclass implements `_without_blocks`.
    """

    n_blocks: int
    """Blocks of the data that are left out in turn for standard errors; zero for none."""

    @abstractmethod
    def _without_blocks(self, moments: M, found: C) -> Iterator[tuple[float, M]]:
        """Yield for every block of the data its size, and the moments of all others; nothing where there are no blocks.

        Where something could be chosen in several ways it is chosen as in the moments of all data, and in what was
        found from them: a jackknife is right for what varies smoothly with the data.
        """

    def _in_units(self, components: C, moments: M) -> C:
        """Return components in the units of the data; by default they are.

        Parameters
        ----------
        components : Components
            In the units of the moments.
        moments : Moments

        Returns
        -------
        Components
        """
        return components

    def check_parameters(self) -> None:
        """Raise unless parameters are what they must be.

        Examples
        --------
        >>> from codiag.models import SingleTopic
        >>> SingleTopic().check_parameters()
        >>> SingleTopic(n_blocks=-1).check_parameters()  # refused
        Traceback (most recent call last):
            ...
        ValueError: n_blocks must not be negative; got -1
        """
        super().check_parameters()
        check_n_blocks(self.n_blocks)

    def _check_blocks(self, n_samples: float) -> None:
        """Raise unless there are as many samples as blocks that are asked for.

        Parameters
        ----------
        n_samples : int
        """
        if n_samples < self.n_blocks:
            raise ValueError(
                f"n_blocks must be at most {n_samples:.0f}, the number of samples, as each belongs to one block; got "
                f"{self.n_blocks}"
            )

    def keep(self, components: C, moments: M) -> None:
        """Set learned attributes, standard errors among them where asked for.

        Parameters
        ----------
        components : Components
        moments : Moments
        """
        found = self._in_units(components, moments)
        self._keep_errors(found, moments)
        super().keep(found, moments)

    def _keep_errors(self, found: C, moments: M) -> None:
        """Set standard errors where they are asked for, and leave none of an earlier fit."""
        known = self._standard_errors(found, moments) if self.n_blocks else {}
        for name in found.parameter_names():
            attribute = f"{name}_standard_errors_"
            if name in known:
                setattr(self, attribute, known[name])
            elif hasattr(self, attribute):  # of an earlier fit
                delattr(self, attribute)

    def _standard_errors(self, found: C, moments: M) -> dict[str, Any]:
        sizes: list[float] = []
        replicates: list[C] = []
        try:
            for size, others in self._without_blocks(moments, found):
                fit = None
                if others.problem is not None:
                    fit = solve(others.problem, self.strategy(), as_seed(self.random_state))
                components = self.polished(self.parameters(fit, others), others)
                replicates.append(self._in_units(components, others))
                sizes.append(size)
        except ValueError as error:
            add_block_note(error, len(sizes), self.n_blocks)
            raise
        return jackknife(found, replicates, np.array(sizes)) if sizes else {}


def add_block_note(error: Exception, block: int, n_blocks: int) -> None:
    """Tell a user that what failed was an estimate without a block."""
    error.add_note(f"This was without block {block} of {n_blocks}, for standard errors (n_blocks).")


def check_n_blocks(n_blocks: int, least: int = 2, reason: str = "of which one is left out") -> None:
    """Raise where there are too few blocks for something to vary when one is left out."""
    if 0 < n_blocks < least:
        raise ValueError(f"n_blocks must be 0, for no standard errors, or at least {least}, {reason}; got {n_blocks}")


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockedMoments(SummedMoments):
    """Moments, and the sums by block that they come from; None where there are none."""

    blocks: Blocks | None = None


B = TypeVar("B", bound=BlockedMoments)


class BlockedModel(ReplicatedModel[B, C], SummedModel[B, C]):
    """A model of samples that are dealt to blocks, where standard errors are asked for.

    A subclass implements `_moments_of` and, where it has steps of `polish`, `_with_others`; in `moments` it gives its
    moments the sums that they come from.
    """

    @abstractmethod
    def _moments_of(self, sums: Any, like: B | None = None) -> B:
        """Return the moments that sums make, without what is to be said about them.

        Where moments of nearly the same sums are given, what could be chosen in several ways is chosen as there: a
        jackknife is right for what varies smoothly with the data.
        """

    def _with_others(self, others: B, whole: B, block: int, found: C) -> B:
        """Return moments without a block with the data of the others, for steps of `polish`; by default without.

        Parameters
        ----------
        others : Moments
            From the sums over all blocks but one.
        whole : Moments
            Of all samples, with the data.
        block : int
        found : Components
            From all samples.

        Returns
        -------
        Moments
        """
        return others

    def _check_same_blocks(self, blocks: Blocks) -> None:
        """Raise where sums were not kept by as many blocks as are asked for now."""
        if self.n_blocks not in (0, blocks.n_blocks):
            raise ValueError(
                f"n_blocks must be {blocks.n_blocks}, as with the sums that data is added to; got {self.n_blocks}. "
                "Blocks are not kept after fit: for standard errors begin anew with partial_fit"
            )

    def _without_blocks(self, moments: B, found: C) -> Iterator[tuple[float, B]]:
        """Yield for every block its size, and the moments of all others; nothing before there are as many blocks."""
        blocks = moments.blocks
        if blocks is None or len(blocks.sums) < self.n_blocks:
            return
        sums = list(blocks.sums.values())
        for block, own, others in zip(blocks.sums, sums, leave_one_out(sums), strict=True):
            yield own.size, self._with_others(self._moments_of(others, moments), moments, block, found)


class PartsWithout(Parts):
    """Parts without the rows of one block, as they are dealt to blocks where sums are formed."""

    def __init__(self, parts: Parts, as_rows: Callable[[Any], Any], n_blocks: int, block: int) -> None:
        self._parts, self._as_rows, self._n_blocks, self._block = parts, as_rows, n_blocks, block
        self.n_parts, self.once = parts.n_parts, parts.once

    def reduce(self, function: Callable[..., Any], *shared: Any, numbered: bool = False) -> Any:
        """Return what a function gives for the rows that are left of all parts, merged in a tree."""
        left = self._as_rows, self._n_blocks, self._block
        return self._parts.reduce(_of_others, function, numbered, left, *shared, numbered=True)


def _of_others(part: Any, function: Callable[..., Any], numbered: bool, left: Any, *shared: Any, place: int) -> Any:
    as_rows, n_blocks, block = left
    rows = as_rows(part)
    kept = rows[block_of_rows(rows.shape[0], n_blocks, place) != block]
    if kept.shape[0] == 0:
        return None
    return function(kept, *shared, place=place) if numbered else function(kept, *shared)
