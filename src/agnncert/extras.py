"""Which extra brings which package: what is said where one is not installed.

Verifying and reporting, and the command line, come with ``pip install agnncert``. All that trains, certifies or attacks
needs torch; whoever has torch and PyTorch Geometric already needs no extra.
"""

from agnncert.errors import MissingPackage

EXTRAS = {
    "torch": "torch",
    "torch_geometric": "torch",
    "sklearn": "data",
    "pandas": "data",
    "pyarrow": "data",
    "matplotlib": "figures",
    "pymetis": "clusters",
    "fastapi": "serve",
    "uvicorn": "serve",
    "ray": "ray",
}


def missing(package: str | None, purpose: str = "this") -> MissingPackage:
    """The error for a package that cannot be imported.

    Args:
        package: Name of the module, as ``ModuleNotFoundError`` has it.
        purpose: What needs it.

    Example:
        >>> print(missing("pandas", "reading tables"))
        reading tables needs pandas, which is not installed: pip install "agnncert[data]".
    """
    name = (package or "a package").partition(".")[0]
    extra = EXTRAS.get(name)
    if extra is None:
        return MissingPackage(f"{purpose} needs {name}, which is not installed: pip install {name}.", name=name)
    rest = ', or "agnncert[all]" to have everything' if extra == "torch" else ""
    return MissingPackage(
        f'{purpose} needs {name}, which is not installed: pip install "agnncert[{extra}]"{rest}.', name=name
    )
