"""`codiag.factorize`, its methods, and what a fit can do."""

from __future__ import annotations

from typing import Any

import numpy as np

import codiag
from codiag.diagonalize import Jacobi, JDi, OrthogonalNewton
from codiag.losses import Bernoulli, Gaussian, Huber, NegativeBinomial, Poisson
from codiag.methods import ALS, METHODS, NLS, NOJD, OJD, SD2, TPM, Auto, Givens, Lathauwer
from codiag.problem import Stage

from ..arrays import Held, choose, folder, is_moderate, random_array, random_rank, random_tensor
from ..case import Case, Check, covers
from ..fits import about_a_fit
from ..invariants import Problems, about_fit, finite, not_finite

NAMED = ("tensor", "rank", "method")


def _any_tensor(rng: np.random.Generator) -> Held:
    return random_array(rng) if rng.random() < 0.6 else random_tensor(rng, torch=True)


def same_again(rng: np.random.Generator, arguments: dict[str, Any]) -> tuple[Check, ...]:
    """Return, for one input in ten, the check that a second call with the same seed gives the same bytes."""
    if rng.random() > 0.1 or not isinstance(arguments.get("seed"), int):
        return ()

    def check(fit: Any, given: dict[str, Any]) -> Problems:
        again = codiag.factorize(**given)
        if np.asarray(again.weights).tobytes() != np.asarray(fit.weights).tobytes():
            yield "seed", f"the same seed gives other weights: {fit.weights} and {again.weights}"

    return (check,)


def _seed(rng: np.random.Generator) -> Any:
    number = int(rng.integers(2**31))
    return choose(rng, number, number, number, 0, np.random.default_rng(number), np.int64(number))


@covers("codiag.factorize", "codiag.methods.Auto", "codiag.ConvergenceWarning", weight=16)
def the_default(rng: np.random.Generator) -> Case:
    """The default on every kind of tensor, which it must accept."""
    held = _any_tensor(rng)
    rank = random_rank(rng, held.dense.shape)
    arguments = {"tensor": held.data, "rank": rank, "seed": _seed(rng)}
    checks = (about_fit(held, rank, "best", int(rng.integers(2**31))), about_a_fit, *same_again(rng, arguments))
    valid = True if is_moderate(held) else None
    return Case("codiag.factorize", codiag.factorize, arguments, valid, checks, named=NAMED)


@covers("codiag.constraints.NonNegative", "codiag.constraints.Orthogonal", weight=1)
def constrained_and_incomplete(rng: np.random.Generator) -> Case:
    """Constraints together with missing entries, up to most of them."""
    shape = tuple(int(size) for size in rng.integers(3, 8, size=3))
    rank, name = int(rng.integers(1, min(shape) + 1)), choose(rng, "orthogonal", "orthogonal", "nonnegative")
    entries = rng.standard_normal(shape) if rng.random() < 0.5 else rng.integers(0, 2, shape).astype(float)
    tensor = np.where(rng.random(shape) < choose(rng, 0.0, 0.3, 0.7), np.nan, entries)

    def check(fit: Any, given: dict[str, Any]) -> Problems:
        factors = [np.nan_to_num(factor) for factor in fit.factors]
        grams = [factor.T @ factor - np.eye(rank) for factor in factors]
        if name == "orthogonal" and np.all(fit.weights != 0) and max(np.max(np.abs(gram)) for gram in grams) > 1e-6:
            yield "constraint", "factors are not orthogonal"
        if name == "nonnegative" and min(np.min(factor) for factor in factors) < 0:
            yield "constraint", "factors have negative entries"

    arguments = {"tensor": tensor, "rank": rank, "constraints": name, "seed": int(rng.integers(2**31))}
    return Case("codiag.factorize", codiag.factorize, arguments, None, (check,), named=(*NAMED, "constraints"))


@covers("codiag.losses.Poisson", "codiag.losses.NegativeBinomial", "codiag.losses.Bernoulli", "codiag.losses.Huber",
        "codiag.losses.Gaussian", "codiag.extending.Loss", weight=3)  # fmt: skip
def another_loss(rng: np.random.Generator) -> Case:
    """Entries drawn from a loss, now and then with missing ones, which it must accept."""
    shape, rank = tuple(int(size) for size in rng.integers(3, 9, size=3)), int(rng.integers(1, 3))
    factors = [rng.gamma(2.0, size=(size, rank)) for size in shape]
    loss = choose(rng, Poisson(), Poisson("log"), NegativeBinomial(0.5), Bernoulli("odds"), Huber(1.0), Gaussian())
    model = np.einsum("ir,jr,kr->ijk", *factors)
    drawn = loss.draw(np.log(model) if isinstance(loss, Poisson) and loss.link == "log" else model, rng)
    tensor = np.where(rng.random(shape) < choose(rng, 0.0, 0.2), np.nan, drawn)
    if not np.nansum(tensor**2) > 0:
        tensor = np.ones(shape)

    def check(fit: Any, given: dict[str, Any]) -> Problems:
        yield from finite(fit.weights, given)
        if not fit.deviance >= -1e-9:
            yield "deviance", f"it is negative: {fit.deviance}"

    arguments = {"tensor": tensor, "rank": rank, "loss": loss, "seed": int(rng.integers(2**31))}
    return Case("codiag.factorize", codiag.factorize, arguments, True, (check,), named=(*NAMED, "loss"))


@covers("codiag.factorize_each", "codiag.FailedFitsError", weight=2)
def several(rng: np.random.Generator) -> Case:
    """A few tensors at once, each of which must be fitted as by itself."""
    helds = [random_array(rng) for _ in range(int(rng.integers(1, 4)))]
    ranks = [random_rank(rng, held.dense.shape) for held in helds]
    arguments = {"tensors": [held.data for held in helds], "rank": ranks, "seed": int(rng.integers(2**31))}

    def check(fits: Any, given: dict[str, Any]) -> Problems:
        if len(fits) != len(helds):
            yield "length", f"{len(fits)} fits of {len(helds)} tensors"
        for place, (fit, held, rank) in enumerate(zip(fits, helds, ranks, strict=False)):
            seed = np.random.SeedSequence(given["seed"], spawn_key=(place,))
            alone = codiag.factorize(held.data, rank, seed=seed)  # type: ignore[arg-type]
            if np.asarray(alone.weights).tobytes() != np.asarray(fit.weights).tobytes():
                yield "each", f"tensor {place} has other weights alone: {alone.weights} and {fit.weights}"

    valid = True if all(is_moderate(held) for held in helds) else None
    return Case("codiag.factorize_each", codiag.factorize_each, arguments, valid, (check,), named=("tensors", "rank"))


def _configured(rng: np.random.Generator) -> tuple[Any, str]:
    """Return a method with options, or the name of one, and what it claims."""
    tol, sweeps = choose(rng, 1e-6, 1e-9), int(choose(rng, 1, 3, 50, 300))
    name = choose(rng, *sorted(METHODS))
    claims = {"auto": "best", "nls": "minimum", "als": "sweep"}
    options: list[tuple[Any, str]] = [
        (Auto(max_starts=int(rng.integers(1, 4)), tol=1e-9, max_sweeps=sweeps), "minimum"),
        (NLS(n_starts=int(rng.integers(1, 4)), max_sweeps=sweeps), "minimum"),
        (NLS(init=ALS(max_sweeps=5), max_replacements=0), "minimum"),
        (
            ALS(
                init=choose(rng, "random", "svd"),
                orthogonalize=int(rng.integers(3)),
                line_search=choose(rng, True, False),
            ),
            "sweep",
        ),
        (ALS(tol=tol, max_sweeps=sweeps), "sweep"),
        (
            NOJD(plug_in=choose(rng, True, False, "inverse"), directions=choose(rng, "random", "orthonormal")),
            "",
        ),
        (NOJD(n_projections=int(rng.integers(2, 9)), compress=choose(rng, True, False)), ""),
        (NOJD(diagonalizer=JDi()), ""),
        (OJD(plug_in=choose(rng, True, False, "factors"), whiten=choose(rng, True, False)), ""),
        (OJD(diagonalizer=choose(rng, Jacobi(), OrthogonalNewton())), ""),
        (TPM(n_restarts=int(rng.integers(1, 6)), max_sweeps=sweeps), ""),
        (SD2(n_pairs=int(rng.integers(2, 6))), ""),
        (Givens(max_sweeps=sweeps), ""),
        (Lathauwer(), ""),
        (name, claims.get(name, "")),
        (name.upper(), claims.get(name, "")),
    ]
    return options[int(rng.integers(len(options)))]


@covers(
    *(f"codiag.methods.{name}" for name in ("ALS", "NLS", "NOJD", "OJD", "SD2", "TPM", "Givens", "Lathauwer")),
    "codiag.methods.METHODS",
    "codiag.methods.Method",
    weight=9,
)
def a_method(rng: np.random.Generator) -> Case:
    """Every method on every kind of tensor; some are for few of them, and say so."""
    held = _any_tensor(rng)
    rank = random_rank(rng, held.dense.shape)
    method, claims = _configured(rng)
    arguments = {"tensor": held.data, "rank": rank, "method": method, "seed": int(rng.integers(2**31))}
    must = type(method) in (Auto, NLS, ALS) or str(method).lower() in ("auto", "nls", "als")
    checks = (about_fit(held, rank, claims, int(rng.integers(2**31))), about_a_fit, *same_again(rng, arguments))
    named = (*NAMED, "diagonalizer", "directions")
    function = f"codiag.methods.{type(method).__name__}" if not isinstance(method, str) else "codiag.factorize"
    return Case(function, codiag.factorize, arguments, True if must and is_moderate(held) else None, checks, named)


@covers("codiag.Problem", weight=3)
def symmetry(rng: np.random.Generator) -> Case:
    """Tensors declared symmetric or not, with moments for the methods that take one."""
    size, k = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    k = min(k, size)
    factor, weights = rng.standard_normal((size, k)), rng.uniform(0.5, 2, k)
    clean = np.einsum("ai,bi,ci,i->abc", factor, factor, factor, weights)
    share, errors = choose(rng, 0.0, 1e-3, 0.1), rng.standard_normal(clean.shape)
    tensor = clean + share * errors * np.linalg.norm(clean) / np.linalg.norm(errors)
    moment = (factor * weights) @ factor.T
    method = choose(rng, None, "nls", OJD(), TPM(), Givens(), "als")
    symmetric = choose(rng, True, True, False, None)
    arguments = {"tensor": tensor, "rank": k, "method": method, "symmetric": symmetric, "seed": int(rng.integers(99))}
    if symmetric and rng.random() < 0.5:
        problem = codiag.Problem(tensor, k, second_moment=moment, symmetric=True)
        arguments = {"tensor": problem, "method": method, "seed": arguments["seed"]}

    def stages(fit: Any, given: dict[str, Any]) -> Problems:
        yield from finite(fit, given)
        yield from about_a_fit(fit, given)
        if symmetric and not fit.symmetric:
            yield "shape", "symmetric=True gave a fit with modes apart"
        if not all(isinstance(stage, Stage) and stage.sweeps >= 0 for stage in fit.stages):
            yield "stages", f"are {fit.stages}"

    valid = True if method is None or isinstance(method, str) else None
    return Case("codiag.factorize", codiag.factorize, arguments, valid, (stages,), named=(*NAMED, "second_moment"))


@covers("codiag.methods.Auto", "codiag.methods.ALS", "codiag.methods.NLS", weight=2)
def building(rng: np.random.Generator) -> Case:
    """Options of methods, which are looked at where they are set."""
    makers: list[tuple[type, dict[str, Any]]] = [
        (Auto, {"max_starts": 3, "tol": 1e-6, "max_sweeps": 10, "monitor": None}),
        (NLS, {"init": (np.ones(2), [rng.standard_normal((3, 2))] * 3), "n_starts": 2, "tol": 1e-6}),
        (NLS, {"init": None, "max_sweeps": 7, "max_replacements": 0}),
        (ALS, {"init": "svd", "orthogonalize": 1, "line_search": True, "tol": 1e-5, "max_sweeps": 3}),
        (NOJD, {"plug_in": "inverse", "directions": rng.standard_normal((4, 3)), "compress": False}),
        (NOJD, {"n_projections": 4, "diagonalizer": JDi()}),
        (OJD, {"whiten": False, "diagonalizer": Jacobi()}),
        (TPM, {"n_restarts": 3, "tol": 1e-6, "max_sweeps": 10}),
        (SD2, {"n_pairs": 3}),
        (Givens, {"tol": 1e-5, "max_sweeps": 4}),
        (Lathauwer, {"diagonalizer": JDi(), "max_bytes": 1e8}),
    ]
    maker, options = makers[int(rng.integers(len(makers)))]
    factor = rng.standard_normal((3, 2))
    tensor = np.einsum("ai,bi,ci->abc", factor, factor, factor)

    def build_and_use(**given: Any) -> Any:
        return codiag.factorize(tensor, 2, method=maker(**given), symmetric=True, seed=0)

    valid = None if maker is OJD else True  # the tensor need not have orthogonal factors
    return Case(f"codiag.methods.{maker.__name__}", build_and_use, options, valid, (finite,), named=NAMED)


@covers("codiag.Factorization", weight=2)
def saving(rng: np.random.Generator) -> Case:
    """A fit comes back from a file as it was; files that are none are refused."""
    k, sizes = int(rng.integers(1, 4)), rng.integers(1, 6, 3)
    factors = [rng.standard_normal((int(size), k)) for size in sizes]
    stages = (Stage("diagonalize", 3, 0.1, 0.01),)
    fit = codiag.Factorization(rng.random(k), tuple(factors), float(rng.random()), 2.0, True, stages)
    path = folder() / "fit.npz"
    if rng.random() < 0.2:
        return Case("codiag.Factorization", fit.save, {"path": path}, outputs=("path",), spoilable=False)
    fit.save(path)
    contents = bytearray(path.read_bytes())
    broken = rng.random() < 0.3
    if broken:
        for _ in range(int(rng.integers(1, 4))):
            contents[int(rng.integers(len(contents)))] ^= 1 << int(rng.integers(8))
        contents = contents[: int(rng.integers(len(contents)))] if rng.random() < 0.5 else contents
        path.write_bytes(bytes(contents))

    def same_fit(again: Any, given: dict[str, Any]) -> Problems:
        if not broken and (again.relative_error != fit.relative_error or again.shape != fit.shape):
            yield "saved", "a fit came back from its file as another"
        bad = not_finite([np.asarray(again.weights), *map(np.asarray, again.factors)])
        if bad and not broken:
            yield "not finite", bad

    refusals = (ValueError, TypeError, FileNotFoundError, IsADirectoryError)
    load = codiag.Factorization.load
    return Case("codiag.Factorization", load, {"path": path}, None if broken else True, (same_fit,), refusals=refusals)
