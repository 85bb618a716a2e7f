"""Add-on packages: commands, datasets and units of attack that installed packages offer through entry points.

========================  ================================================================================
group                     what an entry point is
========================  ================================================================================
``agnncert.commands``     a function that becomes a command of ``agnncert``
``agnncert.datasets``     ``load(root: Path, seed: int)``, which ``load_dataset`` calls for the entry's name
``agnncert.attack_units`` ``unit(certificate)``, a further unit in which reports on a dataset state results
``agnncert.names``        a public name of the package ``agnncert``
``agnncert.evidence``     a class of evidence (``proving.evidence``), by the kind that certificate files state
``agnncert.verifier``     a module that derives the statements of such a file again, as ``agnncert.verifier`` does
``agnncert.training``     ``clusters``: the training objective on parts of a graph
``agnncert.controls``     ``control(study, certificate, sizes)``: measures by name and size, shown beside the curves
``agnncert.recompute``    a check of such evidence against graph and model, as in ``agnncert.recompute``
========================  ================================================================================
"""

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from agnncert.errors import missing


@cache  # to read the metadata of all installed packages takes 20 milliseconds
def addons(group: str) -> dict[str, Any]:
    """The entry points of ``group`` by name, not loaded yet."""
    return {point.name: point for point in sorted(entry_points(group=group), key=lambda point: point.name)}


def addon(group: str, name: str, package: str, purpose: str) -> Any:
    """What the entry point ``name`` of ``group`` stands for.

    Raises:
        MissingPackage: No installed package has it; names the package that would, and what it is needed for.
    """
    point = addons(group).get(name)
    if point is None:
        raise missing(package, purpose)
    return point.load()
