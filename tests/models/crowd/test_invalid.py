"""Votes that are no judgments are set aside, in every form of votes, and nothing else is."""

from __future__ import annotations

import numpy as np
import pytest

from codiag.io import set_aside_invalid
from codiag.models import DawidSkene
from codiag.models.crowd import label_columns
from codiag.synthetic import crowd_votes, worker_confusions


def crowd(n_invalid=2):
    """Return 3,000 votes of ten workers, some of them errors of two kinds."""
    task, worker, label = crowd_votes(300, worker_confusions(10, 2, rng=0), rng=1).votes
    label = np.array(["bad", "good"], dtype=object)[label]
    label[[5, 11][:n_invalid]] = "ERROR"
    label[17] = "I cannot say"
    return {"task": task, "worker": worker, "label": label}


@pytest.mark.parametrize("form", ["dict", "tuple", "matrix", "pandas", "polars"])
def test_rare_labels_are_set_aside_in_every_form(form):
    columns = crowd()
    votes = columns
    if form == "tuple":
        votes = tuple(columns.values())
    elif form == "matrix":
        votes = columns["label"].reshape(300, 10)
    elif form != "dict":
        votes = pytest.importorskip(form).DataFrame({key: column.tolist() for key, column in columns.items()})
    valid, invalid = set_aside_invalid(votes)
    assert list(invalid.items()) == [("ERROR", 2), ("I cannot say", 1)]
    assert type(valid) is type(votes)
    kept = np.isin(columns["label"], ["bad", "good"])
    expected = DawidSkene(random_state=0).fit(tuple(column[kept] for column in columns.values()))
    found = DawidSkene(random_state=0).fit(valid)
    assert found.classes_.tolist() == ["bad", "good"]
    np.testing.assert_allclose(np.stack(list(label_columns(found).values())[3:]), expected.probas_.T)


def test_shares_and_labels_to_keep_decide():
    columns = crowd()
    assert set_aside_invalid(columns, least_share=0)[1] == {}
    assert set_aside_invalid(columns, least_share=0.0005)[1] == {"I cannot say": 1}
    assert set_aside_invalid(columns, least_share=0.0003)[1] == {}
    assert set_aside_invalid(columns, always_valid=["ERROR"])[1] == {"I cannot say": 1}
    columns["label"][0] = "ERROR"  # with two others a thousandth of 3,000, which is not less
    assert set_aside_invalid(columns)[1] == {"I cannot say": 1}


def test_measurements_are_no_mistakes():
    """If most labels are rare, none is invalid."""
    task, worker = np.divmod(np.arange(4000), 4)
    measured = np.random.default_rng(0).random(4000)
    votes, invalid = set_aside_invalid((task, worker, measured))
    assert invalid == {}
    assert votes[2].size == 4000


def test_missing_labels_are_left_to_the_model():
    columns = crowd()
    columns["label"][40] = None
    votes, invalid = set_aside_invalid(columns)
    assert None not in invalid
    with pytest.raises(ValueError, match="1 of 2997 have no label"):
        DawidSkene().fit(votes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"least_share": -0.1}, "^least_share must"),
        ({"least_share": "x"}, "least_share must"),
        ({"always_valid": "bad"}, "^always_valid must"),
        ({"always_valid": 3}, "^always_valid must"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        set_aside_invalid(crowd(), **options)
