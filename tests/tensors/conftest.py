"""Fixtures of the laws of tensors."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["whole", "in blocks"])
def blocks(request, monkeypatch):
    """Every contraction is the same when done in blocks of a few entries."""
    if request.param == "in blocks":
        monkeypatch.setattr("codiag._arrays._namespace.BLOCK", 7)
