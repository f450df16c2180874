"""What a factorization returns."""

from __future__ import annotations

import json
import math
import os
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from array_api_compat import array_namespace

from codiag._array import Array, all_equal, to_host
from codiag._estimate import Stage
from codiag._reading import as_file, as_path
from codiag._writing import save_arrays
from codiag.tensors import FactoredTensor

if TYPE_CHECKING:
    from codiag._problem import Problem
    from codiag.theory._diagnosis import Diagnosis
    from codiag.theory._sensitivity import Sensitivity

FORMAT = "codiag factorization 1"


@dataclass(frozen=True, eq=False, repr=False)
class Factorization:
    r"""A tensor as a sum of components, :math:`T \approx \sum_i w_i\, a_i \otimes b_i \otimes c_i \otimes \dots`.

    Unpacks as ``weights, factors = fit``, so that functions of TensorLy and TLViz take it as it is.

    Attributes
    ----------
    weights : array of shape (rank,)
        Largest first. Positive, except where the sign cannot go elsewhere: for a symmetric tensor of even order, and
        where constraints hold for all modes.
    factors : tuple of arrays of shape (d_m, rank)
        Unit columns, one array per mode; one and the same for all modes if symmetric. The largest entry of a column is
        positive in all modes but the last, and in all modes of a symmetric tensor of even order; modes with constraints
        keep their signs.
    relative_error : float
        :math:`\|T - \text{fit}\| / \|T\|`, over the entries that were observed, with their weights.
    norm : float
        :math:`\|T\|`, likewise, with weights relative to their mean.
    converged : bool
        Whether the method reached its tolerance, with components that do not cancel each other beyond all measure.
    stages : tuple of Stage
        How it came about: name, sweeps, objective and seconds of each stage.
    residual_excess : float, optional
        How many times the strongest direction of the residual exceeds what white noise would leave in any: up to 1
        where the residual passes for noise, more where a component was missed. None where that was not computed: the
        tensor is not held entry by entry, has more than two million of them, or fewer than two a parameter.
    symmetric : bool
        Whether all modes share one factor. By default detected.
    n_observed : int
        Number of entries that count: those that were observed, with a weight that is not zero. By default all.
    problem : Problem, optional
        What was asked, where constraints or missing entries matter to `noise` and `standard_errors`: these are computed
        from it. Files and pickled copies hold them in its place.

    Examples
    --------
    >>> import numpy as np
    >>> import codiag
    >>> fit = codiag.factorize(np.ones((3, 4, 5)), 1, seed=0)
    >>> weights, factors = fit
    >>> fit.rank, fit.shape, fit.converged
    (1, (3, 4, 5), True)
    """

    weights: Array
    factors: tuple[Array, ...]
    relative_error: float
    norm: float
    converged: bool
    stages: tuple[Stage, ...] = ()
    residual_excess: float | None = None
    symmetric: bool | None = None
    n_observed: int | None = None
    problem: Problem | None = None

    def __post_init__(self) -> None:
        if self.symmetric is not False:
            object.__setattr__(self, "symmetric", all_equal(self.factors))
        if self.n_observed is None:
            object.__setattr__(self, "n_observed", math.prod(self.shape))

    @property
    def rank(self) -> int:
        """Number of components."""
        return int(self.weights.shape[0])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the tensor."""
        return tuple(int(factor.shape[0]) for factor in self.factors)

    @cached_property
    def tensor(self) -> FactoredTensor:
        """The fit as a tensor that is never formed."""
        return FactoredTensor(self.weights, self.factors, symmetric=self.symmetric)

    @cached_property
    def noise(self) -> float:
        """Standard deviation of white noise in the entries that would leave this residual.

        Where entries have weights, of the noise in one of mean weight; that in others goes with one over the root of
        their weight. For a symmetric tensor, of the noise before it was averaged over permutations of the modes. NaN
        where no more entries were observed than there are parameters.
        """
        from codiag.theory._sensitivity import noise_level

        return noise_level(self)

    @cached_property
    def standard_errors(self) -> np.ndarray:
        r"""Standard errors :math:`(E\|\tilde a_i - a_i\|^2)^{1/2}` of the factors, shape (n_modes, rank).

        First-order theory of least squares with white noise, from the data alone: valid at the end of a fit by least
        squares (`Auto`, `NLS`), where the model is right and errors are small. Computed when asked for, at the cost of
        inverting a matrix of ``sum(min(d_m, rank)) * rank`` rows.

        Under constraints, what these hold does not move: entries of non-negative factors that are zero, and fixed
        factors, whose standard errors are zero; orthogonal columns move together. Weights of entries are taken for one
        over the variance of their noise, up to a common factor; the strengths of ridges for the variance of the noise
        over that of the factors' entries, so that what they hold back counts as uncertain. Factors with rows for which
        too little was observed have infinite errors; `diagnose` names these rows. All this takes a matrix with as many
        rows as there are free unknowns; where these are more than 3000, errors are NaN.
        """
        with np.errstate(invalid="ignore"):  # no noise times no certainty
            return np.where(np.isinf(self.sensitivity.factors), np.inf, self.noise * self.sensitivity.factors)

    @cached_property
    def entry_standard_errors(self) -> tuple[np.ndarray, ...]:
        """Standard errors of the entries of the factors, in the shapes of these: error bars for what is drawn of them.

        As `standard_errors`, whose squares are their sums over rows. Entries of rows for which too little was observed
        have infinite errors; those of the other rows are as if these rows were known.
        """
        with np.errstate(invalid="ignore"):
            return tuple(np.where(np.isinf(own), np.inf, self.noise * own) for own in self.sensitivity.entries)

    @cached_property
    def weight_standard_errors(self) -> np.ndarray:
        """Standard errors of the weights, shape (rank,), by the same theory; NaN where there were too many unknowns."""
        with np.errstate(invalid="ignore"):
            own = self.sensitivity.weights
            return np.where(np.isinf(own), np.inf, self.noise * own)

    @cached_property
    def sensitivity(self) -> Sensitivity:
        """What noise of unit variance does to the components, and what each of them is worth."""
        from codiag.theory._restricted_sensitivity import restricted_sensitivity
        from codiag.theory._sensitivity import sensitivity

        return sensitivity(self.tensor) if self.problem is None else restricted_sensitivity(self.tensor, self.problem)

    def diagnose(self) -> Diagnosis:
        """Tell which components are well determined and which are not, and why; print it to read it.

        Returns
        -------
        codiag.theory.Diagnosis
        """
        from codiag.theory._diagnosis import diagnose

        return diagnose(self)

    def to_tensor(self) -> Array:
        """Form the tensor that the components add up to.

        Returns
        -------
        array of shape (d_0, d_1, ...)
        """
        return self.tensor.to_dense()

    def to_tensorly(self) -> Any:
        """Convert to TensorLy, with copies, so that changing one mode leaves the others.

        Returns
        -------
        tensorly.cp_tensor.CPTensor
        """
        from tensorly.cp_tensor import CPTensor

        return CPTensor((_copied(self.weights), [_copied(factor) for factor in self.factors]))

    def to_pyttb(self) -> Any:
        """Convert to pyttb, with copies in double precision, the only one that pyttb knows.

        Returns
        -------
        pyttb.ktensor
        """
        from pyttb import ktensor

        return ktensor([to_host(factor).astype(float) for factor in self.factors], to_host(self.weights).astype(float))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write an ``.npz`` file, all of it or nothing.

        Parameters
        ----------
        path : str or path
            The ending is added where it is missing.
        """
        meta = {
            "format": FORMAT,
            "relative_error": self.relative_error,
            "norm": self.norm,
            "converged": self.converged,
            "symmetric": self.symmetric,
            "order": len(self.factors),
            "residual_excess": self.residual_excess,
            "stages": [list(stage) for stage in self.stages],
            "n_observed": self.n_observed,
        }
        kept = self.factors[:1] if self.symmetric else self.factors
        arrays = {f"factor_{mode}": to_host(factor) for mode, factor in enumerate(kept)}
        if self.problem is not None or "sensitivity" in vars(self):
            meta |= {"noise": self.noise, "n_parameters": self.sensitivity.n_parameters}
            meta["undetermined"] = self.sensitivity.undetermined
            arrays |= {f"sensitivity_{mode}": self.sensitivity.entries[mode] for mode in range(len(kept))}
            arrays |= {"worth": self.sensitivity.worth, "sensitivity_weights": self.sensitivity.weights}
        arrays |= {"weights": to_host(self.weights), "meta": np.array(json.dumps(meta))}
        name = str(as_path("path", path))
        save_arrays(Path(name if name.lower().endswith(".npz") else name + ".npz"), arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Factorization:
        """Read what `save` has written; nothing in the file is ever executed.

        Parameters
        ----------
        path : str or path
            Also as it was given to `save`, without the ending.

        Returns
        -------
        Factorization
        """
        path = as_path("path", path)
        if not path.exists() and Path(f"{path}.npz").exists():
            path = Path(f"{path}.npz")
        path = as_file("path", path)
        try:
            with zipfile.ZipFile(path), np.load(path, allow_pickle=False) as file:
                return cls._read(file)
        except Exception as error:  # damage shows as errors of almost any kind
            raise ValueError(f"{path} was not written by Factorization.save, or is damaged: {error}") from error

    @classmethod
    def _read(cls, file: Any) -> Factorization:
        meta = json.loads(str(file["meta"]))
        if meta["format"] != FORMAT:
            raise KeyError("format")
        order, symmetric = meta["order"], meta["symmetric"]
        factors = [file[f"factor_{mode}"] for mode in range(1 if symmetric else order)]
        fit = cls(
            weights=file["weights"],
            factors=tuple(factors * (order if symmetric else 1)),
            relative_error=meta["relative_error"],
            norm=meta["norm"],
            converged=meta["converged"],
            stages=tuple(Stage(*stage) for stage in meta["stages"]),
            residual_excess=meta.get("residual_excess"),
            symmetric=symmetric,
            n_observed=meta.get("n_observed"),
        )
        if "worth" in file:
            from codiag.theory._sensitivity import Sensitivity

            rows = tuple(tuple(mode) for mode in meta["undetermined"])
            entries = [file[f"sensitivity_{mode}"] for mode in range(len(factors))] * (order if symmetric else 1)
            worth = file["worth"]
            weights = file["sensitivity_weights"] if "sensitivity_weights" in file else np.full_like(worth, np.nan)
            known = Sensitivity(tuple(entries), worth, meta["n_parameters"], rows, weights)
            vars(fit).update(sensitivity=known, noise=meta["noise"])
        return fit

    def __getstate__(self) -> dict[str, Any]:
        if self.problem is None:
            return vars(self)
        return vars(self) | {"problem": None, "sensitivity": self.sensitivity, "noise": self.noise}

    def __iter__(self) -> Iterator[Any]:
        return iter((self.weights, list(self.factors)))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> Any:
        return (self.weights, list(self.factors))[index]

    def __repr__(self) -> str:
        kind = "symmetric " if self.symmetric else ""
        return (
            f"Factorization({self.rank} components of a {kind}tensor {' x '.join(str(size) for size in self.shape)}, "
            f"relative_error={self.relative_error:.3g}, converged={self.converged})"
        )


def _copied(array: Array) -> Array:
    return array_namespace(array).asarray(array, copy=True)
