"""Live graphs with a threshold say after every event what certifying with the threshold says."""

import random

import pytest
from torch_geometric.nn import GCN

import agnncert as ac
from agnncert_live import JournalError, LiveGraph
from tests.support.live import assert_current, random_batch
from tests.support.models import settled
from tests.support.small_graphs import random_graph

DIVISIONS = [ac.NodeCentric(6), ac.EdgeCentric(6), ac.PerNeighbour(), ac.PerEdge(), ac.GatedNodeCentric(5)]


def two_classes():
    data = random_graph(24, 40)
    data.y = (data.x[:, 0] > 0).long()
    data.val_mask = data.y >= 0
    return settled(GCN, 5, 8, 1, 2), data


def threshold(model, data, division, **limits):
    return ac.choose_threshold(model, data, division, size=1, **limits)


@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_labels_and_radii_follow_the_threshold(division, tmp_path) -> None:
    model, data = two_classes()
    point = threshold(model, data, division, false_positive_rate=0.2)
    assert any(point.prior)
    rng = random.Random(1)
    live = LiveGraph(point.model, data, point, journal=tmp_path / "j", snapshot_every=9)
    plain = LiveGraph(model, data, division)
    for _ in range(6):
        batch = random_batch(live, rng, 4)
        live.apply(batch, skip_bad=True)
        plain.apply(batch, skip_bad=True)
        assert_current(live)
    assert live.label.tolist() != plain.label.tolist() or live.radius.tolist() != plain.radius.tolist()
    before = live.label.tolist(), live.radius.tolist()
    live.close()
    with LiveGraph(point.model, None, point, journal=tmp_path / "j") as again:
        assert (again.label.tolist(), again.radius.tolist()) == before
        assert_current(again)


def test_a_journal_with_another_threshold_is_refused(tmp_path) -> None:
    model, data = two_classes()
    division = ac.NodeCentric(6)
    first = threshold(model, data, division, false_positive_rate=0.2)
    other = threshold(model, data, division, alerts=2)
    assert first.prior != other.prior
    LiveGraph(first.model, data, first, journal=tmp_path / "j").close()
    with pytest.raises(JournalError, match="voting_rule"):
        LiveGraph(other.model, data, other, journal=tmp_path / "j")
    with pytest.raises(JournalError, match="voting_rule"):
        LiveGraph(model, data, division, journal=tmp_path / "j")
