import json
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import agnncert as ac
from agnncert.models.io import load_description
from agnncert.progress import Progress
from agnncert.training.loop import Step
from tests.support.training_cases import CASES, GRAPH, NODE, graph_case, node_case, same, weights_of


def test_the_lines_of_the_readme_train_and_certify() -> None:
    data = ac.load_dataset("digits-knn")
    division = ac.NodeCentric(num_groups=300, hash="md5")
    model = ac.build_model("gcn", data, hidden_channels=64, num_layers=3)
    model = ac.fit(model, data, division, epochs=15, seed=0)
    cert = ac.certify(model, data, division, targets=data.test_mask)
    assert cert.certified_accuracy(data.y, sizes=[0])[0] > 0.8


@pytest.mark.parametrize("task", CASES)
@pytest.mark.parametrize("divided", [True, False])
def test_a_trained_model_is_good_and_comes_back_in_eval_mode(task, divided) -> None:
    make, division = CASES[task]
    model, data = make()
    trained = ac.fit(model, data, division if divided else None, epochs=40, evaluate_every=2)
    assert trained is model
    assert not any(layer.training for layer in model.modules())
    assert model.training_record["score"] > 0.8


@pytest.mark.parametrize("task", CASES)
def test_the_score_is_the_accuracy_of_the_vote_on_the_validation_set(task) -> None:
    make, division = CASES[task]
    model, data = make()
    ac.fit(model, data, division, epochs=6, evaluate_every=2)
    record = model.training_record
    cert = ac.certify(model, data, division, targets=data.val_mask if task == "node" else data.val)
    assert record["score"] == cert.certified_accuracy(data.y) == max(look["score"] for look in record["history"])
    assert record["best_epoch"] in [look["epoch"] for look in record["history"]] == [2, 4, 6]


def test_the_weights_that_did_best_are_kept_and_not_the_last() -> None:
    scores, seen = [], []
    model, data = node_case()

    def watch(step: Step) -> None:
        scores.append(step.score)
        seen.append(weights_of(model))

    ac.fit(model, data, NODE, epochs=25, lr=0.3, evaluate_every=1, patience=None, progress=watch)
    record = model.training_record
    assert record["score"] == max(scores) > scores[-1]  # at this learning rate the last epoch is not the best
    assert same(weights_of(model), seen[record["best_epoch"] - 1])


@pytest.mark.parametrize("task", CASES)
def test_a_seed_gives_the_same_weights_and_another_one_others(task) -> None:
    make, division = CASES[task]
    trained = []
    for seed in (3, 3, 4):
        model, data = make()
        torch.rand(seed)  # whatever was drawn before has no influence
        trained.append(weights_of(ac.fit(model, data, division, epochs=4, batch_size=4, groups_per_step=2, seed=seed)))
    assert same(trained[0], trained[1])
    assert not same(trained[0], trained[2])


def test_the_random_state_of_torch_is_left_alone() -> None:
    model, data = node_case()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    ac.fit(model, data, NODE, epochs=2)
    assert torch.equal(torch.rand(3), expected)


def test_training_stops_when_nothing_improves_any_more() -> None:
    model, data = node_case()
    ac.fit(model, data, NODE, epochs=50, lr=1e-12, weight_decay=0, evaluate_every=2, patience=3)
    record = model.training_record
    assert (record["best_epoch"], record["epochs_run"]) == (2, 8)
    ac.fit(model, data, NODE, epochs=10, lr=1e-12, weight_decay=0, evaluate_every=2, patience=None)
    assert model.training_record["epochs_run"] == 10


class Switch(nn.Module):
    """Votes right by a narrow margin at first, and later unanimously, but wrongly for half of the nodes.

    Training can only raise ``level``. Features are the right class and the kind of the node.
    """

    def __init__(self) -> None:
        super().__init__()
        self.level = nn.Parameter(torch.zeros(()))

    def forward(self, x, edge_index):
        has_edge = torch.zeros(len(x), dtype=torch.bool)
        has_edge[edge_index[1]] = True
        wrong = x[:, 1] > 0 if self.level > 0.5 else has_edge
        logits = 5 * nn.functional.one_hot((x[:, 0].long() + wrong) % 2, 2).to(x.dtype)
        return logits + 1e-3 * self.level * torch.tensor([1.0, 0.0])


def test_selection_by_certified_accuracy_takes_other_weights_than_selection_by_vote() -> None:
    division = ac.EdgeCentric(11)
    targets_per_node = torch.arange(8)
    edges = torch.stack([targets_per_node.repeat_interleave(5), 8 + torch.arange(40)])
    data = Data(
        x=torch.stack([torch.arange(48) % 2, torch.arange(48) // 2 % 2], dim=1).float(),
        edge_index=torch.cat([edges, edges.flip(0)], dim=1),
        y=torch.arange(48) % 2,
        train_mask=(torch.arange(48) >= 8) & (torch.arange(48) % 2 == 0),  # class 0: level can only rise
        val_mask=torch.arange(48) < 8,
    )
    how = {"epochs": 10, "lr": 0.1, "weight_decay": 0, "evaluate_every": 1, "patience": None}
    by_vote = ac.fit(Switch(), data, division, **how)
    certified = ac.fit(Switch(), data, division, **how, size=3)
    assert (by_vote.training_record["score"], certified.training_record["score"]) == (1.0, 0.5)
    assert by_vote.level < 0.5 < certified.level
    for model, expected in ((by_vote, [1.0, 0.0]), (certified, [0.5, 0.5])):
        cert = ac.certify(model, data, division, targets=data.val_mask)
        assert cert.certified_accuracy(data.y, sizes=[0, 3]).tolist() == expected


def test_inductive_training_never_sees_a_test_node() -> None:
    trained = {}
    for protocol in ("inductive", "transductive"):
        for changed in (False, True):
            model, data = node_case()
            if changed:
                test = data.test_mask.nonzero().view(-1)
                data.x[test] += 5
                data.y[test] = 0
                mate = test[torch.arange(len(test)) % 3]
                data.edge_index = torch.cat([data.edge_index, torch.stack([test, torch.arange(len(test))])], dim=1)
                data.edge_index = torch.cat([data.edge_index, torch.stack([mate, test])], dim=1)
            ac.fit(model, data, NODE, epochs=4, protocol=protocol)
            trained[protocol, changed] = weights_of(model)
    assert same(trained["inductive", False], trained["inductive", True])
    assert not same(trained["transductive", False], trained["transductive", True])
    assert not same(trained["inductive", False], trained["transductive", False])


def test_the_record_says_how_the_weights_came_about_and_goes_into_a_file(tmp_path) -> None:
    model, data = node_case()
    ac.fit(model, data, NODE, epochs=np.int64(4), no_edge_weight=2, evaluate_every=2, clip=1.0)
    record = model.training_record
    told = {
        "division": str(NODE), "data": ac.dataset_digest(data), "epochs": 4, "lr": 0.01, "weight_decay": 5e-4,
        "clip": 1.0, "objective": "balanced", "no_edge_weight": 2,
        "protocol": "transductive", "size": 0, "seed": 0, "epochs_run": 4,
    }  # fmt: skip
    assert {name: record[name] for name in told} == told
    assert record["seconds"] > 0
    assert record["seconds_per_epoch"] == record["seconds"] / 4
    assert [set(look) for look in record["history"]] == [{"epoch", "loss", "score"}] * 2
    path = ac.save_model(model, tmp_path / "model", provenance=record)
    assert load_description(path)["provenance"] == json.loads(json.dumps(record)) == record
    again = ac.load_model(path)
    assert same(weights_of(model), weights_of(again))
    assert np.array_equal(ac.certify(again, data, NODE).counts, ac.certify(model, data, NODE).counts)


def test_a_plain_model_records_that_it_has_no_division() -> None:
    model, data = node_case()
    assert ac.fit(model, data, epochs=1).training_record["division"] is None


def test_progress_is_told_after_every_epoch_with_the_time_left() -> None:
    model, data = node_case()
    steps: list[Step] = []
    ac.fit(model, data, NODE, epochs=5, evaluate_every=2, progress=steps.append)
    assert [(s.done, s.total) for s in steps] == [(k, 5) for k in range(1, 6)]
    assert [s.score is not None for s in steps] == [False, True, False, True, True]
    assert all(math.isfinite(s.loss) for s in steps)
    assert all(s.seconds_left > 0 for s in steps[:-1])
    assert steps[-1].seconds_left == 0
    assert all(isinstance(s, Progress) and (s.what, s.done, s.total) == ("training", s.done, 5) for s in steps)
    assert steps[0].detail == f"loss {steps[0].loss:.3f}"


def test_clipped_gradients_are_no_longer_than_asked_for() -> None:
    model, data = node_case()
    norms = []

    def watch(step: Step) -> None:
        norms.append(torch.cat([p.grad.reshape(-1) for p in model.parameters()]).norm().item())

    ac.fit(model, data, NODE, epochs=3, clip=0.01, progress=watch)
    assert norms == pytest.approx([0.01] * 3, rel=1e-3)


def test_training_that_diverges_says_so() -> None:
    model, data = node_case()
    with pytest.raises(ac.errors.SettingsError, match=r"diverged. Lower lr=1e\+30"):
        ac.fit(model, data, NODE, epochs=5, lr=1e30)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"epochs": 0}, "epochs=0: expected a whole number from 1 on"),
        ({"epochs": 2.5}, "epochs=2.5: expected a whole number"),
        ({"evaluate_every": 0}, "evaluate_every=0"),
        ({"patience": 0}, "patience=0"),
        ({"batch_size": True}, "batch_size=True"),
        ({"groups_per_step": 0}, "groups_per_step=0"),
        ({"lr": 0}, "lr=0: expected a positive number"),
        ({"lr": math.nan}, "lr=nan"),
        ({"clip": -1}, "clip=-1"),
        ({"weight_decay": -1e-4}, "weight_decay=-0.0001: expected a number from 0 on"),
        ({"seed": -1}, "seed=-1: expected a whole number from 0 on"),
        ({"no_edge_weight": -1}, "no_edge_weight=-1: expected a number from 0 on"),
        ({"objective": "papers"}, 'unknown objective "papers": did you mean "paper"'),
        ({"objective": "vote"}, 'objective="vote" trains graph classifiers; for nodes choose "balanced"'),
        ({"protocol": "induktive"}, 'unknown protocol "induktive": did you mean "inductive"'),
        ({"size": 5}, "9 votes certify at most size 4"),
    ],
)
def test_a_senseless_setting_is_refused(setting, said) -> None:
    model, data = node_case()
    with pytest.raises(ac.errors.SettingsError, match=said):
        ac.fit(model, data, NODE, **setting)


def test_certified_accuracy_needs_a_division() -> None:
    model, data = node_case()
    with pytest.raises(ac.errors.SettingsError, match="there is no division"):
        ac.fit(model, data, size=1)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda data: data.__delattr__("train_mask"), "no train_mask"),
        (lambda data: data.__delattr__("val_mask"), "no val_mask"),
        (lambda data: data.val_mask.zero_(), "val_mask is empty"),
        (lambda data: data.__delattr__("y"), "no labels y"),
        (lambda data: data.__setattr__("y", data.y + 0.5), "labels y"),
        (lambda data: data.y.fill_(7), "has label 7, but the model has classes 0 to 2"),
        (lambda data: data.y.fill_(-1), "has label -1"),
    ],
)
def test_data_that_cannot_be_trained_on_are_explained(spoil, said) -> None:
    model, data = node_case()
    spoil(data)
    with pytest.raises((ac.errors.DatasetError, ac.errors.GraphError), match=said):
        ac.fit(model, data, NODE)


def test_labels_of_nodes_that_are_not_used_may_be_missing() -> None:
    model, data = node_case()
    data.y[data.test_mask] = -1
    ac.fit(model, data, NODE, epochs=1)


def test_graphs_need_parts_and_labels() -> None:
    model, graphs = graph_case()
    with pytest.raises(ac.errors.DatasetError, match=r'no "train" part: training needs GraphSet'):
        ac.fit(model, list(graphs), GRAPH)
    with pytest.raises(ac.errors.DatasetError, match='no "val" part'):
        ac.fit(model, ac.GraphSet(list(graphs), train=[0, 1]), GRAPH)
    graphs[0].y = None
    with pytest.raises(ac.errors.DatasetError, match="row 0 has label -1"):
        ac.fit(model, graphs, GRAPH)


def test_a_model_without_parameters_has_nothing_to_learn() -> None:
    class Fixed(nn.Module):
        def forward(self, x, edge_index):
            return x[:, :3]

    _, data = node_case()
    with pytest.raises(ac.errors.ModelContractError, match="Fixed has no parameters"):
        ac.fit(Fixed(), data, NODE)


def test_a_model_that_does_not_fit_the_data_is_explained() -> None:
    _, data = node_case()
    model, _ = node_case(features=7)
    with pytest.raises(ac.errors.ModelContractError, match=r"x of shape \[1, 5\]"):
        ac.fit(model, data, NODE)
