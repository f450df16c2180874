"""Find the substances in mixtures from their fluorescence, with the bands of scattered light missing."""

from __future__ import annotations

import argparse
from importlib.util import find_spec
from typing import Any

import numpy as np

import codiag
from codiag.synthetic import Fluorescence, fluorescence

COLORS = ("#4269d0", "#ff725c", "#3ca951", "#a463f2")
MODES = ("concentrations", "emission", "excitation")


def main(path: str | None = None) -> float:
    """Factorize what was measured, print what was found beside the truth, and return the largest error of a factor.

    The spectra are drawn to `path`, if there is one and matplotlib is installed.
    """
    measured = fluorescence(noise=0.1, scatter=True, clip=True, seed=7)
    fit = codiag.factorize(measured.tensor, 4, constraints="nonnegative", seed=0)  # NaN is missing
    found = codiag.match_components(fit, measured).factors
    samples, n_emission, n_excitation = measured.tensor.shape
    print(f"{samples} samples, {n_emission} wavelengths of emission, {n_excitation} of excitation")
    print(f"{np.isnan(measured.tensor).mean():.0%} of the entries missing, relative error {fit.relative_error:.3f}\n")
    print("           emission peak (nm)    excitation peak (nm)  concentrations:")
    print("substance     found      true       found      true      correlation")
    for index in range(4):
        peaks = [
            _peak(axis, factors[mode][:, index])
            for mode, axis in ((1, measured.emission), (2, measured.excitation))
            for factors in (found, measured.factors)
        ]
        alike = np.corrcoef(found[0][:, index], measured.factors[0][:, index])[0, 1]
        print("{:9d}{:10.1f}{:10.1f}{:12.1f}{:10.1f}{:17.4f}".format(index + 1, *peaks, alike))
    if path is not None and find_spec("matplotlib"):
        draw(measured, found, path)
    return max(
        float(np.linalg.norm(own - true, axis=0).max()) for own, true in zip(found, measured.factors, strict=True)
    )


def _peak(wavelengths: np.ndarray, spectrum: np.ndarray) -> float:
    """Return where a spectrum is highest, by a parabola through three points."""
    top = int(np.clip(np.argmax(spectrum), 1, len(spectrum) - 2))
    left, middle, right = spectrum[top - 1 : top + 2]
    share = (left - right) / (2 * (left - 2 * middle + right))
    return float(wavelengths[top] + (wavelengths[1] - wavelengths[0]) * share)


def draw(measured: Fluorescence, found: tuple[np.ndarray, ...], path: str) -> None:
    """Draw one sample as it was measured, and what was found in all of them over the truth."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.4), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, 2)
    _draw_sample(panels[0, 0], measured)
    _draw_concentrations(panels[0, 1], found[0], measured.factors[0])
    _draw_spectra(panels[1, 0], 1, measured.emission, found[1], measured.factors[1])
    _draw_spectra(panels[1, 1], 2, measured.excitation, found[2], measured.factors[2])
    for panel in panels.flat:
        panel.title.set(fontsize=11, ha="left", x=0)
        panel.spines[["top", "right"]].set_visible(False)
    figure.get_layout_engine().set(hspace=0.08, wspace=0.06)
    figure.savefig(path, dpi=130)


def _draw_sample(panel: Any, measured: Fluorescence) -> None:
    brightest = int(np.argmax(np.nansum(measured.tensor, axis=(1, 2))))
    panel.set_facecolor("#d5d8dc")
    panel.pcolormesh(
        measured.excitation, measured.emission, measured.tensor[brightest], cmap="magma", shading="nearest"
    )
    panel.text(397, 290, "gray: scattered light,\ntaken out as missing", color="white", fontsize=9, ha="right")
    panel.set(xlabel="excitation (nm)", ylabel="emission (nm)", title="One of 15 samples, as measured")


def _draw_spectra(panel: Any, mode: int, axis: np.ndarray, found: np.ndarray, true: np.ndarray) -> None:
    for own, actual, color in zip(found.T, true.T, COLORS, strict=True):
        panel.fill_between(axis, actual, color=color, alpha=0.2, linewidth=0)
        panel.plot(axis, own, color=color, linewidth=2)
    panel.set(xlim=(axis[0], axis[-1]), ylim=(0, None), yticks=[], xlabel=f"{MODES[mode]} (nm)")
    panel.set_title(f"{MODES[mode].capitalize()} spectra: found (lines), true (shaded)")


def _draw_concentrations(panel: Any, found: np.ndarray, true: np.ndarray) -> None:
    limit = 1.08 * float(true.max())
    panel.plot([0, limit], [0, limit], color="#b2bec3", linewidth=1)
    for index, color in enumerate(COLORS):
        panel.scatter(true[:, index], found[:, index], s=34, color=color, alpha=0.85, linewidths=0)
    panel.set(xlim=(0, limit), ylim=(0, limit), xticks=[], yticks=[], xlabel="true", ylabel="found")
    panel.set_title("Concentrations in all 15 samples")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--figure", metavar="FILE.png", help="draw the spectra to a file")
    main(parser.parse_args().figure)
