"""Results of commands as JSON, for other programs; `docs/guide/command_line.md` lists the keys."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

import codiag

if TYPE_CHECKING:
    from codiag.models.communities import MixedMembershipCommunities
    from codiag.models.topics import Corpus, LatentDirichlet
    from codiag.result import Factorization


def print_json(result: Mapping[str, Any]) -> None:
    """Print a result as one JSON object on one line of the standard output, with the version of codiag."""
    text = json.dumps(as_json({"codiag": codiag.__version__, **result}), ensure_ascii=False, allow_nan=False)
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def as_json(value: Any) -> Any:
    """Return a value of Python and NumPy as one of JSON; numbers that are not finite become null, others text."""
    if isinstance(value, Mapping):
        return {str(key): as_json(inner) for key, inner in value.items()}
    if isinstance(value, np.ndarray):
        return as_json((value.astype(str) if value.dtype.kind in "mM" else value).tolist())
    if isinstance(value, list | tuple):
        return [as_json(inner) for inner in value]
    if isinstance(value, np.generic):
        return as_json(np.asarray(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def rows_of_columns(columns: Mapping[str, Sequence[Any] | np.ndarray]) -> list[dict[str, Any]]:
    """Return a table as a list of its rows, each by the names of the columns."""
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def fit_result(fit: Factorization, choice: codiag.RankChoice | None) -> dict[str, Any]:
    """Return a fit, its diagnosis, and the choice of its rank if there was one."""
    from codiag._arrays import to_host
    from codiag.labels import Labels

    labels = fit.labels or Labels.counted(len(fit.shape))
    diagnosis = fit.diagnose()
    result: dict[str, Any] = {"rank": fit.rank, "shape": fit.shape, "converged": fit.converged}
    result |= {"relative_error": fit.relative_error, "n_observed": fit.n_observed}
    if fit.loss is not None:
        result["explained_deviance"] = fit.explained_deviance
    result |= {"weights": to_host(fit.weights), "weight_standard_errors": fit.weight_standard_errors}
    modes = zip(labels.names, fit.factors, fit.standard_errors, fit.entry_standard_errors, strict=True)
    result["modes"] = [
        {
            "name": name,
            "labels": labels.index(mode, fit.shape[mode]),
            "factor": to_host(factor),
            "standard_errors": errors,
            "entry_standard_errors": entry_errors,
        }
        for mode, (name, factor, errors, entry_errors) in enumerate(modes)
    ]
    result["diagnosis"] = str(diagnosis).splitlines()
    result["stages"] = [
        {"name": stage.name, "sweeps": stage.sweeps, "objective": stage.objective, "seconds": stage.seconds}
        for stage in fit.stages
    ]
    if choice is not None:
        result["choice"] = {"reason": choice.reason, "ranks": rows_of_columns(choice.table)}
    return result


def topics_result(model: LatentDirichlet, corpus: Corpus, shares: np.ndarray, n_words: int) -> dict[str, Any]:
    """Return the words and weights of topics, and the shares of topics in documents."""
    words = model.top_words(corpus.vocabulary, n_words)
    strongest = np.bincount(np.argmax(shares, axis=1), minlength=len(words))
    topics = [
        {
            "topic": topic,
            "weight": model.weights_[topic],
            "strongest_in": strongest[topic],
            "words": list(words[topic]),
            "probabilities": -np.sort(-model.components_[topic])[: len(words[topic])],
        }
        for topic in range(len(words))
    ]
    counts = {"n_topics": len(topics), "n_documents": corpus.counts.shape[0], "n_words": corpus.counts.shape[1]}
    return counts | {"topics": topics, "documents": corpus.documents, "shares": shares}


def communities_result(model: MixedMembershipCommunities) -> dict[str, Any]:
    """Return the nodes of a graph with their memberships, and the rates of links between communities."""
    counts = {"n_nodes": model.nodes_.size, "n_communities": model.n_components_}
    links = {"connectivity": np.asarray(model.connectivity_), "is_weighted": model.weighted_}
    return counts | links | {"nodes": model.nodes_, "labels": model.labels_, "memberships": model.memberships_}
