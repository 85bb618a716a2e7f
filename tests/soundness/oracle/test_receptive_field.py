"""A certificate from the receptive field of a node is that of the whole graph, for every defence that is local."""

import random
from dataclasses import replace

import pytest
import torch
from torch_geometric.nn import APPNP, GAT, GCN, GIN, GraphSAGE

import agnncert as ac
from agnncert.defence import as_defence
from agnncert.errors import GraphError, SettingsError
from agnncert.receptive import require_whole
from tests.soundness.laws.test_stacked_graphs import RULES, random_model
from tests.support.graphs import random_data
from tests.support.live import assert_same, ids_of

GRAPHS = 3  # of each kind
CLASSES = 40  # many, so that a small difference of logits is another vote
BUDGETS = (
    ac.Budget(add_edges=1),
    ac.Budget(delete_edges=2, delete_nodes=1),
    ac.Budget(inject_nodes=1, edges_per_injected=3),
    ac.Budget(change_features=1),
)


def graph(seed: int):
    data = random_data(seed, directed=seed % 2 == 0, largest=60, smallest=40, density=(0.04, 0.06, 0.1)[seed % 3])
    data.x = data.x.float()
    loops = torch.tensor([[0, 1], [0, 1]])  # most divisions drop them
    data.edge_index = torch.cat([data.edge_index, loops, data.edge_index[:, :3]], dim=1)  # three edges twice
    return data


def built_in(name: str, **settings):
    return lambda data: sensitive(ac.build_model(name, data, hidden_channels=8, out_channels=CLASSES, **settings))


def of_pyg(kind, **settings):
    return lambda data: sensitive(kind(data.x.size(1), 8, num_layers=2, out_channels=CLASSES, **settings))


@torch.no_grad()
def sensitive(model):
    """A model whose classes differ from node to node, unlike those of one that was not trained."""
    random = torch.Generator().manual_seed(2)
    for weight in model.parameters():
        weight.copy_(torch.randn(weight.shape, generator=random))
    return model.eval()


DIVIDED = {
    "gcn, two layers": (built_in("gcn", num_layers=2), ac.NodeCentric(2), 2),
    "gcn, three layers": (built_in("gcn", num_layers=3), ac.NodeCentric(2), 3),
    "sage": (built_in("sage", num_layers=2), ac.NodeCentric(2), 1),
    "gin": (built_in("gin", num_layers=2), ac.GatedNodeCentric(2), 1),
    "gat": (built_in("gat", num_layers=2), ac.GatedNodeCentric(2), 1),
    "loops": (built_in("sage", num_layers=2), ac.NodeCentric(2, self_loops=True), 1),
    "no graph": (built_in("mlp", num_layers=2), ac.NodeCentric(2), 0),
    "GCN of PyG": (of_pyg(GCN), ac.NodeCentric(2), 2),
    "GraphSAGE of PyG": (of_pyg(GraphSAGE), ac.NodeCentric(2), 1),
    "GIN of PyG": (of_pyg(GIN), ac.NodeCentric(2), 1),
    "GAT of PyG": (of_pyg(GAT), ac.NodeCentric(2), 1),
    "one vote per neighbour": (built_in("gcn", num_layers=2), ac.PerNeighbour(), 0),
    "one vote per edge": (built_in("gcn", num_layers=2), ac.PerEdge(), 0),
}


def assert_same_from_its_field(model, data, defence, target) -> int:
    """The certificate of one node, from its field in any order, is that of the whole graph. Returns the field's size."""
    field = ac.receptive_field(model, data, defence, target)
    found = ac.certify_field(model, field, defence)
    whole = ac.certify(model, data, defence, [ids_of(data).index(target)])
    assert found.target.tolist() == [target] == whole.target.tolist()
    for budget in BUDGETS:
        assert found.holds_against(budget).tolist() == whole.holds_against(budget).tolist()
    same = replace(found, claim=replace(found.claim, digests=whole.claim.digests), row=whole.row)
    if getattr(as_defence(defence), "division", None) in (ac.PerNeighbour(), ac.PerEdge()):
        same = numbered_as(same, whole)
    assert_same(same, replace(whole, truth=None))
    return int(field.data.num_nodes)


def numbered_as(found, whole):
    """The same certificate with its subgraphs numbered as in the whole graph, of which each pair or node has one."""
    votes = replace(found.evidence.votes, group=whole.evidence.votes.group, num_groups=whole.claim.num_groups)
    claim = replace(found.claim, num_groups=whole.claim.num_groups)
    return replace(found, claim=claim, evidence=replace(found.evidence, votes=votes))


@pytest.mark.parametrize("kind", DIVIDED)
def test_votes_on_subgraphs_follow_from_the_field(kind: str) -> None:
    make, division, hops = DIVIDED[kind]
    assert as_defence(division).hops_of_field(make(graph(0))) == hops
    fields_of_division(kind)


def fields_of_division(kind: str, graphs: int = GRAPHS) -> None:
    make, division, _ = DIVIDED[kind]
    smaller = 0
    for seed in range(graphs):
        data = graph(seed)
        target = random.Random(seed).choice(ids_of(data))
        smaller += assert_same_from_its_field(make(data), data, division, target) < data.num_nodes
    assert smaller, "no field is smaller than its graph"


@pytest.mark.parametrize("rule", RULES)
def test_stacked_votes_follow_from_the_field(rule: str) -> None:
    fields_of_stacked_votes(rule)


def fields_of_stacked_votes(rule: str) -> None:
    settings = RULES[rule]
    model = random_model(settings, 3)
    smaller = 0
    for seed in range(GRAPHS):
        data = graph(seed)
        data.x = torch.eye(3)[torch.randint(3, (len(data.x),), generator=torch.Generator().manual_seed(seed))]
        width = int(settings.edge_values) + int(settings.trusted is not None)
        if width:
            data.edge_attr = (torch.arange(data.edge_index.size(1) * width).view(-1, width) % 3 == 1).float()
        target = random.Random(seed).choice(ids_of(data))
        smaller += assert_same_from_its_field(model, data, model.defence, target) < data.num_nodes
    assert smaller, "no field is smaller than its graph"


@pytest.mark.parametrize("kind", ["gcn, two layers", "sage", "one vote per neighbour"])
def test_a_field_without_one_of_its_edges_is_refused(kind: str) -> None:
    make, division, _ = DIVIDED[kind]
    data = graph(5)
    model = make(data)
    field = ac.receptive_field(model, data, division, ids_of(data)[4])
    assert field.data.num_edges > 3
    for gone in range(field.data.num_edges):
        part = field.data.clone()
        part.edge_index = torch.cat([part.edge_index[:, :gone], part.edge_index[:, gone + 1 :]], dim=1)
        with pytest.raises(GraphError, match=r"the receptive field is not whole: .* were sent"):
            ac.certify_field(model, replace(field, data=part), division)
    silent = {name: number for name, number in field.edges.items() if name != field.target}
    with pytest.raises(GraphError, match="does not say how many edges it has"):
        ac.certify_field(model, replace(field, edges=silent), division)


def test_the_message_names_who_lacks_what() -> None:
    with pytest.raises(GraphError) as refused:
        require_whole("a", [("a", "b"), ("b", "c")], {"a": 1, "b": 3}, 1)
    assert "'b', 1 hop from the target, has 3 edges, and 2 were sent" in str(refused.value)
    require_whole("a", [("a", "b"), ("b", "c")], {"a": 1, "b": 2}, 1)
    with pytest.raises(GraphError, match="the target 'a' has 2 edges, and 1 were sent"):
        require_whole("a", [("a", "b")], {"a": 2}, 0)


def test_what_is_not_local_is_refused() -> None:
    data = graph(1)
    gcn = built_in("gcn", num_layers=2)(data)
    target = ids_of(data)[0]
    with pytest.raises(SettingsError, match="may depend on the whole graph"):
        ac.receptive_field(gcn, data, ac.EdgeCentric(4), target)
    unknown = APPNP(K=2, alpha=0.1)
    wrapped = torch.nn.Sequential(unknown)
    with pytest.raises(SettingsError, match="over how many edges messages travel in a Sequential"):
        ac.receptive_field(wrapped, data, ac.NodeCentric(2), target)
    with pytest.raises(SettingsError, match="cannot certify a node from its receptive field, because"):
        ac.receptive_field(None, data, ac.LabelVotes(), target)
    del data.node_id
    with pytest.raises(GraphError, match="nodes need ids"):
        ac.receptive_field(gcn, data, ac.NodeCentric(2), 0)
