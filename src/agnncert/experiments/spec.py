"""Which runs make up each figure and table. A run is a ``Setting``; the same setting in two experiments is run once."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

NODE_SETS = ("cora-ml", "citeseer", "pubmed", "amazon-c")
GRAPH_SETS = ("aids", "mutag", "proteins", "dd")
NODE_GROUPS = (100, 200, 300, 400)
GRAPH_GROUPS = (10, 30, 50, 70)
SEEDS = (0, 1, 2)


@dataclass(frozen=True)
class Setting:
    """One training and certification.

    Attributes:
        dataset: Name of the dataset.
        model: Name of the base model.
        division: "edge", "node", or "none" for an undefended model.
        num_groups: Number of subgraphs; 0 without a division.
        hash: Hash function of the division.
        seed: Seed of split, weights and training.
        objective: "balanced", "paper", or "full": subgraphs play no part in training.
        num_layers: Layers of the base model.
        protocol: "transductive" or "inductive".
    """

    dataset: str
    model: str = "gcn"
    division: str = "none"
    num_groups: int = 0
    hash: str = "md5"
    seed: int = 0
    objective: str = "balanced"
    num_layers: int | None = None
    protocol: str = "transductive"

    def to_json(self) -> dict[str, Any]:
        """As stored in a row."""
        return asdict(self)


def default_groups(dataset: str) -> int:
    """T of the main results: 300 for nodes, 30 for graphs."""
    return 300 if dataset in NODE_SETS or dataset == "digits-knn" else 30


def defended(dataset: str, **changes: Any) -> Iterator[Setting]:
    """Both divisions at the default number of groups."""
    for division in ("edge", "node"):
        yield replace(Setting(dataset, division=division, num_groups=default_groups(dataset)), **changes)


def _accuracy() -> Iterator[Setting]:
    for dataset in (*NODE_SETS, *GRAPH_SETS):
        for seed in SEEDS:
            yield Setting(dataset, model="mlp", seed=seed)
            yield Setting(dataset, seed=seed)
            yield from defended(dataset, seed=seed)
        for model in ("sage", "gat"):
            yield Setting(dataset, model=model)
            yield from defended(dataset, model=model)


def _groups() -> Iterator[Setting]:
    for dataset in (*NODE_SETS, *GRAPH_SETS):
        for number in NODE_GROUPS if dataset in NODE_SETS else GRAPH_GROUPS:
            yield from defended(dataset, num_groups=number)


def _hashes() -> Iterator[Setting]:
    for dataset in ("cora-ml", "citeseer", "pubmed", "aids", "proteins"):
        for name in ("md5", "sha1", "sha256"):
            yield from defended(dataset, hash=name)


def _models() -> Iterator[Setting]:
    for dataset in (*NODE_SETS, *GRAPH_SETS):
        for model in ("gcn", "sage", "gat"):
            yield from defended(dataset, model=model)


def _subgraphs() -> Iterator[Setting]:
    for dataset in ("cora-ml", "citeseer", "pubmed", "aids", "mutag", "proteins"):
        for objective in ("full", "paper", "balanced"):
            yield from defended(dataset, objective=objective)


def _larger() -> Iterator[Setting]:
    for model, layers in (("gcn", 3), ("resgcn", 6)):
        yield Setting("pubmed", model=model, num_layers=layers)
        yield from defended("pubmed", model=model, num_layers=layers)


def _inductive() -> Iterator[Setting]:
    for dataset in ("cora-ml", "citeseer", "pubmed"):
        for protocol in ("transductive", "inductive"):
            yield Setting(dataset, model="mlp", protocol=protocol)
            yield Setting(dataset, protocol=protocol)
            yield from defended(dataset, protocol=protocol)


EXPERIMENTS = {
    "accuracy": ("normal accuracy, undefended and defended (Table 3)", _accuracy),
    "groups": ("certified accuracy over perturbation size, for several T", _groups),
    "hashes": ("the hash function hardly matters", _hashes),
    "models": ("GraphSAGE and GAT as base models", _models),
    "subgraphs": ("training with and without subgraphs", _subgraphs),
    "larger": ("a six-layer residual GCN on PubMed", _larger),
    "protocols": ("transductive against inductive training", _inductive),
}

# What a first look runs: complete runs on small data, some of them also part of the full set.
SMALL = (
    *(Setting(d, model=m) for d in ("digits-knn", "digits-grid") for m in ("mlp", "gcn")),
    *(s for d in ("digits-knn", "digits-grid") for s in defended(d)),
    Setting("cora-ml", model="mlp"),
    Setting("cora-ml"),
    *defended("cora-ml"),
)


def settings_of(name: str) -> list[Setting]:
    """The runs of one experiment, each once."""
    return list(dict.fromkeys(EXPERIMENTS[name][1]()))
