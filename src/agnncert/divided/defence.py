"""``Divided``: a division with a voting rule, as a defence."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import torch
from torch import Tensor

from agnncert.addons import addon
from agnncert.agreement import Comparison
from agnncert.auditing.model_audit import AuditReport, audit
from agnncert.certificates.file import Contents
from agnncert.certificates.votes import IntArray, VoteRecord
from agnncert.certificates.voting_rule import VotingRule
from agnncert.defence import (
    AlertLimit,
    CertifyOptions,
    Defence,
    Engine,
    FitOptions,
    OperatingPoint,
    Task,
)
from agnncert.divided.certify import certify_division
from agnncert.divided.choose_rule import RuleChoice, choose_prior, choose_voting_rule, require_choice
from agnncert.divided.explain import explain_division
from agnncert.divided.recompute import compare_subgraphs, compare_votes
from agnncert.divided.unaudited import evidence_of
from agnncert.divisions.base import Division, require_division
from agnncert.divisions.edge import PerEdge
from agnncert.divisions.named import division_named, named_division, named_divisions, parse_division, title_of
from agnncert.divisions.node import GatedNodeCentric, NodeCentric, PerNeighbour
from agnncert.errors import DivisionError, SettingsError, did_you_mean
from agnncert.explanation import VoteExplanation
from agnncert.graphs.in_parts import GraphInParts
from agnncert.graphs.targets import prepared
from agnncert.models.message_hops import hops_of_edges
from agnncert.proving.certificate import Certificate
from agnncert.training.loop import train
from agnncert.training.own_loop import Subgraphs
from agnncert.training.requirements import require_voting_rule


@dataclass(frozen=True)
class Divided(Defence):
    """The votes of one model on all subgraphs of a division, added up by a voting rule.

    Whoever takes a defence takes a division too: ``ac.certify(model, data, ac.NodeCentric(60))``.

    Attributes:
        division: How the graph is divided.
        voting_rule: How votes are added up. ``None`` stands for ``VotingRule()``.
        only_model: The model that a choice by size alone brings along. Another model is refused.
    """

    division: Division
    voting_rule: VotingRule | None = None
    only_model: Any = field(default=None, repr=False, compare=False)

    kind: ClassVar[str] = "votes"
    open_without_model: ClassVar[str] = "that the model cast these votes, and is fit to: give the model"
    certify_options: ClassVar[frozenset[str]] = frozenset(
        {"voting_rule", "engine", "tolerance", "memory_limit", "checkpoint", "workers", "progress"}
    )

    def __post_init__(self) -> None:
        require_division(self.division)
        if self.voting_rule is not None and not isinstance(self.voting_rule, VotingRule):
            example = 'VotingRule(empty="abstain", prior=5)'
            raise SettingsError(f"voting_rule={self.voting_rule!r:.60}: expected a VotingRule, such as {example}.")

    def __str__(self) -> str:
        return str(self.division)

    def fit(self, model: Any, data: Any, options: FitOptions) -> Any:
        """Trains a model in place, on the whole graph and on the subgraphs of the division."""
        if isinstance(data, GraphInParts):
            return data.fit(model, self.division, options)
        return train(model, data, self.division, options)

    def audit(self, model: Any, data: Any, task: Task | None = None) -> AuditReport:
        """Checks whether the model looks along edges only and gives the same answer each time."""
        return audit(model, data, self.division, task=task)

    def certify(self, model: Any, data: Any, targets: Any, options: CertifyOptions) -> Certificate:
        """Computes all votes and states what they prove."""
        self.require_model(model)
        defence = self.with_voting_rule(options.voting_rule)
        if defence.only_model is not None and model is not defence.only_model:
            raise SettingsError("the choice is a vote by size alone, with a model of its own: pass choice.model.")
        if isinstance(data, GraphInParts):
            return data.certify(model, self.division, targets, defence.voting_rule, options)  # type: ignore[no-any-return]
        return certify_division(model, data, self.division, targets, defence.voting_rule, options)

    def compare_graph(self, comparison: Comparison) -> None:
        """Forms the subgraphs again.

        A voting rule that the caller brings, such as a threshold, has to be the one that was certified.
        """
        contents = comparison.contents
        record = VoteRecord.load(contents.evidence, contents.settings)
        if self.voting_rule is not None and not _is_rule_of(record, self.voting_rule):
            comparison.findings.wrong.append(
                f"the certificate is about {record.voting_rule}, and the defence at hand has {self.voting_rule}"
            )
            return
        compare_subgraphs(comparison, self.division)

    def compare_model(self, comparison: Comparison, model: Any) -> None:
        """Computes all votes again."""
        compare_votes(comparison, model, self.division)

    @classmethod
    def from_file(cls, contents: Contents, model: Any) -> Self:
        """Returns the division that the claim names, with the voting rule of the evidence."""
        record = VoteRecord.load(contents.evidence, contents.settings)
        try:
            division = parse_division(contents.claim.division)
        except DivisionError as error:
            raise SettingsError(str(error)) from error
        return cls(division, record.voting_rule)

    def subgraphs(self, data: Any) -> Subgraphs:
        """Returns the subgraphs of the division, as a dataset."""
        return Subgraphs(data, self.division)

    def explain(self, model: Any, data: Any, target: Any) -> VoteExplanation:
        """Explains which subgraphs voted for which class, and which edges of the target are in them."""
        self.require_model(model)
        return explain_division(self, self.division, self.voting_rule, model, data, target)

    def live(self, model: Any, data: Any, **settings: Any) -> Any:
        """Returns an ``agnncert_live.LiveGraph``; ``settings`` are its further arguments."""
        make = addon("agnncert.live", self.kind, "agnncert_live", "a live graph")
        return make(self, model, data, **settings)

    @classmethod
    def from_settings(cls, name: str, task: Task, settings: Mapping[str, Any]) -> Self:
        """Returns the division that a command names: ``groups`` and ``hash``, and switches of its class."""
        division = division_named(name, settings.get("groups"), settings.get("hash") or "md5", task)
        switches = {key: value for key, value in settings.items() if key not in ("groups", "hash")}
        valid = cls.setting_names(name)
        for key in switches:
            if key not in valid:
                raise SettingsError(f'the division "{name}" has no setting "{key}": {did_you_mean(key, valid)}')
        return cls(replace(division, **switches))

    @classmethod
    def setting_names(cls, name: str) -> tuple[str, ...]:
        """Returns ``groups`` and ``hash``, unless the graph determines the groups, and the switches of the class."""
        entry = named_division(name)
        if not entry.counts:
            return entry.flags
        return ("groups", "hash", *entry.flags)

    def keeps_checkpoint(self, engine: Engine = "fast") -> bool:
        """Whether votes are computed range by range: the fast engine does so if groups vote apart from each other."""
        return engine == "fast" and self.division.has_disjoint_union

    def resolved_settings(self) -> dict[str, Any]:
        """Returns the number of groups and the hash function of a built-in division that has them."""
        for entry in named_divisions().values():
            if entry.counts and entry.load() is type(self.division):
                division: Any = self.division
                return {"groups": getattr(division, entry.counts[0]), "hash": division.hash}
        return {}

    @torch.no_grad()
    def scores(self, model: Any, data: Any, targets: Any = None) -> IntArray:
        """Returns the votes for each class, those of the prior included, shape ``[n, num_classes]``."""
        self.require_model(model)
        canonical_data = prepared(data, targets, compact=True)
        chosen = canonical_data.targets(targets, self.division.self_loops)
        evidence = evidence_of(self.division, self.voting_rule, model, chosen)
        return evidence.counts

    def as_certified(self, certificate: Certificate) -> "Divided":
        """Returns the same division with the voting rule of a certificate, unless it has one."""
        if self.voting_rule is not None:
            return self
        return replace(self, voting_rule=certificate.voting_rule)

    def hops_of_field(self, model: Any) -> int:
        """Returns 0 where each neighbour or edge of a node has its own subgraph, else how far the model looks.

        In edge-centric divisions a deleted node counts for all that hangs together with it in a subgraph, however far
        away.
        """
        if type(self.division) in (PerNeighbour, PerEdge):
            return 0
        if type(self.division) not in (NodeCentric, GatedNodeCentric):
            raise SettingsError(
                f"{self} cannot certify a node from its receptive field: what a deleted node reaches, or which groups "
                "there are, may depend on the whole graph. Node-centric divisions, ac.PerNeighbour, ac.PerEdge and "
                "ac.StackedVotes can."
            )
        hops = hops_of_edges(model)
        if hops is None:
            raise SettingsError(
                f"it is not known over how many edges messages travel in a {type(model).__name__}, so nothing can be "
                "certified from a part of the graph: take a built-in model, or one of PyTorch Geometric's (GCN, "
                "GraphSAGE, GIN, GAT)."
            )
        return hops

    def with_voting_rule(self, voting_rule: Any) -> "Divided":
        """Returns the same division with another voting rule, or with the one that was chosen for it."""
        if voting_rule is None:
            return self
        if isinstance(voting_rule, RuleChoice | OperatingPoint):
            chosen: Any = voting_rule.as_defence()
            if str(chosen) != str(self):
                raise SettingsError(
                    f"the voting rule was chosen for {chosen}, the division is {self}: pass the choice itself as the "
                    "defence."
                )
            return chosen  # type: ignore[no-any-return]
        if self.voting_rule is not None:
            raise SettingsError(
                "the defence has a voting rule already, which was chosen for it: leave the other one out."
            )
        return replace(self, voting_rule=voting_rule)

    def require_task(self, task: Task, num_classes: int | None = None) -> None:
        """Refuses a voting rule that makes no sense for this division and task."""
        super().require_task(task, num_classes)
        require_voting_rule(self.voting_rule, self.division, task, num_classes)

    @property
    def chooses_voting_rule(self) -> bool:
        """Whether it is known which groups are empty, and what the prediction without edges is."""
        return self.division.knows_empty_groups

    def short_name(self) -> str:
        """Returns the printed form without the usual hash of ids, or the title if each neighbour or edge has a vote."""
        if self.division.is_per_neighbour:
            return title_of(self.division).lower()
        return str(self.division).replace(", hash=md5", "").replace(", key=u64le", "")

    def choose_voting_rule(self, model: Any, data: Any, size: int, **settings: Any) -> RuleChoice:
        """Chooses what empty groups vote for, the prior and, unless ``keep_groups`` is set, the number of groups."""
        division: Any = self.division
        keep_groups = settings.pop("keep_groups", False)
        if keep_groups and not division.is_per_neighbour:
            settings["candidates"] = [division.num_groups]
        return choose_voting_rule(model, data, division, size, **settings)

    def require_size(self, size: Any) -> None:
        """Refuses divisions of which it is not known which groups are empty, and sizes that are no whole numbers."""
        require_choice(self.division, size)

    def choose_threshold(self, model: Any, data: Any, limit: AlertLimit, **settings: Any) -> OperatingPoint:
        """Chooses the votes that one class is given in advance, on validation or kept targets."""
        self.require_threshold_settings(settings, ("size", "protocol"))
        found = choose_prior(model, data, self.division, limit, **settings)
        return OperatingPoint(
            model=model,
            defence=replace(self, voting_rule=found.voting_rule),
            prior=tuple(map(float, found.voting_rule.class_prior)),
            positive=found.positive,
            size=found.size,
            alerts=found.alerts,
            flagged=found.flagged,
            measures=found.measures,
            certified=found.certified,
        )

    def without_edges(self, model: Any) -> Any:
        """Returns the same model, called without edges."""
        return WithoutEdges(model)


def _is_rule_of(record: VoteRecord, voting_rule: VotingRule) -> bool:
    """Returns whether votes were added up by this voting rule, its defaults filled in."""
    try:
        return voting_rule.under(record.theorem, record.votes.num_classes) == record.voting_rule
    except SettingsError:  # nobody can add up such votes in this way
        return False


class WithoutEdges(torch.nn.Module):
    """A model that is called without edges, whatever edges it is given."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: Tensor, edge_index: Tensor, *rest: Any, **values: Any) -> Tensor:
        """Returns the logits of every node, shape ``[num_nodes, num_classes]``."""
        no_edges = edge_index[:, :0]
        no_values = {name: None if value is None else value[:0] for name, value in values.items()}
        logits: Tensor = self.model(x, no_edges, *rest, **no_values)
        return logits
