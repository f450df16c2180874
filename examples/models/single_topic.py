"""The paper's topic experiment in small: one topic a document, and every method on the same moment."""

from __future__ import annotations

import numpy as np

import codiag
from codiag.models import SingleTopic

METHODS = ("auto", "nojd1", "ojd0", "ojd1", "tpm", "lathauwer")


def simulate(n_documents: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return documents of ten words, each about one of six topics over thirty words, and the topics."""
    topics = rng.dirichlet(np.full(30, 0.5), 6)
    return rng.multinomial(10, topics[rng.choice(6, n_documents)]), topics


def main(n_documents: int = 30_000) -> dict[str, float]:
    """Fit by every method and return the errors: mean distance of unit topics from the truth."""
    counts, topics = simulate(n_documents, np.random.default_rng(0))
    errors = {}
    for method in METHODS:
        model = SingleTopic(6, method=method, random_state=0).fit(counts)
        errors[method] = codiag.factor_error(model.components_.T, topics.T)
        print(f"{method:10s} {errors[method]:.4f}")
    polished = SingleTopic(6, polish=10, random_state=0).fit(counts)
    errors["polished"] = codiag.factor_error(polished.components_.T, topics.T)
    print(f"{'polished':10s} {errors['polished']:.4f}")
    return errors


if __name__ == "__main__":
    main()
