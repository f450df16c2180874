r"""How quickly plain steps approach a fixed point, by first-order theory.

Near a fixed point a plain step multiplies the distance from it by a rate that the residuals determine. With
:math:`r_{ij}` the root of the energy left at the pair (i, j) of k components in n matrices, in units of the diagonals,
and :math:`g_{ij}` the gap between these, entries of random sign give

.. math:: q = \max_{ij} \, (2 c\, r_{ij} + 2 (1 + c)^2 r_{ij}^2) / g_{ij}, \quad c = \sqrt{k / n},

from the largest singular value of a random matrix. Below one the steps contract and the fixed point is alone in its
neighborhood; otherwise first-order theory promises nothing, and other starts may end lower.
"""

from __future__ import annotations

import math

from codiag._array import Array, array_namespace


def contraction(ratio: Array, gaps: Array, n: int) -> Array:
    """Return the rate q, from the residuals of pairs in units of the diagonals, and the gaps."""
    xp = array_namespace(gaps)
    c = math.sqrt(gaps.shape[-1] / n)
    rates = (2 * c * ratio + 2 * (1 + c) ** 2 * ratio**2) / xp.where(gaps > 0, gaps, xp.ones_like(gaps))
    return xp.max(xp.where(gaps > 0, rates, xp.zeros_like(rates)))
