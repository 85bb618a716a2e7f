"""Theorem 13 with one line broken on purpose: a law turns red, whichever line it is."""

import pytest

from agnncert.divided.theorems import custom, edge_centric, gated, node_centric, per_pair
from agnncert.proving import prices
from agnncert_peers import gnncert_theorems
from tests.soundness.laws import test_prices as laws
from tests.support.cheapest import check_prices
from tests.support.mutations import RED, text_turns_red

MISTAKES = [
    ("further edges of an injected node are free", "edge-centric/node", edge_centric, "min(weak, prices.injected_edges)", "0"),
    ("an injected node costs nothing", "edge-centric/node", edge_centric, "fixed=joined_node - strong", "fixed=0"),
    ("an injected node is no neighbour", "edge-centric/node", edge_centric, "fixed=joined_node - strong, least=1", "fixed=joined_node - strong, least=0"),
    ("the reach table is forgotten", "edge-centric/node", prices, "[here] + offer.own_group", "[here] * 0 + offer.own_group"),
    ("nodes cost nothing", "edge-centric/graph", prices, "np.minimum(best[here], price + price_of_nodes)", "np.minimum(best[here], price)"),
    ("edges move unlisted votes", "node-centric/node", node_centric, "Offer(strong, min(weak, node, strong))", "Offer(min(strong, weak), min(weak, node, strong))"),
    ("deleted nodes move nothing", "node-centric/node", node_centric, "min(weak, node, strong)", "min(weak, strong)"),
    ("the target's own features are free", "gated/node", gated, "fixed=prices.target_features", "fixed=0.0"),
    ("own features move nothing", "gated/node", prices, "if offer.own_group:", "if False:"),
    ("nodes wake empty groups", "node-centric/graph", prices, "np.minimum(votes[UNLISTED], injected)", "votes[UNLISTED]"),
    ("injected nodes at the price of others", "node-centric/graph", prices, "+ price_of_injected - pay(offer.middle, injected)", ""),
    ("half is rounded down", "gnncert-e/node", prices, "np.ceil(rival.lacking / 2)", "np.floor(rival.lacking / 2)"),
    ("votes of the label are without number", "gnncert-e/node", prices, "rival.lacking - for_label)", "0 * for_label)"),
    ("rows and columns overlap twice", "gnncert-en/node", gnncert_theorems, "- rows * columns).ravel()", ").ravel()"),
    ("own features any number of times", "gnncert-n/node", gnncert_theorems, "+ pay(others, number - 1)", "+ pay(others, 0 * number)"),
    ("half of a kind may be bought", "custom/node", custom, "kind.price + prices[max(number - kind.moves, 0)]", "kind.price / 2 + prices[max(number - kind.moves, 0)]"),
    ("own features of the target are free", "custom/node", custom, "start.price + prices.target_features", "start.price"),
    ("half is rounded down, new", "node-centric/node", prices, "half = np.ceil(votes.lacking / 2)", "half = np.floor(votes.lacking / 2)"),
    ("what cannot be gained costs something", "node-centric/node", prices, "np.where(missing <= votes.strong_for_label + votes.strong_others, best, np.inf)", "best"),
    ("a lost vote gains two", "per-neighbour/node", prices, "_Supply(prices.lost, votes.for_label - twos)", "_Supply(prices.lost, 2 * votes.for_label)"),
    ("an altered vote gains one", "per-neighbour/node", prices, "np.maximum(votes.lacking - 2 * twos, 0)", "np.maximum(votes.lacking - twos, 0)"),
    ("turned pairs are forgotten", "per-pair/node", prices, "np.minimum(turnable, twos) if turned < altered", "0 * turnable if turned < altered"),
    ("all pairs can be turned", "per-pair/node", prices, "turnable = np.minimum(votes.one_way_for_label, votes.for_label)", "turnable = votes.for_label"),
    ("empty groups of the label gain one by what is new", "per-neighbour/node", prices, "np.ceil((left - ones) / 2)", "left - ones"),
    ("deleted nodes are altered ones", "per-pair/graph", per_pair, "only_deleted = math.isinf(prices.change_features)", "only_deleted = False"),
    ("what goes is lost to a label of empty groups", "per-pair/graph", prices, "np.where(self.empty_for_label, 0, np.minimum(number, self.for_label))", "np.minimum(number, self.for_label)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("mistake", "theorem", "module", "old", "new"), MISTAKES, ids=[f"{one[0]}-{one[1]}" for one in MISTAKES]
)
def test_a_law_notices(monkeypatch, mistake, theorem, module, old, new):
    text_turns_red(monkeypatch, module, old, new, lambda: check_prices(theorem, rounds=150), (*RED, IndexError))


def few_groups(folder):
    for num_groups in (1, 2, 3):
        laws.test_the_verifier_finds_the_same_price_where_all_votes_may_have_to_move("gated/node", num_groups, folder)


def mixes(folder):
    laws.test_the_cheapest_mix_of_changes_is_among_the_few_that_are_tried()


FEW_VOTES = [
    ("the own vote of the target counts twice", few_groups, "0 * votes[UNREACHED]", "votes[UNREACHED]"),
    ("a bend is forgotten", mixes, "half_alone = (alone - already_moved) / 2", "half_alone = alone / 2"),
]


@pytest.mark.parametrize(("mistake", "law", "old", "new"), FEW_VOTES, ids=[one[0] for one in FEW_VOTES])
def test_a_law_of_few_votes_notices(monkeypatch, tmp_path, mistake, law, old, new):
    text_turns_red(monkeypatch, prices, old, new, lambda: law(tmp_path))
