"""
Diagonalizers compared
======================

Five methods of :mod:`codiag.diagonalize` on the same thirty matrices. Some take few steps that cost much, some many
that cost little; where factors are far from orthogonal some end elsewhere. What counts is the time until the factors
are as good as the noise allows.
"""

# %%
# Two problems: factors that are nearly orthogonal, and factors that are not. A method is stopped after 1, 2, 3, ...
# sweeps to draw its way, and called by itself; those that fall back on another method in hard cases do without.

import time

import matplotlib.pyplot as plt
import numpy as np

import codiag
from codiag.diagonalize import LUJ1D, QRJ1D, UWEDGE, JDi, TwoSided
from codiag.synthetic import matrix_stack, orthonormal_factor, unit_factor

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

methods = {
    "UWEDGE": lambda sweeps: UWEDGE(max_sweeps=sweeps, fallback=False),
    "TwoSided": lambda sweeps: TwoSided(max_sweeps=sweeps, fallback=False),
    "QRJ1D": lambda sweeps: QRJ1D(max_sweeps=sweeps),
    "LUJ1D": lambda sweeps: LUJ1D(max_sweeps=sweeps),
    "JDi": lambda sweeps: JDi(max_sweeps=sweeps),
}
random = unit_factor(15, 15, rng=0)
nearly_orthogonal = orthonormal_factor(15, 15, rng=1) + 0.3 * random
problems = {
    "Nearly orthogonal factors": matrix_stack(nearly_orthogonal, 30, noise=1e-3, rng=1),
    "Random factors": matrix_stack(random, 30, noise=1e-3, rng=1),
}
sweeps = [1, 2, 3, 4, 6, 9, 14, 25]

curves, seconds = {}, {}
for problem, stack in problems.items():
    for name, method in methods.items():
        path = []
        for count in sweeps:
            start = time.process_time()
            fit = method(count)(stack.matrices, rng=0)
            seconds[problem, name] = time.process_time() - start
            path.append((fit.n_sweeps, codiag.factor_error(fit.factor, stack.factor)))
            if fit.converged:
                break
        curves[problem, name] = np.array(path)
        took = f"{fit.n_sweeps:2d} sweeps, {1000 * seconds[problem, name]:.0f} ms"
        print(f"{problem:27s}{name:9s}error {path[-1][1]:.1e}, {took}")

# %%
# The error of the factors against the number of sweeps, and in the legend what all of them took together. Where factors
# are nearly orthogonal all methods end at the same place: the floor that noise sets. UWEDGE and TwoSided start from one
# matrix pencil and change all pairs at once; a sweep of the others goes from pair to pair, and costs much more. With
# random factors QRJ1D and LUJ1D, which minimize another criterion, stop at twice the error.

figure, panels = plt.subplots(1, 2, figsize=(10, 4.6), layout="constrained", sharey=True)
markers, every = "os^Dv", np.concatenate(list(curves.values()))
for panel, problem in zip(panels, problems, strict=True):
    for name, color, marker in zip(methods, COLORS, markers, strict=False):
        count, errors = curves[problem, name].T
        label = f"{name}, {1000 * seconds[problem, name]:.0f} ms"
        panel.plot(count, errors, marker=marker, color=color, markersize=6, linewidth=1.8, label=label)
    panel.set_xscale("log")
    panel.set_yscale("log")
    panel.set(title=problem, xlabel="sweeps")
    panel.legend(frameon=False)
panels[0].set_ylabel("error of the factors")
plt.show()
