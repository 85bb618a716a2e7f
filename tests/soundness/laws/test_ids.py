"""Whatever its ids are, a graph keeps them: through certificates, files and attacks, and groups depend on them alone."""

import itertools
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import agnncert as ac
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import GatedNodeCentric, NodeCentric
from agnncert.errors import IdError, NotCovered
from agnncert.graphs.canonical import canonical, canonical_set
from agnncert.graphs.graph import one_graph
from tests.support.checks import differ, outputs
from tests.support.graphs import CHANGES, random_change, random_data, twin_of
from tests.support.models import CLASSES, FEATURES, build, settled

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUL = TEXT.map(lambda text: text + "\0")
DECIMAL = st.integers(-(2**200), 2**200).map(str)
TWIN = TEXT.filter(lambda text: not text.lstrip("-").isdecimal()).map(twin_of)
ID = st.integers(-(2**200), 2**200) | st.integers(2**63 - 2, 2**64 + 2) | TEXT | NUL | DECIMAL | TWIN
IDS = st.lists(ID, min_size=3, max_size=6, unique_by=str)
DIVISIONS = [EdgeCentric(5), NodeCentric(4)]


def ring(ids: Any) -> Data:
    """Nodes in a ring, with features that depend on the place alone."""
    count = len(ids)
    arcs = [(u, (u + 1) % count) for u in range(count)]
    edges = torch.tensor([*arcs, *((v, u) for u, v in arcs)]).t().unique(dim=1)
    x = torch.from_numpy(np.random.default_rng(count).normal(size=(count, FEATURES)))
    return Data(x=x, edge_index=edges, node_id=ids)


def plain(ids: Any) -> list[str]:
    """Ids as text: an integer and its decimal text are one id."""
    return [str(name) for name in (ids.tolist() if isinstance(ids, (np.ndarray, torch.Tensor)) else ids)]


def groups_by_id(data: Data, division: Any) -> dict[tuple[str, str], int]:
    graph, names = canonical(data), plain(data.node_id)
    arcs = graph.edge_index.t().tolist()
    return {(names[u], names[v]): g for (u, v), g in zip(arcs, division.groups(graph).tolist(), strict=True)}


@pytest.mark.parametrize("division", DIVISIONS, ids=str)
@settings(deadline=None, max_examples=15)
@given(ids=IDS)
def test_ids_survive_certificates_and_files(division: Any, ids: list[int | str], tmp_path_factory: Any) -> None:
    data, model = ring(ids), settled(GCN, FEATURES, 4, 2, CLASSES)  # known to the audit, which then is short
    certificate = ac.certify(model, data, division, targets=[2, 0])
    assert plain(certificate.target) == [str(ids[2]), str(ids[0])]
    file = tmp_path_factory.mktemp("ids") / "a.cert"
    certificate.save(file)
    again = ac.load_certificate(file)
    assert again.target.tolist() == certificate.target.tolist()
    assert again.target.dtype == certificate.target.dtype
    verdict = ac.verify(file, data=data, model=model, recheck=20)
    assert verdict.holds, verdict


@pytest.mark.parametrize("division", DIVISIONS, ids=str)
@settings(deadline=None, max_examples=20)
@given(ids=IDS, new=ID)
def test_ids_survive_attacks_and_no_other_group_moves(division: Any, ids: list[int | str], new: int | str) -> None:
    data = ring(ids)
    before = groups_by_id(data, division)
    if str(new) not in plain(ids):
        grown = ac.Perturbation(inject_nodes={new: [0.0] * FEATURES}, add_edges=[(new, ids[1])]).apply(data)
        assert plain(grown.node_id) == [*plain(ids), str(new)]
        after = groups_by_id(grown, division)
        assert {arc: after[arc] for arc in before} == before
        back = ac.Perturbation(delete_nodes=[new]).apply(grown)
        assert plain(back.node_id) == plain(ids)
        assert torch.equal(back.x, data.x)
        assert groups_by_id(back, division) == before
    for row, name in enumerate(ids):
        changed = ac.Perturbation(change_features={name: [7.0] * FEATURES}).apply(data)
        assert (changed.x == 7).all(1).nonzero().view(-1).tolist() == [row]


@settings(deadline=None, max_examples=20)
@given(ids=IDS, seed=st.integers(0, 99))
def test_the_order_of_edges_depends_on_ids_alone(ids: list[int | str], seed: int) -> None:
    data = ring([*ids, "hub", twin_of("hub")])
    order = torch.randperm(data.num_nodes, generator=torch.Generator().manual_seed(seed))
    place = torch.argsort(order)
    moved = Data(x=data.x[order], edge_index=place[data.edge_index], node_id=[data.node_id[k] for k in order.tolist()])
    named = [
        [(plain(d.node_id)[u], plain(d.node_id)[v]) for u, v in canonical(d).edge_index.t().tolist()]
        for d in (data, moved)
    ]
    assert named[0] == named[1]


@pytest.mark.parametrize("division", DIVISIONS, ids=str)
def test_no_certified_label_flips_by_an_isolated_node_whatever_the_ids(division: Any) -> None:
    ids = [-1, 2**63, 2**64 - 1, 2**90, "a", "a\0", "a\0\0", "", "007"]
    data, model = ring(ids), build("gcn", "node")
    before = ac.certify(model, data, division)
    grown = ac.Perturbation(inject_nodes={"far": [9.0] * FEATURES}).apply(data)
    after = ac.certify(model, grown, division, targets=np.arange(len(ids)))
    assert after.target.tolist() == before.target.tolist() == ids
    assert after.counts.tolist() == before.counts.tolist()


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("division", [*DIVISIONS, GatedNodeCentric(4)], ids=str)
def test_promises_hold_where_nodes_share_their_keys(division: Any, task: str) -> None:
    if task == "graph" and division.gates_features:
        pytest.skip("gated features are for the node task")
    model, tried = build("sage", task), 0
    for seed, kind in itertools.product(range(5), CHANGES):
        data = random_data(seed, smallest=4, density=0.5)
        names = [f"user {k // 2}" for k in range(data.num_nodes)]
        data.node_id = [twin_of(name) if k % 2 else name for k, name in enumerate(names)]
        change = random_change(kind, data, seed)
        if change is None:
            continue
        graph = canonical(data) if task == "node" else one_graph(canonical_set([data]), 0)
        known: dict[Any, Any] = {}  # a change leaves most subgraphs as they were
        before, after = (outputs(model, given, division, task, None, known) for given in (data, change.apply(data)))
        for row, target in enumerate(before):
            where = row if task == "node" else None
            try:
                promised = division.votes_moved(change, graph, where)
            except (
                NotCovered
            ):  # also where the twin of the target is deleted or altered: which of them it is, keys do not tell
                continue
            if target in after:
                moved = sum(map(differ, before[target], after[target]))
                assert moved <= promised, f"{change} moved {moved} votes of {target!r}"
                tried += 1
    assert tried > 30


def test_text_that_no_file_can_hold_is_refused_by_name() -> None:
    with pytest.raises(IdError, match=r"row 1.*not valid Unicode"):
        ac.certify(build("gcn", "node"), ring(["a", "\ud800", "b"]), EdgeCentric(3))
