"""Progress on the standard error."""

from codiag._progress._bar import progress_if, tell
