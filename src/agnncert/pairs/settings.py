"""The settings of votes about pairs."""

from dataclasses import dataclass
from typing import Literal

from agnncert.errors import SettingsError


@dataclass(frozen=True)
class PairSettings:
    """Who votes on a pair, and how ``fit`` trains.

    Attributes:
        size: Perturbation size that ``fit`` prepares for: how many changed edges. Defaults to 1.
        over: ``"common"`` neighbours vote, or with ``"both"`` also the neighbours of each node; an edge then costs two
            votes instead of one.
        trusted: Column of ``edge_attr``. An edge u → j with a positive value there makes j a contact of u, and only
            contacts of u with an edge to v vote on (u, v). The edges that leave u must be out of reach. Defaults to
            None, which means that ``over`` says who votes.
        mask: ``"own"`` hides the edge between u and v from the decision about (u, v); ``"targets"`` hides the edges of
            all target pairs from all decisions. Defaults to ``"own"``.
        directed: Whether the decision about (u, v) may differ from that about (v, u). Defaults to False.
        balanced: Whether ``fit`` counts each class alike, instead of each pair. Defaults to False.
        hidden: Width of the networks.
        epochs: Epochs of the network on the pair's own features.
        weight_decay: Weight decay of that network.
    """

    size: int = 1
    over: Literal["common", "both"] = "common"
    trusted: int | None = None
    mask: Literal["own", "targets"] = "own"
    directed: bool = False
    balanced: bool = False
    hidden: int = 64
    epochs: int = 40
    weight_decay: float = 1e-3

    def __post_init__(self) -> None:
        if self.over not in ("common", "both") or self.mask not in ("own", "targets"):
            raise SettingsError(f"{self!r}: over is 'common' or 'both', mask is 'own' or 'targets'.")
        if self.trusted is not None and (self.over != "common" or not _is_whole(self.trusted, 0)):
            raise SettingsError("trusted= names a column of edge_attr, and its contacts vote instead of over='both'.")
        for name, least in (("size", 0), ("hidden", 1), ("epochs", 1)):
            if not _is_whole(getattr(self, name), least):
                raise SettingsError(
                    f"PairVotes({name}={getattr(self, name)!r:.60}): expected a whole number from {least} on."
                )
        if isinstance(self.weight_decay, bool) or not self.weight_decay >= 0:
            raise SettingsError(f"PairVotes(weight_decay={self.weight_decay!r:.60}): expected a number from 0 on.")
        for name in ("directed", "balanced"):
            if getattr(self, name) not in (True, False):
                raise SettingsError(f"PairVotes({name}={getattr(self, name)!r:.60}): expected true or false.")

    @property
    def rule(self) -> str:
        """Who votes: "common", "both" or "trusted"."""
        return self.over if self.trusted is None else "trusted"

    def __str__(self) -> str:
        who = {"common": "common neighbours", "both": "common neighbours and neighbours of each node"}
        voters = who[self.over] if self.trusted is None else f"contacts by column {self.trusted}"
        hidden = "own edge" if self.mask == "own" else "edges of all targets"
        return f"pair-votes({voters}, {hidden} masked)"


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least
