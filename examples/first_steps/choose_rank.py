"""
How many components?
====================

A fit gets better with every component that is added, also when it is noise that it fits. :func:`codiag.choose_rank`
asks several questions of each rank: does every component stand out from the noise, is what is left over noise, does the
fit predict entries that it has not seen, and do halves of the data agree on it?
"""

# %%
# Four substances in 20 samples, and a tenth of noise.

import matplotlib.pyplot as plt

import codiag
from codiag.synthetic import fluorescence

measured = fluorescence((20, 40, 25), 4, noise=0.1, rng=3)
choice = codiag.choose_rank(measured.tensor, range(1, 8), constraints="nonnegative", rng=0)

# %%
# Printed, the choice says why. No single column of the table decides: the error alone would always vote for more.

print(choice)

# %%
# The same in a picture, with the rank that is chosen at the dashed line. The fitted error keeps falling, but the error
# of entries that were left out does not; halves of the samples agree up to the true rank and part ways beyond it; the
# residual comes down to what white noise would show. Ranks in gray have a flaw, such as a component fitted to noise.

figure, axes = plt.subplots(2, 2, figsize=(9, 6), sharex=True, layout="constrained")
choice.plot(axes=axes)
figure.suptitle(f"Rank {choice.rank} is chosen")
plt.show()

# %%
# ``choice.fit`` is the fit of that rank, and ``codiag.factorize(tensor, "auto")`` goes there in one step.

print(choice.fit)
