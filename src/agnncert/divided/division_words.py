"""The words for divisions: what a step of the radius is, and what a page says about one target."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from agnncert.proving.words import Deed, StepWords


@dataclass(frozen=True)
class DivisionWords:
    """The words for a division.

    Attributes:
        step: What a unit of the radius is.
        presets: What the explorer of a page offers to change at first: "edges", "features".
        target: Sentences about one target, where they are not the usual ones of its task.
    """

    step: StepWords
    presets: tuple[str, ...]
    target: Mapping[str, str] = field(default_factory=dict)


def own_group_target(thing: str, each: str, none: str, title: str) -> Mapping[str, str]:
    """Returns sentences about one target where every neighbour, edge or node has its own subgraph."""
    return MappingProxyType(
        {
            "listed_short": f"of its {thing}s",
            "listed_sentence": f"One vote for each {each}: {{count}}.",
            "none_listed_sentence": f"{none}, so no vote is cast.",
            "grid_sentence": f"One square for each {thing}; the number is the class voted for.",
            "group_title": title,
        }
    )


# Where no group is known to be empty, so that all votes are listed.
ALL_LISTED = MappingProxyType(
    {
        "listed_short": "listed one by one",
        "listed_sentence": "All {count} are listed.",
        "none_listed_sentence": "No vote is listed.",
        "default_sentence": "{count} further subgraphs cast its default vote: {vote}.",
        "reached_title": "Can be moved",
    }
)
VOTES = StepWords("changed vote", "changed votes")
CHANGES_EDGES = Deed("changes any one edge", "changes any {size} edges")
CHANGES_FEATURES = Deed("changes the features of any one node", "changes the features of any {size} nodes")
MOVES_VOTES = Deed("moves any one vote", "moves any {size} votes")
