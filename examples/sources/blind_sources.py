"""
Blind sources: before and after
===============================

Six sensors record the same four signals, each in its own mixture. :class:`codiag.models.SOBI` tells them apart by their
spectra and :class:`codiag.models.JADE` by their distributions, neither knowing the signals nor how they were mixed.
"""

# %%
# A sinusoid, a square wave, bursts and colored noise.

import matplotlib.pyplot as plt
import numpy as np

from codiag.metrics import minimum_distance
from codiag.models import JADE, SOBI
from codiag.synthetic import mixed_signals

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

kinds = ("sinusoid", "square", "bursts", "autoregressive")
mixed = mixed_signals(5000, kinds, n_channels=6, noise=0.01, rng=4)

# %%
# How far from the truth is each, and what do they say about themselves?

distances = {}
print("model   minimum distance   largest standard error   sources not told apart")
for model in (SOBI(4, lags=50), JADE(4)):
    model.fit(mixed.channels)
    name = type(model).__name__
    distances[name] = minimum_distance(model.components_, mixed.mixing)
    largest = float(np.max(model.mixing_standard_errors_))
    print(f"{name:6s}{distances[name]:18.4f}{largest:25.4f}   {model.unresolved_ or 'none'}")

# %%
# Left, the six channels. Right, what SOBI finds in them (thin) over the true signals (thick): the order and the sign of
# a source are not in the data, and are matched to the truth for the picture.

found = SOBI(4, lags=50).fit_transform(mixed.channels)
alike = np.corrcoef(mixed.sources, found, rowvar=False)[:4, 4:]
order = np.argmax(np.abs(alike), axis=1)
found = found[:, order] * np.sign(alike[np.arange(4), order])

figure, (before, after) = plt.subplots(1, 2, figsize=(10, 5.2), layout="constrained")
for place, channel in enumerate(mixed.channels[:400].T):
    before.plot(channel / np.std(mixed.channels) - 6 * place, color="gray", linewidth=1)
for place, color in enumerate(COLORS[:4]):
    after.plot(mixed.sources[:400, place] - 6 * place, color=color, alpha=0.3, linewidth=4)
    after.plot(found[:400, place] - 6 * place, color=color, linewidth=1.2)
before.set_yticks(-6 * np.arange(6), [f"channel {place + 1}" for place in range(6)])
after.set_yticks(-6 * np.arange(4), ["sinusoid", "square", "bursts", "colored\nnoise"])
before.set_title("Before: what six sensors record")
after.set_title("After: found (thin), over the truth")
for panel in (before, after):
    panel.spines[["top", "right", "left"]].set_visible(False)
    panel.tick_params(left=False)
    panel.set(xlabel="sample", xlim=(0, 400))
plt.show()
