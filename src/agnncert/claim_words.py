"""The sentences of a claim about a vote. Each follows from the rule and a few facts, from nothing else."""

from collections.abc import Iterator
from dataclasses import dataclass

_WHATEVER_DEGREE = (
    "one edge added, deleted or changed, or one node injected, deleted or given other features, whatever its "
    "degree"
)
_UNITS = {
    "edge-centric": (
        "one edge added, deleted or changed; a node that is injected, deleted or given other features counts "
        "once for each of its edges"
    ),
    "node-centric": _WHATEVER_DEGREE,
    "gated": f"{_WHATEVER_DEGREE}; the target's own features count like those of any other node",
    "gnncert-e": "one edge between existing nodes added, deleted or changed",
    "gnncert-n": "one existing node given other features",
    "gnncert-en": (
        "one ballot; an edge moves as many as there are feature groups, the features of a node as many as "
        "there are edge groups"
    ),
    "custom": "one ballot; the division states how many each change moves",
}

_EDGES = "Edges added or deleted anywhere, and edges given another weight, attribute or number of copies."
_NODES = "Nodes injected with any features, each with as many edges as the budget allows, or with any number."
_OTHERS = "Nodes deleted with all their edges, and features of other nodes changed to anything."
_MIX = "Any mix of these in one attack: ask holds_against(Budget(...))."
_PRICE_NAMES = {
    "add_edges": "an added edge",
    "delete_edges": "a deleted edge",
    "change_edges": "a changed edge",
    "inject_nodes": "an injected node",
    "edges_per_injected": "an edge of an injected node",
    "delete_nodes": "a deleted node",
    "change_features": "a node with other features",
    "target_features": "the target's own features",
}


@dataclass(frozen=True)
class Vote:
    """The facts that the sentences follow from.

    Attributes:
        division: First part of the rule's name, such as ``"edge-centric"``.
        task: ``"node"`` or ``"graph"``.
        by_row: Whether row numbers stand in for ids.
        tolerance: How far apart two evaluations of a score may lie.
        model_digest: SHA-256 of the model, or empty.
        parameters: Whole numbers of the rule.
    """

    division: str
    task: str
    by_row: bool
    tolerance: float
    model_digest: str
    parameters: dict[str, int]

    @property
    def own_features(self) -> bool:
        """Whether the target's own features are covered; of a graph, the features of any node are."""
        covered = self.division in ("gated", "gnncert-n", "gnncert-en")
        return self.task == "graph" or covered or "target_features" in self.parameters

    @property
    def divides_whole_graph(self) -> bool:
        """Whether this is one of the divisions that cover edges, nodes and features alike."""
        return self.division in ("edge-centric", "node-centric", "gated")

    def unit(self) -> str:
        """What one step of the radius counts."""
        return _UNITS[self.division]

    def covers(self) -> Iterator[str]:
        """The changes that are covered."""
        if self.divides_whole_graph:
            yield _EDGES
            yield _NODES + (" They are appended after the existing rows." if self.by_row else "")
            yield "Features of other nodes changed to anything." if self.by_row else _OTHERS
            yield _MIX
        elif self.division == "gnncert-e":
            yield "Edges between existing nodes added, deleted or changed."
        elif self.division == "gnncert-n":
            yield "Features of existing nodes changed to anything."
        elif self.division == "gnncert-en":
            yield "Edges between existing nodes, and features of existing nodes, changed in one attack."
        else:
            named = [
                (words, self.parameters[name])
                for name, words in _PRICE_NAMES.items()
                if name in self.parameters
            ]
            prices = [f"{words} moves at most {price}" for words, price in named]
            yield f"In ballots: {', '.join(prices)}." if prices else "Nothing beyond the unchanged graph."

    def assumes(self) -> Iterator[str]:
        """What must be true."""
        if self.task == "node":
            yield "The target is not deleted and keeps its id."
        if not self.own_features:
            yield "The target's own features are unchanged."
        yield "An edge is an unordered pair of nodes; a new direction of an old pair counts as an added edge."
        if self.by_row:
            yield "Row numbers are the ids of the nodes: injected nodes come last, and no node is deleted."
        else:
            yield "Ids are unique and stay with their nodes; only the id of a deleted node may be used again."
        named = f" with SHA-256 {self.model_digest}" if self.model_digest else ""
        yield f"The model{named} and the division are the ones that cast these ballots, in evaluation mode."
        yield from self._locality()
        if self.tolerance > 0:
            yield (
                f"No score moves by more than {self.tolerance:g} of the largest when the same subgraph is "
                "evaluated again, on any machine; ballots closer to a tie than twice that are conceded "
                "to the attacker."
            )
        else:
            yield "Evaluating the same subgraph again gives the same ballot, on any machine."

    def _locality(self) -> Iterator[str]:
        if self.division == "custom":
            yield "The division's own statement of how many ballots a change moves is true."
        elif self.divides_whole_graph and self.task == "node":
            yield "The model predicts a node from its own features and from nodes whose messages reach it."
        elif self.divides_whole_graph:
            yield "The model sees one subgraph at a time: the nodes of that subgraph and no others."

    def not_proved(self) -> Iterator[str]:
        """What is not proved."""
        yield "That the label is correct: only that it stays the same."
        yield "Anything about attacks on the training data: the model is taken as it is."
        if not self.own_features:
            yield "Changes of the target's own features: they reach every subgraph and are never certified."
        if self.by_row:
            yield "Deletion of nodes: without a node_id in the data it renames all later rows."
        if self.divides_whole_graph and self.task == "node" and self.division != "gated":
            yield (
                "That the graph mattered: a radius at or above the target's degree means that the label is "
                "the one predicted without any edges."
            )
        if not self.divides_whole_graph:
            yield "Any change that is not listed as covered."
