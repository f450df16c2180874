"""Files that commands read."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from codiag.synthetic import crowd_votes, mixed_membership_graph, noisy_tensor, worker_confusions


def write_csv(path, columns):
    """Write columns by name."""
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([list(columns), *zip(*columns.values(), strict=True)])


@pytest.fixture
def tensor_file(tmp_path):
    np.save(tmp_path / "tensor.npy", noisy_tensor((6, 7, 8), 3, noise=1e-3, seed=0).tensor)
    return tmp_path / "tensor.npy"


@pytest.fixture
def long_table(tensor_file):
    """Return a table of the entries in random order, with labels and a column that is neither."""
    entries = np.load(tensor_file)
    places = np.random.default_rng(0).permutation(np.argwhere(np.ones(entries.shape)))
    columns = {"note": ["x"] * len(places), "value": entries[tuple(places.T)].tolist()}
    columns |= {"sample": [f"s{i}" for i in places[:, 0]], "wave": 300 + places[:, 1], "day": places[:, 2]}
    write_csv(tensor_file.with_name("long.csv"), columns)
    return tensor_file.with_name("long.csv")


@pytest.fixture
def holes(tmp_path):
    """Return non-negative components with noise, a third of their entries missing: as NaN, as zeros and as a list."""
    rng = np.random.default_rng(0)
    entries = np.einsum("ir,jr,kr->ijk", *(rng.exponential(size=(size, 2)) for size in (6, 7, 8)))
    tensor = np.where(rng.random((6, 7, 8)) < 0.3, np.nan, entries + 0.01 * rng.standard_normal((6, 7, 8)))
    np.save(tmp_path / "nan.npy", tensor)
    np.save(tmp_path / "zero.npy", np.nan_to_num(tensor))
    places = np.nonzero(~np.isnan(tensor))
    rows = np.column_stack([np.stack(places, axis=1) + 1, tensor[places]])
    np.savetxt(tmp_path / "list.tns", rows, fmt=["%d"] * 3 + ["%.17g"])
    return tmp_path


@pytest.fixture
def corpus_file(tmp_path):
    rng = np.random.default_rng(0)
    mixtures = rng.dirichlet([0.5, 0.5], 400) @ rng.dirichlet(np.full(12, 0.3), 2)
    places = np.nonzero(counts := np.stack([rng.multinomial(30, mixture) for mixture in mixtures]))
    vocabulary = np.array([f"word{i}" for i in range(12)])
    np.savez(tmp_path / "corpus.npz", doc=places[0], word=places[1], count=counts[places], vocab=vocabulary)
    return tmp_path / "corpus.npz"


@pytest.fixture
def votes_file(tmp_path):
    crowd = crowd_votes(300, worker_confusions(20, 3, seed=0), density=0.5, seed=1)
    write_csv(tmp_path / "votes.csv", dict(zip(("task", "worker", "label"), crowd.votes, strict=True)))
    return tmp_path / "votes.csv"


@pytest.fixture
def edges_file(tmp_path):
    graph = mixed_membership_graph(300, 3, alpha_0=0.1, inside=0.3, outside=0.02, seed=0)
    np.savetxt(tmp_path / "edges.txt", np.stack(graph.adjacency.nonzero(), axis=1), fmt="%d")
    return tmp_path / "edges.txt"
