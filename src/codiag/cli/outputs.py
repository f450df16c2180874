"""Check the files that a command is asked to write, before any work is done."""

from __future__ import annotations

import itertools
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path

from codiag.cli.streams import STREAM
from codiag.cli.terminal import fail
from codiag.io import split_dataset

PICTURES = {".png", ".svg", ".pdf"}
TABLES = {".csv", ".tsv"}
ARRAYS = {".npz"}
PAGES = {".html"}
Outputs = Mapping[str, tuple[Path | None, set[str]]]
"""For every option, the file that it names, if any, and the extensions that are allowed."""


def check_outputs(outputs: Outputs, sources: Sequence[Path] = (), *, force: bool) -> None:
    """Exit where a result could not be written, or would replace a file that exists.

    The input files `sources` are never replaced, whatever the name that is given; other files only with `force`.
    """
    asked = {option: path for option, (path, _) in outputs.items() if path is not None}
    streams = [option for option, path in asked.items() if path == STREAM]
    if len(streams) > 1:
        fail(f"{streams[0]} and {streams[1]} must not both be -, the standard output; name a file for one")
    for option in streams:
        _check_stream(option, outputs[option][1])
        del asked[option]
    for option, path in asked.items():
        for source, _ in map(split_dataset, sources):
            if _same_file(path, source):
                fail(f"{option} must not be the file that is read, {source}; choose another name")
            if source.suffix.lower() == ".zarr" and path.resolve().is_relative_to(source.resolve()):
                fail(f"{option} must not lie in the folder that is read, {source}; choose another folder")
        _check_writable(path, option, outputs[option][1])
    for (first, one), (second, other) in itertools.combinations(asked.items(), 2):
        if _same_file(one, other):
            fail(f"{first} and {second} must be two files; both are {one}")
    for option, path in asked.items():
        if path.exists() and not force:
            fail(f"{option} must not be a file that exists, unless it is to be replaced: {path}. Then add --force")
    if asked.keys() & {"--figure", "--report"}:
        import_module("matplotlib")  # missing, it is missed before the work rather than after it


def stream_ending(endings: set[str]) -> str:
    """Return in which form a result goes to the standard output: as text where there is one."""
    return ".csv" if ".csv" in endings else min(endings)


def _check_stream(option: str, endings: set[str]) -> None:
    if endings & PICTURES:
        fail(f"{option} must be a file; pictures are not written to the standard output")
    ending = stream_ending(endings)
    if ending not in TABLES and sys.stdout.isatty():
        fail(f"{option} must not be - on a terminal, which cannot show {ending} files; add > FILE or | PROGRAM")


def _same_file(one: Path, other: Path) -> bool:
    """Tell whether two paths are one file, also through symbolic or hard links."""
    if one.resolve() == other.resolve():
        return True
    return one.exists() and other.exists() and one.samefile(other)


def _check_writable(path: Path, option: str, endings: set[str]) -> None:
    parent = path.resolve().parent
    if not parent.is_dir():
        fail(f"{option} must be in a folder that exists; {parent} does not")
    if path.suffix.lower() not in endings:
        fail(f"{option} must end in {', '.join(sorted(endings))}; got {path.name}")
    if path.is_dir() or not os.access(path if path.exists() else parent, os.W_OK):
        fail(f"{option} must be a file that can be written; {path} is not")
