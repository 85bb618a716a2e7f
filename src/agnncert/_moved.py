"""Documented places from which a module has moved: importing it from there still works."""

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import CodeType, ModuleType

MOVED = {
    "agnncert.contract": "agnncert.voting.auditing",
    "agnncert.search": "agnncert.training.choose",
    "agnncert.experiments": "agnncert.studies.paper",
    "agnncert.experiments.comparisons": "agnncert.studies.paper.run",
}


class _Redirect(MetaPathFinder, Loader):
    """Fills a module at the old place with the names of the one at the new place."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        is_package = any(other.startswith(f"{name}.") for other in MOVED)
        return spec_from_loader(name, self, origin=name, is_package=is_package) if name in MOVED else None

    def exec_module(self, module: ModuleType) -> None:
        new = importlib.import_module(MOVED[module.__name__])
        module.__dict__.update((name, value) for name, value in vars(new).items() if not name.startswith("__"))
        module.__getattr__ = lambda name: getattr(new, name)  # type: ignore[method-assign]

    def get_code(self, name: str) -> CodeType:
        """What ``python -m`` runs."""
        return compile(f"from {MOVED[name]} import main; main()", f"<{name}>", "exec")


def install() -> None:
    """Lets the import system look here after every other place."""
    sys.meta_path.append(_Redirect())
