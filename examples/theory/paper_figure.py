"""
The paper's main figure, in small
=================================

Kuleshov, Chaganty & Liang [1]_ factorize a tensor by projecting it to a few matrices and diagonalizing these together.
Their first experiment: orthogonal tensors with ever more noise, random projections (OJD0), projections along the
factors that these gave (OJD1), and the tensor power method. Here it is with fewer dimensions and fewer tensors, beside
the same for factors that are not orthogonal (NOJD), and with one method more: least squares from such a start, codiag's
default.

.. [1] Kuleshov, Chaganty & Liang, "Tensor Factorization via Matrix Factorization", AISTATS 2015.
"""

# %%
# Dimension 10, rank 10; three tensors at every level of noise.

import warnings

import matplotlib.pyplot as plt
import numpy as np

import codiag
from codiag.synthetic import orthonormal_factor, unit_factor

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]


def symmetric_tensor(factor, rng):
    """Return a symmetric tensor with these factors, whose weights are squares of Gaussian numbers."""
    weights = rng.standard_normal(factor.shape[1]) ** 2
    return np.einsum("r,ir,jr,kr->ijk", weights, factor, factor, factor)


def draw_orthogonal(noise, rng):
    """Return a noisy tensor and its orthonormal factor; the noise is another tensor of this kind."""
    factor, other = orthonormal_factor(10, 10, rng), orthonormal_factor(10, 10, rng)
    return symmetric_tensor(factor, rng) + noise * symmetric_tensor(other, rng), factor


def draw_random(noise, rng):
    """Return a noisy tensor and its factor with random unit columns; the noise is Gaussian in every entry."""
    factor = unit_factor(10, 10, rng)
    return symmetric_tensor(factor, rng) + noise * rng.standard_normal((10, 10, 10)), factor


cases = {
    "Orthogonal factors": (
        draw_orthogonal,
        np.geomspace(1e-4, 1e-2, 4),
        {"power method": "tpm", "OJD0": "ojd0", "OJD1": "ojd1", "least squares": "auto"},
    ),
    "Random factors": (
        draw_random,
        np.geomspace(1e-5, 1e-3, 4),
        {"NOJD0": "nojd0", "NOJD1": "nojd1", "least squares": "auto"},
    ),
}
n_trials = 3
errors = {}
for case, (draw, levels, methods) in cases.items():
    for name, method in methods.items():
        own = np.empty((levels.size, n_trials))
        for (place, trial), _ in np.ndenumerate(own):
            tensor, factor = draw(levels[place], np.random.default_rng(trial))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", codiag.ConvergenceWarning)  # which says no more than the errors do
                fit = codiag.factorize(tensor, 10, method=method, symmetric=True, rng=trial)
            own[place, trial] = codiag.factor_error(fit, [factor] * 3)
        errors[case, name] = own
        print(f"{case:20s}{name:14s}", np.median(own, axis=1).round(5))

# %%
# Errors of the factors against the noise: medians, and every single tensor as a faint dot. Left, joint diagonalization
# that knows factors to be orthogonal has a third of the error of the power method, as the paper says, and of least
# squares, which cannot know it. Right, projections along the factors (NOJD1) improve on random ones (NOJD0), and least
# squares, which goes on from joint diagonalization, is several times below both.

figure, panels = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained", sharey=True)
every = np.concatenate(list(errors.values()))
for panel, (case, (_, levels, methods)) in zip(panels, cases.items(), strict=True):
    for place, name in enumerate(reversed(methods)):
        color, marker = COLORS[place], "oD^s"[place]
        own = errors[case, name]
        panel.plot(levels, np.median(own, axis=1), marker=marker, color=color, linewidth=2, label=name)
        panel.plot(levels, own, marker=".", linestyle="", color=color, alpha=0.35, markersize=5)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set(title=case, xlabel="noise")
    panel.legend(frameon=False)
panels[0].set_ylabel("error of the factors")
plt.show()
