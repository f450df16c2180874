"""What the suite leaves out where an extra is not installed."""

from importlib.util import find_spec

NEEDS = {
    "matplotlib": ["src/codiag/plotting", "src/codiag/reports"],  # their examples draw: the extra 'plot'
    "dask": ["src/codiag/tensors/_chunks.py", "src/codiag/tensors/_dask.py"],  # the extra 'dask'
}
collect_ignore = [place for package, places in NEEDS.items() if find_spec(package) is None for place in places]
