"""Jackknife standard errors: estimates without blocks of the data, each left out in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np

from codiag.models.base._components import Components, nearest_order
from codiag.models.base._model import MomentModel, Moments
from codiag.models.base._sums import Blocks, leave_one_out

C = TypeVar("C", bound=Components)

AT_BOUND = 1e-8
"""Distance from 0 or 1 within which a probability counts as at that bound; models keep them inside by at most 1e-9."""


def jackknife(whole: C, replicates: Sequence[C], sizes: np.ndarray) -> dict[str, Any]:
    """Return standard errors of the parameters of components by name, of the type and shape of each parameter.

    Replicate b is the estimate without block b, which has ``sizes[b]`` samples; its components may be in any order.
    """
    aligned = [replicate.reordered(nearest_order(whole, replicate)) for replicate in replicates]
    ratios = np.sum(sizes) / np.asarray(sizes, dtype=np.float64)
    errors: dict[str, Any] = {}
    for name in whole.parameter_names():
        value, others = getattr(whole, name), [getattr(replicate, name) for replicate in aligned]
        errors_of = jackknife_errors if name in whole.unbounded else share_errors
        if isinstance(value, list):
            pairs = zip(value, zip(*others, strict=True), strict=True)
            errors[name] = [errors_of(part, np.stack(rest), ratios) for part, rest in pairs]
        else:
            error = errors_of(np.asarray(value), np.stack(others), ratios)
            errors[name] = error if isinstance(value, np.ndarray) else float(error)
    return errors


def jackknife_errors(value: np.ndarray, others: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    r"""Return standard errors of an estimate, from estimates (blocks, ...) without each of the blocks.

    Block b holds a share :math:`1 / h_b` of the data. With pseudo-values :math:`h_b \theta - (h_b - 1) \theta_b` and
    their mean :math:`\bar\theta` the variance is the mean over blocks of their squared distances from it, each over
    :math:`h_b - 1` (Busing, Meijer & van der Leeden, 1999). For blocks of equal size this is the delete-a-group
    jackknife.
    """
    h = np.asarray(ratios).reshape(-1, *[1] * value.ndim)
    pseudo = h * value - (h - 1) * others
    center = len(others) * value - np.sum((1 - 1 / h) * others, axis=0)  # the mean of pseudo-values if h is constant
    return np.asarray(np.sqrt(np.mean((pseudo - center) ** 2 / (h - 1), axis=0)))


def share_errors(value: np.ndarray, others: np.ndarray, ratios: np.ndarray, unit: float = 1.0) -> np.ndarray:
    """Return standard errors of probabilities or rates; NaN if an entry is at 0 or `unit` with and without each block.

    That such an estimate does not vary is no sign of certainty. The only probability of a row is certain.
    """
    errors = jackknife_errors(value, others, ratios)
    if value.ndim == 0 or value.shape[-1] == 1:
        return errors
    estimates = np.concatenate([value[None], others]) / unit
    fixed = [np.all(np.abs(estimates - bound) <= AT_BOUND, axis=0) for bound in (0, 1)]
    return np.where(fixed[0] | fixed[1], np.nan, errors)


def check_n_jackknife(n_jackknife: int, least: int = 2, reason: str = "so that one can be left out") -> None:
    """Raise if there are too few blocks for estimates without one of them to differ."""
    if 0 < n_jackknife < least:
        raise ValueError(
            f"n_jackknife must be 0, for no standard errors, or at least {least}, {reason}; got {n_jackknife}"
        )


def add_block_note(error: Exception, block: int, n_jackknife: int) -> None:
    """Add a note to an error: it occurred in the estimate without a block."""
    error.add_note(f"This was without block {block} of {n_jackknife}, for standard errors (n_jackknife).")


@dataclass(frozen=True, eq=False, kw_only=True)
class BlockedMoments(Moments):
    """Moments, and the sums that they come from."""

    blocks: Blocks | None = None  # sums by jackknife block
    seen: Any = None  # what `partial_fit` adds further data to; None if it begins anew


M = TypeVar("M", bound=BlockedMoments)


class JackknifeModel(MomentModel[M, C]):
    """A model with standard errors: it is estimated again without each of `n_jackknife` blocks of the data.

    All of the estimate is repeated, expectation maximization included. A subclass implements `moments_by_number` and
    either `_without_block`, if its moments come from sums by block, or `_without_blocks`.
    """

    n_jackknife: int
    """Number of blocks of the data; zero for no standard errors."""

    def moments(self, data: Any) -> M:
        """Return the moments for the number of components of this model."""
        return self.moments_by_number(data)(cast("int", self.n_components))

    def check_parameters(self) -> None:
        """Raise unless parameters are valid.

        Examples
        --------
        >>> from codiag.models import SingleTopic
        >>> SingleTopic().check_parameters()
        >>> SingleTopic(n_jackknife=-1).check_parameters()  # refused
        Traceback (most recent call last):
            ...
        ValueError: n_jackknife must not be negative; got -1
        """
        super().check_parameters()
        check_n_jackknife(self.n_jackknife)

    def _given_number(self) -> int:
        """Return the number of components for `partial_fit`, which must be given."""
        if self.n_components is None:
            raise ValueError(
                "n_components must be given to partial_fit, since the number of components is found by `fit` of all "
                "data; got None"
            )
        return self.n_components

    def _check_blocks(self, n_samples: float) -> None:
        """Raise if there are fewer samples than blocks."""
        if n_samples < self.n_jackknife:
            raise ValueError(
                f"n_jackknife must be at most {n_samples:.0f}, the number of samples, as each belongs to one block; "
                f"got {self.n_jackknife}"
            )

    def keep(self, components: C, moments: M) -> None:
        """Set learned attributes, standard errors, and the sums that `partial_fit` continues.

        Parameters
        ----------
        components : Components
            In their final order.
        moments : Moments
            From which they were estimated.
        """
        errors = self._standard_errors(components, moments) if self.n_jackknife else {}
        super().keep(components, moments)
        for name in components.parameter_names():
            attribute = f"{name}_standard_errors_"
            if name in errors:
                setattr(self, attribute, errors[name])
            elif attribute in vars(self):  # of an earlier fit
                delattr(self, attribute)
        self._seen = moments.seen

    def _standard_errors(self, components: C, moments: M) -> dict[str, Any]:
        """Return the standard errors of parameters by name; none if there are not as many blocks yet."""
        sizes: list[float] = []
        replicates: list[C] = []
        try:
            for size, others in self._without_blocks(moments, components):
                replicates.append(self._components_of(others)[0])
                sizes.append(size)
        except ValueError as error:
            add_block_note(error, len(sizes), self.n_jackknife)
            raise
        return jackknife(components, replicates, np.array(sizes)) if sizes else {}

    def _without_blocks(self, moments: M, components: C) -> Iterator[tuple[float, M]]:
        """Yield for every block its number of samples, and the moments of all other blocks."""
        blocks = moments.blocks
        if blocks is None or len(blocks.sums) < self.n_jackknife:
            return
        sums = list(blocks.sums.values())
        for block, left_out, others in zip(blocks.sums, sums, leave_one_out(sums), strict=True):
            yield left_out.size, self._without_block(block, others, moments, components)

    def _without_block(self, block: int, others: Any, moments: M, components: C) -> M:
        """Return the moments of all blocks but one.

        Signs, orders and bases that are arbitrary must be chosen as in `moments`, so that estimates vary smoothly.

        Parameters
        ----------
        block : int
            The block that is left out.
        others : MomentSums
            Sums over all other blocks.
        moments : Moments
            Of all data.
        components : Components
            Estimated from all data.

        Returns
        -------
        Moments
            With the data of the other blocks, if steps after the moments read it.
        """
        raise NotImplementedError(f"{type(self).__name__} must implement _without_block")
