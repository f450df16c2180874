"""Random problems: `codiag.synthetic`."""

from __future__ import annotations

from typing import Any

import numpy as np

from codiag import synthetic
from codiag.tensors import symmetrize

from ..arrays import choose
from ..case import Case, Check, covers
from ..invariants import Problems, finite, has_shape

NAMES = ("orthonormal_factor", "unit_factor", "mild_factor", "matrix_stack", "projection_stack", "noisy_tensor",
         "nonorthogonal_model", "orthogonal_model", "paper_tensor", "unit_noise", "operator_norm", "worker_confusions",
         "crowd_votes", "jury_votes", "mixed_membership_graph", "fluorescence", "count_events")  # fmt: skip


def _shaped(shape: tuple[int, ...], part: str = "") -> Check:
    def check(found: Any, given: dict[str, Any]) -> Problems:
        yield from has_shape(getattr(found, part) if part else found, shape, part or "the result")

    return check


def _tensors(rng: np.random.Generator, size: int, k: int, seed: int) -> list[tuple[str, dict[str, Any], Check]]:
    noise = choose(rng, 0.0, 0.1)
    cube = _shaped((size,) * 3, "tensor")
    shape = [int(rng.integers(1, 5)) for _ in range(3)]
    model = choose(rng, "authors", "text", "theory")
    paper = {
        "size": size,
        "rank": k,
        "orthogonal": choose(rng, True, False),
        "noise": noise,
        "model": model,
        "seed": seed,
    }
    return [
        ("noisy_tensor", {"shape": shape, "rank": k, "noise": noise, "seed": seed}, _shaped(tuple(shape), "tensor")),
        ("noisy_tensor", {"shape": [size] * 3, "rank": k, "symmetric": True, "seed": seed}, cube),
        ("nonorthogonal_model", {"size": size, "rank": k, "noise": noise, "seed": seed}, cube),
        ("orthogonal_model", {"size": size, "rank": k, "noise": noise, "seed": seed}, cube),
        ("paper_tensor", paper, cube),
        (
            "fluorescence",
            {"shape": [n + 3 for n in shape], "rank": k, "clip": choose(rng, True, False), "seed": seed},
            _shaped(tuple(n + 3 for n in shape), "tensor"),
        ),
        (
            "count_events",
            {"shape": shape, "rank": k, "n_events": size * 10, "seed": seed},
            _shaped(tuple(shape), "tensor"),
        ),
        ("unit_noise", {"size": size, "seed": seed}, _shaped((size,) * 3)),
        (
            "operator_norm",
            {"tensor": symmetrize(rng.standard_normal((size,) * 3)), "seed": seed, "n_starts": 3, "n_steps": 5},
            finite,
        ),
    ]


def _others(rng: np.random.Generator, size: int, k: int, seed: int) -> list[tuple[str, dict[str, Any], Check]]:
    n, classes, workers = int(rng.integers(1, 9)), int(rng.integers(2, 5)), int(rng.integers(1, 6))
    factor = synthetic.unit_factor(size, k, seed)
    confusions = synthetic.worker_confusions(workers, classes, seed=seed)
    graph = {"n": int(rng.integers(2, 40)), "k": k, "alpha_0": choose(rng, 0.0, 0.5), "inside": 0.5, "seed": seed}
    scale = 10.0 ** int(rng.integers(0, 300)) if rng.random() < 0.1 else 1.0
    stack = {"factor": scale * factor, "n_matrices": n, "noise": choose(rng, 0.0, 0.1), "seed": seed}
    projected = {"factor": factor, "weights": rng.uniform(0.5, 2, k), "n_projections": n, "noise": 0.1, "seed": seed}
    votes = {"n_tasks": n, "confusions": confusions, "density": choose(rng, 0.5, 1.0), "seed": seed}
    jury = {"n_tasks": n, "sizes": [workers, 1], "n_classes": classes, "seed": seed}
    jury |= {"shared": choose(rng, 0.0, 0.5, 1.0), "ordered": choose(rng, True, False)}
    crowd = {"n_workers": workers, "n_classes": classes, "adversarial": choose(rng, 0.0, 0.5), "seed": seed}
    return [
        ("orthonormal_factor", {"size": size, "rank": k, "seed": seed}, _shaped((size, k))),
        ("unit_factor", {"size": size, "rank": k, "seed": seed}, _shaped((size, k))),
        ("mild_factor", {"size": size, "rank": k, "seed": seed, "spread": choose(rng, 0.0, 0.3)}, _shaped((size, k))),
        ("matrix_stack", stack, _shaped((n, size, size), "matrices")),
        ("projection_stack", projected, _shaped((n, size, size), "matrices")),
        ("worker_confusions", crowd, _shaped((workers, classes, classes))),
        ("crowd_votes", votes, _shaped((n,), "truth")),
        ("jury_votes", jury, _shaped((n,), "truth")),
        ("mixed_membership_graph", graph, _shaped((graph["n"], k), "memberships")),
    ]


@covers(*(f"codiag.synthetic.{name}" for name in NAMES), weight=4)
def problems(rng: np.random.Generator) -> Case:
    """Problems of every kind; the same seed draws the same ones."""
    size = int(rng.integers(1, 6))
    k, seed = int(rng.integers(1, size + 1)), int(rng.integers(2**31))
    options = _tensors(rng, size, k, seed) + _others(rng, size, k, seed)
    name, arguments, check = options[int(rng.integers(len(options)))]
    huge = name == "matrix_stack" and np.max(np.abs(arguments["factor"])) > 1e100
    valid = None if huge else True  # products of huge entries may overflow
    return Case(f"codiag.synthetic.{name}", getattr(synthetic, name), arguments, valid, (finite, check))
