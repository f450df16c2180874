"""Find topics in a simulated corpus, and see what the method of moments knows about its own errors."""

from __future__ import annotations

import numpy as np

from codiag.models import LatentDirichlet

WORDS = [
    *("cell", "gene", "protein", "virus"),
    *("market", "stock", "price", "bank"),
    *("goal", "team", "match", "coach"),
    *("vote", "party", "law", "court"),
]
THEMES = {"biology": (0, 4), "finance": (4, 8), "sport": (8, 12), "politics": (12, 16)}


def simulate(n_documents: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return counts and the topics they were drawn from: each loves four words and knows all others."""
    topics = np.full((len(THEMES), len(WORDS)), 0.01)
    for topic, (start, end) in zip(topics, THEMES.values(), strict=True):
        topic[start:end] = rng.uniform(0.5, 1.5, end - start)
    topics /= topics.sum(axis=1, keepdims=True)
    mixtures = rng.dirichlet(np.full(len(THEMES), 0.25), n_documents)
    return rng.multinomial(60, mixtures @ topics), topics


def main(n_documents: int = 5000) -> float:
    """Fit, print the topics, and return how far they are from the truth."""
    counts, truth = simulate(n_documents, np.random.default_rng(0))
    model = LatentDirichlet(4, alpha_0=1.0, polish=0, random_state=0).fit(counts)
    for weight, words in zip(model.weights_, model.top_words(WORDS, 4), strict=True):
        print(f"{weight:.2f}  {' '.join(words)}")
    print("one document mixes them as", model.transform(counts[:1])[0].round(2))
    print("mass clipped away:", f"{model.diagnostics_['clipped_mass']:.1e}")
    distances = np.linalg.norm(model.components_[:, None] - truth[None], axis=2)
    error = float(distances.min(axis=1).mean())
    print(f"mean distance from the true topics: {error:.4f}")
    return error


if __name__ == "__main__":
    main()
