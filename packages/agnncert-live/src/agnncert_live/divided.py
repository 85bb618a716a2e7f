"""``DividedCore``: keeps the votes of a division on all subgraphs current, and the labels and radii that they give."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.auditing.model_audit import AuditReport, Locality, audit
from agnncert.certificates.claim import make_claim
from agnncert.certificates.votes import Votes, apply_voting_rule
from agnncert.certificates.voting_rule import VotingRule
from agnncert.defence import Defence
from agnncert.divided import certify as divided_certify
from agnncert.divided.defence import Divided
from agnncert.engine.features import Features, SparseRows
from agnncert.engine.reach import ReachTable
from agnncert.engine.structure import structure
from agnncert.engine.votes import compute_votes
from agnncert.errors import ModelContractError, SettingsError
from agnncert.graphs.graph import Task
from agnncert.graphs.targets import Targets, prepared
from agnncert.models.digest import model_digest
from agnncert.models.message_hops import hops_of
from agnncert.proving.certificate import Certificate, Decision
from agnncert_live.core import Beginning, Core, Subject, as_array
from agnncert_live.counting import RunningCounts, VoteCounter
from agnncert_live.spent import Node, Reference, Spent, dense_votes, spent_by
from agnncert_live.store import Store
from agnncert_live.subgraphs import Subgraphs, pair_of_subgraph
from agnncert_live.votes import ComputedVotes, FeatureRows, NodeVotes, ToCompute, VoteEngine

Array = npt.NDArray[Any]


class DividedCore(Core[NodeVotes]):
    """A graph with the votes, labels and radii of its targets, under a division with a voting rule.

    Args:
        subject: The graph and its targets.
        beginning: The model and the defence.
        report: What the audit found.

    Attributes:
        locality: How it is known that the model is local.
        tolerance: How far two computations of one logit may lie apart, relative to the largest.
        voting_rule: The voting rule with its defaults filled in.
    """

    def __init__(self, subject: Subject, beginning: Beginning, report: AuditReport) -> None:
        super().__init__(subject)
        defence = _divided(beginning.defence)
        self.model = beginning.model
        self.division: Any = defence.division
        self.locality: Locality = report.locality
        self.tolerance: float = report.tolerance if beginning.tolerance is None else beginning.tolerance
        bound_model = divided_certify.bind_audited(self.model, beginning.chosen, report)
        theorem = self.division.theorem(self.task)
        voting_rule = defence.voting_rule or VotingRule()
        self.voting_rule = voting_rule.under(theorem, bound_model.num_classes)
        is_known = report.locality == "construction" and self.task == "node"
        hops = hops_of(self.model) if is_known else None
        self.engine = VoteEngine(self.store, bound_model, self.tolerance, hops)
        id_kind = beginning.chosen.id_kind
        self.counter = VoteCounter(self.store, theorem, self.voting_rule, bound_model.num_classes, id_kind)
        self.counts = None if self.task == "graph" else RunningCounts(self.counter)
        self.engine.keep_products()

    @classmethod
    def subgraphs(cls, defence: Defence, task: Task) -> Subgraphs:
        """Returns the subgraphs of the division.

        Raises:
            DivisionError: The division cannot be kept up to date edge by edge.
        """
        division: Any = _divided(defence).division
        return Subgraphs(division, task)

    @classmethod
    def identity(cls, defence: Defence, tolerance: float | None) -> dict[str, str]:
        """Returns the division, the voting rule and the tolerance, by which a journal knows its defence."""
        voting_rule = defence.voting_rule or VotingRule()
        return {
            "division": str(_divided(defence).division),
            "voting_rule": json.dumps(voting_rule.to_json()),
            "tolerance": repr(tolerance),
        }

    @classmethod
    def begin(cls, subject: Subject, beginning: Beginning) -> "DividedCore":
        """Audits the model and returns the core.

        Raises:
            ModelContractError: The model breaks an assumption of the proof.
            SettingsError: The tolerance is less than that of the audit.
        """
        report = audit(beginning.model, beginning.canonical_data.data, _divided(beginning.defence).division)
        if not report.ok:
            raise ModelContractError(str(report))
        tolerance = beginning.tolerance
        if tolerance is not None and tolerance < report.tolerance:
            raise SettingsError(
                f"tolerance={tolerance:g} is less than that of the audit, {report.tolerance:.3g}: leave it out, or "
                "give more."
            )
        return cls(subject, beginning, report)

    # A batch.

    def compute_all(self) -> None:
        """Computes the votes of all targets, and counts them."""
        store = self.store
        targets = self.order()
        copies = store.union.live_copies()
        if self.task == "node":
            copies = copies[self.answers.is_target[store.union.node[copies]]]
        copies = copies[store.subgraphs.has_vote(store.nodes, store.union, copies)]
        no_edge = targets if self._has_no_edge_predictions else targets[:0]
        self._store_votes(self.engine.compute(ToCompute(copies, no_edge)))
        self._count_copies(copies)
        self.count(targets)

    @property
    def _has_no_edge_predictions(self) -> bool:
        return self.task == "node" and not self.store.subgraphs.gated

    def _compute_affected(self) -> NodeVotes:
        self.engine.renew_features()
        return self.engine.compute(self._affected())

    def _affected(self) -> ToCompute:
        nobody = np.zeros(0, dtype=np.int64)
        if self.task == "graph":
            return ToCompute(self.engine.affected(nobody.astype(bool)), nobody)
        is_target = self.answers.is_target
        copies = self.engine.affected(is_target)
        if not self._has_no_edge_predictions:
            return ToCompute(copies, nobody)
        renewed = as_array(self.store.batch.features)
        return ToCompute(copies, renewed[self.store.nodes.alive[renewed] & is_target[renewed]])

    def _touched(self, computed: NodeVotes) -> Array:
        store = self.store
        nodes_at_ends = store.union.node[as_array(store.batch.ends)]
        if self.task == "graph":
            graphs = [store.nodes.graph[nodes_at_ends], store.nodes.graph[as_array(store.batch.features)]]
            return np.unique(np.concatenate(graphs)).astype(np.int64)
        nodes = [nodes_at_ends, store.union.node[computed.of_copies.index], computed.no_edge.index]
        return np.unique(np.concatenate(nodes)).astype(np.int64)

    def _keep(self, computed: NodeVotes) -> None:
        changed = np.unique(np.concatenate([as_array(self.store.batch.ends), computed.of_copies.index]))
        if self.counts is not None:
            self.counts.remove(changed)
        self._store_votes(computed)
        self._count_copies(changed)

    def _store_votes(self, computed: NodeVotes) -> None:
        store = self.store
        copies = computed.of_copies
        store.has_vote[copies.index] = True
        store.vote[copies.index] = copies.vote
        store.stable[copies.index] = copies.stable
        store.noise_decides[copies.index] = copies.noise_decides
        no_edge = computed.no_edge
        store.no_edge[no_edge.index] = no_edge.vote
        store.no_edge_stable[no_edge.index] = no_edge.stable
        store.no_edge_noise_decides[no_edge.index] = no_edge.noise_decides

    def _count_copies(self, copies: Array) -> None:
        if self.counts is not None:
            self.counts.add(copies, self.answers.is_target)

    def _answer(self, targets: Array, computed: NodeVotes) -> None:
        self.count(targets)

    def count(self, targets: Array) -> None:
        """Computes label and radius of some targets from the votes."""
        if not len(targets):
            return
        if self.counts is not None:
            label, radius = self.counts.labels_and_radii(targets)
        else:
            label, radius = self.counter.evidence(targets).label_and_radius()
        self.answers.label[targets] = label
        self.answers.radius[targets] = radius

    def _undone(self) -> None:
        self.engine.undone()

    # What is asked.

    def largest_radius(self) -> int:
        """Returns the number of groups: with one per neighbour, as many as there are nodes or pairs now."""
        store = self.store
        if not store.subgraphs.is_per_neighbour:
            return store.subgraphs.num_groups
        if store.num_pairs is not None:
            return max(1, int(store.num_pairs.max()))
        return max(1, *(len(slots) for slots in store.nodes.slot_of))

    def decision(self, target: int) -> Decision:
        """Returns what is proved about one target."""
        evidence = self.counter.evidence(np.array([target]), with_reach=True)
        claim = make_claim(
            evidence,
            str(self.division),
            tolerance=self.tolerance,
            locality=self.locality,
            rounding=self.engine.bound_model.rounding,
        )
        return self.decided(target, claim, evidence)

    def certificate(self) -> Certificate:
        """Returns the certificate of the graph as it is. No vote is computed again unless noise decides its flag."""
        data = self.data()
        canonical_data = prepared(data, self.rows if self.task == "graph" else None)
        chosen = canonical_data.targets(self.target_rows(), self.store.subgraphs.keeps_loops)
        groups = _group_of_copies(self.store, self.largest_radius())
        self._decide_flags(chosen, groups)
        votes = self.counter.votes(self.order(), groups, self.largest_radius()).votes
        reach = self._reach_table(chosen, votes)
        digest = model_digest(self.model)
        rounding = self.engine.bound_model.rounding
        computed = divided_certify.ComputedVotes(votes, reach, self.tolerance, self.locality, digest, rounding)
        return divided_certify.assemble(chosen, self.division, computed, self.voting_rule)

    def _reach_table(self, chosen: Targets, votes: Votes) -> ReachTable:
        """Returns the reach of other nodes in the whole graph, after a comparison of its groups with the votes."""
        expected = structure(chosen.graph, self.division, chosen.positions)
        for name in ("indptr", "group", "reached"):
            if not np.array_equal(expected[name], getattr(votes, name)):
                raise RuntimeError(
                    f"the votes kept are not those of the graph: {name} differs. This is a mistake here."
                )
        return ReachTable(expected["reach_ptr"], expected["reach"])

    def _decide_flags(self, chosen: Targets, groups: Array) -> None:
        """Decides flags with the rounding noise that ``certify`` uses, which follows the numbers of rows."""
        store = self.store
        targets = self.order()
        votes, copies = self.counter.votes(targets, groups, self.largest_radius())
        is_open = store.noise_decides[copies]
        is_open_without_edges = np.zeros(len(targets), dtype=bool)
        if self._has_no_edge_predictions:
            is_open_without_edges = store.no_edge_noise_decides[targets]
        if not is_open.any() and not is_open_without_edges.any():
            return
        needs_all_votes = self.engine.bound_model.edge_inputs or self.engine.rough or store.subgraphs.of_graphs
        if (
            needs_all_votes
        ):  # the noise of edge values follows their position; further noises are tried for whole chunks
            decided = self._recomputed(chosen, copies, is_open, is_open_without_edges)
        else:
            x = chosen.graph.x.to(self.engine.bound_model.dtype)
            table = FeatureRows(Features(x, SparseRows.of(x)), store.nodes.rows())
            wanted = ToCompute(copies[is_open], targets[is_open_without_edges])
            decided = self.engine.compute_in_chunks(wanted, table)
        decided.of_copies.noise_decides[:] = True  # another numbering of rows may decide differently
        decided.no_edge.noise_decides[:] = True
        self._revise(decided)
        is_touched = is_open_without_edges.copy()
        is_touched[votes.owner[is_open]] = True
        self.count(targets[is_touched])

    def _recomputed(self, chosen: Targets, copies: Array, is_open: Array, is_open_without_edges: Array) -> NodeVotes:
        """Computes all votes as ``certify`` does, and returns those whose flags are open."""
        targets = self.order()
        bound_model = self.engine.bound_model
        votes, _ = compute_votes(bound_model, chosen.graph, self.division, chosen.positions, "fast", self.tolerance)
        of_copies = ComputedVotes(
            copies[is_open], votes.vote[is_open], votes.stable[is_open], np.ones(int(is_open.sum()), dtype=bool)
        )
        if self.task == "graph":
            of_copies = _for_whole_subgraphs(self.store, of_copies)
        no_edge = ComputedVotes(
            targets[is_open_without_edges],
            votes.default[is_open_without_edges],
            votes.default_stable[is_open_without_edges],
            np.ones(int(is_open_without_edges.sum()), dtype=bool),
        )
        return NodeVotes(of_copies, no_edge)

    def _revise(self, decided: NodeVotes) -> None:
        """Replaces some votes, while the graph is as it was."""
        if self.counts is not None:
            self.counts.remove(decided.of_copies.index)
        self._store_votes(decided)
        self._count_copies(decided.of_copies.index)

    def votes_of(self, target: int) -> Array:
        """Returns the vote of a target in every group; not defined with one group per neighbour."""
        group = self.store.union.subgraph_index
        if self.task == "graph":
            group = group % self.store.subgraphs.num_groups
        votes = self.counter.votes(np.array([target]), group).votes
        dense: Array = apply_voting_rule(votes, self.voting_rule)[0].dense()[0]
        return dense

    def spent(self, reference: Reference, since: Certificate, target: int) -> Spent:
        """Returns what has happened to a target since a reference, beside what that is proof against."""
        name = self.id_of(target)
        votes_moved = None
        if not self.store.subgraphs.is_per_neighbour:
            votes_then = dense_votes(since, since.position[name])
            votes_moved = int((votes_then != self.votes_of(target)).sum())
        node = Node(target, 0) if self.task == "graph" else Node(0, name)
        return spent_by(reference, since, node, name, label=int(self.answers.label[target]), votes_moved=votes_moved)

    def proves(self, certificate: Certificate) -> bool:
        """Whether a certificate has this division and voting rule."""
        return certificate.claim.division == str(self.division) and certificate.voting_rule == self.voting_rule

    @property
    def summary(self) -> Mapping[str, Any]:
        """The division, by name."""
        return {"division": str(self.division)}


def _divided(defence: Defence) -> Divided:
    if not isinstance(defence, Divided):
        raise SettingsError(f"{defence} is no division with a voting rule.")
    return defence


def _group_of_copies(store: Store, num_groups: int) -> Array:
    """Returns the number of the group of every copy, as the graph is numbered now."""
    subgraph_index = store.union.subgraph_index
    if not store.subgraphs.is_per_neighbour:
        if store.subgraphs.of_graphs:
            return subgraph_index % num_groups
        return subgraph_index
    row = store.nodes.rows()
    sizes = [len(slots) for slots in store.nodes.slot_of]
    first_row = np.cumsum([0, *sizes[:-1]])  # of each graph
    live = store.union.live_copies()
    live = live[subgraph_index[live] >= 0]
    group = np.zeros(len(subgraph_index), dtype=np.int64)
    if not store.subgraphs.by_pair:
        node = subgraph_index[live]
        group[live] = row[node] - first_row[store.nodes.graph[node]]
        return group
    smaller_slot, larger_slot = pair_of_subgraph(subgraph_index[live])
    low, high = np.sort(np.stack([row[smaller_slot], row[larger_slot]]), axis=0)
    pairs, pair_of_copy = np.unique(low * len(row) + high, return_inverse=True)
    graph = np.searchsorted(first_row, pairs // len(row), side="right") - 1
    pairs_per_graph = np.bincount(graph, minlength=len(first_row))
    first_pair = np.cumsum(pairs_per_graph) - pairs_per_graph
    group[live] = (np.arange(len(pairs)) - first_pair[graph])[pair_of_copy]
    return group


def _for_whole_subgraphs(store: Store, votes: ComputedVotes) -> ComputedVotes:
    """Returns votes of single copies as votes of all copies of their subgraphs."""
    live = store.union.live_copies()
    subgraphs = store.union.subgraph_index[votes.index]
    order = np.argsort(subgraphs)
    place = np.searchsorted(subgraphs[order], store.union.subgraph_index[live])
    nothing_behind = -2
    is_same = np.append(subgraphs[order], nothing_behind)[place] == store.union.subgraph_index[live]
    return votes.at(order[place[is_same]], live[is_same])
