"""Theorems 10 and 11 on graphs: models of stacked votes with random weights, every attack on graphs of four nodes."""

import itertools
import math
import random

import pytest
import torch
from torch_geometric.data import Data

import agnncert as ac
from agnncert.graphs.targets import prepared
from agnncert.stacked.counting import stacked_counts
from agnncert.stacked.defence import StackedVotes
from agnncert.stacked.evidence import Leads, StackedEvidence
from agnncert.stacked.model import StackedModel
from agnncert.stacked.record import STEPS

NODES, KINDS, CLASSES = 4, 3, 3
PAIRS = list(itertools.combinations(range(NODES), 2))
RULES = {
    "sum": StackedVotes(),
    "refined": StackedVotes(refine=True),
    "gated": StackedVotes(gated=True),
    "mean": StackedVotes(combine="mean"),
    "two levels": StackedVotes(levels=2),
    "edge values": StackedVotes(edge_values=True),
    "mean of edge values": StackedVotes(combine="mean", edge_values=True),
    "trusted": StackedVotes(trusted=0),
    "trusted edge values": StackedVotes(trusted=0, edge_values=True),
}


class Table(torch.nn.Module):
    """Logits from a table, by the kind of a node."""

    def __init__(self, rows):
        super().__init__()
        self.rows = torch.nn.Parameter(rows)

    def forward(self, x):
        return x @ self.rows


def random_model(defence, seed):
    rng = torch.Generator().manual_seed(seed)
    own = Table(torch.randn(KINDS, CLASSES, generator=rng) * 3)
    model = StackedModel([own], CLASSES, 1 if defence.edge_values else 0, defence.for_rows(10))
    for name, parameter in model.named_parameters():
        if not name.startswith("own.") and parameter.dim():
            parameter.data = torch.randn(parameter.shape, generator=rng) * random.Random(seed).choice((0.5, 3.0))
    model.second.data = torch.tensor(random.Random(seed).choice((-2.0, 0.0, 30.0)))
    model.own_scale.data = torch.tensor(math.log(random.Random(seed + 1).choice((0.2, 0.6, 1.0))))
    model.mean_scale.data = torch.tensor(math.log(random.Random(seed + 2).choice((1.0, 4.0))))
    return model.eval()


def graph(kinds, pairs, trusted=()):
    """A graph from the kind of each node and, for each pair, the values of its edges by direction."""
    arcs = [(a, b, value) for (a, b), both in sorted(pairs.items()) for (a, b), value in _arcs(a, b, both)]
    index = torch.tensor([[a for a, _, _ in arcs], [b for _, b, _ in arcs]], dtype=torch.int64).reshape(2, -1)
    marks = [[float((min(a, b), max(a, b)) in trusted), value] for a, b, value in arcs]
    return Data(
        x=torch.eye(KINDS)[list(kinds.values())], edge_index=index, node_id=list(kinds),
        edge_attr=torch.tensor(marks, dtype=torch.float32).reshape(-1, 2),
    )  # fmt: skip


def _arcs(a, b, both):
    there, back = both
    return [arc for arc in (((a, b), there), ((b, a), back)) if arc[1] is not None]


def counted(model, kinds, pairs, trusted, targets=(0,)):
    row = {node: k for k, node in enumerate(kinds)}
    data = graph(kinds, {(row[a], row[b]): v for (a, b), v in pairs.items()}, {(row[a], row[b]) for a, b in trusted})
    if not model.defence.edge_values and model.defence.trusted is None:
        data.edge_attr = None
    elif model.defence.trusted is None:
        data.edge_attr = data.edge_attr[:, 1:]
    return StackedEvidence(**stacked_counts(model, prepared(data).targets([row[target] for target in targets])))


def winners(model, worlds):
    """The label of node 0 of each graph. They are counted side by side, as parts of one graph that no edge joins."""
    all_kinds, all_pairs, all_trusted, targets = {}, {}, set(), []
    for kinds, pairs, trusted in worlds:
        row = {node: len(all_kinds) + k for k, node in enumerate(kinds)}
        all_kinds |= {row[node]: kind for node, kind in kinds.items()}
        all_pairs |= {(row[a], row[b]): values for (a, b), values in pairs.items()}
        all_trusted |= {(row[a], row[b]) for a, b in trusted}
        targets.append(row[0])
    found = Leads(counted(model, all_kinds, all_pairs, all_trusted, targets)).label
    for k in {0, len(worlds) // 2, len(worlds) - 1}:  # alone they have the same one
        assert found[k] == Leads(counted(model, *worlds[k])).label[0]
    return found.tolist()


def edited(pairs, trusted, number, nodes):
    """All ways to add or delete up to ``number`` pairs that are not trusted, or to add a direction."""
    free = [pair for pair in itertools.combinations(nodes, 2) if pair not in trusted]
    for chosen in itertools.chain.from_iterable(itertools.combinations(free, k) for k in range(number + 1)):
        options = []
        for pair in chosen:
            old = pairs.get(pair)
            new = [(1.0, 1.0), (-1.0, None), (None, 1.0)] if old is None else [None]
            if old is not None and None in old:
                new += [(old[0] if old[0] is not None else v, old[1] if old[1] is not None else v) for v in (-1.0, 1.0)]
            options.append([(pair, value) for value in new])
        for values in itertools.product(*options):
            after = dict(pairs)
            for pair, value in values:
                after.pop(pair, None)
                if value is not None:
                    after[pair] = value
            added = sum(value is not None for _, value in values)
            yield after, added, len(values) - added


def cases(theorem, numbers):
    for seed in numbers:
        rng = random.Random(f"{theorem} {seed}")
        kinds = {node: rng.randrange(KINDS) for node in range(NODES)}
        ways = ((1.0, 1.0), (1.0, None), (None, -1.0), (0.0, 0.5))
        pairs = {pair: rng.choice(ways) for pair in PAIRS if rng.random() < 0.6}
        # Node 0 is the target. Ends of trusted edges must keep their features.
        trusted = {pair for pair in pairs if rng.random() < 0.4} if theorem.startswith("trusted") else set()
        model = random_model(RULES[theorem], seed)
        leads = Leads(counted(model, kinds, pairs, trusted))
        scores = leads.score[0] / leads.divisor(leads.degree)[0] / STEPS
        label, best, second = int(scores.argmax()), *sorted(scores)[:-3:-1]
        model.constant.data[label] += rng.uniform(0.2, 2.8) - (best - second)  # else most are far from any change
        yield model, kinds, pairs, trusted


@pytest.mark.parametrize("theorem", RULES)
def test_no_edges_within_the_budget_change_a_certified_label(theorem):
    certified = 0
    for model, kinds, pairs, trusted in cases(theorem, range(5)):
        evidence = counted(model, kinds, pairs, trusted)
        label = int(evidence.label_and_radius()[0][0])
        possible = {
            (new, lost): evidence.possible(ac.Budget(add_edges=new, delete_edges=lost))[0]
            for new in range(3)
            for lost in range(3 - new)
        }
        held = {which: classes.sum() == 1 for which, classes in possible.items()}
        certified += held[1, 0]
        structure = int(evidence.structure_radius()[0])
        attacks = list(edited(pairs, trusted, 2, range(NODES)))
        found = winners(model, [(kinds, after, trusted) for after, _, _ in attacks])
        for (_, added, deleted), winner in zip(attacks, found, strict=True):
            moved = winner != label
            assert possible[added, deleted][winner]
            assert not (moved and held[added, deleted])
            assert not (moved and structure >= added + deleted)
    assert certified


@pytest.mark.parametrize("theorem", RULES)
def test_no_nodes_within_the_budget_change_a_certified_label(theorem):
    inject = ac.Budget(inject_nodes=1, edges_per_injected=math.inf)
    budgets = {
        "inject": inject, "delete": ac.Budget(delete_nodes=1), "alter": ac.Budget(change_features=1),
        (1, 0): ac.Budget(change_features=1, add_edges=1), (0, 1): ac.Budget(change_features=1, delete_edges=1),
        "alter and inject": ac.Budget(inject_nodes=1, edges_per_injected=math.inf, change_features=1),
    }  # fmt: skip
    certified = 0
    for model, kinds, pairs, trusted in cases(theorem, (100, 101, 120)):
        evidence = counted(model, kinds, pairs, trusted)
        label = int(evidence.label_and_radius()[0][0])
        possible = {name: evidence.possible(budget)[0] for name, budget in budgets.items()}
        assert all(classes[label] for classes in possible.values())
        certified += possible["inject"].sum() == 1

        injected = [
            (kind, {(node, NODES): (1.0, -1.0) for node in joined})
            for kind, size in itertools.product(range(KINDS), range(NODES + 1))
            for joined in itertools.combinations(range(NODES), size)
        ]
        worlds = [("inject", {**kinds, NODES: kind}, {**pairs, **brought}) for kind, brought in injected]
        for gone in set(range(1, NODES)) - set(itertools.chain(*trusted)):  # ends of trusted edges stay as they are
            left = {node: kind for node, kind in kinds.items() if node != gone}
            kept = {pair: value for pair, value in pairs.items() if gone not in pair}
            worlds.append(("delete", left, kept))
            for kind in range(KINDS):
                other = {**kinds, gone: kind}
                worlds.append(("alter", other, pairs))
                for after, added, deleted in edited(pairs, trusted, 1, range(NODES)):
                    worlds.append(((added, deleted) if added + deleted else "alter", other, after))
                for new, brought in injected if theorem == "two levels" else ():
                    worlds.append(("alter and inject", {**other, NODES: new}, {**pairs, **brought}))
        found = winners(model, [(kinds_after, pairs_after, trusted) for _, kinds_after, pairs_after in worlds])
        for (how, _, _), winner in zip(worlds, found, strict=True):
            assert possible[how][winner], how
    assert certified


def score_by_hand(model, data, target):
    """The score of a node, and its number of neighbours that an attacker can change, edge by edge in plain loops."""
    own = model.own_logits(data.x)
    arcs: dict[int, list[tuple[bool, bool, torch.Tensor]]] = {}
    for (source, head), (mark, *values) in zip(data.edge_index.t().tolist(), data.edge_attr.tolist(), strict=True):
        for end, other, leaves in ((head, source, False), (source, head, True)):
            if end == target and other != target:
                safe = model.defence.trusted is not None and mark > 0
                arcs.setdefault(other, []).append((leaves, safe, torch.tensor([values])))
    free, safe = [], []
    for other, found in arcs.items():
        is_safe = any(mark for _, mark, _ in found)
        votes = {
            direction: [_vote_by_hand(model, data, own, other, leaves, values) for leaves, mark, values in found if leaves == direction and mark == is_safe]
            for direction in (False, True)
        }  # fmt: skip
        means = [torch.stack(each).mean(dim=0) for each in votes.values() if each]
        (safe if is_safe else free).append(torch.stack(means).mean(dim=0))
    total, divisor = sum(free, torch.zeros(CLASSES)), 1.0
    if model.defence.combine == "mean":
        kappa = model.pseudo.exp()
        total, divisor = total + kappa * torch.softmax(model.pseudo_votes, dim=0), kappa + len(free)
    fixed = (
        model.constant
        + model.own_scale.exp() * own[target]
        + model.trusted_scale.exp() * sum(safe, torch.zeros(CLASSES))
    )
    if model.own_net is not None:
        fixed = fixed + model.own_net(own[target : target + 1])[0]
    return fixed + model.gate(own[target : target + 1])[0] * total / divisor, len(free)


def _vote_by_hand(model, data, own, node, leaves, values):
    logits = own[node : node + 1]
    if model.edge_channels:
        rows = model.edge_rows(values, torch.tensor([leaves]))
        return torch.softmax(model.scores(logits, rows), dim=1)[0, :-1]
    score = model.scores(logits)[0]
    if model.defence.levels == 2:
        ends = {frozenset(arc) for arc in data.edge_index.t().tolist() if node in arc and len(set(arc)) == 2}
        for (other,) in (pair - {node} for pair in ends):
            score[:-1] += model.weight_of_second * torch.softmax(model.first_scale * own[other], dim=0)
    return torch.softmax(score, dim=0)[:-1]


@pytest.mark.parametrize("theorem", RULES)
@torch.no_grad()
def test_scores_are_those_of_the_definition_in_plain_loops(theorem):
    """What is counted, and what the model predicts, for pairs with one direction, with both, and with copies."""
    listed = 0
    for model, kinds, pairs, trusted in cases(theorem, range(200, 206)):
        data = graph(kinds, pairs, trusted)
        data.edge_index = torch.cat([data.edge_index, data.edge_index[:, :2]], dim=1)  # two edges a second time
        data.edge_attr = torch.cat([data.edge_attr, data.edge_attr[:2] + torch.tensor([0.0, 3.0])])
        data.edge_attr[1::3, 0] = 0.0  # trusted in one direction, or in one copy, only
        if theorem.startswith("trusted"):
            seen = data
        else:
            seen = data.clone()
            seen.edge_attr = data.edge_attr[:, 1:] if model.defence.edge_values else None
        evidence = StackedEvidence(**stacked_counts(model, prepared(seen).targets(list(range(NODES)))))
        leads = Leads(evidence)
        score = leads.score / leads.divisor(leads.degree)[:, None] / STEPS
        forward = model(seen.x, seen.edge_index, edge_attr=seen.edge_attr)
        for target in range(NODES):
            expected, neighbours = score_by_hand(model, data, target)
            assert evidence.degree[target] == neighbours
            assert score[target] == pytest.approx(expected.numpy(), abs=1e-3)
            assert forward[target].numpy() == pytest.approx(expected.numpy(), abs=1e-4)
            listed += neighbours
    assert listed > 20
