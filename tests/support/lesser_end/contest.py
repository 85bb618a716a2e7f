"""What it is as a contest: every edge alters one vote, which may be any."""

from agnncert.contest.kinds.tiers import ANY, EDGES, VotesInTiers


class _LesserEnd(VotesInTiers):
    covers = EDGES

    def amounts(self, record):
        return {ANY: EDGES}


THEOREMS = {"node": _LesserEnd()}
