"""Theorem 12 with one line broken on purpose: a law turns red, whichever line it is."""

import pytest

from agnncert.proving import possible
from tests.soundness.laws import test_possible as laws
from tests.support.mutations import text_turns_red

TIERS, OWN = laws.in_tiers, laws.of_own_groups

MISTAKES = [
    ("ties go to the larger class", TIERS, "(classes < k)", "(classes > k)"),
    ("ties go to the label", TIERS, "(classes < k) +", "0 +"),
    ("votes in doubt are nobody's", TIERS, "-margin - in_doubt", "-margin"),
    ("the label wins no ties", TIERS, "margin[:, k] + (k < label) - won", "margin[:, k] - won"),
    ("more votes move than the limits allow", TIERS, "needed.sum(axis=1) <= limits.all[rows]", "True"),
    ("unreached votes move as reached ones", TIERS, "beyond.sum(axis=1) <= limits.beyond_reached[rows]", "True"),
    ("each class has the whole limit", TIERS, "needed.sum(axis=1) <= limits.all", "needed.max(axis=1) <= limits.all"),
    ("a class loses votes that it has not", TIERS, "wins = (unlisted <= votes[UNLISTED]).all(axis=1)", "wins = np.ones(len(rows), dtype=bool)"),
    ("abstaining votes cannot move", TIERS, "size - votes[:, :, k]", "votes.sum(axis=2) - votes[:, :, k]"),
    ("own votes move again", TIERS, "size - votes[:, :, k]", "size"),
    ("only the label must be beaten", TIERS, "needed = np.maximum(_lacking(counts, rows, k, won), 0)",
     "needed = np.maximum(_lacking(counts, rows, k, won), 0) * counts.is_label[rows]"),
    ("reached votes of another class are taken", TIERS, "needed - votes[REACHED]", "needed - votes[REACHED].max(axis=1)[:, None]"),
    ("new votes are free", OWN, "won = new + ", "won = "),
    ("votes that go are won", OWN, "new + np.minimum(altered, others)", "new + np.minimum(touched, others)"),
    ("turned pairs are forgotten", OWN, "- by_turning <= touched", "<= touched"),
    ("turned pairs are without number", OWN, "np.minimum(turned, np.minimum(one_way, needed).sum(axis=1))", "np.minimum(one_way, needed).sum(axis=1)"),
    ("all pairs can be turned", OWN, "np.minimum(one_way, needed)", "np.minimum(votes, needed)"),
    ("empty groups gain nothing by what goes", OWN, "surplus + elsewhere <=", "surplus <="),
    ("empty groups lose nothing by what is new", OWN, "needed[:, facts.absent] - new", "needed[:, facts.absent]"),
    ("what empty groups cast needs no votes", OWN, "wins &= surplus <= votes[:, facts.absent]", "wins &= True"),
    ("what goes is lost to its class alone", OWN, "if k == facts.absent:", "if False:"),
    ("turned pairs win nothing for an empty class", OWN, "touched + turned_to_k", "touched"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mistake", "law", "old", "new"), MISTAKES, ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_law_notices(monkeypatch, mistake, law, old, new):
    text_turns_red(monkeypatch, possible, old, new, law)
