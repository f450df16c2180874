"""Names that users may try: keywords of other libraries, which errors translate, and former names, which still work."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

SYNONYMS = (
    {"seed", "random_state", "rng", "random_seed"},
    {"rank", "ranks", "max_rank", "n_components", "n_factors", "n_topics", "n_states", "n_communities", "k", "R"},
    {"observed", "mask"},
    {"weights", "sample_weight"},
    {"max_iter", "n_iter"},
    {"constraints", "constraint"},
)
"""Synonyms: names in codiag, scikit-learn, TensorLy, pyttb, hmmlearn, crowd-kit and pyriemann."""
MEANING = {"observed": ", and is true where an entry counts"}
"""The meaning of arguments that is opposite in other libraries, as in masked arrays."""
OPTIONS = {
    ("tol", "stoptol", "eps", "rtol"): (
        "method=codiag.methods.NLS(tol=...)",
        "diagonalizer=UWEDGE(tol=...), OrthogonalNewton(tol=...) or another",
    ),
    ("max_iter", "n_iter_max", "maxiters", "maxiter", "n_iter", "max_sweeps"): (
        "method=codiag.methods.NLS(max_sweeps=...)",
        "diagonalizer=UWEDGE(max_sweeps=...), OrthogonalNewton(max_sweeps=...) or another",
    ),
    ("init",): ("method=codiag.methods.NLS(init=...)",),
    ("n_starts", "n_init", "n_restarts"): ("method=codiag.methods.NLS(n_starts=...)",),
    ("nonnegative", "non_negative", "nonneg"): ("constraints='nonnegative'",),
    ("orthogonal", "orthogonalise", "orthogonalize"): ("constraints='orthogonal'",),
    ("l2_reg",): ("constraints=codiag.constraints.Ridge(...)",),
    ("fixed_modes",): ("constraints=[codiag.constraints.Fixed(factor), None, None]",),
}
"""Replacements of options; the first whose keyword a function has applies."""


def explains_keywords(function: Callable[P, R], former: Mapping[str, str] | None = None) -> Callable[P, R]:
    """Return the function with errors that name the keyword to use, and with former keywords accepted.

    Parameters
    ----------
    function : callable
        A function, or the ``__init__`` of a class.
    former : mapping of str to str, optional
        Keywords that were renamed, with their new names: they are accepted, with a DeprecationWarning.

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
            if former:
                kwargs = with_new_keywords(name, former, kwargs)  # type: ignore[assignment]
            for keyword in (word for word in kwargs if word not in known):
                raise TypeError(f"{name}() got an unexpected keyword argument {keyword!r}; {_advice(keyword, known)}")
        return function(*args, **kwargs)

    return called


def _advice(keyword: str, known: tuple[str, ...]) -> str:
    """Return the replacement of a keyword, in words."""
    from difflib import get_close_matches

    same = [word for word in known for names in SYNONYMS if {word, keyword} <= names]
    if same:
        return f"here it is called {same[0]}{MEANING.get(same[0], '')}"
    ways = [way for names, ways in OPTIONS.items() if keyword in names for way in ways if way.split("=")[0] in known]
    if ways:
        return f"write {ways[0]}"
    if keyword in ("verbose", "printitn"):
        return "nothing is printed; logging.basicConfig(level='INFO') shows what is done"
    similar = get_close_matches(keyword, known, 1)
    return f"did you mean {similar[0]}?" if similar else f"it takes {', '.join(known).removeprefix('self, ')}"


GONE_IN = "0.4"
"""The version in which former names stop working: one minor version after the rename."""


def warn_of_former(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that a name was renamed, at the line of the caller's caller."""
    warnings.warn(f"{old} is now {new}; the old name goes in {GONE_IN}", DeprecationWarning, stacklevel=stacklevel)


def with_new_keywords(function: str, former: Mapping[str, str], given: dict[str, Any]) -> dict[str, Any]:
    """Return keyword arguments with former names replaced by the new ones, and a warning for each."""
    renamed = {}
    for name, value in given.items():
        new = former.get(name, name)
        if new in renamed or (new != name and new in given):
            raise TypeError(f"{function}() got {new} twice: {name} is its former name")
        if new != name:
            warn_of_former(f"{name} of {function}", new, stacklevel=4)
        renamed[new] = value
    return renamed


def former_names(
    module: str, renamed: Mapping[str, str], removed: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module that resolves former names, each with a DeprecationWarning.

    Parameters
    ----------
    module : str
        The module that had the names.
    renamed : mapping of str to str
        The full new name of each, such as ``"codiag.io.read_votes"``.
    removed : mapping of str to str, optional
        Names that are gone, with the advice for the error.

    Returns
    -------
    callable
        To be assigned to ``__getattr__`` in that module.
    """

    def resolve(name: str) -> Any:
        if removed and name in removed:
            raise AttributeError(f"{module}.{name} was removed in 0.3; {removed[name]}")
        if name not in renamed:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home, _, new = renamed[name].rpartition(".")
        warn_of_former(f"{module}.{name}", renamed[name])
        return getattr(import_module(home), new)

    return resolve


def public_names(names: Sequence[str], packages: Sequence[str] = ()) -> Callable[[], list[str]]:
    """Return a ``__dir__`` for a package: its public names and packages, without what other parts of codiag use."""
    return lambda: sorted([*names, *packages])


class FormerAttributes:
    """Base of classes with renamed attributes: the former names can be read, and be declared by subclasses."""

    former_attributes: ClassVar[Mapping[str, str]] = {}
    """The new name of each attribute that had another one."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Set what a subclass declares by a former name under the new name."""
        super().__init_subclass__(**options)
        for old, new in cls.former_attributes.items():
            if old in vars(cls):
                warn_of_former(f"{old} of {cls.__name__}", new)
                setattr(cls, new, vars(cls)[old])

    if not TYPE_CHECKING:  # for type checkers every attribute would exist

        def __getattr__(self, name: str) -> Any:
            """Resolve former names of attributes, with a DeprecationWarning."""
            if name not in type(self).former_attributes:
                return super().__getattribute__(name)  # raises again, also what a property of this name raised
            new = type(self).former_attributes[name]
            warn_of_former(f"{name} of {type(self).__name__}", new)
            return getattr(self, new)
