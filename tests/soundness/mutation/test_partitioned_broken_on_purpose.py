"""With the engine of graphs in parts broken on purpose, the certificate is not that of the graph in memory."""

import json
from collections.abc import Callable
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.engine.workers import Here
from agnncert.errors import GraphError
from agnncert_large.partitioned import (
    certificate,
    counting,
    from_data,
    graph,
    local_graphs,
    planning,
    voting,
    writing,
)
from tests.support.mutations import each_mistake

NODES, EDGES = ac.NodeCentric(4), ac.EdgeCentric(30)


class _TwoAtOnce(Here):
    """Cuts the groups into blocks, too."""

    def parts_at_once(self) -> int:
        return 2


def some_data() -> Data:
    random = torch.Generator().manual_seed(3)
    return Data(
        x=torch.randn(40, 5, generator=random),
        edge_index=torch.randint(40, (2, 240), generator=random),
        node_id=[*range(100, 120), *[f"n{k}" for k in range(20)]],
    )


@contextmanager
def small_parts(division):
    """A graph in ranges of seven nodes, with a folder."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        for name, value in (("LEAST_ROWS", 1), ("ROWS_OF_RANGE", 7), ("ARCS_OF_PART", 3), ("HELD", 500)):
            patch.setattr(writing, name, value)
        ac.write_graph(some_data(), Path(folder) / "graph", partition=division)
        yield ac.open_graph(Path(folder) / "graph"), Path(folder)


def needed(parts, model, division) -> int:
    """The least memory with which a graph is certified: that of a task with one range."""
    with pytest.raises(GraphError) as refused:
        ac.certify(model, parts, division, memory_limit=1)
    return int(str(refused.value).rpartition("memory_limit=")[2].partition(",")[0].partition(".")[0])


def same_bytes(division, targets=None) -> None:
    data = some_data()
    model = ac.build_model("gcn", data, hidden_channels=8, out_channels=4, seed=0).eval()
    with small_parts(division) as (parts, folder):
        least = needed(parts, model, division)
        made = ac.certify(model, parts, division, targets, memory_limit=least, workers=_TwoAtOnce())
        made.save(folder / "parts")
        ac.certify(model, data, division, targets).save(folder / "whole")
        assert (folder / "parts").read_bytes() == (folder / "whole").read_bytes()


def or_refused(check: Callable[[], None]) -> None:
    """Does a check; a mistake that ends in a refusal is noticed, too."""
    try:
        check()
    except (ac.AgnncertError, ValueError, IndexError) as refused:
        pytest.fail(str(refused))


def hubs_are_dear() -> None:
    """The task with the hubs is larger than another one by all their arcs in the group that has most of them."""
    data = some_data()
    data.edge_index = torch.stack([torch.arange(40).repeat(3), torch.arange(3).repeat_interleave(40)])
    sizes = planning.Sizes(5, 8, 4)
    with small_parts(NODES) as (_, folder):
        ac.write_graph(data, folder / "hubs", partition=NODES)
        parts = ac.open_graph(folder / "hubs")
        heard = max(sum(part.rows for part in parts.parts_of("arcs", group)) for group in range(4))
        model = ac.build_model("gcn", data, hidden_channels=8, out_channels=4, seed=0).eval()
        first, *_, last = planning.plan(parts, sizes, NODES, needed(parts, model, NODES), 1)
        assert (first.ranges, last.ranges) == (range(1), range(1, 6))
        assert first.bytes - last.bytes >= int(sizes.of_range(7, 117, heard)) - sizes.of_range(33, 0, 0)


def hidden_arcs_are_found() -> None:
    """Whoever states wrong bounds of a part, with digests that fit, hides arcs from a task, and from no verifier."""
    data = some_data()
    with small_parts(NODES) as (parts, folder):
        model = ac.build_model("gcn", data, hidden_channels=8, out_channels=4, seed=0).eval()
        ac.certify(model, data, NODES).save(folder / "whole")
        assert ac.verify(folder / "whole", data=parts)
        manifest = folder / "graph" / "manifest.json"
        stated = json.loads(manifest.read_text())
        stated.pop("sha256")
        part = next(part for part in stated["arcs"][0] if part["first"] < part["last"])
        part["last"] = part["first"]
        manifest.write_text(json.dumps(stated | {"sha256": graph.seal(stated)}))
        with pytest.raises(GraphError, match="in order, as the manifest says"):
            ac.verify(folder / "whole", data=ac.open_graph(folder / "graph"))


by_nodes, by_edges = (partial(or_refused, partial(same_bytes, division)) for division in (NODES, EDGES))
of_some = partial(or_refused, partial(same_bytes, NODES, [0, 3, 8, 9, 20, 33, 39]))

MISTAKES = [
    ("arcs within the span count twice", by_nodes, local_graphs, "inner.select(is_outside)", "inner"),
    ("senders outside the span hear nothing", by_nodes, local_graphs, "inner.select(is_outside)", "inner.select(~is_outside[:0])"),
    ("senders outside the span are others", by_nodes, local_graphs, "number = count + np.searchsorted(outside, rows)", "number = count + np.maximum(np.searchsorted(outside, rows) - 1, 0)"),
    ("the last node of a span is left out", by_nodes, graph, "np.searchsorted(arcs.target, [targets.start, targets.stop])", "np.searchsorted(arcs.target, [targets.start, targets.stop - 1])"),
    ("a part that ends with a span's first node is passed over", by_nodes, graph, "part.last < targets.start", "part.last <= targets.start"),
    ("a part that begins with a span's last node is passed over", by_nodes, graph, "part.first >= targets.stop", "part.first >= targets.stop - 1"),
    ("arcs of an edge-centric group lose their last end", by_edges, local_graphs, "[part.first, part.last + 1])\n            if begin == end:", "[part.first, part.last])\n            if begin == end:"),
    ("the last node of a range has no votes", by_nodes, voting, "[part.first, part.last + 1])  # a group's", "[part.first, part.last])  # a group's"),
    ("targets are numbered as nodes", of_some, voting, "number_of[row[some] - part.first]", "(row[some] - part.first)"),
    ("nodes that are no targets have votes", of_some, voting, "np.flatnonzero(self.work.is_target(span.rows))", "np.arange(len(span.rows))"),
    ("targets of the first range in all", of_some, voting, "self.targets[rows.start : rows.stop]", "self.targets[: len(rows)]"),
    ("arcs among senders are not written", by_nodes, from_data, "mine[of_target[target[mine]] == group]", "mine[:0]"),
    ("arcs are written by group only", by_nodes, from_data, "np.lexsort([np.arange(len(groups)), target, groups])", "np.lexsort([np.arange(len(groups)), source, groups])"),
    ("what went to the disk is forgotten", by_nodes, writing, "while file.tell() < file.size():", "if file.tell() < file.size():"),
    ("a later range does not continue the one before", by_nodes, certificate, "return row[1:] + last", "return row[1:]"),
    ("text ids begin anew in each range", by_nodes, certificate, "if name in _TOTALS:", "if name in _TOTALS[:2]:"),
    ("votes without edges of other nodes", by_nodes, counting, "fast.no_edge_votes(work.bound_model, graph, features, chosen, work.tolerance)", "fast.no_edge_votes(work.bound_model, graph, features, chosen[::-1].copy(), work.tolerance)"),
    ("components of the first task only", by_edges, counting, "for task in self.work.tasks]\n            self._small", "for task in self.work.tasks[:1]]\n            self._small"),
    ("arcs spread evenly over ranges", hubs_are_dear, planning, "zip(graph.ranges, graph.arcs_on, graph.most_arcs_on, strict=True)", "zip(graph.ranges, graph.arcs_on, [sum(graph.most_arcs_on) // len(graph.ranges)] * len(graph.ranges), strict=True)"),
    ("bounds of parts are taken on trust", hidden_arcs_are_found, graph, "target[0] != part.first or target[-1] != part.last", "False"),
]  # fmt: skip


@each_mistake(MISTAKES)
def test_a_mistake_is_noticed(monkeypatch, mistake):
    mistake.turns_red(monkeypatch)
