"""``FieldCertifier``: certifies one node from its receptive field, sent as JSON, by the model of a run.

Nothing is kept between two requests, so any number of services can answer. Tables are read by the same code as those of
the run, so that what an entry means cannot differ.
"""

import csv
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch_geometric.data import Data

from agnncert.certificates.budget import Budget
from agnncert.certificates.file import Contents
from agnncert.certificates.ids import Id
from agnncert.certificates.threshold_record import ThresholdRecord
from agnncert.certifier import certify, with_threshold
from agnncert.cli.data import load_data
from agnncert.cli.folder import ENCODING, RunFolder
from agnncert.cli.settings import stored_settings
from agnncert.datasets.encoding import Encoding
from agnncert.defence import Defence
from agnncert.errors import GraphError, IdError, SettingsError
from agnncert.graphs.voting_edges import row_of_target
from agnncert.proving.certificate import Certificate
from agnncert.receptive import require_whole
from agnncert.recompute import defence_of_file
from agnncert_live.budgets import json_number, read_budget
from agnncert_live.events import Event, class_name

MOST_NODES = 100_000
MOST_EDGES = 200_000
_FIELDS = {"target", "nodes", "edges", "budget"}
_ROLES = ("id", "source", "target", "event_time", "event_key", "weight")  # columns that are no labels and no parts


class SentNode(NamedTuple):
    """A node of a request: its features, and how many edges it has in the whole graph, if that is stated."""

    event: Event | None
    name: Id
    edges: int | None


class SentField(NamedTuple):
    """A request, as far as it makes sense by itself."""

    target: Id
    nodes: dict[Id, SentNode]
    edges: list[Event]
    budget: Budget | None


@dataclass
class FieldCertifier:
    """Certifies single nodes from their receptive fields.

    Attributes:
        model: The certified model.
        defence: Its defence, with its threshold or voting rule.
        class_names: Names of the classes, if they have any.
        threshold: How the threshold was chosen, if there is one.
        read_tables: Reads a graph from a folder with tables as the run read its own; None if the run has no tables.
        encoding: How columns became features; None if they did not.
    """

    model: Any
    defence: Defence
    class_names: Sequence[str] | None = None
    threshold: ThresholdRecord | None = None
    read_tables: "Callable[[Path], Data] | None" = None
    columns: Mapping[str, str] = field(default_factory=dict)
    encoding: Encoding | None = None

    def __post_init__(self) -> None:
        self._lock = threading.Lock()  # one computation at a time uses all cores

    @classmethod
    def of_run(cls, folder: RunFolder, contents: Contents, model: Any) -> "FieldCertifier":
        """Returns what certifies for a run.

        Args:
            folder: The folder of the run.
            contents: What is in its certificate.
            model: The certified model.
        """
        defence = defence_of_file(contents, model)
        names = contents.class_names or None
        if not (folder.path / ENCODING).is_file():
            return cls(model, defence, names, contents.claim.threshold)
        stored = stored_settings(folder)
        columns = {name: title for name, title in stored.column.items() if name in _ROLES}
        settings = replace(
            stored,
            column={**columns, "label": "none"},
            nodes=None, edges=None, graphs=None, pairs=None, events=None,
            as_of=None, cut_off=None, keep=None, keep_for=None, name="field", root=None,
            encode=str(folder.path / ENCODING),
        )  # fmt: skip
        encoding = Encoding.from_json((folder.path / ENCODING).read_text("utf-8"))

        def read_tables(place: Path) -> Data:
            data: Data = load_data(replace(settings, data=str(place)))
            return data

        return cls(model, defence, names, contents.claim.threshold, read_tables, columns, encoding)

    def certify(self, stated: Any) -> dict[str, Any]:
        """Returns what is proved about the target of a request, as ``GET /decision`` says it.

        Args:
            stated: A JSON object, which is not trusted.

        Raises:
            SettingsError: The defence is not local, or the request is no field.
            GraphError: An entry makes no sense, or the field is not whole.
            IdError: The target is not among the nodes.
        """
        sent = _sent(stated)
        certificate = self.certificate(sent)
        decision = certificate[sent.target]
        answer: dict[str, Any] = {
            "target": decision.target,
            "label": class_name(decision.label, self.class_names),
            "radius": decision.radius,
            "votes": decision.votes.tolist(),
            "withstands": {kind: json_number(most) for kind, most in decision.withstands.items()},
            "new_neighbours": json_number(float(certificate.new_neighbours[0])),
            "digests": certificate.claim.digests,
        }
        if sent.budget is not None:
            answer["holds"] = decision.holds_against(sent.budget)
        return answer

    def summary(self) -> dict[str, Any]:
        """Returns what is certified, and how much of a graph has to be sent."""
        return {
            "defence": str(self.defence),
            "edges_within_hops": self.defence.hops_of_field(self.model),
            "classes": list(self.class_names or ()),
            "columns_of_nodes": None if self.encoding is None else [column.name for column in self.encoding.nodes],
            "columns_of_edges": None if self.encoding is None else self._columns_of_edges(),
        }

    def _columns_of_edges(self) -> list[str]:
        assert self.encoding is not None
        if self.encoding.events is not None:
            return self.encoding.events.column_names
        return [column.name for column in self.encoding.edges]

    def certificate(self, sent: SentField) -> Certificate:
        """Returns the certificate of the target of a request."""
        hops = self.defence.hops_of_field(self.model)
        counts = {node.name: node.edges for node in sent.nodes.values() if node.edges is not None}
        require_whole(sent.target, [(each.node, _other(each)) for each in sent.edges], counts, hops)
        data = self._from_tables(sent) if self.read_tables is not None else _from_values(sent)
        row = row_of_target(data, "node", sent.target)
        with self._lock:
            certificate = certify(self.model, data, self.defence, [row])
        return with_threshold(certificate, self.threshold)

    def _from_tables(self, sent: SentField) -> Data:
        """Returns the graph of tables with the columns that were sent, read as the run read its own tables."""
        assert self.read_tables is not None
        assert self.encoding is not None
        is_of_events = self.encoding.events is not None
        ends = [self.columns.get(name, name) for name in ("source", "target")]
        nodes = []
        for node in sent.nodes.values():
            if node.event is None and not is_of_events:
                raise GraphError(f"the node {node.name!r:.60} has no columns: null stands for a missing entry.")
            if node.event is not None:
                nodes.append({self.columns.get("id", "id"): node.name, **_columns_of(node.event)})
        edges = [{ends[0]: each.node, ends[1]: _other(each), **_columns_of(each)} for each in sent.edges]
        known = [column.name for column in self.encoding.nodes]
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder)
            _write_table(place / "nodes.csv", [self.columns.get("id", "id"), *known], nodes)
            _write_table(
                place / ("events.csv" if is_of_events else "edges.csv"), [*ends, *self._columns_of_edges()], edges
            )
            return self.read_tables(place)


def _sent(stated: Any) -> SentField:
    if not isinstance(stated, dict) or not {"target", "nodes", "edges"} <= stated.keys() <= _FIELDS:
        raise SettingsError('expected {"target": …, "nodes": [...], "edges": [...]}, with a "budget" if you like.')
    nodes = _sent_nodes(_list_of(stated, "nodes", MOST_NODES))
    edges = [_sent_edge(each, number) for number, each in enumerate(_list_of(stated, "edges", MOST_EDGES))]
    for name in (name for edge in edges for name in (edge.node, _other(edge))):
        if name not in nodes:
            raise GraphError(f"an edge names the node {name!r:.60}, which is not among the nodes.")
    target = Event("delete_node", _text_or_number(stated["target"])).node  # reads the id as events do
    if target not in nodes:
        raise IdError(f"the target {target!r:.60} is not among the nodes.")
    budget = stated.get("budget")
    if budget is not None and not isinstance(budget, dict):
        raise SettingsError('the budget is an object, such as {"add_edges": 3}.')
    asked = None if budget is None else read_budget({name: _text(each) for name, each in budget.items()})
    return SentField(target, nodes, edges, asked)


def _list_of(stated: dict[str, Any], name: str, most: int) -> list[Any]:
    given = stated[name]
    if not isinstance(given, list) or len(given) > most:
        raise SettingsError(f"{name}: expected a list of at most {most:,} objects.")
    return given


def _sent_nodes(stated: list[Any]) -> dict[Id, SentNode]:
    nodes: dict[Id, SentNode] = {}
    for number, each in enumerate(stated):
        node = _sent_node(each, number)
        if node.name in nodes:
            raise GraphError(f"the node {node.name!r:.60} is sent twice.")
        nodes[node.name] = node
    return nodes


def _sent_node(stated: Any, number: int) -> SentNode:
    if not isinstance(stated, dict) or not {"id"} <= stated.keys() <= {"id", "value", "columns", "edges"}:
        raise GraphError(f'node {number}: expected {{"id": …, "columns": {{…}} or "value": [...], "edges": …}}.')
    edges = stated.get("edges")
    if edges is not None and (not isinstance(edges, int) or isinstance(edges, bool) or edges < 0):
        raise GraphError(f"node {number}: edges={edges!r:.40} is how many edges it has in the whole graph.")
    given = {name: stated[name] for name in ("value", "columns") if stated.get(name) is not None}
    if not given:
        name = Event("delete_node", _text_or_number(stated["id"])).node
        return SentNode(None, name, edges)
    try:
        event = Event.from_json({"kind": "add_node", "node": _text_or_number(stated["id"]), **given})
    except GraphError as error:
        raise GraphError(f"node {number}: {error}") from error
    return SentNode(event, event.node, edges)


def _sent_edge(stated: Any, number: int) -> Event:
    if not isinstance(stated, dict) or "kind" in stated or "graph" in stated:
        raise GraphError(f'edge {number}: expected {{"node": …, "other": …}}, with "columns" or a "value".')
    try:
        ends = {name: _text_or_number(stated[name]) for name in ("node", "other") if name in stated}
        return Event.from_json({"kind": "record_edge", **stated, **ends})
    except GraphError as error:
        raise GraphError(f"edge {number}: {error}") from error


def _text_or_number(name: Any) -> Any:
    if not isinstance(name, str | int) or isinstance(name, bool):
        raise GraphError(f"{name!r:.60} is no id: ids are texts or whole numbers.")
    return name


def _text(entry: Any) -> str:
    """Returns an entry of a budget as text: a number, true, or "inf"."""
    return str(entry).lower()


def _other(edge: Event) -> Id:
    assert edge.other is not None
    return edge.other


def _columns_of(event: Event) -> Mapping[str, Any]:
    if event.value is not None:
        raise GraphError("the run was made from tables: send columns, by their names, instead of a value.")
    return event.columns or {}


def _write_table(path: Path, known: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes a table. Columns that the encoding reads come first, and each row has to have them."""
    rows = list(rows)
    names = list(dict.fromkeys([*known, *(name for row in rows for name in row)]))
    for row in rows:
        lacking = [name for name in names if name not in row]
        if lacking:
            raise GraphError(
                f"{path.stem}: a row lacks the column {lacking[0]!r:.60}: null stands for a missing entry."
            )
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(names)
        table.writerows([_cell(row[name]) for name in names] for row in rows)


def _cell(entry: Any) -> Any:
    return "" if entry is None else repr(entry) if isinstance(entry, float) else entry


def _from_values(sent: SentField) -> Data:
    """Returns the graph of feature rows and values of edges, as they stand in the graph of the run."""
    number = {name: k for k, name in enumerate(sent.nodes)}
    rows = []
    for node in sent.nodes.values():
        if node.event is None or node.event.value is None:
            raise GraphError(
                f"the node {node.name!r:.60} needs its features as value: the run was made from no tables."
            )
        rows.append(node.event.value)
    ends: list[tuple[int, int]] = []
    values: list[Any] = []
    for edge in sent.edges:
        if edge.columns is not None:
            raise GraphError("the run was made from no tables: send the values of an edge as value.")
        there = (number[edge.node], number[_other(edge)])
        ways = [there] if edge.directed or there[0] == there[1] else [there, there[::-1]]
        ends += ways
        values += [edge.value] * len(ways)
    try:
        data = Data(x=torch.tensor(rows, dtype=torch.float32), node_id=list(sent.nodes))
        data.edge_index = torch.tensor(ends, dtype=torch.int64).view(-1, 2).t().contiguous()
        if any(value is not None for value in values):
            carried = torch.tensor(values, dtype=torch.float32)
            data["edge_weight" if carried.dim() == 1 else "edge_attr"] = carried
    except (ValueError, TypeError) as error:
        raise GraphError(f"features, or values of edges, are rows of different lengths: {error!s:.100}.") from error
    return data
