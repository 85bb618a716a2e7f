"""How the guides certify, from a source to a certificate: each way reads, splits, fits by name and certifies."""

import contextlib
import io
import logging
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch_geometric.data import Data

import agnncert as ac
from agnncert.cli import main
from tests.soundness.retraining.source import CLASSES, Accounts, Payments, Scans

Source = Any  # Accounts, Scans or Payments: each way reads one of them
Targets = list[int] | list[tuple[int, int]]

EDGES = ("join", "separate")
NODES = ("inject", "delete", "describe")
LABELS = ("flip",)
ANY_LABELS = ("flip", "add label", "remove label")


@dataclass(frozen=True)
class Outcome:
    """What a way made of a source.

    Attributes:
        certificate: What is certified.
        targets: The ids of its targets, in their order.
        trained: Ids of those on which something was trained or chosen.
        again: Certifies another source with what was trained, as somebody does whose graph changed afterwards.
    """

    certificate: ac.Certificate
    targets: Targets
    trained: frozenset[int]
    again: Callable[[Source], "Outcome"] | None = None


@dataclass(frozen=True)
class Way:
    """One way to certify.

    Attributes:
        source: What it reads: "accounts", "scans" or "payments".
        certify: Goes this way.
        moves: What an attacker may do whom the certificate covers.
        retrains: Whether it covers attacks before training, so that everything is called again.
        share: How many of 1,000 attacks go this way.
        attacks: Attacks on one source.
        size: How many accounts or scans a source has.
    """

    source: str
    certify: Callable[[Source], Outcome]
    moves: tuple[str, ...]
    retrains: bool
    share: int
    attacks: int = 25
    size: int = 40
    labelled: float = 1.0


def _read(accounts: Accounts, **settings: Any) -> Data:
    return ac.split(accounts.data(), **settings)


def _from_tables(accounts: Accounts, **settings: Any) -> Data:
    with tempfile.TemporaryDirectory() as folder:
        return ac.load_tables(accounts.write(Path(folder) / "accounts"), classes=CLASSES, **settings)


def _ids(data: Data) -> list[int]:
    return [int(each) for each in data.node_id]


def _trained(data: Data) -> frozenset[int]:
    return frozenset(int(each) for each in data.node_id[data.train_mask])


def _outcome(data: Data, certificate: ac.Certificate, again: Callable[[Source], Outcome] | None = None) -> Outcome:
    return Outcome(certificate, _ids(data), _trained(data), again)


def label_votes(read: Callable[[Accounts], Data] = _read, **settings: Any) -> Callable[[Accounts], Outcome]:
    """Votes of labels, as the guide on poisoned labels calls them."""

    def certify(accounts: Accounts) -> Outcome:
        data = read(accounts)
        model = ac.fit(None, data, ac.LabelVotes(**settings))
        return _outcome(data, ac.certify(model, data, model.defence, np.arange(data.num_nodes)))

    return certify


def edge_blind(read: Callable[[Accounts], Data] = _read) -> Callable[[Accounts], Outcome]:
    """Votes that are trained without edges, by the name of a model."""

    def certify(accounts: Accounts) -> Outcome:
        data = read(accounts)
        model = ac.fit("mlp", data, ac.StackedVotes(edge_blind=True, vote_weight=0.25, folds=2))
        certificate = ac.certify(model, data, model.defence, np.arange(data.num_nodes))
        trusted = data.node_id[data.train_mask | data.val_mask]  # whoever has a label in these parts
        return Outcome(certificate, _ids(data), frozenset(trusted.tolist()))

    return certify


def divided(
    division: ac.Division,
    model: str = "gcn",
    read: Callable[[Accounts], Data] = _read,
    choose: str = "",
) -> Callable[[Accounts], Outcome]:
    """A vote of subgraphs, with a threshold or a voting rule that is chosen on validation nodes."""

    def certify(accounts: Accounts) -> Outcome:
        data = read(accounts)
        trained = ac.fit(model, data, division)
        certified_model, defence, rule = trained, division, None
        if choose == "threshold":
            point = ac.choose_threshold(trained, data, division, false_positive_rate=0.2)
            certified_model, defence = point.model, point
        elif choose == "rule":
            choice = ac.choose_voting_rule(trained, data, division, size=1, against="structure")
            certified_model, defence, rule = choice.model, choice.division, choice.voting_rule

        def on(graph: Data) -> Outcome:
            rows = np.arange(graph.num_nodes)
            certificate = ac.certify(certified_model, graph, defence, rows, voting_rule=rule)
            return _outcome(graph, certificate, lambda changed: on(read(changed)))

        return on(data)

    return certify


def stacked(
    read: Callable[[Accounts], Data] = _read, choose: str = "", **settings: Any
) -> Callable[[Accounts], Outcome]:
    """Stacked votes, by the name of a model."""

    def certify(accounts: Accounts) -> Outcome:
        data = read(accounts)
        model = ac.fit("mlp", data, ac.StackedVotes(folds=2, epochs=30, **settings))
        certified_model, defence = model, model.defence
        if choose:
            point = ac.choose_threshold(model, data, model.defence, false_positive_rate=0.2)
            certified_model, defence = point.model, point

        def on(graph: Data) -> Outcome:
            certificate = ac.certify(certified_model, graph, defence, np.arange(graph.num_nodes))
            return _outcome(graph, certificate, lambda changed: on(read(changed)))

        return on(data)

    return certify


def isolated(defence: ac.IsolatedModels) -> Callable[[Scans], Outcome]:
    """Models that are trained apart, by the name of a model."""

    def certify(scans: Scans) -> Outcome:
        data = ac.split(scans.data())
        model = ac.fit("gin", data, defence, epochs=2)
        asked = [row for row in data.test.tolist() if scans.scans[scans.ids[row]].is_plain]
        certificate = ac.certify(model, data, defence, asked)
        ids = scans.ids
        poisonable = frozenset(ids[int(row)] for part in (data.train, data.val) for row in part)
        return Outcome(certificate, [ids[row] for row in asked], poisonable)

    return certify


def pair_votes(**settings: Any) -> Callable[[Payments], Outcome]:
    """Votes of common neighbours about pairs."""

    def certify(payments: Payments) -> Outcome:
        data = payments.data()
        model = ac.fit(None, data, ac.PairVotes(epochs=5, **settings))
        names = [tuple(sorted(_ids(data)[int(end)] for end in ends)) for ends in data.edge_label_index.t()]

        def on(changed: Payments) -> Outcome:
            graph = changed.data()
            row = {each: k for k, each in enumerate(_ids(graph))}
            asked = [(u, v) for u, v in names if u in row and v in row]
            ends = np.array([(row[u], row[v]) for u, v in asked]).T
            targets = graph.edge_label_index.new_tensor(ends)
            return Outcome(ac.certify(model, graph, model.defence, targets), asked, frozenset(), on)

        return on(payments)

    return certify


def commands(*train: str) -> Callable[[Accounts], Outcome]:
    """``agnncert train`` and ``agnncert certify``, on tables."""

    def call(*words: str) -> None:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main([*words])
        if status:
            raise ac.errors.AgnncertError(f"agnncert {' '.join(words)}: {err.getvalue()}")

    def certify(accounts: Accounts) -> Outcome:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            tables, run = str(accounts.write(folder / "accounts")), str(folder / "run")
            call("train", tables, "--set", f"classes={','.join(CLASSES)}", *train, "--no-references", "--out", run)
            call("certify", run)
            certificate = ac.load_certificate(folder / "run" / "certificate.cert")
            trained = _trained(ac.load_tables(tables))
        return Outcome(certificate, [int(each) for each in certificate.target], trained)

    return certify


WAYS: dict[str, Way] = {
    # Attacks before training: everything is read, split, fitted and certified again.
    "label votes": Way("accounts", label_votes(), LABELS, True, 200, attacks=60, labelled=0.9),
    "label votes, few": Way("accounts", label_votes(preset="few"), LABELS, True, 130, attacks=60),
    "label votes, any": Way("accounts", label_votes(candidates="all", num_labels=12), ANY_LABELS, True, 190, attacks=60),
    "label votes, boxed": Way("accounts", label_votes(box=True), LABELS, True, 20, attacks=60),
    "label votes, abstaining": Way("accounts", label_votes(abstain=1), LABELS, True, 30, attacks=60),
    "label votes, tables": Way("accounts", label_votes(_from_tables), LABELS, True, 70, attacks=60, labelled=0.7),
    "labels and edges": Way("accounts", label_votes(neighbour_votes=1), (*LABELS, *EDGES), True, 120, attacks=60),
    "labels and edges, any": Way(
        "accounts", label_votes(neighbour_votes=2, candidates="all", num_labels=12), (*ANY_LABELS, *EDGES), True, 50, 60
    ),
    "labels and edges, tables": Way(
        "accounts", label_votes(_from_tables, neighbour_votes=1), (*LABELS, *EDGES), True, 30, 60, labelled=0.7
    ),
    "edge-blind": Way("accounts", edge_blind(), (*EDGES, *NODES), True, 5, labelled=0.7, size=50),
    "edge-blind, tables": Way("accounts", edge_blind(_from_tables), (*EDGES, *NODES), True, 2, labelled=0.7, size=50),
    "isolated": Way("scans", isolated(ac.IsolatedModels(num_models=5)), ("scan",), True, 3),
    "isolated, content": Way("scans", isolated(ac.IsolatedModels(num_models=5, ids="content")), ("scan",), True, 2),
    "isolated, views": Way("scans", isolated(ac.IsolatedModels(ac.NodeCentric(3), num_models=5)), ("scan",), True, 2),
    # Attacks after training: the graph is read again, and what was trained is certified on it.
    "node-centric": Way("accounts", divided(ac.NodeCentric(7)), (*EDGES, *NODES), False, 25, attacks=40),
    "edge-centric": Way("accounts", divided(ac.EdgeCentric(7)), (*EDGES, *NODES), False, 25, attacks=40),
    "gated": Way("accounts", divided(ac.GatedNodeCentric(7)), (*EDGES, *NODES, "own"), False, 25, attacks=40),
    "per neighbour": Way("accounts", divided(ac.PerNeighbour()), (*EDGES, *NODES), False, 15, attacks=40),
    "per edge": Way("accounts", divided(ac.PerEdge()), (*EDGES, *NODES), False, 10, attacks=40),
    "per neighbour, rule": Way("accounts", divided(ac.PerNeighbour(), "sage", choose="rule"), (*EDGES, *NODES), False, 8, 40),
    "gated, threshold": Way("accounts", divided(ac.GatedNodeCentric(7), choose="threshold"), (*EDGES, *NODES), False, 8, 40),
    "node-centric, tables": Way("accounts", divided(ac.NodeCentric(7), "gin", _from_tables), (*EDGES, *NODES), False, 10, 40),
    "stacked": Way("accounts", stacked(size=1), (*EDGES, *NODES), False, 2, attacks=40),
    "stacked, threshold": Way("accounts", stacked(size=1, choose="threshold"), (*EDGES, *NODES), False, 2, attacks=40),
    "stacked, two levels": Way("accounts", stacked(size=1, levels=2), (*EDGES, *NODES), False, 1, attacks=40),
    "stacked, mean": Way("accounts", stacked(size=1, combine="mean"), (*EDGES, *NODES), False, 1, attacks=40),
    "stacked, gated": Way("accounts", stacked(size=1, gated=True), ("join", "inject", "describe"), False, 1, attacks=40),
    "pairs": Way("payments", pair_votes(size=1), (*EDGES, *NODES), False, 8, attacks=40, size=24),
    "pairs, both": Way("payments", pair_votes(size=1, over="both"), (*EDGES, *NODES), False, 4, attacks=40, size=24),
    "pairs, masked": Way("payments", pair_votes(size=1, mask="targets"), (*EDGES, *NODES), False, 2, attacks=40, size=24),
    "label votes, commands": Way(
        "accounts", commands("--division", "labels"), LABELS, True, 8, attacks=25, labelled=0.7
    ),
}  # fmt: skip


def be_quiet() -> None:
    """Hides warnings that small worlds deserve, about rare classes and steps of training."""
    logging.disable(logging.WARNING)
