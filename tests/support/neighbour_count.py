"""A toy defence in one file: a made-up rule that goes through every surface without a change anywhere else.

The label of a node has ``weight`` votes from its own features, and one vote from the own features of each neighbour.
A neighbour that comes or goes moves one vote, one with other features moves two.
"""

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
import torch

from agnncert import __version__
from agnncert.auditing.model_audit import audit
from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import PREMISES, Claim
from agnncert.defence import Defence
from agnncert.divided.defence import WithoutEdges
from agnncert.divisions.node import PerNeighbour
from agnncert.errors import CertificateError, SettingsError
from agnncert.graphs.targets import prepared
from agnncert.models.digest import model_digest
from agnncert.proving.certificate import Certificate
from agnncert.proving.evidence import Evidence
from agnncert.training.loop import train
from agnncert.verifier.file_checker import FileChecker

KIND = "neighbour-count"


def steps(budget):
    """By how much a lead can shrink, at most."""
    joined = budget.inject_nodes if budget.edges_per_injected else 0
    return budget.add_edges + budget.delete_edges + budget.delete_nodes + joined + 2 * budget.change_features


@dataclass(frozen=True)
class CountEvidence(Evidence):
    votes: np.ndarray  # of int64, shape [n, C]
    kind: ClassVar[str] = KIND

    @property
    def counts(self):
        return self.votes

    def covers(self, budget):
        return not budget.target_features

    def stays_ahead(self, rows, attack, leader=None):
        votes, leading, classes = self.votes[rows], self.leaders(rows, leader)[:, None], np.arange(self.num_classes)
        leads = np.take_along_axis(votes, leading, axis=1) - votes - (classes < leading)  # a smaller class wins ties
        lost = steps(attack) if isinstance(attack, Budget) else 2 * attack
        return (leads >= lost) | (classes == leading)

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

    def compare_model(self, comparison, model):
        here = self.count(model, comparison.targets()).votes
        if not np.array_equal(here, comparison.contents.evidence["votes"]):
            comparison.findings.wrong.append("the counts are not those of this model and graph")
        comparison.findings.compared += ["data", "model"]

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


class CountFile(FileChecker):
    """A file of such counts."""

    digests = frozenset({"graph", "model"})
    evidence = "counts"

    def __init__(self, contents):
        super().__init__(contents)
        self.counts = CountEvidence.load(contents.evidence, contents.settings)

    @property
    def shape(self):
        return self.counts.votes.shape

    def expected_claim(self):
        claim = self.contents.claim
        return the_claim(claim.ids, claim.digests, claim.notes[0])

    def wrong_values(self):
        stated = self.contents.arrays
        label, radius = self.counts.label_and_radius()
        return {
            "label": stated["label"] != label,
            "radius": stated["radius"] != radius,
            "number of new neighbours": stated["new_neighbours"] != -1,
        }

    def possible(self, budget):
        return self.counts.possible(budget)

    def not_checked(self):
        return ("whether a model counted these votes: pass data and model",)
