"""Add-on packages use no private name of the core."""

import ast
from functools import cache

import pytest

from tests.support.paths import PROJECT

PACKAGES = PROJECT / "packages"


@cache
def core_names(package: str) -> set[str]:
    """Names that a package imports from the modules of ``agnncert``."""
    files = (PACKAGES / f"agnncert-{package}" / "src" / f"agnncert_{package}").rglob("*.py")
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom))
    return {name.name for node in imports if (node.module or "").split(".")[0] == "agnncert" for name in node.names}


@pytest.mark.parametrize("package", ["live", "code", "peers", "large"])
def test_no_private_name_of_the_core_is_used(package: str) -> None:
    assert not [name for name in core_names(package) if name.startswith("_")]
