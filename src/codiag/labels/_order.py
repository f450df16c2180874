"""The order of text labels: that of their first appearance, or that of the numbers in them."""

from __future__ import annotations

import re

import numpy as np

NUMBER = re.compile(r"(\d+)")
ISO_DATE = re.compile(r"\d{4}(\D\d\d)+")
"""Dates and times whose parts have fixed widths, the largest unit first; their order is that of the text."""


def natural_key(label: str) -> list[tuple[bool, int, str]]:
    """Return a key that sorts numbers within text by their size: store2 before store10."""
    parts = NUMBER.split(label)
    return [(True, int(part), part) if at % 2 else (False, 0, part) for at, part in enumerate(parts)]


def is_numbered(labels: list[str]) -> bool:
    """Return whether labels differ in one number alone, as store2 and store10, or are dates from the year on."""
    if all(ISO_DATE.fullmatch(label) for label in labels):
        return len(set(map(len, labels))) == 1
    split = [NUMBER.split(label) for label in labels]
    if len({len(parts) for parts in split}) != 1:
        return False
    differing = [at for at, parts in enumerate(zip(*split, strict=True)) if len(set(parts)) > 1]
    return len(differing) == 1 and differing[0] % 2 == 1


def order_of_texts(labels: np.ndarray, first: np.ndarray, *, is_sorted: bool) -> np.ndarray:
    """Return the order of different text labels, whose first rows are `first`.

    Labels that differ in one number alone are sorted by it, others are in the order of their first rows, unless all are
    to be sorted.
    """
    listed = [str(label) for label in labels.tolist()]
    if is_sorted or is_numbered(listed):
        return np.array(sorted(range(len(listed)), key=lambda at: natural_key(listed[at])), dtype=np.intp)
    return np.argsort(first, kind="stable")
