"""Weights, attributes or numbers of copies that an attacker would give to an edge."""

from typing import Any

from agnncert.attacks.scene import Scene
from agnncert.graph import EDGE_VALUES

COPIES = 20


def edge_values_to_try(scene: Scene) -> list[Any]:
    """A few extreme values in the graph's own terms; none if the model reads no such thing."""
    name = next((name for name in EDGE_VALUES if name in scene.graph), None)
    if name is None:
        return [COPIES]
    if name not in scene.call.takes or not scene.graph[name].numel():
        return []
    values = scene.graph[name].float()
    largest = 10 * max(1.0, float(values.abs().max()))
    width = values[0].numel()
    return (
        [largest, -largest, 0.0] if values.dim() == 1 else [[sign * largest] * width for sign in (1.0, -1.0)]
    )
