"""The audit: it passes what is sound, names what is not, and catches what it has never seen by watching it."""

import sys
from functools import cache

import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import nn
from torch_geometric.data import Data

import agnncert as ac
from agnncert.auditing.findings import ALL_ATTACKS, finding_of
from agnncert.auditing.model_audit import AuditReport, audit
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from agnncert.errors import ModelContractError
from tests.support.checks import (
    check_outputs,
    check_outside_unmoved,
    check_reach,
    checked,
    listed_by_target,
    outputs,
    promises_of,
    reaches_by_target,
)
from tests.support.graphs import make_data, random_change, random_data
from tests.support.models import CLASSES, FEATURES, KINDS, build, settled
from tests.zoo.components import COMPONENTS, WIDTH, Network
from tests.zoo.user_modules import NODE_MODULES, Attributed, DenseProduct, Weighted

NAMES = [component.name for component in COMPONENTS]


def law_holds(model, division, kinds, only_counted=False):
    """Whether one-unit attacks move only the promised votes, on a few graphs.

    Unless they are only counted, they must also lie where the target has an edge, and a path to the node that was deleted or
    altered: the stronger theorems need it.
    """
    for seed in (2, 3):
        data = attacked_graph(seed)
        before = outputs(model, data, division, "node", canonical_of(seed, None, division))
        for kind in kinds:
            change = attack_on(seed, kind)
            try:
                if change is not None:
                    graphs = [canonical_of(seed, when, division) for when in (None, kind)]
                    attacked = attacked_graph(seed, kind)
                    found = before, outputs(model, attacked, division, "node", graphs[1])
                    promises = promised(seed, kind, division)
                    check_outputs(model, data, division, change, "node", attacked, graphs, found, promises)
                    if not only_counted:
                        listed = [listed_in(seed, when, division) for when in (None, kind)]
                        check_outside_unmoved(model, data, division, change, found, listed)
                    if isinstance(division, EdgeCentric) and kind in ("delete node", "change features"):
                        check_reach(model, data, division, change, found, reaches_in(seed, division))
            except AssertionError:
                return False
    return True


# What the law asks about graphs alone is the same for every component: it is found once.


@cache
def attacked_graph(seed, kind=None):
    """A graph, or what one attack makes of it."""
    return attack_on(seed, kind).apply(attacked_graph(seed)) if kind else random_data(seed, smallest=6, density=0.35)


@cache
def attack_on(seed, kind):
    return random_change(kind, attacked_graph(seed), seed, hub_edges=1.0)


@cache
def canonical_of(seed, kind, division):
    return checked(attacked_graph(seed, kind), division)


@cache
def promised(seed, kind, division):
    """What the division promises about one attack, asked once for every target."""
    known = cache(lambda row: promises_of(division, attack_on(seed, kind), canonical_of(seed, None, division), row))
    return lambda division, change, graph, row: known(row)


@cache
def listed_in(seed, kind, division):
    return listed_by_target(attacked_graph(seed, kind), division)


@cache
def reaches_in(seed, division):
    return reaches_by_target(attacked_graph(seed), division)


NODES_AND_FEATURES = ("inject node", "delete node", "change features")
EDGES = ("add edge", "delete edge", "alter edge")


@pytest.mark.parametrize("component", COMPONENTS, ids=NAMES)
def test_in_the_edge_centric_division_what_mixes_nodes_is_fit_for_attacks_on_edges_only(component):
    model, division = settled(component.make), EdgeCentric(4)
    report = audit(model, division=division)
    assert law_holds(model, division, EDGES, only_counted=True), "edges alone need no assumption"
    assert law_holds(model, division, NODES_AND_FEATURES) == component.local
    assert report.fit_for == (ALL_ATTACKS if component.local else ("edges",))
    assert report.ok == component.local
    if not component.local and component.named:
        assert [f.what for f in report.findings] == [component.named]


@pytest.mark.parametrize("component", COMPONENTS, ids=NAMES)
def test_in_the_node_centric_division_what_reads_outgoing_edges_is_refused_too(component):
    model, division = settled(component.make), NodeCentric(4)
    sound = component.local and component.one_way
    assert law_holds(model, division, (*NODES_AND_FEATURES, *EDGES)) == sound
    for asked in (division, None):  # without a division, the strictest is meant
        report = audit(model, division=asked)
        assert report.fit_for == (ALL_ATTACKS if sound else ())
        assert [f.what for f in report.findings] == [component.named] if component.named else report.ok == sound


@pytest.mark.parametrize("task", ["node", "graph"])
@pytest.mark.parametrize("kind", KINDS)
def test_ordinary_models_are_fit_for_everything(kind, task):
    for division in (EdgeCentric(5), NodeCentric(5)):
        report = audit(build(kind, task), division=division, task=task)
        assert report.ok, str(report)
        assert str(report).startswith(f"fit for certification ({task} task, {division})")


@pytest.mark.parametrize("module", [*NODE_MODULES, Weighted], ids=lambda m: m.__name__)
def test_modules_of_users_are_fit(module):
    data = random_data(1, density=0.5)
    data.edge_weight = torch.ones(data.num_edges, dtype=torch.float64)
    report = audit(settled(module), division=NodeCentric(5), data=data)
    # Zeros of a dense matrix times a feature that overflows are NaN for everybody.
    assert [f.what for f in report.findings] == (["infinite features elsewhere"] if module is DenseProduct else [])


def test_a_dense_matrix_lets_one_node_spoil_all_scores():
    """What the refusal is about: a finite feature, of a node that is joined to nobody, and nobody has a best class."""
    model, data = settled(DenseProduct), make_data([(0, 1), (1, 0)], 4)
    assert torch.isfinite(model(data.x, data.edge_index)).all()
    data.x[3] = 1e308 * model.lin.weight[0].sign()
    assert model(data.x, data.edge_index)[:3].isnan().any(dim=1).all()


def test_edge_attributes_come_from_the_data():
    data = make_data([(0, 1), (1, 2)], 4)
    data.edge_attr = torch.rand(2, 2, dtype=torch.float64)
    assert audit(settled(Attributed), data=data).ok


# Modes and memory


def findings(model, **options):
    return {(f.where, f.what) for f in audit(model, **options).findings}


def test_every_layer_at_fault_is_named_with_its_place_and_remedy():
    model = nn.ModuleDict(
        {
            "first": pyg.GCNConv(FEATURES, WIDTH, cached=True),
            "norm": pyg.PairNorm(),
            "drop": nn.Dropout(0.3),
            "attention": pyg.GATConv(WIDTH, WIDTH, dropout=0.2),
            "batch": nn.BatchNorm1d(WIDTH),
            "second": pyg.ChebConv(WIDTH, CLASSES, 2),
        }
    )
    report = audit(model, division=NodeCentric(5))
    assert {(f.where, f.what) for f in report.findings} == {
        ("first", "GCNConv(cached=True)"),
        ("norm", "PairNorm"),
        ("drop", "Dropout in training mode"),
        ("attention", "GATConv in training mode"),
        ("batch", "BatchNorm1d in training mode"),
        ("second", "ChebConv"),
    }
    assert report.fit_for == ()
    text = str(report)
    assert text.startswith("cannot certify this model, 6 things break the guarantee:")
    for finding in report.findings:
        assert finding.where in text
        assert finding.remedy in text
    for words in ("cached=False", "Replace PairNorm", "model.eval()", "Use EdgeCentric"):
        assert words in text


def test_what_is_left_to_certify_is_said():
    report = audit(settled(Network, norm=pyg.LayerNorm(WIDTH)), division=EdgeCentric(5))
    assert 'Use LayerNorm(mode="node").' in str(report)
    assert "fit only for attacks on: edges (EdgeCentric(..., edges_only=True))" in str(report)


def test_a_model_that_is_fit_for_everything_one_graph_at_a_time_is_not_called_fit_only_for_everything():
    batch = finding_of("batch", ALL_ATTACKS, alone=True)
    told = str(AuditReport("graph", "edge-centric", (batch,), 0.0, 0.0))
    assert 'engine="naive"' in told
    assert "fit only for" not in told


@pytest.mark.parametrize("division", [EdgeCentric(5), NodeCentric(5)], ids=str)
@pytest.mark.parametrize(
    "layer",
    [pyg.GCNConv(FEATURES, WIDTH, cached=True), pyg.SGConv(FEATURES, WIDTH, cached=True)],
    ids=["GCNConv", "SGConv"],
)
def test_a_cache_is_refused_for_every_attack(layer, division):
    report = audit(settled(Network, layer), division=division)
    assert report.fit_for == ()
    assert [(f.where, f.what) for f in report.findings] == [("conv", f"{type(layer).__name__}(cached=True)")]


def test_a_cached_layer_gives_every_subgraph_the_first_ones_edges():
    """What the refusal is about."""
    layer = settled(pyg.GCNConv, FEATURES, WIDTH, cached=True)
    data = random_data(1, density=0.5)
    first = layer(data.x, data.edge_index)
    assert torch.equal(layer(data.x, data.edge_index[:, :0]), first)


def test_training_mode_is_refused_and_eval_mode_is_not():
    assert findings(Network(norm=nn.BatchNorm1d(WIDTH))) == {("norm", "BatchNorm1d in training mode")}
    assert findings(Network(norm=nn.Dropout(0.5))) == {("norm", "Dropout in training mode")}
    assert findings(Network(norm=nn.Dropout(0.0))) == set()
    untracked = nn.BatchNorm1d(WIDTH, track_running_stats=False)
    assert findings(Network(norm=untracked).eval()) == {("norm", "BatchNorm1d(track_running_stats=False)")}
    for layer in (nn.BatchNorm1d(WIDTH), nn.Dropout(0.5)):
        assert audit(Network(norm=layer).eval()).ok


@pytest.mark.parametrize("layer", [nn.BatchNorm1d(WIDTH), nn.Dropout(0.5)], ids=repr)
def test_a_model_in_training_mode_is_audited_as_it_is_certified_in_evaluation_mode(layer):
    model = Network(norm=layer).train()
    report = ac.audit(model, random_data(1), EdgeCentric(5))
    assert model.training
    assert report.ok
    assert report == ac.audit(model.eval(), random_data(1), EdgeCentric(5))


class AlwaysDrops(nn.Module):
    """Its dropout cannot be switched off."""

    def __init__(self):
        super().__init__()
        self.conv = pyg.GCNConv(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(F.dropout(x, 0.5), edge_index)


class DropsInTraining(AlwaysDrops):
    def forward(self, x, edge_index):
        return self.conv(F.dropout(x, 0.5, training=self.training), edge_index)


def test_dropout_that_is_no_layer_is_caught_by_calling_twice():
    for division in (EdgeCentric(5), NodeCentric(5)):
        report = audit(AlwaysDrops().eval(), division=division)
        assert [f.what for f in report.findings] == ["the same graph twice"], "and no advice about other things"
        assert report.fit_for == ()
        assert not audit(DropsInTraining(), division=division).ok
        assert audit(DropsInTraining().eval(), division=division).ok


class Remembers(nn.Module):
    """Keeps the first edges it sees, under a name of its own."""

    def __init__(self):
        super().__init__()
        self.conv, self.edges = pyg.SAGEConv(FEATURES, CLASSES), None

    def forward(self, x, edge_index):
        if self.edges is None and edge_index.numel():
            self.edges = edge_index
        inside = self.edges if self.edges is not None and self.edges.max() < len(x) else edge_index
        return self.conv(x, inside)


def test_a_memory_is_caught_by_showing_another_graph():
    report = audit(Remembers().eval(), division=EdgeCentric(5))
    assert "another graph in between" in {f.what for f in report.findings}
    assert report.fit_for == ()


class ByRow(nn.Module):
    """Adds something that depends on the row of a node."""

    def __init__(self):
        super().__init__()
        self.conv = pyg.SAGEConv(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        return self.conv(x + torch.arange(len(x)).to(x.dtype)[:, None] / 10, edge_index)


def test_dependence_on_the_order_of_nodes_is_caught():
    assert "nodes and edges in another order" in {f.what for f in audit(ByRow().eval()).findings}


class NeverSeen(nn.Module):
    """A layer of somebody's own that peeks at the hundredth part of the mean of all nodes."""

    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(FEATURES, CLASSES)

    def forward(self, x, edge_index):
        return self.lin(x) + 0.01 * self.lin(x).mean()


def test_a_module_never_seen_before_is_caught_by_watching_it():
    report = audit(NeverSeen().eval(), division=NodeCentric(5))
    assert [f.where for f in report.findings] == ["behaviour"]
    assert "norms over nodes, virtual nodes" in report.findings[0].remedy
    assert audit(NeverSeen().eval(), division=EdgeCentric(5)).fit_for == ("edges",)


class Ends(nn.Module):
    """Ends the program, once it sees more than one node."""

    def __init__(self, most=1):
        super().__init__()
        self.lin, self.most = nn.Linear(FEATURES, CLASSES), most

    def forward(self, x, edge_index):
        if len(x) > self.most:
            sys.exit(0)
        return self.lin(x)


@pytest.mark.parametrize("most", [0, 1])
def test_a_model_that_ends_the_program_is_refused(most):
    with pytest.raises(ModelContractError, match=r"the model ends the program \(sys.exit\(0\) in forward\)"):
        audit(Ends(most).eval())


def test_features_of_a_billion_do_not_hide_a_leak():
    """A hundred-thousandth of the mean of all hidden features is lost in rounding, until somebody has large ones."""

    class Whispers(NeverSeen):
        def forward(self, x, edge_index):
            return self.lin(x) + 1e-5 * self.lin(x).mean(0)

    data = make_data([(0, 1), (1, 0), (2, 3)], 6)
    data.x = data.x.float() * 1e9
    assert [f.what for f in audit(Whispers().eval(), data=data).findings] == ["other features elsewhere"]
    assert audit(settled(Network), data=data).ok


def test_what_is_known_by_construction_and_what_by_test():
    data = make_data([(0, 1), (1, 0), (2, 3)], 6)
    data.x = data.x.float()
    assert audit(pyg.GCN(FEATURES, 8, 2, CLASSES).eval(), data=data).locality == "construction"
    assert audit(Network().eval(), data=data).locality == "test", "a class of somebody's own"
    assert audit(pyg.GCN(FEATURES, 8, 2, CLASSES, norm="pair_norm").eval(), data=data).locality == "test"


# Graph task


class Pooled(nn.Module):
    """Normalises, then pools."""

    def __init__(self, norm, with_batch=False):
        super().__init__()
        self.conv, self.norm, self.with_batch = pyg.GCNConv(FEATURES, WIDTH), norm, with_batch

    def forward(self, x, edge_index, batch):
        hidden = self.conv(x, edge_index)
        hidden = self.norm(hidden, batch) if self.with_batch else self.norm(hidden)
        return pyg.global_mean_pool(hidden, batch)


@pytest.mark.parametrize("division", [EdgeCentric(5), NodeCentric(5)], ids=str)
def test_in_the_graph_task_mixing_nodes_of_one_graph_is_fine(division):
    for layer in (pyg.GraphNorm(WIDTH), pyg.InstanceNorm(WIDTH), pyg.PairNorm(), pyg.LayerNorm(WIDTH)):
        assert audit(settled(Pooled, layer, with_batch=True), division=division, task="graph").ok


@pytest.mark.parametrize("layer", [pyg.GraphNorm(WIDTH), pyg.PairNorm()], ids=["GraphNorm", "PairNorm"])
def test_mixing_graphs_of_a_batch_needs_the_naive_engine(layer):
    report = audit(settled(Pooled, layer), division=EdgeCentric(5), task="graph")
    assert not report.ok
    assert report.needs_naive
    assert report.fit_for == ALL_ATTACKS, "one graph at a time it is sound"
    assert 'engine="naive"' in str(report)


def test_the_graph_task_refuses_memory_and_chance_too():
    assert not audit(Pooled(nn.Dropout(0.5)), task="graph").ok
    assert audit(Pooled(nn.Dropout(0.5)).eval(), task="graph").ok
    assert audit(Pooled(nn.BatchNorm1d(WIDTH)), task="graph").fit_for == ()
    assert not audit(settled(Pooled, nn.Identity()).train(), task="graph").needs_naive


# Input


def test_the_task_and_the_width_come_from_the_data_if_given():
    data = [make_data([(0, 1)], 3), make_data([], 2, seed=1)]
    assert audit(build("gcn", "graph"), data=data).task == "graph"
    assert audit(build("gcn", "node"), data=data[0]).task == "node"


def test_without_data_the_width_is_guessed_and_a_wrong_guess_says_so():
    edge_conv = pyg.EdgeConv(nn.Linear(2 * FEATURES, CLASSES)).eval()
    with pytest.raises(ModelContractError, match="guessed from the first layer: pass data="):
        audit(edge_conv)
    assert audit(edge_conv, data=Data(x=torch.rand(5, FEATURES), edge_index=torch.tensor([[0], [1]]))).ok
    with pytest.raises(ModelContractError, match="cannot tell how many features the model takes: pass data="):
        audit(nn.Identity())


class KeepsHidden(nn.Module):
    """Keeps its hidden layer for a plot, with the graph of its gradients."""

    def __init__(self):
        super().__init__()
        self.conv, self.out = pyg.GCNConv(FEATURES, WIDTH), nn.Linear(WIDTH, CLASSES)

    def forward(self, x, edge_index):
        self.hidden = self.conv(x, edge_index)
        return self.out(self.hidden)


def test_a_model_that_kept_something_from_training_can_be_audited():
    model = KeepsHidden()
    model(torch.rand(3, FEATURES), torch.tensor([[0], [1]])).sum().backward()
    assert audit(model.eval()).ok


def test_the_audit_leaves_model_and_data_as_they_were():
    model, data = build("gcn", "node"), random_data(1)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    x = data.x.clone()
    audit(model, data=data)
    assert torch.equal(data.x, x)
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())


def test_the_tolerance_is_ten_times_what_was_seen_and_never_below_rounding():
    double, single = audit(build("gcn", "node")), audit(build("gcn", "node").float())
    assert 32 * torch.finfo(torch.float64).eps <= double.tolerance < 1e-10
    assert 32 * torch.finfo(torch.float32).eps <= single.tolerance < 1e-2
    assert single.tolerance >= 10 * single.deviation


def test_an_audit_for_no_division_in_particular_says_so():
    assert "(node task, every division)" in str(audit(build("gcn", "node")))


def counted(make, weighted=False):
    """A graph whose second feature is made from the number of edges of each node, or from their weights."""
    rng = torch.Generator().manual_seed(0)
    edge_index = torch.randint(0, 60, (2, 300), generator=rng)
    data = Data(x=torch.randn(60, 3, generator=rng), edge_index=edge_index, y=torch.arange(60) % 2)
    weight = torch.rand(300, generator=rng) if weighted else torch.ones(300)
    data.x[:, 1] = make(torch.zeros(60).index_add(0, edge_index[1], weight))
    if weighted:
        data.edge_weight = weight
    return data


@pytest.mark.parametrize(
    ("make", "weighted"),
    [
        (lambda count: count, False),
        (lambda count: 3 - 2 * count.log1p(), False),
        (lambda count: count.clamp(max=7) / 7, False),
        (lambda total: (total - total.mean()) / total.std(), True),
    ],
)
def test_features_that_count_edges_are_refused(make, weighted):
    data = counted(make, weighted)
    model = ac.build_model("gcn", data, hidden_channels=4).eval()
    report = ac.audit(model, data, ac.NodeCentric(5))
    assert [(finding.where, finding.what) for finding in report.findings] == [("data.x", "column 1")]
    with pytest.raises(ModelContractError, match="follows the"):
        ac.certify(model, data, ac.NodeCentric(5))


@pytest.mark.parametrize(
    "make",
    [
        lambda count: count + torch.randn(60, generator=torch.Generator().manual_seed(1)),
        lambda count: (count > 4).float(),  # two values say too little to be sure
        torch.zeros_like,
    ],
)
def test_features_that_only_resemble_a_count_are_not(make):
    data = counted(make)
    assert ac.audit(ac.build_model("gcn", data, hidden_channels=4).eval(), data, ac.NodeCentric(5)).ok
