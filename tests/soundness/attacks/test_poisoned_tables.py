"""What else of a poisoned source decides about everybody: names of classes, columns, a teacher.

Each test first shows that certified labels change if the guard is taken away, by the very attack that
the certificate is about. With the guard the data is refused, and what the message asks for is safe.
"""

import csv
from collections.abc import Callable
from pathlib import Path
from random import Random

import numpy as np
import pytest
from torch_geometric.data import Data

import agnncert as ac
from agnncert.datasets.encoding import FITTED
from agnncert.datasets.taught import teaching_of
from agnncert.errors import DatasetError, SettingsError
from agnncert.graphs.labels import CLASSES_COUNTED
from agnncert.labels import defence as label_defence
from tests.soundness.retraining.source import CLASSES, WIDTH, Accounts

FLIP = ac.Budget(flip_labels=1)


def accounts(seed: int) -> Accounts:
    return Accounts.random(Random(seed), 70, labelled=0.8)


def certified(data: Data, defence: ac.LabelVotes) -> ac.Certificate:
    model = ac.fit(None, data, defence)
    return ac.certify(model, data, model.defence, np.arange(data.num_nodes))


def names(data: Data, certificate: ac.Certificate) -> list[str | None]:
    return [data.class_names[label] if label >= 0 else None for label in certificate.label.tolist()]


def rename(folder: Path, account: int, label: str) -> Path:
    """Writes another class into one row of the table of nodes."""
    table = folder / "nodes.csv"
    with table.open(newline="") as file:
        rows = list(csv.reader(file))
    rows = [[*row[:-1], label] if row[0] == str(account) else row for row in rows]
    with table.open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    return folder


def ignoring(read: Callable[..., Data], mark: str) -> Callable[..., Data]:
    """Reads data, and takes away what says that it follows the training part."""

    def marked(*paths: Path, **settings: object) -> Data:
        data = read(*paths, **settings)
        data[mark] = False
        return data

    return marked


@pytest.mark.parametrize("neighbour_votes", [None, 1])
def test_one_label_of_a_new_class_would_change_certified_labels(tmp_path, neighbour_votes) -> None:
    source = accounts(0)
    read = ignoring(ac.load_tables, CLASSES_COUNTED)
    defence = ac.LabelVotes(neighbour_votes=neighbour_votes)
    data = read(source.write(tmp_path / "before"))
    before = certified(data, defence)
    holds = before.holds_against(FLIP)
    changed = 0
    for account in data.node_id[data.train_mask].tolist():
        after = read(rename(source.write(tmp_path / "after"), account, "unheard of"))
        now = names(after, certified(after, defence))
        changed += sum(holds[k] and name != now[k] for k, name in enumerate(names(data, before)))
    assert changed > 5


def test_classes_that_a_table_counts_are_refused(tmp_path) -> None:
    data = ac.load_tables(accounts(0).write(tmp_path / "tables"))
    with pytest.raises(SettingsError, match=r"load_tables\(…, classes="):
        ac.fit(None, data, ac.LabelVotes())
    with pytest.raises(SettingsError, match=r"load_tables\(…, classes="):
        ac.fit(None, ac.split(data), ac.LabelVotes(neighbour_votes=1))


def test_a_label_that_is_none_of_the_stated_classes_is_an_error_with_its_row(tmp_path) -> None:
    source = accounts(0)
    first = source.ids[0]
    folder = rename(source.write(tmp_path / "tables"), first, "unheard of")
    with pytest.raises(DatasetError, match=r'"unheard of" \(row 1\)'):
        ac.load_tables(folder, classes=CLASSES)


def test_stated_classes_keep_their_order_and_need_not_occur(tmp_path) -> None:
    folder = accounts(0).write(tmp_path / "tables")
    data = ac.load_tables(folder, classes=["spam", "bot", "genuine"])
    counted = ac.load_tables(folder)
    assert data.class_names == ["spam", "bot", "genuine"]
    assert data.num_classes == 3
    named = [data.class_names[label] for label in data.y[data.train_mask].tolist()]
    assert named == [counted.class_names[label] for label in counted.y[counted.train_mask].tolist()]
    assert ac.fit(None, data, ac.LabelVotes()).num_classes == 3


@pytest.mark.parametrize("classes", [[], ["spam", "spam"], ["spam", " "], "spam"])
def test_classes_are_different_names(tmp_path, classes) -> None:
    with pytest.raises(DatasetError, match="the names of all classes"):
        ac.load_tables(accounts(0).write(tmp_path / "tables"), classes=classes)


def test_one_label_would_change_certified_labels_if_a_teacher_read_it(monkeypatch) -> None:
    monkeypatch.setattr(label_defence, "teaching_of", lambda data: None)
    source = accounts(5)

    def taught(changed: Accounts) -> ac.Certificate:
        data = ac.split(changed.data(), fractions=(0.2, 0.1, 0.7))
        model = ac.fit(None, ac.teach(data, "mlp"), ac.LabelVotes(preset="few"))
        return ac.certify(model, data, model.defence, np.arange(data.num_nodes))

    before = taught(source)
    holds = before.holds_against(FLIP)
    data = ac.split(source.data(), fractions=(0.2, 0.1, 0.7))
    changed = 0
    for account in data.node_id[data.train_mask].tolist():
        flipped = source.labelled(account, 1 - source.labels[account])
        changed += int((holds & (taught(flipped).label != before.label)).sum())
    assert changed > 5


def test_labels_of_a_teacher_are_refused() -> None:
    data = ac.teach(ac.split(accounts(5).data()), "mlp")
    assert teaching_of(data) is not None
    with pytest.raises(SettingsError, match="a teacher labelled nodes of this data"):
        ac.fit(None, data, ac.LabelVotes())


def write_gaps(source: Accounts, folder: Path) -> Path:
    """Writes tables in which unlabelled accounts did not fill in every column."""
    table = source.write(folder) / "nodes.csv"
    with table.open(newline="") as file:
        rows = list(csv.reader(file))
    unlabelled = {str(each) for each in accounts(7).ids if each not in accounts(7).labels}
    emptied = [
        [row[0], *(["", *row[2 : WIDTH + 1]] if row[0] in unlabelled else row[1 : WIDTH + 1]), row[-1]] for row in rows
    ]
    with table.open("w", newline="") as file:
        csv.writer(file).writerows(emptied)
    return folder


def test_one_added_label_would_change_the_columns_that_an_encoding_makes(tmp_path) -> None:
    source = accounts(7)
    read = ignoring(ac.load_tables, FITTED)
    columns = set()
    for account in [each for each in source.ids if each not in source.labels]:
        folder = write_gaps(source.labelled(account, 0), tmp_path / "after")
        columns.add(read(folder, classes=CLASSES, encode="auto").num_features)
    assert columns == {WIDTH, WIDTH + 1}


def test_an_encoding_fitted_to_rows_whose_labels_may_be_added_is_refused(tmp_path) -> None:
    folder = write_gaps(accounts(7), tmp_path / "tables")
    everything = ac.LabelVotes(candidates="all", num_labels=15)
    data = ac.load_tables(folder, classes=CLASSES, encode="auto")
    with pytest.raises(DatasetError, match="was fitted to its training part"):
        ac.fit(None, data, everything)
    ac.fit(None, data, ac.LabelVotes())  # who has a label is trusted here
    given = ac.load_tables(folder, classes=CLASSES, encode=data.encoding)
    ac.fit(None, given, everything)


def write_scans(folder: Path, label: str = "odd") -> Path:
    folder.mkdir(exist_ok=True)
    random = Random(0)
    tables = {"nodes": [["id", "graph", "a", "kind"]], "edges": [["source", "target", "graph"]]}
    tables["graphs"] = [["graph", "label"]]
    for k in range(20):
        tables["graphs"].append([f"g{k}", label if k % 2 else "even"])
        tables["nodes"] += [[f"n{i}", f"g{k}", round(random.random(), 2), "xy"[i % 2]] for i in range(3)]
        tables["edges"] += [["n0", "n1", f"g{k}"], ["n1", "n2", f"g{k}"]]
    for name, rows in tables.items():
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return folder


def test_graphs_of_tables_need_stated_classes_and_a_given_encoding(tmp_path) -> None:
    folder = write_scans(tmp_path / "scans")
    defence = ac.IsolatedModels(num_models=3)
    counted = ac.load_tables(folder, encode={"kind": "category"})
    fitted = ac.load_tables(folder, encode={"kind": "category"}, classes=["even", "odd"])
    given = ac.load_tables(folder, encode=fitted.encoding, classes=["even", "odd"])
    with pytest.raises(DatasetError, match="was fitted to its training part"):
        ac.fit("gin", fitted, defence, epochs=1)
    counted.encoding_fitted = False
    with pytest.raises(SettingsError, match=r"load_tables\(…, classes="):
        ac.fit("gin", counted, defence, epochs=1)
    model = ac.fit("gin", given, defence, epochs=1)
    assert ac.certify(model, given, defence, given.test).num_classes == 2


def write_events(folder: Path, *more: list[str]) -> Path:
    """Writes payments among accounts of a table."""
    folder.mkdir(exist_ok=True)
    random = Random(2)
    nodes = [["id", "a", "b", "kind", "label"]]
    for k in range(80):
        signs = [f"{random.gauss(k % 2 * 2 - 1, 1.5):.2f}" for _ in range(2)]
        nodes.append([f"u{k}", *signs, random.choice("xy"), ("good", "bad")[k % 2] if k % 10 < 7 else ""])
    pairs = [random.sample(range(80), 2) for _ in range(300)]
    payments = [["source", "target", "amount"], *([f"u{u}", f"u{v}", f"{random.random():.1f}"] for u, v in pairs)]
    for name, rows in (("nodes", nodes), ("events", [*payments, *more])):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            csv.writer(file).writerows(rows)
    return folder


def test_an_event_with_a_stranger_leaves_the_columns_of_all_others(tmp_path) -> None:
    """A mark of missing entries that came with the first stranger retrained everything, edge-blind or not."""

    def certified_events(folder: Path) -> tuple[Data, ac.Certificate]:
        data = ac.load_events(folder)
        model = ac.fit("mlp", data, ac.StackedVotes(edge_blind=True, vote_weight=0.25, folds=2), epochs=5)
        return data, ac.certify(model, data, model.defence, np.arange(80))

    data, before = certified_events(write_events(tmp_path / "before"))
    attacked, after = certified_events(write_events(tmp_path / "after", ["u3", "stranger", "5.0"]))
    assert (data.num_unlisted, attacked.num_unlisted) == (0, 1)
    assert np.array_equal(data.x, attacked.x[:80])
    holds = before.holds_against(ac.Budget(inject_nodes=1, edges_per_injected=1))
    assert holds.sum() > 40
    assert np.array_equal(before.label[holds], after.label[holds])
