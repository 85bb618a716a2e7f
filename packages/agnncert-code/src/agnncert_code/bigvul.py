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
from agnncert.datasets.splits import GraphSet, stratified_split
from agnncert.errors import DatasetError
from agnncert.storage import read_sealed, write_sealed
from agnncert_code.features import features
from agnncert_code.reading import KINDS, VERSION, Edges, Embed, FunctionGraph, graph
from agnncert_code.tokens import tokens

_log = logging.getLogger(__name__)

FRACTIONS = (0.8, 0.1, 0.1)
# Which edges the graphs of each dataset have: functions that are scanned must be read in the same way.
EDGES: dict[str, Edges] = {"big-vul": "flow", "big-vul-matched": "flow"}
CLASS_NAMES = ["not listed", "vulnerable"]
NEAREST = 5  # a vulnerable function's partner is one of so many that are nearest in length
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
    """Vulnerable functions and as many others, split 80/10/10 so that every part is balanced.

    Args:
        root: Folder that holds ``BigVul/raw``.
        seed: Which other functions, and which split.
        matched: Whether each vulnerable function has a partner of about its length, in the same part.
        edges: Which edges the graphs have, see ``agnncert_code.graph``.
        embed: Makes features from the statements' texts, see ``agnncert_code.FunctionGraph.to_data``.
        name: Name of the set.
    """
    corpus = load_corpus(root, edges)
    vulnerable = np.flatnonzero(corpus.label == 1)
    others = partners(corpus, seed) if matched else drawn(corpus, seed)
    rows = np.concatenate([vulnerable, others])
    train, val, test = _split(len(vulnerable), seed, matched)
    graphs = [_data(corpus, int(k), embed) for k in rows]
    return GraphSet(graphs, train, val, test, num_classes=2, class_names=CLASS_NAMES, name=name)


def load_big_vul_matched(root: Path, seed: int = 0) -> GraphSet:
    """Big-Vul with a partner of about equal length for each vulnerable function."""
    return load_big_vul(root, seed, matched=True, name="big-vul-matched")


def drawn(corpus: Corpus, seed: int) -> IntArray:
    """As many functions that are not listed as vulnerable as there are others, at random."""
    others = np.flatnonzero(corpus.label == 0)
    return np.sort(np.random.default_rng(seed).choice(others, int(corpus.label.sum()), replace=False))


def partners(corpus: Corpus, seed: int) -> IntArray:
    """For each vulnerable function another one near it in number of tokens and of statements, each used once."""
    rng = np.random.default_rng(seed)
    sizes = np.array([len(g.ids) for g in corpus.graphs])
    place = np.log(np.stack([corpus.length + 1, sizes + 1]))
    vulnerable, others = (np.flatnonzero(corpus.label == label) for label in (1, 0))
    free, of_others = np.ones(len(others), dtype=bool), place[:, others]
    chosen = np.empty(len(vulnerable), dtype=np.int64)
    # The longest first: they have the fewest possible partners.
    for k in np.argsort(-corpus.length[vulnerable], kind="stable"):
        distance = np.abs(of_others - place[:, vulnerable[k], None]).sum(axis=0)
        distance[~free] = np.inf
        few = np.argpartition(distance, NEAREST)[: NEAREST + 1] if len(others) > NEAREST else np.arange(len(others))
        limit = np.sort(distance[few])[min(NEAREST, len(few)) - 1]
        pick = rng.choice(np.flatnonzero((distance <= limit) & free))
        free[pick] = False
        chosen[k] = others[pick]
    return chosen


def _split(count: int, seed: int, matched: bool) -> tuple[torch.Tensor, ...]:
    """Positions in the list of vulnerable functions, followed by the others."""
    if not matched:
        return stratified_split(torch.arange(2 * count) // count, FRACTIONS, seed)
    parts = stratified_split(torch.zeros(count, dtype=torch.long), FRACTIONS, seed)
    return tuple(torch.cat([part, part + count]) for part in parts)


def _data(corpus: Corpus, k: int, embed: Embed) -> Data:
    """One function for the task."""
    data = both_ways(corpus.graphs[k].to_data(embed))
    data.y, data.graph_id = torch.tensor([int(corpus.label[k])]), int(corpus.row[k])
    return data


def both_ways(data: Data) -> Data:
    """The same function with edges in both directions, each pair once with all kinds that join it."""
    count, (src, dst), attr = int(data.num_nodes or 0), data.edge_index.numpy(), data.edge_attr.numpy()
    pairs, place = np.unique(np.concatenate([src * count + dst, dst * count + src]), return_inverse=True)
    kinds = np.zeros((len(pairs), attr.shape[1]), dtype=attr.dtype)
    np.maximum.at(kinds, place, np.concatenate([attr, attr]))
    data.edge_index, data.edge_attr = torch.from_numpy(np.stack(np.divmod(pairs, count))), torch.from_numpy(kinds)
    return data


def load_corpus(root: Path, edges: Edges = "flow") -> Corpus:
    """All distinct functions, read from the texts or from the graphs kept beside them."""
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
            return _unpacked(*read_sealed(kept, _FORMAT, 1, "file of functions", DatasetError))
        except (DatasetError, ValueError, LookupError) as error:
            _log.warning("%s cannot be used (%s); reading the texts again", kept, error)
    corpus = read_corpus(blob, edges)
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(kept, *_packed(corpus), DatasetError)
    except (OSError, DatasetError) as error:
        _log.warning("graphs of big-vul are not kept for the next time: %s", error)
    return corpus


def read_corpus(blob: bytes, edges: Edges = "flow") -> Corpus:
    """Reads gzipped JSON lines; of functions that are equal token by token, one is kept, vulnerable if any is."""
    try:
        lines = [json.loads(line) for line in gzip.decompress(blob).splitlines()]
        texts: dict[str, int] = {}
        labels: list[int] = []
        rows, lengths, sources = [], [], []
        for line in lines:
            words = tokens(line["func"])
            place = texts.setdefault(" ".join(words), len(labels))
            if place < len(labels):
                labels[place] = max(labels[place], int(line["label"]))
                continue
            labels.append(int(line["label"]))
            rows.append(int(line["id"]))
            lengths.append(len(words))
            sources.append(line["func"])
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise DatasetError(
            f"the file of big-vul cannot be read ({type(error).__name__}: {error}): expected gzipped JSON lines with "
            "id, label and func."
        ) from error
    graphs = [graph(text, edges=edges) for text in sources]
    filled = [k for k, found in enumerate(graphs) if found.ids]  # a text of comments only has no statement
    label, row, length = (np.array(values, dtype=np.int64)[filled] for values in (labels, rows, lengths))
    return Corpus(label, row, length, [graphs[k] for k in filled])


def _key(blob: bytes, edges: str) -> str:
    packages = [f"{name} {metadata.version(name)}" for name in ("tree-sitter", "tree-sitter-cpp")]
    words = "\n".join([_FORMAT, str(VERSION), edges, *KINDS, *packages])
    return hashlib.sha256(words.encode() + hashlib.sha256(blob).digest()).hexdigest()[:16]


def _packed(corpus: Corpus) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    graphs = corpus.graphs
    words = json.dumps([word for g in graphs for word in (g.name, *g.ids)], separators=(",", ":"))
    arrays: dict[str, npt.NDArray[Any]] = {
        "label": corpus.label,
        "row": corpus.row,
        "length": corpus.length,
        "nodes": np.array([len(g.ids) for g in graphs], dtype=np.int64),
        "edges": np.array([len(g.kinds) for g in graphs], dtype=np.int64),
        "partial": np.array([g.partial for g in graphs], dtype=np.uint8),
        "words": np.frombuffer(words.encode(), dtype=np.uint8),
        "lines": np.concatenate([g.lines for g in graphs]).astype(np.int32),
        "ends": np.concatenate([g.edges for g in graphs], axis=1).astype(np.int32),
        "kinds": np.concatenate([g.kinds for g in graphs]).astype(np.uint8),
    }
    return {"format": _FORMAT, "version": 1}, arrays


def _unpacked(_: dict[str, Any], arrays: dict[str, npt.NDArray[Any]]) -> Corpus:
    words = json.loads(arrays["words"].tobytes())
    graphs = []
    word = node = edge = 0
    sizes = zip(arrays["nodes"].tolist(), arrays["edges"].tolist(), arrays["partial"].tolist(), strict=True)
    for nodes, edges, partial in sizes:
        ids = words[word + 1 : word + 1 + nodes]
        graphs.append(
            FunctionGraph(
                ids=ids,
                texts=[name[name.index(" ") + 1 :] for name in ids],
                lines=arrays["lines"][node : node + nodes].astype(np.int64),
                edges=arrays["ends"][:, edge : edge + edges].astype(np.int64),
                kinds=arrays["kinds"][edge : edge + edges].astype(np.int64),
                partial=bool(partial),
                name=words[word],
            )
        )
        word, node, edge = word + 1 + nodes, node + nodes, edge + edges
    return Corpus(arrays["label"], arrays["row"], arrays["length"], graphs)
