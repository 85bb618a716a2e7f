"""The sentences of the page: they say something, and in good English."""

from dataclasses import replace

import numpy as np
import pytest

from agnncert.certificates.threshold_record import ThresholdRecord
from agnncert.certificates.voting_rule import VotingRule
from agnncert.proving.certificate import Certificate
from agnncert.proving.groups import ranges
from agnncert.proving.words import LOWER, UPPER, percent
from agnncert.report.summary import AT_MOST, VOTES_REFERENCE, ReportContext, Summary, summarise
from agnncert.report.text import (
    beside,
    class_table,
    deed,
    few_sizes,
    groups_tables,
    headline,
    headline_size,
    headline_times,
    key_figures,
    models_table,
    threshold_table,
    unjudged,
)
from tests.support.synthetic import made_up_certificate, sampled_certificate

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


def summary_of(theorem: str, num_groups: int = 6, targets: int = 40, **context: object) -> Summary:
    voting_rule = (
        VotingRule(prior=num_groups // 2 if theorem.endswith("/node") else [num_groups // 2, 0, 0])
        if "per-" in theorem
        else None
    )
    certificate, _ = made_up_certificate(
        np.random.default_rng(1), theorem, targets, num_groups, 3, voting_rule=voting_rule
    )
    return summarise(certificate, ReportContext(**context))  # type: ignore[arg-type]


@pytest.mark.parametrize("theorem", DEEDS)
@pytest.mark.parametrize("num_groups", [6, 60])
def test_the_headline_speaks_about_an_attack(theorem, num_groups) -> None:
    sentence = headline(summary_of(theorem, num_groups))
    assert " when an attacker " in sentence
    assert "without an attack" not in sentence


@pytest.mark.parametrize("theorem", DEEDS)
def test_the_smallest_attack_is_told_in_plain_words(theorem) -> None:
    assert headline(summary_of(theorem)).endswith(f"when an attacker {DEEDS[theorem]}")


def test_a_headline_states_what_is_proved_at_its_size() -> None:
    summary = summary_of("edge-centric/node", 60)
    share, size = headline(summary).split(" ")[2], int(headline(summary).split(" ")[-2])
    assert share == f"{100 * (summary.certificate.radius >= size).mean():.1f}\u00a0%"
    assert size > 1


def test_an_edge_that_moves_many_votes_is_counted_at_its_price() -> None:
    summary = summary_of("gnncert-en/graph", 60)
    price = int(summary.votes.parameters["feature_groups"])
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
    assert "of 30 decisions match the stated class, and still do," in headline(summary)
    assert unjudged(summary).startswith("The class of 10 of 40 nodes is not known")
    titles, rows = models_table(summary)
    assert titles == ["without an attack", "right", "proof"]
    assert rows[0] == ["certified vote", "66.6\u00a0%", "certified"]
    assert unjudged(full) == ""


def test_a_size_stands_beside_what_the_data_has() -> None:
    figures = key_figures(summary_of("edge-centric/node", degree=[4] * 40))
    assert any("1 changed edge (a typical node has 4 edges)" in figure["meaning"] for figure in figures)


@pytest.mark.parametrize(
    ("shaky", "told"), [(0, ""), (1, "count for the rival: 1 of 6,000."), (600, "count for the rival: 600 of 6,000.")]
)
def test_votes_that_are_handed_over_are_counted(shaky, told) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(0), "gnncert-e/node", 100, 60, 3)
    votes = certificate.evidence.votes
    unsure = replace(votes, stable=np.arange(len(votes.stable)) >= shaky)
    evidence = replace(certificate.evidence, votes=unsure)
    sentence = summarise(Certificate(certificate.claim, evidence, certificate.target), None).words.conceded
    assert told in sentence
    assert bool(sentence) == bool(shaky)


def test_the_largest_figure_is_the_number_of_the_headline() -> None:
    summary = rare_summary()
    first, alarms, precise = key_figures(summary)
    assert f"At least {first['value']} of 10" in headline(summary)
    measures = summary.measures(headline_size(summary))
    assert alarms["value"] == percent(measures.false_positive_rate[1], UPPER)
    assert percent(measures.accuracy, LOWER) not in [figure["value"] for figure in (first, alarms, precise)]
    assert precise["value"] == percent(measures.precision[1], LOWER)
    all_of_them = summary_of("edge-centric/node", 60)
    assert key_figures(all_of_them)[0]["value"] in headline(all_of_them)


def test_one_number_is_written_in_one_way() -> None:
    """Two thirds are a measurement without an attack and a bound under one: 66.6 % in both places, never 66.7 %."""
    summary = rare_summary()
    truth = summary.certificate.label.copy()
    truth[::3] = 1 - truth[::3]
    truth[198:] = -1
    summary = summarise(summary.certificate, ReportContext(truth=truth))
    clean = float((truth == summary.certificate.label)[:198].mean())
    cells = [cell for row in class_table(summary)[1] for cell in row]
    words = " ".join([headline(summary), *beside(summary), *cells])
    assert percent(clean, LOWER) != percent(clean), "these targets would not tell"
    assert percent(clean, LOWER) in words
    assert percent(clean) not in words
    for row in class_table(summary)[1]:
        shares = {}
        for share, cell in zip(_values_of(summary, row[0]), row[1:], strict=False):
            assert shares.setdefault(share, cell.rstrip("*")) == cell.rstrip("*")


def _values_of(summary: Summary, name: str) -> list[float]:
    if name != "accuracy":
        return []
    return [summary.measures(size).accuracy for size in (-1, *few_sizes(summary))]


def test_all_of_a_class_is_called_all() -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(3), "edge-centric/node", 200, 60, 2)
    few = np.flatnonzero(certificate.radius == certificate.radius.max())  # they fall together
    truth = np.full(200, -1)
    truth[few] = certificate.label[few]
    said = headline(summarise(certificate, ReportContext(truth=truth)))
    assert said.startswith(f"All {len(few)} decisions match the stated class, and still do,")


def rare_summary(**context: object) -> Summary:
    """200 targets, 10 of them of class 1: half of these are certified up to size 1, the other targets much further."""
    certificate, _ = made_up_certificate(np.random.default_rng(3), "edge-centric/node", 200, 60, 2)
    order = np.argsort(certificate.radius)
    truth = np.zeros(200, dtype=np.int64)
    truth[order[np.flatnonzero(certificate.radius[order] >= 1)[:10]]] = 1
    return summarise(certificate, ReportContext(truth=truth, class_names=["fine", "fraud"], **context))  # type: ignore[arg-type]


def test_a_rare_class_has_the_headline_and_chooses_its_size() -> None:
    summary = rare_summary()
    size = max(1, int(summary.recalls[1].size[summary.recalls[1].share >= 0.9 * summary.recalls[1].share[0]][-1]))
    kept = (summary.truth == 1) & (summary.certificate.label == 1) & (summary.certificate.radius >= size)
    done = "changes any one edge" if size == 1 else f"changes any {size} edges"
    assert summary.rare == 1
    assert kept.sum() > 0
    share = percent(kept.sum() / 10, -1)
    assert headline(summary) == (f"At least {share} of 10 nodes of class “fraud” stay detected when an attacker {done}")


def test_a_headline_does_not_go_on_where_all_others_may_be_taken_for_the_rare_class() -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(3), "edge-centric/node", 200, 60, 2)
    truth, order = np.full(200, -1), np.argsort(certificate.radius, kind="stable")
    truth[order[certificate.label[order] == 0][:60]] = 0  # lost early
    truth[order[certificate.label[order] == 1][-3:]] = 1  # kept long
    summary = summarise(certificate, ReportContext(truth=truth, class_names=["fine", "fraud"]))
    last = int(summary.recalls[1].size[summary.recalls[1].share >= 0.9 * summary.recalls[1].share[0]][-1])
    size = headline_times(summary)
    assert summary.rare == 1
    assert size < last
    assert summary.measures(size).balanced_accuracy >= 0.9 * summary.measures(0).balanced_accuracy or size == 1


def test_what_needs_no_proof_and_what_is_not_covered_stand_with_the_headline() -> None:
    summary = rare_summary(mlp=0.99, by_class={"mlp": [(1.0, 0.9), (0.125, 0.03)]})
    titles, rows = models_table(summary)
    assert titles == ["without an attack", "fraud detected", "others taken for fraud", "right", "proof"]
    models = {row[0]: row[1:] for row in rows}
    more = "needs none, and is right for more than is certified"
    assert models["MLP, no graph"] == ["12.5\u00a0%", "3.0\u00a0%", "99.0\u00a0%", more]
    assert models["majority class"] == ["–", "–", "95.0\u00a0%", more]
    text = "\n".join(beside(summary))
    assert "Not covered, though often the cheapest attack: other features of the node itself. The gated" in text
    assert not any("Not covered" in line for line in beside(summary_of("gated/node")))
    common = {row[0]: row[1:] for row in models_table(summary_of("edge-centric/node", truth=[0, 1] * 20, mlp=0.99))[1]}
    assert common["MLP, no graph"] == ["99.0\u00a0%", more]
    assert common["majority class"][0] == "50.0\u00a0%"
    assert models_table(summary_of("edge-centric/node", truth=[-1] * 40))[1] == []


def test_an_undefended_model_is_one_about_which_nothing_is_proved() -> None:
    rows = models_table(summary_of("edge-centric/node", truth=[0, 1] * 20, undefended=0.99))[1]
    assert [row[-1] for row in rows if row[0] == "undefended GNN"] == ["nothing"]


def test_what_was_requested_of_a_threshold_stands_beside_what_was_reached() -> None:
    summary = rare_summary()
    record = ThresholdRecord(1, 300, 9, 4, 0.05, 0.95, as_of="2026-03-01")
    claim = summary.certificate.claim.with_threshold(record)
    asked = summarise(replace(summary.certificate, claim=claim), summary.context)
    titles, rows = threshold_table(asked)
    assert titles == ["threshold of fraud", "requested", "reached here"]
    clean = asked.measures(-1)
    assert "at most 5 % false positives with 95 % confidence, by 300 kept targets, as of 2026-03-01" in rows[0]
    assert rows[0][2].startswith(percent(clean.false_positive_rate[1], UPPER))
    assert rows[1][2] == percent(clean.recall[1], LOWER)
    assert threshold_table(summary)[1] == []


def test_groups_are_by_degree_and_by_what_the_context_says() -> None:
    summary = rare_summary()
    n = summary.num_targets
    context = replace(summary.context, degree=np.arange(n) % 70, groups={"days": ranges(np.arange(n))})
    by_degree, by_days = groups_tables(summarise(summary.certificate, context))
    assert by_degree["title"] == "Detection by edges"
    assert [row[0] for row in by_degree["rows"]] == ["none", "1 to 5", "6 to 20", "21 to 50", "51 to 200"]
    assert sum(int(row[1]) for row in by_degree["rows"]) == int(summary.support[1])
    assert len(by_days["rows"]) == 4


def test_the_table_of_classes_holds_the_measures_and_no_bound_is_rounded_up() -> None:
    summary = rare_summary()
    titles, rows = class_table(summary)
    cells = {row[0]: row[1:] for row in rows}
    sizes = [-1, *few_sizes(summary)]
    assert titles[2:] == [f"{size:,}" for size in sizes[1:]]
    for k, size in enumerate(sizes):
        found = summary.measures(size)
        stated = {name: float(row[k].rstrip("*").removesuffix("\u00a0%")) / 100 for name, row in cells.items()}
        assert cells["accuracy"][k].endswith("*") == (found.accuracy < found.majority_share)
        assert stated["recall of fraud"] <= found.recall[1] + 1e-9
        assert stated["recall of fine"] <= found.recall[0] + 1e-9
        assert stated["others taken for fraud, at most"] >= found.false_positive_rate[1] - 1e-9
        assert stated["accuracy"] <= found.accuracy + 1e-9
        assert stated["accuracy of the most frequent class alone (* is below it)"] == 0.95
    assert class_table(summary_of("edge-centric/node"))[1] == []


@pytest.mark.parametrize(
    ("share", "down", "up"), [(0.9999, "99.9", "100.0"), (0.29, "29.0", "29.0"), (1.0, "100.0", "100.0")]
)
def test_bounds_are_rounded_to_the_safe_side(share, down, up) -> None:
    assert (percent(share, -1), percent(share, 1)) == (f"{down}\u00a0%", f"{up}\u00a0%")


CEILING = f"{AT_MOST} (nodes injected or deleted)"


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        (
            {0: 1.0, 1: 0.7341, 2: 0.63},
            "Certified accuracy: at most 73.5 % at size 1, 63.0 % at 2 is possible (nodes injected or deleted) for",
        ),
        (
            {0: 1.0, 1: 0.9605, 2: 0.9605, 3: 0.9605},
            "Certified accuracy: at most 96.1 % at sizes 1 to 3 is possible (nodes injected or del",
        ),
        ({1: 0.5}, "Certified accuracy: at most 50.0 % at size 1 is possible"),
    ],
)
def test_what_is_possible_at_most_is_rounded_up_and_names_what_is_read(shares: dict, said: str) -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(0), "node-centric/graph", 30, 20, 3)
    assert certificate.radius.max() >= 3
    told = ReportContext(
        truth=certificate.label, possible={CEILING: list(shares.items()), f"{AT_MOST} (x)": [(1, 0.1)]}
    )
    lines = [line.replace("\u00a0", " ") for line in beside(summarise(certificate, told))]
    (line,) = (line for line in lines if "possible" in line)
    assert line.startswith(said)
    assert "a classifier that reads only how many nodes of each type a graph has." in line
    assert line.endswith("A classifier that also reads edges is not bounded by this.")


def test_what_accuracy_is_possible_is_not_said_beside_a_rare_class() -> None:
    summary = rare_summary(possible={VOTES_REFERENCE: [(1, 0.7341)]})
    assert summary.possible
    assert not any("eference" in line for line in beside(summary))


def test_a_reference_is_said_to_be_no_bound() -> None:
    certificate, _ = made_up_certificate(np.random.default_rng(0), "node-centric/node", 30, 20, 3)
    told = ReportContext(truth=certificate.label, possible={VOTES_REFERENCE: [(1, 0.7341), (2, 0.5)]})
    (line,) = (line for line in beside(summarise(certificate, told)) if "eference" in line)
    assert line.startswith("Reference, not a bound: with one vote of each neighbour for its true class")
    assert "accuracy would be 73.4 % at size 1, 50.0 % at 2 (neighbours that come or go)." in line.replace(
        "\u00a0", " "
    )
    unknown = replace(certificate, truth=None)
    for other in (ReportContext(possible=told.possible), ReportContext(truth=certificate.label)):
        assert not any("eference" in line for line in beside(summarise(unknown, other)))
