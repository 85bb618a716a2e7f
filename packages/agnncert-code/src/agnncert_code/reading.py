"""Functions as graphs whose nodes keep their identity under edits.

A node is a statement; its id is its normalised text and a running number among equal texts, and its features follow
from that text alone. Rows are sorted by id, so that statements that stay are seen in the same order whatever
happens to the others: not even rounding differs.

A source tree may come from anyone: links in it may lead out of it or in circles, and a file called ``x.c`` may be a
pipe, a table of a gigabyte or binary. Such files are named and skipped; nothing here waits, or reads without a limit.
"""

import logging
import os
import stat
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from agnncert.errors import DatasetError, SettingsError, did_you_mean
from agnncert_code import flows
from agnncert_code.features import FloatArray, features
from agnncert_code.flows import name_edges
from agnncert_code.syntax import Language, Syntax, ends_of_lines, function_nodes, parsed_within, parser, statements_of
from agnncert_code.tokens import is_name, numbered

if TYPE_CHECKING:
    from torch_geometric.data import Data

_log = logging.getLogger(__name__)

VERSION = 1  # of the extractor: raised with every change of ids, edges or features, so that no stored graph is mixed up
Embed = Callable[[Sequence[str]], FloatArray]
KINDS = (*flows.KINDS, "names")
Edges = Literal["flow", "names", "none"]
LONGEST = 120  # seconds that parsing a file may take; some text takes time that grows with the square of its length
LARGEST_FUNCTION = 3_000  # statements
MOST_FLOW = 10_000_000  # statements times values set: following them takes about ten seconds
SUFFIXES = (".c", ".h", ".cc", ".cpp", ".cxx", ".c++", ".hh", ".hpp", ".hxx", ".h++", ".inl", ".ipp", ".tpp")
LARGEST_FILE = 20_000_000  # bytes
_NOT_SOURCE = {".git", ".hg", ".svn"}


@dataclass(frozen=True)
class FunctionGraph:
    """The statements of one function and the edges between them.

    Attributes:
        ids: Id of every statement, ascending: ``"#1 return 0 ;"``.
        texts: Normalised text of every statement.
        lines: Line of every statement, counted from 1 at the start of the text, shape ``[n]``.
        edges: Rows of the statements that each edge joins, sorted, shape ``[2, m]``.
        kinds: Kind of each edge: 0 control flow, 1 data flow, 2 nesting, 3 shared names, shape ``[m]``.
        partial: Whether parts of the text could not be parsed; what could be is here all the same.
        name: Name of the function, where there is one.
        last_line: Line of its last character, if it was found in a file; else 0.
    """

    ids: list[str]
    texts: list[str]
    lines: npt.NDArray[np.int64]
    edges: npt.NDArray[np.int64]
    kinds: npt.NDArray[np.int64]
    partial: bool
    name: str = ""
    last_line: int = 0

    def to_data(self, embed: Embed = features) -> "Data":
        """As PyTorch Geometric's ``Data``, with ``node_id`` and one-hot ``edge_attr`` (in the order of ``KINDS``).

        Args:
            embed: Makes features from normalised texts, each from its own text alone.
        """
        import torch
        from torch_geometric.data import Data

        return Data(
            x=torch.from_numpy(embed(self.texts)),
            edge_index=torch.from_numpy(self.edges),
            edge_attr=torch.from_numpy(np.eye(len(KINDS), dtype=np.float32)[self.kinds]),
            node_id=self.ids,
            line=torch.from_numpy(self.lines),
            partial=self.partial,
            function=self.name,
        )


def graph(text: str, language: Language = "cpp", edges: Edges = "flow") -> FunctionGraph:
    """The graph of a whole text, usually of one function.

    Args:
        text: C or C++; a text that does not parse gives the graph of what does.
        language: The grammar: ``"cpp"`` reads most C too, and code full of macros better.
        edges: ``"flow"``: control flow, data flow and nesting. ``"names"``: from a statement that writes a name to
            those that mention it, which no edit of other statements can change. ``"none"``.

    Example:
        >>> found = graph("int f(int a) { if (a) a = 0; return a; }")
        >>> [(id, int(line)) for id, line in zip(found.ids, found.lines)][:3]
        [('#1 a = 0 ;', 1), ('#1 if ( a )', 1), ('#1 int a', 1)]
        >>> [(found.texts[a], found.texts[b]) for (a, b), kind in zip(found.edges.T, found.kinds) if kind == 1]
        [('a = 0 ;', 'return a ;'), ('int a', 'if ( a )'), ('int a', 'return a ;')]
    """
    source = text.encode("utf-8", "replace")
    return assemble(statements_of(parser(language).parse(source).root_node, source), edges)


def functions(text: str, language: Language = "cpp", edges: Edges = "flow") -> list[FunctionGraph]:
    """One graph for every function that is defined in the text of a file, in its order."""
    return functions_in(text, language, edges, largest=sys.maxsize).functions


@dataclass(frozen=True)
class SourceFile:
    """What was found in the text of a file.

    Attributes:
        functions: The functions that it defines, in its order.
        texts: The lines on which each of them stands.
        partial: Whether parts of it could not be parsed; what could be is here all the same.
        too_large: Line of functions that are too large, and in which way.
    """

    functions: list[FunctionGraph]
    texts: list[str]
    partial: bool
    too_large: list[tuple[int, str]]


def functions_in(
    text: str, language: Language = "cpp", edges: Edges = "flow", largest: int = LARGEST_FUNCTION
) -> SourceFile:
    """As :func:`functions`, without functions of more than ``largest`` statements, which are listed.

    Raises:
        DatasetError: It takes too long to parse.
    """
    source = text.encode("utf-8", "replace")
    root = parsed_within(source, language, LONGEST)
    if root is None:
        raise DatasetError(f"cannot be parsed within {LONGEST} seconds")
    ends, lines = ends_of_lines(source), text.split("\n")  # as the parser counts them
    found = SourceFile([], [], root.has_error, [])
    for node in function_nodes(root):
        syntax = statements_of(node, source, ends)
        reason = _too_large(syntax, largest)
        if reason:
            found.too_large.append((syntax.statements[0].line, reason))
            continue
        first, last = syntax.statements[0].line, bisect_left(ends, node.end_byte - 1) + 1
        found.functions.append(replace(assemble(syntax, edges), last_line=last))
        found.texts.append("\n".join(lines[first - 1 : last]))
    return found


def _too_large(syntax: Syntax, largest: int) -> str:
    """Why a function is too large to be read; empty if it is not."""
    size = sum(bool(statement.text) for statement in syntax.statements)
    if size > largest:
        return f"is a function of {size:,} statements, more than {largest:,}"
    values = sum(len(statement.sets) + len(statement.alters) for statement in syntax.statements)
    if largest < sys.maxsize and size * values > MOST_FLOW:
        return f"is a function of {size:,} statements that set variables {values:,} times: too many to follow"
    return ""


def read_file(file: Path, language: Language = "cpp", edges: Edges = "flow") -> SourceFile | str:
    """What a file defines, or why it cannot be read. Needs no torch, so that other processes can do it at once."""
    try:
        return functions_in(read_source(file), language, edges)
    except DatasetError as error:
        return str(error)


def assemble(syntax: Syntax, edges: Edges = "flow") -> FunctionGraph:
    """Statements with their ids, in the order of these, and their edges."""
    if edges not in ("flow", "names", "none"):
        raise SettingsError(f'no edges are called "{edges}": {did_you_mean(str(edges), ("flow", "names", "none"))}')
    places = [k for k, s in enumerate(syntax.statements) if s.text]
    ids = numbered(syntax.statements[k].text for k in places)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    places = [places[k] for k in order]
    texts = [syntax.statements[k].text for k in places]
    joined = _rows(syntax, places) if edges == "flow" else _by_name(texts if edges == "names" else [])
    heads = [s.name or _name_in(s.text) for s in syntax.statements if s.kind == "head"]
    return FunctionGraph(
        ids=[ids[k] for k in order],
        texts=texts,
        lines=np.array([syntax.statements[k].line for k in places], dtype=np.int64),
        edges=np.ascontiguousarray(joined[:, :2].T),
        kinds=joined[:, 2].copy(),
        partial=syntax.partial,
        name=heads[0] if heads else "",
    )


def _name_in(head: str) -> str:
    """The name in the head of a function that a macro before it keeps from being parsed."""
    words = head.partition(" (")[0].split(" ")
    return words[-1] if is_name(words[-1]) else ""


def _rows(syntax: Syntax, places: list[int]) -> npt.NDArray[np.int64]:
    """Edges that follow from the flow, as (row, row, kind), sorted."""
    row = np.full(len(syntax.statements), -1, dtype=np.int64)
    row[places] = np.arange(len(places))
    found = np.array(flows.edges(syntax.statements), dtype=np.int64).reshape(-1, 3)
    joined = np.column_stack([row[found[:, 0]], row[found[:, 1]], found[:, 2]])
    return np.asarray(joined[np.lexsort(joined.T[::-1])])


def _by_name(texts: list[str]) -> npt.NDArray[np.int64]:
    found = np.array(name_edges(texts), dtype=np.int64).reshape(-1, 2)
    return np.column_stack([found, np.full(len(found), KINDS.index("names"))])


def source_files(
    folder: Path, suffixes: Sequence[str] = SUFFIXES, exclude: Sequence[str] = ()
) -> tuple[list[Path], dict[str, str]]:
    """The C and C++ files below a folder, in the order of their paths; and why others are left out, by path.

    Links are not followed. One that stays inside the folder leads to what is read anyway; one that leads out of it is
    named among those left out.

    Args:
        folder: The folder, or one file, which is then read whatever it is called.
        suffixes: How names end, in lower or upper case.
        exclude: Patterns of paths below the folder that are passed over: ``"test"`` (a file, or a folder with all that
            is in it), ``"vendor/*/gen*.c"``; ``*`` stands for anything, slashes included.

    Raises:
        DatasetError: There is no such folder, or nothing in it ends so.
    """
    if not folder.exists():
        raise DatasetError(f"{folder} does not exist.")
    if not folder.is_dir():
        return [folder], {}
    home, wanted = folder.resolve(), {suffix.lower() for suffix in suffixes}
    files: list[Path] = []
    skipped: dict[str, str] = {}

    def cannot_be_listed(error: OSError) -> None:
        skipped[str(error.filename)] = error.strerror or str(error)

    for place, folders, names in os.walk(folder, onerror=cannot_be_listed):
        inside = Path(place).relative_to(folder)
        folders[:] = sorted(n for n in folders if n not in _NOT_SOURCE and not _fits(inside / n, exclude))
        names = [name for name in names if not _fits(inside / name, exclude)]
        links = [name for name in folders if os.path.islink(os.path.join(place, name))]
        for name in [*links, *names]:
            path = Path(place, name)
            if name not in links and path.suffix.lower() not in wanted:
                continue
            if not path.is_symlink():
                files.append(path)
            elif why := _leads_astray(path, home):
                skipped[str(path)] = why
    if not files and not skipped:
        but = f", except {', '.join(exclude)}" if exclude else ""
        raise DatasetError(f"there is no C or C++ file below {folder} (looked for {' '.join(suffixes)}{but}).")
    return sorted(files), skipped


def _leads_astray(link: Path, home: Path) -> str:
    """Why a link leads nowhere in the folder; empty if it leads to something inside."""
    try:
        return "" if link.resolve().is_relative_to(home) else "is a link that leads out of the folder"
    except (OSError, RuntimeError):
        return "is a link that leads to itself"


def _fits(path: Path, patterns: Sequence[str]) -> bool:
    """Whether a pattern names a path, or the last part of it."""
    return any(fnmatchcase(path.as_posix(), one.rstrip("/")) or fnmatchcase(path.name, one) for one in patterns)


def read_source(file: Path, largest: int = LARGEST_FILE) -> str:
    """The text of a file.

    Args:
        file: The file.
        largest: The most bytes that are read.

    Raises:
        DatasetError: It cannot be read, is no regular file, is too large, or is not UTF-8; the message says which.
    """
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode):
            raise DatasetError("is no regular file")
        with file.open("rb") as stream:
            content = stream.read(largest + 1)
    except OSError as error:
        raise DatasetError(error.strerror or str(error)) from error
    except ValueError as error:
        raise DatasetError(str(error)) from error
    if len(content) > largest:
        raise DatasetError(f"is larger than {largest:,} bytes")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DatasetError(f"is not UTF-8 (byte 0x{content[error.start]:02x} in line {line})") from error


class Functions(list["Data"]):
    """Graphs of functions, each with ``file``, ``line``, ``function`` and ``partial``.

    Attributes:
        skipped: Why files could not be read, by path.
    """

    def __init__(self, graphs: Iterable["Data"] = (), skipped: dict[str, str] | None = None) -> None:
        super().__init__(graphs)
        self.skipped = skipped or {}


def read_functions(
    folder: str | os.PathLike[str],
    language: Language = "cpp",
    edges: Edges = "flow",
    embed: Embed = features,
    suffixes: Sequence[str] = SUFFIXES,
) -> Functions:
    """Reads every function that is defined in the C and C++ files below a folder, or in one file.

    Files that cannot be read or are not UTF-8, and functions of thousands of statements, are named in ``skipped`` and
    in the log.

    Args:
        folder: The folder, or one file.
        language: The grammar, as for ``graph``.
        edges: Which edges the graphs have, as for ``graph``.
        embed: Makes features from normalised texts: the hashed ones, or a ``StatementEncoder``.
        suffixes: How names of files end that are read.

    Raises:
        DatasetError: There is no such folder, or no such file in it.
    """
    files, skipped = source_files(Path(folder), suffixes)
    found = Functions(skipped=skipped)
    for file in files:
        read = read_file(file, language, edges)
        if isinstance(read, str):
            found.skipped[str(file)] = read
            continue
        found.skipped |= {f"{file}:{line}": why for line, why in read.too_large}
        for function in read.functions:
            data: Any = function.to_data(embed)
            data.file = str(file)
            found.append(data)
    for place, why in found.skipped.items():
        _log.warning("%s skipped: %s", place, why)
    return found
