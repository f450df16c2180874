"""Formulas as MathML, which browsers draw by themselves: pages need no script from elsewhere, and no network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util import logging

UNKNOWN = {r"\\dots(?![a-zA-Z])": r"\\ldots", r"\\([bB]ig|textstyle)(?![a-zA-Z])": ""}
"""Commands that docutils does not know, and what stands in for them: MathML stretches brackets by itself."""
told = logging.getLogger(__name__)


def setup(app: Any) -> dict[str, bool]:
    """Offer formulas as MathML, under the name of this module."""
    app.add_html_math_renderer("mathml", inline_renderers=(_inline, None), block_renderers=(_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _inline(translator: Any, node: Any) -> None:
    translator.body.append(_drawn(node, as_block=False))
    raise nodes.SkipNode


def _block(translator: Any, node: Any) -> None:
    translator.body.append(f'<div class="formula">{_drawn(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def _drawn(node: Any, *, as_block: bool) -> str:
    text = node.astext()
    for command, other in UNKNOWN.items():
        text = re.sub(command, other, text)
    try:
        return tex2mathml(text, as_block=as_block)
    except MathError as error:
        told.warning("formula cannot be drawn: %s", error, location=node)
        return f"<code>{node.astext()}</code>"
