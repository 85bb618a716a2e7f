"""Tiny graphs in plain Python, every attack on them, and which votes each attack could change.

Nothing here uses the library's own divisions: groups are drawn at random, and injected nodes get every group,
because the theorems let the attacker choose ids. The model is an arbitrary in-local function: a vote may become
anything as soon as what it is a function of (its *view*) differs from the view in the clean graph.
"""

import itertools
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

Node = int
Pair = tuple[Node, Node]  # sorted; (u, u) is a self-loop
# State of a pair: (arc from the smaller id, arc from the larger id, attribute); absent pairs are not stored.
State = tuple[bool, bool, int]


@dataclass(frozen=True)
class Tiny:
    """A graph, and the group of every node and every pair that exists or might."""

    features: dict[Node, int]
    pairs: dict[Pair, State]
    node_group: dict[Node, int]
    pair_group: dict[Pair, int]
    num_groups: int
    directed: bool = False
    loops: bool = False

    def key(self) -> object:
        """Equal for equal graphs."""
        groups = [sorted(d.items()) for d in (self.node_group, self.pair_group)]
        return (repr(sorted(self.features.items())), repr(sorted(self.pairs.items())), repr(groups))

    def arcs(self) -> Iterator[tuple[Node, Node, int, Pair]]:
        """Every arc with the attribute of its pair."""
        for (u, v), (forward, backward, attribute) in self.pairs.items():
            if forward:
                yield u, v, attribute, (u, v)
            if backward and u != v:
                yield v, u, attribute, (u, v)

    @cached_property
    def by_pair(self) -> list[tuple]:
        """The arcs in the group of their pair, for every group."""
        return self._grouped((self.pair_group[pair], (u, v, attribute)) for u, v, attribute, pair in self.arcs())

    @cached_property
    def by_tail(self) -> list[tuple]:
        """The arcs in the group of their tail, for every group."""
        return self._grouped((self.node_group[u], (u, v, attribute)) for u, v, attribute, _ in self.arcs())

    @cached_property
    def heads(self) -> list[set[Node]]:
        """The nodes at which the arcs of ``by_tail`` end, for every group."""
        return [{v for _, v, _ in arcs} for arcs in self.by_tail]

    @cached_property
    def by_head(self) -> dict[Node | None, list[tuple]]:
        """The arcs that end at each node; self-loops are under ``None``."""
        found: dict[Node | None, list[tuple]] = {}
        for u, v, attribute, _ in self.arcs():
            found.setdefault(v if u != v else None, []).append((u, v, attribute))
        return found

    @cached_property
    def shown(self) -> tuple:
        """The features of all nodes."""
        return tuple(self.features.items())

    def _grouped(self, members: Iterable[tuple[int, tuple]]) -> list[tuple]:
        groups: list[list] = [[] for _ in range(self.num_groups)]
        for group, member in members:
            groups[group].append(member)
        return [tuple(group) for group in groups]


def replace(graph: Tiny, **changes: Any) -> Tiny:
    """As in ``dataclasses``, but in half the time: the attacks below need hundreds of thousands."""
    other = object.__new__(Tiny)
    other.__dict__.update(graph.__dict__, **changes)
    if len(other.__dict__) > len(Tiny.__dataclass_fields__):
        for name in ("by_pair", "by_tail", "heads", "by_head", "shown"):
            other.__dict__.pop(name, None)
    return other


@dataclass(frozen=True)
class Cell:
    """A budget for the enumeration; the same fields as the library's, all finite."""

    add: int = 0
    delete: int = 0
    change: int = 0
    inject: int = 0
    edges_each: int = 0
    delete_nodes: int = 0
    features: int = 0
    own: bool = False
    spare: frozenset[Node] = field(default=frozenset())  # nodes that are neither deleted nor given new features


def random_tiny(rng: random.Random, num_nodes: int, num_groups: int, directed: bool, loops: bool) -> Tiny:
    """A random graph of this size."""
    nodes = range(num_nodes)
    everything = [(u, v) for u in nodes for v in nodes if u < v or (loops and u == v)]
    density = rng.choice([0.3, 0.6, 0.9])
    pairs = {p: rng.choice(_states(p, directed)) for p in everything if rng.random() < density * (p[0] != p[1] or 0.5)}
    return Tiny(
        features=dict.fromkeys(nodes, 0),
        pairs=pairs,
        node_group={u: rng.randrange(num_groups) for u in nodes},
        pair_group={p: rng.randrange(num_groups) for p in everything},
        num_groups=num_groups,
        directed=directed,
        loops=loops,
    )


def _states(pair: Pair, directed: bool, attribute: int = 0) -> list[State]:
    if not directed or pair[0] == pair[1]:
        return [(True, True, attribute)]
    return [(True, True, attribute), (True, False, attribute), (False, True, attribute)]


def _up_to(items: Iterable[object], most: int) -> Iterator[tuple]:
    items = list(items)
    for size in range(min(most, len(items)) + 1):
        yield from itertools.combinations(items, size)


def attacks(
    graph: Tiny, cell: Cell, edge_groups: bool, node_groups: bool, to_the_letter: bool = False
) -> Iterator[tuple[Tiny, frozenset, frozenset]]:
    """Every attacked graph within the budget, with the deleted nodes and the nodes given other features.

    ``edge_groups`` and ``node_groups`` say which choice of groups matters to the division under test. Without
    ``to_the_letter`` an added pair may also rewrite one that is there, which costs the same where edges share groups.
    """
    open_nodes = [u for u in graph.features if u not in cell.spare]
    for deleted in _up_to(open_nodes, cell.delete_nodes):
        rest = _without(graph, deleted)
        for altered in _up_to([u for u in open_nodes if u not in deleted], cell.features + cell.own):
            features = {u: x + (u in altered) for u, x in rest.features.items()}
            for grown in _injections(replace(rest, features=features), graph, deleted, cell, edge_groups, node_groups):
                for attacked in _edge_attacks(grown, cell, edge_groups, to_the_letter):
                    yield attacked, frozenset(deleted), frozenset(altered)


def _without(graph: Tiny, deleted: tuple[Node, ...]) -> Tiny:
    return replace(
        graph,
        features={u: x for u, x in graph.features.items() if u not in deleted},
        pairs={p: s for p, s in graph.pairs.items() if not set(p) & set(deleted)},
    )


def _injections(graph: Tiny, clean: Tiny, deleted, cell: Cell, edge_groups: bool, node_groups: bool) -> Iterator[Tiny]:
    """Up to ``inject`` new nodes, under fresh ids or under ids that a deletion has vacated."""
    fresh = [max(clean.features) + 1 + i for i in range(cell.inject)]
    for count in range(cell.inject + 1):
        for vacated in _up_to(deleted, count):
            new = (*vacated, *fresh[: count - len(vacated)])
            yield from _join(graph, clean, new, cell, edge_groups, node_groups)


def _join(
    graph: Tiny, clean: Tiny, new: tuple[Node, ...], cell: Cell, edge_groups: bool, node_groups: bool
) -> Iterator[Tiny]:
    if not new:
        yield graph
        return
    features = graph.features | dict.fromkeys(new, 7)  # a feature that no other node has
    named = graph.node_group | dict.fromkeys(new, 0) | clean.node_group
    unknown_nodes = [u for u in new if u not in clean.node_group] if node_groups else []
    options = []
    for u in new:
        possible = [tuple(sorted((u, w))) for w in features if w != u or graph.loops]
        options.append(list(_up_to(possible, cell.edges_each)))
    for chosen in itertools.product(*options):
        pairs = sorted({p for picked in chosen for p in picked})
        for states in itertools.product(*[_states(p, graph.directed) for p in pairs]):
            joined = graph.pairs | dict(zip(pairs, states, strict=True))
            for groups in itertools.product(range(graph.num_groups), repeat=len(unknown_nodes)):
                chosen_groups = named | dict(zip(unknown_nodes, groups, strict=True)) if unknown_nodes else named
                grown = replace(graph, features=features, pairs=joined, node_group=chosen_groups)
                yield from _name_pairs(grown, pairs if edge_groups else [])


def _name_pairs(graph: Tiny, pairs: list[Pair]) -> Iterator[Tiny]:
    """Every choice of groups for pairs that have none yet."""
    unknown = [p for p in pairs if p not in graph.pair_group]
    if not unknown:
        yield graph
        return
    for groups in itertools.product(range(graph.num_groups), repeat=len(unknown)):
        yield replace(graph, pair_group=graph.pair_group | dict(zip(unknown, groups, strict=True)))


def _edge_attacks(graph: Tiny, cell: Cell, edge_groups: bool, to_the_letter: bool) -> Iterator[Tiny]:
    """Added, deleted and changed pairs. A new direction of an old pair is an addition: it is a new in-neighbour."""
    if not cell.delete and not cell.change and not cell.add:
        yield graph
        return
    present = list(graph.pairs)
    for removed in _up_to(present, cell.delete):
        for changed in _up_to([p for p in present if p not in removed], cell.change):
            rest = {p: s for p, s in graph.pairs.items() if p not in removed} if removed else graph.pairs
            for states in itertools.product(*[_changed(rest[p], to_the_letter) for p in changed]):
                kept = rest | dict(zip(changed, states, strict=True)) if changed else rest
                if not cell.add:
                    yield replace(graph, pairs=kept)
                    continue
                possible = [
                    (u, v)
                    for u, v in itertools.combinations_with_replacement(sorted(graph.features), 2)
                    if (u != v or graph.loops)
                    and (to_the_letter or (u, v) not in removed)
                    and (u, v) not in changed
                    and not (kept.get((u, v), (False, False))[0] and kept.get((u, v), (False, False))[1])
                ]
                for added in _up_to(possible, cell.add):
                    yield from _add(replace(graph, pairs=kept), added, edge_groups, to_the_letter)


def _changed(state: State, to_the_letter: bool) -> list[State]:
    """Another attribute; or one of two directions less."""
    forward, backward, attribute = state
    fewer = [(True, False, attribute), (False, True, attribute)] if to_the_letter and forward and backward else []
    return [(forward, backward, attribute + 1), *fewer]


def _add(graph: Tiny, added: tuple[Pair, ...], edge_groups: bool, to_the_letter: bool) -> Iterator[Tiny]:
    if not added:
        yield graph
        return
    for states in itertools.product(*[_states(p, graph.directed, 3) for p in added]):
        new = dict(zip(added, states, strict=True))
        if to_the_letter:  # what is there stays
            old = {p: graph.pairs[p] for p in added if p in graph.pairs}
            new |= {p: (new[p][0] or s[0], new[p][1] or s[1], s[2]) for p, s in old.items()}
        grown = replace(graph, pairs=graph.pairs | new)
        yield from _name_pairs(grown, list(added) if edge_groups else [])


# What a vote is a function of, for each division and task. None stands for "abstains".


def rooted(graph: Tiny, arcs: tuple[tuple[Node, Node, int], ...], target: Node, show_target: bool = True) -> object:
    """The part of a subgraph from which the target can be reached, with features and attributes."""
    return _rooted(graph.shown, arcs, target, show_target)


@lru_cache(maxsize=2**14)  # most attacks leave most subgraphs as they are in some other attacked graph
def _rooted(features: tuple, arcs: tuple[tuple[Node, Node, int], ...], target: Node, show_target: bool) -> object:
    of = dict(features)
    heads: dict[Node, list[tuple[Node, int]]] = {}
    for u, v, attribute in arcs:
        heads.setdefault(v, []).append((u, attribute))
    seen, todo, inside = {target}, [target], []
    while todo:
        v = todo.pop()
        for u, attribute in heads.get(v, ()):
            inside.append((u, v, attribute))
            if u not in seen:
                seen.add(u)
                todo.append(u)
    shown = frozenset((u, of[u] if u != target or show_target else None) for u in seen)
    return shown, frozenset(inside)


def edge_views(graph: Tiny, target: Node) -> list[object]:
    """Edge-centric, node task."""
    return [_rooted(graph.shown, arcs, target, True) for arcs in graph.by_pair]


def node_views(graph: Tiny, target: Node) -> list[object]:
    """Node-centric, node task: an arc lies in the group of its tail."""
    return [_rooted(graph.shown, arcs, target, True) for arcs in graph.by_tail]


def gated_views(graph: Tiny, target: Node) -> list[object]:
    """Node-centric with gated features; abstains without an incoming arc, except in the target's own group."""
    own = graph.node_group[target]
    return [
        _rooted(graph.shown, arcs, target, i == own) if i == own or target in heads else None
        for i, (arcs, heads) in enumerate(zip(graph.by_tail, graph.heads, strict=True))
    ]


def edge_graph_views(graph: Tiny, target: Node = 0) -> list[object]:
    """Edge-centric, graph task: the pairs of a group with their ends."""
    views: list[set] = [set() for _ in range(graph.num_groups)]
    for (u, v), state in graph.pairs.items():
        views[graph.pair_group[u, v]] |= {((u, v), state), (u, graph.features[u]), (v, graph.features[v])}
    return [frozenset(view) or None for view in views]


def node_graph_views(graph: Tiny, target: Node = 0) -> list[object]:
    """Node-centric, graph task: the nodes of a group and the pairs among them."""
    views: list[set] = [set() for _ in range(graph.num_groups)]
    for u, x in graph.features.items():
        views[graph.node_group[u]].add((u, x))
    for (u, v), state in graph.pairs.items():
        if graph.node_group[u] == graph.node_group[v]:
            views[graph.node_group[u]].add(((u, v), state))
    return [frozenset(view) or None for view in views]
