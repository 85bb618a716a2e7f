"""The datasets that can be loaded by name, their files, and where the files belong. Imports no torch.

``docs/commands/datasets.md`` has licences, what to cite, and what is known to be odd about the data.
"""

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
        edges: Undirected edges, each pair once, per graph on average in the graph task.
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
        DatasetInfo("nci1", "graph", 4110, 32.30, 2, 37, "molecules: active against lung cancer cells or not"),
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
            "cresci-15", "node", 5301, 4275, 2, 6, "Twitter accounts, joined if one follows the other: bot or not"
        ),
        DatasetInfo("ethereum-phishing", "node", 86622, 104322, 2, 1, "addresses, joined by payments: phishing or not"),
        DatasetInfo("bitcoin-otc", "node", 5881, 21492, 2, 1, "traders, joined by ratings: fraudulent or trusted"),
        DatasetInfo("tolokers", "node", 11758, 519000, 2, 10, "crowd workers, joined by common tasks: banned or not"),
        DatasetInfo("digits-knn", "node", 1797, 7522, 10, 64, "written digits, joined to the nearest", download=False),
        DatasetInfo(
            "accounts-generated", "node", 5000, 42551, 2, 4, "generated accounts, 3 % of them fraud", download=False
        ),
        DatasetInfo("circles-generated", "node", 1000, 12410, 4, 4, "generated circles of friends", download=False),
        DatasetInfo("digits-grid", "graph", 1797, 66.24, 10, 17, "written digits: lit pixels, joined", download=False),
    )
}


def dataset_info(name: str) -> DatasetInfo:
    """Returns the entry of ``name``, or raises DatasetError with the nearest name if there is none."""
    if name not in DATASETS:
        raise DatasetError(f'no dataset is called "{name}": {did_you_mean(name, DATASETS)}')
    return DATASETS[name]


def default_root() -> Path:
    """Returns the default folder of the datasets, in the user's cache."""
    return Path.home() / ".cache" / "agnncert" / "data"


@dataclass(frozen=True)
class Source:
    """The files of a dataset: where they come from and where they belong.

    Attributes:
        kind: How they are read: "npz", "planetoid", "tu", "fraud", or "" if an add-on reads them.
        folder: Their folder below the root. They are in its subfolder ``raw``.
        files: Their names. Each may also be there with ``.gz`` after its name.
        url: Address of a zip archive of them, or of one file, with ``{}`` for its name.
        remote: Their names at that address, if they differ.
    """

    kind: str
    folder: str
    files: tuple[str, ...]
    url: str
    remote: tuple[str, ...] = ()

    def raw(self, root: Path) -> Path:
        """Returns the folder of the downloaded files."""
        return root / self.folder / "raw"

    def paths(self, root: Path) -> list[Path]:
        """Returns the files, compressed where there is a compressed one, else plain."""
        paths = []
        for file in self.files:
            compressed = self.raw(root) / f"{file}.gz"
            paths.append(compressed if compressed.is_file() else self.raw(root) / file)
        return paths

    def missing(self, root: Path) -> list[str]:
        """Returns the names of files that are not in the folder."""
        return [path.name for path in self.paths(root) if not path.is_file()]


_GITHUB = "https://github.com/{}/raw/master/data/{{}}"


def _planetoid(name: str) -> Source:
    parts = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")
    files = tuple(f"ind.{name.lower()}.{part}" for part in parts)
    return Source("planetoid", name, files, _GITHUB.format("kimiyoung/planetoid"))


def _tu(name: str, attributes: bool = False) -> Source:
    parts = ["A", "graph_indicator", "graph_labels", "node_labels"]
    if attributes:
        parts.append("node_attributes")
    files = tuple(f"{name}_{part}.txt" for part in parts)
    return Source("tu", name, files, f"https://www.chrsmrrs.com/graphkerneldatasets/{name}.zip")


def _shchur(folder: str, file: str) -> Source:
    return Source("npz", folder, (file,), "https://github.com/shchur/gnn-benchmark/raw/master/data/npz/{}")


# Tensors of which cresci15.npz is made, by the name of the array.
CRESCI = {
    "numerical": "num_properties_tensor.pt",
    "categorical": "cat_properties_tensor.pt",
    "label": "label.pt",
    "edges": "edge_index.pt",
    "edge_type": "edge_type.pt",
    "train": "train_idx.pt",
    "val": "val_idx.pt",
    "test": "test_idx.pt",
}


def _fraud(folder: str, files: tuple[str, ...], place: str, remote: tuple[str, ...] = ()) -> Source:
    return Source("fraud", folder, files, f"https://github.com/{place}/{{}}", remote)


_CRESCI = (
    "travistangvh/TwitterBotBusters/raw/21daa9efa39c3c2dc24ef5493211ca4e206f5463/src/BotRGCN/cresci_15/processed_data"
)
_ETHEREUM = "KazumaYamamoto2023/DSC180B-Q2-Project/raw/6d326aa8c2df2a1b42abd02c4f00b3447759f2b2/data"
_OTC = "fpour/TGBase/raw/ec3e4c8757d657fff5a8b2d20455a02a71ed993d/data/otc"
_TOLOKERS = "yandex-research/heterophilous-graphs/raw/main/data"
_PAYMENTS = ("edges.csv", "nodes_train_test_split.csv")
FRAUD = {
    "cresci-15": _fraud("Cresci15", ("cresci15.npz",), _CRESCI, tuple(CRESCI.values())),
    "ethereum-phishing": _fraud("EthereumPhishing", ("edges.csv", "nodes.csv"), _ETHEREUM, _PAYMENTS),
    "bitcoin-otc": _fraud("BitcoinOTC", ("otc_network.csv", "otc_gt.csv"), _OTC),
    "tolokers": _fraud("tolokers", ("tolokers.npz",), _TOLOKERS),
}
_BIG_VUL = Source("", "BigVul", ("bigvul_linevul_test_split.jsonl.gz",), "https://github.com/kpatsakis/linevul")

SOURCES = {
    "cora-ml": Source("npz", "cora_ml", ("cora_ml.npz",), _GITHUB.format("abojchevski/graph2gauss")),
    "citeseer": _planetoid("CiteSeer"),
    "pubmed": _planetoid("PubMed"),
    "amazon-c": _shchur("Computers", "amazon_electronics_computers.npz"),
    "coauthor-physics": _shchur("Physics", "ms_academic_phy.npz"),
    "aids": _tu("AIDS", attributes=True),
    "mutag": _tu("Mutagenicity"),
    "proteins": _tu("PROTEINS", attributes=True),
    "dd": _tu("DD"),
    "nci1": _tu("NCI1"),
    "mutag-188": _tu("MUTAG"),
    **FRAUD,
    "big-vul": _BIG_VUL,
    "big-vul-matched": _BIG_VUL,
}

# sha256 of the files' content, without compression. The Planetoid files are pickles, and unpickling can run code.
SHA256 = {
    "cresci15.npz": "56edd345f7680b6704fc3ff1a7ca3fd6f9ff220493478dee3fc0d01dec8debf3",
    "edges.csv": "da2057d5f7005154d512eda83c28f454d3c88822aaa1b7cb6114a97cb0b2da59",
    "nodes.csv": "84033f251e80acb8aa15a1e58f078ca8573ca2a2967a4b89b3cee7b2251fc1ba",
    "otc_network.csv": "76bd9d8f1d3ff9a1813d9fc8e6902a0ee4d0a2f8c1003842dbc9ec79149ab60c",
    "otc_gt.csv": "73dab2edf3004b112cedaf75cbc4c953981798bfaa83eac3fa5bac2d59a3d040",
    "tolokers.npz": "a3221981d918a5e65977b1fdc687aaad60516353e75f003efa4b826233f76aea",
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
