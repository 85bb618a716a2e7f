"""Cards of the defences against poisoned training data and of decisions about pairs, each beside its controls.

    python -m experiments.benchmarks.poisoning_cards [labels] [edges] [graphs] [links] [ratings] [--only NAME ...]

Makes experiments/cards anew on a split that no table and no setting has seen (seed 710). Settings are those of
``label_votes``, ``edge_blind``, ``poisoned_graphs`` and ``pair_votes``; the evidence of every card is kept beside it.
"""

import argparse
import copy
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agnncert as ac
from agnncert.graphs.hashing import id_keys, node_groups
from agnncert.graphs.targets import prepared
from agnncert.isolated.parts import training_rows_of
from agnncert.labels.vectors import node_spectrum
from agnncert.pairs.targets import choose_pairs
from agnncert.training.settings import tuned_arguments
from agnncert_peers.card_check import rows_of_targets
from agnncert_peers.card_making import About, labels_of, make_cards, parts_of, restated
from experiments.benchmarks import pair_votes, poisoned_graphs
from experiments.benchmarks.label_votes import ridge

CARDS = Path(__file__).resolve().parents[1] / "cards"
SEED = 710
LABELS = ("cora-ml", "citeseer", "pubmed", "amazon-c")
PARTS = (25, 50, 100)  # 50 was chosen in advance
FLIPS = (0, 1, 2, 5, 10, 20, 40)
MIXED = (0, 1, 2, 5, 10)  # a file states 250 budgets at most, and 10 changes have 66 mixes
GRAPHS = (0, 1, 2, 5, 10, 20)
EDGES = (0, 1, 2, 3, 5)
TARGETS = "30 %, 1,000 targets"


def of_certificate(certificate: Any, about: About, threats: Sequence[str], sizes: Sequence[int]) -> None:
    """Writes the cards of a certificate."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "made.cert"
        certificate.save(file)
        content = restated(file, threats, sizes)
    _write(content, about, threats, sizes, "certificate")


def _write(content: bytes, about: About, threats: Sequence[str], sizes: Sequence[int], kind: str) -> None:
    for file in make_cards(content, about, CARDS, threats, sizes, kind=kind):
        print(file.name, flush=True)


# ---- Labels ----


def labels(name: str) -> None:
    """Label votes, beside partitions (DPA), an undefended ridge regression and the most frequent label."""
    data = ac.load_dataset(name, root=pair_votes.DATA, seed=SEED)
    data.split_by = None  # cards are about attacks that leave this split as it is
    rows = rows_of_targets(data.test_mask.nonzero().view(-1).numpy(), TARGETS)
    about = About("", name, SEED, ac.dataset_digest(data), TARGETS, citation="agnncert")
    labelled = data.train_mask.nonzero().view(-1).numpy()
    defences = {"label votes": ac.LabelVotes(), "label votes, preset few": ac.LabelVotes(preset="few")}
    if name in ("cora-ml", "citeseer"):
        defences["label votes, all candidates"] = ac.LabelVotes(candidates="all", num_labels=len(labelled))
    if name in ("pubmed", "amazon-c"):  # its file would have more than 3 MB
        del defences["label votes, preset few"]
    for word, defence in defences.items():
        begin = time.perf_counter()
        model = ac.fit(None, data, defence)
        fitted = time.perf_counter()
        certificate = ac.certify(model, data, model.defence, rows)
        seconds = {"training": fitted - begin, "certifying": time.perf_counter() - fitted}
        mine = replace(about, defence=word, seconds=seconds)
        is_all = model.defence.candidates == "all"
        of_certificate(
            certificate, mine, ["changed labels" if is_all else "flipped labels"], MIXED if is_all else FLIPS
        )
    truth = data.y[rows].tolist()
    ids = data.node_id[rows].tolist()
    classes = int(data.num_classes)
    vectors = node_spectrum(data.x, data.edge_index).vectors
    both = (("flipped labels", FLIPS), *((("changed labels", MIXED),) if name in ("cora-ml", "citeseer") else ()))
    dpa = replace(about, citation="Levine and Feizi, Deep partition aggregation, ICLR 2021", control=True)
    for number in PARTS:
        begin = time.perf_counter()
        votes = partitions(data, vectors, labelled, rows, number)
        seconds = {"training": time.perf_counter() - begin}
        mine = replace(dpa, defence=f"partitions, T={number}", settings=f"ridge regression on each of {number} parts of the labels, by md5 of the node", seconds=seconds)  # fmt: skip
        for threat, sizes in both:
            _write(parts_of(ids, votes.tolist(), truth), mine, [threat], sizes, "parts")
    counts = torch.bincount(data.y[labelled], minlength=classes).tolist()
    most = replace(about, defence="most frequent label", settings=f"the class of most of {len(labelled):,} training labels", citation="", control=True)  # fmt: skip
    score = ridge(vectors, labelled, rows, 1.0) @ np.eye(classes)[data.y[labelled].numpy()]
    plain = replace(about, defence="undefended ridge regression", settings="same node vectors, penalty 1; without a certificate", citation="", control=True)  # fmt: skip
    for threat, sizes in both:
        _write(parts_of(ids, [counts] * len(ids), truth), most, [threat], sizes, "parts")
        _write(labels_of(ids, score.argmax(axis=1).tolist(), truth), plain, [threat], sizes, "labels")


def partitions(data: Any, vectors: Any, labelled: Any, rows: Any, number: int) -> Any:
    """Votes of models of which each has its own part of the labels, by the hash of the node: added ones move nobody."""
    group = node_groups(id_keys(data.node_id[labelled].tolist()), number, "md5")
    votes = np.zeros((len(rows), int(data.num_classes)), dtype=np.int64)
    for part in range(number):
        own = labelled[group == part]
        if not len(own):
            votes[:, 0] += 1
            continue
        score = ridge(vectors, own, rows, 1.0) @ np.eye(votes.shape[1])[data.y[own].numpy()]
        votes[np.arange(len(rows)), score.argmax(axis=1)] += 1
    return votes


# ---- Edges ----


def edges(name: str = "amazon-c") -> None:
    """Votes of models that read no edge in training, beside the same models without votes."""
    data = ac.load_dataset(name, root=pair_votes.DATA, seed=SEED)
    rows = torch.from_numpy(rows_of_targets(data.test_mask.nonzero().view(-1).numpy(), TARGETS))
    about = About("edge-blind votes", name, SEED, ac.dataset_digest(data), TARGETS, citation="agnncert")
    build, fit = tuned_arguments(name, "node", "mlp", defence="stacked")
    defence = ac.StackedVotes(edge_blind=True, vote_weight=0.25)
    begin = time.perf_counter()
    model = ac.fit(ac.build_model("mlp", data, **build), data, defence, **fit, protocol="inductive", seed=SEED)
    fitted = time.perf_counter()
    certificate = ac.certify(model, data, model.defence, rows)
    seconds = {"training": fitted - begin, "certifying": time.perf_counter() - fitted}
    of_certificate(certificate, replace(about, seconds=seconds), ["edges", "poisoned edges"], EDGES)
    alone = copy.deepcopy(model)
    alone.use_votes.zero_()
    certificate = ac.certify(alone, data, alone.defence, rows)
    free = replace(about, defence="graph-free MLP ensemble", control=True)
    of_certificate(certificate, free, ["edges", "poisoned edges"], EDGES)
    build, fit = tuned_arguments(name, "node", "gcn")
    begin = time.perf_counter()
    plain = ac.fit(ac.build_model("gcn", data, **build), data, None, **fit, protocol="inductive", seed=SEED)
    seconds = {"training": time.perf_counter() - begin}
    with torch.no_grad():
        label = plain(data.x, data.edge_index).argmax(dim=1)[rows]
    content = labels_of(data.node_id[rows].tolist(), label.tolist(), data.y[rows].tolist())
    undefended = replace(about, defence="undefended GCN", citation="", control=True, settings="gcn", seconds=seconds)
    _write(content, undefended, ["edges", "poisoned edges"], EDGES, "labels")


# ---- Graphs ----


def graphs(name: str = "proteins") -> None:
    """Models that are trained apart, beside an undefended one and the most frequent class."""
    data = ac.load_dataset(name, root=pair_votes.DATA, seed=SEED)
    data.split_by = None  # cards are about attacks that leave this split as it is
    about = About("", name, SEED, ac.dataset_digest(data), "graphs", citation="after Levine and Feizi, ICLR 2021")
    for word, defence in (
        ("isolated models", poisoned_graphs.APART),
        ("isolated models, 5 views", poisoned_graphs.NESTED),
    ):
        defence = replace(defence, ids="content")
        begin = time.perf_counter()
        fresh = ac.build_model("gin", data, **poisoned_graphs.MODEL)
        model = ac.fit(fresh, data, defence, **poisoned_graphs.FIT, seed=SEED)
        fitted = time.perf_counter()
        certificate = ac.certify(model, data, defence, data.test)
        seconds = {"training": fitted - begin, "certifying": time.perf_counter() - fitted}
        of_certificate(certificate, replace(about, defence=word, seconds=seconds), ["poisoned graphs"], GRAPHS)
    ids = data.test.tolist()
    truth = data.y[data.test].tolist()
    counts = torch.bincount(data.y[training_rows_of(data)], minlength=data.num_classes).tolist()
    most = replace(about, defence="most frequent label", settings=f"the class of most of {sum(counts):,} training graphs", citation="", control=True)  # fmt: skip
    _write(parts_of(ids, [counts] * len(ids), truth), most, ["poisoned graphs"], GRAPHS, "parts")
    plain = ac.fit(ac.build_model("gin", data, **poisoned_graphs.MODEL), data, None, epochs=60, lr=0.01, seed=SEED)
    with torch.no_grad():
        label = poisoned_graphs.logits_of(plain, [data[row] for row in ids]).argmax(dim=1)
    undefended = replace(about, defence="undefended GIN", settings="gin", citation="", control=True)
    _write(labels_of(ids, label.tolist(), truth), undefended, ["poisoned graphs"], GRAPHS, "labels")


# ---- Pairs ----


def links(negatives: str, name: str = "amazon-c", epochs: int | None = None) -> None:
    """Votes of common neighbours, beside features alone, the number of common neighbours alone, and trees."""
    data = pair_votes.link_data(name, negatives, SEED)
    protocol = "links, uniform" if negatives == "uniform" else "links, by degree"
    about = About("", name, SEED, "", protocol, citation="agnncert")
    threats = ["edges", "injected nodes"]
    given = {} if epochs is None else {"epochs": epochs}
    begin = time.perf_counter()
    model = ac.fit(None, data, ac.PairVotes(size=0, **given), seed=SEED)
    training = time.perf_counter() - begin
    canonical = prepared(data)
    val = choose_pairs(canonical, data.val_mask)
    for size in (1, 2, 3):
        fitted = pair_votes.fitted_for(model, val, size)
        begin = time.perf_counter()
        certificate = ac.certify(fitted, data, fitted.defence, data.test_mask)
        seconds = {"training": training, "certifying": time.perf_counter() - begin}
        of_certificate(certificate, replace(about, defence=f"pair votes, fitted for {size}", seconds=seconds), threats, EDGES)  # fmt: skip
    alone = copy.deepcopy(model)
    alone.use_votes.zero_()
    features = ac.certify(pair_votes._plain(alone), data, alone.defence, data.test_mask)
    of_certificate(features, replace(about, defence="features alone", control=True), threats, EDGES)
    blank = copy.copy(data)
    blank.x = torch.ones((data.num_nodes, 1))
    counted = ac.fit(None, blank, ac.PairVotes(size=1, epochs=1), seed=SEED)
    certificate = ac.certify(counted, blank, counted.defence, blank.test_mask)
    of_certificate(certificate, replace(about, defence="common neighbours alone, fitted for 1", control=True), threats, EDGES)  # fmt: skip
    label = trees(data, alone, {part: pair_votes._counts(canonical, data, part) for part in ("val_mask", "test_mask")})
    content = labels_of(certificate.target.tolist(), label.tolist(), certificate.truth.tolist())
    undefended = replace(about, defence="undefended trees", settings="on features, common neighbours and degrees", citation="", control=True)  # fmt: skip
    _write(content, undefended, threats, EDGES, "labels")


def trees(data: Any, prior: Any, counts: Any) -> Any:
    """Labels of an undefended model on the prior's scores, the counts and the degrees."""
    table = {part: pair_votes._columns(data, prior, counts, part) for part in ("val_mask", "test_mask")}
    model = pair_votes.HistGradientBoostingClassifier(max_iter=120, random_state=0)
    model.fit(table["val_mask"], data.edge_label[data.val_mask].numpy())
    return model.predict(table["test_mask"])


def ratings(each: float = 0.01) -> None:
    """Votes of contacts whom u trusts, beside u's own habit; all windows of time are one graph with parts."""
    data = pair_votes.joined(pair_votes.rated_windows(0.4, 0.6, each))
    pair_votes.split_for_training(data, SEED)
    begin = time.perf_counter()
    model = ac.fit(None, data, pair_votes.CONTACTS, seed=SEED)
    training = time.perf_counter() - begin
    val = choose_pairs(prepared(data), data.val_mask)
    tests = pair_votes.joined(pair_votes.rated_windows(0.6, 1.0, each))
    about = About("", "bitcoin-otc", SEED, "", "ratings in time", citation="agnncert", measure="balanced accuracy")
    threats = ["edges and values", "injected nodes"]
    for size in (0, 1):
        fitted = pair_votes.fitted_for(model, val, size)
        begin = time.perf_counter()
        certificate = ac.certify(fitted, tests, fitted.defence)
        seconds = {"training": training, "certifying": time.perf_counter() - begin}
        of_certificate(certificate, replace(about, defence=f"pair votes, trusted contacts, fitted for {size}", seconds=seconds), threats, EDGES)  # fmt: skip
    alone = copy.deepcopy(model)
    alone.use_votes.zero_()
    pair_votes._best_threshold(alone, val)
    certificate = ac.certify(alone, tests, alone.defence)
    of_certificate(certificate, replace(about, defence="own habit alone", control=True), threats, EDGES)


def main() -> None:
    """Makes the cards that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="*", default=["labels", "edges", "graphs", "links", "ratings"])
    parser.add_argument("--only", nargs="*", default=LABELS)
    given = parser.parse_args()
    torch.set_num_threads(1)
    for name in given.only if "labels" in given.what else ():
        labels(name)
    if "edges" in given.what:
        edges()
    if "graphs" in given.what:
        graphs()
    for negatives in ("uniform", "degree") if "links" in given.what else ():
        links(negatives)
    if "ratings" in given.what:
        ratings()


if __name__ == "__main__":
    main()
