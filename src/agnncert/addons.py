"""Add-on packages: commands, datasets and units of attack that installed packages offer through entry points.

========================  ================================================================================
group                     what an entry point is
========================  ================================================================================
``agnncert.commands``     a function that becomes a command of ``agnncert``
``agnncert.datasets``     ``load(root: Path, seed: int)``, which ``load_dataset`` calls for the entry's name
``agnncert.attack_units`` ``unit(certificate)``, a further unit in which reports on a dataset state results
========================  ================================================================================
"""

from importlib.metadata import entry_points
from typing import Any


def addons(group: str) -> dict[str, Any]:
    """The entry points of ``group`` by name, not loaded yet."""
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}
