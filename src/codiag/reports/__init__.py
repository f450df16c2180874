"""Reports for people: one page of HTML with everything in it, for a fit and for models."""

from codiag.reports._communities import communities_report
from codiag.reports._crowd import crowd_report
from codiag.reports._factorization import factorization_report
from codiag.reports._topics import topics_report

__all__ = ["communities_report", "crowd_report", "factorization_report", "topics_report"]
