"""Run the command line: ``python -m codiag``."""

from codiag.cli import app

app()
