"""
Diagonalizers compared
======================

Six methods of :mod:`codiag.diagonalize` on the same fifty matrices. Some take few steps that cost much, some many that
cost little; where factors are far from orthogonal some get stuck. What counts is the time until the factors are as good
as the noise allows.
"""

# %%
# Two problems: factors that are nearly orthogonal, and factors that are not. A method is stopped after 1, 2, 3, ...
# sweeps to draw its way. Those that have other methods behind them for hard cases are asked to do without.

import time
import warnings

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
sweeps = [1, 2, 3, 4, 6, 8, 12, 20, 40]

curves = {}
for problem, stack in problems.items():
    for name, method in methods.items():
        path = []
        for count in sweeps:
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", codiag.ConvergenceWarning)  # stopped early on purpose
                fit = codiag.joint_diagonalize(stack.matrices, diagonalizer=method(count), seed=0)
            path.append((time.process_time() - start, codiag.factor_error(fit.factor, stack.factor)))
            if fit.converged:
                break
        curves[problem, name] = np.array(path)
        print(f"{problem:27s}{name:9s} error {path[-1][1]:.1e} after {fit.n_sweeps:2d} sweeps, {path[-1][0]:.3f} s")

# %%
# The error of the factors against the time spent; a marker for each number of sweeps. All end at the same place where
# factors are nearly orthogonal: the floor that noise sets. Methods that start from one matrix pencil, UWEDGE and
# TwoSided, are there in a hundredth of the time of those that rotate pair by pair.

figure, panels = plt.subplots(1, 2, figsize=(10, 4.4), layout="constrained", sharey=True)
markers = "os^Dv"
for panel, problem in zip(panels, problems, strict=True):
    for name, color, marker in zip(methods, COLORS, markers, strict=False):
        seconds, errors = curves[problem, name].T
        panel.plot(seconds, errors, marker=marker, color=color, markersize=6, linewidth=1.6, label=name)
    log_axis(panel.xaxis, [curve[:, 0].min() for curve in curves.values()] + [curve[:, 0].max() for curve in curves.values()])
    log_axis(panel.yaxis, [curve[:, 1].min() for curve in curves.values()] + [curve[:, 1].max() for curve in curves.values()])
    panel.set(title=problem, xlabel="seconds")
panels[0].set_ylabel("error of the factors")
panels[0].legend(frameon=False)
plt.show()
