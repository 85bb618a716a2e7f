"""Attacks on stacked votes on real graphs: every change of one edge that matters, recomputed without the prover.

python -m experiments.benchmarks.stacked_attacks [cora-ml ethereum-phishing amazon-c] --targets 250 --every 1

For each target the scores after every single change are computed from the votes: each edge of the target deleted, an
edge from the target to every other node (or, where votes read values, an edge with the values of every known edge),
and with two levels every edge at a neighbour of the target added or deleted. For every label that flips, one change
that does it is confirmed by computing all scores on the changed graph. So are a few changes drawn at every target, or
with ``--every 10`` at every tenth. Rows go to experiments/results/stacked_attacks.jsonl.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

import agnncert as ac
from agnncert.stacked.model import StackedModel, pairs_of
from experiments.benchmarks import stacked
from experiments.paper.rows import append_row

ROWS = Path(__file__).parents[1] / "results" / "stacked_attacks.jsonl"
CONFIRMED = 3  # changes of a target that are drawn, whether they flip or not, and confirmed too
Change = tuple[str, int, int, Any]  # add or delete, both ends, values


class Attacker:
    """Scores of a target after one change, from the votes of all nodes; float64."""

    def __init__(self, model: StackedModel, data: Any) -> None:
        self.model = model.double()
        self.data = data.clone()
        self.data.x = data.x.double()
        self.values = None if data.edge_attr is None else data.edge_attr.double()
        n = data.num_nodes
        with torch.no_grad():
            self.logits = self.model.own_logits(self.data.x)
        self.pairs = pairs_of(data.edge_index, torch.arange(n), n)

    def near(self, v: int) -> Tensor:
        """Neighbours of a node."""
        return self.pairs.neighbour[self.pairs.indptr[v] : self.pairs.indptr[v + 1]]

    @torch.no_grad()
    def scores(self, edge_index: Tensor, values: Tensor | None) -> Tensor:
        """Scores of all nodes on a graph, as the model computes them; features, and so own logits, stay as they are."""
        model, n = self.model, self.data.num_nodes
        pairs = pairs_of(edge_index, torch.arange(n), n)
        votes = model.votes(self.logits, pairs, edge_index, values)
        prior, total, divisor = model.parts(self.logits, votes, pairs)
        return prior + model.gate(self.logits) * total / divisor

    def changed(self, change: Change) -> tuple[Tensor, Tensor | None]:
        """The edges, and their values, after a change."""
        kind, u, v, row = change
        index, values = self.data.edge_index, self.values
        if kind == "delete":
            at = ((index[0] == u) & (index[1] == v)) | ((index[0] == v) & (index[1] == u))
            return index[:, ~at], None if values is None else values[~at]
        index = torch.cat([index, torch.tensor([[u, v], [v, u]])], dim=1)
        if values is None:
            return index, None
        half = len(row) // 2
        return index, torch.cat([values, row[None], torch.cat([row[half:], row[:half]])[None]])


class ByNode(Attacker):
    """Votes that read nodes; one level or two, summed."""

    def __init__(self, model: StackedModel, data: Any) -> None:
        super().__init__(model, data)
        with torch.no_grad():
            self.votes = self.model.node_votes(self.logits, data.edge_index)
            self.raw = self.model.scores(self.logits)  # before the neighbours' neighbours
            self.first = torch.softmax(self.model.first_scale * self.logits, dim=1)
            self.heard = torch.zeros_like(self.first).index_add(0, self.pairs.owner, self.first[self.pairs.neighbour])
            self.gates, self.prior = self.model.gate(self.logits), self.model.prior(self.logits)
            self.sum = torch.zeros_like(self.first).index_add(0, self.pairs.owner, self.votes[self.pairs.neighbour])

    def vote(self, node: Tensor, more: Tensor) -> Tensor:
        """Votes of nodes if they hear ``more`` than they do."""
        score, second = self.raw[node], self.model.weight_of_second
        if self.model.defence.levels == 2:
            heard = self.heard[node] + more
            score = torch.cat([score[:, :-1] + second * heard, score[:, -1:]], dim=1)
        return torch.softmax(score, dim=1)[:, :-1]

    @torch.no_grad()
    def tries(self, v: int) -> tuple[list[Change], Tensor]:
        """Every change of one edge that matters for a target, and its scores after each, shape ``[changes, C]``."""
        near, everyone = self.near(v), torch.arange(self.data.num_nodes)
        far = everyone[~torch.isin(everyone, near) & (everyone != v)]
        changes: list[Change] = [("delete", v, j, None) for j in near.tolist()]
        sums = [self.sum[v] - self.votes[near]]
        changes += [("add", v, u, None) for u in far.tolist()]
        sums.append(self.sum[v] + self.vote(far, self.first[v].expand(len(far), -1)))
        if self.model.defence.levels == 2:
            inside = torch.zeros(self.data.num_nodes, dtype=torch.bool)
            inside[near] = True
            for p in near.tolist():
                others = self.near(p)
                joined = torch.isin(everyone, others)
                q = everyone[(everyone != p) & (everyone != v)]
                sign = torch.where(joined[q], -1.0, 1.0).double()[:, None]
                here = torch.full_like(q, p)
                moved = self.vote(here, sign * self.first[q]) - self.votes[p]
                both = self.vote(q, sign * self.first[p]) - self.votes[q]
                sums.append(self.sum[v] + moved + both * inside[q][:, None])
                changes += [
                    ("delete" if there else "add", p, k, None)
                    for k, there in zip(q.tolist(), joined[q].tolist(), strict=True)
                ]
        return changes, self.prior[v] + self.gates[v] * torch.cat(sums)


class ByEdge(Attacker):
    """Votes that read the values of an edge; mean with a pseudo-count."""

    def __init__(self, model: StackedModel, data: Any) -> None:
        super().__init__(model, data)
        with torch.no_grad():
            self.cast = self.model.votes(self.logits, self.pairs, data.edge_index, self.values)
            # An edge from the target to a new neighbour, with the values of each edge of the graph.
            assert self.values is not None
            self.palette = torch.unique(self.values, dim=0)
            self.palette_rows = list(self.palette)
            half = self.palette.size(1) // 2
            back = torch.cat([self.palette[:, half:], self.palette[:, :half]], dim=1)
            leaves = torch.ones(len(self.palette), dtype=torch.bool)
            none = self.logits[:1].expand(len(self.palette), -1)
            parts = [
                torch.softmax(self.model.scores(none, self.model.edge_rows(rows, way)), dim=1)[:, :-1]
                for rows, way in ((self.palette, leaves), (back, ~leaves))
            ]
            self.new = (parts[0] + parts[1]) / 2

    @torch.no_grad()
    def tries(self, v: int) -> tuple[list[Change], Tensor]:
        """As for votes that read nodes; a new edge may have the values of any edge in the graph."""
        near = self.near(v)
        mine = self.cast[self.pairs.indptr[v] : self.pairs.indptr[v + 1]]
        stranger = next(u for u in range(self.data.num_nodes) if u != v and u not in near)
        changes: list[Change] = [("delete", v, j, None) for j in near.tolist()]
        changes += [("add", v, stranger, row) for row in self.palette_rows]
        sums = torch.cat([mine.sum(dim=0) - mine, mine.sum(dim=0) + self.new])
        number = torch.cat([torch.full((len(near),), len(near) - 1), torch.full((len(self.new),), len(near) + 1)])
        kappa = self.model.pseudo.exp()
        total = sums + kappa * torch.softmax(self.model.pseudo_votes, dim=0)
        one = self.logits[v : v + 1]
        return changes, self.model.prior(one) + self.model.gate(one) * total / (kappa + number[:, None])


def trained(name: str, seed: int, root: str) -> tuple[StackedModel, Any]:
    """A model as in the table of stacked votes, and its graph."""
    if name == "ethereum-phishing":
        data = ac.load_dataset(name, root=root, seed=seed)
        stacked.set_masks(data, stacked.stratified_split(data.y, stacked.ETHEREUM_PARTS, seed))
        return ac.fit(None, data, stacked.ETHEREUM, seed=seed), data
    data, how = ac.load_dataset(name, root=root, seed=seed), stacked.OWN[name]
    base = ac.build_model(
        "mlp", data, num_layers=2, hidden_channels=how["hidden"], dropout=how["dropout"], norm=how.get("norm")
    )
    given = {key: how[key] for key in ("lr", "weight_decay", "epochs")}
    defence = ac.StackedVotes(size=1, levels=2 if name == "cora-ml" else 1)
    model = ac.fit(base, data, defence, seed=seed, patience=None, protocol="inductive", **given)
    return model, data


def run(name: str, targets: int, seed: int, root: str, every: int = 1) -> dict[str, Any]:
    """Attacks some test nodes of a dataset; draws changes to confirm at each of this many of them."""
    begin = time.perf_counter()
    model, data = trained(name, seed, root)
    rows = data.test_mask.nonzero().view(-1)
    rows = rows[torch.from_numpy(np.random.default_rng(seed).permutation(len(rows))[:targets])]
    certificate = ac.certify(model, data, model.defence, rows)
    one_edge = [ac.Budget(add_edges=1), ac.Budget(delete_edges=1)]
    safe = np.all([certificate.holds_against(budget) for budget in one_edge], axis=0)
    attacker = (ByEdge if model.edge_channels else ByNode)(model, data)
    rng, counted = np.random.default_rng(seed), {True: [0, 0], False: [0, 0]}
    tried = confirmed = differ = 0
    for k, v in enumerate(certificate.row.tolist()):
        changes, scores = attacker.tries(v)
        flips = (scores.argmax(dim=1) != int(certificate.label[k])).nonzero().view(-1)
        tried += len(changes)
        looked = [int(flips[0])] if len(flips) else []
        if k % every == 0:
            looked += rng.choice(len(changes), min(CONFIRMED, len(changes)), replace=False).tolist()
        for number in looked:
            found = attacker.scores(*attacker.changed(changes[number]))[v]
            confirmed += 1
            differ += bool((found - scores[number]).abs().max() > 1e-6)
        counted[bool(safe[k])][0] += 1
        counted[bool(safe[k])][1] += bool(len(flips))
    return {
        "dataset": name, "seed": seed, "rule": str(model.defence), "targets": len(certificate), "changes": tried,
        "certified at one edge": counted[True][0], "certified and flipped": counted[True][1],
        "not certified": counted[False][0], "not certified and flipped": counted[False][1],
        "confirmed on the changed graph": confirmed, "scores that differ there": differ,
        "seconds": round(time.perf_counter() - begin, 1),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=["cora-ml", "ethereum-phishing"])
    parser.add_argument("--targets", type=int, default=250)
    parser.add_argument("--every", type=int, default=1, help="draw changes to confirm at each of this many targets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--root", default=".cache/data")
    args = parser.parse_args()
    for name in args.datasets:
        row = run(name, args.targets, args.seed, args.root, args.every)
        append_row(ROWS, row)
        print(json.dumps(row, indent=1), flush=True)


if __name__ == "__main__":
    main()
