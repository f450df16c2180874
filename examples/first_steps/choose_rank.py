"""
How many components?
====================

The error of a fit falls with every component that is added, even if that fits noise. :func:`codiag.choose_rank`
tests each rank: is every component significant beside the noise, is it determined by the data, and do two halves of the
data agree on it? Does the fit predict held-out entries?
"""

# %%
# Four substances in 20 samples, and a tenth of noise.

import matplotlib.pyplot as plt

import codiag
from codiag.synthetic import fluorescence

measured = fluorescence((20, 40, 25), 4, noise=0.1, rng=3)
choice = codiag.choose_rank(measured.tensor, range(1, 8), constraints="nonnegative", rng=0)

# %%
# Printed, the choice says why. The error alone would always favor more components.

print(choice)

# %%
# The same in a picture, with the rank that is chosen at the dashed line. The fitted error keeps falling, but that of
# held-out entries does not; split halves agree up to the true rank and disagree beyond it; the least component is then
# smaller than the largest term of noise, and standard errors are infinite. Ranks in gray are not supported.

figure, axes = plt.subplots(2, 2, figsize=(9, 6), sharex=True, layout="constrained")
choice.plot(axes=axes)
figure.suptitle(f"Rank {choice.rank} is chosen")
plt.show()

# %%
# ``choice.fit`` is the fit of that rank, and ``codiag.factorize(tensor, "auto")`` goes there in one step.

print(choice.fit)
