"""CPU time of the defaults, in matrix products and against other libraries."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from benchmarks.measure import cpu_seconds, run_parts, table, timed
from codiag import factor_error
from codiag.diagonalize import UWEDGE, OrthogonalNewton
from codiag.extending import Diagonalizer
from codiag.synthetic import Stack, matrix_stack, mild_factor, orthonormal_factor, unit_factor

NOISE = 1e-3
PROBLEMS: dict[str, tuple[Callable[..., np.ndarray], Diagonalizer]] = {
    "orthogonal, `OrthogonalNewton`": (orthonormal_factor, OrthogonalNewton()),
    "mild U, `UWEDGE`": (mild_factor, UWEDGE()),
    "random unit columns, `UWEDGE`": (unit_factor, UWEDGE()),
}


def problem(make: Callable[..., np.ndarray], size: int, seed: int) -> Stack:
    rng = np.random.default_rng([seed, size])
    return matrix_stack(make(size, size, rng), size, noise=NOISE, rng=rng)


def product_seconds(size: int) -> float:
    """Return the time of one 2 n d^3 product, the unit of account."""
    rng = np.random.default_rng(0)
    left, right = rng.standard_normal((size, size)), rng.standard_normal((size, size * size))
    return cpu_seconds(lambda: left @ right, repeats=20)


def in_products(sizes: tuple[int, ...] = (15, 50, 100), trials: int = 5) -> str:
    rows = []
    for size in sizes:
        unit = product_seconds(size)
        for name, (make, method) in PROBLEMS.items():
            times, sweeps, errors = [], [], []
            for seed in range(trials):
                stack = problem(make, size, seed)
                times.append(cpu_seconds(lambda: method(stack.matrices, rng=0), 5))  # noqa: B023
                fit = method(stack.matrices, rng=0)
                sweeps.append(fit.n_sweeps)
                errors.append(factor_error(fit, stack.factor))
            rows.append(
                (
                    size,
                    name,
                    f"{1e3 * statistics.median(times):.2f}",
                    f"{statistics.median(times) / unit:.1f}",
                    f"{max(times) / unit:.1f}",
                    f"{statistics.median(sweeps):g}",
                    f"{statistics.median(errors):.2e}",
                )
            )
        rows.append((size, "one product", f"{1e3 * unit:.3f}", "1", "1", "", ""))
    return table(("d = n", "problem", "ms", "products", "worst", "sweeps", "factor error"), rows)


def balanced_off(inverse: np.ndarray, matrices: np.ndarray) -> float:
    """Return the energy off the diagonal for factors of unit norm, the same measure for everybody."""
    factor = np.linalg.inv(inverse)
    inverse = inverse * np.linalg.norm(factor, axis=0)[:, None]
    transformed = inverse @ matrices @ inverse.T
    return float(np.sum(transformed**2) - np.sum(np.einsum("lii->li", transformed) ** 2))


def against_baselines() -> str:
    """Time pyriemann's methods at their own tolerances on the same matrices, in the same process."""
    from pyriemann.geometry.ajd import rjd, uwedge

    rows = []
    for size, make, ours, name, baseline in (
        (50, orthonormal_factor, OrthogonalNewton(), "`rjd`", rjd),
        (100, orthonormal_factor, OrthogonalNewton(), "`rjd`", rjd),
        (50, mild_factor, UWEDGE(), "`uwedge`", uwedge),
        (100, mild_factor, UWEDGE(), "`uwedge`", uwedge),
        (100, unit_factor, UWEDGE(), "`uwedge`", uwedge),
    ):
        stack = problem(make, size, seed=0)
        theirs = baseline(stack.matrices)[0]
        baseline_time = cpu_seconds(lambda: baseline(stack.matrices), 1 if baseline is rjd else 3)  # noqa: B023
        fit = ours(stack.matrices, rng=0)
        own_time = cpu_seconds(lambda: ours(stack.matrices, rng=0))  # noqa: B023
        inverse = theirs.T if baseline is rjd else theirs
        rows.append(
            (
                size,
                f"`{type(ours).__name__}`, {make.__name__.removesuffix('_factor')} U",
                f"{1e3 * own_time:.1f}",
                f"{name} of pyriemann",
                f"{1e3 * baseline_time:.0f}",
                f"{baseline_time / own_time:.1f}",
                f"{fit.off_diagonal:.6g}",
                f"{balanced_off(inverse, stack.matrices):.6g}",
            )
        )
    return table(("d = n", "ours", "ms", "theirs", "ms", "times faster", "our off()", "their off()"), rows)


def relative_step(inverse: np.ndarray, matrices: np.ndarray) -> float:
    """Return the largest entry of the step of Tichavsky and Yeredor, which is zero where their iteration rests."""
    transformed = inverse @ matrices @ inverse.T
    energy = np.sum(np.einsum("lii->li", transformed) ** 2, axis=0) ** -0.25
    transformed = transformed * energy[:, None] * energy[None, :]
    diagonals = np.einsum("lii->li", transformed)
    rho, cross = diagonals.T @ diagonals, np.einsum("lij,lj->ij", transformed, diagonals)
    apart = ~np.eye(len(rho), dtype=bool)
    return float(np.max(np.abs((rho * cross.T - cross)[apart] / (1 - rho[apart] ** 2))))


def ill_conditioned(size: int = 100, trials: int = 12) -> str:
    """Compare with pyriemann's `uwedge` where factors are nearly dependent, by four measures and by time."""
    from pyriemann.geometry.ajd import uwedge

    rows = []
    for seed in range(trials):
        stack = problem(unit_factor, size, seed)
        (theirs, _), their_time = timed(lambda: uwedge(stack.matrices), time.thread_time)  # noqa: B023
        following = uwedge(stack.matrices, init=theirs, n_iter_max=1)[0]
        fit, own_time = timed(lambda: UWEDGE()(stack.matrices, rng=0), time.thread_time)  # noqa: B023
        ends = fit.inverse, theirs, following
        rows.append(
            (
                seed,
                f"{np.linalg.cond(stack.factor):.0f}",
                *(f"{seconds:.2f}" for seconds in (own_time, their_time)),
                *(f"{balanced_off(end, stack.matrices):.4g}" for end in ends),
                *(f"{relative_step(end, stack.matrices):.0e}" for end in ends[:2]),
                *(f"{factor_error(np.linalg.inv(end), stack.factor):.3f}" for end in ends),
                f"{balanced_off(np.linalg.inv(stack.factor), stack.matrices):.2g}",
            )
        )
    sides = "`UWEDGE`", "`uwedge`", "after one step more"
    columns = [
        f"{what} {whose}" for what, n in (("s", 2), ("off()", 3), ("step", 2), ("error", 3)) for whose in sides[:n]
    ]
    return (
        "## Nearly dependent factors\nRandom unit columns, d = n = 100, noise 1e-3. Both iterate the same step, given "
        "here as its largest entry for rows of unit diagonal energy: zero at a solution. `UWEDGE` stops at one. "
        "pyriemann's plain steps stop after 100 of them, in most rows in a cycle of two points with steps of 0.03 to "
        "0.3 between them: the next step leads to the other point. Of the two, the one with the lower off() has the "
        "larger error; an off() below that of `UWEDGE` is that of such a point, or of factors not yet settled. For "
        "factors of unit norm off() is least where they are far from dependent, whatever the truth, whose own off() "
        "is the largest in the table.\n\n" + table(("seed", "condition of U", *columns, "off() of the truth"), rows)
    )


def run() -> str:
    return "\n\n".join(
        (
            "## Speed\nCPU time of one thread, one BLAS thread. Matrices U diag(d) U^T with Gaussian diagonals and "
            f"symmetric Gaussian noise, standard deviation {NOISE:g} in each entry. A product is one 2 n d^3 matrix "
            "product; the start, validation and the final residuals are included. Median and worst of five problems.",
            in_products(),
            "off() is the energy off the diagonal for factors of unit norm.",
            against_baselines(),
        )
    )


if __name__ == "__main__":
    run_parts("speed", {"ill-conditioned": ill_conditioned})
