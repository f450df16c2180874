"""The figure of topics."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from codiag._checks import as_number
from codiag.plotting._style import INK, color_of, families, grid_of_axes, plain, shown, tell_without_font

if TYPE_CHECKING:
    from codiag.models.topics import LatentDirichlet, SingleTopic

MAX_PANELS, MAX_WORDS, MAX_COLUMNS = 40, 40, 4
"""Largest numbers of topics, of words of a topic, and of panels in a row."""
WIDTH, MAX_LETTERS = 2.7, 18
"""Width of a panel in inches, and largest number of letters of a word; longer words are shortened."""


def topics(
    model: LatentDirichlet | SingleTopic,
    vocabulary: Sequence[str] | np.ndarray | None = None,
    *,
    n_words: int = 8,
    n_topics: int = 12,
    axes: Any = None,
) -> Any:
    """Draw topics: one panel per topic, with its share of the text and its most probable words.

    Parameters
    ----------
    model : LatentDirichlet or SingleTopic
        Fitted to counts of words.
    vocabulary : sequence of str, optional
        The word of every column of the counts; by default the columns of the data frame that was fitted.
    n_words : int
        Number of words of each topic, at most 40.
    n_topics : int
        Largest number of topics; the most frequent ones are drawn, at most 40 in a new figure.
    axes : array of matplotlib axes, optional
        Axes to draw on, one per topic; by default a new figure is made.

    Returns
    -------
    matplotlib.figure.Figure
        The figure, without a window; ``figure.savefig("topics.png")`` writes it.

    See Also
    --------
    codiag.reports.topics_report : A page about topics.
    codiag.models.LatentDirichlet.top_words : The words alone.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.models import SingleTopic
    >>> from codiag.plotting import topics
    >>> rng = np.random.default_rng(0)
    >>> shares = np.array([[0.5, 0.4, 0.1, 0.0], [0.0, 0.1, 0.4, 0.5]])
    >>> counts = np.array([rng.multinomial(10, shares[i]) for i in rng.integers(0, 2, 500)])
    >>> figure = topics(SingleTopic(2, random_state=0).fit(counts), ["bread", "milk", "ball", "goal"])
    >>> len(figure.axes)
    2
    """
    as_number("n_topics", n_topics, integer=True)
    as_number("n_words", n_words, integer=True)
    if not hasattr(model, "top_words"):
        raise TypeError(f"model must be a LatentDirichlet or SingleTopic; got {type(model).__name__}")
    words = model.top_words(vocabulary, min(n_words, MAX_WORDS))
    k = len(words)
    n_drawn = min(k, int(n_topics)) if axes is not None else min(k, int(n_topics), MAX_PANELS)
    n_columns = n_drawn if n_drawn <= MAX_COLUMNS else min(MAX_COLUMNS, math.ceil(math.sqrt(n_drawn)))
    shape = (math.ceil(n_drawn / n_columns), n_columns) if axes is None else (n_drawn, 1)
    height = 0.19 * len(words[0]) + 0.75
    with grid_of_axes(axes, shape, (WIDTH * n_columns + 0.4, height * shape[0] + 0.4)) as (figure, grid):
        for topic, axis in enumerate(grid.flat):
            if topic < n_drawn:
                _draw_topic(axis, model, topic, words[topic])
            else:
                axis.set_axis_off()
        if axes is None:
            first = "" if n_drawn == k else f"the most frequent {n_drawn} of "
            figure.suptitle(f"{first}{k} topics, with the shares of their words", fontsize=11, color=INK)
            tell_without_font(figure, [word for of_topic in words for word in of_topic])
    return figure


def _draw_topic(axis: Any, model: LatentDirichlet | SingleTopic, topic: int, words: Sequence[str]) -> None:
    shares = np.sort(model.components_[topic])[::-1][: len(words)]
    axis.barh(range(len(words)), shares, color=color_of(topic), alpha=0.85, height=0.75)
    plain(axis)
    axis.set_yticks(range(len(words)), [shown(word, MAX_LETTERS) for word in words], fontfamily=families())
    axis.set_ylim(len(words) - 0.5, -0.5)
    axis.xaxis.get_major_locator().set_params(nbins=3)
    axis.set_title(f"topic {topic}: {100 * float(model.weights_[topic]):.1f} %", fontsize=9, color=INK)
