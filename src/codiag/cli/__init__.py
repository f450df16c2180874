"""The command line: the only part of codiag that prints."""

from __future__ import annotations

import warnings
from functools import partial
from typing import Annotated

import typer

import codiag
from codiag.cli import crowds, demo, factorization, models
from codiag.cli.commands import app
from codiag.cli.terminal import fail, options_of, out, show_warning


def main() -> None:
    """Run the command line of this process, where every warning is one line on the standard error."""
    commands = [command.callback for command in app.registered_commands if command.callback is not None]
    warnings.showwarning = partial(show_warning, options_of(*commands))
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        out.print(f"codiag {codiag.__version__}", highlight=False)
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Factorize tensors by jointly diagonalizing matrices."""


@app.command("reproduce", hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def _reproduce() -> None:
    """Name the command that runs the experiments of the paper."""
    fail("the experiments of the paper are run in the repository of codiag, by: python -m experiments run all --quick")
