"""How many inputs hypothesis draws, and what the suite leaves out where an extra is not installed."""

import os
from importlib.util import find_spec

import pytest
from hypothesis import settings

# Choose one by HYPOTHESIS_PROFILE: "suite" and "all" draw the same inputs every time, "fuzz" draws new ones.
settings.register_profile("suite", max_examples=100, derandomize=True, deadline=None, database=None)
settings.register_profile("all", settings.get_profile("suite"), max_examples=1000)
settings.register_profile("fuzz", max_examples=5000, deadline=None, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

NEEDS = {
    "matplotlib": ["src/codiag/plotting", "src/codiag/reports"],  # their examples draw: the extra 'plot'
    "jinja2": ["src/codiag/reports"],  # the extra 'report'
    "dask": ["src/codiag/tensors/chunked"],  # the extra 'dask'
}
EXAMPLES_NEED = {
    "Factorization.plot": "matplotlib",
    "Factorization.to_pyttb": "pyttb",
    "Factorization.to_tensorly": "tensorly",
    "Factorization.to_xarray": "xarray",
    "HiddenMarkov.to_hmmlearn": "hmmlearn",
    "Parafac2Fit.plot": "matplotlib",
    "Parafac2Fit.to_xarray": "xarray",
    "RankChoice.plot": "matplotlib",
}
collect_ignore = [place for package, places in NEEDS.items() if find_spec(package) is None for place in places]


def pytest_collection_modifyitems(items):
    """Skip the example of a method that needs a package which is not there."""
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            package = EXAMPLES_NEED.get(".".join(item.name.split(".")[-2:]))
            if package is not None and find_spec(package) is None:
                item.add_marker(pytest.mark.skip(reason=f"{package} is not installed"))
