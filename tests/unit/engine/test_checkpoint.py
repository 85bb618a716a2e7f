"""Votes that are stored: a run that was stopped goes on where it was, and never with votes of another run."""

import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.engine import votes as engine_votes
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.range_votes import RangeVotes
from agnncert.engine.votes import ranges_to_compute
from agnncert.graphs.targets import prepared

GROUPS = 9


def a_graph(seed: int = 0) -> Data:
    random = torch.Generator().manual_seed(seed)
    edges = torch.randint(40, (2, 160), generator=random)
    y = torch.arange(40) % 3
    return Data(x=torch.randn(40, 5, generator=random), edge_index=edges, y=y, node_id=torch.arange(40))


@pytest.fixture
def model():
    return ac.build_model("gcn", a_graph(), hidden_channels=8).eval()


class Stopped(Exception):
    pass


def stopped_after(groups: int):
    def progress(step) -> None:
        if step.done >= groups:
            raise Stopped

    return progress


SMALL = 4_000  # bytes: so little that every group is a range of its own


@pytest.mark.parametrize("division", [ac.EdgeCentric(GROUPS), ac.NodeCentric(GROUPS)], ids=str)
def test_a_vote_that_was_stopped_goes_on(model, division, tmp_path, monkeypatch) -> None:
    folder, data = tmp_path / "votes", a_graph()
    whole = ac.certify(model, data, division, memory_limit=SMALL)
    with pytest.raises(Stopped):
        ac.certify(model, data, division, memory_limit=SMALL, checkpoint=folder, progress=stopped_after(4))
    kept = sorted(folder.iterdir())
    there = sum(int(file.stem[17:]) - int(file.stem[7:16]) for file in kept)
    assert 3 <= there < GROUPS
    cast = []
    one = engine_votes.compute_range_votes

    def counted(call, edges_by_group, groups, *rest, **named):
        cast.append(groups)
        return one(call, edges_by_group, groups, *rest, **named)

    monkeypatch.setattr(engine_votes, "compute_range_votes", counted)
    again = ac.certify(model, data, division, checkpoint=folder)  # with another memory limit, too
    assert sum(map(len, cast)) == GROUPS - there
    whole.save(tmp_path / "whole.cert")
    again.save(tmp_path / "again.cert")
    assert (tmp_path / "whole.cert").read_bytes() == (tmp_path / "again.cert").read_bytes()
    assert not folder.exists()  # the certificate holds the votes now


def test_votes_of_another_vote_are_refused(model, tmp_path) -> None:
    folder, data, division = tmp_path / "votes", a_graph(), ac.EdgeCentric(GROUPS)
    with pytest.raises(Stopped):
        ac.certify(model, data, division, memory_limit=SMALL, checkpoint=folder, progress=stopped_after(4))
    other = ac.build_model("gcn", data, hidden_channels=8, seed=1).eval()
    for changed in (
        lambda: ac.certify(other, data, division, checkpoint=folder),
        lambda: ac.certify(model, a_graph(1), division, checkpoint=folder),
        lambda: ac.certify(model, data, ac.EdgeCentric(GROUPS, hash="sha1"), checkpoint=folder),
        lambda: ac.certify(model, data, division, targets=[1, 2], checkpoint=folder),
        lambda: ac.certify(model, data, division, tolerance=0.5, checkpoint=folder),
    ):
        with pytest.raises(ac.errors.SettingsError, match="holds votes of another run"):
            changed()


def test_a_damaged_share_is_refused(model, tmp_path) -> None:
    folder, data, division = tmp_path / "votes", a_graph(), ac.EdgeCentric(GROUPS)
    with pytest.raises(Stopped):
        ac.certify(model, data, division, memory_limit=SMALL, checkpoint=folder, progress=stopped_after(4))
    file = next(folder.iterdir())
    blob = bytearray(file.read_bytes())
    blob[-1] ^= 1
    file.write_bytes(bytes(blob))
    with pytest.raises(ac.errors.SettingsError, match=r"altered|damaged|file of votes"):
        ac.certify(model, data, division, checkpoint=folder)


def test_a_file_in_place_of_the_folder(model, tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ac.errors.SettingsError, match="a division keeps its votes in a folder"):
        ac.certify(model, a_graph(), ac.EdgeCentric(GROUPS), checkpoint=tmp_path / "file")


def test_parts_cover_what_is_left_once() -> None:
    chosen = prepared(a_graph(), None).targets(None)
    edges_by_group = EdgesByGroup(chosen.graph, ac.EdgeCentric(GROUPS), chosen.positions)
    for kept in ([], [range(0, 2)], [range(3, 4), range(7, 9)]):
        shares = [RangeVotes(groups, None, None) for groups in kept]
        for at_least in (1, 2, 5, 100):
            parts = ranges_to_compute(edges_by_group, None, shares, at_least)
            assert sorted(group for part in (*parts, *kept) for group in part) == list(range(GROUPS))
            assert len(parts) >= min(at_least, GROUPS - sum(map(len, kept)))
