"""What a fit and its residual show of components, samples, pairs and modes, each computed when it is asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from codiag._arrays import is_complex, to_double, to_host
from codiag._text import Table, listed
from codiag.diagnosis._data import Entry, entries_out_of_line, leverages, lone_samples, loudness
from codiag.diagnosis._halves import replications
from codiag.diagnosis._identifiability import factor_condition
from codiag.diagnosis._shifts import Shift, shift_of
from codiag.diagnosis._significance import SignFlips
from codiag.inference import SEPARATED, residual_of
from codiag.labels import Labels
from codiag.least_squares import BRIEF, LeastSquares, largest_term_of_unit_noise, minimize
from codiag.metrics import consistency_of
from codiag.problem import groups_of, interior
from codiag.result import congruences, degenerate_pairs
from codiag.search import objectives_without

if TYPE_CHECKING:
    from codiag.result import Factorization

EQUAL, FAIR = 0.95, 0.85
"""Congruence from which two factors count as equal, and as similar: U. Lorenzo-Seva and J. M. F. ten Berge, "Tucker's
congruence coefficient as a meaningful index of factor similarity", Methodology 2, 2006."""

DETERMINED, ROUGHLY, NOT, UNKNOWN = "determined", "roughly determined", "not determined", "unknown"
"""Verdicts on a component, by its expected congruence with the true one: at least `EQUAL`, at least `FAIR`, less."""


def verdict_by(error: float) -> str:
    """Return the verdict on a component whose column has a standard error, relative to its length."""
    if math.isnan(error):
        return UNKNOWN
    congruence = 1 - error**2 / 2
    return DETERMINED if congruence >= EQUAL else ROUGHLY if congruence >= FAIR else NOT


@dataclass(frozen=True, eq=False)
class Facts:
    """What an assessment is made of, each computed when it is asked for.

    Attributes
    ----------
    fit : Factorization
    below : Factorization, optional
        A fit of a lower rank to the same data.
    """

    fit: Factorization
    below: Factorization | None = field(default=None)

    @cached_property
    def factors(self) -> list[np.ndarray]:
        """Unit factors on the host, with zeros in rows that were never observed."""
        return [to_double(to_host(factor)) for factor in self.fit._components.factors]

    @cached_property
    def weights(self) -> np.ndarray:
        """Magnitudes of the weights."""
        return np.abs(to_double(to_host(self.fit.weights)))

    @cached_property
    def labels(self) -> Labels:
        """Names of modes and indices; numbers where there are none."""
        return self.fit._labels

    @cached_property
    def residual(self) -> np.ndarray | None:
        """The residual times the roots of the weights of entries, zero for missing ones; None without the entries."""
        problem = self.fit._data
        if problem is None or problem.tensor.shape != self.fit.shape:
            return None
        return residual_of(self.fit, problem)[0]

    @cached_property
    def seen(self) -> np.ndarray:
        """Which entries were observed."""
        problem = self.fit._data
        return np.ones(self.fit.shape, dtype=bool) if problem is None else problem.observed_mask()

    @cached_property
    def flips(self) -> SignFlips | None:
        """Sign flips of the residual; None without entries, or residual degrees of freedom, and if nothing is left."""
        return None if self.fit._is_exact else SignFlips.of(self.fit)

    @cached_property
    def contributions(self) -> np.ndarray:
        """Squared distance that each component explains which no other component can."""
        found = self.fit._sensitivity.unique_contributions
        if np.any(np.isnan(found)) and self.fit._data is not None:
            problem, components = self.fit._data, self.fit._components
            gaps = objectives_without(problem, components) - LeastSquares(problem).distance(components) / 2
            found = 2 * gaps / problem.data.mean_weight
        if self.below is not None and self.below.rank < self.fit.rank:
            gain = (self.below.relative_error * self.below._norm) ** 2 - (self.fit.relative_error * self.fit._norm) ** 2
            least = int(np.argmin(found))
            if self.fit._deviance is None:
                found = np.where(np.arange(found.size) == least, np.minimum(found, max(gain, 0.0)), found)
        return found

    @cached_property
    def significances(self) -> np.ndarray:
        """The size of each component relative to the largest term that noise may have; NaN if noise is not known."""
        noise = self.fit._noise
        sizes = np.sqrt(np.maximum(self.contributions, 0.0))
        if self.fit._is_exact or noise == 0:
            return np.where(sizes > 0, np.inf, 0.0)
        if self.flips is not None:
            units = [factor / np.maximum(np.linalg.norm(factor, axis=0), 1e-300) for factor in self.factors]
            pairs = enumerate(sizes.tolist())
            found = np.array([self._ratio(size, [unit[:, r] for unit in units]) for r, size in pairs])
            return found if self.fit._deviance is None else self._by_deviance(found)
        if not math.isfinite(noise):
            return np.full(sizes.size, np.nan)
        groups = groups_of(bool(self.fit._symmetric), len(self.fit.shape))
        n_numbers = 2 if is_complex(self.factors[0]) else 1
        return sizes / (noise * largest_term_of_unit_noise(self.fit.shape, groups, n_numbers) / math.sqrt(n_numbers))

    def _ratio(self, size: float, factors: Sequence[np.ndarray]) -> float:
        """Return the size of a component relative to noise: on a part of many entries, if that is clear enough."""
        assert self.flips is not None
        found = self.flips.part.ratio(size, factors)
        return found if found > 1 or self.flips.part is self.flips else self.flips.ratio(size, factors)

    def _by_deviance(self, found: np.ndarray) -> np.ndarray:
        """Return significances under a loss, those that are small by how much the deviance grows without a component.

        Far from the fit, as where a model of counts vanishes, a deviance is not nearly quadratic.
        """
        assert self.flips is not None
        scale = self.fit.deviance.dispersion / self.fit._noise**2
        for r in np.flatnonzero(found <= 1):
            grown = deviance_without(self.fit, int(r))
            if grown > 0:
                found[r] = max(found[r], math.sqrt(grown / scale) / self.flips.bound)
        return found

    @cached_property
    def errors(self) -> np.ndarray:
        """The largest standard error of each component over modes; infinite where the noise is not known."""
        errors = np.asarray(self.fit.standard_errors)
        infinite = np.any(np.isinf(errors), axis=0) | math.isnan(self.fit._noise)
        return np.where(infinite, np.inf, np.max(errors, axis=0))

    @property
    def is_undetermined(self) -> bool:
        """Whether a component is not determined, but for rows of which too little was observed."""
        squares = np.zeros(self.fit.rank)
        for errors, rows in zip(self.fit.entry_standard_errors, self.fit._sensitivity.undetermined, strict=True):
            squares = np.maximum(squares, np.nansum(np.delete(errors, rows, axis=0) ** 2, axis=0))
        return bool(np.any(1 - squares / 2 < FAIR))

    @cached_property
    def congruences(self) -> np.ndarray:
        """Products of the cosines between components over modes, signed by their weights."""
        return congruences(self.fit)

    @cached_property
    def separations(self) -> np.ndarray:
        """Distances of the columns of two components in standard errors, (n_modes, k, k)."""
        return self.fit._noise_errors.separations

    @cached_property
    def degenerate(self) -> tuple[tuple[int, int, float], ...]:
        """Pairs of components that are degenerate, with their congruence."""
        return degenerate_pairs(self.weights, self.congruences)

    @property
    def correlated(self) -> tuple[int, ...]:
        """The modes along which noise is correlated."""
        return () if self.fit._noise_model is None else self.fit._noise_model.correlated

    @cached_property
    def replications(self) -> np.ndarray:
        """Congruence of each component in two halves of the data."""
        return replications(self.fit, self.correlated)

    @cached_property
    def entries(self) -> tuple[Entry, ...]:
        """Entries that are out of line."""
        if self.residual is None or self.fit._is_exact:
            return ()
        return tuple(entries_out_of_line(self.fit, self.residual, self.seen, self.contributions))

    @cached_property
    def lone_samples(self) -> dict[tuple[int, int], int]:
        """Samples that carry a component alone, by mode and index."""
        return {} if self.fit._symmetric else lone_samples(self.factors)

    @cached_property
    def loudness(self) -> list[np.ndarray]:
        """The residual of each index of each mode, relative to the median of the mode."""
        if self.residual is None or self.fit._is_exact:
            return [np.full(size, np.nan) for size in self.fit.shape]
        return loudness(self.residual, self.seen)

    @cached_property
    def shift(self) -> Shift | None:
        """Along which mode profiles shift."""
        if self.residual is None or self.fit._symmetric or self.fit._is_exact or is_complex(self.residual):
            return None
        if self.fit._deviance is not None:
            return None
        return shift_of(self.residual, self.weights, self.factors, self.labels.are_ordered)

    @cached_property
    def residual_ratio(self) -> float:
        """The strongest term of the residual relative to the largest that noise may have."""
        if self.fit._is_exact:
            return 0.0
        return math.nan if self.flips is None else self.flips.part.residual_ratio

    @cached_property
    def core_consistency(self) -> float:
        """Core consistency in percent; NaN without the entries."""
        problem = self.fit._data
        return math.nan if problem is None or self.residual is None else consistency_of(self.fit._components, problem)

    @property
    def p_missed(self) -> float:
        """The chance that a lower minimum was missed."""
        return max((stage.p_missed for stage in self.fit.history), default=0.0)

    @cached_property
    def verdicts(self) -> tuple[list[str], list[str]]:
        """The verdict on each component, and what stands in its way."""
        pairs = [self._verdict(r) for r in range(self.fit.rank)]
        return [verdict for verdict, _ in pairs], [reason for _, reason in pairs]

    def _verdict(self, r: int) -> tuple[str, str]:
        partner = next((i + j - r for i, j, _ in self.degenerate if r in (i, j)), None)
        lone = next((entry for entry in self.entries if entry.component == r), None)
        if partner is not None:
            return NOT, f"degenerate with component {partner + 1}{self._where_joined(r, partner)}"
        if lone is not None:
            return NOT, f"carried by one entry alone, {self.named(lone.place)}"
        if not math.isfinite(self.fit._noise):
            return NOT, "the noise is not known, since there are no more entries than parameters"
        if self.significances[r] <= 1:
            return NOT, "not significant, since noise may have terms as large"
        verdict = verdict_by(error := float(self.errors[r]))
        if verdict == UNKNOWN:
            return verdict, "standard errors were not computed"
        return verdict, "" if verdict == DETERMINED else self._reason(r, error)

    def _reason(self, r: int, error: float) -> str:
        """Return why a component is not determined."""
        rows = self.fit._sensitivity.undetermined
        if math.isinf(error) and any(rows):
            return f"too few entries were observed at {self.named_rows(rows)}"
        modes = range(len(self.fit.shape))
        joined = [s for s in range(self.fit.rank) if s != r and any(self._is_joined(mode, r, s) for mode in modes)]
        if math.isinf(error) and joined:
            return f"not separated from component {joined[0] + 1}{self._where_joined(r, joined[0])}"
        likeness = np.abs(self.congruences[r])
        likeness[r] = 0
        twin = int(np.argmax(likeness))
        said = "the entries do not determine it" if math.isinf(error) else f"standard error {error:.2g}"
        if likeness[twin] > 0.5:
            return f"{said}, similar to component {twin + 1} (congruence {self.congruences[r, twin]:.2f})"
        largest = max(factor_condition(factor) for factor in self.factors)
        if largest > 10:
            return f"{said}, since columns are nearly collinear (condition numbers up to {largest:.3g})"
        return f"{said}, since its weight {self.weights[r]:.3g} is small for noise of {self.fit._noise:.3g} in an entry"

    def _where_joined(self, r: int, s: int) -> str:
        """Return the modes in which the profiles of two components are not separated, in words."""
        names = [name for mode, name in enumerate(self.labels.names) if self._is_joined(mode, r, s)]
        return f", with equal profiles along {listed(names)} within their errors" if names else ""

    def _is_joined(self, mode: int, r: int, s: int) -> bool:
        return bool(self.separations[mode, r, s] <= SEPARATED)

    def named(self, index: Sequence[int]) -> str:
        """Return an entry by the labels of its indices."""
        parts = [str(self.labels.index(mode, self.fit.shape[mode])[i]) for mode, i in enumerate(index)]
        known = self.fit.problem.labels
        if known is None:
            return f"({', '.join(parts)})"
        return f"({', '.join(f'{name} {part}' for name, part in zip(known.names, parts, strict=True))})"

    def named_entries(self, entries: Sequence[tuple[Sequence[int], float]]) -> str:
        """Return entries with their values in words, up to five."""
        shown = [f"{self.named(place)} = {value:.6g}" for place, value in entries[:5]]
        return listed([*shown, f"{len(entries) - 5} more"] if len(entries) > 5 else shown)

    def named_rows(self, rows_of_modes: Sequence[Sequence[int]]) -> str:
        """Return modes with some of their indices, in words and the labels of the data, up to ten of each."""
        parts = []
        for mode, rows in enumerate(rows_of_modes):
            if len(rows) > 0:
                names = self.labels.index(mode, self.fit.shape[mode])
                shown = [str(names[row]) for row in rows[:10]] + ([f"{len(rows) - 10} more"] if len(rows) > 10 else [])
                noun = "index" if len(rows) == 1 else "indices"
                parts.append(f"{noun} {listed(shown)} of {self.labels.names[mode]}")
        return "; ".join(parts)

    def tables(self) -> tuple[Table, Table, Table, Table]:
        """Return the tables of components, samples, pairs and modes."""
        fit, numbers = self.fit, np.arange(1, self.fit.rank + 1)
        verdicts, reasons = self.verdicts
        components = Table(
            component=numbers,
            weight=to_host(fit.weights),
            explained_variance=fit.explained_variance,
            significance=self.significances,
            standard_error=self.errors,
            replication=self.replications,
            verdict=np.array(verdicts),
            reason=np.array(reasons),
        )
        modes = range(len(fit.shape))
        carried = [np.zeros(size, dtype=int) for size in fit.shape]
        for (mode, row), r in self.lone_samples.items():
            carried[mode][row] = r + 1
        samples = Table(
            mode=np.concatenate([np.full(size, mode) for mode, size in enumerate(fit.shape)]),
            label=np.concatenate([self.labels.index(mode, fit.shape[mode]).astype(str) for mode in modes]),
            leverage=np.concatenate([leverages(factor) for factor in self.factors]),
            residual=np.concatenate(self.loudness),
            carries=np.concatenate(carried),
        )
        first, second = np.triu_indices(fit.rank, 1)
        third = np.sort(self.separations, axis=0)[-min(3, len(fit.shape))] if fit.rank > 1 else np.zeros((1, 1))
        joined = {(i, j) for i, j, _ in self.degenerate}
        pairs = Table(
            first=first + 1,
            second=second + 1,
            congruence=self.congruences[first, second],
            separation=third[first, second],
            degenerate=np.array(
                [pair in joined for pair in zip(first.tolist(), second.tolist(), strict=True)], dtype=np.bool_
            ),
            separated=third[first, second] > SEPARATED,
        )
        shift = [0.0 if self.shift is None or self.shift.mode != mode else self.shift.points for mode in modes]
        by_mode = Table(
            mode=np.arange(len(fit.shape)),
            name=np.array(self.labels.names),
            size=np.array(fit.shape),
            condition=np.array([factor_condition(factor) for factor in self.factors]),
            correlated=np.array([mode in self.correlated for mode in modes]),
            shift=np.array(shift),
        )
        return components, samples, pairs, by_mode


def deviance_without(fit: Factorization, i: int) -> float:
    """Return by how much the deviance of a fit under a loss grows without a component, the others being refitted."""
    if not fit.problem.has_data or fit._deviance is None or fit.problem.tensor.shape != fit.shape:
        return math.nan
    if fit.rank == 1:
        return fit._deviance.null - fit._deviance.total
    problem = fit.problem.with_rank(fit.rank - 1).in_double_precision()
    others = fit._components.columns([other for other in range(fit.rank) if other != i])
    ended = minimize(problem, interior(others, problem.constraints), BRIEF)
    return 2 * ended.objective - fit._deviance.total
