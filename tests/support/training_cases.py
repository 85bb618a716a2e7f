"""Small models and data to train, on nodes and on graphs, and how to compare what came of it."""

import torch

import agnncert as ac
from tests.support.labelled import labelled_graph, labelled_graphs

NODE, GRAPH = ac.EdgeCentric(9), ac.NodeCentric(4)


def node_case(name="gcn", **kwargs):
    data = labelled_graph(48, **kwargs, dtype=torch.float32)
    return ac.build_model(name, data, hidden_channels=8, num_layers=2, dropout=0.3), data


def graph_case(count=20):
    graphs = labelled_graphs(count, dtype=torch.float32)
    return ac.build_model("gcn", graphs, hidden_channels=8, num_layers=2, norm="batch_norm"), graphs


CASES = {"node": (node_case, NODE), "graph": (graph_case, GRAPH)}


def weights_of(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(first, second):
    return all(torch.equal(first[name], second[name]) for name in first | second)
