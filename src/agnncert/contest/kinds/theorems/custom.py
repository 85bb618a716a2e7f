"""The theorems of a user's own divisions, which state how many votes each change moves."""

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import VoteRecord
from agnncert.contest.kinds.tiers import ANY, Amounts, VotesInTiers


class _AsStated(VotesInTiers):
    def amounts(self, record: VoteRecord) -> Amounts:
        """Each change allows as many moves as the division states."""
        stated = record.parameters.items()
        names = {name.replace("edges_per_injected", "injected_edges"): price for name, price in stated}
        return {ANY: {name: price for name, price in names.items() if price}}

    def covered(self, record: VoteRecord) -> tuple[str, ...]:
        """Returns the changes that have a price."""
        return tuple(record.parameters)

    def is_covered(self, record: VoteRecord, budget: Budget) -> bool:
        """Returns whether the edges of injected nodes have a price, if there are any."""
        return not budget.injected_edges or "edges_per_injected" in record.parameters


THEOREMS = {"node": _AsStated(), "graph": _AsStated()}
