"""Defences by name, as a command names them: ``node:num_groups=100``, ``bi-rs:p_edge=0.7,p_node=0.9``."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from agnncert.baselines import RS, BiRS, GNNCertE, GNNCertEN, GNNCertN, SparseRS
from agnncert.division import EdgeCentric, NodeCentric
from agnncert.errors import SettingsError, did_you_mean

DEFENCES: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "edge": (EdgeCentric, {}),
    "node": (NodeCentric, {}),
    "gated": (NodeCentric, {"gate_features": True}),
    "gnncert-e": (GNNCertE, {}),
    "gnncert-n": (GNNCertN, {}),
    "gnncert-en": (GNNCertEN, {}),
    "rs": (RS, {}),
    "sparse-rs": (SparseRS, {}),
    "bi-rs": (BiRS, {}),
}
_GROUPS = ("num_groups", "edge_groups", "node_groups")


def defence_named(text: str, task: str, values: Callable[[list[str]], Mapping[str, Any]]) -> Any:
    """The defence that ``text`` names.

    Args:
        text: Its name and, after a colon, settings.
        task: ``"node"`` or ``"graph"``, which decides how many groups a division has if it is not said.
        values: Reads NAME=VALUE words.
    """
    name, _, rest = text.partition(":")
    if name not in DEFENCES:
        raise SettingsError(f'no defence is called "{name}": {did_you_mean(name, DEFENCES)}')
    kind, fixed = DEFENCES[name]
    given = values([word for word in rest.split(",") if word])
    valid = [f.name for f in fields(kind) if f.name not in fixed]
    for key in given:
        if key not in valid:
            raise SettingsError(f'{name} has no setting "{key}": {did_you_mean(key, valid)}')
    usual = 30 if task == "graph" or name == "gnncert-en" else 300
    return kind(**{**{key: usual for key in _GROUPS if key in valid}, **fixed, **given})
