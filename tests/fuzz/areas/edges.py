"""The edges of codiag: the command line, and other libraries' functions."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np

from codiag.drop_in import (
    CP,
    CP_NN,
    CP_NN_HALS,
    cp_apr,
    gcp_opt,
    non_negative_parafac,
    non_negative_parafac_hals,
    parafac,
)

from ..arrays import choose, random_array, random_rank
from ..case import Case, covers
from ..invariants import Problems, not_finite
from ..reference import composed
from .files import damaged, write_corpus, write_edges, write_tensor, write_votes


@covers("codiag.drop_in.cp_apr", "codiag.drop_in.gcp_opt", weight=1)
def of_pyttb(rng: np.random.Generator) -> Case:
    """pyttb's functions for counts, with their arguments."""
    shape, rank = tuple(int(size) for size in rng.integers(3, 8, size=3)), int(rng.integers(1, 3))
    counts = rng.poisson(rng.gamma(2.0, size=shape)).astype(float) + (rng.random() < 0.5)
    counts[0, 0, 0] += 1

    def about(found: Any, given: dict[str, Any]) -> Problems:
        if not found[2]["obj"] >= -1e-9:
            yield "deviance", f"it is {found[2]['obj']}"

    if rng.random() < 0.5:
        return Case("codiag.drop_in.cp_apr", cp_apr, {"input_tensor": counts, "rank": rank}, True, (about,))
    arguments = {"data": counts, "rank": rank, "objective": choose(rng, "POISSON", "GAUSSIAN", "NEGATIVE_BINOMIAL")}
    return Case("codiag.drop_in.gcp_opt", gcp_opt, arguments, True, (about,))


@covers("codiag.drop_in.parafac", "codiag.drop_in.CP", weight=2)
def drop_in(rng: np.random.Generator) -> Case:
    """TensorLy's function and its class, with their arguments."""
    held = random_array(rng, extreme=False)
    rank = random_rank(rng, held.dense.shape)
    scale = 10.0 ** int(rng.integers(-300, 300)) if rng.random() < 0.2 else 1.0
    start = (None, [scale * rng.standard_normal((size, rank)) for size in held.dense.shape])
    options: dict[str, Any] = {
        "n_iter_max": int(choose(rng, 1, 2, 100)),
        "init": choose(rng, "svd", "random", start),
        "normalize_factors": choose(rng, True, False),
        "tol": choose(rng, 1e-8, 1e-5, 0),
        "return_errors": choose(rng, True, False),
    }
    kept = {name: value for name, value in options.items() if rng.random() < 0.5}
    arguments = {"tensor": held.data, "rank": rank, "random_state": int(rng.integers(999)), **kept}
    as_class = bool(rng.random() < 0.4)
    if as_class:
        arguments.pop("return_errors", None)

    def about(found: Any, given: dict[str, Any]) -> Problems:
        if given.get("return_errors"):
            found, errors = found
            if not_finite(errors):
                yield "not finite", "errors"
        weights, factors = found
        if [np.shape(factor) for factor in factors] != [(size, rank) for size in held.dense.shape]:
            yield "shape", f"factors {[np.shape(factor) for factor in factors]}"
            return
        if not_finite([np.asarray(weights), *map(np.asarray, factors)]):
            yield "not finite", "components"
            return
        error = np.linalg.norm(held.dense - composed(np.asarray(weights), factors)) / np.linalg.norm(held.dense)
        if error > 1.001 and kept.get("n_iter_max", 100) == 100:
            yield "relative_error", f"{error:.3g}, worse than nothing"

    if rng.random() < 0.05:  # an array of order zero, one or two: a matrix has components, up to its rank
        shape = tuple(int(size) for size in rng.integers(1, 4, int(rng.integers(3))))
        low_order = rng.standard_normal(shape) + choose(rng, 0, 1j) * rng.standard_normal(shape)
        return Case("codiag.drop_in.parafac", parafac, {"tensor": low_order, "rank": rank}, None)

    def class_of(tensor: Any, **given: Any) -> Any:
        model = CP(**given)
        found = model.fit_transform(tensor)
        if not model.errors_ or found is not model.decomposition_:
            raise AssertionError("errors_ or decomposition_ is not what was found")
        return found

    if as_class:
        return Case("codiag.drop_in.CP", class_of, arguments, True, (about,))
    return Case("codiag.drop_in.parafac", parafac, arguments, True, (about,))


@covers(
    "codiag.drop_in.non_negative_parafac",
    "codiag.drop_in.non_negative_parafac_hals",
    "codiag.drop_in.CP_NN",
    "codiag.drop_in.CP_NN_HALS",
)
def drop_in_nonnegative(rng: np.random.Generator) -> Case:
    """TensorLy's functions for non-negative factors and their classes."""
    held = random_array(rng, extreme=False)
    rank = random_rank(rng, held.dense.shape)
    options = {"init": choose(rng, "svd", "random"), "normalize_factors": choose(rng, True, False)}
    kept = {name: value for name, value in options.items() if rng.random() < 0.5}
    arguments = {"tensor": held.data, "rank": rank, "random_state": int(rng.integers(999)), "n_iter_max": 20, **kept}

    def about(found: Any, given: dict[str, Any]) -> Problems:
        weights, factors = found
        if [np.shape(factor) for factor in factors] != [(size, rank) for size in held.dense.shape]:
            yield "shape", f"factors {[np.shape(factor) for factor in factors]}"
        elif not_finite([np.asarray(weights), *map(np.asarray, factors)]):
            yield "not finite", "components"
        elif any(np.any(np.asarray(array) < 0) for array in (weights, *factors)):
            yield "negative", "components"

    functions = {
        "non_negative_parafac": non_negative_parafac,
        "non_negative_parafac_hals": non_negative_parafac_hals,
        "CP_NN": lambda tensor, **given: CP_NN(**given).fit_transform(tensor),
        "CP_NN_HALS": lambda tensor, **given: CP_NN_HALS(**given).fit_transform(tensor),
    }
    name = choose(rng, *functions)
    return Case(f"codiag.drop_in.{name}", functions[name], arguments, True, (about,))


def _command(rng: np.random.Generator) -> tuple[list[str], list[Path], bool]:
    """Return the words of a command, the files it reads, and whether it must end well."""
    kind = choose(rng, "factorize", "factorize", "topics", "label", "communities", "compare")
    writers = {"topics": write_corpus, "label": write_votes, "communities": write_edges}
    source, array = (writers[kind](rng), None) if kind in writers else write_tensor(rng)
    good = not damaged(source, rng, 0.25)
    words = [kind, str(source)]
    k = str(choose(rng, 1, 2, 3, 0, -1))
    sizes = [] if array is None or not array.any() else sorted(np.argwhere(array).max(axis=0) + 1)
    if sizes:  # lists of entries end with the last that is not zero
        good = good and int(k) <= math.prod(sizes[:-1])
    words += {"factorize": ["--rank", k], "compare": ["--rank", k], "topics": ["--topics", k]}.get(kind, [])
    if kind == "communities" and rng.random() < 0.7:
        words += ["-k", str(max(1, int(k)))]
    if kind == "factorize" and rng.random() < 0.3:
        words += ["--method", choose(rng, "als", "nls", "nojd1", "nope")]
        good = good and not ("nojd1" in words and sizes and int(k) > sizes[-2])
    if kind != "compare" and rng.random() < 0.4:
        ending = ".csv" if kind in ("label", "communities") else ".npz"
        result = choose(
            rng, source, source.parent / f"out{ending}", source.parent / "out.xyz", source.parent / "no" / f"o{ending}"
        )
        words += ["--out", str(result)]
    if rng.random() < 0.3:
        words += ["--seed", choose(rng, "1", "-1", "abc")]
    good = good and kind in ("factorize", "label", "compare") and not {"nope", "-1", "abc", "--out"} & set(words)
    return words, [source], good and not (kind != "label" and k == "0")


@covers("codiag.cli.main", weight=2)
def command_line(rng: np.random.Generator) -> Case:
    """Commands on files, whole and damaged: a result or a sentence, never a trace, and never a lost input."""
    words, sources, good = _command(rng)

    def run(sources: list[Path]) -> Any:
        from typer.testing import CliRunner

        from codiag.cli import app

        return CliRunner().invoke(app, words)

    def about(answer: Any, given: dict[str, Any]) -> Problems:
        if answer.exception is not None and not isinstance(answer.exception, SystemExit):
            yield "wrong exception", f"{words[0]}: {type(answer.exception).__name__}: {answer.exception}"[:200]
        elif answer.exit_code not in ((0,) if good else (0, 2)):
            yield "command", f"{words[0]} ended with status {answer.exit_code}: {answer.output[-200:]!r}"
        elif "Traceback" in answer.output:
            yield "command", f"{words[0]} shows a trace"
        elif not answer.output.strip():
            yield "command", f"{words[0]} says nothing"
        elif "\x1b[31m" in answer.output:
            yield "command", f"{words[0]} writes escape sequences of the input to the terminal"

    note = "codiag " + " ".join(words)
    return Case(
        "codiag.cli.main",
        run,
        {"sources": sources},
        good or None,
        (about,),
        advice=True,
        spoilable=False,
        prints=True,
        note=note,
    )
