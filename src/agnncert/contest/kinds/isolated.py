"""Models that were trained apart (Theorem 15) as a contest."""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import ABSTAIN
from agnncert.contest.form import Attacker, Pool, Target, Unit, leader
from agnncert.contest.kinds.kind import (
    GRAPH,
    MACHINES,
    MISREAD,
    Attack,
    Form,
    Kind,
    Limits,
    all_of,
    becomes_any,
    target_of,
    vote,
)
from agnncert.contest.kinds.labels import VOTERS
from agnncert.contest.kinds.theorem import contest_of
from agnncert.contest.kinds.tiers import (
    HITS,
    LISTED,
    REACHED,
    UNLISTED,
    TierVotes,
    misread_pool,
    reach_row,
)
from agnncert.errors import CertificateError
from agnncert.isolated.record import IsolatedRecord

POISON = "poison"


class IsolatedVotes(Kind):
    """Views of a graph vote, and in each view the models elect its vote.

    A view that n poisoned graphs leave its vote stands until phase n. The views are further targets of the contest.
    """

    def __init__(self, record: IsolatedRecord) -> None:
        self.record = record
        silent = np.full(len(record.group), ABSTAIN, dtype=np.int16)
        self.plain = record.views(silent, np.ones(len(record.group), dtype=bool))
        of_views = contest_of(self.plain.theorem).kind(self.plain)
        if not isinstance(of_views, TierVotes):
            raise CertificateError(f"the theorem {self.plain.theorem!r} puts no votes in tiers, as views need them.")
        self.covers = of_views.covers | {"poison_graphs"}
        self.largest_size = record.num_models
        moves = {**of_views.form.moves, POISON: "a training graph that is poisoned alters one model"}
        kinds = [move for move in moves if move not in (MISREAD, POISON)]
        attackers: dict[str, Attacker] = {}
        of_graph = of_views.attacker(phase={"poison_graphs": 1})
        none = Limits().allow([POISON]).attacker()
        counts = {**of_graph.counts}
        attackers[GRAPH] = Attacker(counts, (*of_graph.limits, *none.limits), of_graph.phase)
        alone = Limits().allow([POISON], ["poison_graphs"]).allow([MISREAD], [MACHINES]).allow(kinds)
        attackers[VOTERS] = alone.attacker()
        extensions = ("phase", *of_views.form.extensions)
        self.form = Form(moves, attackers, extensions)
        self._elected: dict[int, tuple[int, int | None]] = {}

    def of_size(self, size: int) -> tuple[Attack, ...]:
        """Returns the attack on so many training graphs."""
        attack = self.attack(Budget(poison_graphs=size))
        assert attack is not None  # poisoned graphs are what this is about
        return (attack,)

    def target(self, place: int) -> Target:
        """Returns one target: its views, which stand until a number of models is altered."""
        record = self.record
        classes = record.num_classes
        start, stop = int(record.indptr[place]), int(record.indptr[place + 1])
        found: Counter[tuple[int, int, int | None]] = Counter()
        for view in range(start, stop):
            label, until = self.elected(view)
            found[REACHED if record.reached[view] else LISTED, label, until] += 1
        units: dict[int, list[Unit]] = {REACHED: [], LISTED: [], UNLISTED: []}
        unsure = []
        for (tier, label, until), count in sorted(found.items(), key=str):
            if until == -1:
                unsure.append(vote(classes, label, count))
            else:
                units[tier].append(vote(classes, label, count, until))
        if stop - start < record.num_groups:
            units[UNLISTED] = [vote(classes, ABSTAIN, record.num_groups - (stop - start))]
        pools = []
        for tier, of_tier in units.items():
            hit_by = {move: becomes_any(classes) for move in self.form.moves if tier in HITS.get(move, ())}
            pools.append(Pool(hit_by, tuple(of_tier), becomes_any(classes)))
        pools.append(misread_pool(classes, 1, tuple(unsure)))
        tables = {"reach": reach_row(self.plain, place)} if "tables" in self.form.extensions else {}
        return target_of(str(place), all_of(classes, 0), pools, tables=tables)

    def voters(self, places: Iterable[int]) -> Iterator[tuple[Target, Attack]]:
        """Yields the views of some targets, and how many altered models each of them bears."""
        record = self.record
        views = (view for i in places for view in range(int(record.indptr[i]), int(record.indptr[i + 1])))
        for view in views:
            _, until = self.elected(view)
            if until != -1:
                yield self.voter(view), (VOTERS, {"poison_graphs": until, MACHINES: None})

    def voter(self, view: int) -> Target:
        """Returns the models of a view as a target of its own."""
        record = self.record
        classes = record.num_classes
        found = Counter(zip(record.vote[view].tolist(), record.stable[view].tolist(), strict=True))
        units: dict[bool, list[Unit]] = {True: [], False: []}
        for (label, stable), count in sorted(found.items()):
            units[bool(stable)].append(vote(classes, label, count))
        pools = [
            Pool({POISON: becomes_any(classes)}, tuple(units[True])),
            misread_pool(classes, 1, tuple(units[False])),
        ]
        tables = {"reach": ()} if "tables" in self.form.extensions else {}
        return target_of(f"view {view}", all_of(classes, 0), pools, tables=tables)

    def elected(self, view: int) -> tuple[int, int | None]:
        """Returns the class of a view, and how many altered models it bears: -1 if not even rounding, None if all."""
        if view not in self._elected:
            self._elected[view] = _borne(self.record, view)
        return self._elected[view]


def _borne(record: IsolatedRecord, view: int) -> tuple[int, int | None]:
    """Counts the models for each class, and how many altered ones make up for the lead over each other class."""
    stable = record.stable[view]
    seen = [int((record.vote[view][stable] == k).sum()) for k in range(record.num_classes)]
    label = leader(tuple(seen))
    unsure = int((~stable).sum())
    others = int((record.vote[view][stable] != label).sum())
    borne: int | None = None
    for rival in range(record.num_classes):
        if rival == label:
            continue
        lead = seen[label] - seen[rival] - unsure - (rival < label)
        if lead < 0:
            return label, -1
        worth_one = others - seen[rival]
        twice = min(lead // 2, seen[label])
        number = twice + min(lead - 2 * twice, worth_one) if twice == seen[label] else twice
        if number < seen[label] + worth_one and (borne is None or number < borne):
            borne = number
    return label, borne
