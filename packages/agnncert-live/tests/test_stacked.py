"""A live graph with stacked votes says, after every event, what certifying again would say."""

import os
import signal
from collections import Counter

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.errors import GraphError, IdError, ModelContractError
from agnncert.graphs.targets import prepared
from agnncert.stacked.counting import stacked_counts
from agnncert.stacked.evidence import StackedEvidence
from agnncert.stacked.model import StackedModel
from agnncert_live import Event, JournalError, LiveGraph
from tests.soundness.laws.test_stacked_graphs import CLASSES, KINDS, RULES, random_model
from tests.support.live import assert_current

NODES = 12
SEEDS = {"two levels": 2}  # of models whose labels flip; 4 for the others


def sample(values, seed=0):
    """A random graph of nodes of three kinds; some pairs are joined in one direction only."""
    rng = np.random.default_rng(seed)
    ends = np.unique(rng.integers(0, NODES, (2, 30)), axis=1)
    data = Data(
        x=torch.eye(KINDS)[rng.integers(0, KINDS, NODES)], edge_index=torch.from_numpy(ends),
        y=torch.from_numpy(rng.integers(0, CLASSES, NODES)), node_id=[f"n{k}" for k in range(NODES)],
    )  # fmt: skip
    if values:
        data.edge_attr = torch.from_numpy(rng.integers(0, 2, (data.num_edges, values))).float()
    return data


def random_event(live, rng, values):
    """An event that can be applied, or not."""
    names = live.targets.tolist()
    a, b = rng.choice(names, 2, replace=False).tolist()
    row = np.eye(KINDS)[rng.integers(KINDS)].tolist()
    kind = rng.choice(["add_edge", "delete_edge", "change_features", "add_node", "delete_node", "change_edge"])
    if kind == "add_node":
        return Event("add_node", f"new {rng.integers(1000)}", value=row)
    if kind in ("delete_node", "change_features"):
        return Event(kind, a, value=row if kind == "change_features" else None)
    value = [float(v) for v in rng.integers(0, 2, values)] if values and kind != "delete_edge" else None
    if kind == "change_edge" and value is None:
        value = int(rng.integers(1, 3))
    return Event(kind, a, b, value, directed=bool(kind == "add_edge" and rng.random() < 0.3))


@pytest.mark.parametrize("theorem", RULES)
def test_after_every_event_answers_are_those_of_certifying_again(theorem):
    model, rng = random_model(RULES[theorem], SEEDS.get(theorem, 4)), np.random.default_rng(7)
    values = int(RULES[theorem].edge_values) + int(RULES[theorem].trusted is not None)
    live = LiveGraph(model, sample(values), model.defence)
    applied = flipped = 0
    for _ in range(90):
        before = dict(zip(live.targets.tolist(), live.label.tolist(), strict=True))
        try:
            result = live.apply(random_event(live, rng, values))
        except (GraphError, IdError):
            continue
        applied += 1
        again = StackedEvidence(**stacked_counts(model, prepared(live.data()).targets(None)))  # as certify does
        label, radius = again.label_and_radius()
        assert label.tolist() == live.label.tolist()
        assert radius.tolist() == live.radius.tolist()
        assert again.structure_radius().tolist() == live.structure_radius.tolist()
        after = dict(zip(live.targets.tolist(), live.label.tolist(), strict=True))
        stayed = before.keys() & after.keys()
        assert {one.target for one in result.flipped} == {name for name in stayed if before[name] != after[name]}
        assert set(result.gone) == before.keys() - after.keys()
        flipped += len(result.flipped)
    assert applied > 40
    assert flipped > 0
    assert live.number == applied
    certificate = ac.certify(model, live.data(), model.defence)
    assert certificate.target.tolist() == live.targets.tolist()
    assert certificate.radius.tolist() == live.radius.tolist()


def test_a_batch_with_a_bad_event_changes_nothing():
    model = random_model(RULES["sum"], 3)
    live = LiveGraph(model, sample(0), model.defence)
    before, graph = (live.label.tolist(), live.radius.tolist()), live.data()
    with pytest.raises(GraphError, match="event 2"):
        live.apply(
            [Event("add_node", "x", value=[1.0, 0, 0]), Event("add_edge", "x", "n0"), Event("add_edge", "x", "n0")]
        )
    assert (live.label.tolist(), live.radius.tolist()) == before
    assert torch.equal(live.data().edge_index, graph.edge_index)
    assert live["n3"].label == before[0][3]
    with pytest.raises(IdError, match="no target"):
        live["x"]


def test_a_node_that_comes_and_goes_in_one_batch_is_not_told_as_gone():
    model = random_model(RULES["sum"], 3)
    live = LiveGraph(model, sample(0), model.defence)
    comes = [Event("add_node", "x", value=[1.0, 0, 0]), Event("add_edge", "x", "n0")]
    assert live.apply([*comes, Event("delete_node", "x")]).gone == ()
    live.apply(comes)
    assert live.apply(Event("delete_node", "x")).gone == ("x",)


def test_an_event_that_names_a_graph_is_refused():
    """There is one graph, and whoever names another one means other nodes."""
    model = random_model(RULES["sum"], 3)
    live = LiveGraph(model, sample(0), model.defence)
    with pytest.raises(GraphError, match="names a graph"):
        live.apply(Event("change_features", "n0", value=[0.0, 1.0, 0.0], graph=0))
    assert live.number == 0


def test_the_certificate_verifies_and_another_model_is_refused(tmp_path):
    model = random_model(RULES["sum"], 3)
    live = LiveGraph(model, sample(0), model.defence)
    live.apply([Event("add_node", "x", value=[1.0, 0, 0]), Event("add_edge", "x", "n0")])
    certificate = live.certificate()
    certificate.save(tmp_path / "a.cert")
    assert ac.verify(tmp_path / "a.cert", data=live.data(), model=model).holds
    assert certificate.radius.tolist() == live.radius.tolist()
    with torch.no_grad():
        model.vote_scale.add_(1.0)
    with pytest.raises(ModelContractError, match="begin a new one"):
        live.certificate()


class Tinkerer(torch.nn.Module):
    """Somebody's model without edges, which notes in itself how often it was called."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(KINDS, CLASSES)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x) + self.calls


def test_counts_follow_weights_however_these_are_changed():
    """A copy in float64 that were kept beside the model would be stale: no counter knows of a change through .data."""
    model = random_model(RULES["sum"], 3)
    chosen = prepared(sample(0)).targets(None)
    frozen = model.frozen()

    def prior(frozen=None):
        return stacked_counts(model, chosen, frozen)["prior"].tolist()

    before = prior()
    assert prior(frozen) == before
    model.constant.data.add_(torch.tensor([1.0] + [0.0] * (CLASSES - 1)))
    assert prior() != before
    assert prior(frozen) == before  # the one that a live graph began with
    assert prior(model.frozen()) == prior()


def test_code_of_a_user_is_copied_for_each_count():
    model = StackedModel([Tinkerer()], CLASSES, 0, RULES["sum"]).eval()
    chosen = prepared(sample(0)).targets(None)
    frozen = model.frozen()
    counted = [stacked_counts(model, chosen, each)["prior"].tolist() for each in (None, frozen, frozen)]
    assert counted[0] == counted[1] == counted[2]
    assert frozen.own[0].model.calls == 0


@pytest.mark.parametrize("theorem", RULES)
def test_with_journal_restarts_and_rollbacks_it_is_what_certify_says(theorem, tmp_path):
    model, rng = random_model(RULES[theorem], SEEDS.get(theorem, 4)), np.random.default_rng(11)
    values = int(RULES[theorem].edge_values) + int(RULES[theorem].trusted is not None)

    def opened():
        return LiveGraph(model, sample(values), model.defence, journal=tmp_path / "j", snapshot_every=9)

    live = opened()
    reference = live.reference()
    for step in range(24):
        bad = Event("delete_node", "nobody")
        before = live.label.tolist(), live.radius.tolist()
        with pytest.raises((GraphError, IdError)):
            live.apply([random_event(live, rng, values), bad])
        assert (live.label.tolist(), live.radius.tolist()) == before
        batch = [random_event(live, rng, values) for _ in range(3)]
        done = live.apply(batch, id=f"batch {step}", skip_bad=True)
        refused = {each.index for each in done.refused}
        counted = [event for index, event in enumerate(batch) if index not in refused]
        assert live.apply(counted, id=f"batch {step}").number == done.number
        live.apply(batch, id=f"batch {step}", skip_bad=True)  # refused ones are tried again: some fit by now
        assert live.number <= done.number + len(refused)
        assert_current(live)
        if step % 6 == 5:
            live.close()
            live = opened()
            assert live.apply([], id=f"batch {step}").repeated
            assert live.follows(reference)
            assert_current(live)
    live.close()


@pytest.mark.parametrize("theorem", RULES)
def test_what_a_reference_still_proves_is_true(theorem, tmp_path):
    """A label that the reference is said to prove is what it was; that many are proved, and some are not."""
    model, rng = random_model(RULES[theorem], SEEDS.get(theorem, 4)), np.random.default_rng(5)
    values = int(RULES[theorem].edge_values) + int(RULES[theorem].trusted is not None)
    proved = Counter()
    for start in range(3):
        live = LiveGraph(model, sample(values, seed=start), model.defence)
        reference = live.reference()
        for _ in range(12):
            live.apply([random_event(live, rng, values)], skip_bad=True)
            for target in live.targets.tolist():
                if target not in reference.position:
                    continue
                spent = live.spent(target, reference)
                proved[spent.within] += 1
                proved.update(spent.proved_by)
                assert spent.label[1] == live[target].label
                if spent.within:
                    assert spent.label[0] == spent.label[1]
    assert proved[True] > 15
    assert proved[False] > 20
    assert proved["budget"] > 0


def test_a_threshold_is_kept_through_events_and_a_restart(tmp_path):
    data = sample(0)
    data.y = torch.arange(NODES) % 2
    data.val_mask = torch.ones(NODES, dtype=torch.bool)
    torch.manual_seed(0)
    data.train_mask = data.val_mask
    model = ac.fit(ac.build_model("mlp", data), data, ac.StackedVotes(epochs=5), epochs=5)
    point = ac.choose_threshold(model, data, model.defence, false_positive_rate=0.3, positive=1)
    live = LiveGraph(point.model, data, point, journal=tmp_path / "j")
    rng = np.random.default_rng(1)
    for _ in range(10):
        live.apply(random_event(live, rng, 0), skip_bad=True)
        assert_current(live)
    live.close()
    with LiveGraph(point.model, None, point, journal=tmp_path / "j") as again:
        assert_current(again)
    with pytest.raises(JournalError, match="model"):
        LiveGraph(model, data, model.defence, journal=tmp_path / "j")


def _acknowledge(path, pipe):
    """Applies batches until it is killed, and says after each that it is acknowledged."""
    model, rng = random_model(RULES["mean of edge values"], 4), np.random.default_rng(3)
    live = LiveGraph(model, sample(1), model.defence, journal=path, snapshot_every=20)
    for number in range(10_000):
        batch = [random_event(live, rng, 1) for _ in range(5)]
        live.apply(batch, id=f"batch {number}", skip_bad=True)
        os.write(pipe, b".")


@pytest.mark.parametrize("acknowledged", [1, 7, 40])
def test_killed_under_load_every_acknowledged_batch_is_there(tmp_path, acknowledged):
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(read)
            _acknowledge(tmp_path / "j", write)
        finally:
            os._exit(1)
    os.close(write)
    seen = 0
    while seen < acknowledged:
        seen += len(os.read(read, 1))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while rest := os.read(read, 1000):
        seen += len(rest)
    os.close(read)
    model = random_model(RULES["mean of edge values"], 4)
    with LiveGraph(model, sample(1), model.defence, journal=tmp_path / "j") as live:
        for number in range(seen):
            assert live.apply([], id=f"batch {number}").repeated
        assert_current(live)


@pytest.mark.parametrize(
    ("broken", "answer", "theorem"),
    [
        ("agnncert_live.stacked.StackedCore._trusted_edges_changed", lambda *_: False, "trusted edge values"),
        ("agnncert_live.spent.Reference.features_changed", lambda *_: False, "sum"),
    ],
    ids=["trusted edges", "own features"],
)
def test_a_guard_that_is_broken_on_purpose_proves_a_label_that_is_gone(broken, answer, theorem, monkeypatch):
    monkeypatch.setattr(broken, answer)
    with pytest.raises(AssertionError):
        test_what_a_reference_still_proves_is_true(theorem, None)
