"""``Task``: what is classified."""

from typing import Literal, TypeAlias, get_args

Task: TypeAlias = Literal["node", "graph", "pair"]  # nodes of one graph, whole graphs, or pairs of nodes
TASKS: tuple[Task, ...] = get_args(Task)
