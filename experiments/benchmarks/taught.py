"""Twenty labels per class: every defence with and without a teacher that reads the training graph (``ac.teach``).

python -m experiments.benchmarks.taught cora-ml citeseer amazon-c pubmed --root .cache/data --seeds 50 51 52 53 54

Rows go to experiments/benchmarks/results/taught.jsonl as they come. A run that is started again goes on where it
stopped. Test labels are read after everything is chosen. Whatever is compared while
settings are looked for is the accuracy on validation nodes, in the graph without test nodes.

``bitcoin-otc`` and ``ethereum-phishing`` make rows of graphs without features, where a teacher does not help.
``--methods`` picks some of the rows, and ``--teachers`` other teachers than gcn. ``--transductive`` makes the one row
that must not be believed: there, test nodes are taught. ``--poisoned`` makes rows of students whose training graph was
changed before the teacher read it. ``--fill`` writes the figures
of docs/tutorials/few-labels.md, and ``python -m experiments.documentation`` the table of all results.
"""

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agnncert as ac
from agnncert.datasets.splits import per_class_split, set_masks
from agnncert.stacked import training as stacked_training
from agnncert.training.settings import tuned_arguments
from experiments.benchmarks import taught_gnncert
from experiments.benchmarks.fraud import DESIGNS
from experiments.benchmarks.stacked import ETHEREUM, FEW, OWN, SCALED, SIZES, curves
from experiments.paper.rows import append_row, read_rows

# A run that others must not disturb writes elsewhere.
ROWS = Path(os.environ.get("TAUGHT_ROWS") or Path(__file__).with_name("results") / "taught.jsonl")
GIVEN, TAUGHT, SELF_TAUGHT = "given labels", "taught by gcn", "taught by mlp"
UNDEFENDED, MLP = "undefended gcn", "models without edges"
FRESH, LATER = range(50, 55), range(70, 75)  # seeds of splits; on the later ones Amazon-C has a better teacher too
STANDARD = ", standardised"  # students whose features have mean 0 and deviation 1 in each column
# A GCN with standardised features that takes classes to be as frequent as it predicts them. Chosen on the splits with
# seeds 60 to 65, by validation nodes weighted by class shares and with a look at the true labels of unlabelled nodes.
BETTER = "taught by standardised gcn, predicted shares"
METHODS = {
    "stacked 1": ac.StackedVotes(size=1),
    "stacked 3": ac.StackedVotes(size=3),
    "stacked 1, two levels": ac.StackedVotes(size=1, levels=2),
    "agnncert-n 300": ac.NodeCentric(300),
    "agnncert-n 30": ac.NodeCentric(30),
    "agnncert-e 300": ac.EdgeCentric(300),
    "per neighbour": ac.PerNeighbour(),
    f"stacked 1{STANDARD}": ac.StackedVotes(size=1),
    f"stacked 3{STANDARD}": ac.StackedVotes(size=3),
    f"stacked 3, two levels{STANDARD}": ac.StackedVotes(size=3, levels=2),
}
FIRST = (UNDEFENDED, MLP, "stacked 1", "stacked 3")
BY_EDGES, TAUGHT_BY_EDGES = (
    "stacked votes by edge values",
    "taught by rgcn",
)  # the teacher reads edge values, as votes do
FRAUD = {"bitcoin-otc": DESIGNS["bitcoin-otc"][0], "ethereum-phishing": ETHEREUM}
MEMBERS_OF_FRAUD = {"bitcoin-otc": 3, "ethereum-phishing": 1}  # models of a teacher; one of 86,622 nodes takes minutes
TRANSDUCTIVE = "test nodes taught too: not to be believed"
POISONED = (0.0, 0.1, 0.25, 0.5)  # edges between classes that are added to the training graph, per edge that it has
LABELS = (GIVEN, SELF_TAUGHT, TAUGHT, BETTER, TAUGHT_BY_EDGES)
SHOWN = (
    (UNDEFENDED, GIVEN),
    (MLP, GIVEN),
    (MLP, SELF_TAUGHT),
    (MLP, TAUGHT),
    ("stacked 3", GIVEN),
    ("stacked 3", TAUGHT),
)  # in tables, by model and labels
WORDS_OF_LABELS = {BETTER: "better teacher"}
NAMES = {"cora-ml": "Cora-ML", "citeseer": "Citeseer", "pubmed": "PubMed", "amazon-c": "Amazon-C"}
NAMES_OF_FRAUD = {"bitcoin-otc": "Bitcoin-OTC", "ethereum-phishing": "Ethereum"}
Groups = dict[tuple[str, str, str, str], Any]  # by dataset, model, labels and threat
PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "few-labels.md"
WORDS = {
    UNDEFENDED: "undefended GCN, nothing proved",
    MLP: "models without edges",
    "stacked 1": "stacked votes, made for 1",
    "stacked 3": "stacked votes, made for 3",
    "stacked 1, two levels": "stacked votes, two levels, made for 1",
    "agnncert-n 300": "AGNNCert-N, 300 groups",
    "agnncert-n 30": "AGNNCert-N, 30 groups",
    "agnncert-e 300": "AGNNCert-E, 300 groups",
    "per neighbour": "one subgraph per neighbour",
    f"{MLP}{STANDARD}": "models without edges, standardised features",
    f"stacked 1{STANDARD}": "stacked votes, made for 1, standardised features",
    f"stacked 3{STANDARD}": "stacked votes, made for 3, standardised features",
    f"stacked 3, two levels{STANDARD}": "stacked votes, two levels, made for 3, standardised features",
}


class Bench:
    """One dataset and seed: what is trained once and used by several rows."""

    def __init__(self, name: str, seed: int, root: str, poisoned: float = 0.0) -> None:
        self.name = name
        self.seed = seed
        self.data = ac.load_dataset(name, root=root, seed=seed, split=FEW)
        if poisoned:
            self.data = with_wrong_edges(self.data, poisoned, seed)
        self.without_test = ac.inductive_view(self.data)
        self._versions: dict[str, Any] = {GIVEN: self.data}
        self._own: dict[tuple[str, bool, int], torch.nn.Module] = {}
        self._plain: list[torch.nn.Module] = []
        self.seconds_of_own: dict[str, float] = {}

    def version(self, labels: str) -> Any:
        """Returns the data with given labels, or taught; the teacher is trained once."""
        if labels in self._versions:
            return self._versions[labels]
        teacher: Any = labels.removeprefix("taught by ")
        options: dict[str, Any] = {}
        if labels == TAUGHT and self._plain:
            teacher = self._plain  # the very models that teach() would train
        if labels == BETTER:
            model_args, _ = tuned_arguments(self.name, "node")
            teacher = ac.build_model("gcn", self.data, **model_args, scale="standard")
            options = {"class_shares": "predicted"}
        self._versions[labels] = ac.teach(self.data, teacher, seed=self.seed, **options)
        return self._versions[labels]

    def add_version(self, labels: str, data: Any) -> None:
        """Adds data with other labels."""
        self._versions[labels] = data

    def fit_one(self, labels: str, standard: bool) -> Callable[[torch.nn.Module, Any, int], torch.nn.Module]:
        """Returns the function that trains one model without edges, once for all defences that need it."""
        how = SCALED[self.name] if standard else OWN[self.name]
        settings = {key: how[key] for key in ("lr", "weight_decay", "epochs")}

        def train_once(model: torch.nn.Module, part: Any, number: int) -> torch.nn.Module:
            if (labels, standard, number) not in self._own:
                begin = time.process_time()
                self._own[labels, standard, number] = ac.fit(model, part, None, seed=number, patience=None, **settings)
                self.seconds_of_own[labels] = self.seconds_of_own.get(labels, 0.0) + time.process_time() - begin
            return self._own[labels, standard, number]

        return train_once

    def stacked(self, labels: str, design: ac.StackedVotes, standard: bool = False) -> Any:
        """Returns trained stacked votes; ``standard``: with standardised features."""
        data = self.version(labels)
        how = SCALED[self.name] if standard else OWN[self.name]
        sizes = {"num_layers": 2, "hidden_channels": how["hidden"], "dropout": how["dropout"]}
        base = ac.build_model("mlp", data, **sizes, norm=how.get("norm"), scale=how.get("scale"))
        fit_one = self.fit_one(labels, standard)
        return stacked_training.fit_stacked(base, data, design, fit_one, seed=self.seed, inductive=True)

    def divided(self, labels: str, division: Any) -> tuple[Any, Any]:
        """Returns a trained model, and the division or, with one subgraph per neighbour, the chosen voting rule."""
        data = self.version(labels)
        model_args, fit_args = tuned_arguments(self.name, "node")
        model = ac.build_model("gcn", data, seed=self.seed, **model_args)
        settings = {**fit_args, "protocol": "held-out", "seed": self.seed}
        if not isinstance(division, ac.PerNeighbour):
            return ac.fit(model, data, division, **settings), division
        settings |= {"objective": "certified", "size": 1, "against": "structure"}
        model = ac.fit(model, data, division, **settings)
        choice = ac.choose_voting_rule(model, data, division, 1, against="structure", protocol="held-out")
        return choice.model, choice

    def undefended(self) -> dict[str, list[float]]:
        """Returns validation and test accuracy of three plain models, trained as the teacher is."""
        model_args, fit_args = tuned_arguments(self.name, "node")
        epochs = 60 if self.data.num_nodes >= 10_000 else 100
        settings = {**fit_args, "epochs": epochs, "lr": 0.01, "evaluate_every": 5, "patience": None}
        found: dict[str, list[float]] = {"validation": [], "test": []}
        for k in range(3):
            number = 3 * self.seed + k
            model = ac.build_model("gcn", self.data, seed=number, **model_args)
            ac.fit(model, self.data, None, protocol="held-out", seed=number, **settings)
            self._plain.append(model)
            found["validation"].append(plain_accuracy(model, self.without_test, self.without_test.val_mask))
            found["test"].append(plain_accuracy(model, self.data, self.data.test_mask))
        return found

    def certified(self, model: Any, defence: Any) -> dict[str, dict[str, list[float]]]:
        """Returns certified accuracy by size and threat, of validation nodes and of test nodes."""
        view = self.without_test
        return {
            "validation": curves(ac.certify(model, view, defence, view.val_mask)),
            "test": curves(ac.certify(model, self.data, defence, self.data.test_mask)),
        }


@torch.no_grad()
def plain_accuracy(model: torch.nn.Module, data: Any, mask: torch.Tensor) -> float:
    """Returns the share of nodes that a model gets right on the whole graph."""
    predicted = model.eval()(data.x, data.edge_index).argmax(dim=1)
    return float((predicted == data.y)[mask].double().mean())


def rows_of(methods: list[str], teachers: list[str], controls: bool = True) -> Iterator[tuple[str, str]]:
    """Yields method and labels of each row, the most important ones first; ``controls``: those of other labels too."""
    for method in methods:
        if method.startswith(UNDEFENDED):
            yield method, GIVEN
            continue
        for teacher in teachers:
            yield method, f"taught by {teacher}"
        if not controls:
            continue
        yield method, GIVEN
        if method.startswith(MLP):
            yield method, SELF_TAUGHT


def make_row(bench: Bench, method: str, labels: str) -> dict[str, Any]:
    """Trains and certifies one row."""
    if method.startswith(UNDEFENDED):
        return bench.undefended()
    data = bench.version(labels)
    begin = time.process_time()
    extra: dict[str, Any] = {}
    if labels != GIVEN:
        right = (data.y == bench.data.y)[data.taught_mask].double().mean()
        extra = {"taught labels right": float(right), "teaching": data.teaching.to_json()}
    standard = method.endswith(STANDARD)
    if method.startswith(MLP):
        votes = bench.stacked(labels, ac.StackedVotes(size=0, epochs=1), standard)
        model = votes.defence.without_edges(votes)
        defence: Any = model.defence
    elif isinstance(METHODS[method], ac.StackedVotes):
        model = bench.stacked(labels, METHODS[method], standard)
        defence = model.defence
        extra["uses edges"] = bool(model.use_votes)
    else:
        model, defence = bench.divided(labels, METHODS[method])
    seconds = time.process_time() - begin
    own = {"models without edges": bench.seconds_of_own[labels]} if labels in bench.seconds_of_own else {}
    return {**extra, **bench.certified(model, defence), "seconds": {"training": seconds, **own}}


def run(name: str, seed: int, root: str, rows: list[tuple[str, str]], done: set[str]) -> None:
    """Makes all rows of a dataset and seed that are missing."""
    wanted = [(method, labels) for method, labels in rows if key_of(name, seed, method, labels) not in done]
    if not wanted:
        return
    bench = Bench(name, seed, root)
    for method, labels in wanted:
        row = {"key": key_of(name, seed, method, labels), "dataset": name, "seed": seed, "method": method,
               "labels": labels, **make_row(bench, method, labels)}  # fmt: skip
        append(row)
        shown = row["test"] if method.startswith(UNDEFENDED) else [round(v, 3) for v in row["test"]["added edges"]]
        print(name, seed, method, labels, shown, flush=True)


def transductive(name: str, seed: int, root: str, done: set[str]) -> None:
    """Makes the row that must not be believed: the teacher labels test nodes, and the student memorises them.

    The library refuses this, so it is done by hand here.
    """
    key = key_of(name, seed, MLP, TRANSDUCTIVE)
    if key in done:
        return
    data = ac.load_dataset(name, root=root, seed=seed, split=FEW)
    model_args, fit_args = tuned_arguments(name, "node")
    settings = {**fit_args, "epochs": 100, "lr": 0.01, "evaluate_every": 5, "patience": None}
    total = torch.zeros(())
    for k in range(3):
        number = 3 * seed + k
        model = ac.build_model("gcn", data, seed=number, **model_args)
        ac.fit(model, data, None, protocol="transductive", seed=number, **settings)
        with torch.no_grad():
            total = total + model.eval()(data.x, data.edge_index).softmax(dim=1)
    clean = total.argmax(dim=1)
    leaked = data.clone()
    leaked.y = torch.where(data.train_mask | data.val_mask, data.y, clean)
    leaked.train_mask = ~data.val_mask
    leaked.edge_index = data.edge_index[:, :0]
    how = OWN[name]
    sizes = {"num_layers": 2, "hidden_channels": how["hidden"], "dropout": how["dropout"]}
    student = ac.build_model("mlp", data, **sizes, norm=how.get("norm"))
    own_settings = {key: how[key] for key in ("lr", "weight_decay", "epochs")}
    ac.fit(student, leaked, None, seed=seed, patience=None, **own_settings)
    with torch.no_grad():
        learnt = student.eval()(data.x, data.edge_index).argmax(dim=1)
    test = data.test_mask
    append({
        "key": key, "dataset": name, "seed": seed, "method": MLP, "labels": TRANSDUCTIVE,
        "student": float((learnt == data.y)[test].double().mean()),
        "teacher": float((clean == data.y)[test].double().mean()),
        "agree": float((learnt == clean)[test].double().mean()),
    })  # fmt: skip


def with_wrong_edges(data: Any, share: float, seed: int) -> Any:
    """Returns the graph with edges added between training or unlabelled nodes of different classes."""
    seen = (~(data.test_mask | data.val_mask)).numpy()
    src, dst = data.edge_index.numpy()
    number = round(share * (seen[src] & seen[dst]).sum() / 2)
    random = np.random.default_rng(seed)
    nodes = np.flatnonzero(seen)
    pairs = random.choice(nodes, size=(2, 4 * number + 100))
    pairs = pairs[:, (data.y.numpy()[pairs[0]] != data.y.numpy()[pairs[1]])][:, :number]
    added = torch.from_numpy(np.concatenate([pairs, pairs[::-1]], axis=1))
    changed = data.clone()
    changed.edge_index = torch.cat([data.edge_index, added], dim=1)
    return changed


def poison(name: str, seed: int, root: str, done: set[str]) -> None:
    """Makes the rows of students without edges whose teacher read wrong edges; test and validation nodes have none."""
    for share in POISONED:
        labels = f"{TAUGHT}, {100 * share:.0f} % wrong edges"
        key = key_of(name, seed, MLP, labels)
        if key in done:
            continue
        bench = Bench(name, seed, root, share)
        row = make_row(bench, MLP, TAUGHT)
        append({"key": key, "dataset": name, "seed": seed, "method": MLP, "labels": labels, **row})


def fraud(name: str, seed: int, root: str, done: set[str]) -> None:
    """Makes the two rows of a graph with a real adversary and without features: 20 labels per class, taught and not.

    All other accounts with a label are tested. Accounts without one are taught.
    """
    data = ac.load_dataset(name, root=root, seed=seed)
    train, val, _ = per_class_split(data.y, 20, seed)
    known = data.y >= 0
    known[torch.cat([train, val])] = False
    set_masks(data, (train, val, known.nonzero().view(-1)))
    for labels in (TAUGHT_BY_EDGES, GIVEN):
        key = key_of(name, seed, BY_EDGES, labels)
        if key in done:
            continue
        extra: dict[str, Any] = {}
        lesson = data
        if labels != GIVEN:
            lesson = ac.teach(data, "rgcn", members=MEMBERS_OF_FRAUD[name], seed=seed)
            extra = {"teaching": lesson.teaching.to_json()}
        begin = time.process_time()
        model = ac.fit(None, lesson, FRAUD[name], seed=seed, protocol="held-out")
        seconds = time.process_time() - begin
        certificate = ac.certify(model, data, model.defence, data.test_mask)
        append({
            "key": key, "dataset": name, "seed": seed, "method": BY_EDGES, "labels": labels, **extra,
            "uses edges": bool(model.use_votes), "test": curves(certificate), "balanced": balanced(certificate),
            "seconds": {"training": seconds},
        })  # fmt: skip
        print(name, seed, labels, [round(v, 3) for v in balanced(certificate)], flush=True)


def balanced(certificate: ac.Certificate) -> list[float]:
    """Returns the mean over classes of what is certified against edges that are added, by size."""
    correct = certificate.label == certificate.truth
    shares = []
    for size in SIZES:
        held = correct & certificate.holds_against(ac.Budget(add_edges=size))
        shares.append(
            float(np.mean([held[certificate.truth == label].mean() for label in np.unique(certificate.truth)]))
        )
    return shares


def key_of(name: str, seed: int, method: str, labels: str) -> str:
    """Returns what tells a row from all others."""
    return json.dumps([name, seed, method, labels])


def append(row: dict[str, Any]) -> None:
    """Adds a row to the file."""
    append_row(ROWS, row)


def stored() -> list[dict[str, Any]]:
    """Returns all rows so far."""
    return list(read_rows(ROWS))


def found_by_group(seeds: range) -> Groups:
    """Returns certified accuracy in % by dataset, model, labels and threat on some splits, shape ``[splits, sizes]``.

    An undefended model has one column: its accuracy, the mean of three trainings.
    """
    groups: dict[tuple[str, str, str, str], list[list[float]]] = {}
    for row in stored():
        name, method, labels = row["dataset"], row["method"], row["labels"]
        if row["seed"] not in seeds or labels not in LABELS or method not in (*WORDS, BY_EDGES):
            continue
        by_threat = {"none": [float(np.mean(row["test"]))]} if method.startswith(UNDEFENDED) else row["test"]
        for threat, curve in by_threat.items():
            groups.setdefault((name, method, labels, threat), []).append(curve)
    return {group: 100 * np.array(curves_of_splits) for group, curves_of_splits in groups.items()}


def summary() -> str:
    """Returns the table of the four datasets: certified accuracy at 1 and at 3, and the range at 1."""
    found = found_by_group(FRESH)
    lines = [f"| | labels | {' | '.join(NAMES.values())} |", "|---|---|" + "---:|" * len(NAMES)]
    for method, labels in SHOWN:
        cells = []
        for name in NAMES:
            table = found[name, method, labels, "none" if method == UNDEFENDED else "added edges"]
            at_one = table[:, 0 if method == UNDEFENDED else 1]
            spread = f"({at_one.min():.1f}\N{EN DASH}{at_one.max():.1f})"
            means = [at_one.mean()] if method in (UNDEFENDED, MLP) else [at_one.mean(), table[:, SIZES.index(3)].mean()]
            cells.append(f"{' / '.join(f'{mean:.1f}' for mean in means)} {spread}")
        lines.append(f"| {WORDS[method]} | {labels} | {' | '.join(cells)} |")
    return "\n".join(lines)


def better_table(name: str = "amazon-c") -> str:
    """Returns the table of later splits: certified accuracy at 1, 2 and 3, and the range at 1."""
    found = found_by_group(LATER)
    lines = ["| | labels | 1 / 2 / 3 | range at 1 |", "|---|---|---:|---:|"]
    for method, labels in (*SHOWN, (f"{MLP}{STANDARD}", BETTER), (f"stacked 3{STANDARD}", BETTER)):
        group = name, method, labels, "none" if method == UNDEFENDED else "added edges"
        table = found.get(group, ())
        if len(table) < len(LATER):
            continue  # some splits are missing
        flat = method.startswith(MLP)  # the same at every size
        sizes = [0] if method == UNDEFENDED else [SIZES.index(size) for size in ((1,) if flat else (1, 2, 3))]
        at_one = table[:, sizes[0]]
        means = " / ".join(f"{mean:.1f}" for mean in table[:, sizes].mean(axis=0))
        title = WORDS[method].removesuffix(" features")
        spread = f"{at_one.min():.1f}\N{EN DASH}{at_one.max():.1f}"
        lines.append(f"| {title} | {WORDS_OF_LABELS.get(labels, labels)} | {means} | {spread} |")
    return "\n".join(lines)


def fraud_sentence() -> str:
    """Returns the sentence about graphs without features: the mean over classes of what is certified at 0, 1 and 3."""
    parts = []
    for name, title in NAMES_OF_FRAUD.items():
        curves_by_labels = [
            [row["balanced"] for row in stored() if (row["dataset"], row["labels"]) == (name, labels)]
            for labels in (GIVEN, TAUGHT_BY_EDGES)
        ]
        if not all(curves_by_labels):
            continue
        means = [100 * np.mean(of_splits, axis=0) for of_splits in curves_by_labels]
        given, taught = (" / ".join(f"{mean[SIZES.index(size)]:.1f}" for size in (0, 1, 3)) for mean in means)
        number = len(curves_by_labels[1])
        splits = f"{number} splits" if number > 1 else "1 split"
        parts.append(f"{title} ({splits}) {given} % with given labels, {taught} % taught")
    return f"{'; '.join(parts)}."


def why_gnncert(defence: str = "GNNCert-N") -> str:
    """Returns the sentence about what the subgraphs of GNNCert-N vote for, on validation nodes."""
    rows = [row for row in taught_gnncert.stored() if row["defence"] == defence]

    def share(key: str, lesson: str, name: str = "cora-ml") -> str:
        values = [row[key] for row in rows if (row["dataset"], row["lesson"]) == (name, lesson)]
        return f"{100 * np.mean(values):.0f} %"

    one_class, vote = "votes for one class", "right by vote"
    given, taught, weights = taught_gnncert.GIVEN, taught_gnncert.TAUGHT, taught_gnncert.WEIGHTS
    return (
        f"Validation nodes, other splits: taught, {share(one_class, taught)} of the votes are for one class "
        f"({share(one_class, given)} with given labels). The vote is right for {share(vote, taught)}, the model on the "
        f"whole graph for {share('right on the whole graph', taught)}. With four times the epochs, the vote is right for "
        f"{share(vote, taught_gnncert.LONGER)}, with class weights for {share(vote, weights)}. On Citeseer it fails with "
        f"any labels ({share(vote, given, 'citeseer')}; taught {share(vote, taught, 'citeseer')}, with class weights "
        f"{share(vote, weights, 'citeseer')})."
    )


def poisoned(name: str = "cora-ml") -> str:
    """Returns the sentence about students whose training graph was changed, with the accuracy on test nodes."""
    by_labels = {row["labels"]: row for row in stored() if row["dataset"] == name}
    rows = [by_labels[f"{TAUGHT}, {100 * share:.0f} % wrong edges"] for share in POISONED]
    added = " / ".join(f"{100 * share:.0f}" for share in POISONED)
    right = " / ".join(f"{100 * row['taught labels right']:.1f}" for row in rows)
    student = " / ".join(f"{100 * row['test']['added edges'][0]:.1f}" for row in rows)
    return f"With {added} % wrong edges {right} % of taught labels are right, and the student is right for {student} %."


def warning() -> str:
    """Returns the sentence about the figures that must not be believed."""
    rows = stored()
    parts = []
    for row in rows:
        if row["labels"] != TRANSDUCTIVE:
            continue
        honest_key = key_of(row["dataset"], row["seed"], MLP, TAUGHT)
        honest = next(other for other in rows if other["key"] == honest_key)["test"]["added edges"][0]
        parts.append(
            f"{NAMES[row['dataset']]} {100 * row['student']:.1f} % instead of {100 * honest:.1f} % "
            f"({100 * row['agree']:.1f} %)"
        )
    return f"Accuracy, and in brackets how many of the teacher's answers are repeated: {', '.join(parts)}."


def filled(text: str) -> str:
    """Returns a page with all tables as the rows give them."""
    parts = {
        "summary": summary,
        "better": better_table,
        "gnncert": why_gnncert,
        "fraud": fraud_sentence,
        "poisoned": poisoned,
        "warning": warning,
    }
    for name, part in parts.items():
        begin, end = f"<!-- taught: {name} -->", "<!-- end -->"
        if begin in text:
            head, rest = text.split(begin, 1)
            text = f"{head}{begin}\n{part()}\n{end}{rest.split(end, 1)[1]}"
    return text


def main() -> None:
    """Makes rows, or prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=[], choices=[[], *OWN, *FRAUD])
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--seeds", nargs="+", type=int, default=[50, 51, 52, 53, 54])
    parser.add_argument("--methods", nargs="+", default=list(FIRST), choices=list(WORDS))
    parser.add_argument("--teachers", nargs="+", default=["gcn"])
    parser.add_argument("--no-controls", action="store_true", help="rows of these teachers alone")
    parser.add_argument("--transductive", action="store_true")
    parser.add_argument("--poisoned", action="store_true")
    parser.add_argument("--fill", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.fill:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    for name in options.datasets:
        for seed in options.seeds:
            done = {row["key"] for row in stored()}
            if name in FRAUD:
                fraud(name, seed, options.root, done)
            elif options.transductive:
                transductive(name, seed, options.root, done)
            elif options.poisoned:
                poison(name, seed, options.root, done)
            else:
                rows = rows_of(options.methods, options.teachers, not options.no_controls)
                run(name, seed, options.root, list(rows), done)


if __name__ == "__main__":
    main()
