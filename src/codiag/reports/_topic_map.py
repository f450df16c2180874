r"""Topics to explore in a page: which words are relevant to each, and how far topics are from each other.

The relevance of a word is that of C. Sievert and K. E. Shirley, "LDAvis: A method for visualizing and interpreting
topics" (2014), :math:`\lambda \log p(w|t) + (1 - \lambda) \log p(w|t) / p(w)`. The map is classical scaling of the
Jensen-Shannon divergences of topics, as squared distances: their square roots are distances in a Hilbert space
(B. Fuglede and F. Topsøe, 2004), so that no eigenvalue is negative.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import rel_entr

from codiag._text import visible
from codiag.reports._html import note

if TYPE_CHECKING:
    from codiag.models.topics import LatentDirichlet, SingleTopic

N_WORDS = 20
"""Number of words that are shown for a topic."""
STEPS = np.linspace(0, 1, 21)
"""Positions of the slider at which the most relevant words must be among those that the page holds."""
DIGITS = 5
"""Significant digits of the probabilities in the page."""


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
    n_words = min(N_WORDS, words.size)
    ranked = [np.argsort(-relevance(topics, weights, share), axis=1, kind="stable")[:, :n_words] for share in STEPS]
    listed = []
    for topic in range(min(len(topics), n_topics)):
        candidates = np.unique(np.concatenate([order[topic] for order in ranked]))
        candidates = candidates[topics[topic, candidates] > 0]
        listed.append(
            {
                "x": _rounded(places[topic, 0]),
                "y": _rounded(places[topic, 1]),
                "weight": _rounded(weights[topic]),
                "words": [visible(word) for word in words[candidates].tolist()],
                "own": [_rounded(share) for share in topics[topic, candidates]],
                "overall": [_rounded(share) for share in overall[candidates]],
            }
        )
    return {"topics": listed, "shown": _rounded(shown), "nWords": n_words}


def _rounded(number: float) -> float:
    return float(f"{number:.{DIGITS}g}")


def explorer(model: LatentDirichlet | SingleTopic, words: np.ndarray, n_topics: int) -> str:
    """Return the map of topics, the slider of the relevance, and the words of one topic, with their script."""
    data = page_data(model, words, n_topics)
    # "<" would let a word end the script, and U+2028 and U+2029 were line ends of scripts once.
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    folder = resources.files("codiag.reports")
    style, script = ((folder / f"topics.{kind}").read_text(encoding="utf-8") for kind in ("css", "js"))
    reading = (
        "Choose a topic in the map or the list. Areas of the circles are shares of the topics in all texts; topics "
        "near each other share words. With the slider at 1, words are in the order of their probability in the topic; "
        "to the left, words that are rare in other topics come first; about 0.6 is a good start."
    )
    caption = (
        f"Map of the topics: classical scaling of Jensen-Shannon divergences, of which these two directions show "
        f"{100 * data['shown']:.0f} %."
    )
    return (
        f"<style>{style}</style>{note(reading)}"
        "<noscript><p>The map and the slider need scripts, which are off; the tables below do not.</p></noscript>"
        f'<div class="explorer" id="explorer" data-caption="{caption}" hidden></div>'
        f'<script type="application/json" id="topics-data">{text}</script><script>{script}</script>'
    )
