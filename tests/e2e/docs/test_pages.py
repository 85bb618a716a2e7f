"""The pages hang together: links lead somewhere, every command and every public name is described."""

import pkgutil
import re
import sys
from pathlib import Path

import pytest
import typer

import agnncert
from agnncert.cli.commands import app
from tests.support.paths import PROJECT

DOCS = PROJECT / "docs"
TOP = [PROJECT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")]
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


def architecture(section: str) -> str:
    return re.search(rf"## {section}\n(.*?)\n## ", (DOCS / "architecture.md").read_text(), re.DOTALL)[1]


def test_the_architecture_names_every_file_and_no_other():
    named = []
    for row in architecture("Who owns what").splitlines()[3:]:
        _, package, files, *_ = row.split("|") if row.startswith("|") else ("", "", "")
        folder = f"{package.strip(' `')}/" if "`" in package else ""
        named += [f"{folder}{file}" for file in re.findall(r"`([a-z_]+)`", files)]
    source = PROJECT / "src" / "agnncert"
    files = [file.relative_to(source).with_suffix("").as_posix() for file in source.rglob("*.py")]
    assert sorted(named) == sorted(name for name in files if not name.rpartition("/")[2].startswith("_"))


def files_of(call) -> list[str]:
    """Files of the library in the order in which a call arrives at them."""
    arrived = {}

    def note(frame, event, _):
        if event != "call":  # most are calls of functions in C
            return
        file = frame.f_code.co_filename
        if file.startswith(f"{PROJECT}/") and not frame.f_code.co_name.startswith("<"):
            arrived[file.rpartition("/src/")[2].removeprefix("agnncert/").removesuffix(".py")] = None

    call()  # once before, so that modules are loaded
    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(arrived)


def test_readme_and_glossary_are_short():
    assert len((PROJECT / "README.md").read_text(encoding="utf-8").split()) <= 750
    assert len(re.findall(r"^\*\*", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE)) <= 40
    assert "images/method.svg" in (DOCS / "index.md").read_text(encoding="utf-8")


def test_every_example_is_on_the_page_of_examples():
    page = (DOCS / "examples.md").read_text(encoding="utf-8")
    assert [
        file.name for file in (PROJECT / "examples").glob("*.py") if f"<!-- script: {file.name} -->" not in page
    ] == []


@pytest.mark.parametrize("page", sorted((DOCS / "reference").glob("*.md")), ids=lambda page: page.stem)
def test_every_name_of_the_reference_exists(page):
    for name in re.findall(r"^::: ([\w.]+)", page.read_text(encoding="utf-8"), re.MULTILINE):
        assert pkgutil.resolve_name(name) is not None
        # A name that an add-on brings to agnncert has no text there, so that its page would be empty.
        assert name.rpartition(".")[0] != "agnncert" or name.rpartition(".")[2] in agnncert.__all__


def test_every_dataset_says_where_its_files_come_from():
    from agnncert.datasets.catalog import DATASETS, SOURCES

    page = (PROJECT / "docs" / "commands" / "datasets.md").read_text("utf-8")
    assert [name for name in DATASETS if f"`{name}`" not in page] == []
    for name, source in SOURCES.items():
        lines = page[page.rindex(f"`{name}`") - 2000 :] if name == "big-vul-matched" else page
        assert f"`{name}`" in lines
        assert f"`{source.folder}/raw`" in page
        assert all(file in page for file in source.files)
        assert source.url.split("/raw/")[0].replace("{}", "FILE") in page or name.startswith("big-vul")
    assert "../code.md#big-vul" in page
