"""What is known and not mended yet: findings that do not count against a run, each with its reason."""

from __future__ import annotations

import re
from typing import NamedTuple

from .case import Finding


class Known(NamedTuple):
    """A finding that is expected: patterns of its kind, its function and its line, and why it stands."""

    kind: str
    function: str
    line: str
    reason: str


ANY = ".*"
REFUSAL = "not codiag's refusal|names no argument|wrong exception|nonsense accepted|not finite|warning"
"""What becomes of a wrong argument that nobody looks at."""

KNOWN: tuple[Known, ...] = (
    Known(REFUSAL, r"codiag\.(theory|synthetic|metrics)\..*", ANY, "theory, synthetic and metrics hardly validate"),
    Known(
        "refused valid",
        r"codiag\.metrics\..*",
        "inhomogeneous",
        "pairs of weights and factors are not taken for factors",
    ),
    Known(REFUSAL, ANY, r"SeedSequence|non-negative integer|seed must be", "seeds are looked at by factorize alone"),
    Known(REFUSAL, ANY, r"os\.PathLike|'seek'|must end in|Is a directory", "paths of a wrong kind are not looked at"),
    Known(
        REFUSAL,
        r"codiag\.(datasets|corpora|files|tables|Factorization).*",
        ANY,
        "readers let errors of other libraries through",
    ),
    Known(REFUSAL, r"codiag\.tensors\..*", ANY, "constructors of tensors let errors of other libraries through"),
    Known(
        REFUSAL, r"codiag\.(methods|drop_in|models|joint_diag).*", ANY, "options let errors of other libraries through"
    ),
    Known("model|probabilities|order|seed", r"codiag\.models\..*", ANY, "order after EM, NaN means, rates above one"),
    Known(
        "unit columns|shape|worse than ALS|saddle", ANY, ANY, "ties: zero columns and saddles; Lathauwer's components"
    ),
    Known(
        "wrong exception|warning|refused valid",
        r"codiag\.(factorize|methods\..*)",
        ANY,
        "zero columns, singular slices",
    ),
    Known("relative_error|not converged", r"codiag\..*", ANY, "float32 storages lose digits; flags that are not true"),
    Known("endless|killed", ANY, ANY, "wide sparse tensors and degenerate fits take too long"),
    Known(
        "input changed|state changed|command",
        r"codiag\.cli\.app",
        ANY,
        "--out may be the input; escapes reach the terminal",
    ),
)


def is_known(finding: Finding) -> bool:
    """Tell whether a finding is on the list."""
    return any(
        re.fullmatch(one.kind, finding.kind)
        and re.fullmatch(one.function, finding.function)
        and re.search(one.line, finding.line)
        for one in KNOWN
    )
