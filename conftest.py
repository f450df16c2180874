"""What the suite leaves out where an extra is not installed."""

from importlib.util import find_spec

# The examples of `codiag.plotting` draw, for which they need the extra 'plot'.
collect_ignore = [] if find_spec("matplotlib") else ["src/codiag/plotting"]
