"""All defences by name: divisions, and those that smooth."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from agnncert.divisions.named import DIVISIONS
from agnncert.errors import SettingsError, did_you_mean
from agnncert.stacked.defence import StackedVotes
from agnncert_peers.deletions import BiRS as BiRS
from agnncert_peers.flips import RS as RS
from agnncert_peers.flips import SparseRS as SparseRS
from agnncert_peers.interception import Interception as Interception

OTHERS: dict[str, type[Any]] = {"stacked": StackedVotes}
SMOOTHING: dict[str, type[Any]] = {defence.method: defence for defence in (RS, SparseRS, BiRS, Interception)}


def defence_named(name: str, task: str, settings: Mapping[str, Any]) -> Any:
    """The defence that a name and settings stand for: a division, or one that smooths.

    Args:
        name: One of ``agnncert.divisions.DIVISIONS`` or of ``SMOOTHING``, or ``"stacked"``.
        task: ``"node"`` or ``"graph"``, which decides how many groups a division has if the settings do not say it.
        settings: Arguments of the defence, by name.

    Raises:
        SettingsError: No defence has this name, or it has no such setting.

    Example:
        >>> defence_named("bi-rs", "node", {"p_edge": 0.7})
        BiRS(p_edge=0.7, p_node=0.9, test='B2', edges_per_injected=5)
    """
    own = SMOOTHING | OTHERS
    if name not in DIVISIONS and name not in own:
        raise SettingsError(f'no defence is called "{name}": {did_you_mean(name, [*DIVISIONS, *own])}')
    if name == "stacked" and task != "node":
        raise SettingsError("stacked votes classify nodes: choose another defence for graphs.")
    division = DIVISIONS.get(name)
    cls = own[name] if division is None else division.load()
    valid = [field.name for field in fields(cls)]
    for key in settings:
        if key not in valid:
            raise SettingsError(f'{name} has no setting "{key}": {did_you_mean(key, valid)}')
    return cls(**settings) if division is None else division.build(task, settings)
