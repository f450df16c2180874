"""Names in single backticks: a link where the site has a page for the object, under whatever name it is written."""

from __future__ import annotations

import inspect
from importlib import import_module
from typing import Any

from docutils import nodes


def resolve_name(app: Any, env: Any, node: Any, content: Any) -> Any:
    """Return a link to the page of a name that Sphinx did not find.

    An object may have several names, `codiag.metrics.factor_error` and `codiag.factor_error`, and its page has one of
    them. A name within a docstring may be that of a member of the class. Names that are not codiag's, such as those of
    parameters, stay as they are; one that begins with ``codiag.`` and leads nowhere is left to Sphinx, which warns.
    """
    if node.get("refdomain") != "py" or node.get("reftype") != "obj":
        return None
    target, owner = node["reftarget"], node.get("py:class")
    objects = env.domains["py"].objects
    for name in _names(target, node.get("py:module"), owner):
        if name in objects:
            found = objects[name]
            return _link(app, node, found.docname, found.node_id, content)
    return None if target.startswith("codiag.") else nodes.literal(target, target)


def link_literals(app: Any, doctree: Any, docname: str) -> None:
    """Make links of literals on pages, such as ``codiag.factorize``, that are names of the API."""
    objects = app.env.domains["py"].objects
    for literal in list(doctree.findall(nodes.literal)):
        name = literal.astext().split("(")[0]
        if not name.startswith("codiag.") or isinstance(literal.parent, nodes.reference):
            continue
        found = next((objects[full] for full in _names(name, None, None) if full in objects), None)
        if found is not None and found.docname != docname:
            place = app.builder.get_relative_uri(docname, found.docname)
            link = nodes.reference("", "", internal=True, refuri=f"{place}#{found.node_id}")
            literal.replace_self(link)
            link += literal


def _names(target: str, module: str | None, owner: str | None) -> list[str]:
    """Return the names that an object may have on the site."""
    prefixes = [f"{module}.{owner}." if owner else "", f"{module}." if module else "", "", "codiag."]
    names = [prefix + target for prefix in prefixes]
    names += [place for place, _, field in (name.rpartition(".") for name in names) if _has_field(place, field)]
    ours = [name for name in names if name.startswith("codiag.")]
    found = [member for member in map(_import, ours) if member is not None]
    return names + [name for member in found for name in _public_names(member)]


def _has_field(owner: str, field: str) -> bool:
    """Tell whether a class of codiag has a field, which is told on the page of the class."""
    found = _import(owner) if owner.startswith("codiag.") else None
    return inspect.isclass(found) and field in getattr(found, "__dataclass_fields__", ())


def _public_names(member: Any) -> list[str]:
    """Return the names of an object: its own in the packages that hold it."""
    module, own = getattr(member, "__module__", None), getattr(member, "__qualname__", None)
    if not isinstance(module, str) or not own or not module.startswith("codiag"):
        return []
    parts = module.split(".")
    return [".".join([*parts[:size], own]) for size in range(len(parts), 0, -1)]


def _import(name: str) -> Any:
    """Return what has a dotted name, or None."""
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:size]))
        except ImportError:
            continue
        for part in parts[size:]:
            found = inspect.getattr_static(found, part, None)
        return found
    return None


def _link(app: Any, node: Any, docname: str, anchor: str, content: Any) -> nodes.reference:
    place = app.builder.get_relative_uri(node["refdoc"], docname)
    link = nodes.reference("", "", internal=True, refuri=f"{place}#{anchor}")
    link += content
    return link
