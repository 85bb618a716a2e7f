"""The public datasets, read through PyTorch Geometric's own classes.

Those download what is missing and find what is there. Around them: a missing file gets an explanation instead
of a stack trace, files that are Python pickles are compared with their known checksum before anything is
unpickled, and what was read is compared with the known size, so that a truncated or "cleaned" copy does not
pass for the real one.
"""

import hashlib
import logging
import os
import urllib.error
import urllib.request
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch_geometric.datasets as pyg
from torch_geometric.data import Data

from agnncert.datasets.catalog import DatasetInfo
from agnncert.datasets.sources import SOURCES, Source
from agnncert.errors import DatasetError

_log = logging.getLogger(__name__)

_CONNECT_SECONDS = 10


# The Planetoid files are pickles, and unpickling runs whatever code a file contains.
PICKLES_SHA256 = {
    "ind.citeseer.allx": "2ac30345d95c9ec933a817ee0bdd6a5f077f8c184a20e696910192d534414668",
    "ind.citeseer.ally": "f704b2d986dde6c2669934de1f3ae5696a6cf9455c0f6b2646a2d135ea0a1c95",
    "ind.citeseer.graph": "d79a4ef9d3e7169aee8946145f6b7306e35bc79bffad26346cfb94e10e9912a7",
    "ind.citeseer.tx": "539a8906a2da97628d212f2fdd668c109a8b3f0d36574b59e5d3fd5b5303da21",
    "ind.citeseer.ty": "55e5bd1ba1e733a04598753ad1a8d57957f4b8f89e74519f41f4f4938767e4ce",
    "ind.citeseer.x": "d20de19150741e555de0ed037195630fc194114ebc7fd72ced62810148aa22f6",
    "ind.citeseer.y": "8ba87e515d8e3ee3cf52f6d2c5b86aa73f11ecad825a808455209ec26cd54924",
    "ind.pubmed.allx": "508e538e2abdccdd54c4d3e9f49d638b4af7107d85845f66ddea5a5152658b7e",
    "ind.pubmed.ally": "0c37bbe3b5014ec365e9d393cf4791925e5ed94fb194305d74f064a8d7b50f0e",
    "ind.pubmed.graph": "5b89f0036ca22909471f1e6558eb42fa06e0c730a577bde5b058b40638f81dc9",
    "ind.pubmed.tx": "4eb5f5d0f30f26497eb0ac6ac9719d09c67e284f1ed0385c93f3ef27a671da3d",
    "ind.pubmed.ty": "ee2e0d4819d9fbcc403689c3bf2e49face401b605932f093bc58ab6461130fdd",
    "ind.pubmed.x": "fbe9cb5c47200d1b7769a26e579be3b7130b556831f9d850e77c4c74f2599b33",
    "ind.pubmed.y": "e6c807633307a07ed659249006536a147c7999c797f11a2560752990181b41b3",
}


def load_public(info: DatasetInfo, root: Path) -> list[Data]:
    """The graphs of a public dataset (one, for the node task) as PyG's class returns them."""
    source = SOURCES[info.name]
    missing = source.missing(root)
    if missing:
        _require_network(info, source, root)
    before = set(source.raw(root).glob("*"))
    try:
        dataset = _read(source, root)
    except DatasetError:
        raise
    except BaseException as error:
        for file in set(source.raw(root).glob("*")) - before:  # half a download must not pass for a whole one
            with suppress(OSError):
                file.unlink()
        if not isinstance(error, Exception):
            raise
        if missing:
            raise _unreachable(info, source, root, error) from error
        raise DatasetError(
            f"the files of {info.name} in {source.raw(root)} cannot be read ({type(error).__name__}: "
            f"{error}). Delete that folder and {source.raw(root).parent / 'processed'}, then load it again."
        ) from error
    graphs = list(dataset)
    _compare_size(info, graphs, int(dataset.num_classes), source.raw(root))
    return graphs


class _Checked:
    """Put before a PyG dataset class: checks pickles before reading them, and writes its file in one step.

    Two processes may load the same dataset for the first time at once; neither must see half a file.
    """

    _workspace: str | None = None

    @property
    def processed_dir(self) -> str:
        return self._workspace or super().processed_dir  # type: ignore[misc]

    def _process(self: Any) -> None:
        if not all(os.path.exists(path) for path in self.processed_paths):
            os.makedirs(self.processed_dir, exist_ok=True)
            self.process()

    def process(self: Any) -> None:
        check_pickles(Path(path) for path in self.raw_paths)
        final = Path(self.processed_dir)
        with TemporaryDirectory(dir=final.parent) as workspace:
            self._workspace = workspace
            super().process()  # type: ignore[misc]
            self._workspace = None
            for file in Path(workspace).iterdir():
                os.replace(file, final / file.name)


def check_pickles(paths: Iterable[Path]) -> None:
    """Raises unless every file of ``paths`` that is a pickle has its known checksum."""
    for path in paths:
        expected = PICKLES_SHA256.get(path.name)
        if expected is not None and hashlib.sha256(path.read_bytes()).hexdigest() != expected:
            raise DatasetError(
                f"{path} is not the published file (its sha256 differs). It is a Python pickle, and reading "
                "a pickle can run any code inside it, so it was not opened. Delete it and load the dataset "
                "again."
            )


def _read(source: Source, root: Path) -> Any:
    cls = getattr(pyg, source.kind)
    options = {"use_node_attr": True} if source.kind == "TUDataset" else {}
    return type(cls.__name__, (_Checked, cls), {})(str(root), source.pyg_name, **options)


def _require_network(info: DatasetInfo, source: Source, root: Path) -> None:
    _log.info("downloading %s from %s", info.name, source.url)
    try:
        probe = urllib.request.Request(source.url, method="HEAD")
        urllib.request.urlopen(probe, timeout=_CONNECT_SECONDS).close()
    except urllib.error.HTTPError:
        pass  # the server answered; whether it has the file, the download will tell
    except OSError as error:
        raise _unreachable(info, source, root, error) from None


def _unreachable(info: DatasetInfo, source: Source, root: Path, error: Exception) -> DatasetError:
    files = source.missing(root)
    cause = getattr(error, "reason", None) or error or type(error).__name__
    return DatasetError(
        f"{info.name} is not on this machine and cannot be downloaded ({cause}).\n"
        f"  missing: {', '.join(files)}\n"
        f"  folder:  {source.raw(root)}\n"
        f"  source:  {source.url}\n"
        "Put the files into that folder, or pass root=... if they are elsewhere. "
        '"digits-knn" and "digits-grid" need no download.'
    )


def _compare_size(info: DatasetInfo, graphs: list[Data], classes: int, folder: Path) -> None:
    size = graphs[0].num_nodes if info.task == "node" else len(graphs)
    found = (size, classes, graphs[0].num_features)
    expected = (info.size, info.classes, info.features)
    if found != expected:
        unit = "nodes" if info.task == "node" else "graphs"
        raise DatasetError(
            f"the files in {folder} are not {info.name} as published: {unit}, classes, features are {found}, "
            f"expected {expected}. They may be truncated or a cleaned variant: delete the folder and load it "
            "again."
        )
