"""What other libraries have beside CP decompositions, which is not offered here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

ELSEWHERE = {
    "tensorly.decomposition": (
        "CPPower",
        "ConstrainedCP",
        "RandomizedCP",
        "SymmetricCP",
        "TensorRing",
        "TensorTrain",
        "TensorTrainMatrix",
        "Tucker",
        "constrained_parafac",
        "coupled_matrix_tensor_3d_factorization",
        "non_negative_tucker",
        "non_negative_tucker_hals",
        "parafac_power_iteration",
        "partial_tucker",
        "power_iteration",
        "randomised_parafac",
        "robust_pca",
        "symmetric_parafac_power_iteration",
        "tensor_ring",
        "tensor_ring_als",
        "tensor_train",
        "tensor_train_matrix",
        "tucker",
    ),
    "pyttb": ("cp_als", "hosvd", "tucker_als"),
}
"""Names of other libraries, by the module that has them."""


def explain_others(module: str, offered: Sequence[str], packages: Sequence[str]) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a module that says what it offers, if a name of another library is asked for.

    Its packages are imported when they are first used. For names of other libraries it raises an ImportError: what
    ``from module import name`` says of an AttributeError names a file alone.
    """

    def explain(name: str) -> Any:
        if name in packages:
            return import_module(f"{module}.{name}")
        home = next((home for home, names in ELSEWHERE.items() if name in names), None)
        if home is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise ImportError(
            f"{module} does not offer {name}, which {home} has; it offers {', '.join(offered)}, and "
            "codiag.factorize has constraints, missing entries, losses and symmetry"
        )

    return explain
