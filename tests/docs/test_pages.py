"""The pages hang together: links lead somewhere, every command and every public name is described."""

import re
from pathlib import Path

import pytest
import typer

import agnncert
from agnncert.cli.app import app

PROJECT = Path(__file__).resolve().parents[2]
DOCS = PROJECT / "docs"
TOP = [PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES = sorted([*TOP, *DOCS.rglob("*.md")])
COMMANDS = typer.main.get_command(app).commands

_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
_MEMBER = re.compile(r"^::: (\S+)$", re.MULTILINE)
_FENCED = re.compile(r"^[ ]*(`{3,}).*?^[ ]*\1\s*$", re.MULTILINE | re.DOTALL)


def prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """What a link into a page may point at: its headings, as mkdocs and GitHub name them, and its members."""
    text = prose(page)
    words = [re.sub(r"[^\w\s-]", "", title.replace("`", "")).strip().lower() for title in _HEADING.findall(text)]
    return {re.sub(r"[\s]+", "-", title) for title in words} | set(_MEMBER.findall(text))


def links(page: Path) -> list[str]:
    return [link for link in _LINK.findall(prose(page)) if not link.startswith(("http://", "https://"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_links_lead_somewhere(page):
    for link in links(page):
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), f"{page.name} links to {link}"
        if anchor:
            assert anchor in anchors(target), f"{page.name} links to {link}: there are {sorted(anchors(target))}"


def test_there_are_links_to_check():
    assert sum(len(links(page)) for page in PAGES) > 80


def test_the_reference_describes_every_public_name():
    described = {name for page in (DOCS / "reference").glob("*.md") for name in _MEMBER.findall(page.read_text())}
    public = {f"agnncert.{name}" for name in agnncert.__all__ if name != "__version__"}
    assert public - described == set()


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_has_a_page_with_its_options(command):
    page = DOCS / "commands" / f"{command}.md"
    assert f"<!-- options: {command} -->" in page.read_text(encoding="utf-8")
    assert f"]({command}.md)" in (DOCS / "commands" / "index.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted((DOCS / "commands").glob("*.md")), ids=lambda page: page.stem)
def test_pages_name_no_option_that_a_command_does_not_have(page):
    known = {name for command in COMMANDS.values() for p in command.params for name in [*p.opts, *p.secondary_opts]}
    if page.stem in COMMANDS:
        own = COMMANDS[page.stem].params
        known = {name for parameter in own for name in [*parameter.opts, *parameter.secondary_opts]}
    spans = re.findall(r"`([^`\n]+)`", prose(page))
    named = {option for span in spans for option in re.findall(r"(?<!\S)--[a-z][a-z-]+", span)}
    assert named - known - {"--help"} == set()


def test_the_menu_has_every_page():
    menu = (PROJECT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert [page for page in pages if f" {page}\n" not in menu] == []


def test_the_architecture_names_files_that_exist():
    table = re.search(r"## Who owns what\n(.*?)\n## ", (DOCS / "architecture.md").read_text(), re.DOTALL)
    firsts = [row.split("|")[1] for row in table[1].splitlines() if row.startswith("| `")]
    named = [name for first in firsts for name in re.findall(r"`([^`]+)`", first)]
    assert len(named) > 30
    source, folder = PROJECT / "src" / "agnncert", ""
    for name in named:
        folder = name.rpartition("/")[0] or folder  # a row names the folder once
        places = [source / name, source / f"{name}.py", source / folder / f"{name}.py"]
        assert any(place.exists() for place in places), f"docs/architecture.md names {name}"
