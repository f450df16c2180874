"""Social networks of schools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

from codiag._text import as_file, ending_of, read_mat, readable
from codiag.datasets._registry import check_contents, locate, source_of

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
    read_facebook : Read a file of the same format.
    codiag.models.MixedMembershipCommunities : Takes `adjacency`.

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
        codiag.metrics.recovery_curve : Compares estimated communities with such groups.
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
    read_facebook : Read a file of your own.
    codiag.models.MixedMembershipCommunities : Find communities in a network.
    names : The names of all data sets.

    Examples
    --------
    >>> from codiag.datasets import load_facebook
    >>> load_facebook("Caltech36", download=True).adjacency.shape  # doctest: +SKIP
    (769, 769)
    """
    source_of(name, "facebook")
    data = read_facebook(*locate(name, download=download))
    upper = sparse.csr_array(sparse.triu(data.adjacency, 1))
    upper.sort_indices()
    check_contents(name, [upper.indptr, upper.indices, np.stack(list(data.attributes.values()), axis=1)])
    return data


def read_facebook(path: str | Path) -> FacebookData:
    """Read a network of friends.

    Parameters
    ----------
    path : str or Path
        A ``.mat`` file as published, with ``A`` and ``local_info``, or an ``.npz`` file with ``n``, ``indices``,
        ``indptr`` (of the part above the diagonal) and ``attrs``.

    Returns
    -------
    FacebookData
        As from `load_facebook`.

    See Also
    --------
    load_facebook : Load a network by name.
    codiag.io.read_graph : Read graphs of other formats.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from codiag.datasets import read_facebook
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = {"n": 2, "indices": [1], "indptr": [0, 1, 1], "attrs": np.ones((2, 7))}
    ...     np.savez(f"{folder}/two.npz", **parts)
    ...     read_facebook(f"{folder}/two.npz").adjacency.toarray().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    path = as_file("path", path)
    with readable(path):
        upper, attributes = _read_mat(path) if ending_of(path) == ".mat" else _read_npz(path)
        linked = sparse.csr_array(upper + upper.T, dtype=np.float64)
        linked.data[:] = 1.0
        named = zip(ATTRIBUTES, attributes.astype(np.int64).T, strict=True)
        return FacebookData(linked, dict(named))


def _read_mat(path: Path) -> tuple[sparse.csr_array, np.ndarray]:
    contents = read_mat(path)
    missing = {"A", "local_info"} - set(contents)
    if missing:
        raise ValueError(f"{path.name} must contain A and local_info; it lacks {', '.join(sorted(missing))}")
    links = contents["A"]
    if sparse.issparse(links):
        links.check_format()  # before a conversion that does not check it
    return sparse.csr_array(sparse.triu(sparse.csr_array(links), 1)), np.asarray(contents["local_info"])


def _read_npz(path: Path) -> tuple[sparse.csr_array, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        n, ends = int(file["n"]), file["indices"].astype(np.int64)
        upper = sparse.csr_array((np.ones(ends.size), ends, file["indptr"]), shape=(n, n))
        upper.check_format()  # SciPy reads outside of its arrays if an index is too large
        return upper, file["attrs"]
