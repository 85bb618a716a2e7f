"""From the ballots that a live graph keeps to votes, labels and radii: of a few targets, or of all of them."""

from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.live.reach import Reach
from agnncert.live.store import Store
from agnncert.proof.ballots import ABSTAIN, MOST_OWN_GROUPS, Votes, under_vote
from agnncert.proof.evidence import BallotEvidence
from agnncert.proof.rules import RULES
from agnncert.proof.vote import Vote
from agnncert.voting.cover import _ragged as sums_of_largest

Array = npt.NDArray[Any]


class Counter:
    """Counts votes of a store's targets: nodes by slot, or graphs by number.

    Attributes:
        store: The graph and its ballots.
        rule: The rule of its division.
        vote: What empty groups cast, and the prior.
        ids: How nodes are known.
    """

    def __init__(self, store: Store, rule: str, vote: Vote, num_classes: int, ids: str) -> None:
        self.store, self.rule, self.vote, self.num_classes, self.ids = store, rule, vote, num_classes, ids
        division = store.cells.division
        self.reach = Reach(store.union, None)
        self.num_groups = MOST_OWN_GROUPS if store.cells.own_groups else int(division.num_groups)

    def listed(self, targets: Array) -> tuple[Array, Array]:
        """Copies (graph task: one of each cell) whose ballots are listed, and the target of each as a position."""
        store = self.store
        if not store.cells.on_graphs:
            copies, lengths = store.union.of_node.gather(targets)
            owner = np.repeat(np.arange(len(targets)), lengths)
        else:
            slots = [np.fromiter(store.nodes.slot_of[graph].values(), dtype=np.int64) for graph in targets.tolist()]
            of_graph = np.repeat(np.arange(len(targets)), [len(one) for one in slots])
            copies, lengths = store.union.of_node.gather(np.concatenate([*slots, np.zeros(0, dtype=np.int64)]))
            owner = np.repeat(of_graph, lengths)
        votes = store.cells.votes(store.nodes, store.union, copies)
        copies, owner = copies[votes], owner[votes]
        if store.cells.on_graphs:
            _, first = np.unique(store.union.cell[copies], return_index=True)
            copies, owner = copies[first], owner[first]
        return copies.astype(np.int64), owner

    def votes(self, targets: Array, group: Array | None = None, num_groups: int | None = None) -> tuple[Votes, Array]:
        """Ballots as cast, and the copy of each listed one.

        Args:
            targets: Slots of nodes, or numbers of graphs.
            group: Number of the group of every copy; numbers that only count when not given.
            num_groups: How many groups there are.
        """
        copies, owner = self.listed(targets)
        number = self.store.union.cell[copies] if group is None else group[copies]
        order = np.lexsort([number, owner])
        copies, owner, number = copies[order], owner[order], number[order]
        indptr = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(targets)))]).astype(np.int64)
        if group is None:
            number = np.arange(len(owner)) - indptr[owner]
        default, sure = self.defaults(targets)
        cast = Votes(
            num_groups=self.num_groups if num_groups is None else num_groups,
            num_classes=self.num_classes,
            default=default,
            default_stable=sure,
            indptr=indptr,
            group=number.astype(np.int32),
            ballot=self.store.ballot[copies],
            stable=self.store.stable[copies],
            reached=self._reached(copies),
        )
        return cast, copies

    def defaults(self, targets: Array) -> tuple[Array, Array]:
        """What targets cast where they have no edge."""
        if self.store.cells.on_graphs or self.store.cells.gated:
            return np.full(len(targets), ABSTAIN, dtype=np.int16), np.ones(len(targets), dtype=bool)
        return self.store.edgeless[targets], self.store.edgeless_stable[targets]

    def _reached(self, copies: Array) -> Array:
        store = self.store
        if store.cells.gated:
            hears: Array = store.union.arriving.length[copies] > 0
            return hears
        if store.cells.on_graphs and not store.cells.by_pair and store.union.members is not None:
            least = 1 if store.cells.keeps_loops else 2
            return np.asarray(self._size_of_cell(copies) >= least)
        return np.ones(len(copies), dtype=bool)

    def _size_of_cell(self, copies: Array) -> Array:
        """Living nodes in the cell of each copy."""
        union = self.store.union
        assert union.members is not None
        inside, lengths = union.members.gather(union.cell[copies])
        alive = self.store.nodes.alive[union.node[inside]]
        return np.bincount(np.repeat(np.arange(len(copies)), lengths), weights=alive, minlength=len(copies))

    def evidence(self, targets: Array, with_cover: bool = False) -> BallotEvidence:
        """Evidence about some targets.

        Args:
            targets: Slots of nodes, or numbers of graphs.
            with_cover: Whether to find out how many ballots other nodes reach, which labels and radii do not depend on;
                else a crude table says that one node reaches all.
        """
        cast, copies = self.votes(targets)
        counted, edgeless = under_vote(cast, self.vote)
        rule = RULES[self.rule]
        reached = np.bincount(cast.owner[cast.reached], minlength=len(targets))
        covers = (reached > 0) & rule.uses_cover
        cover = np.concatenate([[0], np.cumsum(covers)]), reached[covers]
        if with_cover and rule.uses_cover:
            cover = self._cover(targets, copies, cast.owner)
        facts: dict[str, Any] = {}
        if rule.one_way:
            union = self.store.union
            facts["one_way"] = (union.arriving.length[copies] == 0) != (union.leaving.length[copies] == 0)
        if rule.hubs:
            facts["hubs"] = np.zeros(0, dtype=np.int32)
        return BallotEvidence(
            counted,
            self.rule,
            cover[0].astype(np.int64),
            cover[1].astype(np.int32),
            self.ids,
            {},
            self.vote,
            **edgeless,
            **facts,
        )

    def _cover(self, targets: Array, copies: Array, owner: Array) -> tuple[Array, Array]:
        """The exact table of ``voting/cover``, for a few targets."""
        union = self.store.union
        if self.store.cells.on_graphs:  # a node reaches the subgraphs in which it has an edge
            slots = [
                np.fromiter(self.store.nodes.slot_of[graph].values(), dtype=np.int64) for graph in targets.tolist()
            ]
            nodes = np.concatenate(slots)
            inside, lengths = union.of_node.gather(nodes)
            votes = self.store.cells.votes(self.store.nodes, union, inside)
            reach = np.bincount(np.repeat(np.arange(len(nodes)), lengths)[votes], minlength=len(nodes))
            of_graph = np.repeat(np.arange(len(targets)), [len(one) for one in slots])
            pairs = of_graph[reach > 0], reach[reach > 0]
        else:
            mates = [self.reach.component(copies[k : k + 1]) for k in range(len(copies))]
            me = np.repeat(owner, [len(one) for one in mates])
            other = union.node[np.concatenate([*mates, np.zeros(0, dtype=np.int64)])].astype(np.int64)
            apart = other != targets[me]
            met, times = np.unique(me[apart] * (1 << 32) + other[apart], return_counts=True)
            pairs = met >> 32, times
        cap = np.bincount(owner, minlength=len(targets))
        return sums_of_largest(pairs[0], pairs[1], cap, np.zeros(len(targets), dtype=np.int64))
