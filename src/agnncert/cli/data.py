"""The data of a run: how it is read, what a run folder records about it, and which targets it has."""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from agnncert.addons import addon
from agnncert.certificates.votes import IntArray
from agnncert.cli.folder import ENCODING, RunFolder
from agnncert.cli.settings import EVENT_COLUMNS, DataSettings
from agnncert.cli.tables_of import table_file
from agnncert.datasets.catalog import DATASETS
from agnncert.datasets.columns import FORMATS, locate
from agnncert.datasets.drawn_splits import BY_CLASS, BY_ID, RECORD
from agnncert.datasets.encoding import Encode, encoding_of
from agnncert.datasets.event_files import files_of
from agnncert.datasets.events import load_events
from agnncert.datasets.fraud import trusted_edges
from agnncert.datasets.load import load_dataset
from agnncert.datasets.splits import dataset_digest
from agnncert.datasets.tables import load_tables
from agnncert.datasets.threshold_part import keep_for_threshold
from agnncert.datasets.tu import tu_files
from agnncert.errors import DatasetError, SettingsError, did_you_mean
from agnncert.graphs.in_parts import GraphInParts
from agnncert.graphs.targets import CanonicalData, target_rows
from agnncert.graphs.task import task_of_targets
from agnncert.progress import OnProgress
from agnncert.stacked.training import mark_trusted
from agnncert.storage import write_atomic
from agnncert.study import num_targets, part_rows

if TYPE_CHECKING:
    from torch_geometric.data import Data

log = logging.getLogger(__name__)

ON_DISK = "manifest.json"  # of a folder that ``write_graph`` wrote
LARGEST_COPY = 50_000_000  # bytes of tables that a run folder keeps a copy of
WORTH_SAYING = 10_000_000  # bytes of events, which take a second or more to read
MOST_COUNTED = 20_000_000  # directed edges; the pairs among more would take long to count
PARTS = ("train", "val", "test")


def load_data(settings: DataSettings, progress: OnProgress | None = None) -> Any:
    """Loads the graph, or graphs, that settings name, and keeps a share for the threshold if they say so.

    Args:
        settings: The settings.
        progress: Called while a table of events is read.

    Raises:
        DatasetError: There is no such dataset or folder, or its content cannot be used.
    """
    return _with_kept(_load(settings, progress), settings)


def _with_kept(data: Any, settings: DataSettings) -> Any:
    """Returns the data with a share of the known targets kept for a threshold, if the settings say so."""
    if settings.keep is None:
        return data
    name = settings.keep_for
    positive = int(name) if name is not None and name.isdecimal() else name
    return keep_for_threshold(data, settings.keep, positive=positive, seed=settings.seed)


def _load(settings: DataSettings, progress: OnProgress | None) -> Any:
    if has_events(settings):
        return _load_events(settings, cut_off=None, encode=settings.encode, progress=progress)
    if settings.nodes or settings.edges or settings.graphs or settings.pairs:
        return _load_tables(settings)
    if settings.data in DATASETS:
        return _load_dataset(settings)
    if not settings.data:
        raise DatasetError("no data was named: give the name of a dataset, or a folder with tables of nodes and edges.")
    folder = Path(settings.data)
    if not folder.is_dir():
        raise DatasetError(
            f'no dataset and no folder is called "{settings.data}": {did_you_mean(settings.data, DATASETS)} '
            "Your own graph: a folder with nodes.csv and edges.csv (and pairs.csv, for decisions about pairs), or with "
            "events.csv, of write_graph, or with a TU dataset's files."
        )
    if (folder / ON_DISK).is_file():
        return _open_graph(settings)
    return _load_tables(settings)


def _load_dataset(settings: DataSettings) -> Any:
    split = None if settings.split_by is None else f"by-{settings.split_by}"
    data = load_dataset(settings.data, root=settings.root, seed=settings.seed, split=split)
    if settings.trusted is None:
        return data
    marked, _ = mark_trusted(data, trusted_edges(data, settings.trusted))
    return marked


def _open_graph(settings: DataSettings) -> Any:
    if settings.trusted is not None:
        raise SettingsError(f"{settings.data} is a graph on disk: trusted edges are for tables and datasets.")
    open_graph = addon("agnncert.names", "open_graph", "agnncert_large", f"{settings.data}, a graph on disk,")
    graph = open_graph(settings.data)
    if isinstance(graph, GraphInParts):
        raise SettingsError(
            f"{settings.data} is a graph in parts, which commands cannot hold: train, certify and verify it in Python "
            "(ac.fit, ac.certify and ac.verify take ac.open_graph)."
        )
    return graph


def has_events(settings: DataSettings) -> bool:
    """Returns whether the data is a table of events.

    Raises:
        SettingsError: The folder has a table of edges as well, and neither is named.
    """
    if settings.events is not None:
        return True
    if settings.edges is not None or settings.data in DATASETS or not settings.data:
        return False
    kinds = {kind for kind in ("events", "edges") for suffix in FORMATS if _is_table(settings.data, kind + suffix)}
    if Path(settings.data, "events").is_dir():
        kinds.add("events")
    if len(kinds) > 1:
        raise SettingsError(
            f"{settings.data} has a table of events and one of edges: say which, with --set events=FILE or --set "
            "edges=FILE."
        )
    return kinds == {"events"}


def _is_table(folder: str, name: str) -> bool:
    return Path(folder, name).is_file()


def load_training(settings: DataSettings, progress: OnProgress | None = None) -> tuple[Any, Any]:
    """Loads what training may see, and the whole data. They are the same without a cut-off in time.

    The columns are encoded as the first one shows.

    Args:
        settings: The settings.
        progress: Called while a table of events is read.

    Raises:
        DatasetError: As ``load_data``.
        SettingsError: There is a cut-off, and the data is no table of events.
    """
    if settings.cut_off is None:
        data = load_data(settings, progress)
        return data, data
    if not has_events(settings):
        raise SettingsError(f"cut_off={settings.cut_off} is for tables of events: other edges have no time.")
    seen = _load_events(settings, cut_off=settings.cut_off, encode=settings.encode, progress=progress)
    whole = _load_events(settings, cut_off=None, encode=seen.encoding, progress=progress)
    return _with_kept(seen, settings), _with_kept(whole, settings)


def require_classes(data: Any) -> None:
    """Raises DatasetError if nothing in the data says which classes there are."""
    if getattr(data, "y", None) is None and getattr(data, "edge_label", None) is None:
        raise DatasetError(
            'there is no class to learn: training needs a column "label", empty where a class is not '
            "known. If a column has another name, pass it (--set column.label=NAME)."
        )


def load_as_of(
    settings: DataSettings, as_of: str | None, encode: Encode = None, progress: OnProgress | None = None
) -> Any:
    """Loads a table of events as of a time, with the columns encoded as settings say or as they were before."""
    return _load_events(replace(settings, as_of=as_of), None, encode or settings.encode, progress)


def _load_events(settings: DataSettings, cut_off: str | None, encode: Encode, progress: OnProgress | None) -> Any:
    """Loads a table of events, and with a cut-off what training may see of it."""
    if settings.pairs or (settings.data and any(_is_table(settings.data, f"pairs{suffix}") for suffix in FORMATS)):
        raise SettingsError(
            "pairs are read beside a table of edges, and here is a table of events, which has a time: write the edges "
            "that were there when the decision is made to edges.csv, and name it with --set edges=FILE."
        )
    foreign = [name for name in ("graphs", "repeated", "edge_feature", "pair_feature") if getattr(settings, name)]
    if foreign:
        raise SettingsError(
            f'"{foreign[0]}" is for tables of edges: what edges say about events is set by edge_value, as in '
            '--set "edge_value=log(count),mean(log(amount))".'
        )
    _say_size(table_file(settings, "events"))
    return load_events(
        settings.data or None,
        events=settings.events,
        nodes=settings.nodes,
        values=settings.edge_value or None,
        directed=settings.directed is not False,
        features=_listed(settings.feature),
        as_of=settings.as_of,
        cut_off=cut_off,
        encode=encode or "auto",
        trusted=settings.trusted,
        seed=settings.seed,
        name=settings.name,
        split_by=settings.split_by or BY_CLASS,
        classes=settings.classes or None,
        progress=progress,
        **_column_names(settings),
    )


def _say_size(events: Path) -> None:
    """Says how much there is to read, if that takes a while."""
    files = files_of(events)
    size = sum(file.stat().st_size for file in files)
    if size >= WORTH_SAYING:
        number = f"{len(files)} file{'s' if len(files) > 1 else ''}"
        log.info("reading the events of %s (%s, %s MB)", events, number, f"{size / 1e6:,.0f}")


def _column_names(settings: DataSettings) -> dict[str, Any]:
    columns: dict[str, Any] = {**settings.column}
    if columns.get("label") == "none":
        columns["label"] = None
    return columns


def _listed(names: Sequence[str]) -> Sequence[str] | None:
    """Returns names that a setting lists: None if it is not set, and none if it says "none"."""
    if tuple(names) == ("none",):
        return []
    return names or None


def _load_tables(settings: DataSettings) -> Any:
    for name in ("edge_value", "as_of", "cut_off"):
        if getattr(settings, name):
            raise SettingsError(f'"{name}" is for tables of events: name one with --set events=FILE.')
    columns = _column_names(settings)
    for name in EVENT_COLUMNS:
        if name in columns:
            raise SettingsError(f"column.{name} is for tables of events: name one with --set events=FILE.")
    return load_tables(
        settings.data or None,
        nodes=settings.nodes,
        edges=settings.edges,
        graphs=settings.graphs,
        pairs=settings.pairs,
        directed=bool(settings.directed),
        features=settings.feature or None,
        seed=settings.seed,
        name=settings.name,
        edge_features=_listed(settings.edge_feature),
        encode=settings.encode,
        repeated=settings.repeated,
        trusted=settings.trusted,
        pair_features=_listed(settings.pair_feature),
        split_by=settings.split_by or BY_ID,
        classes=settings.classes or None,
        **columns,
    )


def trusted_column(data: Any) -> int:
    """Returns the column of ``edge_attr`` that marks trusted edges, which is the last one.

    Raises:
        SettingsError: No data is named.
    """
    if data is None:
        raise SettingsError("--trusted marks edges of the data: name the data.")
    return int(data.edge_attr.size(1)) - 1


def describe(canonical_data: CanonicalData, settings: DataSettings) -> dict[str, Any]:
    """Returns what a run folder stores about its data."""
    data = canonical_data.data
    graphs = data if canonical_data.task == "graph" else [data]
    classes = getattr(data, "num_classes", None)
    encoding = encoding_of(data)
    return {
        "name": getattr(data, "name", None) or settings.data,
        "task": task_of_targets(data),
        "digest": dataset_digest(canonical_data),
        "graphs": len(graphs),
        "nodes": sum(int(graph.num_nodes) for graph in graphs),
        "edges": _num_pairs(graphs),
        "pairs": num_targets(canonical_data) if task_of_targets(data) == "pair" else None,
        "features": int(graphs[0].num_features),
        "classes": None if classes is None else int(classes),
        "class_names": class_names(data),
        "split": _split_of(canonical_data) or None,
        "split_by": getattr(data, RECORD, None),
        "split_by_time": settings.column.get("time"),
        "repeated_edges": getattr(data, "repeated_edges", None),
        "events": getattr(data, "num_events", None),
        "nodes_without_a_row": getattr(data, "num_unlisted", None),
        "as_of": settings.as_of,
        "cut_off": settings.cut_off,
        "trusted": settings.trusted,
        "encoding": None if encoding is None else encoding.digest,
    }


def _split_of(canonical_data: CanonicalData) -> dict[str, int]:
    """Returns the number of targets in each part that the data has."""
    sizes = {}
    for part in PARTS:
        rows = part_rows(canonical_data, part)
        if rows is not None:
            sizes[part] = len(rows)
    return sizes


def _num_pairs(graphs: "Sequence[Data]") -> int | None:
    """Returns the number of edges, those of both directions once; ``None`` if it would take long to count them."""
    if sum(int(graph.num_edges) for graph in graphs) >= MOST_COUNTED:
        return None
    total = 0
    for graph in graphs:
        low, high = graph.edge_index.aminmax(dim=0)
        total += int(torch.unique(low * int(graph.num_nodes) + high).numel())
    return total


def class_names(data: Any) -> list[str] | None:
    """Returns what the classes of the data are called; ``None`` if they only have numbers."""
    names = getattr(data, "class_names", None)
    return None if names is None else [str(name) for name in names]


def copy_tables(settings: DataSettings, folder: RunFolder, data: Any) -> None:
    """Keeps a user's own tables and their encoding in the run folder, so that later steps need no others."""
    if settings.data in DATASETS:
        return
    encoding = encoding_of(data)
    if encoding is not None:
        folder.write(ENCODING, encoding.to_json())
    if settings.data and Path(settings.data, ON_DISK).is_file():
        log.warning("the graph stays in %s: later steps need --root with the folder that holds it", settings.data)
        return
    files = _table_files(settings)
    if sum(file.stat().st_size for file in files.values()) > LARGEST_COPY:
        log.warning(
            "the tables are too large for a copy in %s: later steps need --root with the folder of them", folder
        )
        return
    for stale in folder.tables.rglob("*"):  # of the same graph, when its tables were in other files
        if stale.is_file() and stale.relative_to(folder.tables).as_posix() not in files:
            stale.unlink()
    for name, file in files.items():
        copy = folder.tables / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or not copy.samefile(file):
            write_atomic(copy, file.read_bytes())


def _table_files(settings: DataSettings) -> dict[str, Path]:
    """Returns the files that the data was read from, by where their copies are in the folder of a run's tables."""
    kinds = ("nodes", "events") if has_events(settings) else ("nodes", "edges", "graphs", "pairs")
    files: dict[str, Path] = {}
    for kind in kinds:
        table = locate(settings.data or None, kind, getattr(settings, kind), is_required=False)
        if table is not None and table.is_dir():
            files |= {f"{kind}/{file.name}": file for file in files_of(table)}
        elif table is not None:
            files[f"{kind}{table.suffix}"] = table
    if settings.data and not files:
        files = {path.name: path for path in tu_files(settings.data).values()}
    return files


def targets_of(canonical_data: CanonicalData, part: str | None) -> IntArray:
    """Returns the rows of a part of the data. Defaults to the test part, or to all targets if there is none.

    Raises:
        SettingsError: The data has no such part.
    """
    if part == "labelled":
        return _labelled_rows(canonical_data)
    rows = None if part == "all" else part_rows(canonical_data, part or "test")
    if rows is not None and len(rows):
        return rows
    if part not in (None, "all"):
        raise SettingsError(f"the data has no {part} part: use --set targets=all.")
    return target_rows(None, num_targets(canonical_data))


def _labelled_rows(canonical_data: CanonicalData) -> IntArray:
    """Returns the rows of all targets with a true class.

    Raises:
        SettingsError: There are none, or the targets are pairs.
    """
    if task_of_targets(canonical_data.data) == "pair":
        raise SettingsError("targets=labelled is for nodes and graphs: list the pairs to certify in pairs.csv.")
    truth = canonical_data.targets(None).truth
    rows = np.arange(0) if truth is None else np.flatnonzero(truth >= 0)
    if not len(rows):
        raise SettingsError("no target of the data has a true class: use --set targets=all.")
    return rows


def file_name(text: str) -> str:
    """Returns the same text with a dash in place of what does not belong into the name of a file."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
