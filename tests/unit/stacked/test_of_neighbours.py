"""Training that asks each node to withstand no more changes than its neighbours can carry."""

import dataclasses

import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.errors import SettingsError
from agnncert.models.digest import settings_of
from agnncert.stacked.model import StackedModel
from agnncert.stacked.training import _Look, _stage


def star(rays=6):
    """Node 0 has ``rays`` neighbours, each of which has one; all of them are trained on."""
    ends = torch.stack([torch.zeros(rays, dtype=torch.int64), torch.arange(1, rays + 1)])
    everyone = torch.ones(rays + 1, dtype=torch.bool)
    data = Data(x=torch.eye(rays + 1)[:, :2], y=torch.zeros(rays + 1, dtype=torch.int64))
    data.edge_index = torch.cat([ends, ends.flip(0)], dim=1)
    data.train_mask = data.val_mask = everyone
    return data


def stacked(data, share):
    """Untrained votes on models without edges."""
    own = [ac.build_model("mlp", data, out_channels=2)]
    return StackedModel(own, 2, 0, ac.StackedVotes(of_neighbours=share).for_rows(9)).eval()


def margins(share, size, rays=6):
    """Margins of all nodes for a share of their neighbours."""
    data = star(rays)
    torch.manual_seed(0)
    model = stacked(data, share)
    stage = _stage(model, data, None, False, "accuracy", False)
    with torch.no_grad():
        return _Look(model, stage, torch.arange(rays + 1)).margins(size)[:, 1]


def test_a_node_is_asked_for_no_more_than_its_share_of_neighbours():
    asked = margins(None, 0.0) - margins(0.5, 3.0)  # a change costs one vote
    assert asked.tolist() == pytest.approx([3.0] + [0.5] * 6, abs=1e-5)
    capped = margins(None, 0.0) - margins(0.5, 2.0)
    assert capped.tolist() == pytest.approx([2.0] + [0.5] * 6, abs=1e-5)


def test_without_a_share_all_nodes_are_asked_the_same():
    assert (margins(None, 0.0) - margins(None, 3.0)).tolist() == pytest.approx([3.0] * 7, abs=1e-5)


@pytest.mark.parametrize("share", [0, -0.5, 1.5, True, "half", float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(SettingsError, match="a share above 0"):
        ac.StackedVotes(of_neighbours=share)


def test_a_mean_has_no_share():
    with pytest.raises(SettingsError, match="combine='sum'"):
        ac.StackedVotes(of_neighbours=0.5, combine="mean")


def test_the_share_is_a_matter_of_training_and_no_claim_names_it():
    plain = ac.StackedVotes(size=3)
    assert str(dataclasses.replace(plain, of_neighbours=0.5)) == str(plain)


def test_a_model_that_was_trained_without_a_share_describes_itself_as_before_there_was_one():
    data = star()
    assert "of_neighbours" not in stacked(data, None).config["defence"]
    kept = stacked(data, 0.5)
    assert kept.config["defence"]["of_neighbours"] == 0.5
    assert settings_of(kept) != settings_of(stacked(data, None))
    assert not any("of_neighbours" in text for text in settings_of(stacked(data, None)).values())
