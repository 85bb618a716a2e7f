"""Theorem 13 with one line broken on purpose: a law turns red, whichever line it is."""

from pathlib import Path

import pytest

from agnncert.proving import evidence, prices
from tests.support.cheapest import check_prices

MISTAKES = [
    ("further edges of an injected node are free", "edge-centric/node", "min(weak, p.injected_edges)", "0"),
    ("an injected node costs nothing", "edge-centric/node", "fixed=joined - strong", "fixed=0"),
    ("an injected node is no neighbour", "edge-centric/node", "node=node, fixed=joined - strong, least=1", "node=node, fixed=joined - strong, least=0"),
    ("the reach table is forgotten", "edge-centric/node", "+ offer.own\n        lacking", "* 0 + offer.own\n        lacking"),
    ("nodes cost nothing", "edge-centric/graph", "price + pay(offer.node, nodes)", "price"),
    ("edges move unlisted votes", "node-centric/node", "Offer(strong, min(weak, node, strong))", "Offer(min(strong, weak), min(weak, node, strong))"),
    ("deleted nodes move nothing", "node-centric/node", "min(weak, node, strong)", "min(weak, strong)"),
    ("the target's own features are free", "gated/node", "fixed=p.target_features", "fixed=0.0"),
    ("own features move nothing", "gated/node", "if offer.own:", "if False:"),
    ("nodes wake empty groups", "node-centric/graph", "np.minimum(part[UNLISTED], injected)", "part[UNLISTED]"),
    ("injected nodes at the price of others", "node-centric/graph", "+ pay(offer.strong, injected) - pay(offer.middle, injected)", ""),
    ("half is rounded down", "gnncert-e/node", "np.ceil(rival.lacking / 2)", "np.floor(rival.lacking / 2)"),
    ("votes of the label are without number", "gnncert-e/node", "rival.lacking - own), 0, others)", "0 * own), 0, others)"),
    ("rows and columns overlap twice", "gnncert-en/node", "- rows * columns).ravel()", ").ravel()"),
    ("own features any number of times", "gnncert-n/node", "+ pay(features, counts - 1))", "+ pay(features, 0 * counts))"),
    ("half of a kind may be bought", "custom/node", "price + table[max(number - moves, 0)]", "price / 2 + table[max(number - moves, 0)]"),
    ("half is rounded down, new", "node-centric/node", "missing, half = lacking - own - others, np.ceil(lacking / 2)", "missing, half = lacking - own - others, np.floor(lacking / 2)"),
    ("what cannot be gained costs something", "node-centric/node", "np.where(missing <= own_new + others_new, best, np.inf)", "best"),
    ("a lost vote gains two", "per-neighbour/node", "(lost, own - twos)", "(lost, 2 * own)"),
    ("an altered vote gains one", "per-neighbour/node", "np.maximum(lacking - 2 * twos, 0)", "np.maximum(lacking - twos, 0)"),
    ("turned pairs are forgotten", "per-pair/node", "np.minimum(turnable, twos) if turned < altered", "0 * own if turned < altered"),
    ("all pairs can be turned", "per-pair/node", "turnable, spare = np.minimum(one_way[0], own)", "turnable, spare = own"),
    ("empty groups of the label gain one by what is new", "per-neighbour/node", "np.ceil((left - ones) / 2)", "left - ones"),
    ("deleted nodes are altered ones", "per-pair/graph", "if going and rival.k != facts.absent:", "if False:"),
]  # fmt: skip


@pytest.mark.parametrize(("mistake", "theorem", "old", "new"), MISTAKES, ids=[f"{one[0]}-{one[1]}" for one in MISTAKES])
def test_a_law_notices(monkeypatch, mistake, theorem, old, new):
    text = Path(prices.__file__).read_text()
    assert text.count(old) == 1, f"{old!r} is not there once"
    names = {"__name__": prices.__name__}
    exec(compile(text.replace(old, new), "broken", "exec"), names)
    for name in ("Rival", "cheapest_in_tiers", "cheapest_of_number", "cheapest_per_neighbour", "offers", "price_of_number"):
        monkeypatch.setattr(evidence, name, names[name])
    with pytest.raises((AssertionError, IndexError)):
        check_prices(theorem, rounds=150)
