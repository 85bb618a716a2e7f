"""A run that is interrupted goes on where it stopped, and ends as if nothing had happened."""

from dataclasses import replace
from functools import cache

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import agnncert as ac
from agnncert.training.checkpoint import TrainingState, load_state, save_state
from tests.support.labelled import labelled_graph
from tests.support.training_cases import CASES, graph_case, node_case, same, weights_of


class Interrupted(Exception):
    pass


def interrupt_at(epoch):
    def progress(step):
        if step.done == epoch:
            raise Interrupted

    return progress


def run(task, file=None, progress=None, **changed):
    make, division = CASES[task]
    model, data = make()
    how = {"epochs": 9, "evaluate_every": 2, "batch_size": 4, "groups_per_step": 2, "seed": 1, **changed}
    return ac.fit(model, data, division, **how, checkpoint=file, progress=progress)


@pytest.fixture(scope="module")
def uninterrupted():
    """The run of each task without an interruption, to compare with."""
    return cache(run)


@pytest.fixture(scope="module")
def of_a_finished_run(tmp_path_factory):
    """The checkpoint of a run on nodes."""
    file = tmp_path_factory.mktemp("finished") / "run"
    run("node", file)
    return file.read_bytes()


def without_time(record):
    return {name: value for name, value in record.items() if not name.startswith("seconds")}


@pytest.mark.parametrize("epoch", [1, 4, 5, 9])
@pytest.mark.parametrize("task", CASES)
def test_an_interrupted_run_ends_with_the_same_weights_to_the_last_bit(task, epoch, tmp_path, uninterrupted) -> None:
    whole = uninterrupted(task)
    file = tmp_path / "new folder" / "run.safetensors"
    with pytest.raises(Interrupted):
        run(task, file, interrupt_at(epoch))
    assert file.exists() == (epoch > 1)
    assert not list(tmp_path.rglob("*.part"))
    epochs = []
    resumed = run(task, file, lambda step: epochs.append(step.done))
    assert epochs == list(range(epoch - epoch % 2 + 1 if epoch < 9 else 10, 10))
    assert same(weights_of(whole), weights_of(resumed))
    assert without_time(whole.training_record) == without_time(resumed.training_record)
    assert not resumed.training


def test_time_before_an_interruption_counts(tmp_path) -> None:
    file = tmp_path / "run"
    first = run("node", file).training_record["seconds"]
    again = run("node", file)  # nothing is left to do
    assert again.training_record["seconds"] == first > 0


def test_a_run_that_had_stopped_early_does_not_go_on(tmp_path) -> None:
    how = {"epochs": 50, "lr": 1e-12, "weight_decay": 0, "patience": 2}
    first = run("node", tmp_path / "run", **how)
    again = run("node", tmp_path / "run", **how)
    assert first.training_record["epochs_run"] == again.training_record["epochs_run"] == 6


@pytest.mark.parametrize(
    "changed", [{"lr": 0.02}, {"epochs": 12}, {"seed": 2}, {"no_edge_weight": 2}, {"protocol": "inductive"}]
)
def test_a_run_with_other_settings_is_refused_by_name(changed, tmp_path, of_a_finished_run) -> None:
    (tmp_path / "run").write_bytes(of_a_finished_run)
    with pytest.raises(ac.errors.SettingsError, match=rf"run belongs to another run \(other {next(iter(changed))}\)"):
        run("node", tmp_path / "run", **changed)


def test_a_run_on_other_data_or_another_model_or_division_is_refused(tmp_path) -> None:
    model, data = node_case()
    how = {"epochs": 2, "checkpoint": tmp_path / "run"}
    ac.fit(model, data, CASES["node"][1], **how)
    with pytest.raises(ac.errors.SettingsError, match=r"other division\)"):
        ac.fit(model, data, ac.EdgeCentric(10), **how)
    with pytest.raises(ac.errors.SettingsError, match=r"other model\)"):
        ac.fit(ac.build_model("gcn", data, hidden_channels=8, seed=1), data, CASES["node"][1], **how)
    data.y[0] = (data.y[0] + 1) % 3
    with pytest.raises(ac.errors.SettingsError, match=r"other data\)"):
        ac.fit(model, data, CASES["node"][1], **how)


def cut(blob):
    return blob[: len(blob) // 2]


def flip(blob):
    return blob[:-5] + bytes([blob[-5] ^ 1]) + blob[-4:]


def reword(blob):
    return blob.replace(b"best_epoch", b"best_epoxx", 1)


@pytest.mark.parametrize("damage", [cut, flip, reword, lambda blob: b"", lambda blob: b"hello" * 20])
def test_a_damaged_checkpoint_is_refused(damage, tmp_path, of_a_finished_run) -> None:
    file = tmp_path / "run"
    file.write_bytes(damage(of_a_finished_run))
    with pytest.raises(
        ac.errors.SettingsError, match=r"cannot resume from run, which is damaged or not a checkpoint \(.*delete"
    ):
        run("node", file)


def test_another_file_is_no_checkpoint(tmp_path) -> None:
    save_file({"weight": torch.ones(2)}, tmp_path / "run")
    with pytest.raises(ac.errors.SettingsError, match="not a checkpoint"):
        run("node", tmp_path / "run")


def test_the_same_model_object_can_go_on_after_an_interruption(tmp_path) -> None:
    model, data = graph_case()
    how = {"epochs": 6, "evaluate_every": 2, "checkpoint": tmp_path / "run"}
    with pytest.raises(Interrupted):
        ac.fit(model, data, CASES["graph"][1], **how, progress=interrupt_at(3))
    whole, _ = graph_case()
    ac.fit(whole, data, CASES["graph"][1], epochs=6, evaluate_every=2)
    assert same(weights_of(ac.fit(model, data, CASES["graph"][1], **how)), weights_of(whole))


def test_weights_that_share_memory_are_kept(tmp_path) -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(5, 5)
            self.second = nn.Linear(5, 5)
            self.second.weight = self.first.weight
            self.last = nn.Linear(5, 3)

        def forward(self, x, edge_index):
            return self.last(self.second(self.first(x).relu()).relu())

    data = labelled_graph(48, dtype=torch.float32)
    results = []
    for progress in (interrupt_at(4), None):
        torch.manual_seed(0)
        model = Tied()
        try:
            ac.fit(
                model,
                data,
                ac.EdgeCentric(5),
                epochs=6,
                evaluate_every=2,
                checkpoint=tmp_path / "run",
                progress=progress,
            )
        except Interrupted:
            continue
        results.append(weights_of(model))
    torch.manual_seed(0)
    whole = ac.fit(Tied(), data, ac.EdgeCentric(5), epochs=6, evaluate_every=2)
    assert same(results[0], weights_of(whole))


def test_every_kind_of_number_comes_back_as_it_was(tmp_path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 2).bfloat16())
    optimizer = torch.optim.Adam(model[:2].parameters())
    model[:2](torch.rand(4, 3)).sum().backward()
    optimizer.step()
    state = TrainingState(3, 2, (0.5, -float("inf")), {"w": torch.tensor([1, -2], dtype=torch.bfloat16)}, seconds=1.5)
    save_state(tmp_path / "run", {"clip": float("inf")}, model, optimizer, state)
    other = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.Linear(2, 2).bfloat16())
    again = torch.optim.Adam(other[:2].parameters())
    resumed = load_state(tmp_path / "run", {"clip": float("inf")}, other, again)
    assert resumed == replace(state, best=resumed.best)
    assert resumed.best["w"].dtype == torch.bfloat16
    assert same(resumed.best, state.best)
    assert same(other.state_dict(), model.state_dict())
    for number, averages in optimizer.state_dict()["state"].items():
        assert same(again.state_dict()["state"][number], averages)
