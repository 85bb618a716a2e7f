"""What a theorem about votes of subgraphs says when it is written as a contest, found by the theorem's name."""

from abc import ABC, abstractmethod
from collections.abc import Mapping

from agnncert.addons import addons
from agnncert.certificates.theorem_facts import facts_of
from agnncert.certificates.votes import VoteRecord
from agnncert.contest.kinds.kind import Kind
from agnncert.errors import CertificateError


class TheoremAsContest(ABC):
    """One theorem of ``docs/proofs.md``: which moves a change of the graph allows, and what they do to votes.

    It spells out what the theorem covers, instead of reading it from the facts that claims are written from.
    """

    @abstractmethod
    def kind(self, record: VoteRecord) -> Kind:
        """Returns votes that are counted by this theorem as a contest."""


def contest_of(theorem: str) -> TheoremAsContest:
    """Returns what a theorem says as a contest.

    Raises:
        MissingPackage: An add-on package that is not installed has it.
        CertificateError: Nothing here knows the theorem, or it has no form as a contest.
    """
    facts = facts_of(theorem)
    point = addons("agnncert.theorem_contests").get(theorem.partition("/")[0])
    theorems: Mapping[str, TheoremAsContest] = point.load() if point is not None else {}
    if facts.task not in theorems:
        raise CertificateError(
            f"the theorem {theorem!r} has no form as a contest: name an object that says which moves a change allows "
            "(a VotesInTiers or VotesThatComeAndGo of agnncert.contest.kinds) under [agnncert.theorem_contests] in the "
            "entry points of the package that has its facts."
        )
    return theorems[facts.task]
