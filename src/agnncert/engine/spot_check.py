"""A second look at some votes of the fast engine: they are computed again, one subgraph at a time."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from agnncert.certificates.votes import IntArray, Votes
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.naive import graph_votes, votes_in
from agnncert.engine.rounding import Predictions
from agnncert.errors import ModelContractError
from agnncert.graphs.graph import CanonicalGraph, one_graph

UNLISTED = 256  # targets that are asked whether or not they have an edge in a subgraph
FEW_PASSES, MANY_PASSES, NODES_AGAIN = 3, 24, 500_000


def choose_votes(votes: Votes, number: float, random: np.random.Generator, own_groups: bool = False) -> IntArray:
    """As many pairs (target, group): half among the listed votes, which are few and matter most, half among all.

    Args:
        votes: The votes.
        number: How many; ``math.inf`` for all.
        random: Where chance comes from.
        own_groups: Whether every neighbour has a group of its own. Then nearly all groups are empty for a target and
            say the same, so one of these for each target stands for all of them.
    """
    if own_groups:
        return _choose_listed(votes, number, random)
    total = len(votes.default) * votes.num_groups
    if number >= total:
        chosen = np.arange(total)
    else:
        listed = votes.owner * votes.num_groups + votes.group
        first = random.choice(listed, min(len(listed), int(number) // 2), replace=False) if len(listed) else listed
        others = np.setdiff1d(random.choice(total, int(number), replace=False), first)
        chosen = np.sort(np.concatenate([first, random.permutation(others)[: int(number) - len(first)]]))
    return np.stack([chosen // votes.num_groups, chosen % votes.num_groups], axis=1)


def _choose_listed(votes: Votes, number: float, random: np.random.Generator) -> IntArray:
    """Votes that are cast, and for some targets that of a group which is empty for them: one in four, if any."""
    listed = np.stack([votes.owner, votes.group.astype(np.int64)], axis=1)
    free = np.flatnonzero(votes.num_unlisted)  # targets with an empty group
    wanted = int(min(number, len(listed) + len(free)))
    cast = random.permutation(len(listed))[: wanted - min(wanted // 4, len(free))]
    targets = random.permutation(free)[: wanted - len(cast)]
    empty = np.array([(target, _empty_group(votes, target, random)) for target in targets.tolist()], dtype=np.int64)
    pairs = np.concatenate([listed[cast], empty.reshape(-1, 2)])
    return np.asarray(pairs[np.lexsort(pairs.T[::-1])])


def _empty_group(votes: Votes, target: int, random: np.random.Generator) -> int:
    """A group that is empty for the target."""
    taken = votes.group[votes.indptr[target] : votes.indptr[target + 1]]
    place = int(random.integers(votes.num_groups - len(taken)))  # among those that are not taken, which ascend
    return place + int(np.searchsorted(taken - np.arange(len(taken)), place, side="right"))


def choose_few_subgraphs(
    votes: Votes, on_graphs: bool, random: np.random.Generator, own_groups: bool = False, num_nodes: int = 0
) -> IntArray:
    """Some dozens of pairs (target, group) or more, for the price of a few passes.

    In the node task one pass over a subgraph gives the votes of all targets in it, so these are taken from as few
    subgraphs as have some dozens of listed ones, and beside them the votes of some hundred targets that have no edge
    there; in the graph task each vote is a small pass of its own.

    Args:
        votes: The votes.
        on_graphs: Whether this is the graph task.
        random: Where chance comes from.
        own_groups: Whether every neighbour has a group of its own: a subgraph then has hardly any listed votes, and
            more of them are evaluated.
        num_nodes: Nodes of the graph, by which it is judged how many more are affordable.
    """
    if on_graphs:
        return choose_votes(votes, 48, random, own_groups)
    most = max(FEW_PASSES, min(MANY_PASSES, NODES_AGAIN // max(1, num_nodes))) if own_groups else FEW_PASSES
    listed = np.bincount(votes.group, minlength=votes.num_groups)
    groups = random.permutation(np.flatnonzero(listed == 0 if not listed.any() else listed))
    few = groups[: min(most, 1 + int(np.searchsorted(np.cumsum(listed[groups]), 24)))]
    named = np.zeros(votes.num_groups, dtype=bool)
    named[few] = True
    listed = np.searchsorted(votes.indptr, np.flatnonzero(named[votes.group]), side="right") - 1
    others = random.choice(len(votes.default), min(len(votes.default), UNLISTED), replace=False)
    asked = np.unique(np.concatenate([listed, others]))
    return np.stack([column.ravel() for column in np.meshgrid(asked, few, indexing="ij")], axis=1)


def spot_check(
    votes: Votes,
    call: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    ids: npt.NDArray[Any],
    edges_by_group: EdgesByGroup | None,
    random: np.random.Generator,
) -> None:
    """Casts some votes again, on the very graph that is certified; arguments as in ``spot_check_pairs``.

    Raises:
        ModelContractError: One of them differs; the message names the target by its id.
    """
    pairs = choose_few_subgraphs(votes, graph.task == "graph", random, division.is_per_neighbour, len(graph.x))
    differ, again = spot_check_pairs(votes, pairs, call, graph, division, rows, edges_by_group)
    if differ.size:
        target, group = pairs[differ[0]]
        raise ModelContractError(
            f"{differ.size} of {len(pairs)} votes are others when subgraphs are evaluated one at a time: target "
            f"{ids[target]} votes {again[differ[0]]} in subgraph {group} alone, and otherwise beside other "
            "subgraphs. So the model looks beyond the edges of a node, and nothing can be proved about it."
        )


@torch.no_grad()
def spot_check_pairs(
    votes: Votes,
    pairs: IntArray,
    call: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    edges_by_group: EdgesByGroup | None = None,
) -> tuple[IntArray, npt.NDArray[np.int16]]:
    """Casts the votes of some pairs again.

    Args:
        votes: The votes as they were cast.
        pairs: Targets and groups.
        call: The model, bound to the graph.
        graph: The canonical graph.
        division: How it is divided.
        rows: Rows of the targets.
        edges_by_group: Its edges by group, if these have been found before.

    Returns:
        Which of the pairs vote otherwise although the vote is beyond numerical doubt, and what each of them votes.
    """
    again = _recompute(call, graph, division, rows, pairs, edges_by_group)
    first, stable = _stored(votes, pairs)
    return np.flatnonzero((first != again) & stable), again


def _stored(votes: Votes, pairs: IntArray) -> Predictions:
    """The votes of some pairs (target, group) as they stand in the votes, and whether they are stable."""
    named = np.zeros(votes.num_groups, dtype=bool)
    named[pairs[:, 1]] = True
    listed = np.flatnonzero(named[votes.group])  # of a few groups, as a rule
    owner = np.searchsorted(votes.indptr, listed, side="right") - 1
    key = np.append(owner * votes.num_groups + votes.group[listed], -1)
    wanted = pairs[:, 0] * votes.num_groups + pairs[:, 1]
    place = np.searchsorted(key[:-1], wanted)
    is_listed = key[place] == wanted
    vote, stable = votes.default[pairs[:, 0]], votes.default_stable[pairs[:, 0]]  # copies: indexed by an array
    place = listed[place[is_listed]]
    vote[is_listed], stable[is_listed] = votes.vote[place], votes.stable[place]
    return vote, stable


def _recompute(
    call: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    pairs: IntArray,
    edges_by_group: EdgesByGroup | None,
) -> npt.NDArray[np.int16]:
    """Votes of pairs (target, group): subgraph by subgraph in the node task, graph by graph in the graph task."""
    on_graphs = graph.task == "graph"
    again = np.empty(len(pairs), dtype=np.int16)
    by = pairs[:, 0] if on_graphs else pairs[:, 1]
    groups = None if on_graphs or edges_by_group is not None else division.groups(graph)
    for index in np.unique(by).tolist():
        here = by == index
        if on_graphs:
            place, most = pairs[here, 1], division.num_groups_in(graph)
            votes, _ = graph_votes(call, one_graph(graph, index), division, None, most, set(place.tolist()))
            again[here] = votes[place]
        else:
            inside = groups if edges_by_group is None else edges_by_group.groups_of([index])
            again[here] = _in_subgraph(call, graph, division, inside, index, rows[pairs[here, 0]])
    return again


def _in_subgraph(
    call: ModelAdapter, graph: CanonicalGraph, division: Division, groups: Any, index: int, targets: IntArray
) -> npt.NDArray[np.int16]:
    """Votes of some nodes in one subgraph, which is evaluated alone, and without nodes that matter to nobody.

    Somebody's own division, or one that proves something about edges alone, may have a model that mixes all nodes: then
    no node is left out.
    """
    part = division.subgraph(graph, groups, index)
    if not division.has_disjoint_union:
        return np.asarray(votes_in(call, part, None)[0][targets])
    shown = torch.zeros(len(graph.x), dtype=torch.bool)
    shown[torch.from_numpy(targets)] = True
    shown[part.edge_index.flatten().long()] = True
    few = part.with_nodes(shown.nonzero().view(-1), torch.arange(part.num_edges))
    place = torch.cumsum(shown, 0)[torch.from_numpy(targets)] - 1
    votes, _ = votes_in(replace(call, copies=False), few, None)
    return np.asarray(votes[place.numpy()])
