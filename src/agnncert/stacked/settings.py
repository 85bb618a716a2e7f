"""The settings of stacked votes."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, Self

from agnncert.errors import SettingsError

LEAST_WEIGHT, LARGEST_WEIGHT = 0.001, 1000.0
MANY_ROWS = 2000  # training nodes from which on the small networks are larger


@dataclass(frozen=True)
class StackedSettings:
    """How stacked votes are combined, and how ``fit`` trains them.

    Attributes:
        size: Target perturbation size: how many changes training prepares for.
        of_neighbours: Training prepares each node for ``size`` changes, but for no more than this share of its
            neighbours: 0.5 asks a node with two neighbours to withstand one. None asks the same of all nodes. Few
            neighbours cannot outvote many changes, so that a large size otherwise makes training give up the votes of
            all nodes, also where neighbours are many. With a share more votes are kept, and more labels are right
            without an attack; fewer are certified at that size, and a smaller ``size`` serves most graphs better.
        levels: 1, or 2 if the vote of a neighbour depends on its neighbours. Two levels certify edges like one level,
            but injected and deleted nodes less.
        combine: ``"sum"`` or ``"mean"`` of the votes. A mean suits graphs whose degrees differ much.
        gated: Whether votes for a class that the target's own features exclude count less. This helps against
            additions only.
        edge_values: Whether votes read ``edge_weight`` and ``edge_attr``, and the direction of the edge.
        trusted: Column of ``edge_attr`` that is positive for edges which no attacker can change; None if there is none.
        folds: Number of models without edges. Each is trained without one part of the training nodes.
        hidden: Width of the small networks.
        refine: Whether a small network corrects the score of the target's own features. Defaults to True from 2,000
            training nodes on.
        epochs: Epochs of the small networks.
        weight_decay: Weight decay of the small networks. Defaults to 1e-4 from 2,000 training nodes on, else to 5e-3.
        edge_blind: Whether training reads no edge: votes are the neighbours' own predictions with a fixed weight, and
            nothing is trained on top. Certificates then hold for edges that are changed at any time, also before
            training. ``size``, ``of_neighbours``, ``hidden``, ``refine``, ``epochs`` and ``weight_decay`` do not matter
            then.
        vote_weight: What a vote counts beside a log-probability of the target's own features, if ``edge_blind``. It is
            fixed before training. Defaults to 0.25.
    """

    size: float = 1
    levels: Literal[1, 2] = 1
    combine: Literal["sum", "mean"] = "sum"
    gated: bool = False
    edge_values: bool = False
    trusted: int | None = None
    folds: int = 5
    hidden: int = 32
    refine: bool | None = None
    epochs: int = 220
    weight_decay: float | None = None
    edge_blind: bool = False
    vote_weight: float = 0.25
    of_neighbours: float | None = field(default=None, metadata={"later": True})  # for digests: see models.digest

    def __post_init__(self) -> None:
        if self.levels not in (1, 2) or self.combine not in ("sum", "mean"):
            raise SettingsError(f"{self!r}: levels is 1 or 2, combine is 'sum' or 'mean'.")
        if self.levels == 2 and (self.combine != "sum" or self.gated or self.edge_values or self.trusted is not None):
            # The vote along a trusted edge would follow the neighbours' neighbours, whom an attacker changes.
            raise SettingsError("levels=2 goes with combine='sum', without gates, edge values and trusted edges.")
        if self.gated and (self.combine != "sum" or self.edge_values):
            raise SettingsError("gated=True goes with combine='sum' and without edge values.")
        for name, least in (("size", 0), ("folds", 2), ("hidden", 1), ("epochs", 1), ("weight_decay", 0)):
            value, whole = getattr(self, name), name in ("folds", "hidden", "epochs")
            if value is not None and not (isinstance(value, int if whole else int | float) and value >= least):
                kind = "a whole number of " if whole else ""
                raise SettingsError(f"StackedVotes({name}={value!r}): expected {kind}at least {least}.")
        share = self.of_neighbours
        is_number = isinstance(share, int | float) and not isinstance(share, bool)
        if share is not None and not (is_number and 0 < share <= 1):
            raise SettingsError(f"StackedVotes(of_neighbours={share!r}): expected a share above 0 and up to 1.")
        if share is not None and self.combine == "mean":
            raise SettingsError("of_neighbours goes with combine='sum': a mean gives each node one vote in all.")
        self._check_edge_blind()
        for name in ("gated", "edge_values", "refine"):
            if getattr(self, name) not in (True, False, None):
                raise SettingsError(f"StackedVotes({name}={getattr(self, name)!r}): expected true or false.")

    def _check_edge_blind(self) -> None:
        if not isinstance(self.edge_blind, bool):
            raise SettingsError(f"StackedVotes(edge_blind={self.edge_blind!r}): expected True or False.")
        is_number = isinstance(self.vote_weight, int | float) and not isinstance(self.vote_weight, bool)
        if not is_number or not LEAST_WEIGHT <= self.vote_weight <= LARGEST_WEIGHT:
            raise SettingsError(
                f"StackedVotes(vote_weight={self.vote_weight!r}): expected a number from {LEAST_WEIGHT} to "
                f"{LARGEST_WEIGHT}."
            )
        reads_edges = self.gated or self.edge_values or self.trusted is not None or self.combine != "sum"
        if self.edge_blind and (reads_edges or self.levels != 1):
            raise SettingsError(
                "edge_blind=True goes with a sum of one level, without gates, edge values and trusted edges: these "
                "would have to be trained on edges, which an attacker may have changed."
            )

    def described(self) -> dict[str, Any]:
        """Returns the settings as a model describes itself: later ones only if they are set, so that digests stay."""
        values = {one.name: (getattr(self, one.name), one.metadata.get("later", False)) for one in fields(self)}
        return {name: value for name, (value, is_later) in values.items() if not (is_later and value is None)}

    def for_rows(self, number: int) -> Self:
        """Returns the same settings with the defaults for this number of training nodes filled in."""
        if self.edge_blind:
            return replace(self, refine=False, weight_decay=0.0)
        many = number >= MANY_ROWS
        decay = (1e-4 if many else 5e-3) if self.weight_decay is None else self.weight_decay
        return replace(self, refine=many if self.refine is None else self.refine, weight_decay=decay)

    def __str__(self) -> str:
        kinds = [f"levels={self.levels}", self.combine]
        kinds += ["gated"] if self.gated else []
        kinds += ["edge values"] if self.edge_values else []
        kinds += [] if self.trusted is None else [f"edges trusted by column {self.trusted}"]
        kinds += [f"edge-blind, weight {self.vote_weight:g}"] if self.edge_blind else []
        return f"stacked-votes({', '.join(kinds)})"
