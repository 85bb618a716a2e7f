"""Which graphs are accepted, what is said about others, the canonical form, and which targets are accepted."""

import math

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset
from torch_geometric.loader import DataLoader

import agnncert as ac
from agnncert.divisions.edge import EdgeCentric
from agnncert.errors import AgnncertError, GraphError, IdError
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.graphs.digest import digest_by_keys, digests_beyond_keys, graph_digest
from agnncert.graphs.graph import one_graph
from agnncert.graphs.node_ids import exact_ids, node_keys
from agnncert.graphs.targets import target_rows
from agnncert.graphs.task import infer_task
from tests.support.graphs import twin_of

KNOWN = "f705c382b1c7bb0ba4435f695e3b04607018c2a4f6e77da3178d2d83472686c5"  # recorded with datasets

EDGELESS = torch.empty(2, 0, dtype=torch.long)


def data(**changes):
    """Four nodes and three edges, one of them a self-loop."""
    values = {
        "x": torch.arange(8.0).view(4, 2),
        "edge_index": torch.tensor([[0, 2, 3], [1, 2, 1]]),
        "node_id": torch.tensor([30, 10, 40, 20]),
    }
    return Data(**(values | changes))


# What is refused


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"x": None}, GraphError, "no node features x: give every node"),
        ({"x": torch.zeros(0, 2)}, GraphError, "the graph has no nodes"),
        ({"x": torch.zeros(4)}, GraphError, r"x must be a dense tensor of shape \[num_nodes, num_features\]"),
        ({"x": torch.zeros(4, 2).to_sparse()}, GraphError, "x must be a dense tensor"),
        ({"x": torch.zeros(4, 2, dtype=torch.complex64)}, GraphError, "x is complex.*give real features"),
        (
            {"edge_index": torch.tensor([[0], [4]])},
            GraphError,
            r"edge 0 joins rows \[0, 4\].*only 4 nodes.*remove it or add",
        ),
        ({"edge_index": torch.tensor([[0, -1], [1, 0]])}, GraphError, r"edge 1 joins rows \[-1, 0\]"),
        ({"edge_index": torch.zeros(3, 2, dtype=torch.int64)}, GraphError, r"edge_index has shape \(3, 2\)"),
        ({"edge_index": torch.zeros(2, 2)}, GraphError, "type torch.float32, expected integers"),
        ({"edge_index": None, "adj_t": torch.eye(4)}, GraphError, "edges in adj_t: give them as edge_index"),
        ({"edge_weight": torch.ones(2)}, GraphError, r"edge_weight has shape \(2,\) for 3 edges: .*one row per edge"),
        ({"edge_weight": torch.tensor(1.0)}, GraphError, r"edge_weight has shape \(\)"),
        ({"edge_attr": [1, 2, 3]}, GraphError, "edge_attr is a list, expected a torch.Tensor"),
        (
            {"edge_weight": torch.tensor([1, math.nan, 1])},
            GraphError,
            r"edge_weight of 1 edge\(s\) are not finite \(first: row 1\)",
        ),
        ({"edge_attr": torch.full((3, 2), math.inf)}, GraphError, r"edge_attr of 3 edge\(s\) are not finite"),
        ({"node_id": [1, 2, 3]}, IdError, "node_id has 3 entries for 4 nodes: one id per node"),
        ({"node_id": 7}, IdError, "node_id is a int: give a list"),
        ({"node_id": [1, 2, 3, 2]}, IdError, "id 2 appears at rows 1 and 3"),
        ({"node_id": [1, "a", "1", 2]}, IdError, "id 1 appears at rows 0 and 2"),
        ({"node_id": [1, 2, 3, None]}, IdError, "row 3 is None"),
        ({"node_id": torch.tensor([0.0, 1.0, 2.0, 3.0])}, IdError, r"row 0 is 0.0 \(float\)"),
        ({"node_id": torch.zeros(4, 1, dtype=torch.int64)}, IdError, "one dimension"),
    ],
)
def test_malformed_graphs_are_refused_by_name(changes, error, message):
    assert issubclass(error, AgnncertError)
    with pytest.raises(error, match=message):
        canonical(data(**changes))
    with pytest.raises(error, match=message.replace("the graph has", "graph 1 has")):
        canonical_set([data(), data(**changes)])


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_features_that_are_not_finite_are_refused_with_how_many_and_where(bad):
    x = torch.zeros(4, 2)
    x[1, 1] = x[3, 0] = x[3, 1] = bad
    with pytest.raises(GraphError, match=r"features x of 2 node\(s\) are not finite \(first: row 1\): replace"):
        canonical(data(x=x))


@pytest.mark.parametrize(
    "thing", [HeteroData(), {"x": 1}, torch.zeros(3), None, [data()]], ids=lambda t: type(t).__name__
)
def test_things_that_are_not_a_graph_are_refused(thing):
    with pytest.raises(GraphError, match=f"expected a torch_geometric Data, got {type(thing).__name__}"):
        canonical(thing)


def test_sets_of_graphs_are_refused_by_the_graph_at_fault():
    with pytest.raises(GraphError, match="no graphs"):
        canonical_set([])
    with pytest.raises(GraphError, match="graph 1 is a str, expected a torch_geometric Data"):
        canonical_set([data(), "graph"])
    with pytest.raises(GraphError, match=r"differ in their number of features: \[2, 5\]"):
        canonical_set([data(), data(x=torch.zeros(4, 5))])
    with pytest.raises(GraphError, match="graph 1 has no edge_weight while others have"):
        canonical_set([data(edge_weight=torch.ones(3)), data()])


# The canonical form


def test_edges_are_ordered_by_ids_whatever_the_order_of_rows_and_edges():
    given = data(edge_weight=torch.tensor([1.0, 2.0, 3.0]))
    graph = canonical(given)
    assert graph.node_key[graph.edge_index].t().tolist() == [[20, 10], [30, 10]]
    assert graph.edge_weight.tolist() == [3.0, 1.0]
    for order in (torch.tensor([3, 1, 0, 2]), torch.tensor([2, 3, 1, 0])):
        place = torch.argsort(order)
        shuffled = Data(
            x=given.x[order],
            edge_index=place[given.edge_index].flip(1),
            edge_weight=given.edge_weight.flip(0),
            node_id=given.node_id[order],
        )
        other = canonical(shuffled)
        assert other.node_key[other.edge_index].tolist() == graph.node_key[graph.edge_index].tolist()
        assert other.edge_weight.tolist() == graph.edge_weight.tolist()


def test_parallel_edges_are_ordered_by_their_values():
    arcs = torch.tensor([[0, 0, 0], [1, 1, 1]])
    graph = canonical(data(edge_index=arcs, edge_attr=torch.tensor([[2.0, 0.0], [1.0, 5.0], [1.0, 3.0]])))
    assert graph.edge_attr.tolist() == [[1.0, 3.0], [1.0, 5.0], [2.0, 0.0]]


def test_self_loops_are_dropped_unless_kept_on_purpose():
    assert canonical(data()).num_edges == 2
    assert canonical(data(), keep_self_loops=True).num_edges == 3
    assert canonical_set([data()]).num_edges == 2
    assert canonical_set([data()], keep_self_loops=True).num_edges == 3


def test_whole_features_become_floats_and_others_keep_their_type():
    assert canonical(data(x=torch.ones(4, 2, dtype=torch.int64))).x.dtype == torch.float32
    assert canonical(data(x=torch.ones(4, 2, dtype=torch.bool))).x.dtype == torch.float32
    assert canonical(data(x=torch.ones(4, 2, dtype=torch.float64))).x.dtype == torch.float64


def test_a_graph_that_does_not_say_which_nodes_are_joined_is_refused():
    silent = Data(x=torch.eye(20), y=torch.arange(20) % 2)
    silent.train_mask = silent.val_mask = silent.test_mask = torch.ones(20, dtype=torch.bool)
    with pytest.raises(GraphError, match="the graph has no edge_index, so nothing says which nodes"):
        canonical(silent)
    with pytest.raises(GraphError, match=r"graph 1 has no edge_index.*torch.empty\(2, 0, dtype"):
        canonical_set([data(), Data(x=torch.zeros(2, 2))])
    model = ac.build_model("gcn", silent, out_channels=2).eval()
    for defence in (ac.NodeCentric(3), ac.PerNeighbour(), ac.StackedVotes()):
        with pytest.raises(GraphError, match="no edge_index"):
            ac.fit(model, silent, defence)
    with pytest.raises(GraphError, match="no edge_index"):
        ac.fit(None, silent, ac.LabelVotes(num_classes=2))
    with pytest.raises(GraphError, match="no edge_index"):
        ac.certify(model, silent, ac.NodeCentric(3))


def test_a_graph_that_says_that_it_has_no_edges_has_none():
    assert canonical(data(edge_index=EDGELESS)).edge_index.shape == (2, 0)


def test_keys_come_from_ids_or_else_from_rows():
    named, anonymous = canonical(data()), canonical(Data(x=torch.zeros(3, 1), edge_index=EDGELESS))
    assert (named.node_key.tolist(), named.stable_ids) == ([30, 10, 40, 20], True)
    assert (anonymous.node_key.tolist(), anonymous.stable_ids) == ([0, 1, 2], False)
    texts = canonical(data(node_id=["30", "ten", "40", "20"])).node_key.tolist()
    assert texts[0] == 30
    assert texts[1] != 10
    assert node_keys(data()).tolist() == [30, 10, 40, 20]


def test_the_users_data_is_left_alone():
    given = data()
    before = given.clone()
    canonical(given)
    canonical_set([given, given])
    assert given.keys() == before.keys()
    assert torch.equal(given.edge_index, before.edge_index)


def test_joined_graphs_come_apart_again_as_they_were():
    graphs = [
        data(edge_weight=torch.rand(3)),
        data(
            x=torch.rand(1, 2),
            edge_index=torch.empty(2, 0, dtype=torch.int64),
            node_id=["a"],
            edge_weight=torch.empty(0),
        ),
    ]
    joined = canonical_set(graphs)
    assert joined.batch.tolist() == [0, 0, 0, 0, 1]
    for k, graph in enumerate(graphs):
        alone, part = canonical_set([graph]), one_graph(joined, k)
        for name in ("x", "edge_index", "edge_weight", "node_key"):
            assert torch.equal(getattr(part, name), getattr(alone, name)), name
        assert (part.task, part.stable_ids) == ("graph", True)


def test_ids_need_to_be_unique_within_a_graph_only_and_are_stable_if_all_are():
    assert canonical_set([data(), data()]).node_key.tolist() == 2 * [30, 10, 40, 20]
    assert not canonical_set([data(), Data(x=torch.zeros(2, 2), edge_index=EDGELESS)]).stable_ids


# Digests


def test_the_digest_sees_everything_that_can_change_a_vote():
    base = data(edge_weight=torch.ones(3))
    digest = graph_digest(canonical(base))
    assert digest == graph_digest(canonical(base.clone()))
    x = base.x.clone()
    x[0, 0] += 1e-6
    others = [
        data(edge_weight=torch.tensor([1.0, 1.0, 2.0])),
        data(),
        data(edge_weight=torch.ones(3), x=x),
        data(edge_weight=torch.ones(3), node_id=torch.tensor([30, 10, 40, 21])),
        data(edge_weight=torch.ones(3), edge_index=torch.tensor([[0, 2, 2], [1, 2, 1]])),
    ]
    assert len({digest, *(graph_digest(canonical(other)) for other in others)}) == 6


def test_the_digest_does_not_see_the_order_of_edges_or_dropped_loops():
    flipped = data(edge_index=torch.tensor([[3, 0], [1, 1]]))
    assert graph_digest(canonical(data())) == graph_digest(canonical(flipped))


# Tasks and targets


def test_the_task_follows_from_the_data():
    assert infer_task(data()) == "node"
    assert infer_task([data()]) == infer_task((data(),)) == "graph"
    with pytest.raises(GraphError, match="cannot tell the task from a int"):
        infer_task(7)


class OneGraph(InMemoryDataset):
    """What Planetoid and its like are: a dataset of a single graph."""

    def __init__(self, graph):
        super().__init__(None)
        self.data, self.slices = self.collate([graph])


def hetero() -> HeteroData:
    graph = HeteroData()
    graph["user"].x, graph["item"].x = torch.ones(3, 2), torch.ones(2, 2)
    graph["user", "buys", "item"].edge_index = torch.tensor([[0, 1], [1, 0]])
    return graph


@pytest.mark.parametrize(
    ("thing", "advice"),
    [
        (Batch.from_data_list([data(), data()]), r"batch\.to_data_list\(\)"),
        (hetero(), r"ac\.from_hetero\(data\)"),
        ("cora-ml", r'load_dataset\("cora-ml"\)'),
        (torch.ones(3, 2), r"Data\(x=…, edge_index=…\)"),
        (torch.nn.Linear(2, 2), "model, data, defence"),
        (EdgeCentric(3), "model, data, defence"),
        (networkx.path_graph(3), "from_networkx"),
        (DataLoader([data(), data()]), r"loader\.dataset"),
    ],
    ids=["batch", "hetero", "name", "tensor", "model", "division", "networkx", "loader"],
)
def test_what_looks_like_data_and_is_none_is_refused_with_what_to_do(thing, advice):
    with pytest.raises(GraphError, match=f"cannot tell the task from a .*{advice}"):
        infer_task(thing)


def test_a_dataset_of_one_graph_with_labels_of_nodes_is_not_taken_for_graph_classification():
    of_nodes, masked = data(y=torch.arange(4)), data(y=torch.tensor([1]), train_mask=torch.ones(4).bool())
    for graph, what in ((of_nodes, "a label for each node"), (masked, "train_mask")):
        for listed in (OneGraph(graph), [graph]):
            with pytest.raises(GraphError, match=rf"holds one graph, which has {what}: .*dataset\[0\]"):
                infer_task(listed)
    assert infer_task([data(y=torch.tensor([1]))]) == infer_task([of_nodes, of_nodes]) == "graph"


def test_numbers_of_half_precision_become_ordinary_ones():
    for kind in (torch.half, torch.bfloat16):
        weights = torch.tensor([0.5, 0.25, 2.0]).to(kind)
        graph = canonical(data(x=torch.randn(4, 2).to(kind), edge_weight=weights))
        assert (graph.x.dtype, graph.edge_weight.dtype) == (torch.float32, torch.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": torch.ones(4, 2, device="meta")}, "x is on the meta device, so it has no numbers"),
        ({"edge_index": torch.ones(2, 3, dtype=torch.int64, device="meta")}, "edge_index is on meta and x on cpu"),
        ({"edge_weight": torch.ones(3, device="meta")}, "edge_weight is on meta and x on cpu"),
    ],
)
def test_parts_of_a_graph_on_different_devices_are_named(changes, message):
    with pytest.raises(GraphError, match=message):
        canonical(data(**changes))


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        (None, [0, 1, 2, 3]),
        (torch.tensor([False, True, False, True]), [1, 3]),
        ([True, False, False, False], [0]),
        (torch.tensor([3, 0]), [3, 0]),
        ([2], [2]),
        (2, [2]),
        (np.array([1], dtype=np.uint8), [1]),
        ([], []),
        (range(2), [0, 1]),
    ],
)
def test_targets_are_a_mask_an_index_or_everything(targets, expected):
    rows = target_rows(targets, 4)
    assert rows.tolist() == expected
    assert rows.dtype == np.int64


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        (torch.ones(3, dtype=torch.bool), r"mask has shape \(3,\), the data has 4 rows"),
        (torch.ones(4, 2, dtype=torch.bool), r"mask has shape \(4, 2\)"),
        ([0, 4], "row 4, but the data has rows 0 to 3"),
        ([-1], "row -1"),
        ([1, 1], "a row twice"),
        ([0.5], "must be a mask or row numbers"),
        (torch.ones(4), "must be a mask or row numbers"),
        ([[0, 1]], "must be a mask or row numbers"),
        ([[0, 1], [2, 3]], r"shape \(2, 2\). Pairs of nodes are the targets of PairVotes"),
        (["a"], "must be a mask or row numbers"),
    ],
)
def test_senseless_targets_are_refused(targets, message):
    with pytest.raises(GraphError, match=message):
        target_rows(targets, 4)


def test_other_ids_with_the_same_keys_give_another_digest():
    named, twins = data(node_id=["x", 1, 2, 3]), data(node_id=[twin_of("x"), 1, 2, 3])
    assert canonical(named).node_key.tolist() == canonical(twins).node_key.tolist()
    assert graph_digest(canonical(named)) != graph_digest(canonical(twins))
    assert digest_by_keys(canonical(named)) == digest_by_keys(canonical(twins))
    sets = [canonical_set([data(), one]) for one in (named, twins)]
    assert graph_digest(sets[0]) != graph_digest(sets[1])


def test_row_numbers_as_ids_and_no_ids_give_other_digests():
    rows, ids = data(node_id=None), data(node_id=torch.arange(4))
    assert graph_digest(canonical(rows)) != graph_digest(canonical(ids))
    assert digest_by_keys(canonical(rows)) == digest_by_keys(canonical(ids))


def test_the_digest_by_keys_never_changes():
    known = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]), node_id=["a", 7])
    assert digest_by_keys(canonical(known)) == KNOWN


def test_every_graph_of_a_set_has_a_digest_of_its_ids():
    graphs = [data(), data(node_id=None), data(node_id=["a", "a\0", "", 2**63])]
    joined = canonical_set(graphs)
    assert joined.id_digests == tuple(canonical(graph).id_digests[0] for graph in graphs)
    assert one_graph(joined, 2).id_digests == joined.id_digests[2:]
    assert digests_beyond_keys(joined) == [joined.id_digests[2]]
    assert digests_beyond_keys(canonical(graphs[0])) == digests_beyond_keys(canonical(graphs[1])) == []


def test_neighbours_that_share_a_key_are_ordered_by_their_ids():
    text, twin = "x", twin_of("x")
    arcs = torch.tensor([[1, 2, 3], [0, 0, 0]])
    for first, second in ((text, twin), (twin, text)):
        graph = data(node_id=["hub", first, second, 5], edge_index=arcs)
        for ordered in (canonical(graph), one_graph(canonical_set([data(), graph]), 1)):
            names = [graph.node_id[u] for u in ordered.edge_index[0].tolist() if u != 3]
            assert names == [twin, text]


@pytest.mark.parametrize(
    "ids", [[-1, 2**63, "a", "a\0"], np.array([0, 1, 2**63, 2**64 - 1], dtype=np.uint64), (7, "07", " 7", "+7")]
)
def test_ids_are_taken_as_they_are(ids):
    assert list(exact_ids(data(node_id=ids))) == list(ids)
    assert list(exact_ids(data(node_id=None))) == [0, 1, 2, 3]


@pytest.mark.parametrize("bad", [torch.ones(4, dtype=torch.bfloat16), torch.ones(4).bool(), torch.tensor(3)])
def test_tensors_that_hold_no_ids_are_refused(bad):
    with pytest.raises(IdError, match=r"node_id|node id"):
        exact_ids(data(node_id=bad))


@pytest.mark.parametrize(
    ("name", "value", "conversion"),
    [
        ("x", np.ones((4, 2)), r"data.x = torch.from_numpy\(data.x\)"),
        ("x", sp.csr_matrix(np.ones((4, 2))), r"data.x = torch.from_numpy\(data.x.toarray\(\)\)"),
        ("edge_index", [[0], [1]], r"data.edge_index = torch.tensor\(data.edge_index\)"),
        ("edge_index", np.zeros((2, 0), dtype=np.int64), r"torch.from_numpy\(data.edge_index\)"),
        ("edge_attr", pd.DataFrame({"a": [1.0]}), r"torch.from_numpy\(data.edge_attr.to_numpy\(\)\)"),
    ],
)
def test_what_is_no_tensor_is_refused_with_the_line_that_makes_it_one(name, value, conversion) -> None:
    with pytest.raises(GraphError, match=f"{name} is a {type(value).__name__}, expected a torch.Tensor.*{conversion}"):
        canonical(data(**{name: value}))


def test_all_that_is_no_tensor_is_named_at_once() -> None:
    with pytest.raises(GraphError, match="x is a ndarray, edge_index is a list"):
        canonical(data(x=np.ones((4, 2)), edge_index=[[0], [1]]))
