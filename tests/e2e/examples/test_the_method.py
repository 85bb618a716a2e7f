"""The method without the library gives the library's votes, labels and radii."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import agnncert as ac
from tests.support.paths import PROJECT

SCRIPT = PROJECT / "examples" / "the_method.py"
DIVISIONS = {"node-centric": ac.NodeCentric, "edge-centric": ac.EdgeCentric}


def imported(script: Path) -> Any:
    loader = SourceFileLoader(script.stem, str(script))
    module = module_from_spec(spec_from_loader(script.stem, loader))
    loader.exec_module(module)
    return module


METHOD = imported(SCRIPT)


def random_graph(seed: int, ids: str) -> Data:
    """Directed edges in no order, some with their opposite, self-loops, and isolated nodes at the end."""
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(24, (2, 70), generator=generator)
    edge_index = torch.cat([edge_index, edge_index[:, :20].flip(0)], dim=1).unique(dim=1)
    edge_index = edge_index[:, torch.randperm(edge_index.size(1), generator=generator)]
    node_id = torch.arange(30)
    if ids == "large":  # negative ids too, in no order
        node_id = torch.randint(-(2**62), 2**62, (30,), generator=generator)
    x = torch.randn(30, 5, generator=generator)
    return Data(x=x, edge_index=edge_index, node_id=node_id, y=torch.randint(3, (30,), generator=generator))


def trained_gcn(data: Data, subgraphs: list[torch.Tensor], seed: int) -> GCN:
    torch.manual_seed(seed)
    model = GCN(in_channels=5, hidden_channels=8, num_layers=2, out_channels=3)
    METHOD.train(model, data.x, data.y, torch.ones(30, dtype=torch.bool), subgraphs[:2])
    return model


def method_result(
    model: GCN, data: Data, subgraphs: list[torch.Tensor]
) -> tuple[list[list[int]], list[int], list[int]]:
    counts = METHOD.count(METHOD.vote(model, data.x, subgraphs), 3).tolist()
    label, radius = zip(*map(METHOD.prove, counts), strict=True)
    return counts, list(label), list(radius)


@pytest.mark.parametrize("division", DIVISIONS)
@pytest.mark.parametrize("num_groups", [1, 4, 12])
@pytest.mark.parametrize("ids", ["rows", "large"])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_method_equals_certify(division: str, num_groups: int, ids: str, seed: int) -> None:
    data = random_graph(seed, ids)
    subgraphs = METHOD.divide(data.edge_index, data.node_id.tolist(), num_groups, division)
    model = trained_gcn(data, subgraphs, seed)
    certificate = ac.certify(model, data, DIVISIONS[division](num_groups))
    votes = certificate.evidence.votes
    assert votes.stable.all()  # the library counts votes that rounding could change against the label
    assert votes.default_stable.all()
    counts, label, radius = method_result(model, data, subgraphs)
    assert counts == certificate.counts.tolist()
    assert label == certificate.label.tolist()
    assert radius == certificate.radius.tolist()


@pytest.mark.parametrize("division", DIVISIONS)
def test_the_graphs_have_ties_isolated_nodes_and_directed_edges(division: str) -> None:
    tied = 0
    for seed in range(3):
        data = random_graph(seed, "rows")
        subgraphs = METHOD.divide(data.edge_index, data.node_id.tolist(), 4, division)
        counts, label, _ = method_result(trained_gcn(data, subgraphs, seed), data, subgraphs)
        tied += sum(
            row[:k].count(row[k]) + row[k + 1 :].count(row[k]) > 0 for row, k in zip(counts, label, strict=True)
        )
        edges = set(map(tuple, data.edge_index.t().tolist()))
        assert any((v, u) not in edges for u, v in edges)
        assert any(u == v for u, v in edges)
        assert data.has_isolated_nodes()
    assert tied


@pytest.mark.parametrize(
    ("counts", "expected"),
    [([5, 1], (0, 2)), ([1, 5], (1, 1)), ([3, 3], (0, 0)), ([0, 2, 2], (1, 0)), ([0, 3, 0], (1, 1))],
)
def test_a_tie_goes_to_the_smaller_class(counts: list[int], expected: tuple[int, int]) -> None:
    assert METHOD.prove(counts) == expected


@pytest.mark.parametrize("division", DIVISIONS)
def test_every_edge_but_self_loops_is_in_one_subgraph(division: str) -> None:
    edge_index = random_graph(0, "rows").edge_index
    subgraphs = METHOD.divide(edge_index, list(range(30)), 12, division)
    divided = sorted(torch.cat(subgraphs, dim=1).t().tolist())
    assert divided == sorted(edge for edge in edge_index.t().tolist() if edge[0] != edge[1])
