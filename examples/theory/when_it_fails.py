"""
When it fails: degenerate components
====================================

Some tensors have no best approximation of a given rank: two components grow without bound and compensate each other
(they are degenerate), and their sum comes closer and closer to the data. No algorithm can find what does not exist, but
it can say so.
"""

# %%
# The classical example: a tensor of rank three that tensors of rank two come as close to as one likes,
# ``a⊗a⊗b + a⊗b⊗a + b⊗a⊗a``, here beside an ordinary component, with a little noise.

import warnings

import matplotlib.pyplot as plt
import numpy as np

import codiag
from codiag.constraints import Ridge
from codiag.methods import ALS

rng = np.random.default_rng(0)
a, b, c = np.linalg.qr(rng.standard_normal((12, 3)))[0].T
tensor = sum(np.einsum("i,j,k->ijk", *parts) for parts in ((a, a, b), (a, b, a), (b, a, a)))
tensor = tensor + np.einsum("i,j,k->ijk", c, c, c)
tensor += 0.01 * rng.standard_normal(tensor.shape) / np.sqrt(12)

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    failed = codiag.factorize(tensor, 3, rng=0)
for warning in caught:
    print("Warning:", warning.message)
print(failed.diagnose())

# %%
# How the components grow as the fit goes on: alternating least squares, stopped after ever more sweeps.

counts = [3, 10, 30, 100, 300, 1000, 1500]
sizes, losses = [], []
for count in counts:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", codiag.ConvergenceWarning)
        fit = codiag.factorize(tensor, 3, method=ALS(max_iter=count, tol=1e-15), rng=3)
    sizes.append(float(fit.weights.max()))
    losses.append(fit.relative_error)

# %%
# The remedy is a problem that has a solution: a small penalty on the size of factors, or factors that are orthogonal in
# one mode. Which of them makes sense depends on the data.

ways = {"penalty": Ridge(0.01), "orthogonal first mode": ["orthogonal", None, None]}
for name, constraints in ways.items():
    bounded = codiag.factorize(tensor, 3, constraints=constraints, rng=0)
    print(f"{name:22s}weights {bounded.weights.round(2)}, relative error {bounded.relative_error:.3f}")

# %%
# Left, the largest weight against the number of sweeps: it does not converge, while the error (dashed) hardly changes.
# Right, the congruence of the components of the failed fit: near -1 for the degenerate pair. The diagnosis names it.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 4.2), layout="constrained", width_ratios=(1.35, 1))
left.loglog(counts, sizes, "o-", color="C1", label="largest weight")
left.loglog(counts, losses, "s--", color="C0", label="relative error")
left.set(xlabel="sweeps of alternating least squares", title="Components that grow without end")
left.legend(frameon=False)
cosines = np.prod([factor.T @ factor for factor in failed.factors], axis=0)
image = right.imshow(cosines, cmap="PuOr", vmin=-1, vmax=1)
for (row, column), value in np.ndenumerate(cosines):
    right.text(column, row, f"{value:.2f}", ha="center", va="center", color="white" if abs(value) > 0.6 else "black")
right.set(xticks=range(3), yticks=range(3), xlabel="component", ylabel="component", title="Cosines of components")
right.spines[:].set_visible(False)
plt.show()
