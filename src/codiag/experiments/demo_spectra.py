"""Spectra of substances in mixtures, from several seeds, beside rivals that start at random."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from codiag._factorization import Factorization
from codiag.experiments.fitting import silent_fit
from codiag.experiments.rivals import RIVALS
from codiag.methods import ALS
from codiag.metrics import factor_error, match_components
from codiag.synthetic import Fluorescence, fluorescence

SHAPE, RANK, NOISE = (8, 60, 40), 6, 0.1
"""Samples, wavelengths of emission and of excitation; substances; noise relative to the tensor."""
STARTS = 5
"""Seeds that every method gets."""
NORMAL = 1.96
"""Standard errors to either side that hold the truth in 95 of 100 cases."""


@dataclass(frozen=True, eq=False)
class Starts:
    """What one method gives from several seeds: factors that are matched to the truth, and how far they are from it."""

    method: str
    factors: Sequence[Sequence[np.ndarray]]
    errors: list[float]
    seconds: float  # a run, on average


@dataclass(frozen=True, eq=False)
class Spectra:
    """The mixtures, the first fit of codiag, and what every method gives; the first is codiag."""

    measured: Fluorescence
    fit: Factorization
    runs: list[Starts]

    def bands(self) -> list[np.ndarray]:
        """Return, for each mode, half the width of the band that holds an entry of the true factor 95 times in 100."""
        order = match_components(self.fit, self.measured).permutation
        return [NORMAL * errors[:, order] for errors in self.fit.entry_standard_errors]

    def held(self) -> float:
        """Return the share of all entries of the true factors that lie in these bands."""
        found = zip(self.runs[0].factors[0], self.measured.factors, self.bands(), strict=True)
        inside = [np.ravel(np.abs(guess - true) <= band) for guess, true, band in found]
        return float(np.mean(np.concatenate(inside)))


def run_spectra(seed: int = 0) -> Spectra:
    """Factorize emission-excitation matrices of mixtures by codiag and by rivals, each from the same seeds.

    Where no rival is installed, codiag's own alternating least squares, the method of the rivals, stands in for them.
    """
    measured = fluorescence(SHAPE, RANK, noise=NOISE, seed=seed)
    tensor = measured.tensor
    candidates: list[tuple[str, Callable[[int], object]]] = [("codiag", lambda start: _fit(tensor, None, start))]
    candidates += [
        (rival.name, _from(rival.solve, tensor)) for rival in RIVALS if rival.seeded and rival.installed
    ] or [("ALS from random starts (codiag's, for want of TensorLy)", lambda start: _fit(tensor, ALS(), start))]
    runs = [_starts(name, solve, measured) for name, solve in candidates]
    return Spectra(measured, _fit(tensor, None, 0), runs)


def _fit(tensor: np.ndarray, method: Any, start: int) -> Factorization:
    return silent_fit(tensor, RANK, method=method, seed=start)


def _from(solve: Callable[..., Sequence[np.ndarray]], tensor: np.ndarray) -> Callable[[int], object]:
    return lambda start: solve(tensor, RANK, start)


def _starts(name: str, solve: Callable[[int], object], measured: Fluorescence) -> Starts:
    begin = time.perf_counter()
    results = [solve(start) for start in range(STARTS)]
    seconds = (time.perf_counter() - begin) / STARTS
    factors = [match_components(result, measured).factors for result in results]
    return Starts(name, factors, [factor_error(one, measured) for one in factors], seconds)
