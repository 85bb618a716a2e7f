"""A toy defence in one file: a made-up rule that goes through every surface without a change anywhere else.

The label of a node has ``weight`` votes from its own features, and one vote from the own features of each neighbour.
A neighbour that comes or goes moves one vote, one with other features moves two.
"""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import torch

from agnncert import __version__
from agnncert.agreement import other_model, wrong_targets
from agnncert.auditing.model_audit import audit
from agnncert.certificates.claim import PREMISES, Claim
from agnncert.defence import Defence, Findings
from agnncert.divided.defence import WithoutEdges
from agnncert.divisions.node import PerNeighbour
from agnncert.errors import CertificateError, SettingsError
from agnncert.graphs.targets import prepared
from agnncert.models.digest import model_digest
from agnncert.proving.certificate import Certificate
from agnncert.proving.evidence import Evidence
from agnncert.training.loop import train
from agnncert.verifier.check import check_claim, check_targets

KIND = "neighbour-count"


def steps(budget):
    """By how much a lead can shrink; infinite for what nothing is proved about."""
    joined = budget.inject_nodes if budget.inject_nodes and budget.edges_per_injected else 0
    uncovered = np.inf if budget.target_features else 0
    moved = budget.add_edges + budget.delete_edges + budget.delete_nodes + joined
    return moved + 2 * budget.change_features + uncovered


@dataclass(frozen=True)
class CountEvidence(Evidence):
    votes: np.ndarray  # of int64, shape [n, C]
    kind: ClassVar[str] = KIND

    @property
    def num_targets(self):
        return len(self.votes)

    @property
    def counts(self):
        return self.votes

    def leads(self):
        """By how much the label leads each class; a smaller class wins ties."""
        label = self.votes.argmax(axis=1)
        mine = np.take_along_axis(self.votes, label[:, None], axis=1)
        return mine - self.votes - (np.arange(self.votes.shape[1]) < label[:, None])

    def label_and_radius(self):
        label = self.votes.argmax(axis=1)
        others = np.where(np.arange(self.votes.shape[1]) == label[:, None], np.iinfo(np.int64).max, self.leads())
        return label, others.min(axis=1) // 2

    def holds(self, budget):
        return self.possible(budget).sum(axis=1) == 1

    def possible(self, at):
        most = 2 * at if isinstance(at, int | float) else steps(at)
        return (self.leads() < most) | (np.arange(self.votes.shape[1]) == self.label_and_radius()[0][:, None])

    def cheapest(self, prices, label=None):
        return np.zeros(self.num_targets)  # true, and says little

    def broken_at_most(self, budget, among=None):
        return int((~self.holds(budget) & (True if among is None else among)).sum())

    def tensors(self):
        return {"votes": self.votes}

    def settings(self):
        return {}

    @classmethod
    def load(cls, tensors, settings):
        if set(tensors) != {"votes"} or settings or tensors["votes"].dtype != np.int64 or tensors["votes"].ndim != 2:
            raise CertificateError("neighbour counts are one table of whole numbers.")
        return cls(tensors["votes"])


@dataclass(frozen=True)
class NeighbourCount(Defence):
    weight: int = 3
    kind: ClassVar[str] = KIND
    cannot: ClassVar[dict[str, str]] = {"live": "nobody has written it for a toy"}

    def fit(self, model, data, options):
        return train(model, data, None, options)

    def audit(self, model, data, task=None):
        return audit(WithoutEdges(model).eval(), data, PerNeighbour(), task=task)

    def certify(self, model, data, targets, options):
        canonical_data = prepared(data, targets)
        self.audit(model, canonical_data.data).require_fit()
        chosen = canonical_data.targets(targets)
        digests = {**chosen.digests, "model": model_digest(model)}
        claim = the_claim(chosen.id_kind, digests, str(self))
        return Certificate(claim, self.count(model, chosen), chosen.ids, chosen.rows, chosen.truth, chosen.degree)

    @torch.no_grad()
    def count(self, model, chosen):
        own = WithoutEdges(model)(chosen.graph.x, chosen.graph.edge_index).argmax(dim=1)
        votes = np.zeros((chosen.graph.num_nodes, int(model.config["out_channels"])), dtype=np.int64)
        pairs = torch.cat([chosen.graph.edge_index, chosen.graph.edge_index.flip(0)], dim=1)
        node, neighbour = torch.unique(pairs, dim=1).numpy()
        np.add.at(votes, (node, own.numpy()[neighbour]), 1)
        votes[np.arange(len(votes)), own.numpy()] += self.weight
        return CountEvidence(votes[chosen.positions])

    def scores(self, model, data, targets=None):
        return self.count(model, prepared(data, targets).targets(targets)).votes

    def reach_in_hops(self):
        return 1  # so that attacks look at neighbours alone

    def recompute(self, contents, data, model, options):
        chosen = data.targets(contents.arrays["row"])
        findings = Findings([*wrong_targets(contents, chosen)], ["the graph"], compared=["data"])
        if model is None or findings.wrong:
            return findings
        findings.wrong += other_model(contents, model)
        if not np.array_equal(self.count(model, chosen).votes, contents.evidence["votes"]):
            findings.wrong.append("the counts are not those of this model and graph")
        findings.compared.append("model")
        return findings

    @classmethod
    def from_file(cls, contents, model):
        return cls(int(contents.claim.notes[0].partition("weight=")[2].rstrip(")")))

    @classmethod
    def from_settings(cls, name, task, settings):
        unknown = set(settings) - {each.name for each in fields(cls)}
        if task != "node" or unknown:
            raise SettingsError(f"{name} counts the neighbours of nodes, and has no setting {sorted(unknown)}.")
        return cls(**settings)

    def without_edges(self, model):
        return WithoutEdges(model)


def the_claim(ids, digests, note):
    """What such a certificate says."""
    covers = ("Edges and nodes added and deleted, and features of other nodes changed.",)
    assumes = (*PREMISES, "The target keeps its own features.")
    not_proved = ("That the label is correct.",)
    unit = "one neighbour that comes, goes or has other features"
    shared = {"ids": ids, "digests": digests, "notes": (note,), "library_version": __version__}
    return Claim("node", KIND, "", 0, "deterministic", unit, covers, assumes, not_proved, **shared)


# What the verifier asks for. A real defence has it in a module of its own, which shares no code with the evidence.


def not_checked(contents):
    """What the file alone cannot show."""
    return ("whether a model counted these votes: pass data and model",)


def check(contents):
    """What is wrong with the statements of a file."""
    evidence = CountEvidence.load(contents.evidence, contents.settings)
    claim = contents.claim
    expected = the_claim(claim.ids, claim.digests, claim.notes[0])
    wrong = [*check_targets(contents, *evidence.votes.shape), *check_claim(claim, expected, {"graph", "model"})]
    label, radius = evidence.label_and_radius()
    if not (np.array_equal(label, contents.arrays["label"]) and np.array_equal(radius, contents.arrays["radius"])):
        wrong.append("labels or radii do not follow from the counts")
    for budget, stated in zip(contents.budgets, contents.arrays["holds"], strict=True):
        if not np.array_equal(evidence.holds(budget), stated):
            wrong.append(f"the answer for {budget} does not follow from the counts")
    return wrong


def possible(contents, budget):
    """Which classes each target may get under an attack."""
    return CountEvidence.load(contents.evidence, contents.settings).possible(budget)


def breaks(contents):
    """A function from a budget to the targets whose label may change."""
    return lambda budget: possible(contents, budget).sum(axis=1) > 1
