"""The command line: the only part of codiag that prints."""

from __future__ import annotations

import warnings
from typing import Annotated

import typer

import codiag
from codiag.cli import demo, factorization, models, votes
from codiag.cli.commands import app, say, stdout


def main() -> None:
    """Run the command line of this process, where every warning is one line on the standard error."""
    warnings.showwarning = lambda message, *_source, **_more: say("[yellow]Warning:[/yellow]", str(message))
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        stdout.print(f"codiag {codiag.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Factorize tensors by jointly diagonalizing matrices."""
