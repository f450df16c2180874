"""PARAFAC2 beside TensorLy: who reaches the lowest minimum, at which CPU time, and how good standard errors are.

``python -m benchmarks.parafac2 --draws 50`` prints two tables; ``--only sparse --slices 100000`` fits sparse slices of
counts, and prints seconds and memory. It needs TensorLy; matcouply joins if it is installed. A run is at the best
minimum if its squared error is at most 0.1 % above the lowest of all runs on the same data, the run from the true
factors among them.
"""

from __future__ import annotations

import argparse
import resource
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
from scipy import sparse

import codiag
from codiag.drop_in import parafac2
from codiag.synthetic import PlantedSlices, parafac2_slices

NEAR = 1e-3
TENSORLY = {"n_iter_max": 2000, "tol": 1e-8, "return_errors": True}


@dataclass(frozen=True)
class Setting:
    """Slices: their number, rows, columns and components, the relative noise, and correlations."""

    n_slices: int
    n_rows: int
    n_columns: int
    rank: int
    noise: float
    correlation: float = 0.5
    signed: bool = False
    collinear: float = 0.0
    peaks: bool = False

    def draw(self, seed: int) -> PlantedSlices:
        rng = np.random.default_rng([seed, self.n_slices, self.rank])
        planted = parafac2_slices(
            (self.n_rows,) * self.n_slices,
            self.n_columns,
            self.rank,
            correlation=self.correlation,
            signed=self.signed,
            rng=rng,
        )
        if self.peaks:
            return self._noisy(planted, rng, self._shifted_peaks(rng))
        if self.collinear:
            matrix = np.full((self.rank,) * 2, self.collinear) + (1 - self.collinear) * np.eye(self.rank)
            c = np.linalg.qr(rng.standard_normal((self.n_columns, self.rank)))[0] @ np.linalg.cholesky(matrix).T
            planted = PlantedSlices([], planted.weights, (*planted.factors[:2], c), planted.projections)
        a, b, c = planted.factors
        pairs = zip(planted.projections, a * planted.weights, strict=True)
        return self._noisy(planted, rng, [(basis @ b * row) @ c.T for basis, row in pairs])

    def _shifted_peaks(self, rng: np.random.Generator) -> list[np.ndarray]:
        """Return slices whose profiles are peaks, each shifted at random from slice to slice by whole points."""
        points = np.arange(self.n_rows)
        centers = np.linspace(0.2, 0.8, self.rank) * self.n_rows
        peaks = np.exp(-((points[:, None] - centers) ** 2) / 18)
        c = rng.random((self.n_columns, self.rank))
        weights = rng.uniform(0.1, 1.1, (self.n_slices, self.rank))
        return [(np.roll(peaks, int(rng.integers(-8, 9)), axis=0) * row) @ c.T for row in weights]

    def _noisy(self, planted: PlantedSlices, rng: np.random.Generator, clean: list[np.ndarray]) -> PlantedSlices:
        errors = [rng.standard_normal(one.shape) for one in clean]
        scale = self.noise * np.linalg.norm(np.stack(clean)) / np.linalg.norm(np.stack(errors))
        slices = [one + scale * error for one, error in zip(clean, errors, strict=True)]
        return PlantedSlices(slices, planted.weights, planted.factors, planted.projections)


SETTINGS = {
    "40 slices, rank 5, correlation .7, 5 %": Setting(40, 60, 30, 5, 0.05, 0.7),
    "20 slices, rank 5, correlation .7, 5 %": Setting(20, 60, 30, 5, 0.05, 0.7),
    "10 slices, rank 5, correlation .7, 5 %": Setting(10, 60, 30, 5, 0.05, 0.7),
    "15 slices, rank 4, collinear columns, 2 %": Setting(15, 40, 20, 4, 0.02, 0.8, collinear=0.8),
    "15 slices, rank 3, shifting peaks, 2 %": Setting(15, 50, 20, 3, 0.02, peaks=True),
    "5 slices, rank 3, 5 %": Setting(5, 40, 20, 3, 0.05),
    "50 slices, rank 3, 33 %": Setting(50, 40, 30, 3, 0.33, 0.3),
    "50 slices, rank 5, 33 %": Setting(50, 40, 30, 5, 0.33, 0.3),
    "50 slices, rank 5, 10 %": Setting(50, 40, 30, 5, 0.1, 0.3),
    "15 slices, rank 3, mixed signs, 5 %": Setting(15, 40, 20, 3, 0.05, signed=True),
    "20 slices, rank 4, mixed signs, 5 %": Setting(20, 40, 20, 4, 0.05, signed=True),
}

ERRORS = {
    "12 slices, rank 3, 5 %": Setting(12, 30, 15, 3, 0.05),
    "12 slices, rank 3, 20 %": Setting(12, 30, 15, 3, 0.2),
    "20 slices, rank 4, correlation .7, 5 %": Setting(20, 25, 12, 4, 0.05, 0.7),
}


def runs(planted: PlantedSlices, rank: int, seed: int, left_out: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Return the squared error and the CPU seconds of each method but those that are left out."""
    from tensorly.decomposition import parafac2 as theirs

    def random() -> float:
        return theirs(planted.slices, rank, init="random", random_state=seed, **TENSORLY)[1][-1]

    def best_of_five() -> float:
        starts = range(1000 * seed, 1000 * seed + 5)
        found = (theirs(planted.slices, rank, init="random", random_state=start, **TENSORLY)[1][-1] for start in starts)
        return min(found)

    def singular_vectors() -> float:
        return theirs(planted.slices, rank, init="svd", random_state=seed, **TENSORLY)[1][-1]

    def alternating_admm() -> float:
        from matcouply.decomposition import parafac2_aoadmm

        options = {"init": "svd", "n_iter_max": 2000, "tol": 1e-8, "random_state": seed}
        (weights, (a, bases, c)), _ = parafac2_aoadmm(planted.slices, rank, return_errors=True, **options)
        weights = 1.0 if weights is None else weights
        pairs = zip(planted.slices, bases, a * weights, strict=True)
        squares = sum(np.sum((one - (basis * row) @ c.T) ** 2) for one, basis, row in pairs)
        return float(np.sqrt(squares / np.sum(np.square(np.concatenate(planted.slices)))))

    def ours() -> float:
        return codiag.parafac2(planted.slices, rank, rng=seed).relative_error

    def truth() -> float:
        start = (planted.weights, planted.factors, planted.projections)
        return parafac2(planted.slices, rank, init=start, return_errors=True)[1][-1]

    methods: dict[str, Callable[[], float]] = {
        "TensorLy, random": random,
        "TensorLy, best of 5": best_of_five,
        "TensorLy, SVD": singular_vectors,
        "matcouply, SVD": alternating_admm,
        "codiag": ours,
        "from the truth": truth,
    }
    found = {}
    absent = [] if find_spec("matcouply") else ["matcouply, SVD"]
    for name in [name for name in methods if name not in (*left_out, *absent)]:
        start = time.process_time()
        error = methods[name]()
        found[name] = float(error) ** 2, time.process_time() - start
    return found


def minima(n_draws: int, chosen: str, left_out: Sequence[str]) -> None:
    """Print the share of runs at the lowest minimum, and the median CPU seconds."""
    for title, setting in SETTINGS.items():
        if chosen not in title:
            continue
        drawn = [runs(setting.draw(seed), setting.rank, seed, left_out) for seed in range(n_draws)]
        lowest = [min(value for value, _ in each.values()) for each in drawn]
        parts = []
        for name in drawn[0]:
            hits = np.mean([each[name][0] <= (1 + NEAR) * low for each, low in zip(drawn, lowest, strict=True)])
            parts.append(f"{name} {100 * hits:.0f} % {np.median([each[name][1] for each in drawn]):.3f} s")
        print(f"{title} ({n_draws} draws): {'; '.join(parts)}", flush=True)


def errors(n_draws: int) -> None:
    """Print the root mean square of errors over that of standard errors, and how often 90 % intervals hold."""
    for title, setting in ERRORS.items():
        quiet = Setting(**{**vars(setting), "noise": 0.0}).draw(0)
        rng = np.random.default_rng(1)
        scale = setting.noise * np.sqrt(np.mean(np.square(quiet.slices)))
        squares = np.zeros((3, 2))
        inside: list[list[float]] = [[], [], []]
        for _ in range(n_draws):
            slices = [one + scale * rng.standard_normal(one.shape) for one in quiet.slices]
            fit = codiag.parafac2(slices, setting.rank, rng=0)
            for place, (error, own) in enumerate(_pairs(quiet, fit)):
                squares[place] += np.sum(error**2), np.sum(own**2)
                inside[place].append(float(np.mean(np.abs(error) < 1.645 * own)))
        ratios = np.sqrt(squares[:, 0] / squares[:, 1])
        shares = [np.mean(each) for each in inside]
        shown = "; ".join(
            f"{name} {ratio:.3f}, {share:.3f}"
            for name, ratio, share in zip(("A", "evolving", "C"), ratios, shares, strict=True)
        )
        print(f"{title} ({n_draws} draws), error / standard error, 90 % intervals: {shown}", flush=True)


def _pairs(truth: PlantedSlices, fit: codiag.Parafac2Fit) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return errors and standard errors of A, of the evolving factors, and of C."""
    matched = codiag.match_components([fit.factors[2]], [truth.factors[2]]).permutation
    signs = np.sign(np.sum(fit.factors[2][:, matched] * truth.factors[2], axis=0))
    error_a, error_b, error_c = (
        np.stack(each)[..., matched] if isinstance(each, tuple) else each[:, matched]
        for each in fit.entry_standard_errors
    )
    evolving = np.stack([basis @ truth.factors[1] for basis in truth.projections])
    return [
        (fit.factors[0][:, matched] - truth.factors[0], error_a),
        (np.stack(fit.evolving)[..., matched] * signs - evolving, error_b),
        (fit.factors[2][:, matched] * signs - truth.factors[2], error_c),
    ]


def sparse_counts(n: int, rng: np.random.Generator, width: int = 1000, rank: int = 10) -> list[sparse.csr_array]:
    """Return slices of visits by codes: about five events a visit, from topics whose shares change at random."""
    topics = np.cumsum(rng.dirichlet(np.full(width, 0.05), rank), axis=1)
    found = []
    for weights in rng.uniform(0.2, 1.8, (n, rank)):
        shares = np.cumsum(rng.gamma(0.3, size=(int(rng.integers(8, 33)), rank)) * weights, axis=1)
        visits = np.repeat(np.arange(len(shares)), rng.poisson(5, len(shares)))
        chosen = np.sum(rng.random((visits.size, 1)) * shares[visits, -1:] > shares[visits], axis=1)
        codes = np.sum(rng.random((visits.size, 1)) > topics[chosen], axis=1).clip(max=width - 1)
        found.append(sparse.csr_array((np.ones(visits.size), (visits, codes)), shape=(len(shares), width)))
    return found


def sparse_slices(n: int) -> None:
    """Print the CPU seconds of sparse slices, and the peak of memory."""
    slices = sparse_counts(n, np.random.default_rng(0))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    start = time.process_time()
    fit = codiag.parafac2(slices, 10, rng=0)
    seconds, after = time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    n_entries, n_rows = sum(one.nnz for one in slices), sum(one.shape[0] for one in slices)
    print(f"{n} slices, {n_rows} rows, {n_entries} entries: {fit!r}, {fit.history[-1].n_iter} steps at the end")
    print(f"{seconds:.1f} s of CPU; peak of memory {after:.0f} MB, {before:.0f} MB before the fit")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--only", default="", help="settings whose titles contain this, or 'errors'")
    parser.add_argument(
        "--without", action="append", default=[], help="a method that is left out, such as 'TensorLy, SVD'"
    )
    parser.add_argument("--slices", type=int, default=10_000, help="number of sparse slices")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.only == "sparse":
        sparse_slices(options.slices)
        return
    if options.only != "errors":
        minima(options.draws, options.only, options.without)
    if options.only in ("", "errors"):
        errors(options.draws)


if __name__ == "__main__":
    main()
