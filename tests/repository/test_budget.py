"""The budget of code: what comes in pays by what goes out. CHANGELOG.md explains every number that is raised."""

from __future__ import annotations

import ast
import functools
import io
import tokenize
from collections import Counter
from pathlib import Path

import pytest

import codiag

PACKAGE = Path(codiag.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_LINES = 28_900
MOST_LINES_OF_A_FILE = 400
MOST_FILES = 292
MOST_CONSTANTS = 316
MOST_PUBLIC_NAMES = 150
MOST_MEMBERS = 28
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@functools.cache
def lines_of_code(text):
    """Return how many lines of a file have code on them: no comments, no blanks, no text that stands by itself."""
    covered = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            covered.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            covered.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(covered)


@functools.cache
def trees():
    """Return the syntax trees of all files."""
    return {path: ast.parse(path.read_text()) for path in FILES}


def assigned(tree):
    """Yield the names that a module assigns at its top level, with their values."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(name, ast.Name):
                    yield name.id, node.value


def package_of(path):
    """Return the package of codiag, at the first level, that a file is in."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "(root)"


def table(counts):
    """Return counts by package, the largest first."""
    total = Counter()
    for path, count in counts.items():
        total[package_of(path)] += count
    return "\n".join(f"{count:8,} {name}" for name, count in total.most_common())


def check(what, counts, most):
    total = sum(counts.values())
    assert total <= most, (
        f"{total:,} {what}, {total - most:,} above the limit of {most:,}; by package:\n{table(counts)}"
    )


def test_lines_of_code():
    check("lines of code", {path: lines_of_code(path.read_text()) for path in FILES}, MOST_LINES)


def test_files():
    check("files", dict.fromkeys(FILES, 1), MOST_FILES)


def test_no_file_is_long():
    sizes = {path.relative_to(PACKAGE).as_posix(): lines_of_code(path.read_text()) for path in FILES}
    assert {path: size for path, size in sizes.items() if size > MOST_LINES_OF_A_FILE} == {}


def test_constants_of_modules():
    counts = {path: sum(name.isupper() for name, _ in assigned(tree)) for path, tree in trees().items()}
    check("constants of modules", counts, MOST_CONSTANTS)


def test_public_names():
    lists = {path: dict(assigned(tree)).get("__all__") for path, tree in trees().items()}
    counts = {path: len(names.elts) for path, names in lists.items() if isinstance(names, ast.List | ast.Tuple)}
    check("public names", counts, MOST_PUBLIC_NAMES)


def test_public_members_of_a_fit():
    own = [node for tree in trees().values() for node in tree.body if isinstance(node, ast.ClassDef)]
    (fit,) = [node for node in own if node.name == "Factorization"]
    members = {node.name for node in fit.body if isinstance(node, ast.FunctionDef)}
    members |= {node.target.id for node in fit.body if isinstance(node, ast.AnnAssign)}
    members = sorted(name for name in members if not name.startswith("_"))
    assert len(members) <= MOST_MEMBERS, f"{len(members)} members of Factorization, at most {MOST_MEMBERS}: {members}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("x = 1\n", 1), ('"""Text."""\n\n# comment\nx = """a\nb"""\n', 2), ('def f():\n    """Text\n    here."""\n', 1)],
)
def test_docstrings_comments_and_blanks_are_no_code(text, expected):
    assert lines_of_code(text) == expected
