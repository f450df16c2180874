"""The parameters of components, and their one order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from codiag.models.frame._diagnostics import Diagnostics


@dataclass(frozen=True, eq=False, kw_only=True)
class Components:
    """Parameters of a model by component, and what is to be said about them.

    A model adds fields in a subclass: arrays, or lists of arrays, whose rows belong to components. Fields that belong
    to all components together are named in `shared`; where not only rows do, the subclass overrides `reordered`.

    Attributes
    ----------
    weights : array of shape (n_components,)
        By which components are ordered, largest first.
    diagnostics : Diagnostics
        How well the data determines them.

    See Also
    --------
    MomentModel.parameters : Returns a subclass.
    Diagnostics : What is said about them.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import Components, Diagnostics
    >>> found = Components(weights=np.array([0.3, 0.7]), diagnostics=Diagnostics(core_errors=np.array([0.1, 0.2])))
    >>> found.sorted().weights.tolist(), found.sorted().diagnostics.core_errors.tolist()
    ([0.7, 0.3], [0.2, 0.1])
    """

    shared: ClassVar[frozenset[str]] = frozenset()
    unbounded: ClassVar[frozenset[str]] = frozenset()
    """Fields for which 0 and 1 are no bounds; in others, an entry that is held there has no known error."""
    key: ClassVar[str] = "weights"
    """The field by whose rows components are told apart."""

    weights: np.ndarray
    diagnostics: Diagnostics

    def reordered(self, order: np.ndarray) -> Self:
        """Return components in a new order, with all that belongs to them.

        Parameters
        ----------
        order : array of int, shape (n_components,)
            Indices of the components, in the new order.

        Returns
        -------
        Components
            The same components.

        See Also
        --------
        Components.sorted : By weight.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import Components, Diagnostics
        >>> components = Components(weights=np.array([0.3, 0.7]), diagnostics=Diagnostics())
        >>> components.reordered(np.array([1, 0])).weights.tolist()
        [0.7, 0.3]
        """
        own = {name: value for name, value in vars(self).items() if name not in self.shared}
        return replace(self, **{name: _rows(value, order) for name, value in own.items()})

    def parameter_names(self) -> tuple[str, ...]:
        """Return the names of the fields that are arrays, lists of arrays or real numbers.

        Returns
        -------
        tuple of str
            Names of fields.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import Components, Diagnostics
        >>> Components(weights=np.array([0.3, 0.7]), diagnostics=Diagnostics()).parameter_names()
        ('weights',)
        """
        return tuple(name for name, value in vars(self).items() if isinstance(value, np.ndarray | list | float))

    def sorted(self) -> Self:
        """Return components by weight, largest first; those of equal weight keep their order.

        Returns
        -------
        Components
            The same components.

        See Also
        --------
        Components.reordered : In any order.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.models import Components, Diagnostics
        >>> Components(weights=np.array([0.3, 0.7]), diagnostics=Diagnostics()).sorted().weights.tolist()
        [0.7, 0.3]
        """
        return self.reordered(np.argsort(-self.weights, kind="stable"))


def _rows(value: Any, order: np.ndarray) -> Any:
    if isinstance(value, Diagnostics):
        return value.reordered(order)
    return [part[order] for part in value] if isinstance(value, list) else value[order]
