"""Blind sources: estimators of mixings, signals to try them on, and how far from the truth they are."""

from __future__ import annotations

from typing import Any

import numpy as np

from codiag import metrics
from codiag.models import JADE, NSS, SOBI
from codiag.synthetic import mixed_signals

from ..arrays import choose
from ..case import Case, covers
from ..invariants import Problems, has_shape, largest_first, not_finite

KINDS = ("sinusoid", "square", "autoregressive", "bursts", "loud", "uniform", "binary", "laplace", "exponential",
         "sparse", "gaussian")  # fmt: skip


def recorded(rng: np.random.Generator) -> tuple[np.ndarray, str]:
    """Return channels, (n_samples, n_channels), that are as they should be, or not quite, and what they are."""
    k, n = int(rng.integers(1, 6)), int(choose(rng, 2, 12, *[100] * 5, *[200] * 5, *[600] * 4, 1500))
    data = mixed_signals(n, [choose(rng, *KINDS) for _ in range(k)], seed=int(rng.integers(10**6))).channels
    kind = choose(
        rng, "", "", "", "", "scaled", "float32", "integers", "far away", "units", "repeated", "constant", "twice"
    )
    if kind == "scaled":
        data = data * 10.0 ** int(rng.integers(-15, 16))
    elif kind == "float32":
        data = data.astype(np.float32)
    elif kind == "integers":
        data = np.rint(10 * data).astype(choose(rng, np.int64, np.int8, np.int32))
    elif kind == "far away":
        data = data + 1e6
    elif kind == "units":
        data = data * 10.0 ** rng.integers(-5, 6, k)
    elif kind == "repeated":
        data = np.ones_like(data)
    elif kind == "constant":
        data[:, 0] = choose(rng, 0.0, 0.1, 1e9)
    elif kind == "twice":
        data = np.concatenate([data, data[:, :1]], axis=1)
    return data, kind


def independent(data: np.ndarray) -> int:
    """Return how many independent channels there are, beyond doubt, whatever unit each of them has."""
    centered = data - data.astype(float).mean(axis=0)
    sizes = centered.std(axis=0)
    kept = sizes > 1e-9 * np.abs(data.astype(float)).max(axis=0)
    values = np.linalg.svd(centered[:, kept] / sizes[kept], compute_uv=False) if np.any(kept) else np.zeros(1)
    return int(np.sum(values > 1e-4 * max(values[0], 1e-300)))


def in_form(data: np.ndarray, rng: np.random.Generator) -> Any:
    """Return channels as one array, epochs, or recordings of different lengths, some perhaps of one sample."""
    form = choose(rng, "array", "array", "epochs", "list", "pieces", "rows")
    if form == "epochs" and data.shape[0] % 4 == 0:
        return np.stack([part.T for part in np.split(data, 4)])
    if form == "list":
        return np.split(data, sorted({1, data.shape[0] // 3, data.shape[0] // 2} - {0}))
    if form == "pieces":
        return [data, data[:1]]
    return data.tolist() if form == "rows" else data


def estimators(rng: np.random.Generator, n_channels: int) -> Any:
    """Return an estimator of sources, no more of them than channels but now and then."""
    number = choose(rng, None, None, None, 1, min(2, n_channels), 2)
    return choose(
        rng,
        SOBI(number, lags=choose(rng, 1, 5, 50, 10**9, [1, 2], (3,), range(1, 4)), max_iter=choose(rng, 0, 20)),
        JADE(number, max_iter=choose(rng, 0, 20)),
        NSS(number, n_windows=choose(rng, 2, 6, 10**6), max_iter=choose(rng, 0, 20)),
    )


def options_of(model: Any) -> dict[str, Any]:
    """Return the parameters of an estimator that are to be varied."""
    names = ("n_components", "lags", "max_iter", "n_windows")
    return {key: value for key, value in model.get_params().items() if key in names and value is not None}


def separated(fitted: Any, n_channels: int) -> Problems:
    """Yield what is false of a separation."""
    for key in ("components_", "mixing_", "whitening_", "mixing_standard_errors_", "explained_variance_"):
        bad = not_finite(getattr(fitted, key), key)
        if bad:
            yield "not finite", bad
            return
    found = fitted.n_components_
    yield from has_shape(fitted.mixing_, (n_channels, found), "mixing_")
    yield from largest_first(fitted.explained_variance_, "explained_variance_")
    if not np.allclose(fitted.components_ @ fitted.mixing_, np.eye(found), atol=1e-6):
        yield "model", "components_ times mixing_ is not the identity"
    if any(not 0 <= i < j < found for i, j in fitted.unresolved_):
        yield "model", f"unresolved_ of {found} sources is {fitted.unresolved_}"


@covers("codiag.models.SOBI", "codiag.models.JADE", "codiag.models.NSS", weight=3)
def separations(rng: np.random.Generator) -> Case:
    """Recordings of few channels, long and short, as arrays, epochs and lists, and back from their sources."""
    data, kind = recorded(rng)
    (n, d), n_independent = data.shape, independent(data)
    model = estimators(rng, d)
    if isinstance(model, SOBI) and rng.random() < 0.3:
        data = data * (1 + 1j * rng.standard_normal(d))
    given = in_form(data, rng)

    def fit(X: Any, **wanted: Any) -> Any:  # noqa: N803
        return type(model)(random_state=0, **wanted).fit(X)

    def check(fitted: Any, arguments: dict[str, Any]) -> Problems:
        yield from separated(fitted, d)
        if fitted.n_components_ == d and kind in ("", "float32", "integers", "units"):
            again = fitted.inverse_transform(fitted.transform(data))
            if not np.allclose(again, data, rtol=1e-4, atol=1e-4 * np.max(np.abs(data), axis=0)):
                yield "model", "inverse_transform does not lead back"

    wanted = 1 if model.n_components is None else model.n_components
    one_unit = kind != "units" or model.n_components is None  # leading components have the unit of the largest
    valid = True if n >= 100 and one_unit and n_independent >= wanted else None
    name = f"codiag.models.{type(model).__name__}"
    options = options_of(model)
    return Case(name, fit, {"X": given, **options}, valid, (check,), named=("n_components", "lags"), advice=True)


@covers("codiag.models.SOBI", "codiag.models.NSS", weight=1)
def streams(rng: np.random.Generator) -> Case:
    """Parts of a recording that follow each other, given one by one, or by an iterator."""
    data, _ = recorded(rng)
    n, d = data.shape
    cuts = sorted({int(cut) for cut in rng.integers(1, n, int(rng.integers(0, 4)))}) if n > 2 else []
    kinds = [
        SOBI(lags=choose(rng, 1, 5, [2, 3]), max_iter=choose(rng, 0, 20)),
        NSS(n_windows=3, max_iter=choose(rng, 0, 20)),
    ]
    model, one_by_one = choose(rng, *kinds), bool(rng.random() < 0.5)

    def fit(X: Any, **wanted: Any) -> Any:  # noqa: N803
        found = type(model)(random_state=0, **wanted)
        if not isinstance(X, list):
            return found.fit(X)
        if not one_by_one:
            return found.fit(iter(X))
        for part in X:
            found.partial_fit(part)
        return found

    def check(fitted: Any, arguments: dict[str, Any]) -> Problems:
        if hasattr(fitted, "components_"):
            yield from separated(fitted, d)
        elif valid:  # parts that do not determine sources are kept, with a warning
            yield "model", "the parts determine the sources, but nothing was found"

    valid = True if n >= 100 and independent(data) else None
    arguments = {"X": np.split(data, cuts), **options_of(model)}
    name = f"codiag.models.{type(model).__name__}"
    return Case(name, fit, arguments, valid, (check,), named=("n_components", "lags"), advice=True)


@covers("codiag.synthetic.mixed_signals", weight=0.5)
def signals(rng: np.random.Generator) -> Case:
    """Signals of random kinds."""
    names = [choose(rng, *KINDS) for _ in range(int(rng.integers(1, 5)))]
    arguments = {
        "n_samples": int(choose(rng, 2, 10, 300)),
        "kinds": names,
        "n_channels": choose(rng, None, len(names), len(names) + 2),
        "noise": choose(rng, 0.0, 0.1),
        "seed": int(rng.integers(10**6)),
    }

    def check(mixed: Any, given: dict[str, Any]) -> Problems:
        rows = len(given["kinds"]) if given["n_channels"] is None else given["n_channels"]
        yield from has_shape(mixed.channels, (given["n_samples"], rows), "channels")
        bad = not_finite(mixed.channels, "channels")
        if bad:
            yield "not finite", bad

    return Case("codiag.synthetic.mixed_signals", mixed_signals, arguments, True, (check,))


@covers("codiag.metrics.minimum_distance", "codiag.metrics.amari_index", weight=0.5)
def indices(rng: np.random.Generator) -> Case:
    """Distances of an unmixing from the inverse of a mixing."""
    k = int(rng.integers(1, 5))
    mixing = rng.standard_normal((k + int(rng.integers(0, 3)), k))
    exact = bool(rng.random() < 0.3)
    order = rng.permutation(k)
    unmixing = np.linalg.pinv(mixing)[order] if exact else rng.standard_normal(mixing.shape[::-1])
    name = choose(rng, "minimum_distance", "amari_index")

    def check(found: Any, given: dict[str, Any]) -> Problems:
        if not 0 <= found <= 1 + 1e-9 or (exact and found > 1e-4):
            yield "metric", f"{name} of {found}"

    arguments = {"unmixing": unmixing, "mixing": mixing}
    return Case(f"codiag.metrics.{name}", getattr(metrics, name), arguments, True, (check,))
