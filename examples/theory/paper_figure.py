"""
The paper's main figure, in small
=================================

Kuleshov, Chaganty & Liang [1]_ factorize a tensor by projecting it to a few matrices and diagonalizing these together.
Their first experiment: orthogonal tensors with ever more noise, random projections (OJD0), projections along the
factors that these gave (OJD1), and the tensor power method (TPM). Here it is with a tenth of the dimensions, and with
one method more: joint diagonalization followed by least squares, codiag's default.

.. [1] Kuleshov, Chaganty & Liang, "Tensor Factorization via Matrix Factorization", AISTATS 2015.
"""

# %%
# Dimension 10, rank 10; four tensors at every level of noise.

import warnings

import matplotlib.pyplot as plt
import numpy as np

import codiag
from codiag.plotting import COLORS, log_axis
from codiag.synthetic import nonorthogonal_model, orthogonal_model

levels = np.geomspace(1e-4, 1e-2, 4)
cases = {
    "Orthogonal factors": (orthogonal_model, {"TPM": "tpm", "OJD0": "ojd0", "OJD1": "ojd1", "codiag": "auto"}),
    "Non-orthogonal factors": (nonorthogonal_model, {"ALS": "als", "NOJD0": "nojd0", "NOJD1": "nojd1", "codiag": "auto"}),
}
n_trials = 4
errors = {}
for case, (model, methods) in cases.items():
    for name, method in methods.items():
        errors[case, name] = np.empty((levels.size, n_trials))
        for place, level in enumerate(levels):
            for trial in range(n_trials):
                problem = model(10, 10, noise=level, seed=trial)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", codiag.ConvergenceWarning)  # methods differ in what they reach
                    fit = codiag.factorize(problem.tensor, 10, method=method, symmetric=True, seed=trial)
                errors[case, name][place, trial] = codiag.factor_error(fit, problem)
        print(f"{case:24s}{name:8s}", np.median(errors[case, name], axis=1).round(4))

# %%
# Errors of the factors (medians, and every single tensor as a faint dot) against the noise. Projections along the
# factors (1) improve much on random ones (0), as the paper says. Below them is what least squares makes of the same
# start: nothing that sees the same data can be much better.

figure, panels = plt.subplots(1, 2, figsize=(10, 4.5), layout="constrained", sharey=True)
for panel, (case, (_, methods)) in zip(panels, cases.items(), strict=True):
    for name, color, marker in zip(methods, (COLORS[1], COLORS[5], COLORS[0], COLORS[6]), "s^Do", strict=True):
        own = errors[case, name]
        panel.plot(levels, np.median(own, axis=1), marker=marker, color=color, linewidth=2, label=name)
        panel.plot(levels, own, marker=".", linestyle="", color=color, alpha=0.3, markersize=5)
    log_axis(panel.xaxis, levels.tolist())
    every = np.concatenate(list(errors.values()))
    log_axis(panel.yaxis, [every.min(), every.max()])
    panel.set(title=case, xlabel="noise")
    panel.legend(frameon=False)
panels[0].set_ylabel("error of the factors")
plt.show()
