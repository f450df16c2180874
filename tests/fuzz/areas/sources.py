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


@covers("codiag.models.SOBI", "codiag.models.JADE", "codiag.models.NSS", weight=3)
def separations(rng: np.random.Generator) -> Case:
    """Recordings of few channels, long and short, as arrays, epochs and lists."""
    k = int(rng.integers(1, 5))
    n = int(choose(rng, 2, 12, 100, 600))
    data = mixed_signals(n, [choose(rng, *KINDS) for _ in range(k)], seed=int(rng.integers(10**6))).channels
    kind = choose(rng, "", "", "", "large", "float32", "repeated", "far away")
    data = data * 10.0 ** int(rng.integers(-15, 16)) if kind == "large" else data
    data = data.astype(np.float32) if kind == "float32" else data
    data = data + 1e6 if kind == "far away" else data
    data = np.ones_like(data) if kind == "repeated" else data
    form = choose(rng, "array", "array", "epochs", "list") if n % 4 == 0 else "array"
    parts = np.split(data, 4) if form != "array" else []
    given = np.stack([part.T for part in parts]) if form == "epochs" else parts if form == "list" else data
    model = choose(
        rng,
        SOBI(lags=choose(rng, 1, 5, [1, 2]), polish=choose(rng, 0, 20)),
        JADE(polish=choose(rng, 0, 20)),
        NSS(n_blocks=choose(rng, 2, 6), polish=choose(rng, 0, 20)),
    )
    options = {key: value for key, value in model.get_params().items() if key in ("lags", "polish", "n_blocks")}

    def fit(X: Any, **wanted: Any) -> Any:  # noqa: N803
        return type(model)(random_state=0, **wanted).fit(X)

    def check(fitted: Any, arguments: dict[str, Any]) -> Problems:
        for key in ("components_", "mixing_", "whitening_", "mixing_standard_errors_", "explained_variance_"):
            bad = not_finite(getattr(fitted, key), key)
            if bad:
                yield "not finite", bad
                return
        found = fitted.n_components_
        yield from has_shape(fitted.mixing_, (k, found), "mixing_")
        yield from largest_first(fitted.explained_variance_, "explained_variance_")
        if not np.allclose(fitted.components_ @ fitted.mixing_, np.eye(found), atol=1e-6):
            yield "model", "components_ times mixing_ is not the identity"
        if isinstance(arguments["X"], np.ndarray) and found == k and kind in ("", "float32"):
            again = fitted.inverse_transform(fitted.transform(arguments["X"]))
            if not np.allclose(again, arguments["X"], atol=1e-4 * np.max(np.abs(arguments["X"]))):
                yield "model", "inverse_transform does not lead back"

    valid = True if n >= 100 and kind in ("", "float32") else None
    arguments = {"X": given, **options}
    name = f"codiag.models.{type(model).__name__}"
    return Case(name, fit, arguments, valid, (check,), named=("n_components",), advice=True)


@covers("codiag.synthetic.mixed_signals", "codiag.synthetic.MixedSignals", weight=0.5)
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
