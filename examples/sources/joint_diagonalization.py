"""
Matrices with common factors
============================

Thirty matrices share their factors, ``M_l = U diag(d_l) U^T``, and differ in the diagonals only; noise is added to
each. :func:`codiag.joint_diagonalize` finds the factors, the diagonals, and how certain they are. It is the engine of
everything else here, and useful by itself.
"""

# %%
# The matrices, 12 x 12, with a tenth of noise.

import matplotlib.pyplot as plt
import numpy as np

import codiag
from codiag.synthetic import matrix_stack, orthonormal_factor, unit_factor

factor = orthonormal_factor(12, 12, rng=0) + 0.3 * unit_factor(12, 12, rng=1)
stack = matrix_stack(factor, 30, noise=0.1, rng=1)
joint = codiag.joint_diagonalize(stack.matrices, rng=0)
print(joint)
print(f"mean error of the factors {codiag.factor_error(joint.factor, stack.factor):.4f}")
print(f"as predicted              {joint.standard_errors.mean():.4f}")

# %%
# Applied to the matrices, the inverse of the factors makes all of them diagonal at once, up to noise.

diagonal = joint.inverse @ stack.matrices @ joint.inverse.T

# %%
# Three of the thirty, above as they are given and below in the coordinates that were found: what was spread over all
# entries is on the diagonal now, in the same order for each. On the right, the error of every factor against the
# standard error that is computed from the matrices alone.

match = codiag.match_components(joint.factor, stack.factor)
errors = np.linalg.norm(match.factors[0] - stack.factor, axis=0)
figure = plt.figure(figsize=(10, 4.6), layout="constrained")
left, right = figure.subfigures(1, 2, width_ratios=(1.45, 1))
axes = left.subplots(2, 3)
for number, (top, bottom) in enumerate(axes.T):
    for axis, matrix, name in ((top, stack.matrices[number], "given"), (bottom, diagonal[number], "diagonalized")):
        size = np.abs(matrix).max()
        axis.imshow(matrix, cmap="PuOr", vmin=-size, vmax=size)
        axis.set(xticks=[], yticks=[], title=f"{name}, {number + 1}")
        axis.spines[:].set_visible(False)
panel = right.subplots()
predicted = joint.standard_errors[match.permutation]
limit = 1.15 * max(predicted.max(), errors.max())
panel.plot([0, limit], [0, limit], color="black", linewidth=0.8)
panel.scatter(predicted, errors, s=50, color="C0", alpha=0.8, linewidths=0)
panel.set(xlim=(0, limit), ylim=(0, limit), xlabel="standard error", ylabel="true error", title="The 12 factors")
plt.show()
