"""Reports: one page of HTML, with tables, figures and advice, for a fit and for models.

========================= =====================================================================
`factorization_report`    A fit: choice of the rank, components, diagnosis, residuals.
`crowd_report`            Labels from a crowd: doubtful tasks, workers, their errors.
`jury_report`             Votes of a jury: judges to trust, who thinks alike, items for a person.
`communities_report`      Communities of a network: sizes, members, nodes between them.
`topics_report`           Topics of texts: words, shares, documents.
========================= =====================================================================

Each returns a string, and writes it to the file that the argument after the data names, to be opened in a browser:
``crowd_report(model, "crowd.html")``. Pages need no network; only the map of `topics_report` needs a script, its own.

Examples
--------
>>> import codiag
>>> tensor = codiag.synthetic.noisy_tensor((9, 8, 7), 2, noise=0.01, seed=0).tensor
>>> page = codiag.reports.factorization_report(codiag.factorize(tensor, 2, seed=0), tensor)
>>> page.startswith("<!")
True
"""

from codiag._checks import public_names
from codiag.reports._alike import families_in_words, worth_of
from codiag.reports._communities import communities_report
from codiag.reports._crowd import crowd_report
from codiag.reports._factorization import factorization_report, index_advice, sign_advice
from codiag.reports._html import STYLE, as_svg, document, folded, svg_image, table
from codiag.reports._jury import judge_table, jury_report
from codiag.reports._topic_map import page_data, relevance, topic_map
from codiag.reports._topics import topics_report

__all__ = ["communities_report", "crowd_report", "factorization_report", "jury_report", "topics_report"]

__dir__ = public_names(__all__)
