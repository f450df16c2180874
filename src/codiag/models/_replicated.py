"""Models with standard errors from estimates without blocks of the data, each left out in turn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np

from codiag._factorize import solve
from codiag.models._base import MomentModel, Moments, as_seed
from codiag.models._components import Components
from codiag.models._jackknife import jackknife

M = TypeVar("M", bound=Moments)
C = TypeVar("C", bound=Components)


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
