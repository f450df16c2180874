"""Topics of many documents as a dask array of sparse parts: time, memory, and the distance from one process.

``python -m benchmarks.topics_scale --documents 1000000``. Documents are drawn part by part from a seed, each time a
part is read, so that nothing is kept on disk; reading takes its own time, which is printed. Memory is the largest
resident size of the process, with the threads of dask in it. ``--whole`` fits all documents as one matrix in memory,
and prints by how much topics differ.
"""

from __future__ import annotations

import argparse
import resource
import time
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from codiag.models import LatentDirichlet
from codiag.models.base import sum_over_rows

LENGTH = 50
"""Mean number of words of a document."""
PLACES = 2**20
"""Places of the table that words of a topic are drawn from."""


@cache
def draw_topics(k: int, n_words: int) -> np.ndarray:
    """Return topics (k, places), a table with the word of every place, from which words are drawn evenly.

    Every word has a frequency that falls with its rank, and a taste for some topics.
    """
    rng = np.random.default_rng(0)
    topics = rng.gamma(0.1, 1.0, (k, n_words)) / (10 + np.arange(n_words))
    steps = (np.arange(PLACES) + rng.random()) / PLACES
    ladders = np.cumsum(topics / topics.sum(axis=1, keepdims=True), axis=1)
    return np.stack([np.minimum(np.searchsorted(ladder, steps), n_words - 1) for ladder in ladders]).astype(np.int32)


def draw_part(place: int, n_documents: int, k: int, n_words: int) -> sparse.csr_array:
    """Return the counts of some documents, whose mixtures are Dirichlet of total one."""
    rng = np.random.default_rng([1, place])
    numbers = rng.multinomial(rng.poisson(LENGTH, n_documents), rng.dirichlet(np.full(k, 1 / k), n_documents))
    document = np.concatenate([np.repeat(np.arange(n_documents, dtype=np.int32), of_topic) for of_topic in numbers.T])
    tables = zip(draw_topics(k, n_words), numbers.sum(axis=0), strict=True)
    word = np.concatenate([table[rng.integers(0, PLACES, n)] for table, n in tables])
    return sparse.coo_array((np.ones(word.size), (document, word)), shape=(n_documents, n_words)).tocsr()


def as_dask(n_documents: int, n_each: int, k: int, n_words: int) -> Any:
    """Return all documents as a dask array of sparse parts, drawn when they are read."""
    import dask
    import dask.array as da

    sizes = [min(n_each, n_documents - start) for start in range(0, n_documents, n_each)]
    draw = dask.delayed(draw_part, pure=False)
    meta = sparse.csr_array((0, n_words))
    parts = [
        da.from_delayed(draw(place, size, k, n_words), (size, n_words), meta=meta) for place, size in enumerate(sizes)
    ]
    return da.concatenate(parts)


def n_entries(block: sparse.csr_array) -> int:
    """Return the number of entries of a block."""
    return int(block.nnz)


def peak() -> float:
    """Return the largest memory the process has had so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def timed(what: str, function: Any, *given: Any) -> Any:
    """Call a function and print what it took."""
    wall, processor = time.perf_counter(), time.process_time()
    found = function(*given)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    print(f"{what}: {wall:.1f} s, {processor:.1f} s of processor time; peak memory so far {peak():.2f} GB", flush=True)
    return found


def distance(model: LatentDirichlet, other: LatentDirichlet) -> str:
    """Say how far apart two estimates are."""
    gap = np.abs(model.components_ - other.components_)
    return f"{np.max(gap):.1e} in entries, {np.max(gap) / np.max(other.components_):.1e} of the largest"


def main() -> None:
    """Fit, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--words", type=int, default=50_000)
    parser.add_argument("--topics", type=int, default=20)
    parser.add_argument("--each", type=int, default=10_000)
    parser.add_argument("--max-iter", type=int, default=0)
    parser.add_argument("--whole", action="store_true")
    given = parser.parse_args()
    sizes = given.documents, given.each, given.topics, given.words
    array = as_dask(*sizes)
    print(f"dask array {array.shape} in {array.numblocks[0]} parts, {peak():.2f} GB before the first read")
    entries = timed("one read of the data, which draws it", sum_over_rows, n_entries, array)
    print(f"{entries} entries, {12 * entries / 1e9:.2f} GB as one matrix")
    model = timed(
        "fit of the dask array", LatentDirichlet(given.topics, max_iter=given.max_iter, random_state=0).fit, array
    )
    truth = np.stack([np.bincount(table, minlength=given.words) / PLACES for table in draw_topics(*sizes[2:])])
    likeness = model.components_ @ truth.T
    likeness /= np.linalg.norm(model.components_, axis=1)[:, None] * np.linalg.norm(truth, axis=1)
    print(f"mean cosine of topics with their nearest true ones {np.mean(np.max(likeness, axis=1)):.4f}")
    if given.whole:
        counts = sparse.vstack([block.compute() for block in array.to_delayed().ravel()], format="csr")
        other = LatentDirichlet(given.topics, max_iter=given.max_iter, random_state=0)
        other = timed("fit of one matrix in memory", other.fit, counts)
        print(f"topics differ by {distance(model, other)}")


if __name__ == "__main__":
    main()
