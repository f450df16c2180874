"""Reports: pages of HTML, with tables, figures and advice (extra ``report``).

========================= =====================================================================
`factorization_report`    A fit: choice of the rank, components, diagnosis, residuals.
`rank_report`             A choice of the rank: the reason, and the evidence for every rank.
`jury_report`             Votes of a jury: accuracies of judges, correlated judges, uncertain items.
`topics_report`           Topics of texts: words, shares, documents.
========================= =====================================================================

Each returns a string, and writes it to the file that the argument after the data names, to be opened in a browser:
``jury_report(model, "jury.html")``. Pages need no network and no script.

Examples
--------
>>> import codiag
>>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, rng=0).tensor
>>> page = codiag.reports.factorization_report(codiag.factorize(tensor, 2, rng=0), tensor)
>>> page.startswith("<!")
True
"""

from codiag._checks import public_names
from codiag.reports._fit import factorization_report, rank_report
from codiag.reports._jury import clusters_in_words, effective_annotators, jury_report
from codiag.reports._topics import topics_report

__all__ = ["factorization_report", "jury_report", "rank_report", "topics_report"]

__dir__ = public_names(__all__)
