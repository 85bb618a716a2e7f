"""With what says how large a receptive field is broken on purpose, a test turns red."""

import pytest

from agnncert import receptive
from agnncert.models import message_hops
from agnncert.stacked import defence as stacked
from tests.soundness.oracle import test_receptive_field as fields
from tests.support.mutations import text_turns_red

MISTAKES = {
    "edges at senders are left out": (
        lambda: fields.fields_of_division("gcn, two layers", graphs=15), message_hops, "hops if counts_at_senders else hops - 1", "hops - 1",
    ),
    "the last hop is left out": (
        lambda: fields.fields_of_division("sage"), message_hops, "hops if counts_at_senders else hops - 1", "hops - 2",
    ),
    "two levels are one": (
        lambda: fields.fields_of_stacked_votes("two levels"), stacked, "return self.levels - 1", "return 0",
    ),
    "edges are not counted": (
        fields.test_the_message_names_who_lacks_what, receptive, "if stated.get(name) != sent[name]", "if False",
    ),
    "only edges of the target are counted": (
        fields.test_the_message_names_who_lacks_what, receptive, "range(1, hops + 1)", "range(1, hops)",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("law", "module", "old", "new"), MISTAKES.values(), ids=MISTAKES)
def test_the_law_holds_and_the_mistake_breaks_it(law, module, old, new, monkeypatch) -> None:
    law()
    text_turns_red(monkeypatch, module, old, new, law)
