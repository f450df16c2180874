"""
Diagonalizers compared
======================

Five methods of :mod:`codiag.diagonalize` on the same fifty matrices. Some take few steps that cost much, some many that
cost little; where factors are far from orthogonal some get stuck. What counts is the time until the factors are as good
as the noise allows.
"""

# %%
# Two problems: factors that are nearly orthogonal, and factors that are not. A method is stopped after 1, 2, 3, ...
# sweeps to draw its way, and called by itself; those that fall back on another method in hard cases do without.

import time

import matplotlib.pyplot as plt
import numpy as np

import codiag
from codiag.diagonalize import LUJ1D, QRJ1D, UWEDGE, JDi, TwoSided
from codiag.plotting import COLORS, log_axis
from codiag.synthetic import matrix_stack, mild_factor, unit_factor

methods = {
    "UWEDGE": lambda sweeps: UWEDGE(max_sweeps=sweeps, fallback=False),
    "TwoSided": lambda sweeps: TwoSided(max_sweeps=sweeps, fallback=False),
    "QRJ1D": lambda sweeps: QRJ1D(max_sweeps=sweeps),
    "LUJ1D": lambda sweeps: LUJ1D(max_sweeps=sweeps),
    "JDi": lambda sweeps: JDi(max_sweeps=sweeps),
}
problems = {
    "Nearly orthogonal factors": matrix_stack(mild_factor(20, 20, seed=0), 50, noise=1e-3, seed=1),
    "Random factors": matrix_stack(unit_factor(20, 20, seed=0), 50, noise=1e-3, seed=1),
}
sweeps = [1, 2, 3, 4, 6, 9, 14, 25]

curves = {}
for problem, stack in problems.items():
    for name, method in methods.items():
        path = []
        for count in sweeps:
            seconds = []
            for _ in range(3):
                start = time.process_time()
                fit = method(count)(stack.matrices, seed=0)
                seconds.append(time.process_time() - start)
            path.append((min(seconds), codiag.factor_error(fit.factor, stack.factor)))
            if fit.converged:
                break
        curves[problem, name] = np.array(path)
        print(f"{problem:27s}{name:9s} error {path[-1][1]:.1e} after {fit.n_sweeps:2d} sweeps, {path[-1][0]:.3f} s")

# %%
# The error of the factors against the time spent; a marker for each number of sweeps. Where factors are nearly
# orthogonal all end at the same place: the floor that noise sets. UWEDGE and TwoSided, which start from one matrix pencil
# and change all pairs at once, are there at least ten times sooner than those that go pair by pair. With random factors
# QRJ1D and LUJ1D, which minimize another criterion, stop at more than twice the error.

figure, panels = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharey=True)
markers, every = "os^Dv", np.concatenate(list(curves.values()))
for panel, problem in zip(panels, problems, strict=True):
    for name, color, marker in zip(methods, COLORS, markers, strict=False):
        seconds, errors = curves[problem, name].T
        panel.plot(seconds, errors, marker=marker, color=color, markersize=6, linewidth=1.6, label=name)
    log_axis(panel.xaxis, every[:, 0].tolist())
    log_axis(panel.yaxis, every[:, 1].tolist())
    panel.set(title=problem, xlabel="seconds")
panels[0].set_ylabel("error of the factors")
panels[0].legend(frameon=False)
plt.show()
