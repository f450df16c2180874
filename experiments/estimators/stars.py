"""Memberships from the third moment of 3-stars, by the estimator of Anandkumar, Ge, Hsu & Kakade.

The nodes are in four parts. Links of the nodes of the first part to the three others are three views of their
memberships. Two views are mapped to the third, moments are whitened by W, and the whitened third moment has the
components (weights, vectors). Memberships of a node with links g to the third part are
weights^-1 vectors' W' g; vectors that are not orthonormal are used as they are, or replaced by their polar factor.

References
----------
A. Anandkumar, R. Ge, D. Hsu and S. Kakade, "A tensor approach to learning mixed membership community models", J. Mach.
Learn. Res. 15, 2014 (first at COLT 2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from codiag.least_squares import Log
from codiag.methods import OJD, TPM
from codiag.models.base import ViewMoments, leading_range, on_simplex_rows
from codiag.models.communities import as_network, scaled_stars
from codiag.tensors import FactoredTensor, Tensor, symmetrize
from experiments.fitting import silent_fit

K = 100
"""Number of communities."""
ALPHA = 0.1
"""Total of the Dirichlet parameters of memberships."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PolarTPM(TPM):
    """The tensor power method, with the polar factor of its vectors in their place: the nearest orthonormal ones."""

    def _deflate(self, tensor: Tensor, rank: int, rng: np.random.Generator, log: Log) -> tuple[FactoredTensor, bool]:
        components, converged = super()._deflate(tensor, rank, rng, log)
        polar = polar_factor(np.asarray(components.factors[0]))
        weights = np.einsum("abc,ai,bi,ci->i", np.asarray(tensor.to_dense()), polar, polar, polar, optimize=True)
        return FactoredTensor(weights, (polar,) * 3, symmetric=True), converged


def polar_factor(vectors: np.ndarray) -> np.ndarray:
    """Return the orthonormal columns nearest to some vectors."""
    left, _, right = np.linalg.svd(vectors, full_matrices=False)
    return np.asarray(left @ right)


@dataclass(frozen=True, eq=False)
class WhiteStars:
    """The whitened third moment of 3-stars, with what takes the links of nodes to its coordinates."""

    core: np.ndarray  # (k, k, k)
    links: Any  # (nodes, nodes)
    parts: list[np.ndarray]  # the centers, then the three views
    maps: list[np.ndarray]  # (nodes of a view, k): from links to white coordinates

    @classmethod
    def of(cls, adjacency: Any, rng: np.random.Generator) -> WhiteStars:
        """Compute the moments of a network over one random partition of its nodes."""
        stars = scaled_stars(as_network(adjacency), False)
        parts = np.array_split(rng.permutation(stars.rows.size), 4)
        weights = np.full(parts[0].size, 1 / parts[0].size)
        views = [stars.links[parts[0]][:, leaf] for leaf in parts[1:]]
        bases = [_basis(views, place) for place in range(3)]
        small = [view @ basis for view, basis in zip(views, bases, strict=True)]
        moments = ViewMoments(small, weights, ALPHA)
        to_last = [
            moments.pairs(2, 1) @ np.linalg.pinv(moments.pairs(0, 1)),
            moments.pairs(2, 0) @ np.linalg.pinv(moments.pairs(1, 0)),
            np.eye(K),
        ]
        second = to_last[0] @ moments.pairs(0, 1) @ to_last[1].T
        values, vectors = np.linalg.eigh((second + second.T) / 2)
        whitening = vectors / np.sqrt(np.maximum(np.abs(values), 1e-12 * np.abs(values).max()))
        inside = [one.T @ whitening for one in to_last]
        third = np.asarray(moments.third.to_dense())
        core = symmetrize(np.einsum("abc,ai,bj,ck->ijk", third, *inside, optimize=True))
        maps = [basis @ one for basis, one in zip(bases, inside, strict=True)]
        return cls(core, stars.links, parts, maps)

    def components(self, seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """Return weights and vectors of the whitened moment by method; those of TPM also as their polar factor."""
        found = {}
        for name, method in (("OJD1", OJD()), ("TPM (transpose)", TPM(tol=1e-6, max_iter=60))):
            fit = silent_fit(self.core, K, method=method, symmetric=True, seed=seed)
            found[name] = np.asarray(fit.weights), np.asarray(fit.factors[0])
        polar = polar_factor(found["TPM (transpose)"][1])
        found["TPM (polar)"] = np.einsum("abc,ai,bi,ci->i", self.core, polar, polar, polar, optimize=True), polar
        return found

    def memberships(self, weights: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """Return memberships (nodes, k), rows on the simplex, from the links to the views that a node is not in."""
        raw = np.empty((self.links.shape[0], K))
        for place, nodes in enumerate(self.parts):
            others = [view for view in range(3) if view + 1 != place]
            white = sum(self.links[nodes][:, self.parts[view + 1]] @ self.maps[view] for view in others) / len(others)
            raw[nodes] = white @ vectors / weights
        return on_simplex_rows(raw)


def _basis(views: list[Any], place: int) -> np.ndarray:
    """Return the K directions of a view that are most correlated with the other views."""
    others = [view for index, view in enumerate(views) if index != place]

    def multiply(columns: np.ndarray) -> np.ndarray:
        products = views[place] @ columns
        return np.asarray(views[place].T @ sum(other @ (other.T @ products) for other in others))

    return leading_range(multiply, views[place].shape[1], K, random_state=0)
