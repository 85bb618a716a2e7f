"""Graph votes that make no sense are refused."""

from dataclasses import replace

import numpy as np
import pytest

from agnncert.errors import CertificateError
from agnncert.graph_votes.record import GraphRecord
from tests.support.graph_vote_worlds import evidence_of, random_world


def record(trusted):
    evidence = evidence_of([random_world(np.random.default_rng(5), trusted)])
    return GraphRecord.load(evidence.tensors(), evidence.settings())


WRONG = [
    ("structure", {"task": "pair"}, "the task"),
    ("nodes", {"task": "node"}, "only the structure"),
    ("structure", {"trusted": "edges"}, "what is trusted"),
    ("structure", {"made_for": -1}, "made for"),
    ("structure", {"ids": "name"}, "ids are"),
    ("structure", {"prior": np.zeros((1, 3), dtype=np.int64)}, "does not fit the rest"),
    ("structure", {"prior": np.full((1, 2), 2**41)}, "at most"),
    ("structure", {"number": "more"}, "at least 1"),
    ("structure", {"state": "swapped"}, "ascending|no votes"),
    ("structure", {"by_size": np.zeros((1, 2), dtype=np.int64)}, "sizes are listed"),
    ("nodes", {"table": "apart"}, "apart vote"),
    ("none", {"size": np.array([99])}, "that of the items"),
    ("none", {"prior": np.ones((1, 2), dtype=np.int64)}, "nothing is trusted"),
    ("none", {"by_size": np.zeros((0, 2), dtype=np.int64)}, "has no score"),
]


@pytest.mark.parametrize(("trusted", "change", "says"), WRONG)
def test_what_makes_no_sense_is_refused(trusted, change, says):
    good = record(trusted)
    change = dict(change)
    if change.get("number") == "more":
        change["number"] = good.number - good.number.max()
    if change.get("state") == "swapped":
        change["state"] = good.state[::-1] + 1
    if isinstance(change.get("table"), str):
        change["table"] = good.table + 1
    with pytest.raises(CertificateError, match=says):
        replace(good, **change)


@pytest.mark.parametrize("trusted", ["structure", "nodes", "count", "none"])
def test_parts_that_are_missing_are_refused(trusted):
    good = record(trusted)
    tensors, settings = good.tensors(), good.settings()
    assert GraphRecord.load(tensors, settings).settings() == settings
    with pytest.raises(CertificateError, match="missing or was not expected"):
        GraphRecord.load({k: v for k, v in tensors.items() if k != "size"}, settings)
    with pytest.raises(CertificateError, match="missing or was not expected"):
        GraphRecord.load(tensors, {**settings, "more": 1})
