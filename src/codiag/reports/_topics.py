"""The report about topics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from codiag.models.base import hidden_component
from codiag.plotting import MUTED, OURS, draw_bars, name_axes
from codiag.reports._html import (
    note,
    panels,
    refuse_path,
    report,
    sentences,
    separate_panels,
    shaded,
    side_by_side,
    table,
)
from codiag.reports._topic_map import explorer

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
        Names of the documents, such as names of files or numbers of rows; by default numbers from 0.
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
    k = len(model.weights_)
    if words.shape != (model.components_.shape[1],):
        raise ValueError(
            f"vocabulary must have one word for each of {model.components_.shape[1]} columns; got shape {words.shape}"
        )
    names = None if documents is None else np.asarray(documents).astype(str)
    if names is not None and names.shape != (counts.shape[0],):
        raise ValueError(f"documents must have one name for each of {counts.shape[0]} rows; got shape {names.shape}")
    facts: dict[str, object] = {"topics": k, "documents": f"{counts.shape[0]:,}", "words": f"{counts.shape[1]:,}"}
    if model.diagnostics_.clipped_mass is not None:
        facts["of the probabilities by moments clipped"] = f"{100 * model.diagnostics_.clipped_mass:.1f} %"
    facts["perplexity of these documents"] = f"{model.perplexity(counts):.4g}"
    sections = {
        "Explore the topics": explorer(model, words, MAX_TOPICS),
        "Words of the topics": _words(model, words),
        "Documents": _documents(model, counts, names),
        "Evidence for the number of topics": _spectrum(model),
        "What to try": sentences(_advice(model), "No problems were found."),
    }
    lead = "Topics, each a distribution of words, the most frequent first."
    return report(title, lead, facts, sections, path)


def _words(model: LatentDirichlet | SingleTopic, words: np.ndarray) -> str:
    parts = []
    for number, (topic, weight) in enumerate(zip(model.components_[:MAX_TOPICS], model.weights_, strict=False)):
        top = np.argsort(-topic, kind="stable")[:MAX_WORDS]
        title = f"Topic {number}: {100 * weight:.1f} %"
        parts.append(
            shaded(title, words[top].tolist(), ["share"], topic[top, None], most=float(topic[top[0]]), form=".4f")
        )
    more = f" The first {MAX_TOPICS} topics are shown." if len(model.weights_) > MAX_TOPICS else ""
    return note(f"The most probable words of each topic, and their shares in it.{more}") + side_by_side(parts)


def _documents(model: LatentDirichlet | SingleTopic, counts: Any, names: np.ndarray | None) -> str:
    """Return a table of the documents in which each topic has the largest shares."""
    shares = model.transform(counts)
    strongest = np.bincount(np.argmax(shares, axis=1), minlength=shares.shape[1])
    rows = []
    for topic in range(min(shares.shape[1], MAX_TOPICS)):
        top = np.argsort(-shares[:, topic], kind="stable")[:MAX_DOCUMENTS]
        labels = top if names is None else names[top]
        listed = ", ".join(f"{label} ({shares[row, topic]:.2f})" for label, row in zip(labels, top, strict=True))
        rows.append((topic, f"{shares[:, topic].mean():.3f}", strongest[topic], listed))
    headings = ["topic", "mean share", "strongest in", "typical documents"]
    legend = "In brackets, the share of the topic in the document."
    legend = legend if names is not None else f"Documents are numbered from 0. {legend}"
    return table("Documents", headings, rows, words=["typical documents"]) + note(legend)


def _spectrum(model: LatentDirichlet | SingleTopic) -> str:
    """Return a figure of the eigenvalues of the second moment, with their sampling noise."""
    values, noise = model.diagnostics_.second_moment, model.diagnostics_.sampling_noise
    if values is None:
        return sentences(["The second moment of these topics was not kept."])
    heights = np.asarray(values)
    with separate_panels(1) as grid:
        axes = grid[0, 0]
        draw_bars(axes, np.arange(heights.size - 1), heights[:-1], OURS)
        axes.bar([heights.size - 1], heights[-1:], color=MUTED, width=0.75)
        if noise is not None:
            axes.axhline(noise, color=MUTED, linestyle="--", linewidth=1)
        name_axes(axes, "component", "eigenvalue of the second moment")
        axes.xaxis.get_major_locator().set_params(integer=True)
        caption = "Eigenvalues, one for each topic and the next one (gray). "
        if noise is not None:
            caption += "A topic is well supported if its eigenvalue is far above the dashed line, the sampling noise."
        return panels(grid, ["Eigenvalues of the second moment of words, one for each topic and one more"], caption)


def _advice(model: LatentDirichlet | SingleTopic) -> list[str]:
    """Return warnings about the fit, as sentences."""
    diagnostics, k = model.diagnostics_, len(model.weights_)
    values, noise = diagnostics.second_moment, diagnostics.sampling_noise
    advice = [] if values is None or noise is None else list(hidden_component(values[k - 1], noise, k))
    if diagnostics.converged is False:
        advice.append("The factorization of the moment did not converge: try fewer topics.")
    return advice
