"""Holds how votes are added up: what an empty group votes for, and how many votes each class starts with.

A voting rule is fixed before any vote is seen and stands in the certificate, so no attack can move it.
"""

import reprlib
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any

from agnncert.certificates.theorem_facts import TheoremFacts, facts_of
from agnncert.errors import CertificateError, SettingsError

LARGEST_PRIOR = 2**30
LARGEST_CLASS = 2**15 - 2


@dataclass(frozen=True)
class VotingRule:
    """How votes are added up. ``VotingRule()`` counts one vote for each group, and nothing else.

    Attributes:
        empty: What an empty group votes for: ``"no_edge"`` for the prediction without edges, ``"abstain"`` for nothing,
            or a class number. In the node task a group is empty if no edge of it brings the target a message, in the
            graph task if it has no edge or no node. The default None means ``"no_edge"`` in the node task, and
            ``"abstain"`` in the graph task and where features are gated.
        prior: Votes that are there before any are counted: one whole number, for the target's prediction without
            edges, or one number for each class. Negative numbers are allowed. The default is 0.

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
        """Votes for the prediction without edges. It is 0 if the prior is the same for all targets."""
        return self.prior if isinstance(self.prior, int) else 0

    @property
    def class_prior(self) -> tuple[int, ...]:
        """Votes for each class, the same for all targets. It is empty if the prior follows the prediction."""
        return self.prior if isinstance(self.prior, tuple) else ()

    @property
    def constant(self) -> int | None:
        """The class that empty groups of all targets vote for, -1 if they abstain, None if it depends on the target."""
        if self.empty in (None, "no_edge"):
            return None
        if self.empty == "abstain":
            return -1
        return int(self.empty)

    def under(self, theorem: str, num_classes: int) -> "VotingRule":
        """Returns the same voting rule with its defaults filled in.

        Args:
            theorem: Name of the theorem by which votes are counted.
            num_classes: Number of classes.

        Raises:
            SettingsError: Votes cannot be added up in this way under the theorem.
        """
        facts = facts_of(theorem)
        empty = facts.empty[0] if self.empty is None else self.empty
        prior = 0 if self.class_prior and not any(self.class_prior) else self.prior
        filled = replace(self, empty=empty, prior=prior)
        filled._check_empty(facts, num_classes)
        filled._check_prior(facts, num_classes)
        return filled

    def _check_empty(self, facts: TheoremFacts, num_classes: int) -> None:
        """Raises SettingsError if empty groups cannot vote in this way."""
        kind = "class" if isinstance(self.empty, int) else self.empty
        if kind not in facts.empty:
            raise SettingsError(f"VotingRule(empty={self.empty!r}): {_why_not_empty(facts)}")
        if isinstance(self.empty, int) and self.empty >= num_classes:
            raise SettingsError(f"VotingRule(empty={self.empty}): the classes are 0 to {num_classes - 1}.")

    def _check_prior(self, facts: TheoremFacts, num_classes: int) -> None:
        """Raises SettingsError if there cannot be such a prior."""
        if self.class_prior and len(self.class_prior) != num_classes:
            raise SettingsError(
                f"VotingRule(prior=…) has {len(self.class_prior)} numbers: expected one for each of {num_classes} "
                "classes."
            )
        if self.no_edge_prior and not facts.no_edge_prior:
            raise SettingsError(
                f"VotingRule(prior={self.no_edge_prior}): {_why_not_prior(facts)} Pass one number per class."
            )

    def to_json(self) -> dict[str, Any]:
        """Returns this voting rule as JSON values. :meth:`from_json` is the inverse."""
        return {"empty": self.empty, "prior": self.prior if isinstance(self.prior, int) else list(self.prior)}

    @classmethod
    def from_json(cls, stored: Any, theorem: str, num_classes: int) -> "VotingRule":
        """Returns the voting rule that a file describes. The file is not trusted.

        Raises:
            CertificateError: It is not how this library writes a voting rule under this theorem.
        """
        try:
            if not isinstance(stored, dict) or set(stored) != {"empty", "prior"}:
                raise SettingsError('expected "empty" and "prior".')
            voting_rule = cls(**stored).under(theorem, num_classes)
            if voting_rule.to_json() != stored or _has_bool(stored):
                raise SettingsError("it is not spelled out.")
        except SettingsError as error:
            raise CertificateError(f"the voting rule {reprlib.repr(stored)} makes no sense: {error}") from error
        return voting_rule


def _why_not_empty(facts: TheoremFacts) -> str:
    """Returns why empty groups cannot vote as they are asked to."""
    if not facts.knows_empty_groups:
        return "no group of this division counts as empty: all votes are cast. Leave it out."
    if facts.task == "node" and facts.target_features:
        return "groups that hide the target's features cannot cast what follows from them: use a class, or abstain."
    if facts.task == "graph":
        return "a graph has no prediction without edges: use a class, or let empty groups abstain."
    return (
        "with one group per neighbour all other groups are empty, and nothing outweighs them. Let them abstain, and "
        "give a prior."
    )


def _why_not_prior(facts: TheoremFacts) -> str:
    """Returns why a prior cannot follow the prediction without edges."""
    if facts.whole_graph and facts.target_features:
        return "it would follow the target's own features, which this division protects."
    return "there is no prediction without edges of a graph, or in a division of which only the votes are known."


def _empty(empty: Any) -> str | int | None:
    """Returns what a user passes as ``empty``, checked."""
    if isinstance(empty, Integral) and not isinstance(empty, bool) and 0 <= int(empty) <= LARGEST_CLASS:
        return int(empty)
    if empty is None or (isinstance(empty, str) and empty in ("no_edge", "abstain")):
        return empty
    raise SettingsError(f'VotingRule(empty={empty!r:.60}): expected "no_edge", "abstain" or the number of a class.')


def _prior(prior: Any) -> int | tuple[int, ...]:
    """Returns what a user passes as ``prior``, checked."""
    if _is_whole(prior):
        return int(prior)
    is_list = hasattr(prior, "__iter__") and not isinstance(prior, (str, bytes, dict))
    numbers = list(prior) if is_list else []
    if not numbers or not all(map(_is_whole, numbers)):
        raise SettingsError(
            f"VotingRule(prior={prior!r:.60}): expected a whole number, or a list with one for each class, none beyond "
            f"{LARGEST_PRIOR:,}."
        )
    return tuple(map(int, numbers))


def _is_whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) <= LARGEST_PRIOR


def _has_bool(stored: dict[str, Any]) -> bool:
    """Tells whether a value is a bool, which compares equal to 0 or 1 but is not how a number is written."""
    prior = stored["prior"]
    numbers = prior if isinstance(prior, list) else [prior]
    return any(isinstance(value, bool) for value in (stored["empty"], *numbers))
