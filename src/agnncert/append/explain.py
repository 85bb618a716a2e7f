"""Explains a score that appended rows can only raise: whose rows flagged an account, or how few would."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from agnncert.append.changes import NUMBERS, AroundAccount, Change, in_words, templates_of
from agnncert.append.evidence import as_trees
from agnncert.append.model import AppendModel
from agnncert.append.trees import UNIT
from agnncert.certificates.class_names import names_in_data
from agnncert.explanation import Arrival, Given, Removal, VoteExplanation, Voter
from agnncert.graphs.perturbation import Perturbation
from agnncert.graphs.targets import prepared
from agnncert.graphs.voting_edges import EdgesOfNode, row_of_target

if TYPE_CHECKING:
    from agnncert.append.defence import AppendOnly

MOST_PARTNERS = 60  # whose rows come one after the other; the rest comes together
MOST_ROWS = 400_000  # in all copies of an account with its rows that are looked at to find the order
LEAST_TRIED = 10
FRAMED = {  # by the way that the account sees a row, and whether there are several
    ("in", False): "row to it{like} from a new node",
    ("in", True): "rows to it{like} from new nodes",
    ("out", False): "row from it{like} to a new node",
    ("out", True): "rows from it{like} to new nodes",
}
HIDDEN = "appended rows"


@torch.no_grad()
def explain_account(defence: "AppendOnly", model: AppendModel, data: Any, target: Any) -> VoteExplanation:
    """Explains the score of one account.

    Rows come neighbour by neighbour, those first that raise the score most. What each is given is by how much the score
    rose when its rows came, so that all of it adds up to the score.

    Args:
        defence: The append-only scores.
        model: The model.
        data: The graph.
        target: Id of the account.
    """
    row = row_of_target(data, "node", target)
    chosen = prepared(data, [row]).targets([row])
    account = int(chosen.positions[0])
    values = model.values(chosen.graph)
    around = AroundAccount(values, as_trees(model.tables("tree_")), account)
    threshold, positive = int(model.threshold), model.positive
    groups = _in_order(around)
    steps = around.scores([_only(around, sum(groups[:number], ())) for number in range(len(groups) + 1)])
    total = np.full(2, threshold + (positive == 0), dtype=np.int64)  # the smaller class wins ties
    total[positive] = steps[-1]
    label = positive if steps[-1] > threshold else 1 - positive
    edges = EdgesOfNode(data, row)
    voters = []
    for group, rise in zip(groups, np.diff(steps).tolist(), strict=True):
        name = f"neighbour {edges.ids[group[0]]}" if len(group) == 1 else f"{len(group):,} other neighbours"
        voters.append(Voter(name, edges.between(group), edges.pairs(group), _in_class(rise, positive)))
    other = 1 - positive
    explained = VoteExplanation(
        target=chosen.ids[0],
        defence=str(defence),
        label=label,
        counts=tuple(total.tolist()),
        scale=UNIT,
        total=tuple(total.tolist()),
        given=(
            Given("the threshold", _in_class(int(total[other]), other)),
            Given("own features, without any edge", _in_class(int(steps[0]), positive)),
        ),
        voters=tuple(voters),
        class_names=names_in_data(data, 2),
    )
    if label != positive:
        return _with_framing(explained, around, positive, threshold)
    removal = _removal(defence, model, data, edges, _taken_away(around, groups, threshold))
    reason = "" if removal else "No neighbours were found without whose edges the label changes."
    return replace(explained, removal=removal, no_removal=reason, arrivals=(Arrival(other, None, HIDDEN),))


def _with_framing(explained: VoteExplanation, around: AroundAccount, positive: int, threshold: int) -> VoteExplanation:
    """Returns the explanation of an account that is not flagged, with how few new rows would flag it."""
    found = around.framing(templates_of(around.whole), threshold)
    what = f"of the appended rows that were tried, up to {NUMBERS[-1]},"
    if found is not None:
        what = FRAMED[found.template.way, found.number > 1].format(like=in_words(found.template, around.whole))
    number = None if found is None else found.number
    return replace(explained, arrivals=(Arrival(positive, number, what),))


def _in_class(number: int, k: int) -> tuple[int, int]:
    return (0, number) if k == 1 else (number, 0)


def _in_order(around: AroundAccount) -> list[tuple[int, ...]]:
    """Returns the partners, those whose rows raise the score most first; the last of many are one group."""
    partners, sizes = np.unique(around.other, return_counts=True)
    tried = partners[np.argsort(-sizes, kind="stable")]
    if len(partners) > MOST_PARTNERS:
        tried = tried[: max(LEAST_TRIED, MOST_ROWS // len(around.rows))]
    single = around.scores([_only(around, (int(account),)) for account in tried])
    first = tried[np.argsort(-single, kind="stable")][:MOST_PARTNERS].tolist()
    rest = tuple(np.setdiff1d(partners, np.array(first, dtype=np.int64)).tolist())
    order: list[tuple[int, ...]] = []
    while first and len(first) ** 2 * len(around.rows) <= MOST_ROWS:
        kept = sum(order, ())
        scores = around.scores([_only(around, (*kept, account)) for account in first])
        order.append((first.pop(int(scores.argmax())),))
    return [*order, *((account,) for account in first), *([rest] if rest else [])]


def _only(around: AroundAccount, kept: tuple[int, ...]) -> Change:
    """Returns the change that leaves the rows of some partners alone."""
    return Change(gone=tuple(np.setdiff1d(around.partners, np.array(kept, dtype=np.int64)).tolist()))


def _taken_away(around: AroundAccount, groups: list[tuple[int, ...]], threshold: int) -> list[tuple[int, ...]]:
    """Returns partners without whose rows the score is at most the threshold, the best next one first."""
    left = groups[:MOST_PARTNERS]
    gone: list[tuple[int, ...]] = []
    while left and len(left) * len(around.rows) <= MOST_ROWS:
        before = sum(gone, ())
        scores = around.scores([Change(gone=before + each) for each in left])
        gone.append(left.pop(int(scores.argmin())))
        if scores.min() <= threshold:
            return gone
    return []


def _removal(
    defence: "AppendOnly", model: AppendModel, data: Any, edges: EdgesOfNode, gone: list[tuple[int, ...]]
) -> Removal | None:
    """Returns partners without whose rows the account is not flagged, if the defence says so of that graph."""
    pairs = edges.pairs(account for group in gone for account in group)
    if not pairs:
        return None
    label = int(defence.labels(model, Perturbation(delete_edges=pairs).apply(data), np.array([edges.row]))[0])
    if label == model.positive:
        return None
    return Removal(pairs, tuple(f"neighbour {edges.ids[account]}" for (account, *_) in gone), label)
