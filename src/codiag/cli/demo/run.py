"""Two factorizations of simulated tensors, by codiag and by other libraries that are installed.

The first, spectra of substances in mixtures, is repeated from several seeds; the second has as many components as rows.
Both are drawn in one figure.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from codiag.methods import ALS, NLS, Method, as_method
from codiag.metrics import factor_error, match_components
from codiag.plotting import COLORS, INK, MUTED, OURS, THEIRS, log_axis, paper
from codiag.problem import Problem
from codiag.result import Factorization
from codiag.result import solve as solve_problem
from codiag.synthetic import Fluorescence, PlantedTensor, fluorescence, noisy_tensor

SHAPE, RANK, NOISE = (8, 60, 40), 6, 0.1
"""Samples, wavelengths of emission and of excitation; substances; noise relative to the tensor."""
STARTS = 5
"""Number of seeds for every method."""
NORMAL = 1.96
"""Half the width of a 95 % confidence interval in standard errors, for normal noise."""


@dataclass(frozen=True, eq=False)
class Starts:
    """The results of a method from several seeds: factors matched to the truth, and their distances from it."""

    method: str
    factors: Sequence[Sequence[np.ndarray]]
    errors: list[float]
    seconds: float  # mean time of a run


@dataclass(frozen=True, eq=False)
class Spectra:
    """The mixtures, the first fit of codiag, and the results of every method, codiag first."""

    measured: Fluorescence
    fit: Factorization
    runs: list[Starts]

    def bands(self) -> list[np.ndarray]:
        """Return, for each mode, half the width of the 95 % confidence intervals of the entries of the factor."""
        order = match_components(self.fit, self.measured).permutation
        return [NORMAL * errors[:, order] for errors in self.fit.entry_standard_errors]

    def coverage(self) -> float:
        """Return the share of all entries of the true factors that lie in these intervals."""
        modes = zip(self.runs[0].factors[0], self.measured.factors, self.bands(), strict=True)
        inside = [np.ravel(np.abs(estimate - true) <= band) for estimate, true, band in modes]
        return float(np.mean(np.concatenate(inside)))


def silent_fit(
    tensor: np.ndarray, rank: int, seed: int = 0, *, method: Method | str | None = None, symmetric: bool = False
) -> Factorization:
    """Factorize a tensor without warnings."""
    return solve_problem(Problem(tensor, rank, symmetric=symmetric), as_method(method), seed)


def run_spectra(seed: int = 0) -> Spectra:
    """Factorize emission-excitation matrices of mixtures by codiag and by other libraries, from the same seeds.

    If no other library is installed, codiag's alternating least squares is run in place of theirs.
    """
    measured = fluorescence(SHAPE, RANK, noise=NOISE, seed=seed)
    tensor = measured.tensor
    candidates: dict[str, Callable[..., object]] = {"codiag": silent_fit}
    candidates |= {rival.name: rival.solve for rival in RIVALS if rival.seeded and rival.installed}
    if len(candidates) == 1:
        candidates["ALS from random starts (codiag's, for want of TensorLy)"] = partial(silent_fit, method=ALS())
    runs = [_starts(name, partial(solve, tensor, RANK), measured) for name, solve in candidates.items()]
    return Spectra(measured, silent_fit(tensor, RANK), runs)


def _starts(name: str, solve: Callable[[int], object], measured: Fluorescence) -> Starts:
    begin = time.perf_counter()
    results = [solve(start) for start in range(STARTS)]
    seconds = (time.perf_counter() - begin) / STARTS
    factors = [match_components(result, measured).factors for result in results]
    return Starts(name, factors, [factor_error(matched, measured) for matched in factors], seconds)


@dataclass(frozen=True, eq=False)
class Run:
    """The result of one method on the harder tensor."""

    method: str
    ours: bool
    error: float  # mean distance of the unit factors from the truth
    ratio: float  # to the error of the oracle
    seconds: float


@dataclass(frozen=True, eq=False)
class Demo:
    """The harder tensor, codiag's fit, the results of every method; and the spectra of mixtures."""

    problem: PlantedTensor
    fit: Factorization
    oracle: float
    runs: list[Run]
    spectra: Spectra

    def component_errors(self) -> tuple[np.ndarray, np.ndarray]:
        """Return, for each true factor, its measured error and the standard error predicted from the data."""
        matching = match_components(self.fit, self.problem)
        errors = [
            np.linalg.norm(estimate - true, axis=0)
            for estimate, true in zip(matching.factors, self.problem.factors, strict=True)
        ]
        return np.stack(errors), self.fit.standard_errors[:, matching.permutation]


def run_demo(size: int = 40, noise: float = 1e-3, seed: int = 0) -> Demo:
    """Factorize mixtures and a noisy symmetric tensor of full rank, by codiag and by every library installed.

    On one BLAS thread: with arrays this small, several threads wait for each other longer than they compute.
    """
    from threadpoolctl import threadpool_limits

    problem = noisy_tensor((size,) * 3, size, symmetric=True, noise=noise, seed=seed)
    tensor = problem.tensor

    with threadpool_limits(1):  # `few_threads` would limit the fits of codiag alone
        truth = NLS(init=(problem.weights, problem.factors), max_replacements=0)
        oracle = factor_error(silent_fit(tensor, size, method=truth, symmetric=True), problem)
        silent_fit(tensor[:4, :4, :4], 2)  # the first call loads libraries, whose time does not count
        start = time.perf_counter()
        fit = silent_fit(tensor, size, seed, symmetric=True)
        runs = [_run("codiag", True, fit, time.perf_counter() - start, problem, oracle)]
        ours = partial(silent_fit, symmetric=True)
        candidates: list[tuple[str, bool, Callable[..., object]]] = [
            ("codiag, method='nojd1'", True, partial(ours, method="nojd1")),
            ("codiag, NLS() from a random start", True, partial(ours, method=NLS(max_replacements=0))),
            ("codiag, ALS() from a random start", True, partial(ours, method=ALS())),
        ]
        candidates += [(rival.name, False, rival.solve) for rival in RIVALS if rival.installed]
        for name, is_ours, solve in candidates:
            start = time.perf_counter()
            result = solve(tensor, size, seed)
            runs.append(_run(name, is_ours, result, time.perf_counter() - start, problem, oracle))
        return Demo(problem, fit, oracle, runs, run_spectra(seed))


def _run(method: str, ours: bool, result: object, seconds: float, problem: PlantedTensor, oracle: float) -> Run:
    error = factor_error(match_components(result, problem).factors, problem)
    return Run(method, ours, error, error / oracle, seconds)


Solver = Callable[[np.ndarray, int, int], Sequence[np.ndarray]]
"""From a tensor, a rank and a seed to the factors of all modes."""


@dataclass(frozen=True)
class Rival:
    """A function of another library."""

    name: str
    package: str
    solve: Solver
    seeded: bool = False  # whether it starts at random

    @property
    def installed(self) -> bool:
        """Whether the library can be imported."""
        return find_spec(self.package) is not None


def _tensorly(tensor: np.ndarray, rank: int, seed: int, **options: Any) -> Sequence[np.ndarray]:
    from tensorly.decomposition import parafac

    return list(parafac(tensor, rank, n_iter_max=1000, random_state=seed, **options)[1])


def _pyttb(tensor: np.ndarray, rank: int, seed: int) -> Sequence[np.ndarray]:
    import pyttb

    rng = np.random.default_rng([seed, 1])  # a stream of its own: the seed may have made the tensor
    start = pyttb.ktensor([rng.standard_normal((size, rank)) for size in tensor.shape])
    fit, _, _ = pyttb.cp_als(pyttb.tensor(tensor), rank, init=start, maxiters=1000, stoptol=1e-10, printitn=0)
    return list(fit.factor_matrices)


def _pytensorlab(tensor: np.ndarray, rank: int, _seed: int) -> Sequence[np.ndarray]:
    import pytensorlab

    fit, _ = pytensorlab.cpd(tensor, rank, print_steps=False)
    return list(fit.factors)


RIVALS = (
    Rival("TensorLy parafac", "tensorly", partial(_tensorly, init="random", tol=1e-10), seeded=True),
    Rival("TensorLy parafac, orthogonalised", "tensorly", partial(_tensorly, init="svd", orthogonalise=5)),
    Rival("pyttb cp_als", "pyttb", _pyttb, seeded=True),
    Rival("pytensorlab cpd", "pytensorlab", _pytensorlab),
)
"""All functions, whether or not their libraries are installed."""


def draw_demo(demo: Demo, path: Path) -> None:
    """Save the figure: spectra by every method, errors and times, and measured against predicted errors."""
    with paper((12.5, 9.6)) as figure:
        top, bottom = np.asarray(figure.subfigures(2, 1, height_ratios=(1.35, 1)))
        draw_spectra(demo.spectra, top)
        times, errors = bottom.subplots(1, 2, width_ratios=(1.2, 1))
        _draw_times(demo, times)
        _draw_errors(demo, errors)
        figure.savefig(path, dpi=150)


def draw_spectra(spectra: Spectra, figure: Any) -> None:
    """Draw the spectra from several seeds, a column for each method."""
    (samples, *_), noise = spectra.measured.tensor.shape, 100 * NOISE
    figure.suptitle(
        f"Spectra of {RANK} substances in {samples} samples, {noise:.0f} % noise: the truth (dashed), and estimates "
        f"from {len(spectra.runs[0].errors)} seeds; bands are 95 % confidence intervals",
        color=INK,
    )
    waves = (("emission, nm", spectra.measured.emission), ("excitation, nm", spectra.measured.excitation))
    grid = figure.subplots(2, len(spectra.runs), sharey="row", squeeze=False)
    for column, run in zip(grid.T, spectra.runs, strict=True):
        span = " to ".join(dict.fromkeys(f"{edge(run.errors):.2g}" for edge in (min, max)))
        column[0].set_title(f"{run.method}\nerror {span}")
        for axis, mode, (name, wave) in zip(column, (1, 2), waves, strict=True):
            _draw_curves(axis, wave, spectra, run, mode)
            axis.set_xlabel(name)


def _draw_curves(axis: Any, wave: np.ndarray, spectra: Spectra, run: Starts, mode: int) -> None:
    band = spectra.bands()[mode] if run is spectra.runs[0] else None
    for component, true in enumerate(spectra.measured.factors[mode].T):
        curves = [factors[mode][:, component] for factors in run.factors]
        for curve in curves:
            axis.plot(wave, curve, color=COLORS[component % len(COLORS)], linewidth=1.2, alpha=0.8)
        if band is not None:
            low, high = curves[0] - band[:, component], curves[0] + band[:, component]
            axis.fill_between(wave, low, high, color=COLORS[component % len(COLORS)], alpha=0.3, linewidth=0)
        axis.plot(wave, true, color=INK, linewidth=0.9, linestyle=(0, (4, 3)), zorder=4)


def _draw_times(demo: Demo, axis: Any) -> None:
    runs = sorted(demo.runs, key=lambda run: -run.error)
    errors = [run.error for run in runs]
    axis.axvline(demo.oracle, color=MUTED, linewidth=1, linestyle="--")
    axis.hlines(range(len(runs)), demo.oracle, errors, color=MUTED, linewidth=0.8)
    axis.scatter(errors, range(len(runs)), s=70, color=[OURS if run.ours else THEIRS for run in runs], zorder=3)
    for row, run in enumerate(runs):
        axis.annotate(f"{run.seconds:.2f} s", (run.error, row), xytext=(9, -4), textcoords="offset points", color=INK)
    axis.set_yticks(range(len(runs)), [run.method for run in runs])
    axis.tick_params(axis="y", length=0)
    log_axis(axis.xaxis, [demo.oracle, *errors])
    axis.set(
        xlim=(demo.oracle / 1.5, 3 * max(errors)),
        xlabel="mean distance of unit factors from the truth (dashed: oracle)",
        title="A harder one, of full rank: error of every method, and its time",
    )


def _draw_errors(demo: Demo, axis: Any) -> None:
    """Plot the measured error of every factor against its standard error, which needs no truth."""
    errors, predicted = demo.component_errors()
    axis.scatter(predicted.ravel(), errors.ravel(), s=16, alpha=0.7, color=OURS, linewidths=0)
    limits = [0.7 * min(errors.min(), predicted.min()), 1.4 * max(errors.max(), predicted.max())]
    axis.plot(limits, limits, color=MUTED, linewidth=1, zorder=0)
    log_axis(axis.xaxis, limits)
    log_axis(axis.yaxis, limits)
    axis.set(
        xlabel="standard error predicted from the data alone",
        ylabel="measured error of the factor",
        title="Every factor: measured and predicted error",
    )
