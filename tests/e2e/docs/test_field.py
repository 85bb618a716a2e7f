"""The cards of the table of the field say what the committed rows say."""

from agnncert_peers.cards import read_card
from experiments.benchmarks import field_cards
from experiments.benchmarks.field import CONTROLS, SIZES, THREATS


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
