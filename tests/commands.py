"""The command line as tests call it, and the tables that it writes."""

from __future__ import annotations

import csv
from inspect import signature

from click.testing import CliRunner as ClickRunner
from typer.testing import CliRunner

runner = CliRunner()
# Old versions of click mix what goes to the two streams, unless told not to; new ones keep both apart, and mixed.
APART = {"mix_stderr": False} if "mix_stderr" in signature(ClickRunner.__init__).parameters else {}
apart = CliRunner(**APART)


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
