"""Topics of documents."""

from codiag.models.topics._model import LatentDirichlet, SingleTopic, at_entries, log_likelihood
from codiag.models.topics._moments import Topics, WordStatistics
from codiag.models.topics._posteriors import (
    PriorSums,
    TopicCounts,
    WordPosteriors,
    estimated_prior,
    estimated_word_prior,
    expected_histogram,
    histogram,
    topic_mixtures,
)
from codiag.models.topics._steps import Start, refined
from codiag.models.topics._word_moments import as_counts
