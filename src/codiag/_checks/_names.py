"""Names that users may try: keywords of other libraries, which errors translate."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

SYNONYMS = (
    {"rng", "random_state", "seed", "random_seed"},
    {"rank", "ranks", "max_rank", "n_components", "n_factors", "n_topics", "n_states", "n_communities", "k", "R"},
    {"mask", "observed"},
    {"labels", "names"},
    {"weights", "sample_weight"},
    {"max_iter", "n_iter"},
    {"constraints", "constraint"},
)
"""Synonyms: names in codiag, scikit-learn, TensorLy, pyttb, hmmlearn, crowd-kit and pyriemann."""
OPTIONS = {
    ("tol", "stoptol", "eps", "rtol"): (
        "method=codiag.methods.NLS(tol=...)",
        "diagonalizer=UWEDGE(tol=...), OrthogonalNewton(tol=...) or another",
    ),
    ("max_iter", "n_iter_max", "maxiters", "maxiter", "n_iter", "max_sweeps"): (
        "method=codiag.methods.NLS(max_iter=...)",
        "diagonalizer=UWEDGE(max_sweeps=...), OrthogonalNewton(max_sweeps=...) or another",
    ),
    ("callback", "monitor"): ("method=codiag.methods.Auto(callback=...)",),
    ("time_limit", "max_seconds"): ("method=codiag.methods.Auto(time_limit=...)",),
    ("n_starts", "n_init", "n_restarts"): ("method=codiag.methods.NLS(n_starts=...)",),
    ("nonnegative", "non_negative", "nonneg"): ("constraints='nonnegative'",),
    ("orthogonal", "orthogonalise", "orthogonalize"): ("constraints='orthogonal'",),
    ("l2_reg",): ("constraints=codiag.constraints.Ridge(...)",),
    ("fixed_modes",): ("constraints=[codiag.constraints.Fixed(factor), None, None]",),
}
"""Replacements of options; the first whose keyword a function has applies."""


def explains_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function with errors that name the keyword to use.

    Parameters
    ----------
    function : callable
        A function, or the ``__init__`` of a class.

    Returns
    -------
    callable
        The function, with the same signature.
    """
    parameters = inspect.signature(function).parameters
    known = tuple(parameters)
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):  # it takes any keyword
        return function

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if not kwargs.keys() <= set(known):
            name = type(args[0]).__name__ if function.__name__ == "__init__" else function.__qualname__
            for keyword in (word for word in kwargs if word not in known):
                raise TypeError(f"{name}() got an unexpected keyword argument {keyword!r}; {_advice(keyword, known)}")
        return function(*args, **kwargs)

    return called


def _advice(keyword: str, known: tuple[str, ...]) -> str:
    """Return the replacement of a keyword, in words."""
    from difflib import get_close_matches

    same = [word for word in known for names in SYNONYMS if {word, keyword} <= names]
    if same:
        return f"here it is called {same[0]}" + (", and is true where an entry counts" if same[0] == "mask" else "")
    ways = [way for names, ways in OPTIONS.items() if keyword in names for way in ways if way.split("=")[0] in known]
    if ways:
        return f"write {ways[0]}"
    if keyword in ("verbose", "printitn"):
        return "nothing is printed; logging.basicConfig(level='INFO') shows what is done"
    similar = get_close_matches(keyword, known, 1)
    return f"did you mean {similar[0]}?" if similar else f"it takes {', '.join(known).removeprefix('self, ')}"


def public_names(names: Sequence[str], packages: Sequence[str] = ()) -> Callable[[], list[str]]:
    """Return a ``__dir__`` for a package: its public names and packages, without what other parts of codiag use."""
    return lambda: sorted([*names, *packages])


ATTRIBUTES = {
    ("parafac", "cp_als", "cpd", "decompose", "factorise", "fit", "cp", "candecomp"): "codiag.factorize(tensor, rank)",
    ("CP", "PARAFAC"): "codiag.models.CP, with scikit-learn's interface, or codiag.drop_in.CP, with TensorLy's",
    ("Parafac2", "PARAFAC2"): "codiag.parafac2(slices, rank), or codiag.models.Parafac2",
    ("evolving", "projections"): "codiag.parafac2, whose fits have them",
    ("tucker", "Tucker"): "tensorly.decomposition.tucker; codiag has CP and PARAFAC2 only",
    ("non_negative_parafac", "non_negative_parafac_hals", "ntf"): "codiag.factorize(..., constraints='nonnegative')",
    ("cp_apr", "gcp_opt"): "codiag.factorize(..., loss='poisson')",
    ("load", "read"): "codiag.Factorization.load(path)",
    ("components", "loadings", "factor_matrices", "A", "B", "C", "U", "modes"): "fit.factors, an array for each mode",
    ("lambdas", "scales"): "fit.weights",
    ("full", "full_tensor", "reconstruct", "reconstruction", "to_dense"): "fit.to_tensor(), or fit.predict(indices)",
    ("error", "rec_error", "rec_errors", "score"): "fit.relative_error, or fit.explained_variance by component",
    ("errors", "stderr", "bse"): "fit.standard_errors",
    ("intervals", "confidence_intervals"): "fit.conf_int()",
    ("loss", "constraints", "labels", "tensor", "symmetric", "n_observed"): "fit.problem",
    ("stages", "log", "n_iter", "iterations"): "fit.history",
    ("summary",): "fit.diagnose(), or fit.describe()",
    ("to_frames", "to_frame", "to_pandas"): "fit.to_table(), or fit.to_xarray()",
    ("to_tensorly", "to_pyttb"): "codiag.io",
    ("core_consistency", "corcondia"): "codiag.metrics.core_consistency(tensor, fit)",
    ("noise",): "fit.noise_model.standard_deviation",
}
"""Where to find what users may look for in codiag, or in a fit."""


def attribute_hint(name: str) -> str:
    """Return where to find what an attribute that does not exist may mean, or an empty string."""
    return next((f"; see {place}" for names, place in ATTRIBUTES.items() if name in names), "")
