"""A second look at some votes of the fast engine: they are computed again, one subgraph at a time.

Some votes are checked so before a certificate is made, and more when it is verified.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from agnncert.certificates.votes import IntArray, Votes
from agnncert.divisions.base import Division
from agnncert.engine.adapter import ModelAdapter
from agnncert.engine.edges_by_group import EdgesByGroup
from agnncert.engine.exact_votes import part_that_matters
from agnncert.engine.naive import graph_votes, votes_in
from agnncert.engine.rounding import Predictions
from agnncert.errors import ModelContractError
from agnncert.graphs.graph import CanonicalGraph, one_graph
from agnncert.models.message_hops import hops_of
from agnncert.progress import CHECKING, OnProgress, tell

UNITS_OF_ROUNDING = 32  # by which the logits of a module may always be moved
VOTES_OF_GRAPHS = 48  # votes that are checked in the graph task
LISTED_VOTES = 24  # listed votes that are checked in the node task, if a few subgraphs have that many
MOST_LISTED_TARGETS = 2**14  # targets with a listed vote that are checked in each of these subgraphs
UNLISTED_TARGETS = 256  # targets that are checked in each of these subgraphs, whether or not they have an edge there
FEW_SUBGRAPHS = 3  # that are evaluated in the node task
MANY_SUBGRAPHS = 24  # that are evaluated if every neighbour has a group of its own, and the graph is small
EDGES_EVALUATED = 2**18  # up to which all edges of a subgraph are evaluated, whether or not they matter
NODES_EVALUATED = 500_000  # that the many subgraphs may have together


class SpotCheck(NamedTuple):
    """What came of computing votes again.

    Attributes:
        differing: Positions of the pairs whose vote differs although it is stable, both times if rounding is bounded.
        vote: What each pair votes now.
    """

    differing: IntArray
    vote: npt.NDArray[np.int16]


class Sample(NamedTuple):
    """Votes that are to be computed again.

    Attributes:
        pairs: Their targets and groups, shape ``[k, 2]``.
        subgraphs: Node task: the subgraphs of these groups, by group. None in the graph task.
    """

    pairs: IntArray
    subgraphs: Mapping[int, CanonicalGraph]


def draw_sample(
    votes: Votes,
    graph: CanonicalGraph,
    division: Division,
    edges_by_group: EdgesByGroup | None,
    random: np.random.Generator,
) -> Sample:
    """Chooses some votes, and lays out the few subgraphs that they are cast in.

    The edges by group are not needed any more then, and take much memory.

    Args:
        votes: The votes.
        graph: The canonical graph.
        division: How it is divided.
        edges_by_group: The graph's edges by group, if they have been found before.
        random: Source of randomness.
    """
    on_graphs = graph.task == "graph"
    pairs = choose_few_subgraphs(votes, on_graphs, random, division.is_per_neighbour, len(graph.x))
    if on_graphs:
        return Sample(pairs, {})
    indices = np.unique(pairs[:, 1]).tolist()
    groups = division.groups(graph) if edges_by_group is None else edges_by_group.groups_of(indices)
    return Sample(pairs, {index: division.subgraph(graph, groups, index) for index in indices})


def spot_check(
    votes: Votes,
    sample: Sample,
    bound_model: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    *,
    rows: IntArray,
    ids: npt.NDArray[Any],
    progress: OnProgress | None = None,
) -> None:
    """Computes some votes again, on the very graph that is certified.

    Args:
        votes: The votes.
        sample: Which of them.
        bound_model: The model, bound to the graph.
        graph: The canonical graph.
        division: How it is divided.
        rows: Rows of the targets.
        ids: Ids of the targets.
        progress: Is told how many subgraphs (graph task: graphs) have been looked at.

    Raises:
        ModelContractError: A vote differs; the message names the target by its id.
    """
    pairs, subgraphs = sample
    differing = []
    place = pairs[:, 0 if graph.task == "graph" else 1]
    places = np.unique(place)
    for number, one in enumerate(places):
        tell(progress, CHECKING, number, len(places))
        of_one = pairs[place == one]
        checked = spot_check_pairs(votes, of_one, bound_model, graph, division, rows, subgraphs=subgraphs)
        differing += [(*of_one[k].tolist(), int(checked.vote[k])) for k in checked.differing]
    tell(progress, CHECKING, len(places), len(places))
    if differing:
        target, group, vote = differing[0]
        raise ModelContractError(
            f"{len(differing)} of {len(pairs)} votes are others when subgraphs are evaluated one at a time: "
            f"target {ids[target]} votes {vote} in subgraph {group} alone, and otherwise beside other "
            f"subgraphs. {_reason(bound_model)}"
        )


def _reason(bound_model: ModelAdapter) -> str:
    """Returns why a stable vote may differ, as far as it is known."""
    if bound_model.rounding == "watched":
        return "So the model looks beyond the edges of a node, and nothing can be proved about it."
    return (
        "Every layer of the model was read, so the fault is in agnncert, or in the libraries that it calls, and not in "
        "the model: please report it, with the model and the graph if you can. No certificate was made."
    )


@torch.no_grad()
def spot_check_pairs(
    votes: Votes,
    pairs: IntArray,
    bound_model: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    *,
    subgraphs: Mapping[int, CanonicalGraph] | None = None,
) -> SpotCheck:
    """Computes the votes of some pairs (target, group) again.

    Args:
        votes: The votes.
        pairs: Targets and groups, shape ``[k, 2]``.
        bound_model: The model, bound to the graph.
        graph: The canonical graph.
        division: How it is divided.
        rows: Rows of the targets.
        subgraphs: Node task: the subgraphs of these groups, by group, if they have been laid out before.
    """
    before = _votes_of_pairs(votes, pairs)
    # Votes of known models are evaluated in a way of our own. Here the module itself is called.
    module = replace(bound_model, rounding="watched")
    hops = None if bound_model.rounding == "watched" else hops_of(bound_model.model)
    again = _votes_again(module, graph, division, rows, pairs, subgraphs, tolerance=None, hops=hops)
    differs = (before.vote != again.vote) & before.stable
    if bound_model.rounding != "watched" and differs.any():
        # Where the sums of the module are close to a tie or long, it may vote otherwise than exact arithmetic does.
        tolerance = UNITS_OF_ROUNDING * torch.finfo(bound_model.dtype).eps
        again = _votes_again(module, graph, division, rows, pairs, subgraphs, tolerance=tolerance, hops=hops)
        differs &= again.stable
    return SpotCheck(np.flatnonzero(differs), again.vote)


def _votes_again(
    bound_model: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    pairs: IntArray,
    subgraphs: Mapping[int, CanonicalGraph] | None,
    *,
    tolerance: float | None,
    hops: int | None,
) -> Predictions:
    """Computes the votes of pairs, one subgraph at a time.

    Args:
        bound_model: As in :func:`spot_check_pairs`, like all arguments that are not named here.
        tolerance: As in ``compute_votes``.
        hops: As in :func:`_votes_near`.
    """
    if graph.task == "graph":
        return _votes_of_graphs(bound_model, graph, division, pairs, tolerance)
    return _votes_of_nodes(bound_model, graph, division, rows, pairs, subgraphs, tolerance=tolerance, hops=hops)


def choose_votes(votes: Votes, number: float, random: np.random.Generator, per_neighbour: bool = False) -> IntArray:
    """Chooses pairs (target, group) at random: half among the listed votes, which are few and matter most.

    Args:
        votes: The votes.
        number: How many pairs; ``math.inf`` for all.
        random: Source of randomness.
        per_neighbour: Whether every neighbour has a group of its own. Then nearly all groups are empty for a target and
            say the same, so one of these for each target stands for all of them.

    Returns:
        Targets and groups in ascending order, shape ``[k, 2]``.
    """
    if per_neighbour:
        return _choose_per_neighbour(votes, number, random)
    total = len(votes.default) * votes.num_groups
    if number >= total:
        return _pairs_of(np.arange(total), votes.num_groups)
    number = int(number)
    listed = votes.owner * votes.num_groups + votes.group
    among_listed = listed
    if len(listed):
        among_listed = random.choice(listed, min(len(listed), number // 2), replace=False)
    others = np.setdiff1d(random.choice(total, number, replace=False), among_listed)
    among_all = random.permutation(others)[: number - len(among_listed)]
    return _pairs_of(np.sort(np.concatenate([among_listed, among_all])), votes.num_groups)


def _pairs_of(number: IntArray, num_groups: int) -> IntArray:
    """Returns pairs (target, group) from their numbers, ``target * num_groups + group``."""
    return np.stack([number // num_groups, number % num_groups], axis=1)


def _choose_per_neighbour(votes: Votes, number: float, random: np.random.Generator) -> IntArray:
    """Chooses listed votes, and for some targets the vote of a group that is empty for them: one in four, if any."""
    listed = np.stack([votes.owner, votes.group.astype(np.int64)], axis=1)
    with_empty_group = np.flatnonzero(votes.num_unlisted)
    wanted = int(min(number, len(listed) + len(with_empty_group)))
    num_empty = min(wanted // 4, len(with_empty_group))
    some_listed = listed[random.permutation(len(listed))[: wanted - num_empty]]
    targets = random.permutation(with_empty_group)[: wanted - len(some_listed)]
    empty = [(target, _empty_group(votes, target, random)) for target in targets.tolist()]
    pairs = np.concatenate([some_listed, np.array(empty, dtype=np.int64).reshape(-1, 2)])
    return np.asarray(pairs[np.lexsort(pairs.T[::-1])])


def _empty_group(votes: Votes, target: int, random: np.random.Generator) -> int:
    """Chooses a group that is empty for the target."""
    listed = votes.group[votes.indptr[target] : votes.indptr[target + 1]]
    rank = int(random.integers(votes.num_groups - len(listed)))  # among the empty groups, which ascend
    empty_groups_before = listed - np.arange(len(listed))
    return rank + int(np.searchsorted(empty_groups_before, rank, side="right"))


def choose_few_subgraphs(
    votes: Votes, on_graphs: bool, random: np.random.Generator, per_neighbour: bool = False, num_nodes: int = 0
) -> IntArray:
    """Chooses some dozens of pairs (target, group), or more, whose votes can be computed in a few passes.

    In the node task one pass over a subgraph gives the votes of all targets in it. So as few subgraphs are chosen as
    have some dozens of listed votes, and beside these the votes of some hundred targets that have no edge there. In
    the graph task each vote is a small pass of its own.

    Args:
        votes: The votes.
        on_graphs: Whether this is the graph task.
        random: Source of randomness.
        per_neighbour: Whether every neighbour has a group of its own. A subgraph then has hardly any listed votes, and
            more of them are evaluated.
        num_nodes: Number of nodes of the graph, which limits how many more.

    Returns:
        Targets and groups, shape ``[k, 2]``.
    """
    if on_graphs:
        return choose_votes(votes, VOTES_OF_GRAPHS, random, per_neighbour)
    most = FEW_SUBGRAPHS
    if per_neighbour:
        most = max(FEW_SUBGRAPHS, min(MANY_SUBGRAPHS, NODES_EVALUATED // max(1, num_nodes)))
    groups = _groups_with_votes(votes, most, random)
    others = random.choice(votes.num_targets, min(votes.num_targets, UNLISTED_TARGETS), replace=False)
    listed = _listed_targets(votes, groups)
    if len(listed) > MOST_LISTED_TARGETS:
        listed = random.choice(listed, MOST_LISTED_TARGETS, replace=False)
    targets = np.unique(np.concatenate([listed, others]))
    target, group = np.meshgrid(targets, groups, indexing="ij")
    return np.stack([target.ravel(), group.ravel()], axis=1)


def _groups_with_votes(votes: Votes, most: int, random: np.random.Generator) -> IntArray:
    """Chooses as few groups as have ``LISTED_VOTES`` listed votes together, ``most`` at most."""
    num_listed = np.bincount(votes.group, minlength=votes.num_groups)
    candidates = np.flatnonzero(num_listed) if num_listed.any() else np.arange(votes.num_groups)
    groups = random.permutation(candidates)
    enough = 1 + int(np.searchsorted(np.cumsum(num_listed[groups]), LISTED_VOTES))
    return groups[: min(most, enough)]


def _listed_targets(votes: Votes, groups: IntArray) -> IntArray:
    """Returns the target of each listed vote of some groups."""
    return np.searchsorted(votes.indptr, _listed_in(votes, groups), side="right") - 1


def _listed_in(votes: Votes, groups: IntArray) -> IntArray:
    """Returns positions of the listed votes of some groups, ascending."""
    is_wanted = np.zeros(votes.num_groups, dtype=bool)
    is_wanted[groups] = True
    return np.flatnonzero(is_wanted[votes.group])


def _votes_of_pairs(votes: Votes, pairs: IntArray) -> Predictions:
    """Returns the votes of some pairs (target, group) as they were computed at first."""
    target = pairs[:, 0]
    group = pairs[:, 1]
    vote = votes.default[target]  # a copy, because it is indexed by an array
    stable = votes.default_stable[target]
    listed = _listed_in(votes, group)
    owner = np.searchsorted(votes.indptr, listed, side="right") - 1
    number_of_listed = owner * votes.num_groups + votes.group[listed]
    number = target * votes.num_groups + group
    rank = np.searchsorted(number_of_listed, number)
    is_listed = np.append(number_of_listed, -1)[rank] == number
    position = listed[rank[is_listed]]
    vote[is_listed] = votes.vote[position]
    stable[is_listed] = votes.stable[position]
    return Predictions(vote, stable)


def _votes_of_graphs(
    bound_model: ModelAdapter, graph: CanonicalGraph, division: Division, pairs: IntArray, tolerance: float | None
) -> Predictions:
    """Computes the votes of pairs of the graph task, graph by graph."""
    num_groups = division.num_groups_in(graph)
    again = Predictions(np.empty(len(pairs), dtype=np.int16), np.empty(len(pairs), dtype=bool))
    for target in np.unique(pairs[:, 0]).tolist():
        is_its = pairs[:, 0] == target
        groups = pairs[is_its, 1]
        wanted = set(groups.tolist())
        votes = graph_votes(bound_model, one_graph(graph, target), division, tolerance, num_groups, wanted)
        again.vote[is_its] = votes.vote[groups]
        again.stable[is_its] = votes.stable[groups]
    return again


def _votes_of_nodes(
    bound_model: ModelAdapter,
    graph: CanonicalGraph,
    division: Division,
    rows: IntArray,
    pairs: IntArray,
    subgraphs: Mapping[int, CanonicalGraph] | None,
    *,
    tolerance: float | None,
    hops: int | None,
) -> Predictions:
    """Computes the votes of pairs of the node task, subgraph by subgraph."""
    indices = np.unique(pairs[:, 1]).tolist()
    subgraph_of: Callable[[int], CanonicalGraph]
    if subgraphs is None:
        subgraph_of = partial(division.subgraph, graph, division.groups(graph))
    else:
        subgraph_of = subgraphs.__getitem__
    again = Predictions(np.empty(len(pairs), dtype=np.int16), np.empty(len(pairs), dtype=bool))
    for index in indices:
        is_its = pairs[:, 1] == index
        subgraph = subgraph_of(index)
        targets = torch.from_numpy(rows[pairs[is_its, 0]])
        if division.has_disjoint_union:
            votes = _votes_near(bound_model, subgraph, targets, tolerance, hops)
        else:  # the model of such a division may mix all nodes, so no node is left out
            of_all = votes_in(bound_model, subgraph, tolerance)
            votes = Predictions(of_all.vote[targets.numpy()], of_all.stable[targets.numpy()])
        again.vote[is_its] = votes.vote
        again.stable[is_its] = votes.stable
    return again


def _votes_near(
    bound_model: ModelAdapter, subgraph: CanonicalGraph, targets: Tensor, tolerance: float | None, hops: int | None
) -> Predictions:
    """Computes the votes of some nodes in a subgraph without the nodes that matter to none of them.

    Args:
        bound_model: The model.
        subgraph: The subgraph.
        targets: The nodes.
        tolerance: As in ``compute_votes``.
        hops: Over how many edges messages travel; ``None`` if the layers are not known. Nodes without edges are then
            the only ones that are sure not to matter, and only these are left out of small subgraphs.
    """
    is_target = torch.zeros(len(subgraph.x), dtype=torch.bool)
    is_target[targets] = True
    source, head = subgraph.edge_index.long()
    if hops is None or subgraph.num_edges <= EDGES_EVALUATED:
        is_kept = is_target.clone()
        is_kept[source] = True
        is_kept[head] = True
        edges = torch.arange(subgraph.num_edges)
    else:
        is_kept, is_kept_edge = part_that_matters(source, head, is_target, hops)
        edges = is_kept_edge.nonzero().view(-1)
    kept = subgraph.with_nodes(is_kept.nonzero().view(-1), edges)
    position = (torch.cumsum(is_kept, 0)[targets] - 1).numpy()
    votes = votes_in(replace(bound_model, copy_inputs=False), kept, tolerance)
    return Predictions(votes.vote[position], votes.stable[position])
