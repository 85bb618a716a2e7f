"""Defences of graphs under four threats, beside models that read only what cannot be changed, with cards.

    python -m experiments.benchmarks.graph_field --root .cache/data
    python -m experiments.benchmarks.graph_field --cards

The threats: edges between existing nodes; features of nodes; nodes that come or go, with any number of edges; and any
mix of these. A row is one defence on one split, with what it certifies of the test graphs at each size; a target counts
if it holds against *every* way to spend the attack. Splits are those of ``graph_votes``, on which no design was chosen.
The certificates of the rows are left in .cache/graph_field, from which ``--cards`` makes experiments/cards.
Undefended models come from ``graph_undefended``. Rows that are there already are not computed again.
"""

import argparse
import functools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agnncert as ac
from agnncert_peers.card_making import About, labels_of, make_cards
from agnncert_peers.cards import budgets_of
from experiments.benchmarks import graph_undefended
from experiments.benchmarks.field_cards import CITATIONS, LARGEST, forget_unpublished_files
from experiments.paper.rows import append_row, read_rows

ROOT = Path(__file__).parents[2]
ROWS = ROOT / "experiments" / "results" / "graph_field.jsonl"
CARDS = ROOT / "experiments" / "cards"
KEPT = graph_undefended.KEPT
DATASETS = ("proteins", "aids", "nci1", "mutag", "dd")
SEEDS = (70, 71, 72, 73, 74)
GROUPS = 30
RULE_FOR = 3  # changes that voting rules are chosen for
SIZES = (0, 1, 2, 3, 5, 10)
# In any mix there are 126 ways to spend five changes and 1,001 to spend ten, too many for the statements of a file.
SIZES_OF = {"edges": SIZES, "features": SIZES, "nodes": SIZES, "any changes": SIZES[:4]}
MAJORITY, UNDEFENDED = "majority class", {kind: f"undefended {kind.upper()}" for kind in graph_undefended.MODELS}
Made = tuple[Any, Any]  # a model, and the defence for which it is certified


def agnncert(division: Any) -> Callable[[Any, int], Made]:
    """The paper's defence: a GCN that votes on subgraphs."""
    return lambda graphs, seed: (ac.fit("gcn", graphs, division, seed=seed), division)


def votes(defence: Any) -> Callable[[Any, int], Made]:
    """Graph votes, or trees over what is trusted."""
    return lambda graphs, seed: (ac.fit(None, graphs, defence, seed=seed), defence)


DEFENCES: dict[str, Callable[[Any, int], Made]] = {
    "structure only": votes(ac.StructureOnly()),
    "bag of nodes": votes(ac.BagOfNodes()),
    "graph votes, nodes": votes(ac.GraphVotes(1, "none")),
    "AGNNCert-E": agnncert(ac.EdgeCentric(GROUPS)),
    "AGNNCert-N": agnncert(ac.NodeCentric(GROUPS)),
}
RULES = {name: f"{name}, chosen rule" for name in ("AGNNCert-E", "AGNNCert-N")}
NAMES = (MAJORITY, *DEFENCES, *RULES.values())


def stem_of(dataset: str, name: str, seed: int) -> Path:
    """Where the evidence of a row is kept, without an ending."""
    return KEPT / f"{dataset}_{name}_{seed}".replace(" ", "-").replace(",", "")


def curves(certificate: Any, right: Any) -> dict[str, list[float]]:
    """Certified accuracy by size, for each threat; 0 where nothing is proved."""
    holds = functools.cache(certificate.holds_against)  # threats share budgets
    shares = {}
    for threat, sizes in SIZES_OF.items():
        held = [np.all([holds(budget) for budget in budgets_of(threat, size)], axis=0) for size in sizes]
        shares[threat] = [round(float((right & some).mean()), 5) for some in held]
    return shares


def all_budgets(certificate: Any) -> tuple[ac.Budget, ...]:
    """The budgets that a certificate states: those of the threats about which it proves something."""
    asked = {
        threat: [budget for size in sizes for budget in budgets_of(threat, size)]
        for threat, sizes in SIZES_OF.items()
        if all(map(certificate.evidence.covers, budgets_of(threat, 1)))
    }
    return tuple(dict.fromkeys(budget for budgets in asked.values() for budget in budgets))


def row_of(dataset: str, seed: int, name: str) -> dict[str, Any] | None:
    """The row of a defence on a split, if it is there."""
    wanted = dataset, seed, name
    return next((row for row in read_rows(ROWS) if (row["dataset"], row["seed"], row["defence"]) == wanted), None)


def kept_file(dataset: str, name: str, seed: int) -> Path:
    """The certificate of a row, or the labels of a constant."""
    return stem_of(dataset, name, seed).with_suffix(".json" if name == MAJORITY else ".cert")


def add_row(about: dict[str, Any], model: Any, defence: Any, graphs: Any, training: float) -> None:
    """Certifies a model, keeps its certificate, and adds its row if it is not there."""
    begin = time.process_time()
    certificate = ac.certify(model, graphs, defence, graphs.test)
    seconds = {"training": round(training, 1), "certifying": round(time.process_time() - begin, 1)}
    truth = graph_undefended.truth_of(graphs, graphs.test).numpy()
    stem = stem_of(about["dataset"], about["defence"], about["seed"])
    certificate.save(stem.with_suffix(".cert"), budgets=all_budgets(certificate))
    row = {
        **about,
        "targets": len(truth),
        "data": ac.dataset_digest(graphs),
        "accuracy": round(float((certificate.label == truth).mean()), 5),
        **curves(certificate, certificate.label == truth),
        "seconds": seconds,
    }
    before = row_of(about["dataset"], about["seed"], about["defence"])
    if before is None:
        append_row(ROWS, row)
    elif any(before[name] != row[name] for name in row if name != "seconds"):
        raise ValueError(f"{stem.name}: made again, the row differs from the one that is there.")
    print({**about, **{threat: row[threat] for threat in SIZES_OF}, "seconds": seconds}, flush=True)


def add_constant(about: dict[str, Any], graphs: Any) -> None:
    """Adds the row of the most frequent class."""
    truth = graph_undefended.truth_of(graphs, graphs.test)
    most = int(torch.cat([graph.y.view(-1) for graph in (graphs[int(row)] for row in graphs.train)]).mode().values)
    stored = labels_of(graphs.test.tolist(), [most] * len(truth), truth.tolist())
    stem_of(about["dataset"], MAJORITY, about["seed"]).with_suffix(".json").write_bytes(stored)
    share = round(float((truth == most).double().mean()), 5)
    shares = {threat: [share] * len(sizes) for threat, sizes in SIZES_OF.items()}
    more = {"targets": len(truth), "data": ac.dataset_digest(graphs), "accuracy": share, **shares, "seconds": {}}
    if row_of(about["dataset"], about["seed"], MAJORITY) is None:
        append_row(ROWS, {**about, **more})


def in_words(rule: Any) -> str:
    """A chosen rule without its numbers."""
    return f"{rule.name}, {rule.division}, {rule.voting_rule}"


def run(dataset: str, seed: int, names: list[str], root: str, files: bool) -> None:
    """Adds the rows of one split that are missing, or whose certificate is not here if ``files`` are wanted."""
    done = {name for name in names if row_of(dataset, seed, name) is not None}
    if files:
        done = {name for name in done if kept_file(dataset, name, seed).exists()}
    left = [name for name in names if name not in done]
    if not left:
        return
    graphs: Any = ac.load_dataset(dataset, root=root, seed=seed)
    KEPT.mkdir(parents=True, exist_ok=True)
    if MAJORITY in left:
        add_constant({"dataset": dataset, "seed": seed, "defence": MAJORITY}, graphs)
    for name, make in DEFENCES.items():
        rule = RULES.get(name, name)
        if name not in left and rule not in left:
            continue
        begin = time.process_time()
        model, defence = make(graphs, seed)
        training = time.process_time() - begin
        if name in left:
            add_row({"dataset": dataset, "seed": seed, "defence": name}, model, defence, graphs, training)
        if rule in left and rule != name:
            begin = time.process_time()
            choice = ac.choose_voting_rule(model, graphs, defence, RULE_FOR)
            training += time.process_time() - begin
            about = {"dataset": dataset, "seed": seed, "defence": rule, "rule": in_words(choice.best)}
            add_row(about, choice.model, choice, graphs, training)


def write_cards() -> None:
    """Writes a card for each row and each threat against which it proves something."""
    undefended = [row for row in read_rows(graph_undefended.ROWS) if row["what"] == "test"]
    digest = {(row["dataset"], row["seed"]): row["data"] for row in read_rows(ROWS)}
    for row in read_rows(ROWS):
        file, is_constant = kept_file(row["dataset"], row["defence"], row["seed"]), row["defence"] == MAJORITY
        if not file.exists():
            print(f"{file.name} is not here: no card (see --files)")
            continue
        about = About(
            row["defence"], row["dataset"], row["seed"], row["data"], "graphs", "",
            CITATIONS.get(row["defence"].partition(",")[0], "agnncert"), "" if not is_constant else MAJORITY,
            is_constant, row["seconds"],
        )  # fmt: skip
        for threat, sizes in SIZES_OF.items():
            if any(row[threat][1:]):
                kind = "labels" if is_constant else "certificate"
                make_cards(file.read_bytes(), about, CARDS, (threat,), sizes, kind=kind, largest=LARGEST)
    for row in undefended:
        file = graph_undefended.kept_labels(row["dataset"], row["model"], row["seed"])
        where = row["dataset"], row["seed"]
        if not file.exists() or where not in digest:
            continue
        about = About(
            UNDEFENDED[row["model"]], *where, digest[where], "graphs", "", "", "three layers of 64", True,
            {"training": row["processor_seconds"]},
        )  # fmt: skip
        for threat, sizes in SIZES_OF.items():
            make_cards(file.read_bytes(), about, CARDS, (threat,), sizes, kind="labels", largest=LARGEST)
    forget_unpublished_files()


def main() -> None:
    """Computes the rows that are missing, or writes the cards."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", default=DATASETS)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--seeds", nargs="*", type=int, default=SEEDS)
    parser.add_argument("--only", nargs="*", default=list(NAMES), help="names of defences")
    parser.add_argument("--files", action="store_true", help="make rows again whose certificate is not here")
    parser.add_argument("--cards", action="store_true", help="write the cards of the certificates that are here")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.cards:
        write_cards()
        return
    for seed in options.seeds:
        for dataset in options.datasets:
            run(dataset, seed, options.only, options.root, options.files)


if __name__ == "__main__":
    main()
