"""Write files whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np


@contextmanager
def written_at_once(path: Path) -> Iterator[IO[bytes]]:
    """Give a file beside this one to write to, which takes its place at the end: no reader ever sees half of it."""
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path.parent} is not a folder that exists")
    with tempfile.NamedTemporaryFile(
        dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix, delete=False
    ) as file:
        temporary = Path(file.name)
        try:
            yield file
            file.close()
            temporary.chmod(0o666 & ~_umask())
            temporary.replace(path)
        except BaseException:
            temporary.unlink()
            raise


def save_arrays(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """Write an ``.npz`` file."""
    with written_at_once(path) as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
