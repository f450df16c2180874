"""`codiag.factorize`, its methods, constraints and losses; `factorize_each`; `choose_rank`; files of fits."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import codiag
from codiag.diagonalize import Jacobi, JDi
from codiag.losses import Bernoulli, Gaussian, Huber, NegativeBinomial, Poisson
from codiag.methods import ALS, NLS, NOJD, OJD, TPM, Auto

from ..case import Case
from ..invariants import Problems, about_fit, about_itself, finite, same_again
from ..strategies import FLAGS, RNGS, SEEDS, arrays, one_of, ranks, sizes, tensors

NAMED = ("tensor", "rank", "method", "diagonalizer", "directions")


@st.composite
def defaults(draw: Any) -> Case:
    """Draw a call of the default on any tensor, which it must accept."""
    held = draw(tensors())
    rank, number = draw(ranks(held.dense.shape)), draw(SEEDS)
    seed = draw(one_of(number, number, np.int64(number), np.random.default_rng(number)))
    arguments = {"tensor": held.data, "rank": rank, "seed": seed}
    checks = [about_fit(held, rank, "best", draw(SEEDS)), about_itself]
    if isinstance(seed, int) and draw(one_of(False, False, True)):
        checks.append(same_again(codiag.factorize, held))
    valid = True if held.moderate else None
    return Case("codiag.factorize", codiag.factorize, arguments, valid, tuple(checks), NAMED)


@st.composite
def configured(draw: Any) -> tuple[Any, str]:
    """Draw a method with options, or the name of one, and what it claims."""
    tol, sweeps, flag = draw(one_of(1e-6, 1e-9)), draw(one_of(1, 3, 50, 300)), draw(FLAGS)
    n = draw(sizes(1, 4))
    options: list[tuple[Any, str]] = [
        ("auto", "best"),
        ("nls", "minimum"),
        ("ALS", "sweep"),
        (draw(one_of("ojd1", "nojd1", "tpm")), ""),
        (Auto(max_starts=n, tol=1e-9, max_sweeps=sweeps), "minimum"),
        (NLS(n_starts=n, max_sweeps=sweeps, init=draw(one_of(None, ALS(max_sweeps=5)))), "minimum"),
        (ALS(init=draw(one_of("random", "svd")), orthogonalize=n - 1, line_search=flag), "sweep"),
        (ALS(tol=tol, max_sweeps=sweeps), "sweep"),
        (NOJD(plug_in=draw(one_of(True, False, "inverse")), directions=draw(one_of("random", "orthonormal"))), ""),
        (NOJD(n_projections=n + 1, compress=flag, diagonalizer=JDi()), ""),
        (OJD(plug_in=draw(one_of(True, False)), whiten=flag, diagonalizer=draw(one_of(Jacobi(), None))), ""),
        (TPM(n_restarts=n, max_sweeps=sweeps), ""),
    ]
    return draw(st.sampled_from(options))


@st.composite
def methods(draw: Any) -> Case:
    """Draw any method on any tensor; some are for few of them, and say so."""
    held = draw(tensors())
    rank, (method, claims) = draw(ranks(held.dense.shape)), draw(configured())
    arguments = {"tensor": held.data, "rank": rank, "method": method, "seed": draw(SEEDS)}
    valid = True if claims and held.moderate else None
    checks = (about_fit(held, rank, claims, draw(SEEDS)), about_itself)
    return Case("codiag.factorize", codiag.factorize, arguments, valid, checks, NAMED)


@st.composite
def constrained(draw: Any) -> Case:
    """Draw constraints together with missing entries, up to most of them."""
    shape, rng = tuple(draw(st.lists(sizes(3, 7), min_size=3, max_size=3))), draw(RNGS)
    rank, name = min(draw(sizes(1, 4)), *shape), draw(one_of("nonnegative", "orthogonal"))
    entries = rng.standard_normal(shape) if draw(FLAGS) else rng.integers(0, 2, shape).astype(float)
    tensor = np.where(rng.random(shape) < draw(one_of(0.0, 0.3, 0.7)), np.nan, entries)

    def obeyed(fit: Any, given: dict[str, Any]) -> Problems:
        factors = [np.nan_to_num(factor) for factor in fit.factors]
        grams = [factor.T @ factor - np.eye(rank) for factor in factors]
        if name == "orthogonal" and np.all(fit.weights != 0) and max(np.max(np.abs(gram)) for gram in grams) > 1e-6:
            yield "constraint", "factors are not orthogonal"
        if name == "nonnegative" and min(np.min(factor) for factor in factors) < 0:
            yield "constraint", "factors have negative entries"

    arguments = {"tensor": tensor, "rank": rank, "constraints": name, "seed": draw(SEEDS)}
    return Case("codiag.factorize", codiag.factorize, arguments, None, (obeyed,), (*NAMED, "constraints"))


@st.composite
def losses(draw: Any) -> Case:
    """Draw entries from a loss, now and then with missing ones, which it must accept."""
    shape, rng = tuple(draw(st.lists(sizes(3, 8), min_size=3, max_size=3))), draw(RNGS)
    rank = draw(sizes(1, 2))
    loss = draw(one_of(Poisson(), Poisson("log"), NegativeBinomial(0.5), Bernoulli("odds"), Huber(1.0), Gaussian()))
    model = np.einsum("ir,jr,kr->ijk", *(rng.gamma(2.0, size=(size, rank)) for size in shape))
    drawn = loss.draw(np.log(model) if isinstance(loss, Poisson) and loss.link == "log" else model, rng)
    tensor = np.where(rng.random(shape) < draw(one_of(0.0, 0.2)), np.nan, drawn)
    if not np.nansum(tensor**2) > 0:
        tensor = np.ones(shape)

    def scored(fit: Any, given: dict[str, Any]) -> Problems:
        yield from finite(fit.weights, given)
        if not fit.deviance >= -1e-9:
            yield "deviance", f"it is negative: {fit.deviance}"

    arguments = {"tensor": tensor, "rank": rank, "loss": loss, "seed": draw(SEEDS)}
    return Case("codiag.factorize", codiag.factorize, arguments, True, (scored,), (*NAMED, "loss"))


@st.composite
def rank_choices(draw: Any) -> Case:
    """Draw a few ranks of an array, with constraints now and then."""
    held, constraints = draw(arrays()), draw(one_of(None, None, None, "nonnegative", "orthogonal"))
    arguments = {"tensor": held.data, "ranks": range(1, draw(sizes(2, 4))), "seed": draw(SEEDS)}
    arguments |= {"constraints": constraints}

    def chosen(found: Any, given: dict[str, Any]) -> Problems:
        if found.rank is not None and found.rank not in found.fits:
            yield "rank", f"{found.rank} was not tried"
        if any(fit.rank != rank for rank, fit in found.fits.items()) or not found.reason or not str(found):
            yield "rank", "a fit has another rank than its own, or no reason is given"

    valid = True if constraints is None and held.moderate else None
    return Case("codiag.choose_rank", codiag.choose_rank, arguments, valid, (chosen,), ("tensor", "rank"))


<<<<<<< HEAD
@st.composite
def saved(draw: Any) -> Case:
    """Draw a fit that comes back from its file as it was, or a damaged file, which is refused."""
    rng, k = draw(RNGS), draw(sizes(1, 3))
    factors = tuple(rng.standard_normal((draw(sizes(1, 5)), k)) for _ in range(3))
    fit = codiag.Factorization(rng.random(k), factors, float(rng.random()), 2.0, True)
    folder = tempfile.TemporaryDirectory(prefix="codiag-fuzz-")  # goes with the case
    path = Path(folder.name, "fit.npz")
=======
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
        (OJD(plug_in=choose(rng, True, False, "inverse"), whiten=choose(rng, True, False)), ""),
        (OJD(diagonalizer=choose(rng, Jacobi(), OrthogonalNewton())), ""),
        (TPM(n_restarts=int(rng.integers(1, 6)), max_sweeps=sweeps), ""),
        (name, claims.get(name, "")),
        (name.upper(), claims.get(name, "")),
    ]
    return options[int(rng.integers(len(options)))]


@covers(
    *(f"codiag.methods.{name}" for name in ("ALS", "NLS", "NOJD", "OJD", "TPM")),
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
    method = choose(rng, None, "nls", OJD(), TPM(), "als")
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
>>>>>>> w-paper
    fit.save(path)
    damaged = draw(one_of(False, False, True))
    if damaged:
        contents = bytearray(path.read_bytes())
        contents[draw(sizes(0, len(contents) - 1))] ^= 1 << draw(sizes(0, 7))
        path.write_bytes(bytes(contents[: draw(one_of(len(contents), len(contents) // 2, 10))]))

    def same_fit(again: Any, given: dict[str, Any]) -> Problems:
        if not damaged and (again.relative_error != fit.relative_error or again.shape != fit.shape):
            yield "saved", "a fit came back from its file as another"

    refusals = (ValueError, TypeError, FileNotFoundError, IsADirectoryError)
    case = Case("load", codiag.Factorization.load, {"path": path}, None if damaged else True, (same_fit,), (), refusals)
    case.folder = folder  # type: ignore[attr-defined]
    return case
