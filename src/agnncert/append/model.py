"""``AppendModel``: trees, judge, known accounts and threshold as a module, so that it is stored like other models."""

import json
from dataclasses import fields
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from agnncert.append.evaluate import Lowered, Values
from agnncert.append.evidence import AppendEvidence, as_trees
from agnncert.append.ledger import Ledger, Rows, read_ledger
from agnncert.append.program import Program, Threat
from agnncert.append.record import AppendRecord
from agnncert.append.settings import AppendSettings
from agnncert.append.tables import ARRAYS, TreeTables
from agnncert.append.trees import UNIT
from agnncert.as_built import OwnModel
from agnncert.graphs.graph import CanonicalGraph

NAME = "append-only"
_LENGTHS = (("start", "start"), ("nodes", "column"))


class AppendModel(OwnModel):
    """Counts features of accounts in a graph, and adds up trees that read them.

    Attributes:
        program: What is counted.
        defence: The settings.
        known: Keys of the accounts that were known to be positive when it was trained, ascending.
        threshold: The largest score that is not flagged.
    """

    known: Tensor
    threshold: Tensor
    description: Tensor

    def __init__(self, program: Program, defence: AppendSettings, positive: int, sizes: dict[str, int]) -> None:
        super().__init__()
        self.program = program
        self.defence = defence
        self.positive = positive
        self.sizes = sizes
        for prefix in ("tree_", "judge_"):
            for name in ARRAYS:
                length = sizes[f"{prefix}start"] if name == "start" else sizes[f"{prefix}nodes"]
                self.register_buffer(f"{prefix}{name}", torch.zeros(length, dtype=torch.int64))
        self.register_buffer("known", torch.zeros(sizes["known"], dtype=torch.int64))
        self.register_buffer("threshold", torch.zeros((), dtype=torch.int64))
        self.register_buffer("description", _as_bytes({"program": program.to_json(), "positive": positive}))
        self.config: dict[str, Any] = {
            "name": NAME,
            "program": program.to_json(),
            "defence": written_settings(defence),
            "positive": positive,
            "sizes": sizes,
        }

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *others: Any) -> None:
        """Takes the program and the lengths of all tables from the stored tensors, before these are read."""
        stored = {name: state_dict[f"{prefix}{name}"] for name in self._buffers if f"{prefix}{name}" in state_dict}
        if len(stored) == len(self._buffers):
            described = json.loads(bytes(stored["description"].tolist()))
            sizes = sizes_of_tensors(stored)
            fresh = type(self)(Program.from_json(described["program"]), self.defence, described["positive"], sizes)
            for name in ("program", "positive", "sizes", "config", "_buffers"):
                setattr(self, name, getattr(fresh, name))
        super()._load_from_state_dict(state_dict, prefix, *others)

    def anew(self) -> Self:
        """Returns a model of the same settings without trees."""
        return type(self)(self.program, self.defence, self.positive, self.sizes)

    def tables(self, prefix: str) -> TreeTables:
        """Returns the trees of the score ("tree_") or of the judge ("judge_")."""
        return TreeTables(*(getattr(self, f"{prefix}{name}").cpu().numpy() for name in ARRAYS))

    def ledger(self, graph: CanonicalGraph) -> Ledger:
        """Returns the rows of a graph as its program reads them."""
        known = np.flatnonzero(np.isin(graph.node_key.numpy(), self.known.cpu().numpy()))
        return read_ledger(self.program, graph.edge_index.numpy(), edge_table(graph), own_table(graph), known)

    def values(self, graph: CanonicalGraph) -> Values:
        """Returns what can be counted in a graph."""
        return Values(self.ledger(graph), self.program, as_trees(self.tables("judge_")))

    def evidence(self, graph: CanonicalGraph, rows: Rows, ids: str, deletions: int) -> AppendEvidence:
        """Counts the features of some accounts, and bounds on them after deletions."""
        values = self.values(graph)
        threat: Threat = self.defence.threat
        features = values.table(rows)
        lowered = np.zeros((deletions, *features.shape), dtype=np.int64)
        for number in range(deletions):
            lowered[number] = Lowered(values, threat, number + 1).table(rows)
        record = AppendRecord(
            features,
            lowered,
            self.tables("tree_"),
            self.tables("judge_"),
            self.program,
            threat,
            int(self.threshold),
            self.positive,
            ids,
        )
        return AppendEvidence(record)

    def scores(self, graph: CanonicalGraph, rows: Rows) -> Rows:
        """Returns the score of some accounts."""
        return as_trees(self.tables("tree_")).score(self.values(graph).table(rows))

    @torch.no_grad()
    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor | None = None) -> Tensor:
        """Scores of every account, shape ``[num_nodes, 2]``: 0, and by how much its score is above the threshold."""
        values = None if edge_attr is None else edge_attr.numpy()
        ledger = read_ledger(self.program, edge_index.numpy(), values, x.numpy())
        table = Values(ledger, self.program, as_trees(self.tables("judge_"))).table(np.arange(len(x)))
        lead = (as_trees(self.tables("tree_")).score(table) - int(self.threshold)) / UNIT
        scores = torch.zeros((len(x), 2), dtype=torch.float32)
        scores[:, self.positive] = torch.from_numpy(lead).float()
        return scores


def edge_table(graph: CanonicalGraph) -> Any:
    """Returns all values of edges as columns, weights first; ``None`` if there are none."""
    parts = [value.double().unsqueeze(-1).flatten(1) for value in graph.edge_values.values()]
    return torch.cat(parts, dim=1).numpy() if parts else None


def own_table(graph: CanonicalGraph) -> Any:
    """Returns the features of accounts as a table."""
    x = graph.x
    return (x.to_dense() if x.layout != torch.strided else x).double().numpy()


def load_tables(model: AppendModel, prefix: str, tables: TreeTables) -> None:
    """Puts trees into a model."""
    for name in ARRAYS:
        getattr(model, f"{prefix}{name}").copy_(torch.from_numpy(getattr(tables, name)))


def written_settings(defence: AppendSettings) -> dict[str, Any]:
    """Returns the settings of a model as JSON values; its program stands apart."""
    names = [each.name for each in fields(AppendSettings) if each.name != "program"]
    values = {name: getattr(defence, name) for name in names}
    return {**values, "scales": dict(values["scales"]), "rises": list(values["rises"])}


def _as_bytes(described: dict[str, Any]) -> Tensor:
    return torch.tensor(list(json.dumps(described, sort_keys=True).encode()), dtype=torch.uint8)


def sizes_of_tensors(stored: dict[str, Tensor]) -> dict[str, int]:
    """Returns how long the tables of stored tensors are."""
    lengths = {f"{prefix}_{name}": f"{prefix}_{of}" for prefix in ("tree", "judge") for name, of in _LENGTHS}
    return {name: len(stored[of]) for name, of in lengths.items()} | {"known": len(stored["known"])}


def sizes_of(trees: TreeTables, judge: TreeTables, num_known: int) -> dict[str, int]:
    """Returns how long the tables of a model are."""
    return {
        "tree_start": len(trees.start),
        "tree_nodes": len(trees.column),
        "judge_start": len(judge.start),
        "judge_nodes": len(judge.column),
        "known": num_known,
    }
