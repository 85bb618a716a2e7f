"""Which files the public datasets consist of, and where they belong. Imports no torch by itself."""

from dataclasses import dataclass
from pathlib import Path

_PLANETOID_PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


@dataclass(frozen=True)
class Source:
    """Where a dataset comes from: the class of PyG that reads it, and its files."""

    kind: str
    pyg_name: str
    folder: str
    files: tuple[str, ...]

    @property
    def url(self) -> str:
        """Where PyG downloads it from."""
        import torch_geometric.datasets as pyg

        base = str(getattr(pyg, self.kind).url)
        if self.kind == "TUDataset":
            return f"{base}/{self.pyg_name}.zip"
        if self.kind == "Planetoid":
            return f"{base}/{self.files[0]}"
        return base.format(self.pyg_name.lower()) if "{}" in base else base + self.files[0]

    def raw(self, root: Path) -> Path:
        """The folder that holds the files as downloaded."""
        return root / self.folder / "raw"

    def missing(self, root: Path) -> list[str]:
        """Files that are not in place."""
        return [file for file in self.files if not (self.raw(root) / file).is_file()]


def _planetoid(name: str) -> Source:
    return Source("Planetoid", name, name, tuple(f"ind.{name.lower()}.{part}" for part in _PLANETOID_PARTS))


def _tu(name: str, attributes: bool = False) -> Source:
    parts = ["A", "graph_indicator", "graph_labels", "node_labels"] + ["node_attributes"] * attributes
    return Source("TUDataset", name, name, tuple(f"{name}_{part}.txt" for part in parts))


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
}
