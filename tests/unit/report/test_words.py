"""The sentences of the page: they say something, and in good English."""

from dataclasses import replace

import numpy as np
import pytest

from agnncert.certificates.voting_rule import VotingRule
from agnncert.proving.certificate import Certificate
from agnncert.report.summary import ReportContext, Summary, summarise
from agnncert.report.text import conceded, deed, headline, key_figures, unjudged

from ...support.synthetic import made_up_certificate, sampled_certificate

# What an attacker of the smallest size does, under each rule; a grid of 2 x 3 charges 3 steps for an edge.
DEEDS = {
    "edge-centric/node": "changes any one edge",
    "node-centric/node": "changes any one edge or other node",
    "gated/node": "changes any one edge or node",
    "edge-centric/graph": "changes any one edge",
    "node-centric/graph": "changes any one edge or node",
    "gnncert-e/node": "changes any one edge",
    "gnncert-n/node": "changes the features of any one node",
    "gnncert-en/graph": "changes any one edge",
    "custom/node": "adds any one edge",
    "per-neighbour/node": "changes any one edge or other node",
    "per-pair/node": "changes any one edge or other node",
    "per-neighbour/graph": "injects, deletes or alters any one node",
    "per-pair/graph": "changes any one edge",
}


def summary_of(rule: str, num_groups: int = 6, targets: int = 40, **context: object) -> Summary:
    vote = (
        VotingRule(prior=num_groups // 2 if rule.endswith("/node") else [num_groups // 2, 0, 0])
        if "per-" in rule
        else None
    )
    certificate, _ = made_up_certificate(np.random.default_rng(1), rule, targets, num_groups, 3, vote=vote)
    return summarise(certificate, ReportContext(**context))  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", DEEDS)
@pytest.mark.parametrize("num_groups", [6, 60])
def test_the_headline_speaks_about_an_attack(rule, num_groups) -> None:
    sentence = headline(summary_of(rule, num_groups))
    assert " when an attacker " in sentence
    assert "without an attack" not in sentence


@pytest.mark.parametrize("rule", DEEDS)
def test_the_smallest_attack_is_told_in_plain_words(rule) -> None:
    assert headline(summary_of(rule)).endswith(f"when an attacker {DEEDS[rule]}")


def test_a_headline_states_what_is_proved_at_its_size() -> None:
    summary = summary_of("edge-centric/node", 60)
    share, size = headline(summary).split(" ")[2], int(headline(summary).split(" ")[-2])
    assert share == f"{100 * (summary.certificate.radius >= size).mean():.1f}\u00a0%"
    assert size > 1


def test_an_edge_that_moves_many_ballots_is_counted_at_its_price() -> None:
    summary = summary_of("gnncert-en/graph", 60)
    price = int(summary.ballots.parameters["feature_groups"])
    holds = (summary.certificate.radius >= price).mean()
    assert price > 1
    assert f"{100 * holds:.1f}" in headline(summary) or "any one edge" not in headline(summary)


def test_a_certificate_that_no_single_change_leaves_standing_says_so() -> None:
    summary = summary_of("edge-centric/node", 1)
    assert headline(summary) == "None of 40 decisions is proved to stay the same when an attacker changes any one edge"


@pytest.mark.parametrize(
    ("unit", "once", "often"),
    [
        (
            "edge added or deleted at the target",
            "adds or deletes any one edge at the target",
            "any 7 edges at the target",
        ),
        ("feature entry flipped", "flips any one entry of the features", "any 7 entries of the features"),
        (
            "node injected with up to 5 edges",
            "injects any one node with up to 5 edges",
            "any 7 nodes with up to 5 edges each",
        ),
        ("stone thrown", "reaches size 1 (stone thrown)", "reaches size 7 (stone thrown)"),
    ],
)
def test_samples_say_what_an_attacker_does(unit, once, often) -> None:
    certificate = sampled_certificate(np.random.default_rng(0), 30)
    changed = Certificate(replace(certificate.claim, unit=unit), certificate.evidence, certificate.target)
    attack = deed(summarise(changed, None))
    assert attack.times(1) == once
    assert attack.times(7).endswith(often)
    assert " when an attacker " in headline(summarise(changed, None))


def test_accuracies_are_shares_of_the_targets_whose_class_is_known() -> None:
    full = summary_of("edge-centric/node", 60)
    truth = full.certificate.label.copy()
    truth[:10], truth[10:20] = -1, (truth[10:20] + 1) % 3
    summary = summary_of("edge-centric/node", 60, truth=truth)
    assert summary.certified.share[0] == ((truth == full.certificate.label) & (full.certificate.radius >= 0)).sum() / 30
    assert "of 30 decisions stay correct" in headline(summary)
    assert unjudged(summary).startswith("10 of 40 nodes have no known class")
    assert key_figures(summary)[0] == {"value": "66.7\u00a0%", "meaning": "of 30 nodes correct without an attack"}
    assert unjudged(full) == ""


def test_a_size_stands_beside_what_the_data_has() -> None:
    figures = key_figures(summary_of("edge-centric/node", degree=[4] * 40))
    assert any("1 changed edge (a typical node has 4 edges)" in figure["meaning"] for figure in figures)


@pytest.mark.parametrize(
    ("shaky", "told"), [(0, ""), (1, "One ballot was"), (2, "2 ballots were"), (600, " of all ballots were")]
)
def test_ballots_that_are_handed_over_are_counted_in_good_english(shaky, told) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(0), "gnncert-e/node", 100, 60, 3)
    votes = certificate.evidence.votes
    unsure = replace(votes, stable=np.arange(len(votes.stable)) >= shaky)
    evidence = replace(certificate.evidence, votes=unsure)
    sentence = conceded(summarise(Certificate(certificate.claim, evidence, certificate.target), None))
    assert told in sentence
    assert bool(sentence) == bool(shaky)
