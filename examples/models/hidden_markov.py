"""
A hidden Markov model from one long sequence
============================================

A system changes between three states that nobody sees; in each it emits symbols with other probabilities. Triples of
neighboring symbols are a tensor, its components are the states. :class:`codiag.models.HiddenMarkov` finds transitions
and emissions without a first guess, and then the path.
"""

# %%
# Symbols, and the states that emitted them.

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import to_rgba_array
from scipy.optimize import linear_sum_assignment

from codiag.models import HiddenMarkov

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

transitions = np.array([[0.95, 0.04, 0.01], [0.03, 0.94, 0.03], [0.05, 0.05, 0.90]])
emissions = np.array([[0.7, 0.2, 0.05, 0.05, 0, 0], [0, 0.1, 0.7, 0.1, 0.1, 0], [0.05, 0.05, 0, 0.1, 0.4, 0.4]])
rng = np.random.default_rng(0)
states = np.zeros(10_000, dtype=int)
for step in range(1, states.size):
    states[step] = rng.choice(3, p=transitions[states[step - 1]])
symbols = np.array([rng.choice(6, p=emissions[state]) for state in states])

# %%
# Fit, and decode. States have no order of their own: they are matched to the true ones to be compared.

model = HiddenMarkov(3, max_iter=10, random_state=0).fit(symbols)
order = linear_sum_assignment(np.abs(emissions[:, None] - model.emissionprob_[None]).sum(axis=2))[1]
path = np.argsort(order)[model.predict(symbols)]
right = float(np.mean(path == states))
print("transitions\n", model.transmat_[order][:, order].round(3))
print(f"log-likelihood {model.score(symbols):.0f}; {right:.0%} of the states decoded")

# %%
# Above, 300 of the symbols. Below them the true states, and the path that the model decodes from the symbols alone: it
# misses short visits, which leave little evidence. At the bottom the emission probabilities: found (bars), and true
# (dashes).

shown = slice(1000, 1300)
figure = plt.figure(figsize=(10, 5.4), layout="constrained")
top, bottom = figure.subfigures(2, 1, height_ratios=(1.1, 1))
above, below = top.subplots(2, 1, sharex=True, height_ratios=(1.6, 1))
above.scatter(range(300), symbols[shown], s=9, color=np.array(COLORS)[states[shown]])
above.set(ylabel="symbol", yticks=range(6), title="Symbols, colored by the true state")
colors = to_rgba_array(COLORS[:3])
below.imshow(
    colors[np.stack([states[shown], path[shown]])], aspect="auto", extent=(0, 300, 2, 0), interpolation="nearest"
)
below.set_yticks([0.5, 1.5], ["true state", "decoded"])
below.set(xlabel="step", xlim=(0, 300))
for state, axis in enumerate(bottom.subplots(1, 3, sharey=True)):
    axis.bar(range(6), model.emissionprob_[order[state]], color=COLORS[state], alpha=0.8)
    axis.hlines(emissions[state], np.arange(6) - 0.4, np.arange(6) + 0.4, color="black", linewidth=2)
    axis.set(xlabel="symbol", title=f"Emissions of state {state + 1}")
plt.show()
