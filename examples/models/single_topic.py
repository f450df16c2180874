"""
The paper's topic experiment, in small
======================================

Documents of ten words, each about one topic. All methods see the same third moment; it is never formed, only
contracted. This is an experiment of the paper [1]_, with fewer documents.

.. [1] Kuleshov, Chaganty & Liang, "Tensor Factorization via Matrix Factorization", AISTATS 2015.
"""

# %%
# Six topics over thirty words; more and more documents.

import matplotlib.pyplot as plt
import numpy as np

import codiag
from codiag.models import SingleTopic

COLORS = plt.rcParams["axes.prop_cycle"].by_key()["color"]

rng = np.random.default_rng(0)
topics = rng.dirichlet(np.full(30, 0.5), 6)
methods = {
    "power method": {"method": "tpm"},
    "random projections": {"method": "ojd0"},
    "projections along factors": {"method": "ojd1"},
    "codiag's default": {},
    "default, then EM": {"max_iter": 10},
}
sizes = [1000, 3000, 10_000, 30_000]
errors = {name: [] for name in methods}
for size in sizes:
    counts = rng.multinomial(10, topics[rng.choice(6, size)])
    for name, options in methods.items():
        model = SingleTopic(6, random_state=0, **options).fit(counts)
        errors[name].append(codiag.factor_error(model.components_.T, topics.T))
for name, values in errors.items():
    print(f"{name:26s}", np.round(values, 3))

# %%
# The distance of topics from the truth against the number of documents. All methods of moments get better with the
# square root of their number: nothing is lost in the factorization, and what remains is the error of the moment itself.
# A few steps of EM, which sees more than three words at a time, are worth many more documents.

figure, panel = plt.subplots(figsize=(8, 4.6), layout="constrained")
for (name, values), color, marker in zip(errors.items(), (*COLORS[1:4], COLORS[0], COLORS[6]), "s^vDo", strict=True):
    panel.plot(sizes, values, marker=marker, color=color, linewidth=2, label=name)
panel.set_xscale("log")
panel.set_yscale("log")
panel.set(xlabel="documents", ylabel="error of the topics")
panel.legend(frameon=False)
plt.show()
