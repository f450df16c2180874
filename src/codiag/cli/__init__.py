"""The command line: the only part of codiag that prints."""

from __future__ import annotations

from typing import Annotated

import typer

import codiag
from codiag.cli import demonstration, models, reproduction, tensors  # noqa: F401
from codiag.cli.shared import app, out

__all__ = ["app"]


def _show_version(wanted: bool) -> None:
    if wanted:
        out.print(f"codiag {codiag.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Factorize tensors by jointly diagonalizing matrices."""
