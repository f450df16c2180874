"""The grids: what is compared, and with whom."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from benchmarks.grid import Grid
from codiag.synthetic import PlantedTensor, noisy_tensor
from experiments.simulated import nonorthogonal_model, orthogonal_model

BASELINES = ["TensorLy parafac", "TensorLy parafac, orthogonalised", "pyttb cp_als"]
LOUD = (1e-3, 1e-2)
SLOW_BASELINES = ["pytensorlab cpd"]
OURS = ["auto", "nojd0", "nojd1", "nls", "nls, replacing"]
OURS += ["als", "als, svd start"]


def symmetric(size: int, rank: int, noise: float, seed: int) -> PlantedTensor:
    return noisy_tensor((size,) * 3, rank, symmetric=True, noise=noise, rng=seed)


def shaped(shape: str, rank: int, noise: float, seed: int) -> PlantedTensor:
    kind, _, sizes = shape.rpartition(" ")
    return noisy_tensor([int(size) for size in sizes.split("x")], rank, symmetric=bool(kind), noise=noise, rng=seed)


def orthogonal(size: int, noise: float, seed: int) -> PlantedTensor:
    return orthogonal_model(size, size, noise=noise, seed=seed)


def nonorthogonal(size: int, noise: float, seed: int) -> PlantedTensor:
    return nonorthogonal_model(size, size, noise=noise, seed=seed)


def _of_shapes(name: str, title: str, shapes: list[str], rank: int, noises: Sequence[float] = (0.0, *LOUD)) -> Grid:
    """Return a comparison of the default with other libraries."""
    return Grid(name, title, shaped, {"shape": shapes, "rank": [rank], "noise": noises}, ["auto", *BASELINES], 10)


SMALL: Sequence[Grid] = (
    Grid(
        "limit",
        "Symmetric tensors, unit factors uniform on the sphere, weights N(0, 1), symmetrised Gaussian noise of the "
        "stated share of the norm",
        symmetric,
        {"size": [50], "rank": [10, 50], "noise": [0.0, 1e-3, 1e-2]},
        ["auto", "TensorLy parafac, orthogonalised"],
        10,
    ),
    Grid(
        "orthogonal",
        "The authors' orthogonal model: squared Gaussian weights, noise another orthogonal tensor",
        orthogonal,
        {"size": [50], "noise": [0.01]},
        ["auto", "ojd0", "ojd1", "tpm, one restart", "tpm"],
        10,
    ),
    Grid(
        "nonorthogonal",
        "The authors' non-orthogonal model: squared Gaussian weights, noise with independent Gaussian entries, "
        "symmetrised by codiag's methods",
        nonorthogonal,
        {"size": [20], "noise": [1e-3]},
        ["auto", "nojd0", "nojd1", "nls", "als", *BASELINES],
        10,
    ),
)

FULL: Sequence[Grid] = (
    replace(SMALL[0], methods=["auto", *BASELINES, *SLOW_BASELINES]),
    SMALL[1],
    replace(SMALL[2], methods=[*OURS, *BASELINES, *SLOW_BASELINES]),
    _of_shapes(
        "shapes",
        "Factors of their own in every mode, and higher orders; Gaussian noise of the stated share of the norm",
        ["50x50x50", "30x40x60"],
        10,
        LOUD,
    ),
    _of_shapes(
        "full rank", "Factors of their own in every mode, as many as the smallest mode measures", ["30x40x60"], 30, LOUD
    ),
    _of_shapes("full rank cubes", "The same on cubes", ["50x50x50"], 50, LOUD),
    _of_shapes("order four", "Order four, rank 8", ["20x20x20x20", "symmetric 20x20x20x20"], 8),
    _of_shapes("order five", "Order five, rank 4", ["8x8x8x8x8", "symmetric 8x8x8x8x8"], 4),
    _of_shapes("thin", "Rank 5 where one mode measures 3", ["3x40x50"], 5),
    Grid(
        "local optima",
        "How many of 50 runs end within 1 % of the objective that least squares reaches from the truth",
        shaped,
        {"shape": ["20x20x20", "symmetric 20x20x20"], "rank": [20], "noise": [1e-3]},
        [*OURS, *BASELINES, *SLOW_BASELINES],
        50,
    ),
)
