"""Numbers that are not finite, too large, or lost in rounding: what is certified is what the model predicts."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.errors import ModelContractError
from agnncert.graphs.targets import prepared
from agnncert.stacked import own_probes
from agnncert.stacked.counting import stacked_counts
from agnncert.stacked.evidence import StackedEvidence
from agnncert.stacked.model import StackedModel
from agnncert.stacked.own_probes import probe_own
from agnncert.stacked.record import MOST_NEW, STEPS
from tests.support.stacked_records import stacked_certificate

NODES, FEATURES = 60, 4


def ring(edge_values=False):
    """A ring with chords; no row of features has the sum 0."""
    rng = torch.Generator().manual_seed(3)
    number = torch.arange(NODES)
    ends = torch.cat([torch.stack([number, (number + step) % NODES]) for step in (1, 7)], dim=1)
    y = (number % 2).long()
    x = torch.rand((NODES, FEATURES), generator=rng) + y[:, None]
    part = number % 3
    data = Data(x=x, edge_index=torch.cat([ends, ends.flip(0)], dim=1), y=y, node_id=number,
                train_mask=part == 0, val_mask=part == 1, test_mask=part == 2)  # fmt: skip
    if edge_values:
        data.edge_attr = torch.rand((data.num_edges, 2), generator=rng)
    return data


class Shares(torch.nn.Module):
    """Divides a row by its sum: NaN for a row of zeros."""

    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(FEATURES, 2)

    def forward(self, x):
        return self.lin(x / x.sum(dim=1, keepdim=True))


def model_of(own=None, *, seed=0, edge_channels=0, **settings):
    """Stacked votes with weights from a seed."""
    torch.manual_seed(seed)
    model = StackedModel(own or [torch.nn.Linear(FEATURES, 2)], 2, edge_channels, ac.StackedVotes(**settings)).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if not name.startswith("own.") and weight.dim():
                weight.normal_()
    return model


KINDS = {
    "sum": {},
    "two levels": {"levels": 2},
    "gated": {"gated": True},
    "mean": {"combine": "mean"},
    "edge values": {"edge_values": True, "edge_channels": 2},
    "mean of edge values": {"combine": "mean", "edge_values": True, "edge_channels": 2},
}


def evidence_of(model, data, targets):
    """What is counted, without the audit, which refuses models that are not finite on the data itself."""
    return StackedEvidence(**stacked_counts(model, prepared(data, targets).targets(targets)))


def with_zero_row(data):
    """The graph with a row of zeros that is joined to node 0."""
    values = {}
    if data.edge_attr is not None:
        values["edge_attr"] = torch.cat([data.edge_attr, torch.zeros((2, 2))])
    joined = torch.tensor([[NODES, 0], [0, NODES]])
    return Data(
        x=torch.cat([data.x, torch.zeros((1, FEATURES))]),
        edge_index=torch.cat([data.edge_index, joined], dim=1),
        node_id=torch.arange(NODES + 1),
        **values,
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_vote_that_is_not_finite_abstains_in_forward_and_in_the_count(kind):
    data = ring("edge" in kind)
    model = model_of([Shares()], **KINDS[kind])
    with torch.no_grad():
        model.vote_net[-1].bias[-1] = -20.0  # nobody else abstains
    attacked = with_zero_row(data)
    values = {} if attacked.edge_attr is None else {"edge_attr": attacked.edge_attr}
    scores = model(attacked.x, attacked.edge_index, **values)
    assert scores[:NODES].isfinite().all()
    assert scores[NODES].isnan().all()
    evidence = evidence_of(model, attacked, torch.arange(NODES))
    assert np.abs(evidence.counts / STEPS - scores[:NODES].detach().numpy()).max() <= 1 / STEPS
    vote_of_last_neighbour = evidence.table[evidence.which[evidence.indptr[1] - 1]]
    assert vote_of_last_neighbour.tolist() == [0, 0]
    if model.defence.combine != "mean":  # it has no other effect, on nodes further away either
        values = {} if data.edge_attr is None else {"edge_attr": data.edge_attr}
        assert torch.equal(scores[:NODES], model(data.x, data.edge_index, **values))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_certified_against_an_injected_node_holds_against_a_row_of_zeros(kind):
    data = ring("edge" in kind)
    held = 0
    for seed in range(6):
        model = model_of([Shares()], seed=seed, **KINDS[kind])
        certificate = ac.certify(model, data, model.defence)
        holds = certificate.holds_against(ac.Budget(inject_nodes=1, edges_per_injected=1))
        attacked = with_zero_row(data)
        values = {} if attacked.edge_attr is None else {"edge_attr": attacked.edge_attr}
        label = model(attacked.x, attacked.edge_index, **values)[:NODES].argmax(dim=1).numpy()
        assert (label == certificate.label)[holds].all()
        held += holds[0]
    assert held


def test_a_target_whose_own_score_is_not_finite_is_refused_by_its_number():
    data, model = with_zero_row(ring()), model_of([Shares()])
    with pytest.raises(ModelContractError, match=r"a score is not finite, first for number 60 of 61.*rows of zeros"):
        model.defence.scores(model, data)


def test_edge_values_that_overflow_abstain():
    data, model = ring(True), model_of(**KINDS["edge values"])
    data.edge_attr = data.edge_attr.double()
    data.edge_attr[0] = 1e308
    scores = model(data.x, data.edge_index, edge_attr=data.edge_attr)
    assert scores.isfinite().all()
    certificate = ac.certify(model, data, model.defence)
    assert np.abs(certificate.counts / STEPS - scores.detach().numpy()).max() <= 1 / STEPS


@pytest.mark.parametrize("value", [1e15, 2.0**47, 2.0**200, math.inf, -math.inf, math.nan, -1e15, 16385.0])
def test_a_score_beyond_the_range_is_refused_before_it_is_rounded(value):
    data, model = ring(), model_of()
    model = model.double()
    with torch.no_grad():
        model.constant.copy_(torch.tensor([value, 0.0]))
    with pytest.raises(ModelContractError, match=r"is not finite|is beyond 16384"):
        ac.certify(model, data, model.defence)
    with pytest.raises(ModelContractError, match=r"is not finite|is beyond 16384"):
        model(data.x, data.edge_index)


@pytest.mark.parametrize(
    ("name", "value"),
    [("pseudo", 1000.0), ("pseudo", math.nan), ("pseudo", math.inf), ("pseudo_votes", math.nan),
     ("mean_scale", math.nan), ("pseudo", 12.0)],
)  # fmt: skip
def test_a_pseudo_count_that_cannot_be_counted_is_refused(name, value):
    data, model = ring(), model_of(combine="mean")
    with torch.no_grad():
        getattr(model, name).fill_(value)
    with pytest.raises(ModelContractError, match=r"not finite|beyond"):
        ac.certify(model, data, model.defence)
    with pytest.raises(ModelContractError, match=r"not finite|beyond"):
        model(data.x, data.edge_index)


def test_a_factor_of_the_second_level_that_is_not_finite_is_refused():
    data, model = ring(), model_of(levels=2)
    with torch.no_grad():
        model.second.fill_(math.nan)
    with pytest.raises(ModelContractError, match="second is not finite"):
        ac.certify(model, data, model.defence)
    with pytest.raises(ModelContractError, match="second level is not finite"):
        _ = model.steps_of_second


@pytest.mark.parametrize("kappa", [1e-7, 1e-5, 1e-3, 0.3])
def test_the_model_that_is_certified_is_the_one_that_predicts(kappa):
    """With a small pseudo-count, rounding changed the labels of many nodes."""
    data = ring(True)
    data.edge_index = data.edge_index[:, :40]  # some nodes have no edges
    data.edge_attr = data.edge_attr[:40]
    model = model_of(**KINDS["mean of edge values"])
    with torch.no_grad():
        model.pseudo.fill_(math.log(kappa))
        model.constant.zero_()
        model.own_scale.fill_(-30.0)
        model.pseudo_votes.copy_(torch.tensor([0.0, 1.0]))
    certificate = ac.certify(model, data, model.defence)
    for gradients in (False, True):
        with torch.set_grad_enabled(gradients):
            scores = model(data.x, data.edge_index, edge_attr=data.edge_attr)
        assert scores.requires_grad == gradients
        assert (scores.argmax(dim=1).numpy() == certificate.label).all()
        assert np.abs(scores.detach().numpy() * STEPS - certificate.counts).max() < 1  # counts are rounded down
    with torch.no_grad():
        smooth = model.smooth_scores(data.x, data.edge_index, {"edge_attr": data.edge_attr})
    if kappa < 1e-4:
        assert (smooth.argmax(dim=1).numpy() != certificate.label).any(), "rounding makes no difference here"


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("kappa", [1e-5, 1.0])
def test_a_threshold_is_the_same_in_forward_and_in_the_certificate(kappa, rate):
    data = ring(True)
    model = model_of(**KINDS["mean of edge values"])
    with torch.no_grad():
        model.pseudo.fill_(math.log(kappa))
    moved = ac.choose_threshold(model, data, model.defence, false_positive_rate=rate).model
    label = moved(data.x, data.edge_index, edge_attr=data.edge_attr).argmax(dim=1).numpy()
    assert (label == ac.certify(moved, data, moved.defence).label).all()
    others = (data.val_mask & (data.y == 0)).numpy()
    assert (label[others] == 1).mean() <= rate


def test_gradients_are_those_before_rounding_and_training_is_not_rounded():
    data, model = ring(), model_of()
    x = data.x.clone().requires_grad_()
    model(x, data.edge_index).sum().backward()
    assert x.grad.abs().max() > 0
    model.train()
    assert torch.equal(model(data.x, data.edge_index), model.smooth_scores(data.x, data.edge_index, {}))


# Probes of the models without edges


class Guarded(torch.nn.Module):
    """Behaves well unless a row among the nodes is strange in one way."""

    def __init__(self, is_strange):
        super().__init__()
        self.lin = torch.nn.Linear(FEATURES, 2)
        self.is_strange = is_strange

    def forward(self, x):
        logits = self.lin(x)
        return -logits if self.is_strange(x) else logits


STRANGE = {
    "zero": lambda x: bool((x == 0).all(dim=1).any()),
    "huge": lambda x: bool((x.abs() > 1e20).any()),
    "tiny": lambda x: bool(((x.abs() < 1e-20) & (x != 0)).any()),
    "constant": lambda x: bool(((x == x[:, :1]).all(dim=1) & (x[:, 0] != 0) & (x[:, 0].abs() < 10)).any()),
    "negative": lambda x: bool((x < 0).all(dim=1).any()),
}


@pytest.mark.parametrize("what", STRANGE)
def test_a_row_that_changes_what_is_said_about_others_is_found(what):
    model = model_of([Guarded(STRANGE[what])])
    with pytest.raises(ModelContractError, match="row"):
        probe_own(model, ring().x)


class Refusing(torch.nn.Module):
    """Cannot be called with a row of zeros."""

    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(FEATURES, 2)

    def forward(self, x):
        if (x.sum(dim=1) == 0).any():
            raise ValueError("division by zero")
        return self.lin(x)


def test_a_model_that_fails_on_a_row_that_can_be_injected_is_refused():
    model = model_of([Refusing()])
    with pytest.raises(ModelContractError, match=r"own.0 fails on a row of zeros \(ValueError: division by zero\)"):
        ac.certify(model, ring(), model.defence)


class InFloat32(torch.nn.Module):
    """Computes in float32 whatever it is given, and may hide that."""

    def __init__(self, hides):
        super().__init__()
        self.lin = torch.nn.Linear(FEATURES, 2)
        self.hides = hides

    def forward(self, x):
        logits = torch.nn.functional.linear(x.float(), self.lin.weight.float(), self.lin.bias.float())
        return logits.to(x.dtype) if self.hides else logits


@pytest.mark.parametrize("hides", [True, False])
def test_a_model_that_computes_in_float32_is_not_exact_enough(hides):
    model = model_of([InFloat32(hides)])
    with pytest.raises(ModelContractError, match="not exact enough"):
        probe_own(model, ring().x)
    with pytest.raises(ModelContractError):  # where the size of a batch decides how it rounds, the audit is first
        ac.certify(model, ring(), model.defence)


class Noisy(torch.nn.Module):
    """Numbers depend a little on where a row stands among the others."""

    def __init__(self):
        super().__init__()
        self.lin = torch.nn.Linear(FEATURES, 2)

    def forward(self, x):
        return self.lin(x) * (1 + 1e-11 * torch.arange(len(x), dtype=x.dtype)[:, None])


def test_scores_that_come_out_otherwise_in_another_order_are_refused():
    model = model_of([Noisy()])
    probe_own(model, ring().x)
    with torch.no_grad():
        model.own_scale.fill_(math.log(1e5))  # the same difference is now a good part of a step
    with pytest.raises(ModelContractError, match="computing the same score twice"):
        probe_own(model, ring().x)


@pytest.mark.parametrize("stored", [torch.float32, torch.float64, torch.bfloat16])
def test_scores_lie_far_less_than_a_step_apart_whatever_threads_batches_and_order(stored):
    """Measured for networks of several kinds: what the claim says about rounding is not taken from the air."""
    rng = torch.Generator().manual_seed(0)
    x = torch.randn((300, 64), generator=rng)
    own = [
        torch.nn.Sequential(torch.nn.Linear(64, 48), torch.nn.LayerNorm(48), torch.nn.GELU(), torch.nn.Linear(48, 2)),
        torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.ReLU(), torch.nn.Linear(96, 2)),
    ]
    exact = StackedModel([one.to(stored).double() for one in own], 2, 0, ac.StackedVotes()).double().eval()
    threads = torch.get_num_threads()
    order = torch.randperm(300, generator=rng)
    back = torch.argsort(order)
    apart = 0.0
    try:
        with torch.no_grad():
            plain = exact.own_logits(x.double())
            for number in (1, 2):
                torch.set_num_threads(number)
                for batch in (1, 7, 64, 300):
                    again = torch.cat([exact.own_logits(rows) for rows in x.double()[order].split(batch)])[back]
                    apart = max(apart, own_probes._steps_apart(exact, plain, again))
    finally:
        torch.set_num_threads(threads)
    assert apart < 1e-4


def test_numbers_beyond_the_largest_that_is_counted_are_said_to_be_at_least_so_many():
    """Of gates of 60 steps, some nine million new neighbours outweigh a lead of 9,000 votes: not one of them is named."""
    lead = np.array([[9_000 * STEPS, 0]])
    nobody = {"indptr": np.zeros(2, np.int64), "which": np.zeros(0, np.int64), "table": np.zeros((0, 2), np.int32)}
    nobody["targets_per_node"] = np.zeros(0, np.int32)
    evidence = StackedEvidence(prior=lead, gate=np.full((1, 2), 60), gated=True, **nobody)
    certificate = stacked_certificate(evidence)
    assert certificate.new_neighbours.tolist() == [MOST_NEW] == certificate.new_neighbours_alone.tolist()
    assert certificate.holds_against(ac.Budget(add_edges=MOST_NEW)).all()
    assert not certificate.holds_against(ac.Budget(add_edges=10**7)).any()
    assert "largest at least 65,536, with any deletions" in " ".join(str(certificate).split())
    assert "at least 65,536" in certificate[7]._repr_html_()
    fewer = stacked_certificate(replace(evidence, prior=lead // 9_000 * 50))
    assert 0 < fewer.new_neighbours[0] < MOST_NEW
    assert "at least" not in str(fewer)
