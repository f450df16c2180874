"""Real data sets by name: from a local folder, from the cache, or downloaded from the publisher.

=================== =============================== ============================================
Loader              Reader of files of your own     Data
=================== =============================== ============================================
`load_crowd`        `read_crowd`                    Votes of workers, and true labels.
`load_facebook`     `read_facebook`                 Networks, and attributes of people.
`load_kos`          `read_bag_of_words`             Counts of words in documents.
`load_eem`                                          Fluorescence of water samples, a tensor.
`load_microbiome`                                   Bacteria in replicates over time, a tensor.
=================== =============================== ============================================

`names` lists the names, and `is_local` says whether a data set is on this computer. Loaders search the folder that the
environment variable ``CODIAG_DATA_DIR`` names, then the cache; they use the network only with ``download=True``.

Examples
--------
>>> from codiag.datasets import names
>>> names("text")
['kos']
"""

from codiag._checks import public_names
from codiag.datasets._arrays import FluorescenceData, load_eem, load_microbiome
from codiag.datasets._crowd import CrowdData, load_crowd, read_crowd
from codiag.datasets._facebook import FacebookData, load_facebook, read_facebook
from codiag.datasets._registry import SOURCES, is_local, names
from codiag.datasets._text import CorpusData, load_kos, read_bag_of_words

__all__ = [
    "is_local",
    "load_crowd",
    "load_eem",
    "load_facebook",
    "load_kos",
    "load_microbiome",
    "names",
    "read_bag_of_words",
    "read_crowd",
    "read_facebook",
]

__dir__ = public_names(__all__)
