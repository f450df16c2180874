"""Tests on real data run where the data is."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

needs_data = pytest.mark.skipif(
    not Path(os.environ.get("CODIAG_DATA_DIR", "")).joinpath("crowd").is_dir(),
    reason="CODIAG_DATA_DIR is not set to a folder with real data",
)
