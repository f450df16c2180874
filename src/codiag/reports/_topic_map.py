r"""Topics to explore in a page: which words are relevant to each, and how far topics are from each other.

The relevance of a word is that of C. Sievert and K. E. Shirley, "LDAvis: A method for visualizing and interpreting
topics" (2014), :math:`\lambda \log p(w|t) + (1 - \lambda) \log p(w|t) / p(w)`. The map is classical scaling of the
Jensen-Shannon divergences of topics, as squared distances: their square roots are distances in a Hilbert space
(B. Fuglede and F. Topsøe, 2004), so that no eigenvalue is negative.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import rel_entr

from codiag._text import escape_control

if TYPE_CHECKING:
    from codiag.models.topics import LatentDirichlet, SingleTopic


def relevance(topics: np.ndarray, weights: np.ndarray, share: float) -> np.ndarray:
    r"""Return the relevance of every word to every topic, (topics, words), at :math:`\lambda` = `share`.

    :math:`p(w) = \sum_t \pi_t p(w|t)`, the probability of a word by the model. Words that a topic does not have are
    minus infinity.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        own, lift = np.log(topics), np.log(topics) - np.log(weights @ topics)
    return np.where(topics > 0, share * own + (1 - share) * lift, -np.inf)


def topic_map(topics: np.ndarray) -> tuple[np.ndarray, float]:
    """Return coordinates of topics in a plane, (topics, 2), and the share of their squared distances that it shows."""
    k = len(topics)
    divergences = np.zeros((k, k))
    for one in range(k):
        middle = (topics[one] + topics[one + 1 :]) / 2
        parts = rel_entr(topics[one], middle).sum(axis=1) + rel_entr(topics[one + 1 :], middle).sum(axis=1)
        divergences[one, one + 1 :] = divergences[one + 1 :, one] = parts / 2
    center = np.eye(k) - 1 / k
    values, vectors = np.linalg.eigh(-center @ divergences @ center / 2)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    places = np.zeros((k, 2))
    n_axes = min(2, k)
    signs = np.sign(vectors[np.argmax(np.abs(vectors), axis=0), np.arange(k)])
    places[:, :n_axes] = (vectors * signs * np.sqrt(values))[:, :n_axes]
    return places, float(values[:2].sum() / values.sum()) if values.sum() > 0 else 1.0


def page_data(model: LatentDirichlet | SingleTopic, words: np.ndarray, n_topics: int) -> dict[str, Any]:
    """Return what the page needs: topics with their places, weights and words, and probabilities of these.

    For each topic, words are all that are among the most relevant at any position of the slider.
    """
    topics, weights = np.asarray(model.components_, dtype=float), np.asarray(model.weights_, dtype=float)
    weights = weights / weights.sum()
    overall, (places, shown) = weights @ topics, topic_map(topics)
    n_words = min(20, words.size)
    # positions of the slider
    ranked = [
        np.argsort(-relevance(topics, weights, share), axis=1, kind="stable")[:, :n_words]
        for share in np.linspace(0, 1, 21)
    ]
    listed = []
    for topic in range(min(len(topics), n_topics)):
        candidates = np.unique(np.concatenate([order[topic] for order in ranked]))
        candidates = candidates[topics[topic, candidates] > 0]
        listed.append(
            {
                "x": _rounded(places[topic, 0]),
                "y": _rounded(places[topic, 1]),
                "weight": _rounded(weights[topic]),
                "words": [escape_control(word) for word in words[candidates].tolist()],
                "own": [_rounded(share) for share in topics[topic, candidates]],
                "overall": [_rounded(share) for share in overall[candidates]],
            }
        )
    return {"topics": listed, "shown": _rounded(shown), "nWords": n_words}


def _rounded(number: float) -> float:
    """Return a probability to five digits, for a smaller page."""
    return float(f"{number:.5g}")
