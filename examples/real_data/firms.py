"""
Eleven firms, twenty years: a data frame in its own labels
==========================================================

Grunfeld's data, a classic of econometrics that comes with statsmodels: what General Motors, US Steel and nine others
invested from 1935 to 1954, what they were worth on the market, and their stock of capital. Firms x years x quantities
is a tensor, and the data frame goes in as it is.
"""

# %%
# A row for each entry: its labels, and its value last. Quantities are brought to one scale.

import matplotlib.pyplot as plt
import statsmodels.api as sm

import codiag

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

table = sm.datasets.grunfeld.load_pandas().data
table["year"] = table["year"].astype(int)
long = table.rename(columns={"invest": "investment", "value": "market value"}).melt(
    id_vars=["firm", "year"], var_name="quantity", value_name="amount"
)
long["amount"] /= long.groupby("quantity")["amount"].transform("std")
print(long.head(3))

# %%
# Two components, of factors that are not negative. They come back in the labels of the table.

fit = codiag.factorize(long, 2, constraints="nonnegative", rng=0)
print(fit)
print(fit.to_xarray()["factor_quantity"].to_pandas().round(2))

# %%
# The first component is market value and investment together: it has the crash of 1938, the war and the boom after it.
# The second is the stock of capital, which only ever grows. Bars are 95 % intervals. General Motors has most of both;
# US Steel has more of the first, and the oil companies (Atlantic Refining, Union Oil) have more of the second: much
# capital for what they invest.

arrays, errors = fit.to_xarray(), fit.entry_standard_errors
frames = {name: arrays[f"factor_{name}"].to_pandas() for name in ("firm", "year", "quantity")}
figure, axes = plt.subplots(1, 3, figsize=(10.5, 4.4), layout="constrained", width_ratios=(1.2, 1.4, 0.8))
names = ("market value and investment", "capital")
firms = frames["firm"].index
for component, color in enumerate(COLORS[:2]):
    shift = 0.2 - 0.4 * component
    own, bar = frames["firm"].iloc[:, component], 1.96 * errors[0][:, component]
    axes[0].barh([place + shift for place in range(len(firms))], own, 0.38, xerr=bar, color=color, ecolor="#8d99a6")
    years, own, bar = frames["year"].index, frames["year"].iloc[:, component], 1.96 * errors[1][:, component]
    axes[1].fill_between(years, own - bar, own + bar, color=color, alpha=0.25, linewidth=0)
    axes[1].plot(years, own, color=color, linewidth=2, label=names[component])
    quantities, own = frames["quantity"].index, frames["quantity"].iloc[:, component]
    axes[2].bar(
        [place - shift for place in range(3)],
        own,
        0.38,
        yerr=1.96 * errors[2][:, component],
        color=color,
        ecolor="#8d99a6",
    )
axes[0].set_yticks(range(len(firms)), firms)
axes[2].set_xticks(range(3), [name.replace(" ", "\n") for name in quantities], fontsize=9)
axes[1].set(xticks=[1935, 1940, 1945, 1950])
axes[1].legend(frameon=False)
for axis, name in zip(axes, ("Firms", "Years", "Quantities"), strict=True):
    axis.set_title(name)
plt.show()
