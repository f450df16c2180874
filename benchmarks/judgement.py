"""What is said about data outside the model: ``python -m benchmarks.judgement``.

Ranks that are chosen, entries and samples that are named, shifts that are recognized, over noise without components,
noise of many kinds around components, single bad entries and samples, and shifted profiles. ``--draws`` says how many
tensors of each kind, ``--jobs`` how many at a time; a name runs one part.
"""

from __future__ import annotations

import argparse
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

import codiag

FIRST = 90_000
"""First seed: no test uses as large ones."""

SHAPE = (15, 16, 17)
Draw = Callable[[np.random.Generator, Sequence[int]], np.ndarray]


def smooth(rng: np.random.Generator, shape: Sequence[int], correlation: float, modes: Sequence[int]) -> np.ndarray:
    """Return noise that is autoregressive along modes."""
    burn = 300
    noise = rng.standard_normal([size + (burn if mode in modes else 0) for mode, size in enumerate(shape)])
    for mode in modes:
        noise = np.moveaxis(noise, mode, 0).copy()
        for row in range(1, len(noise)):
            noise[row] = correlation * noise[row - 1] + np.sqrt(1 - correlation**2) * noise[row]
        noise = np.moveaxis(noise[burn:], 0, mode)
    return noise


def spiked(rng: np.random.Generator, shape: Sequence[int], share: float, size: float = 30.0) -> np.ndarray:
    """Return white noise in which a share of the entries are spikes."""
    noise = rng.standard_normal(shape)
    places = rng.choice(noise.size, max(round(share * noise.size), 1), replace=False)
    noise.flat[places] += size * rng.choice([-1, 1], places.size) * rng.uniform(1, 1.5, places.size)
    return noise


def louder(rng: np.random.Generator, shape: Sequence[int], mode: int) -> np.ndarray:
    """Return white noise that is ten times larger at one index of a mode."""
    scales = np.where(np.arange(shape[mode]) == 3, 10.0, 1.0)
    return rng.standard_normal(shape) * scales.reshape([-1 if other == mode else 1 for other in range(len(shape))])


NOISES: Mapping[str, Draw] = {
    "white": lambda rng, shape: rng.standard_normal(shape),
    "t, 2 degrees": lambda rng, shape: rng.standard_t(2, shape),
    "t, 3 degrees": lambda rng, shape: rng.standard_t(3, shape),
    "lognormal, centred": lambda rng, shape: np.exp(1.5 * rng.standard_normal(shape)) - np.exp(1.125),
    "spikes, .1 %": partial(spiked, share=0.001),
    "spikes, 1 %": partial(spiked, share=0.01),
    "AR .5": partial(smooth, correlation=0.5, modes=(2,)),
    "AR .8": partial(smooth, correlation=0.8, modes=(2,)),
    "AR .95": partial(smooth, correlation=0.95, modes=(2,)),
    "AR .5 in two modes": partial(smooth, correlation=0.5, modes=(1, 2)),
    "AR .8 in two modes": partial(smooth, correlation=0.8, modes=(1, 2)),
    "AR .95 in two modes": partial(smooth, correlation=0.95, modes=(1, 2)),
    "a bad sample": partial(louder, mode=0),
    "a bad sensor": partial(louder, mode=1),
    "random walk": lambda rng, shape: rng.standard_normal(shape).cumsum(axis=2),
}


def components(
    rng: np.random.Generator, shape: Sequence[int], rank: int, collinearity: float = 0.0, *, positive: bool = False
) -> np.ndarray:
    """Return a sum of random components, of one cosine between each two of them."""
    factors = []
    for size in shape:
        factor = rng.standard_normal((size, rank))
        if positive:
            factor = np.abs(factor)
        elif collinearity:
            factor = np.linalg.qr(factor)[0] @ np.linalg.cholesky((1 - collinearity) * np.eye(rank) + collinearity).T
        factors.append(factor)
    return np.einsum("ir,jr,kr->ijk", *factors)


def with_noise(clean: np.ndarray, noise: np.ndarray, level: float) -> np.ndarray:
    """Add noise of a level, relative to the norm."""
    return clean + level * np.linalg.norm(clean) / np.linalg.norm(noise) * noise


def nothing(kind: str, seed: int) -> object:
    """Return the rank of noise without components."""
    return codiag.choose_rank(NOISES[kind](np.random.default_rng(seed), SHAPE), rng=0).rank


def _slices(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    return rng.standard_normal(shape) * np.exp(0.7 * rng.standard_normal((shape[0], 1, 1)))


def _pink(rng: np.random.Generator, shape: Sequence[int]) -> np.ndarray:
    frequencies = np.fft.rfftfreq(shape[2])
    gains = np.where(frequencies > 0, 1 / np.sqrt(np.maximum(frequencies, 1 / shape[2])), 0)
    return np.fft.irfft(np.fft.rfft(rng.standard_normal(shape), axis=2) * gains, shape[2], axis=2)


Case = tuple[int, Callable[[np.random.Generator], np.ndarray], dict[str, Any]]  # rank, draw, what is told


def _cases() -> Mapping[str, Case]:
    """Return tensors of known rank: the rank, the draw, and what is told about it."""

    def case(rank: int, noise: Draw = NOISES["white"], level: float = 0.1, shape: Sequence[int] = SHAPE,
             collinearity: float = 0.0, *, positive: bool = False, **stated: Any) -> Case:  # fmt: skip
        def draw(rng: np.random.Generator) -> np.ndarray:
            clean = components(rng, shape, rank, collinearity, positive=positive)
            return with_noise(clean, noise(rng, shape), level)

        return rank, draw, stated

    def proportional(rng: np.random.Generator) -> np.ndarray:
        clean = components(rng, SHAPE, 3)
        return with_noise(clean, np.abs(clean) * rng.standard_normal(SHAPE), 0.1)

    def holed(rng: np.random.Generator) -> np.ndarray:
        tensor = with_noise(components(rng, SHAPE, 3), rng.standard_normal(SHAPE), 0.1)
        tensor[rng.random(SHAPE) < 0.4] = np.nan
        return tensor

    baseline: Draw = lambda rng, shape: (  # noqa: E731
        rng.standard_normal(shape) + 2 * rng.standard_normal((shape[0], shape[1], 1))
    )
    large = (30, 25, 20)
    cases = {f"rank {rank}, 10 %": case(rank) for rank in (1, 2, 3, 4, 5, 6, 8)}
    cases |= {f"rank {rank} of 30 x 25 x 20, 1 %": case(rank, level=0.01, shape=large) for rank in (11, 12, 13, 15)}
    cases |= {
        "rank 3, noise = signal": case(3, level=1.0),
        "rank 3, AR .8": case(3, NOISES["AR .8"], 0.3),
        "rank 3, AR .8 in two modes": case(3, NOISES["AR .8 in two modes"], 0.3),
        "rank 3, AR .95": case(3, NOISES["AR .95"], 0.3),
        "rank 3, pink": case(3, _pink, 0.3),
        "rank 3, baseline": case(3, baseline, 0.3),
        "rank 3, slices": case(3, _slices, 0.3),
        "rank 5, slices": case(5, _slices, 0.1),
        "rank 3, proportional": (3, proportional, {}),
        "rank 3, 1 % outliers": case(3, partial(spiked, share=0.01, size=10.0), 0.3),
        "rank 6, 1 % outliers": case(6, partial(spiked, share=0.01, size=10.0), 0.3),
        "rank 3, .1 % spikes": case(3, NOISES["spikes, .1 %"], 0.3),
        "rank 3, t3": case(3, NOISES["t, 3 degrees"], 0.3),
        "rank 3, cosines .8": case(3, collinearity=0.8),
        "rank 3, 5 samples": case(3, shape=(5, 40, 30)),
        "rank 3, 6 samples": case(3, shape=(6, 40, 30)),
        "rank 4, non-negative": case(4, positive=True, level=0.05, constraints="nonnegative"),
        "rank 3, 40 % missing": (3, holed, {}),
    }
    return cases


CASES = _cases()


def known(name: str, seed: int) -> object:
    """Return the rank that is chosen."""
    _, draw, stated = CASES[name]
    return codiag.choose_rank(draw(np.random.default_rng(seed)), rng=0, **stated).rank


def one_entry(shape: Sequence[int], value: float, seed: int) -> tuple[bool, bool, bool]:
    """Return whether rank two is chosen, and whether the choice and the diagnosis of rank two name the bad entry."""
    rng = np.random.default_rng(seed)
    tensor = with_noise(components(rng, shape, 2), rng.standard_normal(shape), 0.05)
    place = tuple(int(rng.integers(size)) for size in shape)
    tensor[place] = value
    choice = codiag.choose_rank(tensor, rng=0)
    told = codiag.factorize(tensor, 2, rng=0).diagnose()
    named = str(place) in choice.reason
    return choice.rank == 2, named, any(entry.place == place for entry in told.entries)


def bad_trials(seed: int) -> tuple[bool, bool]:
    """Return whether the choice of the rank, and the diagnosis of rank eight, name three bad trials."""
    rng = np.random.default_rng(seed)
    shape = (60, 100, 40)
    times = np.arange(shape[1])
    curves = [np.exp(-0.5 * ((times - center) / 6) ** 2) for center in np.linspace(12, 88, 5)]
    neurons = rng.gamma(0.5, 1.0, (shape[0], 5))
    clean = np.einsum("ir,jr,kr->ijk", neurons, np.stack(curves, axis=1), rng.uniform(0.5, 1.5, (shape[2], 5)))
    tensor = np.maximum(with_noise(clean, rng.standard_normal(shape), 0.3), 0)
    bad = rng.choice(shape[2], 3, replace=False)
    for trial in bad:
        artefact = np.outer(rng.random(shape[0]), np.exp(-0.5 * ((times - rng.integers(100)) / 3) ** 2))
        tensor[:, :, trial] += 10 * tensor.std() * artefact / artefact.std()
    choice = codiag.choose_rank(tensor, constraints="nonnegative", rng=0)
    fit = codiag.factorize(tensor, 8, constraints="nonnegative", rng=0)
    found = []
    for told in (choice.fit.diagnose() if choice.rank else None, fit.diagnose()):
        carried = (
            set() if told is None else set(np.flatnonzero((told.samples["mode"] == 2) & (told.samples["carries"] > 0)))
        )
        named = {int(row) - shape[0] - shape[1] for row in carried}
        found.append(set(bad.tolist()) <= named and told is not None and "carry" in " ".join(told.advice))
    return found[0], found[1]


def shifted(points: float, common: bool, constraints: str | None, seed: int) -> bool:
    """Return whether a diagnosis says that the profiles of a chromatogram shift."""
    rng = np.random.default_rng(seed)
    n_samples, n_times, n_channels, rank = 20, 100, 30, 3
    times, channels = np.arange(n_times), np.arange(n_channels)
    centers, widths = np.sort(rng.uniform(25, 75, rank)), rng.uniform(4, 8, rank)
    spectra = [np.exp(-0.5 * ((channels - c) / w) ** 2)
               for c, w in zip(rng.uniform(3, 27, rank), rng.uniform(3, 7, rank), strict=True)]  # fmt: skip
    moves = points * rng.standard_normal((n_samples, 1 if common else rank)) * np.ones((1, rank))
    profiles = np.exp(-0.5 * ((times - (centers + moves)[:, :, None]) / widths[:, None]) ** 2)
    clean = np.einsum(
        "krt,cr->ktc", rng.uniform(0.3, 2, (n_samples, rank))[:, :, None] * profiles, np.stack(spectra, 1)
    )
    tensor = with_noise(clean, rng.standard_normal(clean.shape), 0.03)
    told = codiag.factorize(tensor, rank, constraints=constraints, rng=0).diagnose()
    return any("PARAFAC2" in sentence and "mode 1" in sentence for sentence in told.advice)


def few_samples(constraints: str | None, seed: int) -> tuple[bool, float]:
    """Return whether the rank of five samples with pure ones is found, and CPU seconds."""
    from benchmarks.noises import few_samples as of_kind

    return of_kind("white", constraints, seed)


def _real_sets() -> Mapping[str, tuple[np.ndarray, Any]]:
    """Return real tensors with labels: of samples, sensors and taxa as text, so that they are in no order."""
    from tensorly import datasets

    from benchmarks.optima import DATA

    def labelled(name: str, shipped: str) -> tuple[np.ndarray, Any]:
        bundle = getattr(datasets, f"load_{shipped}")()
        ticks = [[str(tick) for tick in ticks] if np.asarray(ticks).dtype.kind in "OU" else ticks
                 for ticks in bundle.ticks]  # fmt: skip
        return DATA[name](), dict(zip(bundle.dims, ticks, strict=True))

    def unordered(name: str, modes: Mapping[str, bool]) -> tuple[np.ndarray, Any]:
        """Return a set of which some modes are in order."""
        tensor = DATA[name]()
        sizes = zip(modes.items(), tensor.shape, strict=True)
        return tensor, {
            mode: np.arange(size) if is_ordered else [f"{mode} {row}" for row in range(size)]
            for (mode, is_ordered), size in sizes
        }

    return {
        "IL-2": labelled("IL-2", "IL2data"),
        "COVID": labelled("COVID", "covid19_serology"),
        "kinetic": unordered("kinetic", {"sample": False, "emission": True, "excitation": True, "time": True}),
        "EEM": unordered("EEM", {"sample": False, "emission": True, "excitation": True}),
        "Fujita": unordered("Fujita", {"replicate": False, "taxon": False, "day": True}),
        "tongue": unordered("tongue", {"subject": False, "taxon": False, "time": True}),
        "metabolome": unordered("metabolome", {"subject": False, "metabolite": False, "time": True}),
        "Indian Pines": unordered("Indian Pines", {"row": True, "column": True, "band": True}),
        "amino, simulated": unordered("amino, simulated", {"sample": False, "emission": True, "excitation": True}),
    }


def real(name: str, constraints: str | None) -> str:
    """Return the rank that is chosen for a real set, why, and what the diagnosis of that fit advises."""
    tensor, labels = _real_sets()[name]
    choice = codiag.choose_rank(tensor, constraints=constraints, labels=labels, rng=0)
    told = " ".join(choice.fit.diagnose().advice) if choice.rank else ""
    return f"| {name}, {constraints or 'free'} | {choice.rank} | {choice.reason} | {told} |"


def main() -> None:
    import joblib

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "parts", nargs="*", help="nothing, known, entries, trials, shifts, real; by default all but real"
    )
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--first", type=int, default=FIRST)
    parser.add_argument("--only", help="kinds whose name has this")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    seeds, parallel = range(options.first, options.first + options.draws), joblib.Parallel(n_jobs=options.jobs)

    def run(function: Callable[..., object], *arguments: object) -> list[Any]:
        return parallel(joblib.delayed(function)(*arguments, seed) for seed in seeds)

    def wanted(part: str, names: Mapping[str, object] | Sequence[str]) -> list[str]:
        chosen = [name for name in names if options.only is None or options.only in name]
        return chosen if not options.parts or part in options.parts else []

    for kind in wanted("nothing", NOISES):
        found = run(nothing, kind)
        share = np.mean([rank is not None for rank in found])
        print(f"| nothing but noise: {kind} | {share:.2f} | {dict(Counter(map(str, found)))} |", flush=True)
    for name in wanted("known", CASES):
        found = run(known, name)
        share = np.mean([rank == CASES[name][0] for rank in found])
        print(f"| {name} | {share:.2f} | {dict(Counter(map(str, found)))} |", flush=True)
    if not options.parts or "entries" in options.parts:
        for shape in ((12, 10, 9), (30, 25, 20)):
            for value in (-5.0, -99.0, -999.0):
                shares = np.mean(run(one_entry, shape, value), axis=0)
                print(
                    f"| one entry {value} in {shape} | rank 2, named by the choice, by the diagnosis | {shares} |",
                    flush=True,
                )
    if not options.parts or "trials" in options.parts:
        print(
            f"| three bad trials, named by the choice, by the diagnosis | {np.mean(run(bad_trials), axis=0)} |",
            flush=True,
        )
    if not options.parts or "shifts" in options.parts:
        for points in (0.0, 1.0, 1.5, 2.0, 3.0):
            for common in (False, True):
                for constraints in (None, "nonnegative"):
                    share = np.mean(run(shifted, points, common, constraints))
                    print(f"| shifts of {points} points, common {common}, {constraints} | {share:.2f} |", flush=True)
    if "real" in options.parts:
        positive = ("IL-2", "kinetic", "EEM", "Indian Pines", "amino, simulated")
        cells = [(name, None) for name in _real_sets()] + [(name, "nonnegative") for name in positive]
        for line in parallel(joblib.delayed(real)(*cell) for cell in cells):
            print(line, flush=True)


if __name__ == "__main__":
    main()
