"""A backtest: nothing from the future is used, nobody is judged who was trained on, and drift is seen."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

import agnncert as ac
from agnncert import backtesting
from agnncert.backtesting import ANEW, FIRST, NEW, backtest
from agnncert.cli.column_drift import drifted
from agnncert.datasets.event_entries import EntryColumn
from agnncert.datasets.generated_payments import write_payments
from agnncert.datasets.table_store import TableStore
from agnncert.errors import SettingsError
from tests.support.mutations import text_turns_red

COLUMNS = {
    "id": "account", "label": "class", "label_time": "known_since", "source": "payer", "target": "payee",
    "event_time": "paid_at", "event_key": "payment", "split_by": "id", "classes": ["fraud", "honest"],
}  # fmt: skip
TIMES = ["2026-02-10", "2026-03-05", "2026-03-31"]


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    return write_payments(tmp_path_factory.mktemp("bank"), accounts=500, days=90, seed=4)


def train(data):
    model = ac.build_model("mlp", data, hidden_channels=8, num_layers=2)
    model = ac.fit(model, data, epochs=4, evaluate_every=2, lr=0.03, balance_classes=True)
    return model, ac.PerNeighbour()


def loaded(folder):
    return partial(ac.load_events, folder, **COLUMNS)


@pytest.fixture(scope="module")
def found(bank):
    typology = {f"acc-{k:06d}": ("even", "odd")[k % 2] for k in range(500)}
    return backtest(loaded(bank), TIMES, train, false_positive_rate=0.2, confidence=0.9, keep=0.5, positive="fraud",
                    typology=typology)  # fmt: skip


def test_each_period_has_a_new_model_beside_the_first_one(found):
    assert [(each.until, each.model) for each in found.periods] == [
        (TIMES[0], NEW), (TIMES[1], NEW), (TIMES[1], FIRST), (TIMES[1], ANEW),
    ]  # fmt: skip
    same = found.periods[1:]
    assert len({(each.targets, each.positives) for each in same}) == 1
    for each in found.periods:
        assert sum(number for _, number in each.by_type.values()) == each.positives
        share = sum(recall * number for recall, number in each.by_type.values()) / each.positives
        assert share == pytest.approx(each.recall)
        assert each.certified_recall <= each.recall
    assert list(found.monitors) == TIMES[1:]
    assert "first model, threshold anew" in str(found)
    assert found.requested.startswith("at most 20 % false positives with 90 % confidence")


def judges_nobody_it_knows(bank) -> None:
    judged = []
    original = backtesting.certify

    def noting(model, data, point, rows):
        judged.append({data.data.node_id[row] for row in rows.tolist()})
        return original(model, data, point, rows)

    known = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backtesting, "certify", noting)

        def training(data):
            mask = data.train_mask | data.val_mask | data.threshold_mask
            known.append({name for name, yes in zip(data.node_id, mask.tolist(), strict=True) if yes})
            return train(data)

        backtest(loaded(bank), TIMES, training, false_positive_rate=0.2, keep=0.5, positive="fraud")
    assert len(judged) == 4
    assert not judged[0] & known[0]
    for one in judged[1:]:
        assert not one & (known[0] | known[1])


def test_nobody_is_judged_whom_a_model_knows_and_a_leak_is_noticed(bank, monkeypatch):
    judges_nobody_it_knows(bank)
    old, new = "if name not in unknown_to and truth", "if truth"
    text_turns_red(monkeypatch, backtesting, old, new, lambda: judges_nobody_it_knows(bank))


def test_what_becomes_known_later_changes_no_model(bank, tmp_path):
    """Events and labels from after a time are replaced by others: the models of that time stay the same."""
    seen = []

    def noting(data):
        model, defence = train(data)
        seen.append({name: value.clone() for name, value in model.state_dict().items()})
        return model, defence

    for folder in (bank, tmp_path):
        if folder is tmp_path:
            events = pd.read_csv(bank / "events.csv")
            late = events.paid_at >= TIMES[1]
            events.loc[late, "amount"] = 7.0
            nodes = pd.read_csv(bank / "nodes.csv", keep_default_na=False)
            turned = (nodes["class"] == "fraud") & (nodes.known_since >= TIMES[1])
            nodes.loc[turned, "class"] = "honest"
            assert late.any()
            assert turned.any()
            events.to_csv(tmp_path / "events.csv", index=False)
            nodes.to_csv(tmp_path / "nodes.csv", index=False)
        backtest(loaded(folder), TIMES, noting, false_positive_rate=0.2, positive="fraud")
    for first, second in zip(seen[:2], seen[2:], strict=True):
        assert all(torch.equal(first[name], second[name]) for name in first)


def test_labels_that_are_late_are_not_used_earlier(bank):
    numbers = []

    def noting(data):
        numbers.append(int(((data.train_mask | data.val_mask) & (data.y == 0)).sum()))
        return train(data)

    for delay in (0, 20):
        backtest(loaded(bank), TIMES, noting, false_positive_rate=0.2, positive="fraud", delay=delay)
    assert numbers[2] < numbers[0]
    assert numbers[3] < numbers[1]


def test_drift_raises_an_alarm(bank):
    """Later on honest accounts look like fraud to the first model, which flags by the first feature."""
    load = loaded(bank)

    class Flags(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(1))

        def forward(self, x, edge_index):
            lean = x[:, :1] * self.w
            return torch.cat([lean, -lean], dim=1)

    final = load(as_of=None)
    fraud = {name for name, k in zip(final.node_id, final.y.tolist(), strict=True) if k == 0}

    def drifting(as_of, encode=None):
        data = load(as_of=as_of, encode=encode)
        rare, often = (
            torch.tensor([name in fraud or hash_of(name) % each == 0 for name in data.node_id]) for each in (30, 2)
        )
        data.x = torch.where(often if as_of == TIMES[2] else rare, 1.0, -1.0)[:, None].repeat(1, data.x.size(1))
        return data

    found = backtest(drifting, TIMES, lambda data: (Flags().eval(), ac.NodeCentric(5)), false_positive_rate=0.2,
                     positive="fraud")  # fmt: skip
    assert (TIMES[2], "false positives") in found.alarms
    assert (TIMES[2], "alerts") in found.alarms  # without a single label
    assert not [alarm for alarm in found.alarms if alarm[0] == TIMES[1] and alarm[1] != "misses"]
    assert "ALARM of the first model" in str(found)


def hash_of(name):
    return int(name[4:])


@pytest.mark.parametrize(
    ("settings", "said"),
    [({"times": TIMES[:1]}, "at least two"), ({"confidence": 0.95}, "pass keep"), ({"keep": 2}, "share=2")],
)
def test_senseless_settings_are_refused(bank, settings, said):
    given = {"times": TIMES, "train": train, "false_positive_rate": 0.1, **settings}
    with pytest.raises(SettingsError, match=said):
        backtest(loaded(bank), **given)


def drift_of(values, kind):
    """The drift of a column between the first and the second half of its entries."""
    column = EntryColumn.of_kind("amount", "v0", kind)
    half = np.arange(len(values)) < len(values) / 2
    with TableStore.opened("a test") as store:
        events = pa.table({"v0": pa.array(values, from_pandas=True), "is_first": half})
        store.run("CREATE TABLE events AS SELECT * FROM given", given=events)
        return drifted(store, column, "is_first", "NOT is_first")


def test_a_column_that_changes_is_noticed():
    numbers = np.concatenate([np.arange(200), np.arange(200) + 50.0])
    assert drift_of(numbers, "number").distance == pytest.approx(0.25)
    assert drift_of(numbers, "number").is_noticed
    some = np.where(np.arange(400) % 4 == 3, np.nan, np.tile([1.0, 2.0, 2.0, 0.0], 100))
    some[-100:] = np.nan
    gaps = drift_of(some, "number")
    assert (gaps.missing_before, gaps.missing_now, gaps.distance) == (0.25, 0.625, 0)
    same = np.tile(["a", "b", "a", "c"], 100)
    assert drift_of(same, "category").distance == 0
    other = np.concatenate([same[:200], np.tile(["a", "a", "a", "d"], 50)])
    assert drift_of(other, "category").distance == pytest.approx(0.5)
    gone = [*same[:200].tolist(), *[None] * 200]
    missing = drift_of(gone, "category")
    assert (missing.missing_before, missing.missing_now, missing.distance) == (0, 1, 1)
    assert not replace(missing, missing_now=0.05, distance=0.02).is_noticed
