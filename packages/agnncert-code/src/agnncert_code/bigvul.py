"""Big-Vul: C and C++ functions as graphs of statements, listed as vulnerable or not.

Two protocols. *Balanced*: all vulnerable functions and as many others, drawn at random. *Matched*: each vulnerable
function with another one of about the same length, because length alone tells much: vulnerable functions are longer.
Functions that differ in layout and comments only are one function, so no function is in two parts of a split.

Reading the 18,864 texts takes half a minute, so their graphs are kept beside them, under a name that changes with the
texts, the reader's version and the parser's.
"""

import gzip
import hashlib
import json
import logging
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch_geometric.data import Data

from agnncert.datasets.catalog import SOURCES
from agnncert.datasets.drawn_splits import BY_CLASS
from agnncert.datasets.splits import GraphSet, stratified_split
from agnncert.errors import DatasetError
from agnncert.storage import parse_json, read_sealed, write_sealed
from agnncert_code.features import features
from agnncert_code.reading import KINDS, VERSION, Edges, Embed, FunctionGraph, graph
from agnncert_code.tokens import tokens

_log = logging.getLogger(__name__)

FRACTIONS = (0.8, 0.1, 0.1)
# Which edges the graphs of each dataset have: functions that are scanned must be read in the same way.
EDGES: dict[str, Edges] = {"big-vul": "flow", "big-vul-matched": "flow"}
CLASS_NAMES = ["not listed", "vulnerable"]
NEAREST = 5  # a vulnerable function's partner is one of this many that are nearest in length
_FORMAT = "agnncert-functions"

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Corpus:
    """The distinct functions of Big-Vul.

    Attributes:
        label: 1 for those listed as vulnerable, shape ``[n]``.
        row: Their ids in the file, shape ``[n]``.
        length: Number of tokens, shape ``[n]``.
        graphs: Their graphs.
    """

    label: IntArray
    row: IntArray
    length: IntArray
    graphs: list[FunctionGraph]


def load_big_vul(
    root: Path,
    seed: int = 0,
    matched: bool = False,
    edges: Edges = "flow",
    embed: Embed = features,
    name: str = "big-vul",
) -> GraphSet:
    """Loads vulnerable functions and as many others, split 80/10/10 so that every part is balanced.

    Args:
        root: Folder that holds ``BigVul/raw``.
        seed: Which other functions, and which split.
        matched: Whether each vulnerable function has a partner of about its length, in the same part.
        edges: Which edges the graphs have, see ``agnncert_code.graph``.
        embed: Makes features from the statements' texts, see ``agnncert_code.FunctionGraph.to_data``.
        name: Name of the set.

    Raises:
        DatasetError: The file is missing or cannot be read.
    """
    corpus = load_corpus(root, edges)
    vulnerable = np.flatnonzero(corpus.label == 1)
    others = partners(corpus, seed) if matched else drawn(corpus, seed)
    rows = np.concatenate([vulnerable, others])
    graphs = [_data(corpus, int(k), embed) for k in rows]
    graph_set = GraphSet(graphs, num_classes=2, class_names=CLASS_NAMES, name=name)
    return graph_set.set_split(_split(len(vulnerable), seed, matched), BY_CLASS)


def load_big_vul_matched(root: Path, seed: int = 0) -> GraphSet:
    """Loads Big-Vul with a partner of about equal length for each vulnerable function."""
    return load_big_vul(root, seed, matched=True, name="big-vul-matched")


def drawn(corpus: Corpus, seed: int) -> IntArray:
    """Draws as many functions that are not listed as vulnerable as there are others."""
    others = np.flatnonzero(corpus.label == 0)
    return np.sort(np.random.default_rng(seed).choice(others, int(corpus.label.sum()), replace=False))


def partners(corpus: Corpus, seed: int) -> IntArray:
    """Draws, for each vulnerable function, another one near it in number of tokens and of statements, each once."""
    rng = np.random.default_rng(seed)
    num_statements = np.array([len(graph.ids) for graph in corpus.graphs])
    size = np.log(np.stack([corpus.length + 1, num_statements + 1]))
    vulnerable = np.flatnonzero(corpus.label == 1)
    others = np.flatnonzero(corpus.label == 0)
    is_free = np.ones(len(others), dtype=bool)
    partner = np.empty(len(vulnerable), dtype=np.int64)
    # The longest first: they have the fewest possible partners.
    for k in np.argsort(-corpus.length[vulnerable], kind="stable"):
        distance = np.abs(size[:, others] - size[:, vulnerable[k], None]).sum(axis=0)
        distance[~is_free] = np.inf
        is_near = (distance <= _nearest_distance(distance)) & is_free
        pick = rng.choice(np.flatnonzero(is_near))
        is_free[pick] = False
        partner[k] = others[pick]
    return partner


def _nearest_distance(distance: npt.NDArray[np.float64]) -> float:
    """Returns the distance within which the ``NEAREST`` nearest lie."""
    if len(distance) > NEAREST:
        distance = distance[np.argpartition(distance, NEAREST)[: NEAREST + 1]]
    return float(np.sort(distance)[min(NEAREST, len(distance)) - 1])


def _split(count: int, seed: int, matched: bool) -> tuple[torch.Tensor, ...]:
    """Returns the parts as positions in the list of vulnerable functions, followed by the others."""
    if not matched:
        return stratified_split(torch.arange(2 * count) // count, FRACTIONS, seed)
    parts = stratified_split(torch.zeros(count, dtype=torch.long), FRACTIONS, seed)
    return tuple(torch.cat([part, part + count]) for part in parts)


def _data(corpus: Corpus, k: int, embed: Embed) -> Data:
    """Returns one function for the task."""
    data = both_ways(corpus.graphs[k].to_data(embed))
    data.y = torch.tensor([int(corpus.label[k])])
    data.graph_id = int(corpus.row[k])
    return data


def both_ways(data: Data) -> Data:
    """Returns the same function with edges in both directions, each pair once with all kinds that join it."""
    count = int(data.num_nodes or 0)
    src, dst = data.edge_index.numpy()
    edge_attr = data.edge_attr.numpy()
    pairs, pair_of_edge = np.unique(np.concatenate([src * count + dst, dst * count + src]), return_inverse=True)
    kinds = np.zeros((len(pairs), edge_attr.shape[1]), dtype=edge_attr.dtype)
    np.maximum.at(kinds, pair_of_edge, np.concatenate([edge_attr, edge_attr]))
    data.edge_index = torch.from_numpy(np.stack(np.divmod(pairs, count)))
    data.edge_attr = torch.from_numpy(kinds)
    return data


def load_corpus(root: Path, edges: Edges = "flow") -> Corpus:
    """Loads all distinct functions, from the texts or from the graphs kept beside them.

    Raises:
        DatasetError: The file is missing or cannot be read.
    """
    source = SOURCES["big-vul"]
    missing = source.missing(root)
    if missing:
        raise DatasetError(
            f"big-vul is not on this machine: {', '.join(missing)} is missing in {source.raw(root)}. It is "
            f"assembled, not downloaded: functions from {source.url}, label 1 where one of five public lists names the "
            "function; docs/code.md, section Big-Vul, lists them. Put the file there (gzipped JSON lines with "
            "id, label and func; your own functions will do), or pass root=... if it is elsewhere."
        )
    blob = (source.raw(root) / source.files[0]).read_bytes()
    kept = source.raw(root).parent / "processed" / f"functions-{_key(blob, edges)}.safetensors"
    if kept.is_file():
        try:
            _, arrays = read_sealed(kept, _FORMAT, 1, "file of functions", DatasetError)
            return _unpacked(arrays)
        except (DatasetError, ValueError, LookupError) as error:
            _log.warning("%s cannot be used (%s); reading the texts again", kept, error)
    corpus = read_corpus(blob, edges)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        header, arrays = _packed(corpus)
        write_sealed(kept, header, arrays, DatasetError)
    except (OSError, DatasetError) as error:
        _log.warning("graphs of big-vul are not kept for the next time: %s", error)
    return corpus


@dataclass
class _Function:
    """A function as the file lists it."""

    label: int
    row: int
    length: int
    text: str


def read_corpus(blob: bytes, edges: Edges = "flow") -> Corpus:
    """Reads gzipped JSON lines.

    Of functions that are equal token by token one is kept, which is vulnerable if any is.

    Args:
        blob: The content of the file.
        edges: Which edges the graphs have.

    Raises:
        DatasetError: It is something else.
    """
    try:
        functions = _distinct_functions(blob)
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise DatasetError(
            f"the file of big-vul cannot be read ({type(error).__name__}: {error}): expected gzipped JSON lines with "
            "id, label and func."
        ) from error
    graphs = [graph(function.text, edges=edges) for function in functions]
    filled = [k for k, function_graph in enumerate(graphs) if function_graph.ids]  # a text of comments has no statement
    return Corpus(
        np.array([functions[k].label for k in filled], dtype=np.int64),
        np.array([functions[k].row for k in filled], dtype=np.int64),
        np.array([functions[k].length for k in filled], dtype=np.int64),
        [graphs[k] for k in filled],
    )


def _distinct_functions(blob: bytes) -> list[_Function]:
    by_tokens: dict[str, _Function] = {}
    for line in gzip.decompress(blob).splitlines():
        listed = parse_json(line)
        words = tokens(listed["func"])
        label = int(listed["label"])
        key = " ".join(words)
        if key in by_tokens:
            by_tokens[key].label = max(by_tokens[key].label, label)
        else:
            by_tokens[key] = _Function(label, int(listed["id"]), len(words), listed["func"])
    return list(by_tokens.values())


def _key(blob: bytes, edges: str) -> str:
    """Returns a name that changes with the texts, the reader's version and the parser's."""
    packages = [f"{name} {metadata.version(name)}" for name in ("tree-sitter", "tree-sitter-cpp")]
    words = "\n".join([_FORMAT, str(VERSION), edges, *KINDS, *packages])
    return hashlib.sha256(words.encode() + hashlib.sha256(blob).digest()).hexdigest()[:16]


def _packed(corpus: Corpus) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """Returns header and arrays of a sealed file with all graphs one after the other."""
    graphs = corpus.graphs
    words = [word for graph in graphs for word in (graph.name, *graph.ids)]
    arrays: dict[str, npt.NDArray[Any]] = {
        "label": corpus.label,
        "row": corpus.row,
        "length": corpus.length,
        "nodes": np.array([len(graph.ids) for graph in graphs], dtype=np.int64),
        "edges": np.array([len(graph.kinds) for graph in graphs], dtype=np.int64),
        "partial": np.array([graph.partial for graph in graphs], dtype=np.uint8),
        "words": np.frombuffer(json.dumps(words, separators=(",", ":")).encode(), dtype=np.uint8),
        "lines": np.concatenate([graph.lines for graph in graphs]).astype(np.int32),
        "ends": np.concatenate([graph.edges for graph in graphs], axis=1).astype(np.int32),
        "kinds": np.concatenate([graph.kinds for graph in graphs]).astype(np.uint8),
    }
    return {"format": _FORMAT, "version": 1}, arrays


def _unpacked(arrays: dict[str, npt.NDArray[Any]]) -> Corpus:
    """Returns what ``_packed`` stored."""
    words = parse_json(arrays["words"].tobytes())
    num_nodes = arrays["nodes"].tolist()
    last_node = np.cumsum(num_nodes)[:-1]
    last_edge = np.cumsum(arrays["edges"])[:-1]
    parts = zip(
        num_nodes,
        np.split(arrays["lines"].astype(np.int64), last_node),
        np.split(arrays["ends"].astype(np.int64), last_edge, axis=1),
        np.split(arrays["kinds"].astype(np.int64), last_edge),
        arrays["partial"].tolist(),
        strict=True,
    )
    graphs = []
    start = 0
    for size, lines, ends, kinds, partial in parts:
        name, *ids = words[start : start + 1 + size]
        start += 1 + size
        texts = [node_id[node_id.index(" ") + 1 :] for node_id in ids]
        graphs.append(FunctionGraph(ids, texts, lines, ends, kinds, bool(partial), name))
    return Corpus(arrays["label"], arrays["row"], arrays["length"], graphs)
