"""The datasets that can be loaded by name, their files, and where the files belong. Imports no torch."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agnncert.errors import DatasetError, did_you_mean


@dataclass(frozen=True)
class DatasetInfo:
    """One entry of the list of datasets.

    Attributes:
        name: What to pass to ``load_dataset``.
        task: ``"node"`` or ``"graph"``.
        size: Number of nodes (node task) or of graphs (graph task).
        edges: Undirected edges, each pair once; per graph on average in the graph task.
        classes: Number of classes.
        features: Features per node.
        about: What nodes, edges and classes stand for.
        download: Whether its files have to be downloaded.
        addon: The add-on package that loads it, or empty.
    """

    name: str
    task: Literal["node", "graph"]
    size: int
    edges: float
    classes: int
    features: int
    about: str
    download: bool = True
    addon: str = ""


DATASETS: dict[str, DatasetInfo] = {
    info.name: info
    for info in (
        DatasetInfo("cora-ml", "node", 2995, 8158, 7, 2879, "papers on machine learning, joined by citations"),
        DatasetInfo("citeseer", "node", 3327, 4552, 6, 3703, "papers on computing, joined by citations"),
        DatasetInfo("pubmed", "node", 19717, 44324, 3, 500, "papers on diabetes, joined by citations"),
        DatasetInfo("amazon-c", "node", 13752, 245861, 10, 767, "computer goods, joined if bought together"),
        DatasetInfo("coauthor-physics", "node", 34493, 247962, 5, 8415, "physicists, joined by joint papers"),
        DatasetInfo("aids", "graph", 2000, 16.20, 2, 42, "molecules: active against HIV or not"),
        DatasetInfo("mutag", "graph", 4337, 30.77, 2, 14, "molecules: mutagenic or not (Mutagenicity)"),
        DatasetInfo("proteins", "graph", 1113, 72.82, 2, 4, "proteins: enzymes or not"),
        DatasetInfo("dd", "graph", 1178, 715.66, 2, 89, "protein structures: enzymes or not"),
        DatasetInfo("mutag-188", "graph", 188, 19.79, 2, 7, "molecules: the small, classic MUTAG set"),
        DatasetInfo(
            "big-vul", "graph", 1674, 121.58, 2, 327, "C and C++ functions: vulnerable or not", addon="agnncert-code"
        ),
        DatasetInfo(
            "big-vul-matched",
            "graph",
            1674,
            179.26,
            2,
            327,
            "big-vul, with functions of equal length",
            addon="agnncert-code",
        ),
        DatasetInfo(
            "amazon2m", "node", 2449029, 61859140, 47, 100, "Amazon goods, joined if bought together (ogbn-products)"
        ),
        *(
            DatasetInfo(f"amazon2m-like{end}", "node", round(2449029 / k), round(61859140 / k), 47, 100, about, False)
            for k, end, about in (
                (1, "", "synthetic: generated, of the size of Amazon2M"),
                *((k, f"-{k}", f"synthetic: generated, of the size of Amazon2M divided by {k}") for k in (4, 16, 64)),
            )
        ),
        DatasetInfo("digits-knn", "node", 1797, 7522, 10, 64, "written digits, joined to the nearest", False),
        DatasetInfo("digits-grid", "graph", 1797, 66.24, 10, 17, "written digits: lit pixels, joined", False),
    )
}


def dataset_info(name: str) -> DatasetInfo:
    """The entry of ``name``; raises DatasetError with the nearest name if there is none."""
    if name not in DATASETS:
        raise DatasetError(f'no dataset is called "{name}": {did_you_mean(name, DATASETS)}')
    return DATASETS[name]


def default_root() -> Path:
    """The default folder of the datasets, in the user's cache."""
    return Path.home() / ".cache" / "agnncert" / "data"


_PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


@dataclass(frozen=True)
class Source:
    """The PyG class that reads a dataset, and its files."""

    kind: str
    pyg_name: str
    folder: str
    files: tuple[str, ...]

    @property
    def url(self) -> str:
        """The address of the download."""
        if self.kind == "ogb":
            return "http://snap.stanford.edu/ogb/data/nodeproppred/products.zip"
        import torch_geometric.datasets as pyg

        base = str(getattr(pyg, self.kind).url)
        if self.kind == "TUDataset":
            return f"{base}/{self.pyg_name}.zip"
        if self.kind == "Planetoid":
            return f"{base}/{self.files[0]}"
        return base.format(self.pyg_name.lower()) if "{}" in base else base + self.files[0]

    def raw(self, root: Path) -> Path:
        """The folder of the downloaded files."""
        return root / self.folder / "raw"

    def missing(self, root: Path) -> list[str]:
        """Files that are not in the folder."""
        return [file for file in self.files if not (self.raw(root) / file).is_file()]


def _planetoid(name: str) -> Source:
    return Source("Planetoid", name, name, tuple(f"ind.{name.lower()}.{part}" for part in _PLANETOID_PARTS))


def _tu(name: str, attributes: bool = False) -> Source:
    parts = ["A", "graph_indicator", "graph_labels", "node_labels"] + ["node_attributes"] * attributes
    return Source("TUDataset", name, name, tuple(f"{name}_{part}.txt" for part in parts))


OGB_PARTS = {"train": "train_mask", "valid": "val_mask", "test": "test_mask"}
_OGB_RAW = ("edge", "node-feat", "node-label", "num-node-list", "num-edge-list")


def _ogb(folder: str, split: str) -> Source:
    files = [f"{name}.csv.gz" for name in _OGB_RAW] + [f"../split/{split}/{part}.csv.gz" for part in OGB_PARTS]
    return Source("ogb", "", folder, tuple(files))


SOURCES = {
    "cora-ml": Source("CitationFull", "Cora_ML", "cora_ml", ("cora_ml.npz",)),
    "citeseer": _planetoid("CiteSeer"),
    "pubmed": _planetoid("PubMed"),
    "amazon-c": Source("Amazon", "Computers", "Computers", ("amazon_electronics_computers.npz",)),
    "coauthor-physics": Source("Coauthor", "Physics", "Physics", ("ms_academic_phy.npz",)),
    "aids": _tu("AIDS", attributes=True),
    "mutag": _tu("Mutagenicity"),
    "proteins": _tu("PROTEINS", attributes=True),
    "dd": _tu("DD"),
    "mutag-188": _tu("MUTAG"),
    "amazon2m": _ogb("ogbn_products", "sales_ranking"),
    "big-vul": Source("", "", "BigVul", ("bigvul_linevul_test_split.jsonl.gz",)),
    "big-vul-matched": Source("", "", "BigVul", ("bigvul_linevul_test_split.jsonl.gz",)),
}

# The Planetoid files are pickles, and unpickling can run code.
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
