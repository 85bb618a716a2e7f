"""Functions as graphs whose nodes keep their identity under edits.

A node is a statement. Its id is its normalised text and a running number among equal texts, and its features follow
from that text alone. Rows are sorted by id, so that statements that stay are seen in the same order whatever
happens to the others: not even rounding differs.
"""

import logging
import os
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from agnncert.errors import DatasetError, SettingsError, did_you_mean
from agnncert_code import flows
from agnncert_code.features import FloatArray, features
from agnncert_code.names import name_edges
from agnncert_code.source_files import SUFFIXES, read_source, source_files
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


@dataclass(frozen=True)
class FunctionGraph:
    """The statements of one function and the edges between them.

    Attributes:
        ids: Id of every statement, ascending: ``"#1 return 0 ;"``.
        texts: Normalised text of every statement.
        lines: Line of every statement, counted from 1 at the start of the text, shape ``[n]``.
        edges: Rows of the statements that each edge joins, sorted, shape ``[2, m]``.
        kinds: Kind of each edge: 0 control flow, 1 data flow, 2 nesting, 3 shared names, shape ``[m]``.
        partial: Whether parts of the text could not be parsed. What could be is here all the same.
        name: Name of the function, where there is one.
        last_line: Line of its last character, if it was found in a file, else 0.
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
        """Returns PyTorch Geometric's ``Data``, with ``node_id`` and one-hot ``edge_attr`` (in the order of ``KINDS``).

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
    """Returns the graph of a whole text, usually of one function.

    Args:
        text: C or C++. A text that does not parse gives the graph of what does.
        language: The grammar. ``"cpp"`` reads most C too, and code full of macros better than ``"c"``.
        edges: ``"flow"``: control flow, data flow and nesting. ``"names"``: from a statement that writes a name to
            those that mention it, which no edit of other statements can change. ``"none"``: no edges.

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
    """Returns one graph for every function that is defined in the text of a file, in its order."""
    return functions_in(text, language, edges, largest=sys.maxsize).functions


@dataclass(frozen=True)
class LargeFunction:
    """A function that is too large to be read.

    Attributes:
        line: Its first line in the file.
        why: In which way it is too large.
    """

    line: int
    why: str


@dataclass(frozen=True)
class SourceFile:
    """What the text of a file defines.

    Attributes:
        functions: The functions that it defines, in its order.
        texts: The lines on which each of them stands.
        partial: Whether parts of it could not be parsed. What could be is here all the same.
        too_large: Functions that are too large.
    """

    functions: list[FunctionGraph]
    texts: list[str]
    partial: bool
    too_large: list[LargeFunction]


def functions_in(
    text: str, language: Language = "cpp", edges: Edges = "flow", largest: int = LARGEST_FUNCTION
) -> SourceFile:
    """Returns the functions of a text, without those that are too large, which are listed.

    Args:
        text: The text of a file.
        language: The grammar, as for ``graph``.
        edges: Which edges the graphs have, as for ``graph``.
        largest: Number of statements above which a function is too large.

    Raises:
        DatasetError: It takes too long to parse.
    """
    source = text.encode("utf-8", "replace")
    root = parsed_within(source, language, LONGEST)
    if root is None:
        raise DatasetError(f"cannot be parsed within {LONGEST} seconds")
    line_ends = ends_of_lines(source)
    lines = text.split("\n")  # as the parser counts them
    contents = SourceFile([], [], root.has_error, [])
    for node in function_nodes(root):
        syntax = statements_of(node, source, line_ends)
        first = syntax.statements[0].line
        why = _too_large(syntax, largest)
        if why:
            contents.too_large.append(LargeFunction(first, why))
            continue
        last = bisect_left(line_ends, node.end_byte - 1) + 1
        contents.functions.append(replace(assemble(syntax, edges), last_line=last))
        contents.texts.append("\n".join(lines[first - 1 : last]))
    return contents


def _too_large(syntax: Syntax, largest: int) -> str:
    """Returns why a function is too large to be read, or empty if it is not."""
    size = sum(bool(statement.text) for statement in syntax.statements)
    if size > largest:
        return f"is a function of {size:,} statements, more than {largest:,}"
    values = sum(len(statement.sets) + len(statement.alters) for statement in syntax.statements)
    if largest < sys.maxsize and size * values > MOST_FLOW:
        return f"is a function of {size:,} statements that set variables {values:,} times: too many to follow"
    return ""


def read_file(file: Path, language: Language = "cpp", edges: Edges = "flow") -> SourceFile | str:
    """Returns what a file defines, or why it cannot be read.

    This needs no torch, so that other processes can do it at once.
    """
    try:
        return functions_in(read_source(file), language, edges)
    except DatasetError as error:
        return str(error)


def assemble(syntax: Syntax, edges: Edges = "flow") -> FunctionGraph:
    """Returns the graph of some statements, in the order of their ids."""
    if edges not in ("flow", "names", "none"):
        raise SettingsError(f'no edges are called "{edges}": {did_you_mean(str(edges), ("flow", "names", "none"))}')
    places = [k for k, statement in enumerate(syntax.statements) if statement.text]
    ids = numbered(syntax.statements[place].text for place in places)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    places = [places[k] for k in order]
    texts = [syntax.statements[place].text for place in places]
    typed_edges = _edges_of(syntax, places, texts, edges)
    return FunctionGraph(
        ids=[ids[k] for k in order],
        texts=texts,
        lines=np.array([syntax.statements[place].line for place in places], dtype=np.int64),
        edges=np.ascontiguousarray(typed_edges[:, :2].T),
        kinds=typed_edges[:, 2].copy(),
        partial=syntax.partial,
        name=_name_of(syntax),
    )


def _name_of(syntax: Syntax) -> str:
    """Returns the name of the first function, or empty if there is none."""
    for statement in syntax.statements:
        if statement.kind == "head":
            return statement.name or _name_in(statement.text)
    return ""


def _name_in(head: str) -> str:
    """Returns the name in the head of a function that a macro before it keeps from being parsed."""
    words = head.partition(" (")[0].split(" ")
    return words[-1] if is_name(words[-1]) else ""


def _edges_of(syntax: Syntax, places: list[int], texts: list[str], edges: Edges) -> npt.NDArray[np.int64]:
    """Returns edges as rows of two statements and a kind, sorted, shape ``[m, 3]``."""
    if edges == "flow":
        return _flow_edges(syntax, places)
    pairs = name_edges(texts) if edges == "names" else []
    ends = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    return np.column_stack([ends, np.full(len(ends), KINDS.index("names"))])


def _flow_edges(syntax: Syntax, places: list[int]) -> npt.NDArray[np.int64]:
    """Returns edges that follow from the flow."""
    row_of_place = np.full(len(syntax.statements), -1, dtype=np.int64)
    row_of_place[places] = np.arange(len(places))
    by_place = np.array(flows.edges(syntax.statements), dtype=np.int64).reshape(-1, 3)
    by_row = np.column_stack([row_of_place[by_place[:, 0]], row_of_place[by_place[:, 1]], by_place[:, 2]])
    return np.asarray(by_row[np.lexsort(by_row.T[::-1])])


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
        embed: Makes features from normalised texts. Defaults to hashed tokens. A ``StatementEncoder`` is another way.
        suffixes: How names of files end that are read.

    Raises:
        DatasetError: There is no such folder, or no such file in it.
    """
    files, skipped = source_files(Path(folder), suffixes)
    graphs = Functions(skipped=skipped)
    for file in files:
        contents = read_file(file, language, edges)
        if isinstance(contents, str):
            graphs.skipped[str(file)] = contents
            continue
        for large in contents.too_large:
            graphs.skipped[f"{file}:{large.line}"] = large.why
        for function in contents.functions:
            data: Any = function.to_data(embed)
            data.file = str(file)
            graphs.append(data)
    for place, why in graphs.skipped.items():
        _log.warning("%s skipped: %s", place, why)
    return graphs
