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


KNOWN: tuple[Known, ...] = (
    Known(
        "killed",
        r"codiag\.(datasets\.read_facebook|files\.read_tensor|cli\.app)",
        "ended by signal 11",
        "scipy.io.loadmat ends the process on some .mat files with a few bits turned",
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
