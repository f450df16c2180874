"""Separate signals that sensors record mixed: a sinusoid, a square wave, bursts and colored noise."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

import numpy as np

from codiag.metrics import minimum_distance
from codiag.models import JADE, SOBI
from codiag.synthetic import MixedSignals, mixed_signals

KINDS = ("sinusoid", "square", "bursts", "autoregressive")
COLORS = ("#4269d0", "#ff725c", "#3ca951", "#a463f2")


def main(n: int = 5000, path: str | None = None) -> float:
    """Separate, print how far from the truth, and return the larger distance of the two models.

    Channels and what is found in them are drawn to `path`, if there is one and matplotlib is installed.
    """
    mixed = mixed_signals(n, KINDS, n_channels=6, noise=0.01, seed=4)
    distances = []
    print("model   minimum distance   largest standard error   sources not told apart")
    for model in (SOBI(4, lags=50), JADE(4)):
        model.fit(mixed.channels)
        distances.append(minimum_distance(model.components_, mixed.mixing))
        largest = float(np.max(model.mixing_standard_errors_))
        print(f"{type(model).__name__:6s}{distances[-1]:18.4f}{largest:25.4f}   {model.unresolved_ or 'none'}")
    if path is not None and find_spec("matplotlib"):
        draw(mixed, SOBI(4, lags=50).fit_transform(mixed.channels), path)
    return max(distances)


def draw(mixed: MixedSignals, found: np.ndarray, path: str) -> None:
    """Draw the channels, the sources found in them, and these over the true ones."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    shown = slice(0, 400)
    order, signs = _matched(found, mixed.sources)
    figure = Figure(figsize=(11, 6.4), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    before, after = figure.subplots(1, 2)
    for place, channel in enumerate(mixed.channels.T):
        before.plot(channel[shown] / np.std(mixed.channels) - 6 * place, color="#57606a", linewidth=0.9)
    for place, color in enumerate(COLORS):
        after.plot(mixed.sources[shown, place] - 6 * place, color=color, alpha=0.3, linewidth=4)
        after.plot(signs[place] * found[shown, order[place]] - 6 * place, color=color, linewidth=1)
    before.set_yticks(-6 * np.arange(6), [f"channel {place + 1}" for place in range(6)])
    after.set_yticks(-6 * np.arange(4), [kind.replace("autoregressive", "colored\nnoise") for kind in KINDS])
    before.set_title("Before: what six sensors record", fontsize=11, loc="left")
    after.set_title("After: sources found (thin) over the true ones (thick)", fontsize=11, loc="left")
    for panel in (before, after):
        panel.spines[["top", "right", "left"]].set_visible(False)
        panel.tick_params(left=False)
        panel.set(xlabel="sample", xlim=(0, 400))
    figure.savefig(path, dpi=130)


def _matched(found: np.ndarray, true: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return which source found belongs to each true one, and the sign that it needs."""
    alike = np.corrcoef(true, found, rowvar=False)[: true.shape[1], true.shape[1] :]
    order = np.argmax(np.abs(alike), axis=1)
    return order, np.sign(alike[np.arange(order.size), order])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", metavar="FILE.png", help="draw channels and sources to a file")
    main(path=parser.parse_args().figure)
