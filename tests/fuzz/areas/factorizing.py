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
    arguments = {"tensor": held.data, "rank": rank, "rng": seed}
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
        (Auto(max_starts=n, tol=1e-9, max_iter=sweeps), "minimum"),
        (NLS(n_starts=n, max_iter=sweeps, init=draw(one_of(None, ALS(max_iter=5)))), "minimum"),
        (ALS(init=draw(one_of("random", "svd"))), "sweep"),
        (ALS(tol=tol, max_iter=sweeps), "sweep"),
        (NOJD(plug_in=draw(one_of(True, False, "inverse")), directions=draw(one_of("random", "orthonormal"))), ""),
        (NOJD(n_projections=n + 1, compress=flag, diagonalizer=JDi()), ""),
        (OJD(plug_in=draw(one_of(True, False)), diagonalizer=draw(one_of(Jacobi(), None))), ""),
        (TPM(n_restarts=n, max_iter=sweeps), ""),
    ]
    return draw(st.sampled_from(options))


@st.composite
def methods(draw: Any) -> Case:
    """Draw any method on any tensor; some are for few of them, and say so."""
    held = draw(tensors())
    rank, (method, claims) = draw(ranks(held.dense.shape)), draw(configured())
    arguments = {"tensor": held.data, "rank": rank, "method": method, "rng": draw(SEEDS)}
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

    arguments = {"tensor": tensor, "rank": rank, "constraints": name, "rng": draw(SEEDS)}
    return Case("codiag.factorize", codiag.factorize, arguments, None, (obeyed,), (*NAMED, "constraints"))


@st.composite
def losses(draw: Any) -> Case:
    """Draw entries from a loss, now and then with missing ones, which it must accept."""
    shape, rng = tuple(draw(st.lists(sizes(3, 8), min_size=3, max_size=3))), draw(RNGS)
    rank = draw(sizes(1, 2))
    loss = draw(one_of(Poisson(), Poisson("log"), NegativeBinomial(0.5), Bernoulli("odds"), Huber(1.0), Gaussian()))
    model = np.einsum("ir,jr,kr->ijk", *(rng.gamma(2.0, size=(size, rank)) for size in shape))
    drawn = loss.sample(np.log(model) if isinstance(loss, Poisson) and loss.link == "log" else model, rng)
    tensor = np.where(rng.random(shape) < draw(one_of(0.0, 0.2)), np.nan, drawn)
    if not np.nansum(tensor**2) > 0:
        tensor = np.ones(shape)

    def scored(fit: Any, given: dict[str, Any]) -> Problems:
        yield from finite(fit.weights, given)
        if not fit.deviance.total >= -1e-9:
            yield "deviance", f"it is negative: {fit.deviance.total}"

    arguments = {"tensor": tensor, "rank": rank, "loss": loss, "rng": draw(SEEDS)}
    return Case("codiag.factorize", codiag.factorize, arguments, True, (scored,), (*NAMED, "loss"))


@st.composite
def rank_choices(draw: Any) -> Case:
    """Draw a few ranks of an array, with constraints now and then."""
    held, constraints = draw(arrays()), draw(one_of(None, None, None, "nonnegative", "orthogonal"))
    arguments = {"tensor": held.data, "ranks": range(1, draw(sizes(2, 4))), "rng": draw(SEEDS)}
    arguments |= {"constraints": constraints}

    def chosen(found: Any, given: dict[str, Any]) -> Problems:
        if found.rank is not None and found.rank not in found.fits:
            yield "rank", f"{found.rank} was not tried"
        if any(fit.rank != rank for rank, fit in found.fits.items()) or not found.reason or not str(found):
            yield "rank", "a fit has another rank than its own, or no reason is given"

    valid = True if constraints is None and held.moderate else None
    return Case("codiag.choose_rank", codiag.choose_rank, arguments, valid, (chosen,), ("tensor", "rank"))


@st.composite
def saved(draw: Any) -> Case:
    """Draw a fit that comes back from its file as it was, or a damaged file, which is refused."""
    rng, k = draw(RNGS), draw(sizes(1, 3))
    factors = tuple(rng.standard_normal((draw(sizes(1, 5)), k)) for _ in range(3))
    fit = codiag.Factorization(rng.random(k), factors, float(rng.random()), True, _norm=2.0)
    folder = tempfile.TemporaryDirectory(prefix="codiag-fuzz-")  # goes with the case
    path = Path(folder.name, "fit.npz")
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
