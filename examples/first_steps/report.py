"""
From a table to a report
========================

Most data comes as a table with a row for each measurement. A data frame goes into :func:`codiag.choose_rank` and
:func:`codiag.factorize` as it is; components, figures and files come back in its labels, and one call writes a page to
hand on.
"""

# %%
# What a spectrometer would write, of ten mixtures of three substances: a CSV file in a folder of its own.

from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt
import pandas as pd

import codiag
from codiag.reports import factorization_report
from codiag.synthetic import fluorescence

measured = fluorescence((10, 24, 16), 3, noise=0.1, rng=7)
modes = {
    "sample": [f"S{number + 1:02d}" for number in range(10)],
    "emission": measured.emission.round(1),
    "excitation": measured.excitation.round(1),
}
index = pd.MultiIndex.from_product(modes.values(), names=list(modes))
path = Path(mkdtemp()) / "spectra.csv"
pd.Series(measured.tensor.ravel(), index, name="intensity").round(4).reset_index().to_csv(path, index=False)

# %%
# Six lines from the file to a checked model, a picture and a report.

table = pd.read_csv(path)
choice = codiag.choose_rank(table, range(1, 6), rng=0)
fit = choice.fit
print(table.head(3), choice, fit.diagnose(), sep="\n\n")
fit.plot().savefig(path.with_name("components.png"))
factorization_report(fit, table, path.with_name("report.html"), choice=choice, title=path.name)

# %%
# Factors are data frames in the labels of the table.

print(fit.to_xarray()["factor_sample"].to_pandas().head(3).round(3))

# %%
# The picture in the report: a row for each component, a column for each mode, with bands of 95 %. Samples have names
# and are bars; wavelengths are numbers, and so spectra are lines. The page itself needs nothing else to be read: it
# says how many components there are and why, what can be trusted, and where the model does not fit.

figure, axes = plt.subplots(3, 3, figsize=(9.5, 5), layout="constrained")
codiag.plotting.components(fit, axes=axes)
plt.show()
