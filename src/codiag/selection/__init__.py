"""How many components: fits of several ranks, the evidence for each, and the choice.

`codiag.choose_rank` fits every rank and returns a `codiag.RankChoice`: the rank, the reason, the fits, and the evidence
as a table and as a plot. If the residual of a rank passes for white noise, the largest rank whose components all exceed
noise is chosen; otherwise the one that replicates in halves of the data and predicts entries left out.

Examples
--------
>>> import codiag
>>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, seed=0).tensor
>>> codiag.choose_rank(tensor, range(1, 5), seed=0).rank
2
"""

from codiag.selection._choice import HEADINGS, LEGEND, RankChoice
from codiag.selection._choose import choose, choose_rank, fit_with_chosen_rank
from codiag.selection._evidence import Evidence, decide, is_settled
from codiag.selection._scan import Scan, excess_over_draws, scan
