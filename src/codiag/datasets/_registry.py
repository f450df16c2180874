"""The data sets: their sources, finding or downloading their files, and checking their contents."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

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
        The folder of its files, under ``CODIAG_DATA_DIR`` or in the cache.
    converted : tuple of str
        Its files as plain tables or arrays.
    original : tuple of str
        Its files as they were published; empty if reading them takes other software.
    address : str
        Address of the folder with the original files.
    sha256 : str
        Checksum of its numbers in a fixed order and type, the same for all files that they are read from.
    cite : str
        The publication to cite.
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
    "eem": Source(
        "eem",
        ("stardom.npz",),
        (),
        "https://github.com/MatthiasPucher/staRdom",
        "495db236e7b2763ddea7f3dd3d4ba87324c37e8bb71ba0810449dad04cf7e2af",
        "Pucher et al., staRdom, Water 11(11), 2019",
    ),
    "microbiome": Source(
        "microbiome",
        ("fujita2023.npz",),
        (),
        "https://github.com/GRvanderPloeg/parafac4microbiome",
        "57f52108ffcfe3d44604237ccd6c6699e49e099ca9ba6305fe0e6aabf51bf22c",
        "Fujita et al., Alternative stable states in microbiomes, Microbiome 11(63), 2023",
    ),
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


def names(folder: str | None = None) -> list[str]:
    """Return the names of the data sets.

    Parameters
    ----------
    folder : {"crowd", "eem", "facebook", "microbiome", "text"}, optional
        The kind of data; by default all kinds.

    Returns
    -------
    list of str
        Names, as the loaders take them.

    See Also
    --------
    is_local : Whether a data set is on this computer.
    load_crowd : Load votes.
    load_facebook : Load a network.
    load_kos : Load counts of words.

    Examples
    --------
    >>> from codiag.datasets import names
    >>> names("facebook")
    ['UNC28', 'Amherst41', 'Simmons81', 'Caltech36']
    """
    if folder is not None and folder not in [source.folder for source in SOURCES.values()]:
        raise ValueError(f"folder must be crowd, eem, facebook, microbiome or text; got {folder!r}")
    return [name for name, source in SOURCES.items() if folder in (None, source.folder)]


def source_of(name: str, folder: str | None = None) -> Source:
    """Return the source of a data set, of one kind or of any, or raise an error that lists the names."""
    if name not in names(folder):
        raise ValueError(f"name must be one of {', '.join(names(folder))}; got {name!r}")
    return SOURCES[name]


def locate(name: str, *, download: bool) -> list[Path]:
    """Return the files of a data set: in ``CODIAG_DATA_DIR``, in the cache, or downloaded if `download` is true."""
    source = source_of(name)
    files = _local_files(source)
    if files:
        return files
    if not download or not source.original:
        raise FileNotFoundError(_way_out(name, source))
    return _download(source)


def is_local(name: str) -> bool:
    """Return whether a data set is on this computer, in ``CODIAG_DATA_DIR`` or in the cache.

    Parameters
    ----------
    name : str
        One of `names`.

    Returns
    -------
    bool
        Whether loading needs no download.

    See Also
    --------
    names : The names of all data sets.

    Examples
    --------
    >>> from codiag.datasets import is_local, load_crowd
    >>> crowd = load_crowd("bluebird") if is_local("bluebird") else None
    """
    return bool(_local_files(source_of(name)))


def _local_files(source: Source) -> list[Path]:
    given = os.environ.get("CODIAG_DATA_DIR")
    for folder in filter(None, (Path(given) if given else None, _cache())):
        for file_names in (source.converted, source.original):
            files = [folder / source.folder / file for file in file_names]
            if files and all(file.is_file() for file in files):
                return files
    return []


def check_contents(name: str, arrays: Iterable[np.ndarray]) -> None:
    """Raise if the contents of a data set are not those that were published."""
    checksum = digest(arrays)
    if checksum != SOURCES[name].sha256:
        raise ValueError(
            f"the files of {name} do not hold what was published: the checksum of their contents is {checksum[:12]}..."
            f", it must be {SOURCES[name].sha256[:12]}...; delete them and load again with download=True"
        )


def digest(arrays: Iterable[np.ndarray]) -> str:
    """Return the SHA-256 of arrays of whole numbers or of strings, whatever their type and layout."""
    total = hashlib.sha256()
    for array in arrays:
        total.update(str(array.shape).encode())
        total.update(array.astype("<i8").tobytes() if array.dtype.kind in "iuf" else "\n".join(array).encode())
    return total.hexdigest()


def _cache() -> Path | None:
    try:
        import pooch
    except ModuleNotFoundError:
        return None
    return Path(pooch.os_cache("codiag"))


def _download(source: Source) -> list[Path]:
    try:
        import pooch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("downloading needs pooch; get it with: pip install 'codiag[data]'") from error
    folder = pooch.os_cache("codiag") / source.folder
    try:
        # Contents are checked after reading, not the bytes, which differ by line ends.
        return [Path(pooch.retrieve(source.address + file, None, file, folder)) for file in source.original]
    except OSError as error:
        raise ConnectionError(
            f"{source.address} could not be reached ({type(error).__name__}). Without a network, set CODIAG_DATA_DIR "
            f"to a folder that holds {' and '.join(f'{source.folder}/{file}' for file in source.original)}"
        ) from error


def _way_out(name: str, source: Source) -> str:
    """Return the message for a data set that is not on this computer."""
    needed = " and ".join(f"{source.folder}/{file}" for file in source.converted)
    given = os.environ.get("CODIAG_DATA_DIR")
    if given:
        download = f". Without it, download=True gets them from {source.address}" if source.original else ""
        return f"{name} is not in CODIAG_DATA_DIR, {given}: it must contain {needed}{download}"
    if not source.original:
        return (
            f"{name} is not on this computer. Set CODIAG_DATA_DIR to a folder that holds {needed}; "
            f"it is published at {source.address} in a format of R"
        )
    return (
        f"{name} is not on this computer. Pass download=True to get it from {source.address}, "
        f"or set CODIAG_DATA_DIR to a folder that holds {needed}"
    )
