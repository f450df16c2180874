"""Registries of diagonalizers, starts, methods, constraints, losses and models: contract tests run on all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter
from typing import Any

import numpy as np
import pytest

import codiag
import simulated
from codiag.constraints import Constraint, Fixed, NonNegative, Simplex, Unimodal
from codiag.diagonalize import (
    LUJ1D,
    QRJ1D,
    UWEDGE,
    Diagonalizer,
    Jacobi,
    JDi,
    OrthogonalNewton,
    TwoSided,
)
from codiag.losses import Bernoulli, Gaussian, Huber, Loss, NegativeBinomial, Poisson
from codiag.methods import ALS, NLS, NOJD, OJD, TPM, Auto, Method
from codiag.models import HiddenMarkov, LatentDirichlet, MultiviewMixture, SingleTopic, SphericalGaussianMixture
from codiag.starts import (
    Diagonal,
    FixedFactors,
    FromObserved,
    Given,
    Greedy,
    MeanImputed,
    Random,
    Start,
    Tournament,
    VarianceStabilized,
    WarmStart,
    default_starts,
)
from codiag.synthetic import PlantedTensor, Stack, matrix_stack, mild_factor, orthonormal_factor
from codiag.tensors import FactoredTensor, SparseTensor, symmetrize
from extending import example


@dataclass(frozen=True)
class Case:
    """A method, the problems it is for, and the tightest setting it has."""

    method: Diagonalizer
    orthogonal: bool
    symmetric: bool = True
    exact: Diagonalizer | None = None  # the same method asked for its fixed point, whatever the noise
    slow: bool = False  # linear convergence: keep problems small
    settles: bool = True  # under noise, too
    field: str = "real"  # or complex matrices: "hermitian", "symmetric", "general"

    def skip_unless_it_settles(self) -> None:
        if not self.settles:
            pytest.skip("under noise it drifts along pairs of components with opposite diagonals")

    @property
    def exactly(self) -> Diagonalizer:
        return self.exact or self.method

    def stack(self, size: int, n: int, *, rank: int | None = None, noise: float = 0.0, seed: int = 0) -> Stack:
        """Return a problem of the kind the method solves, with factors in general position."""
        rng = np.random.default_rng([size, n, rank or size, seed])
        factor = self.factor(size, rank or size, rng)
        right = None if self.symmetric else self.factor(size, rank or size, rng)
        right = factor.conj() if self.field == "hermitian" else right
        return matrix_stack(factor, n, right_factor=right, noise=noise, rng=rng)

    def factor(self, size: int, rank: int, rng: np.random.Generator | int, spread: float = 0.3) -> np.ndarray:
        """Return a factor of the kind that the method finds, real or complex."""
        rng = np.random.default_rng(rng)
        if self.field == "real":
            return (
                orthonormal_factor(size, rank, rng) if self.orthogonal else mild_factor(size, rank, rng, spread=spread)
            )
        draws = rng.standard_normal((2, size, rank)) + 1j * rng.standard_normal((2, size, rank))
        unitary = np.linalg.qr(draws[0])[0]
        if self.orthogonal:
            return unitary
        mixed = unitary + spread * draws[1] / np.linalg.norm(draws[1], axis=0)
        return mixed / np.linalg.norm(mixed, axis=0)

    def noise(self, size: int, n: int, seed: int) -> np.ndarray:
        """Return noise of unit variance, with the symmetry of the matrices."""
        nothing = np.zeros((size, 1), float if self.field == "real" else complex)
        other = nothing if self.field == "hermitian" else None if self.symmetric else nothing + 1
        stack = matrix_stack(nothing, n, right_factor=other, noise=1.0, rng=seed)
        return stack.matrices

    def mirrored(self, array: np.ndarray) -> np.ndarray:
        """Return what belongs on the right of the matrices if this is on the left."""
        return array.conj() if self.field == "hermitian" else array

    def truth(self, stack: Stack) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        return stack.factor if self.symmetric else (stack.factor, stack.right_factor)


DIAGONALIZERS = {
    "OrthogonalNewton": Case(OrthogonalNewton(), True, exact=OrthogonalNewton(statistical_tol=1e-12, tol=1e-11)),
    "Jacobi": Case(Jacobi(), True, exact=Jacobi(tol=1e-11)),
    "UWEDGE": Case(UWEDGE(), False, exact=UWEDGE(statistical_tol=1e-12, tol=1e-11)),
    "JDi": Case(JDi(), False, exact=JDi(tol=1e-11)),
    "QRJ1D": Case(QRJ1D(max_sweeps=2000), False, exact=QRJ1D(tol=1e-9, max_sweeps=1000), slow=True),
    "LUJ1D": Case(LUJ1D(max_sweeps=2000), False, exact=LUJ1D(tol=1e-9, max_sweeps=1000), slow=True),
    "TwoSided": Case(TwoSided(), False, False, exact=TwoSided(statistical_tol=1e-12, tol=1e-11)),
    "TwoSided orthogonal": Case(
        TwoSided(orthogonal=True), True, False, exact=TwoSided(orthogonal=True, statistical_tol=1e-12, tol=1e-11)
    ),
    "PowerSteps": Case(example("diagonalizer").PowerSteps(), True, slow=True),
}

COMPLEX = {
    f"{name}, complex {field}": replace(DIAGONALIZERS[name], field=field)
    for name, fields in {
        "OrthogonalNewton": ("hermitian", "symmetric"),
        "Jacobi": ("hermitian", "symmetric"),
        "UWEDGE": ("hermitian", "symmetric"),
        "JDi": ("hermitian",),
        "QRJ1D": ("hermitian", "symmetric"),
        "LUJ1D": ("hermitian", "symmetric"),
        "TwoSided": ("general",),
        "TwoSided orthogonal": ("general",),
    }.items()
    for field in fields
}

SYMMETRIC = {name: case for name, case in DIAGONALIZERS.items() if case.symmetric}


@dataclass(frozen=True)
class MethodCase:
    """A method of factorization and the problems it is for."""

    method: Method
    orthogonal: bool = False
    least_squares: bool = False  # ends at a minimum of the distance
    random_start: bool = False  # may end at a local one

    def skip_where_all_is_compiled(self, library: str) -> None:
        if library == "jax" and isinstance(self.method, ALS) and self.random_start:
            pytest.skip("JAX compiles every operation for every shape, for seconds; ALS from NOJD shows the same")

    def problem(
        self, shape: tuple[int, ...], rank: int, *, symmetric: bool, noise: float = 0.0, seed: int = 0
    ) -> PlantedTensor:
        rng = np.random.default_rng([*shape, rank, symmetric, seed])
        make = orthonormal_factor if self.orthogonal else mild_factor
        factors = tuple(make(size, rank, rng) for size in (shape[:1] if symmetric else shape))
        factors = factors * len(shape) if symmetric else factors
        weights = np.linspace(2, 1, rank)
        errors = noise * rng.standard_normal(shape)
        clean = FactoredTensor(weights, factors).to_dense()
        return PlantedTensor(clean + (symmetrize(errors) if symmetric else errors), weights, factors)


METHODS = {
    "auto": MethodCase(Auto(), least_squares=True),
    "ojd0": MethodCase(OJD(plug_in=False), orthogonal=True),
    "ojd1": MethodCase(OJD(), orthogonal=True),
    "ojd orthonormal": MethodCase(OJD(directions="orthonormal", n_projections=4), orthogonal=True),
    "nojd0": MethodCase(NOJD(plug_in=False)),
    "nojd1": MethodCase(NOJD()),
    "nojd inverse": MethodCase(NOJD(plug_in="inverse", directions="orthonormal")),
    "nojd whole": MethodCase(NOJD(compress=False)),
    "als": MethodCase(ALS(init=NOJD(), tol=1e-12), least_squares=True),
    "als from svd": MethodCase(ALS(init="svd", tol=1e-12), least_squares=True, random_start=True),
    "nls": MethodCase(NLS(n_starts=3), least_squares=True, random_start=True),
    "nls from nojd": MethodCase(NLS(init=NOJD()), least_squares=True),
    "tpm": MethodCase(TPM(), orthogonal=True),
    "deflation": MethodCase(example("method").Deflation(rank_one=NLS(n_starts=2)), orthogonal=True),
}


@dataclass(frozen=True)
class StartCase:
    """A start, and the kinds of problems that it applies to, of `start_problem`."""

    of: Callable[[FactoredTensor], Start]  # the start of a problem with these components
    kinds: tuple[str, ...]


def start_problem(kind: str, to: Callable[[np.ndarray], Any] = np.asarray) -> tuple[codiag.Problem, FactoredTensor]:
    """Return a noisy problem of a kind, in an array library, and its three components, smooth in the last mode."""
    rng, to = np.random.default_rng(0), np.asarray if kind == "listed" else to  # lists of entries are NumPy's
    curves = np.cos(np.linspace(0, 1, 24)[:, None] * [2.0, 5.0, 8.0] + [0.0, 1.0, 2.0])
    factors = [rng.standard_normal((size, 3)) for size in (8, 7)] + [curves]
    if kind == "orthogonal":
        factors = [np.linalg.qr(factor)[0] for factor in factors]
    factors = [curves] * 3 if kind == "symmetric" else factors
    clean = FactoredTensor(np.array([3.0, 2.0, 1.5]), factors).to_dense()
    noise = 0.01 * clean.std() * rng.standard_normal(clean.shape)
    entries = clean + (symmetrize(noise) if kind == "symmetric" else noise)
    truth = FactoredTensor(to(np.array([3.0, 2.0, 1.5])), [to(factor) for factor in factors])
    observed = rng.random(clean.shape) < 0.7
    if kind == "listed":
        values = to(entries[observed])
        return codiag.Problem(SparseTensor(np.argwhere(observed).T, values, clean.shape, absent="missing"), 3), truth
    options = {
        "incomplete": {"weights": to(observed)},
        "orthogonal": {"constraints": "orthogonal"},
        "fixed": {"constraints": [Fixed(truth.factors[0]), None, None]},
    }
    return codiag.Problem(to(entries), 3, **options.get(kind, {})), truth


STARTS = {
    "diagonal": StartCase(lambda _: Diagonal(), ("complete", "symmetric")),
    "diagonal by rotations": StartCase(lambda _: Diagonal(orthogonal=True), ("orthogonal",)),
    "filled": StartCase(lambda _: MeanImputed(), ("complete", "incomplete", "symmetric", "orthogonal")),
    "listed": StartCase(lambda _: FromObserved(), ("listed",)),
    "fixed factors": StartCase(lambda _: FixedFactors(), ("fixed",)),
    "given": StartCase(
        lambda truth: Given(components=truth), ("complete", "incomplete", "listed", "symmetric", "orthogonal", "fixed")
    ),
    "grown": StartCase(lambda _: Greedy(), ("complete", "incomplete", "listed")),
    "extended": StartCase(
        lambda truth: WarmStart(components=truth.columns([0, 1])), ("complete", "incomplete", "listed")
    ),
    "random": StartCase(lambda _: Random(), ("complete", "incomplete", "listed", "symmetric")),
    "tournament": StartCase(lambda _: Tournament(), ("complete", "incomplete")),
    "stabilized": StartCase(
        lambda _: VarianceStabilized(starts_of=default_starts), ("complete", "incomplete", "symmetric")
    ),
    "coarse to fine": StartCase(
        lambda _: example("start").CoarseToFine(widths=3), ("complete", "incomplete", "symmetric")
    ),
}


@dataclass(frozen=True)
class ConstraintCase:
    """A constraint and factors that satisfy it."""

    draw: Callable[[np.random.Generator, int, int], np.ndarray]  # a factor of this many rows and columns
    of: Callable[[np.ndarray], Constraint]  # the constraint on such a factor
    is_convex: bool = True

    def drawn(self, size: int, rank: int, seed: int = 0) -> tuple[Constraint, np.ndarray]:
        factor = self.draw(np.random.default_rng([size, rank, seed]), size, rank)
        return self.of(factor), factor


def _normal(rng: np.random.Generator, size: int, rank: int) -> np.ndarray:
    return rng.standard_normal((size, rank))


def _half_zero(rng: np.random.Generator, size: int, rank: int) -> np.ndarray:
    return rng.exponential(size=(size, rank)) * (rng.random((size, rank)) < 0.5)


def _cumulated(rng: np.random.Generator, size: int, rank: int) -> np.ndarray:
    return np.cumsum(_half_zero(rng, size, rank), axis=0) - 3 * rng.random(rank)


def _peaks(rng: np.random.Generator, size: int, rank: int) -> np.ndarray:
    distances = (np.arange(size)[:, None] - rng.uniform(0, size - 1, rank)) / rng.uniform(1, 3, rank)
    return np.where(np.abs(distances) < 3, np.exp(-(distances**2)), 0.0)


def _shares(rng: np.random.Generator, size: int, rank: int) -> np.ndarray:
    drawn = rng.exponential(size=(size, rank)) * (rng.random((size, rank)) < 0.7) + 1e-3
    return drawn / drawn.sum(axis=1, keepdims=True)


CONSTRAINTS = {
    "fixed": ConstraintCase(_normal, Fixed),
    "nonnegative": ConstraintCase(_half_zero, lambda _: NonNegative()),
    "unimodal": ConstraintCase(_peaks, lambda _: Unimodal(), is_convex=False),
    "simplex": ConstraintCase(_shares, lambda _: Simplex()),
    "increasing": ConstraintCase(_cumulated, lambda _: example("constraint").Increasing()),
}


@dataclass(frozen=True)
class LossCase:
    """A loss, and factors of components that it is for."""

    loss: Loss
    draw: Callable[[np.random.Generator, int, int], np.ndarray]  # a factor of this many rows and columns

    def factors(self, shape: tuple[int, ...], rank: int, seed: int = 0) -> list[np.ndarray]:
        rng = np.random.default_rng([*shape, rank, seed])
        return [self.draw(rng, size, rank) for size in shape]

    def tensor(self, factors: list[np.ndarray], seed: int = 0) -> np.ndarray:
        model = FactoredTensor(np.ones(factors[0].shape[1]), factors).to_dense()
        return self.loss.sample(model, np.random.default_rng([*model.shape, seed]))


def _gamma(rng: np.random.Generator, size: int, rank: int) -> np.ndarray:
    return rng.gamma(2.0, size=(size, rank))


LOSSES = {
    "gaussian": LossCase(Gaussian(), _normal),
    "poisson": LossCase(Poisson(), _gamma),
    "poisson, log": LossCase(Poisson("log"), _normal),
    "bernoulli": LossCase(Bernoulli(), _normal),
    "bernoulli, odds": LossCase(Bernoulli("odds"), lambda *size: _gamma(*size) / 3),
    "bernoulli, rate": LossCase(Bernoulli("rate"), lambda *size: _gamma(*size) / 3),
    "negative binomial": LossCase(NegativeBinomial(0.3), _gamma),
    "huber": LossCase(Huber(1.0), _normal),
    "exponential": LossCase(example("loss").Exponential(), _gamma),
}


@dataclass(frozen=True)
class ModelCase:
    """A model, and data drawn from it."""

    kind: Callable[..., Any]
    n_components: int
    draw: Callable[[int, int], tuple[Any, ...]]  # so many samples, and their parameters after them
    alike: Callable[[int], Any]  # a few samples, by their seed, of components with about the same weight
    parameters: Callable[[Any], np.ndarray]  # of an estimator, a row for each component
    truth: Callable[[tuple[Any, ...]], np.ndarray] = itemgetter(1)  # the same of what was drawn
    weights: Callable[[Any], np.ndarray] = attrgetter("weights_")
    pure: dict[str, Any] = field(default_factory=lambda: {"max_iter": 0})  # options of the pure method of moments

    def estimate(self, n: int, **options: Any) -> np.ndarray:
        return self.parameters(self.kind(self.n_components, **options).fit(self.draw(n, 0)[0]))

    def error(self, n: int, seed: int) -> float:
        drawn = self.draw(n, seed)
        model = self.kind(self.n_components, random_state=0, **self.pure).fit(drawn[0])
        return simulated.matched(self.parameters(model), self.truth(drawn))


def _visited(model: HiddenMarkov) -> np.ndarray:
    return np.linalg.matrix_power(model.transmat_, 512)[0]


def _model_cases() -> dict[str, ModelCase]:
    from_views = {"parameters": lambda model: np.hstack(model.means_), "truth": lambda drawn: np.hstack(drawn[1])}
    from_chain = {"parameters": attrgetter("emissionprob_"), "truth": itemgetter(2), "weights": _visited}
    topics, means, rates = attrgetter("components_"), attrgetter("means_"), attrgetter("rates_")
    dirichlet = {"alpha_0": 1.0, "max_iter": 0}
    poisson = example("model")
    data = simulated
    return {
        "SingleTopic": ModelCase(SingleTopic, 4, data.single_topic_corpus, data.alike_topics, topics),
        "LatentDirichlet": ModelCase(LatentDirichlet, 3, data.mixed_corpus, data.alike_topics, topics, pure=dirichlet),
        "SphericalGaussianMixture": ModelCase(SphericalGaussianMixture, 3, data.gaussians, data.alike_gaussians, means),
        "MultiviewMixture": ModelCase(MultiviewMixture, 3, data.views, data.alike_views, **from_views),
        "HiddenMarkov": ModelCase(HiddenMarkov, 3, data.chain, data.alike_states, **from_chain),
        "PoissonMixture": ModelCase(poisson.PoissonMixture, 3, poisson.draw, data.alike_counts, rates),
    }


MODELS = _model_cases()
