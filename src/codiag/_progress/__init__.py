"""Progress of whatever takes longer than a moment, on a terminal and in notebooks."""

from codiag._progress._bar import Passes, progress_bar, progress_if
