"""Former names of ``engine.adapter`` and ``engine.arguments``."""

from agnncert.engine.adapter import ModelAdapter, bind, no_edges
from agnncert.engine.arguments import require_kinds, require_model, require_order

__all__ = ["ModelAdapter", "bind", "no_edges", "require_kinds", "require_model", "require_order"]
