"""Data sets by name: tensors, networks and text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.io import loadmat

from codiag.datasets._registry import check_contents, locate, source_of


@dataclass(frozen=True, eq=False)
class FluorescenceData:
    """Fluorescence of samples by emission and excitation.

    Attributes
    ----------
    tensor : array of shape (n_samples, n_emission, n_excitation)
        As measured, with the scatter of water.
    samples : array of str of shape (n_samples,)
        Names.
    emission, excitation : arrays
        Wavelengths in nanometres.

    See Also
    --------
    load_eem : Returns one.
    """

    tensor: np.ndarray
    samples: np.ndarray
    emission: np.ndarray
    excitation: np.ndarray


def load_eem(*, download: bool = False) -> FluorescenceData:
    """Load the fluorescence of 15 water samples, the example of the R package staRdom.

    Parameters
    ----------
    download : bool
        The published file is one of R, which takes other software to read; so this raises unless the data set is in
        ``CODIAG_DATA_DIR`` or in the cache.

    Returns
    -------
    FluorescenceData
        ``tensor`` of shape (15, 99, 46), samples x emission x excitation.

    See Also
    --------
    load_microbiome : Another tensor.
    codiag.choose_rank : How many substances fluoresce.

    References
    ----------
    M. Pucher et al., "staRdom: Versatile software for analyzing spectroscopic data", Water 11(11), 2019.

    Examples
    --------
    >>> from codiag.datasets import is_local, load_eem
    >>> eem = load_eem() if is_local("eem") else None
    """
    with np.load(locate("eem", download=download)[0], allow_pickle=False) as file:
        data = FluorescenceData(
            file["X"].astype(np.float64), file["samples"].astype(str), file["emission"], file["excitation"]
        )
    check_contents("eem", [np.rint(1e4 * data.tensor), data.emission, data.excitation, data.samples])
    return data


def load_microbiome(*, download: bool = False) -> np.ndarray:
    """Load counts of bacteria in eight replicates over 110 days.

    Parameters
    ----------
    download : bool
        The published file is one of R, which takes other software to read; so this raises unless the data set is in
        ``CODIAG_DATA_DIR`` or in the cache.

    Returns
    -------
    array of shape (8, 28, 110)
        Counts, replicates x taxa x days. They are usually taken as ``log(count + 1)``, centred over taxa and replicates
        and scaled by taxon.

    See Also
    --------
    load_eem : Another tensor.

    References
    ----------
    H. Fujita et al., "Alternative stable states in microbiomes", Microbiome 11(63), 2023.

    Examples
    --------
    >>> from codiag.datasets import is_local, load_microbiome
    >>> counts = load_microbiome() if is_local("microbiome") else None
    """
    with np.load(locate("microbiome", download=download)[0], allow_pickle=False) as file:
        counts = np.asarray(file["counts"], dtype=np.float64)
    check_contents("microbiome", [counts])
    return counts


ATTRIBUTES = ("status", "gender", "major", "minor", "dorm", "year", "highschool")


@dataclass(frozen=True, eq=False)
class FacebookData:
    """A social network of one school.

    Attributes
    ----------
    adjacency : sparse array of shape (n, n)
        Symmetric, of zeros and ones.
    attributes : dict of arrays of shape (n,)
        status, gender, major, minor, dorm, year and highschool, as numbers; 0 if it is not known.

    See Also
    --------
    load_facebook : Load a network by name.
    codiag.models.MixedMembershipSBM : Takes `adjacency`.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from codiag.datasets import FacebookData
    >>> data = FacebookData(sparse.csr_array((4, 4)), {"dorm": np.array([7, 7, 0, 9])})
    >>> data.groups(["dorm"]).T.tolist()
    [[True, True, False, False], [False, False, False, True]]
    """

    adjacency: sparse.csr_array
    attributes: dict[str, np.ndarray]

    def groups(self, names: Sequence[str] = ("dorm", "major", "highschool"), *, min_size: int = 1) -> np.ndarray:
        """Return the groups of people who share the value of an attribute, as true communities.

        Parameters
        ----------
        names : sequence of str
            Attributes.
        min_size : int
            Smallest number of people in a group.

        Returns
        -------
        numpy.ndarray of bool of shape (n, n_groups)
            One column for each value of each attribute that at least `min_size` people share.

        See Also
        --------
        codiag.metrics.overlapping_nmi : Compares estimated communities with such groups.
        codiag.metrics.overlapping_nmi : Compares them by mutual information.

        Examples
        --------
        >>> import numpy as np
        >>> from scipy import sparse
        >>> from codiag.datasets import FacebookData
        >>> attributes = {"dorm": np.array([7, 7, 8, 0]), "major": np.array([1, 2, 2, 2])}
        >>> data = FacebookData(sparse.csr_array((4, 4)), attributes)
        >>> data.groups(["dorm", "major"], min_size=2).astype(int).tolist()
        [[1, 0], [1, 1], [0, 1], [0, 1]]
        """
        columns = []
        for name in names:
            values = self.attributes[name]
            kinds, sizes = np.unique(values[values > 0], return_counts=True)
            columns += [values == kind for kind, size in zip(kinds, sizes, strict=True) if size >= min_size]
        return np.stack(columns, axis=1)


def load_facebook(name: str, *, download: bool = False) -> FacebookData:
    """Load a network of friends at one school, and check that it is the published one.

    Parameters
    ----------
    name : {"UNC28", "Amherst41", "Simmons81", "Caltech36"}
        Which school.
    download : bool
        Whether to download it if it is neither in ``CODIAG_DATA_DIR`` nor in the cache.

    Returns
    -------
    FacebookData
        ``adjacency``, a symmetric sparse array of zeros and ones; ``attributes``, a dict of arrays of numbers, 0 if
        not known; and ``groups(names)``, the people who share the value of an attribute.

    See Also
    --------
    codiag.models.MixedMembershipSBM : Find communities in a network.
    names : The names of all data sets.

    References
    ----------
    A. L. Traud, P. J. Mucha and M. A. Porter, "Social structure of Facebook networks", Physica A 391(16), 2012.

    Examples
    --------
    >>> from codiag.datasets import load_facebook
    >>> load_facebook("Caltech36", download=True).adjacency.shape  # doctest: +SKIP
    (769, 769)
    """
    source_of(name, "facebook")
    (path,) = locate(name, download=download)
    if path.suffix == ".mat":
        contents = loadmat(path)
        upper, attributes = sparse.csr_array(sparse.triu(contents["A"], 1)), contents["local_info"]
    else:
        with np.load(path, allow_pickle=False) as file:
            links = (np.ones(file["indices"].size), file["indices"].astype(np.int64), file["indptr"])
            upper, attributes = sparse.csr_array(links, shape=(int(file["n"]),) * 2), file["attrs"]
    upper.sort_indices()
    attributes = attributes.astype(np.int64)
    check_contents(name, [upper.indptr, upper.indices, attributes])
    linked = sparse.csr_array(upper + upper.T, dtype=np.float64)
    linked.data[:] = 1.0
    return FacebookData(linked, dict(zip(ATTRIBUTES, attributes.T, strict=True)))


@dataclass(frozen=True, eq=False)
class CorpusData:
    """A text corpus as counts of words.

    Attributes
    ----------
    counts : scipy.sparse.csr_array of shape (n_documents, n_words)
        How often every word occurs in every document.
    vocabulary : numpy.ndarray of str of shape (n_words,)
        The words.

    See Also
    --------
    load_kos : Load the corpus of the paper's topics.
    codiag.reports.topics_report : Takes counts and vocabulary.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import sparse
    >>> from codiag.datasets import CorpusData
    >>> data = CorpusData(sparse.csr_array([[2, 0], [1, 3]]), np.array(["cat", "dog"]))
    >>> data.counts.sum(axis=0).tolist()
    [3, 3]
    """

    counts: sparse.csr_array
    vocabulary: np.ndarray


def load_kos(*, download: bool = False) -> CorpusData:
    """Load the KOS blog entries, and check that they are the published ones.

    Parameters
    ----------
    download : bool
        Whether to download them if they are neither in ``CODIAG_DATA_DIR`` nor in the cache.

    Returns
    -------
    CorpusData
        ``counts``, a sparse array of shape (3430, 6906), documents x words, and ``vocabulary``, an array of the words.

    See Also
    --------
    codiag.models.LatentDirichlet : Estimate topics from counts.
    codiag.models.SingleTopic : Estimate topics with one for each document.

    References
    ----------
    D. Newman, "Bag of Words", UCI Machine Learning Repository, 2008, doi 10.24432/C5ZG6P.

    Examples
    --------
    >>> from codiag.datasets import load_kos
    >>> load_kos(download=True).counts.shape  # doctest: +SKIP
    (3430, 6906)
    """
    files = locate("kos", download=download)
    if files[0].suffix == ".npz":
        with np.load(files[0], allow_pickle=False) as file:
            rows, columns, numbers, words = (file[name] for name in ("doc", "word", "count", "vocab"))
    else:  # numbers of documents, of words and of entries, then a document, a word and a count on every line, from one
        rows, columns, numbers = np.loadtxt(files[0], dtype=np.int64, skiprows=3).T - np.array([[1], [1], [0]])
        words = np.array(files[1].read_text(encoding="utf-8").split())
    counts = sparse.csr_array((numbers.astype(np.float64), (rows, columns)), shape=(int(rows.max()) + 1, words.size))
    counts.sort_indices()
    check_contents("kos", [counts.indptr, counts.indices, counts.data, words])
    return CorpusData(counts, words)


@dataclass(frozen=True, eq=False)
class CrowdData:
    """Votes of a crowd, and the true labels of some tasks.

    Attributes
    ----------
    votes : dict of arrays
        ``task``, ``worker`` and ``label`` of every vote, as `codiag.models.DawidSkene` takes them.
    truth : dict of arrays
        ``task`` and ``truth``, for tasks whose true label is known.

    See Also
    --------
    load_crowd : Load a data set by name.
    codiag.models.DawidSkene : Takes `votes`.

    Examples
    --------
    >>> import numpy as np
    >>> from codiag.datasets import CrowdData
    >>> votes = {"task": np.array([1, 1, 2]), "worker": np.array([0, 1, 0]), "label": np.array([5, 5, 6])}
    >>> data = CrowdData(votes, {"task": np.array([1, 2]), "truth": np.array([5, 5])})
    >>> data.accuracy([1, 2], [5, 6])
    0.5
    """

    votes: dict[str, np.ndarray]
    truth: dict[str, np.ndarray]

    def accuracy(self, tasks: ArrayLike, labels: ArrayLike, n_tasks: int | None = None) -> float:
        """Return the share of labels that are right.

        Parameters
        ----------
        tasks, labels : array of shape (n,)
            Tasks, and the labels that a method gives them.
        n_tasks : int, optional
            The number of tasks to divide by; by default the number of those whose true label is known.

        Returns
        -------
        float
            Between 0 and 1.

        See Also
        --------
        codiag.models.DawidSkene.label_table : The labels of a model by task.

        Examples
        --------
        >>> import numpy as np
        >>> from codiag.datasets import CrowdData
        >>> truth = {"task": np.array([0, 1, 2, 3]), "truth": np.array(["cat", "dog", "cat", "cat"])}
        >>> CrowdData(votes={}, truth=truth).accuracy([0, 1, 2, 3], ["cat", "dog", "dog", "cat"])
        0.75
        """
        given = dict(zip(np.asarray(tasks).tolist(), np.asarray(labels).tolist(), strict=True))
        known = zip(self.truth["task"].tolist(), self.truth["truth"].tolist(), strict=True)
        return sum(given.get(task) == truth for task, truth in known) / (n_tasks or self.truth["task"].size)


def load_crowd(name: str, *, download: bool = False) -> CrowdData:
    """Load votes of a real crowd, and check that they are the published ones.

    Parameters
    ----------
    name : {"bluebird", "rte", "dog", "web", "anesthesia"}
        Which data set.
    download : bool
        Whether to download it if it is neither in ``CODIAG_DATA_DIR`` nor in the cache.

    Returns
    -------
    CrowdData
        ``votes``, a dict of the arrays ``task``, ``worker`` and ``label``; ``truth``, a dict of the arrays ``task`` and
        ``truth``; and ``accuracy(tasks, labels)``, the share of labels that are right.

    See Also
    --------
    codiag.models.DawidSkene : Estimate labels and workers from votes.
    names : The names of all data sets.

    References
    ----------
    Y. Zhang, X. Chen, D. Zhou and M. I. Jordan, "Spectral Methods Meet EM", JMLR 17(102), 2016; "anesthesia" is of
    A. P. Dawid and A. M. Skene, Applied Statistics 28(1), 1979.

    Examples
    --------
    >>> from codiag.datasets import load_crowd
    >>> data = load_crowd("bluebird", download=True)  # doctest: +SKIP
    >>> data.votes["label"].size, data.truth["task"].size  # doctest: +SKIP
    (4212, 108)
    """
    source_of(name, "crowd")
    votes, *known = [_rows(path) for path in locate(name, download=download)]
    truth = np.unique(known[0], axis=0) if known else np.zeros((0, 2), dtype=np.int64)
    check_contents(name, [votes[np.lexsort(votes.T[::-1])], truth])
    votes_by_column = dict(zip(("task", "worker", "label"), votes.T, strict=True))
    return CrowdData(votes_by_column, {"task": truth[:, 0], "truth": truth[:, 1]})


def _rows(path: Path) -> np.ndarray:
    """Return a table of whole numbers: with commas and a line of names, or as published, without."""
    names = {"delimiter": ",", "skiprows": 1} if ".csv" in path.suffixes else {}
    return np.loadtxt(path, dtype=np.int64, ndmin=2, **names)  # type: ignore[call-overload]
