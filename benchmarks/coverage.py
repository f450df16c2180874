"""How often intervals of 90 % contain the truth, by kind of noise, data and model: ``python -m benchmarks.coverage``.

Shares of the entries of all factors, mode by mode, and of the weights. Components of pairs that the diagnosis calls not
determined have infinite intervals. ``--draws`` says how many tensors of each kind, ``--jobs`` how many at a time,
``--only`` which kinds.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

import codiag
from benchmarks.judgement import smooth, with_noise
from codiag.tensors import symmetrize

FIRST = 110_000
"""First seed: no test uses as large ones."""

SHAPE = (12, 15, 18)


class Draw(NamedTuple):
    """A noisy tensor, the factors and weights that are in it, and what is stated about them."""

    tensor: np.ndarray
    factors: list[np.ndarray]
    weights: np.ndarray
    stated: dict[str, Any]


Noise = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def white(rng: np.random.Generator, clean: np.ndarray) -> np.ndarray:
    """Return white noise."""
    return rng.standard_normal(clean.shape)


def autoregressive(rng: np.random.Generator, clean: np.ndarray, correlation: float, modes: Sequence[int]) -> np.ndarray:
    """Return noise that is autoregressive along modes."""
    return smooth(rng, clean.shape, correlation, modes)


def scaled(rng: np.random.Generator, clean: np.ndarray, kind: str) -> np.ndarray:
    """Return noise whose variances differ."""
    scales = {
        "slices": np.exp(0.7 * rng.standard_normal((clean.shape[0], 1, 1))),
        "a slice": np.where(np.arange(clean.shape[0]) == 3, 10.0, 1.0)[:, None, None],
        "proportional": np.abs(clean),
    }
    return rng.standard_normal(clean.shape) * scales[kind]


def additive(rng: np.random.Generator, clean: np.ndarray, kind: str) -> np.ndarray:
    """Return white noise and a part that indices of a mode share."""
    d = clean.shape
    part: dict[str, Callable[[], np.ndarray]] = {
        "a baseline": lambda: rng.standard_normal((d[0], d[1], 1)),
        "a pattern of all samples": lambda: rng.standard_normal((1, *d[1:])),
        "a drift": lambda: rng.standard_normal((d[0], d[1], 1)) * np.linspace(-1.7, 1.7, d[2]),
        "exchangeable": lambda: np.sqrt(0.3 / 0.7) * rng.standard_normal((d[0], 1, d[2])),
        "periodic": lambda: np.sqrt(2) * np.cos(
            2 * np.pi * (np.arange(d[2]) / 12 + rng.random((d[0], d[1], 1)))
        ),
    }  # fmt: skip
    return rng.standard_normal(d) + part[kind]()


def gain(rng: np.random.Generator, clean: np.ndarray) -> np.ndarray:
    """Return relative errors that all samples share."""
    return clean * rng.standard_normal((1, *clean.shape[1:]))


def long_tailed(rng: np.random.Generator, clean: np.ndarray, kind: str) -> np.ndarray:
    """Return independent noise that is not Gaussian."""
    if kind == "t 2.5":
        return rng.standard_t(2.5, clean.shape)
    if kind == "exponential":
        return rng.exponential(size=clean.shape) - 1
    return rng.standard_normal(clean.shape) * np.where(rng.random(clean.shape) < 0.01, 10.0, 1.0)


def pink(rng: np.random.Generator, clean: np.ndarray) -> np.ndarray:
    """Return noise whose power falls with the frequency along the last mode."""
    size = clean.shape[2]
    frequencies = np.maximum(np.fft.rfftfreq(size), 1 / size)
    return np.asarray(
        np.fft.irfft(np.fft.rfft(rng.standard_normal(clean.shape), axis=2) / np.sqrt(frequencies), size, axis=2)
    )


def poisson(rng: np.random.Generator, clean: np.ndarray) -> np.ndarray:
    """Return counts less their means."""
    return rng.poisson(clean) - clean


def normalized(factors: Sequence[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """Return unit columns and weights."""
    lengths = [np.linalg.norm(factor, axis=0) for factor in factors]
    return [factor / length for factor, length in zip(factors, lengths, strict=True)], np.prod(lengths, axis=0)


def of_noise(
    rng: np.random.Generator,
    noise: Noise = white,
    level: float = 0.1,
    shape: Sequence[int] = SHAPE,
    rank: int = 3,
    cosines: Sequence[float] = (),
    sizes: Sequence[float] = (),
    missing: float = 0.0,
    others: Sequence[float] = (),
    signs: str = "free",
    mean: float = 0.0,
    **stated: Any,
) -> Draw:
    """Return a draw of components in noise of a level, relative to the norm; counts have a mean instead."""
    factors = [rng.standard_normal((size, rank)) for size in shape]
    if signs != "free":
        factors = [rng.random((size, rank)) for size in shape]
        zeros = [(factor < 0.5) & (factor.max(axis=0) >= 0.5) for factor in factors]
        if signs == "half zeros":
            factors = [np.where(is_zero, 0, factor) for is_zero, factor in zip(zeros, factors, strict=True)]
    for mode, cosine in enumerate(cosines):
        if cosine == 1:  # the first two components share it
            factors[mode][:, 1] = factors[mode][:, 0]
        else:
            root = np.linalg.cholesky((1 - cosine) * np.eye(rank) + cosine)
            factors[mode] = np.linalg.qr(factors[mode])[0] @ root.T
    factors, weights = normalized(factors)
    weights = np.asarray(sizes) if sizes else weights
    letters = "ijkl"[: len(shape)]
    clean = np.einsum(",".join(f"{letter}r" for letter in letters) + f",r->{letters}", *factors, weights)
    if mean:
        weights, clean = weights * mean / np.mean(clean), clean * mean / np.mean(clean)
        tensor = clean + noise(rng, clean)
    else:
        tensor = _with_others(rng, clean, others)
        tensor = tensor + with_noise(clean, noise(rng, clean), level) - clean
    tensor = np.where(rng.random(tensor.shape) < missing, np.nan, tensor) if missing else tensor
    return Draw(tensor, factors, weights, stated)


def _with_others(rng: np.random.Generator, clean: np.ndarray, shares: Sequence[float]) -> np.ndarray:
    """Return a tensor with further components, of shares of its norm, that no fit has room for."""
    tensor = clean.copy()
    for share in shares:
        columns = [rng.standard_normal(size) for size in clean.shape]
        term = np.einsum("i,j,k->ijk", *columns)
        tensor += share * np.linalg.norm(clean) / np.linalg.norm(term) * term
    return tensor


def symmetric(rng: np.random.Generator, modes: tuple[int, ...], *, is_noise_symmetric: bool = True) -> Draw:
    """Return a draw in which modes share a factor."""
    first, last = rng.standard_normal((12, 3)), rng.standard_normal((12, 3))
    factors, weights = normalized([first if mode in modes else last for mode in range(3)])
    clean = np.einsum("ir,jr,kr,r->ijk", *factors, weights)
    noise = rng.standard_normal(clean.shape)
    if is_noise_symmetric:
        noise = symmetrize(noise) if len(modes) == 3 else (noise + noise.swapaxes(0, 1)) / 2
    return Draw(with_noise(clean, noise, 0.1), factors, weights, {"symmetric": True if len(modes) == 3 else modes})


def blocks(rng: np.random.Generator, kind: str) -> Draw:
    """Return a draw of which a block, or where the components are largest, entries are missing."""
    draw = of_noise(rng)
    tensor = draw.tensor.copy()
    if kind == "block":
        tensor[:4, :5, :6] = np.nan
    else:
        clean = np.einsum("ir,jr,kr,r->ijk", *draw.factors, draw.weights)
        tensor[np.abs(clean) > np.quantile(np.abs(clean), 0.9)] = np.nan
    return draw._replace(tensor=tensor)


AR = partial(autoregressive, modes=(2,))
LONG = (12, 15, 120)
Kind = Callable[[np.random.Generator], Draw]
KINDS: Mapping[str, Kind] = {
    "white 1 %": partial(of_noise, level=0.01),
    "white 30 %": partial(of_noise, level=0.3),
    "white, noise = signal": partial(of_noise, level=1.0),
    "white, noise = 2 x signal": partial(of_noise, level=2.0),
    "5 x 6 x 7, rank 2": partial(of_noise, shape=(5, 6, 7), rank=2),
    "5 x 6 x 7 at 50 %, rank 2": partial(of_noise, shape=(5, 6, 7), rank=2, level=0.5),
    "5 x 6 x 7, rank 3": partial(of_noise, shape=(5, 6, 7)),
    "3 x 4 x 5, rank 2": partial(of_noise, shape=(3, 4, 5), rank=2),
    "order 4": partial(of_noise, shape=(6, 7, 8, 9)),
    "12 x 12 x 12, rank 8": partial(of_noise, shape=(12, 12, 12), rank=8),
    "cosines .7 in all modes": partial(of_noise, cosines=(0.7, 0.7, 0.7)),
    "cosines .9 in all modes": partial(of_noise, cosines=(0.9, 0.9, 0.9), level=0.01),
    "cosines .9 in one": partial(of_noise, cosines=(0.9,)),
    "cosines .995 in one, 1 %": partial(of_noise, cosines=(0.995,), level=0.01),
    "weights 1, .1, .03": partial(of_noise, sizes=(1.0, 0.1, 0.03), level=0.03),
    "variance by slice": partial(of_noise, noise=partial(scaled, kind="slices")),
    "one slice x 10": partial(of_noise, noise=partial(scaled, kind="a slice")),
    "proportional": partial(of_noise, noise=partial(scaled, kind="proportional")),
    "AR .5": partial(of_noise, noise=partial(AR, correlation=0.5)),
    "AR .8": partial(of_noise, noise=partial(AR, correlation=0.8)),
    "AR .95": partial(of_noise, noise=partial(AR, correlation=0.95)),
    "AR .7 in two modes": partial(of_noise, noise=partial(autoregressive, correlation=0.7, modes=(1, 2))),
    "AR .8, 40 % missing": partial(of_noise, noise=partial(AR, correlation=0.8), missing=0.4),
    "AR .98, 120 long": partial(of_noise, noise=partial(AR, correlation=0.98), shape=LONG),
    "pink, 120 long": partial(of_noise, noise=pink, shape=LONG),
    "periodic, 120 long": partial(of_noise, noise=partial(additive, kind="periodic"), shape=LONG),
    "exchangeable, .3": partial(of_noise, noise=partial(additive, kind="exchangeable")),
    "a baseline": partial(of_noise, noise=partial(additive, kind="a baseline")),
    "a drift": partial(of_noise, noise=partial(additive, kind="a drift")),
    "a pattern of all samples": partial(of_noise, noise=partial(additive, kind="a pattern of all samples")),
    "gain": partial(of_noise, noise=gain),
    "t 2.5": partial(of_noise, noise=partial(long_tailed, kind="t 2.5")),
    "exponential": partial(of_noise, noise=partial(long_tailed, kind="exponential")),
    "1 % outliers of 10 sd": partial(of_noise, noise=partial(long_tailed, kind="outliers")),
    "Poisson 20 by least squares": partial(of_noise, noise=poisson, mean=20.0, signs="half zeros"),
    "Poisson 1 by least squares": partial(of_noise, noise=poisson, mean=1.0, signs="half zeros"),
    "a component of 5 % left out": partial(of_noise, others=(0.05,)),
    "ten of 2 % left out": partial(of_noise, others=(0.02,) * 10),
    "40 % missing": partial(of_noise, missing=0.4),
    "80 % missing": partial(of_noise, missing=0.8),
    "large values missing": partial(blocks, kind="large"),
    "a block missing": partial(blocks, kind="block"),
    "non-negative": partial(of_noise, signs="positive", constraints="nonnegative"),
    "half zeros": partial(of_noise, signs="half zeros", constraints="nonnegative"),
    "non-negative, 50 % noise": partial(of_noise, signs="half zeros", level=0.5, constraints="nonnegative"),
    "symmetric": partial(symmetric, modes=(0, 1, 2)),
    "symmetric=True, other noise": partial(symmetric, modes=(0, 1, 2), is_noise_symmetric=False),
    "symmetric (0, 1)": partial(symmetric, modes=(0, 1)),
    "a shared factor, 5 %": partial(of_noise, cosines=(1.0,), level=0.05),
    "a shared factor, 1 %": partial(of_noise, cosines=(1.0,), level=0.01),
    "Poisson loss, 10": partial(
        of_noise, noise=poisson, shape=(10, 12, 14), mean=10.0, signs="half zeros", loss="poisson"
    ),
    "Poisson loss, 3": partial(
        of_noise, noise=poisson, shape=(10, 12, 14), mean=3.0, signs="half zeros", loss="poisson"
    ),
    "Poisson loss, 1": partial(
        of_noise, noise=poisson, shape=(10, 12, 14), mean=1.0, signs="half zeros", loss="poisson"
    ),
    "Poisson loss, .2": partial(
        of_noise, noise=poisson, shape=(20, 25, 30), mean=0.2, signs="half zeros", loss="poisson"
    ),
}


def covered(kind: str, seed: int) -> tuple[list[float], float]:
    """Return the coverage mode by mode, of zeros of non-negative factors, and of the weights; and the largest error."""
    draw = KINDS[kind](np.random.default_rng(seed))
    fit = codiag.factorize(draw.tensor, len(draw.weights), rng=0, **draw.stated)
    known = [np.nan_to_num(factor) for factor in fit.factors]
    cosines = np.prod([np.abs(one.T @ two) for one, two in zip(known, draw.factors, strict=True)], axis=0)
    order, held, at_zero = linear_sum_assignment(-cosines)[1], [], []
    found = fit.conf_int(0.9)
    for factor, truth, (low, high) in zip(fit.factors, draw.factors, found.factors, strict=True):
        true = truth[:, order] * np.where(np.nansum(factor * truth[:, order], axis=0) < 0, -1, 1)
        inside = (low <= true) & (true <= high)
        held.append(float(np.mean(inside)))
        at_zero += inside[factor == 0].tolist()
    true = draw.weights[order]
    held.append(float(np.mean(at_zero)) if at_zero else np.nan)
    held.append(float(np.mean((found.weights[0] <= true) & (true <= found.weights[1]))))
    return held, float(np.median(fit.standard_errors))


def main() -> None:
    import joblib

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--only", help="kinds whose name has this")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    parallel = joblib.Parallel(n_jobs=options.jobs)
    print("| noise, data | modes | entries at zero | weights | median standard error |\n|---|---|---|---|---|")
    for kind in KINDS:
        if options.only and options.only not in kind:
            continue
        seeds = range(options.first, options.first + options.draws)
        found = parallel(joblib.delayed(covered)(kind, seed) for seed in seeds)
        held = np.array([shares for shares, _ in found])
        shares = [f"{np.nanmean(column):.2f}" if np.any(~np.isnan(column)) else "-" for column in held.T]
        error = float(np.median([own for _, own in found]))
        print(f"| {kind} | {' '.join(shares[:-2])} | {shares[-2]} | {shares[-1]} | {error:.2g} |", flush=True)


if __name__ == "__main__":
    main()
