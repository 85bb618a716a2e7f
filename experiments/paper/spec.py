"""Which runs the paper's experiments consist of.

A run is a ``Setting`` (train and certify one model) or a ``Contest`` (one defence, to be compared with others). A run
that occurs in two experiments is run once.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

from agnncert.datasets.catalog import dataset_info
from agnncert.errors import SettingsError, did_you_mean

NODE_SETS = ("cora-ml", "citeseer", "pubmed", "amazon-c")
GRAPH_SETS = ("aids", "mutag", "proteins", "dd")
NODE_GROUPS = (100, 200, 300, 400)
GRAPH_GROUPS = (10, 30, 50, 70)
SEEDS = (0, 1, 2)
DIVISIONS = ("edge", "node")
BI_RS_NOISE = (0.7, 0.8, 0.9)
BI_RS_SAMPLES = {"amazon-c": 10_000}  # 50,000 elsewhere: with its 245,861 edges a sample costs ten times as much


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
        objective: "balanced", "paper", "vote", or "full": subgraphs play no part in training.
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


@dataclass(frozen=True)
class Contest:
    """One defence on one dataset, to be compared with others.

    Attributes:
        dataset: Name of the dataset.
        defence: ``"edge-centric"``, ``"node-centric"``, ``"bi-rs"``, ``"gnncert-e"``, ``"gnncert-en"``, or
            one of the models to compare with, ``"undefended"`` and ``"graph-free MLP"``.
        num_groups: Subgraphs T, or each side of GNNCert-EN's grid.
        p_edge: Bi-RS: probability that an edge is deleted.
        p_node: Bi-RS: probability that a node is deleted.
        samples: Bi-RS: number of samples that bound probabilities.
        seed: Seed of split, weights, training and samples.
    """

    dataset: str
    defence: str
    num_groups: int = 0
    p_edge: float = 0.0
    p_node: float = 0.0
    samples: int = 0
    seed: int = 0

    def to_json(self) -> dict[str, Any]:
        """As stored in a row."""
        return asdict(self)


Run = Setting | Contest


def default_groups(dataset: str) -> int:
    """T of the main results: 300 for nodes, 30 for graphs."""
    return 300 if dataset_info(dataset).task == "node" else 30


def main_setting(dataset: str, division: str, **changes: Any) -> Setting:
    """The setting of the main results: GCN, the paper's number of groups, the usual objective; undefended if "none"."""
    main = Setting(dataset)
    if division in DIVISIONS:
        usual = "vote" if dataset_info(dataset).task == "graph" else "balanced"
        main = Setting(dataset, "gcn", division, default_groups(dataset), objective=usual)
    return replace(main, **changes)


def defended(dataset: str, **changes: Any) -> Iterator[Setting]:
    """The main setting of both divisions."""
    for division in DIVISIONS:
        yield main_setting(dataset, division, **changes)


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
        yield from defended(dataset)


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


def contests(dataset: str, seed: int = 0) -> Iterator[Contest]:
    """Everything that is compared on one dataset."""
    plain = Contest(dataset, "undefended", seed=seed)
    ours = replace(plain, num_groups=default_groups(dataset))
    yield from (plain, replace(plain, defence="graph-free MLP"))
    yield from (replace(ours, defence="edge-centric"), replace(ours, defence="node-centric"))
    if dataset in GRAPH_SETS:
        yield from (replace(ours, defence="gnncert-e"), replace(ours, defence="gnncert-en"))
        return
    random = replace(plain, defence="bi-rs", samples=BI_RS_SAMPLES.get(dataset, 50_000))
    yield from (replace(random, p_edge=p, p_node=q) for p in BI_RS_NOISE for q in BI_RS_NOISE)


def _comparisons() -> Iterator[Contest]:
    for dataset in (*NODE_SETS, *GRAPH_SETS):
        yield from contests(dataset)


EXPERIMENTS: dict[str, tuple[str, Callable[[], Iterator[Run]]]] = {
    "accuracy": ("normal accuracy, undefended and defended (Table 3)", _accuracy),
    "groups": ("certified accuracy over perturbation size, for several T", _groups),
    "hashes": ("md5, sha1 and sha256 as hash function", _hashes),
    "models": ("GraphSAGE and GAT as base models", _models),
    "subgraphs": ("training with and without subgraphs", _subgraphs),
    "larger": ("a six-layer residual GCN on PubMed", _larger),
    "protocols": ("transductive against inductive training", _inductive),
    "comparisons": ("Bi-RS, GNNCert-E and GNNCert-EN beside ours", _comparisons),
}

# For --small: data that need no download, and the smallest of the paper's datasets. On the latter every run is also one
# of the full experiments, so that the rows of both can be compared.
SMALL: dict[str, tuple[Run, ...]] = {
    "accuracy": (
        *(Setting(d, model=m) for d in ("digits-knn", "digits-grid", "cora-ml") for m in ("mlp", "gcn")),
        *(s for d in ("digits-knn", "digits-grid", "cora-ml") for s in defended(d)),
    ),
    "groups": (*defended("cora-ml", num_groups=100), *defended("cora-ml"), *defended("digits-grid")),
    "hashes": tuple(main_setting("cora-ml", "edge", hash=h) for h in ("md5", "sha1", "sha256")),
    "models": tuple(main_setting("cora-ml", "edge", model=m) for m in ("gcn", "sage", "gat")),
    "subgraphs": tuple(main_setting("cora-ml", "edge", objective=o) for o in ("full", "paper", "balanced")),
    "larger": (main_setting("digits-knn", "edge"), main_setting("digits-knn", "edge", model="resgcn", num_layers=6)),
    "protocols": tuple(
        main_setting("cora-ml", d, protocol=p) for d in ("none", "edge") for p in ("transductive", "inductive")
    ),
    "comparisons": (
        Contest("cora-ml", "edge-centric", num_groups=300),
        Contest("cora-ml", "bi-rs", p_edge=0.8, p_node=0.8, samples=500),
        Contest("mutag-188", "edge-centric", num_groups=30),
        Contest("mutag-188", "gnncert-e", num_groups=30),
    ),
}


def settings_of(name: str, small: bool = False) -> list[Run]:
    """The runs of one experiment, each once; a few quick ones if ``small``.

    Raises:
        SettingsError: No experiment has this name.
    """
    if name not in EXPERIMENTS:
        raise SettingsError(f'no experiment is called "{name}": {did_you_mean(name, EXPERIMENTS)}')
    return list(dict.fromkeys(SMALL[name] if small else EXPERIMENTS[name][1]()))
