"""Graphs side by side: which of them are equal, and one of each kind."""

import pytest
import torch

import agnncert as ac
from agnncert.graphs.graph import canonical_set
from agnncert.training.side_by_side import SideBySide

from ...support.labelled import labelled_graphs


def cells_of(graphs, division):
    joined = canonical_set(graphs)
    pieces = division.pieces(joined, division.groups(joined))
    owner = pieces.cell // division.num_groups
    return joined, SideBySide(owner, pieces.cell, pieces.node, pieces.edge_index, pieces.edge)


def written_out(cells: SideBySide, x, values):
    """Every cell as a comparable value: features in order, and edges between positions with their values."""
    texts = []
    for cell in torch.unique(cells.cell):
        copies = (cells.cell == cell).nonzero().view(-1)
        inside = torch.isin(cells.edge_index[0], copies)
        ends = (cells.edge_index[:, inside] - copies[0]).t().tolist()
        worth = [value[cells.edge[inside]].tolist() for value in values.values()]
        texts.append(str((x[cells.node[copies]].tolist(), sorted(map(str, zip(ends, *worth, strict=True))))))
    return texts


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("division", [ac.EdgeCentric(4), ac.EdgeCentric(40), ac.NodeCentric(5)], ids=str)
def test_cells_are_of_one_kind_exactly_if_they_are_equal(division, weighted) -> None:
    graphs = labelled_graphs(16)
    for graph in graphs:
        graph.x = (graph.x[:, :1] > 1).float()  # two kinds of nodes, so that many subgraphs are equal
        if weighted:
            graph.edge_weight = (torch.arange(graph.num_edges) % 2).float()
    joined, cells = cells_of(graphs, division)
    values = {"edge_weight": joined.edge_weight} if weighted else {}
    kind, examples = cells.kinds(joined.x, values)
    texts = written_out(cells, joined.x, values)
    assert len(set(texts)) < len(texts)
    numbers = {}
    assert kind.tolist() == [numbers.setdefault(text, len(numbers)) for text in texts]
    assert written_out(examples, joined.x, values) == list(numbers)
    assert torch.equal(torch.unique(examples.owner), torch.arange(len(numbers)))


def test_the_direction_and_the_place_of_an_edge_count() -> None:
    def cell(*edges):
        return torch.tensor(edges, dtype=torch.int64).view(-1, 2).t()

    shapes = [cell((0, 1)), cell((1, 0)), cell((0, 2)), cell((0, 1)), cell((0, 1), (1, 2)), cell()]
    owner = torch.arange(len(shapes)).repeat_interleave(3)
    edge_index = torch.cat([shape + 3 * k for k, shape in enumerate(shapes)], dim=1)
    cells = SideBySide(owner, owner, torch.arange(18), edge_index, torch.arange(edge_index.size(1)))
    kind, examples = cells.kinds(torch.ones(18, 2), {})
    assert kind.tolist() == [0, 1, 2, 0, 3, 4]
    assert len(examples.owner) == 15
