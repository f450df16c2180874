"""Real data sets by name: from a local folder, from the cache, or downloaded from the publisher.

=================== ============================================
`load_crowd`        Votes of workers, and true labels.
`load_facebook`     Networks, and attributes of people.
`load_kos`          Counts of words in documents.
`load_eem`          Fluorescence of water samples, a tensor.
`load_microbiome`   Bacteria in replicates over time, a tensor.
=================== ============================================

`names` lists the names, and `is_local` says whether a data set is on this computer. Loaders search the folder that the
environment variable ``CODIAG_DATA_DIR`` names, then the cache; they use the network only with ``download=True``.

Examples
--------
>>> from codiag.datasets import names
>>> names("text")
['kos']
"""

from codiag._checks import public_names
from codiag.datasets._loaders import (
    CorpusData,
    CrowdData,
    FacebookData,
    FluorescenceData,
    load_crowd,
    load_eem,
    load_facebook,
    load_kos,
    load_microbiome,
)
from codiag.datasets._registry import SOURCES, is_local, names

__all__ = ["load_crowd", "load_eem", "load_facebook", "load_kos", "load_microbiome", "names"]

__dir__ = public_names(__all__)
