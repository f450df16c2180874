"""From a CSV file of spectra to a validated model, a picture and a report; simulated where no file is named."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
from codiag.reports import factorization_report

import codiag


def main(path: Path) -> codiag.RankChoice:
    """Choose and check a model of a table with a row for each entry, and write components.png and report.html."""
    table = pd.read_csv(path)  # sample, emission, excitation, intensity
    choice = codiag.choose_rank(table, range(1, 8), seed=0)
    fit = choice.fit
    print(choice, fit.diagnose(), sep="\n\n")
    fit.plot().savefig(path.with_name("components.png"))
    page = factorization_report(fit, table, choice, title=path.name)
    path.with_name("report.html").write_text(page, encoding="utf-8")
    return choice


def simulate(path: Path) -> Path:
    """Write what a fluorescence spectrometer would, of mixtures of four substances."""
    from codiag.synthetic import fluorescence

    measured = fluorescence(noise=0.1, seed=7)
    samples = [f"S{number + 1}" for number in range(measured.tensor.shape[0])]
    modes = {"sample": samples, "emission": measured.emission.round(1), "excitation": measured.excitation.round(1)}
    index = pd.MultiIndex.from_product(modes.values(), names=list(modes))
    pd.Series(measured.tensor.ravel(), index, name="intensity").round(4).reset_index().to_csv(path, index=False)
    return path


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else simulate(Path("spectra.csv")))
