"""Tables that somebody else made: each is a graph, or is refused with an error of ours."""

import datetime
import decimal
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from agnncert.datasets.tables import load_tables
from agnncert.errors import AgnncertError

COUNT = 60
NAMES = [f"u{k}" for k in range(COUNT)]
ENDS = [f"u{(5 * k + 1) % COUNT}" for k in range(COUNT)]
LABELS = ["cat", "dog"] * (COUNT // 2)
CSV = (
    "id,label,a,b\n" + "".join(f"u{k},{LABELS[k]},{k / 2},{-k}\n" for k in range(COUNT)),
    "source,target\n" + "".join(f"{u},{v}\n" for u, v in zip(NAMES, ENDS, strict=True)),
)
TEXTS = [
    "\0",
    '"',
    "'",
    ",",
    ";",
    "\n",
    "\r",
    "nan",
    "-inf",
    "1e999",
    "9" * 40,
    "\ufeff",
    "=cmd|1",
    "None",
    "1_0",
    "\u0663",
    "\\",
]


def parquet_files(folder: Path) -> tuple[bytes, bytes]:
    pq.write_table(pa.table({"id": NAMES, "label": LABELS, "a": [k / 2 for k in range(COUNT)]}), folder / "n")
    pq.write_table(pa.table({"source": NAMES, "target": ENDS}), folder / "e")
    return (folder / "n").read_bytes(), (folder / "e").read_bytes()


def damaged(content: bytes, rng: random.Random) -> bytes:
    """The content with a bit flipped, cut, with a hostile text in it, with a piece gone, or with noise in it."""
    place, how = rng.randrange(len(content)), rng.randrange(5)
    before, after = content[:place], content[place:]
    if how == 0:
        return before + bytes([after[0] ^ 1 << rng.randrange(8)]) + after[1:]
    if how == 1:
        return before
    if how == 2:
        return before + rng.choice(TEXTS).encode() + after
    return before + (after[rng.randrange(30) :] if how == 3 else rng.randbytes(5) + after)


def is_graph_or_refused(folder: Path, nodes: bytes, edges: bytes, ending: str) -> bool:
    (folder / f"nodes.{ending}").write_bytes(nodes)
    (folder / f"edges.{ending}").write_bytes(edges)
    try:
        data = load_tables(nodes=folder / f"nodes.{ending}", edges=folder / f"edges.{ending}")
    except AgnncertError:
        return False
    assert data.x.isfinite().all()
    assert int(data.edge_index.max()) < data.num_nodes
    assert len(set(data.node_id if isinstance(data.node_id, list) else data.node_id.tolist())) == data.num_nodes
    return True


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_damaged_tables_are_graphs_or_refused(ending, tmp_path) -> None:
    rng = random.Random(0)
    nodes, edges = (text.encode() for text in CSV) if ending == "csv" else parquet_files(tmp_path)
    assert is_graph_or_refused(tmp_path, nodes, edges, ending)
    read = [is_graph_or_refused(tmp_path, damaged(nodes, rng), edges, ending) for _ in range(60)]
    read += [is_graph_or_refused(tmp_path, nodes, damaged(edges, rng), ending) for _ in range(60)]
    assert True in read
    assert False in read


TYPES = {
    "lists of different lengths": pa.array([[1.0] * (k % 3) for k in range(COUNT)]),
    "lists of lists": pa.array([[[1.0]]] * COUNT),
    "objects": pa.array([{"a": 1}] * COUNT),
    "bytes": pa.array([b"\xff\x00"] * COUNT),
    "times": pa.array([datetime.datetime(2024, 1, 1)] * COUNT),
    "decimals": pa.array([decimal.Decimal("1e30")] * COUNT),
    "numbers that no float holds": pa.array([1e308 * 10] * COUNT),
    "missing": pa.array([None] * COUNT, type=pa.float64()),
    "booleans": pa.array([True] * COUNT),
    "huge whole numbers": pa.array([2**64 - 1] * COUNT, type=pa.uint64()),
    "a dictionary": pa.array(["x"] * COUNT).dictionary_encode(),
    "nothing": pa.nulls(COUNT),
}


@pytest.mark.parametrize("values", TYPES.values(), ids=TYPES)
@pytest.mark.parametrize("column", ["id", "label", "a", "split"])
def test_columns_of_any_type_are_read_or_refused(values, column, tmp_path) -> None:
    table = {"id": NAMES, "label": LABELS, "a": [1.0] * COUNT, column: values}
    _, edges = parquet_files(tmp_path)
    pq.write_table(pa.table(table), tmp_path / "n")
    is_graph_or_refused(tmp_path, (tmp_path / "n").read_bytes(), edges, "parquet")
