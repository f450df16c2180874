r"""A constraint of your own, in one file: factors whose columns never decrease.

**What is known.** One mode of the data is time, or dose, and what it describes can only grow: a product that forms, a
cumulative release, a learning curve. So the columns of the factor of that mode must not decrease,
:math:`a_{1r} \le a_{2r} \le \dots \le a_{dr}`. The other modes are free, or have constraints of their own.

**Step 1: one method.** A subclass of `codiag.extending.Constraint` implements ``project``, which returns the nearest
factor that satisfies the constraint. For columns that do not decrease this is isotonic regression, one column at a
time, which SciPy has.

**Step 2: use it.** ``codiag.factorize(tensor, rank, constraints=[Increasing(), None, None])`` takes one constraint for
each mode, None for a free mode. The names of `codiag.constraints`, such as ``"nonnegative"``, may stand beside it.

**What follows without further work.** Methods that take constraints into account solve for one factor at a time: they
minimize :math:`\tfrac12 \mathrm{tr}(F G F^\top) - \langle F, P \rangle` over the factors that satisfy the constraint.
The base class does this by accelerated projected gradient steps, for which ``project`` is enough; over a convex set
they end at the minimum. Methods that cannot take constraints into account refuse them in one sentence.

**Two choices to make for a set of your own.** A result has factors with unit columns, and sizes in the weights; so a
set should contain every positive multiple of its members, as this one does, or results satisfy it only after columns
are scaled back. And ``solve`` may be overridden where the minimum has a direct solution, as `codiag.constraints.Fixed`
does, and ``check`` where not every shape is possible. A constraint that a row satisfies or not by itself says so with
``is_separable = True``: then ``fit.transform`` applies it to the coefficients of new samples, too. This one ties rows
together.

**How it is tested.** One line in ``CONSTRAINTS`` of ``tests/cases.py`` runs every law of constraints on it: projecting
twice changes nothing more, no other factor of the set is nearer, ``solve`` ends where no feasible direction leads
down, results satisfy it, and factors that satisfy it are found exactly.

Run this file to see what the constraint gains under noise: ``python docs/extending/constraint.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from array_api_compat import array_namespace, device
from scipy.optimize import isotonic_regression

import codiag
from codiag.extending import Constraint


@dataclass(frozen=True, eq=False)
class Increasing(Constraint):
    """No column of the factor decreases from one row to the next.

    Examples
    --------
    >>> import numpy as np
    >>> Increasing().project(np.array([[1.0], [3.0], [2.0]])).tolist()
    [[1.0], [2.5], [2.5]]
    """

    def project(self, factor: Any) -> Any:
        columns = [isotonic_regression(column).x for column in np.asarray(factor).T]
        xp = array_namespace(factor)
        return xp.asarray(np.stack(columns, axis=1), dtype=factor.dtype, device=device(factor))


def main() -> tuple[float, float]:
    """Factorize noisy growth curves freely and under the constraint; return the two errors of the curves."""
    rng = np.random.default_rng(0)
    time, onset = np.linspace(0, 1, 30)[:, None], np.array([0.2, 0.5, 0.8])
    curves = 1 / (1 + np.exp(-30 * (time - onset)))
    subjects, channels = rng.standard_normal((8, 3)), rng.standard_normal((6, 3))
    clean = np.einsum("ir,jr,kr->ijk", curves, subjects, channels)
    noisy = clean + 0.2 * rng.standard_normal(clean.shape)
    free = codiag.factorize(noisy, 3, rng=0)
    known = codiag.factorize(noisy, 3, constraints=[Increasing(), None, None], rng=0)
    errors = tuple(codiag.factor_error(fit.factors[:1], [curves]) for fit in (free, known))
    print("factors     relative error   error of the curves   curves that decrease somewhere")
    for name, fit, error in zip(("free", "increasing"), (free, known), errors, strict=True):
        n_decreasing = int(np.sum(np.any(np.diff(fit.factors[0], axis=0) < -1e-12, axis=0)))
        print(f"{name:12s}{fit.relative_error:14.4f}{error:22.4f}{n_decreasing:33d}")
    return errors[0], errors[1]


if __name__ == "__main__":
    main()
