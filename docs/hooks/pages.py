"""What mkdocs fills in, so that nothing is written twice.

``<!-- options: certify -->`` becomes a table of that command's options, made from the command itself.
``<!-- include: CHANGELOG.md -->`` becomes that file of the project, its links made to fit.
``<!-- notebook: researcher.ipynb -->`` becomes the cells of that notebook.
``<!-- script: own_model.py -->`` becomes that script of ``examples``.
``<!-- coq: radius_sound -->`` becomes that statement of ``formal/statements``.
``<!-- source: FILE:NAME -->`` becomes that function.
After the build, ``cards.html`` is the page of all cards in ``experiments/cards``.
"""

import json
import re
import sys
from pathlib import Path
from typing import Any

import typer

from agnncert.cli.commands import app

PROJECT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(PROJECT))  # formal is no part of the package

from formal.properties import source_of  # noqa: E402
from formal.statements import statement  # noqa: E402

_OPTIONS = re.compile(r"<!-- options: (\w+) -->")
_INCLUDE = re.compile(r"<!-- include: (\S+) -->")
_SCRIPT = re.compile(r"<!-- script: (\S+) -->")
_COQ = re.compile(r"^( *)<!-- coq: (\w+) -->", re.MULTILINE)
_SOURCE = re.compile(r"^( *)<!-- source: (\S+) -->", re.MULTILINE)
_NOTEBOOK = re.compile(r"<!-- notebook: (\S+) -->")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for every page."""
    whole = _INCLUDE.sub(lambda match: included(match[1]), markdown)
    whole = _NOTEBOOK.sub(lambda match: cells(match[1]), whole)
    whole = _COQ.sub(lambda match: indented(block("coq", statement(match[2])), match[1]), whole)
    whole = _SOURCE.sub(lambda match: indented(block("python", source_of(match[2])), match[1]), whole)
    whole = _SCRIPT.sub(lambda match: script(match[1]), whole)
    return _OPTIONS.sub(lambda match: options_table(match[1]), whole)


def on_post_build(config: Any, **_: Any) -> None:
    """Called by mkdocs after all pages: writes the page of cards, which checks every card first."""
    from agnncert_peers.card_page import write_page

    write_page(PROJECT / "experiments" / "cards", Path(config["site_dir"]) / "cards.html")


def included(name: str) -> str:
    """A file of the project, with its links made to fit a page in ``docs``."""
    text = (PROJECT / name).read_text(encoding="utf-8")
    return (
        text.replace("](docs/", "](").replace("](SECURITY.md", "](security.md").replace("](examples)", "](examples.md)")
    )


def script(name: str) -> str:
    """A script of ``examples`` as a block of code."""
    return f"```python\n{(PROJECT / 'examples' / name).read_text(encoding='utf-8').strip()}\n```"


def block(language: str, text: str) -> str:
    """A text as a block of code."""
    return f"```{language}\n{text}\n```"


def indented(text: str, indent: str) -> str:
    """A text that stands as far to the right as the place where it is put."""
    return "\n".join(indent + line if line else "" for line in text.splitlines())


def cells(name: str) -> str:
    """A notebook of ``docs/notebooks`` as a page: text as it is, code as code."""
    notebook = json.loads((PROJECT / "docs" / "notebooks" / name).read_text(encoding="utf-8"))
    texts = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    return "\n\n".join(text if kind == "markdown" else f"```python\n{text}\n```" for kind, text in texts)


def options_table(command: str) -> str:
    """The arguments and options of a command as a table, its settings in the order of ``--help``."""
    program: Any = typer.main.get_command(app)
    parameters = program.commands[command].params
    rows = [_row(parameter) for parameter in parameters if parameter.name != "help"]
    return "\n".join(["| option | meaning | if not given |", "|---|---|---|", *rows])


def _row(parameter: Any) -> str:
    given = [parameter.metavar or parameter.name.upper()]
    if parameter.param_type_name == "option":
        given = [*parameter.opts, *parameter.secondary_opts]
    names = ", ".join(given).replace("|", "or")
    text = str(getattr(parameter, "help", None) or "").replace("|", "\\|")
    return f"| `{names}` | {text} | {_default(parameter)} |"


def _default(parameter: Any) -> str:
    shown, default = getattr(parameter, "show_default", None), parameter.default
    if isinstance(shown, str):
        return shown
    if default is None or callable(default) or default == "" or isinstance(default, bool):
        return "yes" if default is True else ""
    return f"`{default}`"
