"""Former names of ``engine.votes`` and ``engine.checkpoint``."""

from typing import Any

from agnncert.certificates.votes import Votes
from agnncert.engine.checkpoint import StoredRanges
from agnncert.engine.reach import ReachTable
from agnncert.engine.structure import pair_facts, structure
from agnncert.engine.votes import ENGINES, EngineName, compute_votes

__all__ = ["ENGINES", "EngineName", "StoredRanges", "cast", "pair_facts", "structure"]


def cast(*args: Any, shuffle: Any = None, **settings: Any) -> tuple[Votes, ReachTable]:
    """Computes votes; the former name of ``compute_votes``."""
    settings["edges_by_group"] = shuffle
    return compute_votes(*args, **settings)
