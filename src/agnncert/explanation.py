"""Why a target has its label: who voted for which class, and what would have to go or come to change the label.

Everything is a whole number and the same on every run. What voters and the votes that are there without any edge give
to each class adds up to the counts that a certificate states.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from agnncert.certificates.class_names import class_word
from agnncert.notebook import framed, paragraph, table
from agnncert.proving.domain import in_domain, name_in_domain

IntArray = npt.NDArray[np.int64]
Pairs = tuple[tuple[Any, Any], ...]  # of ids
MOST_ROWS = 40  # voters that the printed table shows
NEAREST = 2  # classes of which sentences say what would have to come
MOST_EDGES = 3  # edges of a voter that the printed table shows


@dataclass(frozen=True)
class VotingEdge:
    """A directed edge of the graph that brings a vote.

    Attributes:
        source: Id of the node that it leaves.
        head: Id of the node that it enters.
        values: Its own values by name: ``edge_weight`` and ``edge_attr``, as far as the graph has them.
        position: Its column in ``data.edge_index``.
        words: What its ``edge_attr`` says in words of the table that it comes from, empty if there is nothing in this
            direction. ``None`` if the values have no names.
    """

    source: Any
    head: Any
    values: Mapping[str, tuple[float, ...]]
    position: int
    words: str | None = None

    def __str__(self) -> str:
        return self.shown()

    def shown(self, arrow: str = "→") -> str:
        """Returns both ids and the values, in words if there are some."""
        values = []
        for name, row in self.values.items():
            if name == "edge_attr" and self.words is not None:
                values.append(self.words)
            else:
                values.append(f"{name} {', '.join(f'{number:g}' for number in row)}")
        text = "; ".join(value for value in values if value)
        return f"{self.source} {arrow} {self.head}" + (f" ({text})" if text else "")


@dataclass(frozen=True)
class Voter:
    """Who has a vote: a neighbour, or a subgraph with the edges of the target in it.

    Attributes:
        name: What it is, such as "neighbour ann" or "subgraph 7".
        edges: Edges at the target that bring this vote; of a graph, all edges of the subgraph. Without them the vote is
            that of an empty subgraph, or none.
        pairs: The same as pairs of ids, regardless of direction and number of copies. This is what has to be deleted to
            take the vote away.
        votes: What it gives to each class, in parts of a vote (``VoteExplanation.scale``).
        stable: Whether the vote is far enough from a tie to be the same on every machine.
    """

    name: str
    edges: tuple[VotingEdge, ...]
    pairs: Pairs
    votes: tuple[int, ...]
    stable: bool = True


@dataclass(frozen=True)
class Given:
    """Votes that are there without any edge of the target.

    Attributes:
        name: Where they come from, such as "own features".
        votes: What each class is given, in parts of a vote.
    """

    name: str
    votes: tuple[int, ...]


@dataclass(frozen=True)
class Removal:
    """Edges whose deletion changes the label.

    Attributes:
        pairs: Pairs of ids whose edges have to go, all of them. No smaller number of voters suffices.
        voters: Names of the voters that they take away.
        label: The label without them, which was computed again on the graph without these edges.
    """

    pairs: Pairs
    voters: tuple[str, ...]
    label: int


@dataclass(frozen=True)
class Arrival:
    """What would have to come for another class to win.

    Attributes:
        label: The class.
        number: The fewest votes that suffice; ``None`` if no number does.
        what: What these are, such as "new neighbours that give it their whole vote".
    """

    label: int
    number: int | None
    what: str


@dataclass(frozen=True)
class VoteExplanation:
    """Which votes decided the label of a target; ``print`` shows it as a table.

    Attributes:
        target: Id of the node, or row of the graph.
        defence: The defence, as printed.
        label: The label.
        counts: The score of each class as a certificate states it, in whole numbers.
        scale: How many parts make one vote.
        total: The score of each class in parts: the sum of all that ``given`` and ``voters`` give.
        given: Votes that are there without any edge.
        voters: Everybody else who votes, those who help the label most against the runner-up first.
        removal: The fewest voters to take away, with their edges; ``None`` if no deletion of these edges changes the
            label.
        no_removal: Why ``removal`` is ``None``.
        arrivals: What would have to come for each other class, the nearest first.
        class_names: What classes are called; empty if they have numbers only.
        words: What nodes, edges and neighbours are called in the table and the sentences: ``{"edge": "payment"}``.
        edge_names: The names of the columns of ``edge_attr``; empty if they have none.
    """

    target: Any
    defence: str
    label: int
    counts: tuple[int, ...]
    scale: int
    total: tuple[int, ...]
    given: tuple[Given, ...]
    voters: tuple[Voter, ...]
    removal: Removal | None = None
    no_removal: str = ""
    arrivals: tuple[Arrival, ...] = ()
    class_names: tuple[str, ...] = field(default=())
    words: Mapping[str, str] = field(default_factory=dict)
    edge_names: tuple[str, ...] = field(default=())

    @property
    def runner_up(self) -> int:
        """The class with the largest score after the label; the smaller one on a tie."""
        others = [k for k in range(len(self.total)) if k != self.label]
        return max(others, key=lambda k: (self.total[k], -k))

    def with_strongest_first(self) -> "VoteExplanation":
        """Returns the same explanation with the voters that help the label most against the runner-up first."""
        order = sorted(self.voters, key=lambda voter: -self.lead(voter.votes))
        return replace(self, voters=tuple(order))

    def lead(self, votes: Sequence[int], rival: int | None = None) -> float:
        """Returns by how many votes some votes help the label against a rival, by default the runner-up."""
        k = self.runner_up if rival is None else rival
        return (votes[self.label] - votes[k]) / self.scale

    def edge_weights(self, num_edges: int, label: int | None = None) -> npt.NDArray[np.float64]:
        """Returns what the vote of each edge gives to a class over its strongest rival, in votes, ``[num_edges]``.

        Edges without a vote for this target have 0. Edges of one voter share its number.

        Args:
            num_edges: Number of directed edges of the graph.
            label: The class. Defaults to the label.
        """
        winner = self.label if label is None else label
        rival = self.runner_up if winner == self.label else self.label
        weights = np.zeros(num_edges)
        for voter in self.voters:
            weight = (voter.votes[winner] - voter.votes[rival]) / self.scale
            weights[[edge.position for edge in voter.edges]] = weight
        return weights

    def word(self, k: int) -> str:
        """Returns the name of a class, or "class" and its number."""
        return class_word(self.class_names, k)

    def to_json(self) -> dict[str, Any]:
        """Returns everything as JSON values. Ids, class numbers and votes are as here."""
        return {
            "target": self.target,
            "defence": self.defence,
            "label": self.label,
            "runner_up": self.runner_up,
            "class_names": list(self.class_names),
            "edge_names": list(self.edge_names),
            "counts": list(self.counts),
            "scale": self.scale,
            "total": list(self.total),
            "given": [{"name": each.name, "votes": list(each.votes)} for each in self.given],
            "voters": [_voter_json(voter) for voter in self.voters],
            "removal": None if self.removal is None else _removal_json(self.removal),
            "no_removal": self.no_removal,
            "arrivals": [dict(vars(arrival)) for arrival in self.arrivals],
        }

    def json_text(self) -> str:
        """Returns :meth:`to_json` as text."""
        return json.dumps(self.to_json(), ensure_ascii=False, indent=1)

    def rows(self) -> list[list[str]]:
        """Returns the table: who votes, what for the label and for the runner-up, and through which edges."""
        rows = []
        for given in self.given:
            rows.append([in_domain(given.name, self.words), *self._numbers(given.votes), ""])
        for voter in self.voters:
            shown = _shown_edges(voter.edges)
            edges = ", ".join(shown[:MOST_EDGES])
            if len(shown) > MOST_EDGES:
                edges += f" and {len(shown) - MOST_EDGES} more"
            name = name_in_domain(voter.name, self.words)
            if not voter.stable:
                name += " (close to a tie)"
            rows.append([name, *self._numbers(voter.votes), edges])
        rows.append(["all", *self._numbers(self.total), ""])
        return rows

    def titles(self) -> list[str]:
        """Returns the titles of the columns of :meth:`rows`."""
        return ["who", f"for {self.word(self.label)}", f"for {self.word(self.runner_up)}", "helps the label", "through"]

    def _numbers(self, votes: Sequence[int]) -> list[str]:
        numbers = (votes[self.label] / self.scale, votes[self.runner_up] / self.scale, self.lead(votes))
        return [f"{number:.0f}" if self.scale == 1 else f"{number:.3f}" for number in numbers]

    def sentences(self) -> list[str]:
        """Returns what would have to go, and what would have to come for the nearest classes, in sentences."""
        lines = []
        if self.removal is not None:
            pairs = [f"{u} – {v}" for u, v in self.removal.pairs]
            shown = ", ".join(pairs[:MOST_ROWS])
            if len(pairs) > MOST_ROWS:
                shown += f" and {len(pairs) - MOST_ROWS} more"
            what = "this edge" if len(pairs) == 1 else f"these {len(pairs)} edges"
            what = in_domain(what, self.words)
            lines.append(f"Without {what} the label is {self.word(self.removal.label)}: {shown}.")
        elif self.no_removal:
            lines.append(in_domain(self.no_removal, self.words))
        for arrival in self.arrivals[:NEAREST]:
            word = self.word(arrival.label)
            number = "No number of" if arrival.number is None else f"{arrival.number:,}"
            what = in_domain(arrival.what, self.words)
            lines.append(f"For {word}: {number} {what} would be enough.")
        return lines

    def to_pyg(self, data: Any, label: int | None = None) -> Any:
        """Returns PyG's ``Explanation`` of a graph, whose ``edge_mask`` is :meth:`edge_weights`.

        Args:
            data: The graph that was explained; of several graphs, the one that is the target.
            label: The class to explain. Defaults to the label.
        """
        import torch
        from torch_geometric.explain import Explanation

        weights = torch.from_numpy(self.edge_weights(int(data.edge_index.size(1)), label)).float()
        return Explanation(x=data.x, edge_index=data.edge_index, edge_mask=weights)

    def __str__(self) -> str:
        return "\n".join([self._head(), "", *_aligned([self.titles(), *self._shown_rows()]), "", *self.sentences()])

    def _repr_html_(self) -> str:
        """Returns what a notebook shows."""
        votes = table(self.titles(), self._shown_rows())
        return framed(paragraph(self._head()) + votes + paragraph("\n".join(self.sentences())))

    def _head(self) -> str:
        return f"{self.target}: {self.word(self.label)}, by {self.defence}"

    def _shown_rows(self) -> list[list[str]]:
        """Returns the rows of the table, of which a long one leaves out some."""
        rows = self.rows()
        left_out = len(self.voters) - MOST_ROWS
        if left_out <= 0:
            return rows
        more = [f"{left_out:,} more", "", "", "", ""]
        return [*rows[: len(self.given) + MOST_ROWS], more, rows[-1]]


def _shown_edges(edges: Sequence[VotingEdge]) -> list[str]:
    """Returns edges as text. Two directions that say the same in words are one, and one that says nothing is none."""
    by_ends = {(edge.source, edge.head): edge for edge in edges}
    shown = []
    for edge in edges:
        back = by_ends.get((edge.head, edge.source))
        if edge.words is None or back is None:
            shown.append(edge.shown())
        elif edge.words == back.words and edge.values.get("edge_weight") == back.values.get("edge_weight"):
            if edge.position < back.position:
                shown.append(edge.shown("–"))
        elif edge.words:
            shown.append(edge.shown())
    return shown


def _aligned(rows: list[list[str]]) -> list[str]:
    """Returns rows with columns of equal width; numbers are at the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        lines.append("  ".join([*cells, row[-1]]).rstrip())
    return lines


def _voter_json(voter: Voter) -> dict[str, Any]:
    edges = []
    for edge in voter.edges:
        values = {name: list(row) for name, row in edge.values.items()}
        stated: dict[str, Any] = {"source": edge.source, "head": edge.head, "values": values, "position": edge.position}
        if edge.words is not None:
            stated["words"] = edge.words
        edges.append(stated)
    return {
        "name": voter.name,
        "votes": list(voter.votes),
        "stable": voter.stable,
        "edges": edges,
        "pairs": [list(pair) for pair in voter.pairs],
    }


def _removal_json(removal: Removal) -> dict[str, Any]:
    pairs = [list(pair) for pair in removal.pairs]
    return {"pairs": pairs, "voters": list(removal.voters), "label": removal.label}


def winner(total: Sequence[int] | IntArray) -> int:
    """Returns the class with the largest score, the smaller one on a tie."""
    return int(np.argmax(np.asarray(total)))


def fewest_taken_away(total: IntArray, effects: IntArray, costs: IntArray) -> list[int] | None:
    """Returns which voters to take away so that the label changes.

    No smaller number of voters suffices, because each has a fixed effect on the total. Of voters with the same effect,
    those with the least cost are taken first.

    Args:
        total: Score of each class, shape ``[C]``.
        effects: What is added to the score of each class if a voter is taken away, shape ``[m, C]``.
        costs: Number of pairs of each voter, shape ``[m]``.

    Returns:
        Positions of the voters, in ascending order; ``None`` if no choice changes the label.
    """
    label = winner(total)
    choices = []
    for k in range(len(total)):
        if k == label:
            continue
        gains = effects[:, k] - effects[:, label]
        order = np.lexsort((np.arange(len(gains)), costs, -gains))
        order = order[gains[order] > 0]
        needed = int(total[label] - total[k]) + (k > label)
        reached = np.flatnonzero(np.cumsum(gains[order]) >= needed)
        if len(reached):
            taken = order[: int(reached[0]) + 1]
            choices.append((len(taken), int(costs[taken].sum()), k, sorted(taken.tolist())))
    return min(choices)[3] if choices else None


def fewest_to_come(lead: int, gain: int, wins_ties: bool) -> int | None:
    """Returns how many voters suffice that each take ``gain`` parts from a lead; ``None`` if no number does.

    Args:
        lead: Lead of the label over a class, in parts of a vote.
        gain: What each of them takes from it.
        wins_ties: Whether the class wins a tie.
    """
    needed = lead + (not wins_ties)
    if gain <= 0:
        return None
    return max(0, -(-needed // gain))
