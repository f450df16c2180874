"""Real data sets by name: from a local folder, from the cache, or, if asked for, downloaded from the publisher.

=================== ================= =============================== ============================================
Loader              Returns           Reader of files of your own     Data
=================== ================= =============================== ============================================
`load_crowd`        `CrowdData`       `read_crowd`                    Votes of workers, and true labels.
`load_facebook`     `FacebookData`    `read_facebook`                 Networks, and attributes of people.
`load_kos`          `CorpusData`      `read_bag_of_words`             Counts of words in documents.
=================== ================= =============================== ============================================

`available` lists the names, `at_hand` tells whether a data set needs no download, and `SOURCES` has where each is
published and its checksum. Loaders look in the folder that the environment variable ``CODIAG_DATA_DIR`` names, then in
the cache; they use the network only with ``download=True``.

Examples
--------
>>> from codiag.datasets import available
>>> available("text")
['kos']
"""

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
