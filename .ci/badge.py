"""Draw the share of lines that tests run: ``python .ci/badge.py coverage.json badge.svg``.

With ``--check`` the badge is not written; it must not promise more than was measured, to a point.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

TARGET = 95.0
"""Percent of lines below which the badge is red."""
SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="104" height="20" role="img" aria-label="coverage: {share} %">
<title>coverage: {share} %</title>
<rect width="104" height="20" rx="3" fill="#22303c"/>
<path d="M62 0h39a3 3 0 0 1 3 3v14a3 3 0 0 1-3 3H62z" fill="{color}"/>
<g fill="#fff" text-anchor="middle" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="31" y="14">coverage</text><text x="83" y="14">{share} %</text></g></svg>
"""


def main(arguments: list[str]) -> int:
    """Write the badge, or check it; return the exit status."""
    measured, badge = (Path(name) for name in arguments if not name.startswith("--"))
    share = json.loads(measured.read_text())["totals"]["percent_covered"]
    if "--check" in arguments:
        promised = float(re.search(r"coverage: ([\d.]+)", badge.read_text())[1])  # type: ignore[index]
        print(f"{share:.1f} % of lines; the badge says {promised} %, and the target is {TARGET} %")
        return int(share < max(promised - 1, TARGET))
    badge.write_text(SVG.format(share=f"{share:.0f}", color="#00798c" if share >= TARGET else "#d1495b"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
