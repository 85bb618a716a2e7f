"""All defences by name: divisions, and those that smooth."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from agnncert.addons import addons
from agnncert.defence import Defence, Task
from agnncert.divisions.named import named_divisions
from agnncert.errors import SettingsError, did_you_mean
from agnncert_peers.deletions import BiRS as BiRS
from agnncert_peers.flips import RS as RS
from agnncert_peers.flips import SparseRS as SparseRS
from agnncert_peers.interception import Interception as Interception


def defence_named(name: str, task: Task, settings: Mapping[str, Any]) -> Any:
    """Returns the defence that a name and settings stand for.

    Args:
        name: One of ``agnncert.divisions.named.named_divisions``, or the name of another defence that is installed.
        task: ``"node"`` or ``"graph"``, which decides how many groups a division has if the settings do not say it.
        settings: Arguments of the defence, by name.

    Raises:
        SettingsError: No defence has this name, or it has no such setting.

    Example:
        >>> defence_named("bi-rs", "node", {"p_edge": 0.7})
        BiRS(p_edge=0.7, p_node=0.9, test='B2', edges_per_injected=5)
    """
    others = addons("agnncert.defence_names")
    divisions = named_divisions()
    if name not in divisions and name not in others:
        raise SettingsError(f'no defence is called "{name}": {did_you_mean(name, [*divisions, *others])}')
    if name in others:
        kind: type[Defence] = others[name].load()
        return kind.from_settings(name, task, settings)
    division = divisions[name]
    valid = [field.name for field in fields(division.load())]
    for key in settings:
        if key not in valid:
            raise SettingsError(f'{name} has no setting "{key}": {did_you_mean(key, valid)}')
    return division.build(task, settings)
