"""What proves with its theorem: one edge moves one vote, and nothing else may change."""

from agnncert.divided.division_words import ALL_LISTED, DivisionWords
from agnncert.divided.theorems.moving_votes import AnyVotes
from agnncert.proving.prices import pay
from agnncert.proving.theorems import Limits
from agnncert.proving.words import EDGES


class _LesserEnd(AnyVotes):
    name = "lesser-end/node"
    words = DivisionWords(EDGES, ("edges",), ALL_LISTED)
    page_rule = """(a) => {
      const covered = a.nodes === 0 && a.inject_nodes === 0;
      return { covered, moved: () => a.edges, beyond: a.edges, unlisted: a.edges };
    }"""

    def limits(self, attack, facts):
        covered = (attack.nodes == 0) & (attack.inject_nodes == 0)
        return Limits.of(facts, attack.edges, attack.edges, attack.edges, covered)

    def price_of_number(self, prices, record):
        edge = min(prices.add_edges, prices.delete_edges, prices.change_edges)
        return lambda number: pay(edge, number)


THEOREMS = {"node": _LesserEnd()}
