"""How many components: fits of several ranks, the assessment of each, and the choice.

`codiag.choose_rank` fits ranks upward and returns a `codiag.RankChoice`: the rank, the reason, the fits, and the
evidence as a table and as a plot.

Examples
--------
>>> import codiag
>>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
>>> codiag.choose_rank(tensor, range(1, 5), rng=0).rank
2
"""

from codiag.selection._choice import HEADINGS, LEGEND, RankChoice
from codiag.selection._choose import choose, choose_rank, fit_with_chosen_rank
from codiag.selection._upward import held_out_deviances
