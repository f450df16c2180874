"""
What moves the economy: sources in time series
==============================================

Quarterly numbers of the United States from 1959 to 2009, as they come with statsmodels: output, consumption,
investment, unemployment, inflation and interest. Each is a mixture of slower and faster movements.
:class:`codiag.models.SOBI` looks for mixtures that are uncorrelated with each other at all lags: movements with rhythms
of their own.
"""

# %%
# Growth rates where a number grows, the number itself where it does not; all in units of their standard deviation.

import matplotlib.pyplot as plt
import numpy as np
import statsmodels.api as sm

from codiag.models import SOBI
from codiag.plotting import COLORS, INK, MUTED

table = sm.datasets.macrodata.load_pandas().data
grown = {
    "output": np.diff(np.log(table["realgdp"])),
    "consumption": np.diff(np.log(table["realcons"])),
    "investment": np.diff(np.log(table["realinv"])),
}
levels = {name: table[column].to_numpy()[1:] for name, column in
          {"unemployment": "unemp", "inflation": "infl", "interest": "tbilrate"}.items()}  # fmt: skip
series = {**grown, **levels}
channels = np.stack([(one - np.mean(one)) / np.std(one) for one in series.values()], axis=1)
year = (table["year"] + (table["quarter"] - 1) / 4).to_numpy()[1:]

# %%
# Lags of up to three years.

model = SOBI(lags=12).fit(channels)
sources = model.transform(channels)
memory = [np.corrcoef(source[:-4], source[4:])[0, 1] for source in sources.T]
order = np.argsort(memory)[::-1]
print("correlation with itself a year later, by source:", np.round(np.array(memory)[order], 2))
print("pairs of sources not told apart:", model.unresolved_ or "none")
