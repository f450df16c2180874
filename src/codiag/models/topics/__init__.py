"""Topics of documents."""

from codiag.models.topics._bias import Estimated, lengths_of, simulated_counts, with_bias
from codiag.models.topics._files import Corpus, read_corpus, save_topics, share_table
from codiag.models.topics._likelihood import at_entries, log_likelihood
from codiag.models.topics._models import LatentDirichlet, SingleTopic
from codiag.models.topics._moments import Topics, WordStatistics
from codiag.models.topics._priors import Presence, estimated_prior, estimated_word_prior, numbers_of, random_numbers_of
from codiag.models.topics._shares import SharedWords, TopicCounts, topic_mixtures
from codiag.models.topics._variational import SharedDocuments, Start, polished_counts
from codiag.models.topics._word_moments import WordMomentTensor, WordPairs, as_counts, word_frequencies
