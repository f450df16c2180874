"""
A map from opinions: INDSCAL
============================

Twelve travelers say how near cities are to each other. All have the same map in mind, but each weighs its axes in their
own way: to some a mile to the north is longer than a mile to the east. Their tables are symmetric, and share one factor
between two modes: ``symmetric=(0, 1)``. Because weights differ, the axes of the map are unique, which no single table
of distances could tell.
"""

# %%
# Fourteen cities in Europe, by longitude and latitude. A traveler's table has inner products of positions, with noise.

import matplotlib.pyplot as plt
import numpy as np

import codiag

cities = {
    "Lisbon": (-9.1, 38.7), "Madrid": (-3.7, 40.4), "Paris": (2.4, 48.9), "London": (-0.1, 51.5),
    "Dublin": (-6.3, 53.3), "Oslo": (10.8, 59.9), "Stockholm": (18.1, 59.3), "Berlin": (13.4, 52.5),
    "Rome": (12.5, 41.9), "Vienna": (16.4, 48.2), "Athens": (23.7, 38.0), "Warsaw": (21.0, 52.2),
    "Helsinki": (24.9, 60.2), "Bucharest": (26.1, 44.4),
}  # fmt: skip
places = np.array(list(cities.values()))
places = (places - places.mean(axis=0)) * [0.65, 1]  # a degree of longitude is shorter up there
rng = np.random.default_rng(0)
weights = rng.uniform(0.3, 1.7, (12, 2))
tables = np.einsum("ir,jr,kr->ijk", places, places, weights)
noise = 1.0 * tables.std() * rng.standard_normal(tables.shape)
tables += (noise + noise.transpose(1, 0, 2)) / 2

# %%
# Two components; the first two modes are the same cities.

fit = codiag.factorize(tables, 2, symmetric=(0, 1), rng=0)
print(fit)
match = codiag.match_components(fit, [places, places, weights])

# %%
# For comparison, the axes that a principal component analysis of the average table finds: a map, too, but turned.

values, vectors = np.linalg.eigh(tables.mean(axis=2))
turned = vectors[:, [-1, -2]] * np.sqrt(values[[-1, -2]])

# %%
# Left, the map that the tables of all travelers determine (dots, with bars of 95 %), over the true one (crosses): east
# is to the right and north is up, as it should be, and nobody said so. Right, the map from the average table: distances
# are right, but the axes are those along which the cities happen to scatter most.

figure, (left, right) = plt.subplots(1, 2, figsize=(10.5, 5.6), layout="constrained")
sizes = np.linalg.norm(places, axis=0)
found = match.factors[0] * sizes
bars = 1.96 * fit.entry_standard_errors[0][:, match.permutation] * sizes
left.plot(*places.T, "x", color="C1", markersize=8)
left.errorbar(*found.T, xerr=bars[:, 0], yerr=bars[:, 1], fmt="o", color="C0", ecolor="gray", markersize=5)
signs = np.sign(np.sum(turned * places, axis=0))
right.plot(*(turned * signs).T, "o", color="C0", markersize=5)
for axis, map_ in ((left, found), (right, turned * signs)):
    for name, place in zip(cities, map_, strict=True):
        axis.annotate(name, place, xytext=(5, 5), textcoords="offset points", fontsize=9, color="black")
    axis.set(xticks=[], yticks=[], aspect="equal")
    axis.margins(0.12)
left.set(title="From all tables together", xlabel="first component: west to east", ylabel="second: south to north")
right.set(title="From their average", xlabel="first axis", ylabel="second axis")
plt.show()
