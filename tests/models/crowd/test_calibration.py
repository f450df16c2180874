"""Probabilities are compared with known classes that the model has not seen."""

from __future__ import annotations

import numpy as np
import pytest

from codiag.models import DawidSkene
from codiag.models.crowd import held_out_calibration
from codiag.synthetic import crowd_votes, worker_confusions


@pytest.fixture(scope="module")
def crowd():
    return crowd_votes(600, worker_confusions(7, 2, seed=0), density=0.6, seed=1)


def test_held_out_classes_agree_with_probabilities(crowd):
    gold = dict(enumerate(crowd.truth[:400].tolist()))
    table = held_out_calibration(DawidSkene(random_state=0), crowd.votes, gold)
    known = np.isin(np.arange(400), crowd.votes[0])
    assert table["tasks"].sum() == known.sum()
    assert np.all((table["from"] <= table["probability"]) & (table["probability"] <= table["to"]))
    right, claimed = (table["tasks"] @ table[name] / table["tasks"].sum() for name in ("right", "probability"))
    assert abs(right - claimed) < 4 * np.sqrt(claimed * (1 - claimed) / known.sum())


def test_classes_are_not_seen_when_they_are_compared(crowd):
    """Classes that have nothing to do with the votes would all be right if the model had seen them."""
    gold = dict(enumerate(np.random.default_rng(0).integers(0, 2, 100).tolist()))
    table = held_out_calibration(DawidSkene(random_state=0), crowd.votes, gold)
    assert table["tasks"] @ table["right"] < 0.7 * table["tasks"].sum()


def test_few_known_classes_are_not_compared(crowd):
    assert held_out_calibration(DawidSkene(random_state=0), crowd.votes, {0: 1, 1: 0}) is None
