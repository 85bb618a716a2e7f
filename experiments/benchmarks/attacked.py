"""Graphs that others attacked: what is left of each model, and what a certificate of the clean graph had proved.

python -m experiments.benchmarks.attacked cora pubmed polblogs --files FOLDER --root .cache/data --seeds 400 401 402
python -m experiments.benchmarks.attacked cora --attack metattack --files FOLDER --seeds 400 401 402
python -m experiments.benchmarks.attacked cora --attack together --files FOLDER --seeds 400

``--files`` is the folder with Pro-GNN's attacked graphs, the clean graphs of Cora and Polblogs and the splits. Rows go to
experiments/benchmarks/results/attacked.jsonl as they come. A run that is started again goes on where it stopped.

Nettack joins each attacked node to 1 … 5 others after training (*evasion*). Metattack changes 5, 15 or 25 % of all
edges before training (*poisoning*). *Together* asks about all of Nettack's changes as one budget for one graph, and
about all test nodes: how many labels ``broken_at_most`` allows to change, and how many did. Test labels are read after
everything is trained. The models and rules of a defence are those of the library's other benchmarks and are not chosen
here.

A certificate of the clean graph is asked about the real change, ``holds_against(Perturbation.between(…))``. Divisions
are asked, and asked to vote, about the change at each node by itself, because one vote of theirs hangs on edges far
away. A change that a certificate covers and that changes the label refutes it: such *violations* are counted.

Polblogs has no features. An undefended GCN knows each node by its row, as in the attack, but such a row says nothing
about a node that training has not seen. There, each neighbour votes for the class that it had before the attack: the
given one, or that which a GCN teaches. Each seed asks about another fifth of the attacked nodes, and hides only these
from the teacher.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.transforms import LargestConnectedComponents
from torch_geometric.utils import remove_self_loops, to_undirected

import agnncert as ac
from agnncert.attacks.api import holds_each, problem_of
from agnncert.defence import as_defence
from agnncert.training.settings import tuned_arguments
from experiments.paper.rows import append_row, read_rows

ROWS = Path(__file__).with_name("results") / "attacked.jsonl"
STRENGTHS: dict[str, tuple[float, ...]] = {
    "nettack": (1, 2, 3, 4, 5), "metattack": (0.05, 0.15, 0.25), "together": (1, 3, 5),
}  # fmt: skip
TUNED = {"cora": "cora-ml", "polblogs": "cora-ml", "pubmed": "pubmed"}  # whose settings suit the graph
SEEDS = (400, 401, 402, 403, 404)
GCN, GCN_AFTER = "undefended gcn", "undefended gcn, trained on the attacked graph"
TAUGHT = ", taught"
WITHOUT_EDGES = "models without edges"
STACKED = {"stacked 1": ac.StackedVotes(size=1), "edge-blind": ac.StackedVotes(edge_blind=True)}
LABELS = "label votes and neighbours"
DIVIDED: dict[str, Any] = {
    "agnncert-n 60": ac.NodeCentric(60),
    "agnncert-e 60": ac.EdgeCentric(60),
    "per neighbour": ac.PerNeighbour(),
}
FEATURELESS = ("polblogs",)
NEIGHBOURS, MAJORITY = f"labels of neighbours{TAUGHT}", "most frequent class"
FIFTHS = 5
SLOW = {"pubmed": (LABELS,)}  # not measured: did not finish in several minutes
BY_ATTACK = {
    "nettack": (GCN, "stacked 1", WITHOUT_EDGES, "per neighbour", "edge-blind", LABELS, f"stacked 1{TAUGHT}",
                f"{WITHOUT_EDGES}{TAUGHT}", f"per neighbour{TAUGHT}", "agnncert-n 60", "agnncert-e 60", GCN_AFTER),
    "metattack": (GCN_AFTER, "edge-blind", LABELS, WITHOUT_EDGES, "stacked 1", "agnncert-n 60", "agnncert-e 60"),
    "together": ("stacked 1", "agnncert-n 60", "agnncert-e 60"),
}  # fmt: skip
WITHOUT_FEATURES = (GCN, NEIGHBOURS, "per neighbour", MAJORITY, GCN_AFTER)  # in place of those of Nettack


@dataclass
class Case:
    """One dataset under one attack.

    Attributes:
        name: The dataset.
        attack: "nettack", "metattack" or "together".
        clean: The clean graph, with the published split.
        targets: The nodes that were attacked, or with Metattack all test nodes.
        attacked: The attacked graphs by strength.
    """

    name: str
    attack: str
    clean: Data
    targets: Tensor
    attacked: dict[float, Data] = field(default_factory=dict)

    @classmethod
    def load(cls, name: str, attack: str, files: Path, root: str) -> "Case":
        """Reads the published files."""
        clean = clean_graph(name, files, root)
        split = json.loads((files / f"{name}_splits.json").read_text())
        for part in ("train", "val", "test"):
            clean[f"{part}_mask"] = mask_of(split[f"idx_{part}"], clean.num_nodes)
        clean.split_by = None
        clean.num_classes = int(clean.y.max()) + 1
        targets = clean.test_mask
        published = "nettack" if attack == "together" else attack
        if attack == "nettack":
            listed = json.loads((files / f"{name}_nettacked_nodes.json").read_text())["attacked_test_nodes"]
            targets = mask_of(listed, clean.num_nodes)
        case = cls(name, attack, clean, targets)
        for strength in STRENGTHS[attack]:
            case.attacked[strength] = with_edges(clean, sp.load_npz(files / f"{name}_{published}_{strength}.npz"))
        return case

    @cached_property
    def changes(self) -> dict[float, ac.Perturbation]:
        """What the attacker changed, by strength."""
        return {strength: ac.Perturbation.between(self.clean, graph) for strength, graph in self.attacked.items()}

    def fifth(self, seed: int) -> "Case":
        """Returns the case of a fifth of the attacked nodes, another one for each of five consecutive seeds."""
        rows = self.targets.nonzero().view(-1)
        shuffled = rows[torch.from_numpy(np.random.default_rng(0).permutation(len(rows)))]
        targets = mask_of(shuffled[seed % FIFTHS :: FIFTHS].tolist(), int(self.clean.num_nodes or 0))
        part = Case(self.name, self.attack, self.clean, targets, self.attacked)
        part.changes = self.changes
        return part

    @property
    def truth(self) -> Any:
        """True classes of the attacked nodes."""
        return self.clean.y[self.targets].numpy()


def clean_graph(name: str, files: Path, root: str) -> Data:
    """Returns the graph that was attacked: the largest component, or for PubMed the dataset itself."""
    if name == "pubmed":
        graph = ac.load_dataset(name, root=root)
    elif name == "polblogs":
        parts = np.load(files / "polblogs.npz")
        matrix = sp.csr_matrix(
            (parts["adj_data"], parts["adj_indices"], parts["adj_indptr"]), shape=tuple(parts["adj_shape"])
        )
        ends = torch.from_numpy(np.stack(matrix.nonzero()).astype(np.int64))
        edges = to_undirected(remove_self_loops(ends)[0], num_nodes=matrix.shape[0])
        y = torch.from_numpy(parts["labels"].astype(np.int64))
        graph = LargestConnectedComponents()(Data(x=torch.zeros(len(y), 1), y=y, edge_index=edges))
        graph.x = torch.eye(graph.num_nodes)  # no features: every node is known by its row
    else:
        graph = LargestConnectedComponents()(ac.load_npz(files / f"{name}.npz"))
    graph.node_id = torch.arange(graph.num_nodes)
    return graph


def with_edges(graph: Data, adjacency: Any) -> Data:
    """Returns the graph with the edges of a sparse matrix."""
    changed = graph.clone()
    changed.edge_index = torch.from_numpy(np.stack(adjacency.nonzero()).astype(np.int64))
    return changed


def mask_of(rows: list[int], number: int) -> Tensor:
    """Returns a mask of some rows."""
    mask = torch.zeros(number, dtype=torch.bool)
    mask[torch.tensor(rows)] = True
    return mask


# ---- Training ----


class OfNeighbours(torch.nn.Module):
    """The sum of the neighbours' features, which are classes here: each neighbour votes for its own."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return torch.zeros_like(x).index_add_(0, edge_index[1], x[edge_index[0]])


@dataclass(frozen=True)
class KnownClasses:
    """Reads a graph as the classes that were known before the attack, and as the edges with a known end.

    Classes of the attacked nodes are not known. What an attacker changes among the edges that are left is at most what
    it changes in the graph.

    Attributes:
        classes: One row for each node, all zero if its class is not known.
    """

    classes: Tensor

    @classmethod
    def of(cls, lesson: Data) -> "KnownClasses":
        """Returns the given and taught classes."""
        classes = torch.zeros(int(lesson.num_nodes or 0), int(lesson.num_classes))
        rows = lesson.train_mask.nonzero().view(-1)
        classes[rows, lesson.y[rows]] = 1
        return cls(classes)

    def read(self, graph: Data) -> Data:
        """Returns the graph as its neighbours' votes read it."""
        known = self.classes.any(dim=1)
        read = graph.clone()
        read.x = self.classes
        read.edge_index = graph.edge_index[:, known[graph.edge_index].any(dim=0)]
        return read


class Trainer:
    """Models of one seed; teachers and the models below stacked votes are trained once."""

    def __init__(self, case: Case, seed: int) -> None:
        self.case = case
        self.seed = seed
        self._stacked: dict[tuple[str, int], Any] = {}
        self._lessons: dict[tuple[int, ...], Data] = {}

    def gcn(self, graph: Data) -> torch.nn.Module:
        """Returns an undefended GCN, which is shown the whole graph in training, as in the papers."""
        model_args, fit_args = tuned_arguments(TUNED[self.case.name], "node")
        settings = {**fit_args, "epochs": 100, "lr": 0.01, "evaluate_every": 5, "patience": None}
        model = ac.build_model("gcn", graph, seed=self.seed, **model_args)
        return ac.fit(model, graph, None, protocol="transductive", seed=self.seed, **settings)

    def stacked(self, name: str, lesson: Data) -> Any:
        """Returns stacked votes that were trained without test nodes."""
        name = name if name in STACKED else "stacked 1"  # models without edges are a part of these
        if (name, id(lesson)) not in self._stacked:
            build, fit = tuned_arguments(TUNED[self.case.name], "node", "mlp", defence="stacked")
            base = ac.build_model("mlp", lesson, **build)
            model = ac.fit(base, lesson, STACKED[name], **fit, protocol="inductive", seed=self.seed)
            self._stacked[name, id(lesson)] = (model, lesson)
        return self._stacked[name, id(lesson)][0]

    def divided(self, division: Any, graph: Data) -> Any:
        """Returns a model that was trained for a division, without a voting rule chosen for it."""
        model_args, fit_args = tuned_arguments(TUNED[self.case.name], "node")
        model = ac.build_model("gcn", graph, seed=self.seed, **model_args)
        return ac.fit(model, graph, division, **fit_args, protocol="held-out", seed=self.seed)

    def taught(self, hidden: Tensor) -> Data:
        """Returns the graph as a GCN teaches it that is not shown some nodes; other test nodes get its labels."""
        key = tuple(hidden.nonzero().view(-1).tolist())
        if key not in self._lessons:
            lesson = self.case.clean.clone()
            lesson.test_mask = hidden
            self._lessons[key] = ac.teach(lesson, "gcn", seed=self.seed)
        return self._lessons[key]

    def model(self, method: str, graph: Data) -> tuple[Any, Any]:
        """Returns a model of a method, trained on a graph, and its defence."""
        name = method.removesuffix(TAUGHT)
        if name in DIVIDED:
            return self.divided(DIVIDED[name], graph), DIVIDED[name]
        if name == LABELS:
            model = ac.fit(None, graph, ac.LabelVotes(neighbour_votes=2))
            return model, model.defence
        model = self.stacked(name, graph)
        if name == WITHOUT_EDGES:
            model = model.defence.without_edges(model)
        return model, model.defence


# ---- Rows ----

Labels = Callable[[Data, Tensor], Any]  # labels of some nodes of a graph


@dataclass
class Trained:
    """What is asked about one trained model.

    Attributes:
        labels: Labels of some nodes on a graph, without a proof.
        certificate: Of the attacked nodes on the clean graph; None if nothing is proved.
        by_itself: Labels of the attacked nodes if each has its own change only; None if all changes are made at once.
    """

    labels: Labels
    certificate: ac.Certificate | None = None
    by_itself: Callable[[float], Any] | None = None


def plain(model: torch.nn.Module) -> Labels:
    """Returns how a model without a defence labels nodes."""

    @torch.no_grad()
    def labels(graph: Data, rows: Tensor) -> Any:
        return model.eval()(graph.x, graph.edge_index).argmax(dim=1)[rows].numpy()

    return labels


def defended(case: Case, model: Any, defence: Any, near: bool) -> Trained:
    """Returns what is asked about a defence; ``near``: only edges at a node matter to its label."""
    named = as_defence(defence)
    certificate = ac.certify(model, case.clean, defence, case.targets)

    def labels(graph: Data, rows: Tensor) -> Any:
        return named.labels(model, graph, rows)

    return Trained(labels, certificate, None if near else alone(case, model, defence))


def alone(case: Case, model: Any, defence: Any) -> Callable[[float], Any]:
    """Returns how a division labels each attacked node if only its own edges are changed."""
    problem = problem_of(model, case.clean, defence)
    rows = case.targets.nonzero().view(-1).tolist()

    def labels(strength: float) -> Any:
        change = case.changes[strength]
        attacks = []
        for row in rows:
            here = {name: [p for p in getattr(change, name) if row in p] for name in ("add_edges", "delete_edges")}
            attacks.append((row, ac.Perturbation(**here)))
        return np.array([problem.winner(outcome) for outcome in problem.outcomes_after(attacks)])

    return labels


def train(case: Case, trainer: Trainer, method: str, graph: Data) -> Trained:
    """Trains one method on a graph, which is the clean one unless training is attacked."""
    if method in (GCN, GCN_AFTER):
        return Trained(plain(trainer.gcn(graph)))
    if method == MAJORITY:
        most = int(case.clean.y[case.clean.train_mask].mode().values)
        return Trained(lambda graph, rows: np.full(int(rows.sum()), most))
    if method == NEIGHBOURS:
        return by_neighbours(case, trainer)
    model, defence = trainer.model(method, trainer.taught(case.targets) if method.endswith(TAUGHT) else graph)
    return defended(case, model, defence, near=not method.startswith("agnncert"))


def by_neighbours(case: Case, trainer: Trainer) -> Trained:
    """Teaches a graph without features, and returns what its neighbours' votes say about the nodes that were hidden."""
    known = KnownClasses.of(trainer.taught(case.targets))
    model = OfNeighbours()

    def labels(graph: Data, rows: Tensor) -> Any:
        return ac.labels_of(model, known.read(graph), ac.PerNeighbour(), rows)

    return Trained(labels, ac.certify(model, known.read(case.clean), ac.PerNeighbour(), case.targets))


def accuracy_of_all(case: Case, trainer: Trainer, method: str, trained: Trained) -> float:
    """Returns the accuracy on all test nodes without an attack.

    Taught models memorise the nodes that they are taught: one half of the test nodes is labelled by a model that was
    taught without this half, and so is the other.
    """
    test = case.clean.test_mask
    if not method.endswith(TAUGHT):
        right = trained.labels(case.clean, test) == case.clean.y[test].numpy()
        return float(right.mean())
    right = []
    rows = test.nonzero().view(-1)
    shuffled = rows[torch.from_numpy(np.random.default_rng(trainer.seed).permutation(len(rows)))]
    for half in shuffled.chunk(2):
        hidden = mask_of(half.tolist(), case.clean.num_nodes)
        if method == NEIGHBOURS:
            labels = by_neighbours(Case(case.name, case.attack, case.clean, hidden), trainer).labels(case.clean, hidden)
        else:
            model, defence = trainer.model(method, trainer.taught(hidden))
            labels = ac.labels_of(model, case.clean, defence, hidden)
        right.append(labels == case.clean.y[hidden].numpy())
    return float(np.concatenate(right).mean())


def nettack_row(case: Case, seed: int, method: str, trainer: Trainer) -> dict[str, Any]:
    """Trains before the attack and asks about each strength; one control trains after it."""
    trained = train(case, trainer, method, case.clean)
    clean = trained.labels(case.clean, case.targets)
    found: dict[str, Any] = {
        "all test nodes": accuracy_of_all(case, trainer, method, trained),
        "accuracy": [float((clean == case.truth).mean())],
    }
    proofs = Proofs(case, trained, clean)
    for strength, graph in case.attacked.items():
        if method == GCN_AFTER:
            trained = train(case, trainer, method, graph)
        labels = trained.by_itself(strength) if trained.by_itself else trained.labels(graph, case.targets)
        found["accuracy"].append(float((labels == case.truth).mean()))
        proofs.add(strength, labels)
    return found | proofs.found()


def metattack_row(case: Case, seed: int, method: str, trainer: Trainer) -> dict[str, Any]:
    """Trains on each attacked graph; a proof is about training, too, where training reads no edge."""
    trained = train(case, trainer, method, case.clean)
    clean = trained.labels(case.clean, case.targets)
    found: dict[str, Any] = {"accuracy": [float((clean == case.truth).mean())]}
    covers_training = method in ("edge-blind", LABELS, WITHOUT_EDGES)
    proofs = Proofs(case, trained if covers_training else Trained(trained.labels), clean)
    for strength, graph in case.attacked.items():
        after = train(Case(case.name, case.attack, graph, case.targets), trainer, method, graph)
        labels = after.labels(graph, case.targets)
        found["accuracy"].append(float((labels == case.truth).mean()))
        proofs.add(strength, labels)
    return found | proofs.found()


def together_row(case: Case, seed: int, method: str, trainer: Trainer) -> dict[str, Any]:
    """Asks how many of all test nodes one attacked graph can change at most, and how many it did."""
    trained = train(case, trainer, method, case.clean)
    certificate = trained.certificate
    assert certificate is not None  # undefended models are not asked
    counted = []
    for strength, graph in case.attacked.items():
        change = case.changes[strength]
        cost = change.cost()
        changed = trained.labels(graph, case.targets) != certificate.label
        counted.append(
            {
                "edges": int(cost.add_edges + cost.delete_edges),
                "hold, each by itself": int(certificate.holds_against(cost).sum()),
                "broken at most": certificate.broken_at_most(cost),
                "changed": int(changed.sum()),
            }
        )
    return {"together": counted}


MAKE_ROW = {"nettack": nettack_row, "metattack": metattack_row, "together": together_row}


class Proofs:
    """What the certificate of the clean graph said about the real changes, and what became of the labels."""

    def __init__(self, case: Case, trained: Trained, clean: Any) -> None:
        self.case = case
        self.certificate = trained.certificate
        self.by_itself = trained.by_itself is not None
        self.clean = clean
        self.proved: list[float] = []
        self.counts = {"certified": 0, "violations": 0, "not certified": 0, "changed": 0}
        if self.certificate is not None:
            right = (self.certificate.label == case.truth) & (self.certificate.radius >= 0)
            self.proved.append(float(right.mean()))

    def add(self, strength: float, labels: Any) -> None:
        """Counts one strength."""
        if self.certificate is None:
            return
        change = self.case.changes[strength]
        if self.by_itself:
            holds = holds_each(self.certificate, change.costs_at(self.certificate.target.tolist()))
        else:
            holds = self.certificate.holds_against(change)
        changed = labels != self.clean
        self.proved.append(float((holds & (self.certificate.label == self.case.truth)).mean()))
        self.counts["certified"] += int(holds.sum())
        self.counts["violations"] += int((holds & changed).sum())
        self.counts["not certified"] += int((~holds).sum())
        self.counts["changed"] += int((~holds & changed).sum())

    def found(self) -> dict[str, Any]:
        """Returns what was counted."""
        return {"proved": self.proved, "pairs": self.counts} if self.certificate is not None else {}


def missing(attack: str, name: str, seed: int, done: set[str]) -> Iterator[tuple[str, str]]:
    """Yields the methods that have no row yet, with their keys."""
    for method in WITHOUT_FEATURES if name in FEATURELESS else BY_ATTACK[attack]:
        if method in SLOW.get(name, ()):
            continue
        key = json.dumps([attack, name, seed, method])
        if key not in done:
            yield method, key


def main() -> None:
    """Makes the rows that are missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", choices=list(TUNED))
    parser.add_argument("--files", type=Path, required=True)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--attack", choices=list(STRENGTHS), default="nettack")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--methods", nargs="+", help="only these, as rows name them")
    given = parser.parse_args()
    torch.set_num_threads(1)
    make_row = MAKE_ROW[given.attack]
    for name in given.datasets:
        case = Case.load(name, given.attack, given.files, given.root)
        for seed in given.seeds:
            asked = case.fifth(seed) if name in FEATURELESS else case
            trainer = Trainer(asked, seed)
            done = {row["key"] for row in read_rows(ROWS)}
            for method, key in missing(given.attack, name, seed, done):
                if given.methods and method not in given.methods:
                    continue
                begin = time.process_time()
                row = {"key": key, "attack": given.attack, "dataset": name, "seed": seed, "method": method}
                row |= {"targets": int(asked.targets.sum()), **make_row(asked, seed, method, trainer)}
                row["seconds"] = round(time.process_time() - begin, 1)
                append_row(ROWS, row)
                print(row, flush=True)


if __name__ == "__main__":
    main()
