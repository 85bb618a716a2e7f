"""Where a run took place: versions and the kind of machine, nothing that names it."""

import os
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from agnncert import __version__

PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "safetensors", "scikit-learn")


def environment() -> dict[str, Any]:
    """Versions of what computed, and the kind of machine; no host name, user or path."""
    return {
        "agnncert": __version__,
        "python": platform.python_version(),
        **{name: found for name in PACKAGES if (found := _version(name)) is not None},
        "system": f"{platform.system()} {platform.machine()}",
        "cpus": os.cpu_count(),
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
