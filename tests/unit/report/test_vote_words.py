"""How votes are counted, in words that a reader without the theory understands."""

import html

import numpy as np
import pytest

from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.words import empty_target_words
from agnncert.report.page import build_report
from agnncert.report.summary import ReportContext, Summary, summarise
from agnncert.report.text import facts, key_figures, structure_notes
from tests.support.certificates import random_vote
from tests.support.synthetic import made_up_certificate
from tests.support.theorems import THEOREMS

NAMES = ["fine", "broken", "unknown"]


def summary_of(theorem: str, voting_rule: VotingRule | None = None, **shape) -> Summary:
    certificate, degree = made_up_certificate(
        np.random.default_rng(1), theorem, 40, 20, 3, voting_rule=voting_rule, **shape
    )
    return summarise(certificate, ReportContext(class_names=NAMES, degree=degree))


@pytest.mark.parametrize(
    ("theorem", "voting_rule", "words"),
    [
        (
            "edge-centric/graph",
            VotingRule(1, [0, 12, 0]),
            "Votes given in advance, which no attack on the graph can move: 12 for broken.",
        ),
        (
            "edge-centric/graph",
            VotingRule(1, [0, 12, 0]),
            "A subgraph without an edge of the graph votes for broken, whatever",
        ),
        (
            "node-centric/graph",
            VotingRule(prior=[1, 0, 0]),
            "given in advance, which no attack on the graph can move: 1 for fine.",
        ),
        ("node-centric/node", VotingRule("abstain", [2, -3, 0]), "can move: 2 for fine, 3 against broken."),
        (
            "node-centric/node",
            VotingRule("abstain", 5),
            "can move: 5 for what the model predicts from the node’s features alone.",
        ),
        (
            "node-centric/node",
            VotingRule("abstain"),
            "in which the node has no edge that brings it a message casts no vote",
        ),
        ("gated/node", VotingRule(2, [1, 1, 1]), "that knows nothing about the node votes for unknown"),
        (
            "per-neighbour/node",
            VotingRule(prior=5),
            "Each neighbour of the node casts one vote, which sees these two nodes",
        ),
        (
            "per-neighbour/node",
            VotingRule(prior=5),
            "a neighbour that comes or goes moves the count by one vote, and one that",
        ),
        ("per-pair/node", VotingRule(2, 5), "Each vote that is cast takes one vote from unknown"),
        (
            "per-pair/node",
            VotingRule(2, 5),
            "an edge that comes, goes or is altered moves the count by up to two votes",
        ),
        ("per-pair/graph", VotingRule(prior=[0, 4, 0]), "A second direction for an edge that has one alters it."),
    ],
)
def test_the_vote_is_told_in_plain_words(theorem, voting_rule, words):
    assert words in " ".join(summary_of(theorem, voting_rule).words.notes)


@pytest.mark.parametrize("theorem", [theorem for theorem, facts in THEOREMS.items() if not facts.per_neighbour])
def test_nothing_is_said_about_a_plain_vote(theorem):
    summary = summary_of(theorem)
    assert summary.words.notes == ()
    assert "20 predictions, one for every part" in summary.words.decided
    assert "Votes" not in dict(facts(summary))


def test_what_is_fixed_in_advance_stands_where_the_first_sentence_and_the_facts_are():
    summary = summary_of("per-neighbour/node", VotingRule(prior=5))
    elected = "one prediction for each neighbour of the node, added to votes that are given in advance"
    assert summary.words.decided.startswith(f"Each label is elected by {elected}. ")
    known = dict(facts(summary))
    assert known["Subgraphs"] == "one for each neighbour of the node"
    assert known["Votes"] == "VotingRule(empty='abstain', prior=5)"


def test_a_prior_in_doubt_is_told():
    summary = summary_of("node-centric/node", VotingRule("abstain", 5), doubtful=0.5)
    doubtful = int((~summary.votes.no_edge_stable).sum())
    assert f"For {doubtful} of 40 nodes that prediction is too close to call" in " ".join(summary.words.notes)


def test_both_radii_are_among_the_figures():
    meanings = [figure["meaning"] for figure in key_figures(summary_of("per-pair/node", VotingRule(prior=5)))]
    assert any("only added and deleted" in meaning for meaning in meanings)
    assert any(meaning.startswith("median radius: half") for meaning in meanings)


def test_what_the_graph_contributes_is_told_for_votes_with_a_prior_too():
    notes = " ".join(structure_notes(summary_of("per-neighbour/node", VotingRule(prior=5))))
    assert "the model gives without any edges" in notes
    assert "votes on average were cast where the node has an edge" in notes
    # Nobody knows the prediction without edges where no vote follows it.
    assert structure_notes(summary_of("node-centric/node", VotingRule("abstain", [1, 0, 0]))) == []


def test_a_target_is_not_said_to_cast_a_default_that_empty_groups_do_not_cast():
    plain = summary_of("edge-centric/node").votes
    abstaining = summary_of("edge-centric/node", VotingRule("abstain", 3)).votes
    assert empty_target_words(plain) == {}
    assert "casts no vote" in empty_target_words(abstaining)["default_sentence"]


@pytest.mark.parametrize("theorem", THEOREMS)
def test_there_is_a_page_for_every_vote(theorem, tmp_path):
    random = np.random.default_rng(2)
    certificate, degree = made_up_certificate(
        random, theorem, 12, 12, 3, voting_rule=random_vote(random, theorem), unstable=0.05
    )
    context = ReportContext(degree=degree, truth=certificate.label)
    page = html.unescape(build_report(certificate, tmp_path / "a.html", context=context).read_text("utf-8"))
    for sentence in (certificate.claim.unit, *certificate.claim.assumes, *summarise(certificate, context).words.notes):
        assert sentence in page


def test_an_endless_prior_makes_no_endless_curve():
    summary = summary_of("per-neighbour/node", VotingRule(prior=2**30))
    assert summary.added.max() > 2**29
    assert len(summary.certified.size) <= 1_000_001
    assert summary.certified_additions.at(10**6) > 0
