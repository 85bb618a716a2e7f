"""How votes are added up: what an empty group votes for, and how many votes each class starts with.

A voting rule is fixed before any vote is seen and stands in the certificate, so no attack can move it.
"""

import reprlib
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from agnncert.certificates.theorem_facts import THEOREMS
from agnncert.errors import CertificateError, SettingsError

LARGEST_PRIOR = 2**30
LARGEST_CLASS = 2**15 - 2


@dataclass(frozen=True)
class VotingRule:
    """How votes are added up; ``VotingRule()`` is the plain vote.

    Attributes:
        empty: What a group casts in which no edge brings the target a message (graph task: which has no edge or no
            node): ``"no_edge"`` for the prediction without edges, ``"abstain"``, or a class number. Defaults to
            ``"no_edge"`` in the node task, and to ``"abstain"`` in the graph task and where features are gated.
        prior: Votes added before counting: a whole number, for the target's prediction without edges, or a list with
            one number per class. Negative numbers are allowed.

    Example:
        >>> VotingRule(empty="abstain", prior=5)
        VotingRule(empty='abstain', prior=5)
        >>> VotingRule(empty=1, prior=[0, 12]).prior
        (0, 12)
    """

    empty: str | int | None = None
    prior: int | tuple[int, ...] = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "empty", _empty(self.empty))
        object.__setattr__(self, "prior", _prior(self.prior))

    @property
    def no_edge_prior(self) -> int:
        """Votes for the prediction without edges; 0 if the prior is the same for all targets."""
        return self.prior if isinstance(self.prior, int) else 0

    @property
    def class_prior(self) -> tuple[int, ...]:
        """Votes for each class, the same for all targets; empty if there are none."""
        return self.prior if isinstance(self.prior, tuple) else ()

    @property
    def constant(self) -> int | None:
        """The class, or -1 for nothing, that empty groups cast for all targets; None if it is the one without edges."""
        return None if self.empty in (None, "no_edge") else -1 if self.empty == "abstain" else int(self.empty)

    def under(self, theorem: str, num_classes: int) -> "VotingRule":
        """The same voting rule with its defaults filled in.

        Args:
            rule: A key of :data:`~agnncert.certificates.theorem_facts.RULES`.
            num_classes: Number of classes.

        Raises:
            SettingsError: The division of ``rule`` cannot vote in this way.
        """
        facts = THEOREMS[theorem]
        empty = facts.empty[0] if self.empty is None else self.empty
        prior = 0 if isinstance(self.prior, tuple) and not any(self.prior) else self.prior
        if ("class" if isinstance(empty, int) else empty) not in facts.empty:
            raise SettingsError(
                f"VotingRule(empty={empty!r}): {_WHY_NOT_EMPTY.get(theorem, _USUAL_REASON[facts.task])}"
            )
        if isinstance(empty, int) and empty >= num_classes:
            raise SettingsError(f"VotingRule(empty={empty}): the classes are 0 to {num_classes - 1}.")
        if isinstance(prior, tuple) and len(prior) != num_classes:
            raise SettingsError(
                f"VotingRule(prior=…) has {len(prior)} numbers: expected one for each of {num_classes} classes."
            )
        if isinstance(prior, int) and prior and not facts.no_edge_prior:
            raise SettingsError(
                f"VotingRule(prior={prior}): {_WHY_NOT_PRIOR.get(theorem, _NO_NO_EDGE)} Pass one number per class."
            )
        return replace(self, empty=empty, prior=prior)

    def to_json(self) -> dict[str, Any]:
        """This vote in JSON's terms; :meth:`from_json` is the way back."""
        return {"empty": self.empty, "prior": self.prior if isinstance(self.prior, int) else list(self.prior)}

    @classmethod
    def from_json(cls, stored: Any, theorem: str, num_classes: int) -> "VotingRule":
        """The vote that a file describes, which is not trusted.

        Raises:
            CertificateError: It is not how this library writes a vote under this rule.
        """
        try:
            if not isinstance(stored, dict) or set(stored) != {"empty", "prior"}:
                raise SettingsError('expected "empty" and "prior".')
            voting_rule = cls(**stored).under(theorem, num_classes)
            if voting_rule.to_json() != stored or any(isinstance(value, bool) for value in _values(stored)):
                raise SettingsError("it is not spelled out.")
        except SettingsError as error:
            raise CertificateError(f"the vote {reprlib.repr(stored)} makes no sense: {error}") from error
        return voting_rule


_NO_NO_EDGE = "there is no prediction without edges of a graph, or in a division of which only the votes are known."
_WHY_NOT_PRIOR = {"gated/node": "it would follow the target's own features, which this division protects."}
_USUAL_REASON = {
    "node": "with one group per neighbour all other groups are empty, and nothing outweighs them. Let them abstain, "
    "and give a prior.",
    "graph": "a graph has no prediction without edges: use a class, or let empty groups abstain.",
}
_WHY_NOT_EMPTY = {
    "gated/node": "groups that hide the target's features cannot cast what follows from them: use a class, or abstain.",
    **{
        theorem: "no group of this division counts as empty: all votes are cast. Leave it out."
        for theorem in THEOREMS
        if theorem.startswith(("gnncert", "custom"))
    },
}


def _empty(empty: Any) -> str | int | None:
    if isinstance(empty, Integral) and not isinstance(empty, bool) and 0 <= int(empty) <= LARGEST_CLASS:
        return int(empty)
    if empty is None or (isinstance(empty, str) and empty in ("no_edge", "abstain")):
        return empty
    raise SettingsError(f'VotingRule(empty={empty!r:.60}): expected "no_edge", "abstain" or the number of a class.')


def _prior(prior: Any) -> int | tuple[int, ...]:
    if _is_whole(prior):
        return int(prior)
    numbers = list(prior) if hasattr(prior, "__iter__") and not isinstance(prior, (str, bytes, dict)) else None
    if numbers is None or not numbers or not all(map(_is_whole, numbers)):
        raise SettingsError(
            f"VotingRule(prior={prior!r:.60}): expected a whole number, or a list with one for each class, none beyond "
            f"{LARGEST_PRIOR:,}."
        )
    return tuple(map(int, numbers))


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) <= LARGEST_PRIOR


def _values(stored: dict[str, Any]) -> list[Any]:
    prior = stored["prior"]
    return [stored["empty"], *(prior if isinstance(prior, list) else [prior])]
