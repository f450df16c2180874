"""
More components than dimensions
===============================

A matrix of 10 x 10 has at most 10 components. A tensor of 10 x 10 x 10 can have 15 or 20, and they are unique: its
factors have more columns than rows, and no inverse. :func:`codiag.factorize` then solves equations that single out
rank-one matrices. How far does it go?
"""

# %%
# Tensors of 10 x 10 x 10 with ever more components; one part in a thousand of noise.

import matplotlib.pyplot as plt
import numpy as np

import codiag
from codiag.synthetic import unit_factor

ranks = [6, 8, 10, 12, 14, 16, 18]
errors, predicted = [], []
rng = np.random.default_rng(0)
for rank in ranks:
    truth = [unit_factor(10, rank, rng) for _ in range(3)]
    tensor = np.einsum("ir,jr,kr->ijk", *truth)
    tensor += 1e-3 * tensor.std() * rng.standard_normal(tensor.shape)
    fit = codiag.factorize(tensor, rank, rng=0)
    errors.append(codiag.factor_error(fit, truth))
    predicted.append(fit.standard_errors.mean())
    print(f"rank {rank:2d}: error {errors[-1]:.5f}, predicted {predicted[-1]:.5f}, converged {fit.converged}")

# %%
# The largest of them: 18 components in 10 dimensions.

match = codiag.match_components(fit, truth)
alike = np.abs(np.prod([own.T @ true for own, true in zip(match.factors, truth, strict=True)], axis=0))

# %%
# Left, errors of the factors against the rank, and what the fit itself predicts. Nothing happens at rank 10, where the
# factors of a matrix would cease to be unique (dashed): errors grow slowly as components crowd, and the prediction
# grows with them. Right, how like the 18 components that were found are to the true ones: a diagonal, so that all are
# there.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.8, 4.3), layout="constrained", width_ratios=(1.3, 1))
left.plot(ranks, errors, "o-", color="C0", label="error of the factors")
left.plot(ranks, predicted, "s--", color="C1", label="predicted from the data alone")
left.set_ylim(0, 1.15 * max(errors))
left.axvline(10, color="gray", linestyle="--", linewidth=1)
left.annotate("dimension", (10, 0), xytext=(4, 6), textcoords="offset points", color="black")
left.set(xlabel="components in 10 x 10 x 10", title="Beyond the dimension", xticks=ranks)
left.legend(frameon=False, loc="upper left")
image = right.imshow(alike, cmap="magma_r", vmin=0, vmax=1)
right.set(title="18 components: found (rows), true", xticks=[], yticks=[])
figure.colorbar(image, ax=right, shrink=0.8, label="product of cosines")
plt.show()
