"""Simulated data in place of data sets that cannot be had, so that pages of the gallery have their pictures offline."""

from __future__ import annotations

import numpy as np
from scipy import sparse

import codiag.datasets
from codiag.datasets import CorpusData, CrowdData, FacebookData
from codiag.synthetic import mixed_membership_graph

TASKS, WORKERS = {"rte": 800, "dog": 807}, {"rte": 164, "dog": 109}
THEMES = (
    "war iraq military troops american soldiers president bush",
    "kerry bush campaign polls voters debate president poll",
    "house senate race republican democrats district candidate money",
    "dean primary iowa edwards clark gephardt democratic lieberman",
    "november voting election vote governor account electoral senate",
    "media time people article news report states public",
)
"""Words that are frequent together in each theme of the simulated blog."""


def load_crowd(name: str, *, download: bool = False) -> CrowdData:
    """Draw ten votes on every task; workers differ in accuracy and in how many tasks they take."""
    rng = np.random.default_rng(len(name))
    n_classes = 4 if name == "dog" else 2
    truth = rng.integers(n_classes, size=TASKS[name])
    share = rng.gamma(0.5, size=WORKERS[name])
    accuracy = np.where(rng.random(WORKERS[name]) < 0.1, 1 / n_classes, rng.beta(8, 3, size=WORKERS[name]))
    workers = np.array([rng.choice(WORKERS[name], 10, replace=False, p=share / share.sum()) for _ in truth])
    right = rng.random(workers.shape) < accuracy[workers]
    others = (truth[:, None] ^ 1) if n_classes == 4 else 1 - truth[:, None]  # breeds are alike in pairs
    strays = rng.random(workers.shape) < 0.05
    labels = np.where(right, truth[:, None], np.where(strays, rng.integers(n_classes, size=workers.shape), others))
    tasks = np.repeat(np.arange(1, truth.size + 1), 10)
    votes = {"task": tasks, "worker": workers.ravel() + 1, "label": labels.ravel() + 1}
    return CrowdData(votes, {"task": np.arange(1, truth.size + 1), "truth": truth + 1})


def load_facebook(name: str, *, download: bool = False) -> FacebookData:
    """Draw a graph of eight communities; most of their members live in a house of their own."""
    rng = np.random.default_rng(0)
    graph = mixed_membership_graph(769, 8, alpha_0=0.15, inside=0.22, outside=0.02, rng=0)
    house = 1 + np.argmax(graph.memberships, axis=1)
    house = np.where(rng.random(house.size) < 0.15, rng.integers(1, 9, size=house.size), house)
    return FacebookData(sparse.csr_array(graph.adjacency), {"dorm": np.where(rng.random(house.size) < 0.2, 0, house)})


def load_kos(*, download: bool = False) -> CorpusData:
    """Draw entries of a blog that mix six themes."""
    rng = np.random.default_rng(0)
    words = np.array(sorted({word for theme in THEMES for word in theme.split()}))
    frequency = np.array([[6.0 if word in theme.split() else 0.4 for word in words] for theme in THEMES])
    topics = np.array([rng.dirichlet(row) for row in frequency])
    mixtures = rng.dirichlet(np.full(len(THEMES), 0.15), 3000) @ topics
    counts = np.stack([rng.multinomial(rng.poisson(60) + 3, mixture) for mixture in mixtures])
    return CorpusData(sparse.csr_array(counts.astype(float)), words)


STAND_INS = {"load_crowd": load_crowd, "load_facebook": load_facebook, "load_kos": load_kos}
LOADERS = {name: getattr(codiag.datasets, name) for name in STAND_INS}
"""What `codiag.datasets` has, whatever was put in its place."""


def put_in_place(loaders: set[str]) -> None:
    """Have `codiag.datasets` simulate what some loaders would load, and load the rest."""
    for name, loader in LOADERS.items():
        setattr(codiag.datasets, name, STAND_INS[name] if name in loaders else loader)
