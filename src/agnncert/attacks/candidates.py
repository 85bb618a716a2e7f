"""The edits that a greedy attack tries against one target, with the features and ids of injected nodes.

``NodeMoves`` and ``GraphMoves`` list edits for the two tasks, each with the groups whose votes it may change.
``AdversarialFeatures`` holds features that push a node's neighbours to a class. Groups are hashes of ids, so an
attacker who chooses ids chooses groups: injected nodes have no id at first, and after all edits have been tried,
``with_ids`` gives them the ``UnusedIds`` with the largest gain.
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.attacks.edited_subgraphs import GraphSubgraphs, NodeSubgraphs
from agnncert.attacks.edits import INJECTED, Edit, TriedEdit
from agnncert.attacks.unused_ids import UnusedIds
from agnncert.attacks.vote_problem import VoteProblem
from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import FloatArray, IntArray
from agnncert.divisions.edge import EdgeCentric
from agnncert.divisions.node import NodeCentric
from agnncert.engine.adapter import no_edges
from agnncert.graphs import hashing

Priced = tuple[int, TriedEdit]  # what an edit gains, and the edit
SAMPLE = 32  # nodes that feature rows are tried on
SCALES = (1.0, 10.0, 100.0)
KEPT_ROWS = 3  # feature rows for each class
STEPS = 20
ENOUGH = 5.0  # larger leads, in logits, count as this one
Candidate = tuple[Edit, list[int]]  # an edit, and the groups whose votes it may move
Item = TypeVar("Item")
Key = TypeVar("Key", bound=Hashable)
# How many of each to try, in the node task.
NEIGHBOURS_PER_GROUP = 2
INFLUENTIAL_NODES = 16
IDS_FOR_NODES = 512
# The same in the graph task.
PAIRS_TO_HASH = 2000
PAIRS_PER_GROUP = 4
EDGES_DELETED_AT_ONCE = 8
NODES_TO_CHANGE = 40
IDS_FOR_GRAPHS = 256


@dataclass(frozen=True)
class AdversarialFeatures:
    """Features for injected or changed nodes, and existing nodes to join to a target.

    Attributes:
        features: All rows, shape ``[num_rows, num_features]``.
        lists: The same rows as lists, shared by all perturbations that use them.
        best: For each class the rows that push to it most often, best first.
        strong: For each class all nodes, sorted by their logit margin for it without edges, largest first.
    """

    features: Tensor
    lists: Sequence[list[float]]
    best: list[list[int]]
    strong: list[IntArray]

    def best_for(self, rivals: Sequence[int], count: int | None = None) -> list[int]:
        """The rows that push to one of these classes most often, ``count`` for each."""
        return [row for rival in rivals for row in self.best[rival][:count]]

    @classmethod
    def of(cls, problem: VoteProblem, seed: int = 0) -> "AdversarialFeatures":
        """Tries copies of real nodes, also magnified, and features found by gradient ascent, on a random sample."""
        random = np.random.default_rng(seed)
        x = problem.graph.x.to(problem.bound_model.dtype)
        sample = x[torch.from_numpy(random.choice(len(x), min(SAMPLE, len(x)), replace=False))]
        with torch.no_grad():  # without edges
            batch = torch.arange(len(x)) if problem.task == "graph" else None
            lead = _lead(problem.bound_model(x, *no_edges(problem.graph, problem.bound_model.edge_inputs), batch))
        strong = [np.argsort(-lead[:, k].numpy(), kind="stable") for k in range(problem.bound_model.num_classes)]
        copies = [torch.unique(x[torch.from_numpy(nodes[:8].copy())], dim=0)[:3] for nodes in strong]
        ascended = _ascend(problem, sample, torch.stack([real.mean(0) for real in copies]))
        rows: list[Tensor] = []
        best: list[list[int]] = []
        for k, real in enumerate(copies):
            tried = torch.cat([scale * torch.cat([real, ascended[k : k + 1]]) for scale in SCALES])
            tried = tried[torch.isfinite(tried).all(1)]
            share, mean = _pushed(problem, sample, tried, k)
            order = np.lexsort([-mean, -share])[:KEPT_ROWS]
            best.append(list(range(len(rows), len(rows) + len(order))))
            rows += [tried[int(r)] for r in order]
        features = torch.stack(rows).to(problem.graph.x.dtype)
        return cls(features, features.tolist(), best, strong)


class NodeMoves:
    """Edits against target nodes."""

    def __init__(self, problem: VoteProblem, features: AdversarialFeatures) -> None:
        self.problem = problem
        self.features = features
        self.division = problem.built_in()
        self.edge_values = problem.extreme_edge_values()
        self.neighbours = problem.neighbours
        self._subgraphs = NodeSubgraphs(problem)
        self._unused = UnusedIds(problem.graph.node_key, problem.has_ids(), IDS_FOR_NODES)

    def subgraphs(self, row: int) -> NodeSubgraphs:
        """Where edits against this target are tried."""
        return self._subgraphs

    def unused_ids(self, row: int) -> UnusedIds:
        """Ids that injected nodes can have."""
        return self._unused

    def candidates(self, row: int, rivals: Sequence[int], budget: Budget) -> Iterator[Candidate]:
        """Edits to try, of the kinds that the budget allows; injected nodes have no id yet."""
        if budget.add_edges:
            yield from self._new_neighbours(row, rivals)
        if budget.injected_edges:
            yield from self._injections(row, rivals, budget)
        if budget.delete_edges:
            yield from self._deletions(row)
        if budget.change_edges:
            yield from self._changed_edges(row)
        if budget.delete_nodes or budget.change_features:
            yield from self._changed_nodes(row, rivals, budget)
        if budget.target_features:
            yield from self._target_features(row, rivals)

    def _changed_edges(self, row: int) -> Iterator[Candidate]:
        for group in self.neighbours.groups(row):
            for u, value in itertools.product(self.neighbours.senders(group, row), self.edge_values):
                yield Edit("change_edges", change_edges=((u, row, value),)), [group]

    def _changed_nodes(self, row: int, rivals: Sequence[int], budget: Budget) -> Iterator[Candidate]:
        for u, groups in self._influential(row):
            if budget.delete_nodes:
                yield Edit("delete_nodes", delete_nodes=(u,)), groups
            if budget.change_features:
                for features in self.features.best_for(rivals, 2):
                    yield Edit("change_features", change_features=((u, features),)), groups

    def _target_features(self, row: int, rivals: Sequence[int]) -> Iterator[Candidate]:
        groups = list(range(self.division.num_groups))
        if self._subgraphs.gated:
            groups = [self._subgraphs.group_of[row]]
        for features in self.features.best_for(rivals, 2):
            yield Edit("target_features", change_features=((row, features),)), groups

    def _new_neighbours(self, row: int, rivals: Sequence[int]) -> Iterator[Candidate]:
        joined = {row, *(u for group in self.neighbours.groups(row) for u in self.neighbours.senders(group, row))}
        for rival in rivals:
            strong = self.features.strong[rival][: 24 * self.division.num_groups].tolist()
            free = [u for u in strong if u not in joined]
            for u, group in _first_of_each(zip(free, self._groups_with(row, free), strict=True), NEIGHBOURS_PER_GROUP):
                yield Edit("add_edges", add_edges=((u, row),)), [group]

    def _groups_with(self, row: int, others: list[int]) -> list[int]:
        """Group in which the target would get messages from each of these nodes."""
        if isinstance(self.division, NodeCentric):
            return [self._subgraphs.group_of[u] for u in others]
        keys = self.problem.graph.node_key
        return pair_groups(self.division, keys[[row]].numpy(), keys[others])[0].tolist()  # type: ignore[no-any-return]

    def _injections(self, row: int, rivals: Sequence[int], budget: Budget) -> Iterator[Candidate]:
        for rival in rivals:
            best = self.features.best[rival]
            for features, group in itertools.product(best, range(self.division.num_groups)):
                edges = ((INJECTED, row),)
                yield Edit("inject_nodes", add_edges=edges, injected=features, injected_group=group), [group]
            if self.division.divides_edges and budget.edges_per_injected > 1:
                # A further edge of the injected node can reach the target through a neighbour of the target.
                for group in self.neighbours.groups(row):
                    for u in self.neighbours.senders(group, row)[:4]:
                        yield Edit("inject_nodes", add_edges=((INJECTED, u),), injected=best[0]), [group]

    def _deletions(self, row: int) -> Iterator[Candidate]:
        for group in self.neighbours.groups(row):
            senders = self.neighbours.senders(group, row)
            own = tuple((u, row) for u in senders)
            yield from ((Edit("delete_edges", delete_edges=(pair,)), [group]) for pair in own)
            if len(own) > 1:
                yield Edit("delete_edges", delete_edges=own), [group]
            beyond = ((u, w) for u in senders[:4] for w in self.neighbours.senders(group, u) if w not in (u, row))
            pairs = sorted({(min(pair), max(pair)) for pair in beyond})[:4]
            yield from ((Edit("delete_edges", delete_edges=(pair,)), [group]) for pair in pairs)

    def _influential(self, row: int) -> list[tuple[int, list[int]]]:
        """Nodes that can reach the target, its neighbours first, and the groups in which they can."""
        groups_of: dict[int, list[int]] = {}
        direct: set[int] = set()
        for group in self.neighbours.groups(row):
            direct.update(self.neighbours.senders(group, row))
            for u in self.neighbours.reaching_in(group, row)[1:]:
                groups_of.setdefault(u, []).append(group)
        ordered = sorted(groups_of.items(), key=lambda item: (item[0] not in direct, -len(item[1])))
        return ordered[:INFLUENTIAL_NODES]

    def ids_by_pair(
        self, row: int, new: Sequence[Priced], division: EdgeCentric, most: float, count: int
    ) -> Iterator[TriedEdit]:
        """Injected nodes with the ids of the largest gain (edge-centric); ``most`` edges each, ``count`` nodes.

        An injected node is joined to the target and to neighbours of the target. Each edge falls into the group of its
        pair of ids. Nodes are injected one by one, each with the id whose edges gain the most in groups that no earlier
        node has changed.
        """
        links = _Links.of(row, new)
        unused = self._unused
        # Group of every id's pair with the target, then with the neighbours, shape [num_ids, 1 + neighbours].
        groups = pair_groups(division, unused.ids, self.problem.graph.node_key[[row, *links.neighbours]])
        worth = links.worth(division.num_groups)
        used: list[int] = []
        for turn in range(count):
            pick = turn
            if unused.any_order:
                value = links.value_of_ids(groups, worth)
                value[used] = -2
                pick = int(value.argmax())
            first = int(groups[pick, 0])
            if worth[first] < 0:
                if unused.any_order:
                    return
                continue
            used.append(pick)
            parts = links.edges_of(groups[pick].tolist(), worth, most)
            worth[list(parts)] = -1
            edges = tuple(pair for part in parts.values() for pair in part.edit.add_edges)
            votes = {group: part.votes[group] for group, part in parts.items()}
            yield TriedEdit(replace(parts[first].edit, add_edges=edges, injected_id=int(unused.ids[pick])), votes)


@dataclass(frozen=True)
class _Links:
    """The best edges of injected nodes against one target (edge-centric).

    Attributes:
        direct: Those to the target, by the group whose vote they move.
        through: Those to a neighbour of the target that gain something, by that group and the neighbour.
        neighbours: These neighbours, ascending.
    """

    direct: dict[int, Priced]
    through: dict[tuple[int, int], Priced]
    neighbours: list[int]

    @classmethod
    def of(cls, row: int, new: Sequence[Priced]) -> "_Links":
        """Sorts the tried edits of injected nodes."""
        best = _best_by(lambda attempt: (next(iter(attempt.votes)), attempt.edit.add_edges[0][1]), new)
        direct = {group: priced for (group, joined), priced in best.items() if joined == row}
        through = {key: priced for key, priced in best.items() if key[1] != row and priced[0] > 0}
        return cls(direct, through, sorted({neighbour for _, neighbour in through}))

    def worth(self, num_groups: int) -> FloatArray:
        """Returns what an edge to the target gains, by group; below zero where there is nothing to gain."""
        worth = np.full(num_groups, -1.0)
        for group, (gain, _) in self.direct.items():
            worth[group] = gain
        return worth

    def value_of_ids(self, groups: IntArray, worth: FloatArray) -> FloatArray:
        """Returns what a node under each id gains with all its edges, shape ``[num_ids]``."""
        value: FloatArray = worth[groups[:, 0]]
        for (group, neighbour), (gain, _) in self.through.items():
            if worth[group] >= 0:
                falls_there = groups[:, 1 + self.neighbours.index(neighbour)] == group
                value += gain * (falls_there & (groups[:, 0] != group))
        return value

    def edges_of(self, groups: Sequence[int], worth: FloatArray, most: float) -> dict[int, TriedEdit]:
        """Returns the edges of one injected node by the group whose vote they move, at most ``most``.

        Args:
            groups: Group of its pair with the target, then with the neighbours.
            worth: As returned by ``worth``, and below zero for groups that an earlier node has changed.
            most: Edges that the node may have.
        """
        first = groups[0]
        parts = {first: self.direct[first][1]}
        for neighbour, group in zip(self.neighbours, groups[1:], strict=True):
            is_useful = (group, neighbour) in self.through and worth[group] >= 0
            if is_useful and group not in parts and len(parts) < most:
                tried = self.through[group, neighbour][1]
                if tried.edit.injected == parts[first].edit.injected:
                    parts[group] = tried
        return parts


class GraphMoves:
    """Edits against target graphs."""

    def __init__(self, problem: VoteProblem, features: AdversarialFeatures, seed: int = 0) -> None:
        self.problem = problem
        self.features = features
        self.division = problem.built_in()
        self.edge_values = problem.extreme_edge_values()
        self.seed = seed
        self._subgraphs: dict[int, GraphSubgraphs] = {}

    def subgraphs(self, row: int) -> GraphSubgraphs:
        """Where edits against this target are tried."""
        if row not in self._subgraphs:
            self._subgraphs[row] = GraphSubgraphs(self.problem, row)
        return self._subgraphs[row]

    def unused_ids(self, row: int) -> UnusedIds:
        """Ids that injected nodes can have."""
        return UnusedIds(self.subgraphs(row).graph.node_key, self.problem.has_ids(row), IDS_FOR_GRAPHS)

    def candidates(self, row: int, rivals: Sequence[int], budget: Budget) -> Iterator[Candidate]:
        """Edits to try, of the kinds that the budget allows; injected nodes have no id yet."""
        subgraphs = self.subgraphs(row)
        random = np.random.default_rng([self.seed, row])
        if budget.add_edges:
            yield from self._new_edges(subgraphs, random)
        if budget.inject_nodes:
            yield from self._injections(subgraphs, rivals, budget)
        yield from self._changed_pairs(subgraphs, budget, random)
        yield from self._changed_nodes(subgraphs, rivals, budget, random)

    def _changed_pairs(
        self, subgraphs: GraphSubgraphs, budget: Budget, random: np.random.Generator
    ) -> Iterator[Candidate]:
        values = self.edge_values if budget.change_edges else []
        for group, edges in enumerate(subgraphs.edges):
            pairs = sorted({(min(u, v), max(u, v)) for u, v, _ in edges})
            if budget.delete_edges and 1 < len(pairs) <= EDGES_DELETED_AT_ONCE:
                yield Edit("delete_edges", delete_edges=tuple(pairs)), [group]
            for pair in _some(pairs, PAIRS_PER_GROUP, random):
                if budget.delete_edges:
                    yield Edit("delete_edges", delete_edges=(pair,)), [group]
                for value in values:
                    yield Edit("change_edges", change_edges=((*pair, value),)), [group]

    def _changed_nodes(
        self, subgraphs: GraphSubgraphs, rivals: Sequence[int], budget: Budget, random: np.random.Generator
    ) -> Iterator[Candidate]:
        nodes = _some(range(subgraphs.graph.num_nodes), NODES_TO_CHANGE, random)
        groups_of = {u: groups for u in nodes if (groups := subgraphs.groups_of(u))}
        if budget.delete_nodes and subgraphs.graph.num_nodes > 1:
            for u, groups in groups_of.items():
                yield Edit("delete_nodes", delete_nodes=(u,)), groups
        if budget.change_features:
            for (u, groups), features in itertools.product(groups_of.items(), self.features.best_for(rivals, 2)):
                yield Edit("change_features", change_features=((u, features),)), groups

    def _new_edges(self, subgraphs: GraphSubgraphs, random: np.random.Generator) -> Iterator[Candidate]:
        joined = {(min(edge), max(edge)) for edge in subgraphs.graph.edge_index.t().tolist()}
        if isinstance(self.division, NodeCentric):
            for group, members in enumerate(subgraphs.members):
                pairs = [(u, v) for k, u in enumerate(members[:60]) for v in members[:k] if (v, u) not in joined]
                for pair in _some(pairs, PAIRS_PER_GROUP, random):
                    yield Edit("add_edges", add_edges=(pair,)), [group]
            return
        low, high = np.triu_indices(subgraphs.graph.num_nodes, 1)
        sample = random.permutation(len(low))[:PAIRS_TO_HASH]
        edges = torch.from_numpy(np.stack([low[sample], high[sample]]))
        groups = self.division.groups(subgraphs.graph.with_other_edges(edges)).tolist()
        grouped = zip(zip(*edges.tolist(), strict=True), groups, strict=True)
        free = ((pair, group) for pair, group in grouped if pair not in joined)
        for pair, group in _first_of_each(free, PAIRS_PER_GROUP):
            yield Edit("add_edges", add_edges=(pair,)), [group]

    def _injections(self, subgraphs: GraphSubgraphs, rivals: Sequence[int], budget: Budget) -> Iterator[Candidate]:
        most = int(min(budget.edges_per_injected, subgraphs.graph.num_nodes))
        rows = self.features.best_for(rivals)
        for (group, members), features in itertools.product(enumerate(subgraphs.members), rows):
            if isinstance(self.division, NodeCentric):
                for linked in {0, min(most, len(members))}:
                    edges = tuple((INJECTED, u) for u in members[:linked])
                    yield Edit("inject_nodes", add_edges=edges, injected=features, injected_group=group), [group]
            elif most:
                # One node stands for all that might be joined; the id chosen later decides which nodes are joined.
                edges = ((INJECTED, members[0] if members else 0),)
                yield Edit("inject_nodes", add_edges=edges, injected=features), [group]

    def ids_by_pair(
        self, row: int, new: Sequence[Priced], division: EdgeCentric, most: float, count: int
    ) -> Iterator[TriedEdit]:
        """Injected nodes with the ids of the largest gain (edge-centric); ``most`` edges each, ``count`` nodes.

        An injected node is joined to nodes whose pair falls into a wanted group. Nodes are injected one by one, each
        with the features and the id that gain the most in groups that no earlier node has changed.
        """
        graph, unused = self.subgraphs(row).graph, self.unused_ids(row)
        groups = pair_groups(division, unused.ids, graph.node_key)  # of every id's pair with every node
        most = int(min(most, graph.num_nodes))
        available = np.zeros((len(groups), division.num_groups), dtype=bool)  # groups that a node of each id can reach
        available[np.arange(len(groups))[:, None], groups] = True
        gains: dict[int, FloatArray] = {}
        votes: dict[tuple[int, int], int] = {}
        for gain, tried in new:
            assert tried.edit.injected is not None
            group, vote = next(iter(tried.votes.items()))
            gains.setdefault(tried.edit.injected, np.zeros(division.num_groups))[group] = max(gain, 0)
            votes[tried.edit.injected, group] = vote
        for turn in range(min(count, len(groups))):
            values = {row: np.sort(available * gain, axis=1)[:, -most:].sum(1) for row, gain in gains.items()}
            features = max(values, key=lambda row: values[row].max())
            pick = int(values[features].argmax()) if unused.any_order else turn
            gain_here = available[pick] * gains[features]
            wanted = [int(group) for group in np.argsort(-gain_here, kind="stable")[:most] if gain_here[group] > 0]
            if not wanted:
                continue
            edges = tuple((INJECTED, int(np.flatnonzero(groups[pick] == group)[0])) for group in wanted)
            edit = Edit("inject_nodes", add_edges=edges, injected=features, injected_id=int(unused.ids[pick]))
            yield TriedEdit(edit, {group: votes[features, group] for group in wanted})
            available[pick] = False
            for left in gains.values():
                left[wanted] = 0


def with_ids(moves: NodeMoves | GraphMoves, row: int, priced: Sequence[Priced], budget: Budget) -> list[TriedEdit]:
    """Returns the edits against one target; injected nodes get the ids with the largest gain.

    Args:
        moves: Where the edits come from.
        row: Row of the target.
        priced: The edits with what each gains.
        budget: What the attacker may do.
    """
    edits = [attempt for _, attempt in priced if attempt.edit.injected is None]
    new = [(gain, attempt) for gain, attempt in priced if attempt.edit.injected is not None]
    if not new:
        return edits
    division = moves.division
    count = int(min(budget.inject_nodes, division.num_groups))
    if isinstance(division, EdgeCentric):
        return [*edits, *moves.ids_by_pair(row, new, division, budget.edges_per_injected, count)]
    unused = moves.unused_ids(row)
    best = _best_by(lambda attempt: attempt.edit.injected_group, new)
    among = len(unused.ids) if unused.any_order else count
    for new_id, group in zip(unused.ids[:among].tolist(), unused.node_groups(division)[:among].tolist(), strict=True):
        if group not in best:
            continue
        _, attempt = best[group]
        edits.append(TriedEdit(replace(attempt.edit, injected_id=new_id), attempt.votes))
        if unused.any_order:  # one node for each group
            del best[group]
    return edits


def without_gaps(edits: Sequence[Edit], unused: UnusedIds) -> list[Edit]:
    """Returns the edits in the order of their ids; if ids are row numbers, nodes are injected for those in between."""
    used = {edit.injected_id for edit in edits if edit.injected_id is not None}
    filled = list(edits)
    if not unused.any_order and used:
        left_out = [new_id for new_id in unused.ids.tolist() if new_id < max(used) and new_id not in used]
        filled += [Edit("inject_nodes", injected=0, injected_id=new_id) for new_id in left_out]
    return sorted(filled, key=lambda edit: -1 if edit.injected_id is None else edit.injected_id)


def pair_groups(division: EdgeCentric, ids: IntArray, keys: Tensor) -> IntArray:
    """Group of the pair of every id (or key) and every given key, shape ``[len(ids), len(keys)]``."""
    mine = np.repeat(ids, len(keys)).view(np.uint64)
    theirs = np.tile(keys.numpy(), len(ids)).view(np.uint64)
    return hashing.edge_groups(mine, theirs, division.num_groups, division.hash).reshape(len(ids), len(keys))


def _ascend(problem: VoteProblem, sample: Tensor, start: Tensor) -> Tensor:
    """For each class, features that raise its logit at the sampled nodes when joined to them, shape as ``start``."""
    label = torch.arange(len(start)).repeat_interleave(len(sample))
    length = start.norm(dim=1, keepdim=True)
    length = torch.where(length > 0, length, torch.ones_like(length))
    features = start.clone()
    for _ in range(STEPS):
        features = features.detach().requires_grad_(True)
        with torch.enable_grad():
            lead = _lead(_joined(problem, sample.repeat(len(start), 1), features[label]))
            won = lead.gather(1, label[:, None]).clamp(max=ENOUGH)
            slope = torch.autograd.grad(won.sum(), features, allow_unused=True)[0] if won.requires_grad else None
        if slope is None or not bool(torch.isfinite(slope).all()):
            break
        norm = slope.norm(dim=1, keepdim=True)
        features = features + torch.where(norm > 0, 0.5 * length * slope / norm, 0.0)
    return features.detach()


def _pushed(
    problem: VoteProblem, sample: Tensor, tried: Tensor, label: int
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
    """How often each row pushes a sampled node to ``label``, and by how much."""
    others = tried.repeat_interleave(len(sample), dim=0)
    with torch.no_grad():
        lead = _lead(_joined(problem, sample.repeat(len(tried), 1), others))[:, label].view(len(tried), -1)
    return (lead > 0).float().mean(1).numpy(), lead.clamp(-ENOUGH, ENOUGH).mean(1).float().numpy()


def _joined(problem: VoteProblem, targets: Tensor, others: Tensor) -> Tensor:
    """Logits of targets that have one neighbour each; in the graph task, of graphs that consist of the two."""
    count = len(targets)
    here = torch.arange(count)
    values = {
        name: torch.ones(2 * count, *value.shape[1:], dtype=value.dtype)
        for name, value in problem.bound_model.edge_values(problem.graph).items()
    }
    if problem.task == "graph":
        both = torch.stack([targets, others], dim=1).reshape(2 * count, -1)
        pairs = torch.stack([2 * here, 2 * here + 1])
        return problem.bound_model(both, torch.cat([pairs, pairs.flip(0)], dim=1), values, torch.arange(2 * count) // 2)
    pairs = torch.stack([here + count, here])
    return problem.bound_model(torch.cat([targets, others]), torch.cat([pairs, pairs.flip(0)], dim=1), values)[:count]


def _lead(logits: Tensor) -> Tensor:
    """Margin of each class over the best other class, shape as ``logits``."""
    top = logits.topk(2, dim=1).values
    return logits - torch.where(logits == top[:, :1], top[:, 1:], top[:, :1])


def _best_by(key: Callable[[TriedEdit], Key], priced: Sequence[Priced]) -> dict[Key, Priced]:
    """The edit with the largest gain for each key; edits with a negative gain are left out."""
    best: dict[Key, Priced] = {}
    for gain, attempt in priced:
        if gain > best.get(key(attempt), (-1, attempt))[0]:
            best[key(attempt)] = (gain, attempt)
    return best


def _first_of_each(items: Iterable[tuple[Item, int]], count: int) -> Iterator[tuple[Item, int]]:
    """The first few items of each group; every item comes with its group."""
    seen: dict[int, int] = {}
    for item, group in items:
        seen[group] = seen.get(group, 0) + 1
        if seen[group] <= count:
            yield item, group


def _some(items: Sequence[Item], count: int, random: np.random.Generator) -> list[Item]:
    """At most ``count`` items, drawn at random if there are more."""
    if len(items) <= count:
        return list(items)
    return [items[int(k)] for k in random.permutation(len(items))[:count]]
