"""Everything public says what it takes, what it returns, and shows a call that runs."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from importlib import import_module
from types import FunctionType

import pytest

import codiag

PROGRAMS = {"cli", "experiments", "plotting"}  # run by commands, not called by users
PACKAGES = [name for name in dir(codiag) if inspect.ismodule(getattr(codiag, name)) and name not in PROGRAMS]
PENDING: dict[str, str] = {
    "codiag": """
        Factorization.diagnose Factorization.to_tensor Factorization.to_tensorly Factorization.to_pyttb
        Factorization.save Factorization.load Problem.on Problem.scaled
    """,
    "codiag.diagonalize": """
        LUJ1D QRJ1D UWEDGE Diagonalization Diagonalization.transposed Diagonalization.reconstruct Diagonalizer
        Diagonalizer.sweep_flops JDi Jacobi OrthogonalNewton TwoSided symmetrized
    """,
    "codiag.models": """
        DawidSkene.fit DawidSkene.fit_predict DawidSkene.fit_predict_proba DawidSkene.predict_proba
        DawidSkene.predict DawidSkene.label_table DawidSkene.worker_table HiddenMarkov.fit HiddenMarkov.score
        HiddenMarkov.predict HiddenMarkov.predict_proba HiddenMarkov.to_hmmlearn LatentDirichlet.fit
        LatentDirichlet.partial_fit LatentDirichlet.transform LatentDirichlet.score LatentDirichlet.perplexity
        LatentDirichlet.top_words LatentDirichlet.get_feature_names_out LatentDirichlet.to_sklearn
        MixedMembershipCommunities.fit MixedMembershipCommunities.fit_predict
        MixedMembershipCommunities.overlapping_labels MixedMembershipCommunities.membership_table
        MixedMembershipCommunities.to_cdlib MultiviewMixture.fit MultiviewMixture.predict_proba
        MultiviewMixture.predict SingleTopic SingleTopic.predict SphericalGaussianMixture.fit
        SphericalGaussianMixture.predict_proba SphericalGaussianMixture.predict SphericalGaussianMixture.fit_predict
        SphericalGaussianMixture.score_samples SphericalGaussianMixture.score SphericalGaussianMixture.to_sklearn
    """,
    "codiag.tensors": """
        DenseTensor.of DenseTensor.asymmetry FactoredTensor.changed FactoredTensor.columns FactoredTensor.joined
        FactoredTensor.minus MomentTensor PlacementTensor ScaledTensor SparseTensor.without_empty_rows SumTensor
        Tensor Tensor.project Tensor.permute Tensor.compress Tensor.mttkrp Tensor.mttkrps Tensor.squared_norm
        Tensor.inner Tensor.squared_distance Tensor.without_symmetry Tensor.to_dense WordMomentTensor WordPairs
        as_tensor symmetrize word_frequencies
    """,
    "codiag.theory": """
        Diagnosis FirstOrder afsari_bound concentration condition diagnose error_bound first_order incoherence
        kruskal_condition kruskal_rank least_projections project_noise projected_diagonals projections_for
        standard_errors uniqueness_moduli
    """,
}
"""What is still to be written, by package. The list only shrinks: a name that is complete must leave it."""


def public_objects():
    """Yield (name, object, whether it is a method) for what is in `__all__`, and for the methods of its classes."""
    found = {}
    for package in [*PACKAGES, ""]:
        module = import_module(f"codiag.{package}".rstrip("."))
        for name in getattr(module, "__all__", ()):
            member = getattr(module, name)
            if callable(member) and getattr(member, "__module__", "").startswith("codiag"):
                found.setdefault(member, f"{module.__name__}.{name}")
    for member, name in found.items():
        yield name, member, False
        if inspect.isclass(member):
            for method in methods(member, found):
                yield f"{name}.{method}", inspect.getattr_static(member, method), True


def methods(owner, public):
    """Return the names of public methods that a class or a private base of it is the first of codiag to define.

    An override is what the class it comes from says it is.
    """
    own = [base for base in owner.__mro__ if base.__module__.startswith("codiag")]
    known = {name for base in own if base in public and base is not owner for name in vars(base)}
    kinds = (property, cached_property, classmethod, staticmethod, FunctionType)
    apart = [base for base in own if base is owner or base not in public]
    first = {name: raw for base in apart for name, raw in vars(base).items() if name not in known}
    return [name for name, raw in first.items() if not name.startswith("_") and isinstance(raw, kinds)]


def sections(text):
    """Return the sections of a numpydoc docstring, by heading."""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def documented(section):
    """Return the names that the entries of a section begin with: ``a, b : int``."""
    heads = [line.split(" : ")[0] for line in section.splitlines() if line and not line.startswith(" ")]
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def parameters(function):
    """Return the names of the arguments of a function, or of a class."""
    if inspect.isclass(function) and issubclass(function, Warning):
        return set()
    kept = [name for name in inspect.signature(function).parameters if not name.startswith("_")]
    return set(kept) - {"self", "args", "kwargs"}


def missing(found, *, is_method):
    """Return what the docstring of a function, a class, a method or a property lacks."""
    if isinstance(found, classmethod | staticmethod):
        found = found.__wrapped__
    text = inspect.getdoc(found) or ""
    there = sections(text)
    lacks = [] if re.match(r"[A-Z`].*[.:]$", text.split("\n\n")[0], re.DOTALL) else ["a first sentence"]
    if isinstance(found, property | cached_property):
        return lacks
    named = documented(there.get("Parameters", ""))
    if inspect.isclass(found):
        named |= documented(there.get("Attributes", ""))
    elif inspect.signature(found).return_annotation not in (None, "None") and not {"Returns", "Yields"} & set(there):
        lacks.append("Returns")
    lacks += [f"parameter {name}" for name in sorted(parameters(found) - named)]
    if not is_method and ">>> " not in there.get("Examples", ""):
        lacks.append("Examples")
    return lacks


LACKING = {name: lacks for name, found, is_method in public_objects() if (lacks := missing(found, is_method=is_method))}
PENDING_NAMES = {f"{package}.{name}" for package, names in PENDING.items() for name in names.split()}


def test_docstrings_are_complete():
    assert {name: lacks for name, lacks in LACKING.items() if name not in PENDING_NAMES} == {}


def test_what_is_pending_is_not_complete():
    assert sorted(PENDING_NAMES - set(LACKING)) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_packages_say_what_is_public(package):
    module = import_module(f"codiag.{package}")
    assert module.__doc__
    assert module.__all__


def documented_function(rows, *, columns=3) -> int:
    """Return a number.

    Parameters
    ----------
    rows : int
    columns : int

    Returns
    -------
    int

    Examples
    --------
    >>> 1 + 1
    2
    """


@pytest.mark.parametrize(
    ("cut", "lacks"),
    [
        ("Return a number.", ["a first sentence"]),
        ("columns : int\n", ["parameter columns"]),
        ("Returns\n-------\nint", ["Returns"]),
        (">>> 1 + 1", ["Examples"]),
    ],
)
def test_what_is_left_out_is_seen(cut, lacks):
    def changed(rows, *, columns=3) -> int: ...

    changed.__doc__ = inspect.getdoc(documented_function)
    assert missing(changed, is_method=False) == []
    assert cut in changed.__doc__
    changed.__doc__ = changed.__doc__.replace(cut, "")
    assert missing(changed, is_method=False) == lacks
