"""The votes of some targets as evidence, without an audit: for scores and explanations."""

from typing import Any

from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import VoteEvidence
from agnncert.divisions.base import Division
from agnncert.engine.adapter import bind
from agnncert.engine.structure import pair_facts
from agnncert.engine.votes import compute_votes
from agnncert.graphs.targets import Targets


def evidence_of(division: Division, voting_rule: VotingRule | None, model: Any, chosen: Targets) -> VoteEvidence:
    """Computes the votes of a model on all subgraphs and adds them up.

    Args:
        division: How the graph is divided.
        voting_rule: How votes are added up. Defaults to ``VotingRule()``.
        model: The trained module.
        chosen: The targets.
    """
    bound_model = bind(model, chosen.graph, chosen.task)
    theorem = division.theorem(chosen.task)
    rule = (voting_rule or VotingRule()).under(theorem, bound_model.num_classes)
    votes, reach = compute_votes(bound_model, chosen.graph, division, chosen.positions)
    facts: dict[str, Any] = pair_facts(chosen.graph, division, chosen.positions, votes.indptr, votes.group)
    return VoteEvidence.from_votes(votes, theorem, rule, reach, parameters=division.parameters, **facts)
