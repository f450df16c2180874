"""The page about topics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from codiag.models.base import hidden_component
from codiag.plotting import MUTED, OURS, draw_bars, name_axes
from codiag.reports._page import Panels, Table, panels, refuse_path, separate_panels, write_page

if TYPE_CHECKING:
    from codiag.models.topics import LatentDirichlet, SingleTopic

MAX_WORDS, MAX_TOPICS, MAX_DOCUMENTS = 10, 40, 5
"""Largest numbers of words of a topic, of topics, and of documents of a topic in the report."""


def topics_report(
    model: LatentDirichlet | SingleTopic,
    counts: Any,
    vocabulary: ArrayLike,
    path: str | Path | None = None,
    *,
    documents: ArrayLike | None = None,
    title: str = "Topics",
) -> str:
    r"""Return a page about topics: a map, their words and shares, typical documents, and evidence for their number.

    The slider of the page is :math:`\lambda` in the relevance of a word to a topic [1]_,
    :math:`\lambda \log p(w|t) + (1 - \lambda) \log p(w|t) / p(w)`, with :math:`p(w)` by the model. The map is classical
    scaling of the Jensen-Shannon divergences of topics, which are squared distances.

    Parameters
    ----------
    model : LatentDirichlet or SingleTopic
        Fitted.
    counts : array or sparse matrix of shape (documents, words)
        Documents from which typical ones are listed, such as those of the fit.
    vocabulary : array of str, shape (words,)
        The word of every column of the counts.
    path : str or Path, optional
        A file to write the page to, such as ``"report.html"``; one that exists is replaced.
    documents : array of shape (documents,), optional
        Names of the documents, such as names of files; by default their numbers, from 1.
    title : str
        Title of the page, such as the name of a file.

    Returns
    -------
    str
        HTML with embedded figures, which needs no other files and no network. A script in the page draws a map of the
        topics, and the words that are most relevant to one, by a slider; the tables below need no script.

    See Also
    --------
    codiag.models.LatentDirichlet : A model of topics.
    codiag.models.LatentDirichlet.top_words : The words alone.

    References
    ----------
    .. [1] C. Sievert and K. E. Shirley, "LDAvis: A method for visualizing and interpreting topics", 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import LatentDirichlet
    >>> from codiag.reports import topics_report
    >>> rng = np.random.default_rng(0)
    >>> topics = rng.dirichlet(np.full(8, 0.3), 2)
    >>> counts = np.array([rng.multinomial(30, share @ topics) for share in rng.dirichlet([0.5, 0.5], 500)])
    >>> page = topics_report(LatentDirichlet(2, random_state=0).fit(counts), counts, list("abcdefgh"))
    >>> page.startswith("<!doctype html>"), "Words of the topics" in page
    (True, True)
    """
    refuse_path("counts", counts, "topics_report(model, counts, vocabulary, path)")
    refuse_path("vocabulary", vocabulary, "topics_report(model, counts, vocabulary, path)")
    words = np.asarray(vocabulary, dtype=str)
    n_documents, n_words = counts.shape[0], model.components_.shape[1]
    if words.shape != (n_words,):
        raise ValueError(f"vocabulary must have one word for each of {n_words} columns; got shape {words.shape}")
    names = np.asarray(np.arange(1, n_documents + 1) if documents is None else documents).astype(str)
    if names.shape != (n_documents,):
        raise ValueError(f"documents must have one name for each of {n_documents} rows; got shape {names.shape}")
    facts: dict[str, object] = {
        "topics": len(model.weights_),
        "documents": f"{n_documents:,}",
        "words": f"{n_words:,}",
        "perplexity of these documents": f"{model.perplexity(counts):.4g}",
    }
    return write_page(
        "topics.html",
        path,
        title=title,
        facts=facts,
        topics=_top_words(model, words),
        n_topics=len(model.weights_),
        documents=_documents(model, counts, names),
        numbered=documents is None,
        spectrum=_spectrum(model),
        advice=_advice(model),
    )


def _top_words(model: LatentDirichlet | SingleTopic, words: np.ndarray) -> list[dict[str, Any]]:
    """Return the weight of every topic, and its most probable words with their shares."""
    listed = []
    for topic, weight in zip(model.components_[:MAX_TOPICS], model.weights_, strict=False):
        top = np.argsort(-topic, kind="stable")[:MAX_WORDS]
        listed.append({"weight": weight, "words": list(zip(words[top].tolist(), topic[top].tolist(), strict=True))})
    return listed


def _documents(model: LatentDirichlet | SingleTopic, counts: Any, names: np.ndarray) -> Table:
    """Return a table of the documents in which each topic has the largest shares."""
    shares = model.transform(counts)
    strongest = np.bincount(np.argmax(shares, axis=1), minlength=shares.shape[1])
    rows = []
    for topic in range(min(shares.shape[1], MAX_TOPICS)):
        top = np.argsort(-shares[:, topic], kind="stable")[:MAX_DOCUMENTS]
        listed = ", ".join(f"{names[row]} ({shares[row, topic]:.2f})" for row in top)
        rows.append((topic + 1, f"{shares[:, topic].mean():.3f}", strongest[topic], listed))
    return Table(["topic", "mean share", "largest in", "typical documents"], rows, ["typical documents"])


def _eigenvalues(model: LatentDirichlet | SingleTopic) -> tuple[Any, float | None]:
    """Return the eigenvalues of the second moment and their sampling noise, None if they are not known."""
    return tuple(getattr(model.diagnostics_, name, None) for name in ("second_moment", "sampling_noise"))  # type: ignore[return-value]


def _spectrum(model: LatentDirichlet | SingleTopic) -> Panels | None:
    """Return a figure of the eigenvalues of the second moment, with their sampling noise."""
    values, noise = _eigenvalues(model)
    if values is None:
        return None
    heights = np.asarray(values)
    with separate_panels(1) as grid:
        axes = grid[0, 0]
        draw_bars(axes, np.arange(1, heights.size), heights[:-1], OURS)
        axes.bar([heights.size], heights[-1:], color=MUTED, width=0.75)
        if noise is not None:
            axes.axhline(noise, color=MUTED, linestyle="--", linewidth=1)
        name_axes(axes, "topic", "eigenvalue of the second moment")
        axes.xaxis.get_major_locator().set_params(integer=True)
        return panels(grid, ["Eigenvalues of the second moment of words, one for each topic and one more"])


def _advice(model: LatentDirichlet | SingleTopic) -> list[str]:
    """Return warnings about the fit, as sentences."""
    k, (values, noise) = len(model.weights_), _eigenvalues(model)
    advice = [] if values is None or noise is None else list(hidden_component(values[k - 1], noise, k))
    if getattr(model.diagnostics_, "converged", None) is False:
        advice.append("The factorization of the moment did not converge: try fewer topics.")
    return advice
