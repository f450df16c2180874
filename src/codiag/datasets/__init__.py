"""Real data sets by name: from a local folder, from the cache, or, if asked for, downloaded from the publisher."""

from codiag.datasets._crowd import CrowdData, load_crowd, read_crowd
from codiag.datasets._facebook import FacebookData, load_facebook, read_facebook
from codiag.datasets._locate import at_hand
from codiag.datasets._registry import SOURCES, available
from codiag.datasets._text import CorpusData, load_kos, read_bag_of_words

__all__ = [
    "SOURCES",
    "CorpusData",
    "CrowdData",
    "FacebookData",
    "at_hand",
    "available",
    "load_crowd",
    "load_facebook",
    "load_kos",
    "read_bag_of_words",
    "read_crowd",
    "read_facebook",
]
