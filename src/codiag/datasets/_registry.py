"""The data sets: where they were published, the names of their files, and checksums of their contents."""

from __future__ import annotations

from dataclasses import dataclass

CROWD = "https://raw.githubusercontent.com/zhangyuc/SpectralMethodsMeetEM/6204f5fcab1766cb1b2c40fc1bff53b1613ddc6c/src/"
FACEBOOK = (
    "https://raw.githubusercontent.com/sisaman/pyg-datasets/9a92bf1e84f73b7b24dd745eb14f13e4d1979769/"
    "datasets/facebook100/"
)
BAG_OF_WORDS = "https://archive.ics.uci.edu/ml/machine-learning-databases/bag-of-words/"


@dataclass(frozen=True)
class Source:
    """A data set.

    Attributes
    ----------
    folder : str
        Where its files are, under ``CODIAG_DATA_DIR`` or in the cache.
    converted : tuple of str
        Its files as plain tables or arrays.
    original : tuple of str
        Its files as they were published; none where that takes other software to read.
    address : str
        Address of the folder with the original files.
    sha256 : str
        Checksum of its numbers in a fixed order and type: the same whichever files they were read from.
    cite : str
        What to cite.
    """

    folder: str
    converted: tuple[str, ...]
    original: tuple[str, ...]
    address: str
    sha256: str
    cite: str


def _crowd(name: str, sha256: str) -> Source:
    cite = "Zhang, Chen, Zhou & Jordan, Spectral Methods Meet EM, JMLR 17(102), 2016"
    converted = (f"{name}_labels.csv.gz", f"{name}_truth.csv.gz")
    return Source("crowd", converted, (f"{name}_crowd.txt", f"{name}_truth.txt"), CROWD, sha256, cite)


def _facebook(school: str, sha256: str) -> Source:
    cite = "Traud, Mucha & Porter, Social structure of Facebook networks, Physica A 391(16), 2012"
    return Source("facebook", (f"{school}.npz",), (f"{school}.mat",), FACEBOOK, sha256, cite)


SOURCES = {
    "bluebird": _crowd("bluebird", "2d3a4e386d917d33330bc5a6b37d33b5854069e1b9f8c90fb49126d44a4cb5d1"),
    "rte": _crowd("rte", "726943ab2b5da3e14dc73a3bf8ec5fb9d6ce18a25d21cd0496588d82b0f2c659"),
    "dog": _crowd("dog", "15748d27c78ed064fe5ff5923d74e5832f4645741b3d8290de8f977e93f8e988"),
    "web": _crowd("web", "34df9462d18676e2d56a0e2770ec8476ba755855c5ea62bd07b78af201a20a65"),
    "anesthesia": Source(
        "crowd",
        ("anesthesia_labels.csv.gz",),
        (),
        "https://github.com/jeffreypullin/rater",
        "5950488de17194515ef00f453512f88fcd9eecea41a3f587e03581df8a7a4a49",
        "Dawid & Skene, Applied Statistics 28(1), 1979",
    ),
    "UNC28": _facebook("UNC28", "04b3e8c883d79fb6e94c66d2271333a6e1728a3c04c6440afa9ee72f9c3cac99"),
    "Amherst41": _facebook("Amherst41", "9a30705807cdd066bf086b8cacb9db99088ca03435af268cb6e14571bdcdc85d"),
    "Simmons81": _facebook("Simmons81", "73519db06d9386c528bdff5145163f9305ae14c9087e2ad4a299dd9af1def8d7"),
    "Caltech36": _facebook("Caltech36", "1a8afa05af2ba6db93640408e45dca230e086d1082f81aa7ef98584d2a676085"),
    "kos": Source(
        "text",
        ("kos.npz",),
        ("docword.kos.txt.gz", "vocab.kos.txt"),
        BAG_OF_WORDS,
        "11be22b4576d0d9230ee3f54f544fd990ee3a40466b9c0a2afa0a020c43cac57",
        "Newman, Bag of Words, UCI Machine Learning Repository, 2008, doi 10.24432/C5ZG6P",
    ),
}
"""All data sets by name."""


def available(folder: str | None = None) -> list[str]:
    """Return the names of the data sets.

    Parameters
    ----------
    folder : {"crowd", "facebook", "text"}, optional
        Only those of this kind.

    Returns
    -------
    list of str
        Names, as the loaders take them.

    See Also
    --------
    at_hand : Whether a data set needs no download.
    load_crowd : Load votes.
    load_facebook : Load a network.
    load_kos : Load counts of words.

    Examples
    --------
    >>> from codiag.datasets import available
    >>> available("facebook")
    ['UNC28', 'Amherst41', 'Simmons81', 'Caltech36']
    """
    if folder is not None and folder not in [source.folder for source in SOURCES.values()]:
        raise ValueError(f"folder must be crowd, facebook or text; got {folder!r}")
    return [name for name, source in SOURCES.items() if folder in (None, source.folder)]
