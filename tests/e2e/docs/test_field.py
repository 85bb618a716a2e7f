"""The cards of the table of the field say what the committed rows say."""

import pytest

from agnncert_peers.card_check import Known, check_card
from agnncert_peers.cards import read_card
from experiments.benchmarks import field_cards
from experiments.benchmarks.field import CONTROLS, SELF_TAUGHT, SIZES, TAUGHT, THREATS, UNTAUGHT


def test_every_row_that_proves_something_has_its_cards():
    rows = field_cards.read_rows()
    assert len({(row["dataset"], row["protocol"], row["seed"], row["defence"]) for row in rows}) == len(rows)
    cards = [read_card(file) for file in sorted(field_cards.CARDS.glob("*.json"))]
    by_name = {(card.dataset, card.protocol, card.threat, card.defence): card for card in cards}
    for row in rows:
        for threat in THREATS:
            card = by_name.get((row["dataset"], row["protocol"], threat, row["defence"]))
            if not any(row[threat][1:]) and row["defence"] not in CONTROLS:
                continue
            assert card is not None
            own = next(run for run in card.runs if run.seed == row["seed"])
            assert list(own.certified) == row[threat]
            assert card.sizes == SIZES


@pytest.mark.skipif(not (field_cards.CARDS / "certificates").is_dir(), reason="make evidence lays out the certificates")
def test_cards_follow_from_their_certificates():
    known = Known()
    cards = sorted(field_cards.CARDS.glob("*.json"))
    status = {card.name: check_card(card, known=known).status for card in cards}
    assert [name for name, each in status.items() if each == "wrong"] == []
    is_published = {card.name: all(run.file for run in read_card(card).runs) for card in cards}
    assert [name for name, each in status.items() if is_published[name] and each != "derived again"] == []


def test_taught_models_have_cards_on_the_splits_of_untaught_ones():
    seeds: dict[str, set[tuple[str, int]]] = {TAUGHT: set(), UNTAUGHT: set()}
    for row in field_cards.read_rows():
        if row["protocol"] in seeds:
            seeds[row["protocol"]].add((row["dataset"], row["seed"]))
    assert seeds[UNTAUGHT] <= seeds[TAUGHT]
    assert not {seed for _, seed in seeds[TAUGHT]} & {0, 1, 2, *range(10, 15), *range(30, 33)}


def test_models_without_edges_taught_by_others_without_edges_are_a_control_with_cards():
    cards = [read_card(file) for file in sorted(field_cards.CARDS.glob("*taught-by-mlps*.json"))]
    assert {card.threat for card in cards} == set(THREATS)
    assert all(card.control and card.protocol == TAUGHT and card.defence == SELF_TAUGHT for card in cards)
    assert {"cora-ml", "citeseer"} <= {card.dataset for card in cards}
