"""What changed between two certificates: ``diff`` compares them target by target, and says why a target may differ."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from agnncert.certificates.budget import Budget
from agnncert.certificates.votes import BoolArray
from agnncert.errors import SettingsError, missing, suggests_arguments
from agnncert.proving.certificate import Certificate
from agnncert.proving.promise import deed_of, least_times

if TYPE_CHECKING:
    import pandas as pd

Change: TypeAlias = Literal["label", "lost", "gained", "new", "gone"]
CHANGES: dict[Change, str] = {
    "label": "changed label",
    "lost": "lost their certificate",
    "gained": "gained a certificate",
    "new": "new",
    "gone": "gone",
}
REASONS = ("graph", "model", "threshold", "defence")


@dataclass(frozen=True)
class ChangedTarget:
    """A target about which two certificates do not say the same.

    Attributes:
        target: Its id.
        change: "label" if its label is another one, "lost" or "gained" if only its certificate at the budget went or
            came, "new" or "gone" if one of the certificates does not have it.
        old_label: Its label before, by the name of the class. None if it is new.
        new_label: Its label now. None if it is gone.
        old_radius: Its radius before. None if it is new.
        new_radius: Its radius now. None if it is gone.
        held: Whether its label was certified at the budget before. None if it is new.
        holds: Whether its label is certified at the budget now. None if it is gone.
        old_degree: How many neighbours it had, None if that is unknown.
        new_degree: How many neighbours it has, None if that is unknown.
        reasons: What can be the reason: some of "graph", "model", "threshold" and "defence".
    """

    target: int | str
    change: Change
    old_label: str | None
    new_label: str | None
    old_radius: int | None
    new_radius: int | None
    held: bool | None
    holds: bool | None
    old_degree: int | None = None
    new_degree: int | None = None
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClassChange:
    """What changed about the targets of one label.

    Attributes:
        name: The name of the class.
        old: Targets that had this label.
        new: Targets that have it.
        old_certified: Those of ``old`` whose label was certified at the budget.
        new_certified: Those of ``new`` whose label is.
        came: Targets in both certificates that changed to this label.
        went: Targets in both certificates that changed from this label to another one.
        lost: Targets that kept this label and lost their certificate.
        gained: Targets that kept this label and gained a certificate.
    """

    name: str
    old: int
    new: int
    old_certified: int
    new_certified: int
    came: int
    went: int
    lost: int
    gained: int


@dataclass(frozen=True)
class Difference:
    """What changed between two certificates, as :func:`diff` returns it. ``print`` shows it.

    Attributes:
        at: The budget, or the size in steps of the claim's unit, at which labels count as certified.
        changed: The targets about which both do not say the same. Those with another label come first.
        num_same: Targets with the same label and the same answer at the budget in both.
        classes: What changed for each label.
        reasons: What is not the same for all targets: some of "graph", "model", "threshold" and "defence".
        notes: What has to be known to read the rest.
    """

    at: Budget | float
    changed: tuple[ChangedTarget, ...]
    num_same: int
    classes: tuple[ClassChange, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.changed)

    def __bool__(self) -> bool:
        return bool(self.changed)

    @cached_property
    def counts(self) -> dict[Change, int]:
        """Number of targets by kind of change."""
        kinds = [target.change for target in self.changed]
        return {change: kinds.count(change) for change in CHANGES}

    def of(self, change: Change) -> tuple[ChangedTarget, ...]:
        """Returns the targets with one kind of change."""
        if change not in CHANGES:
            raise SettingsError(f"change={change!r:.60}: expected one of {', '.join(CHANGES)}.")
        return tuple(target for target in self.changed if target.change == change)

    def to_json(self) -> dict[str, Any]:
        """Returns all of it as JSON values."""
        return {
            "at": str(self.at) if isinstance(self.at, Budget) else self.at,
            "counts": self.counts,
            "same": self.num_same,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
            "classes": [asdict(each) for each in self.classes],
            "changed": [{**asdict(each), "reasons": list(each.reasons)} for each in self.changed],
        }

    def to_pandas(self) -> "pd.DataFrame":
        """Returns the changed targets as a pandas table, one row per target.

        Raises:
            MissingPackage: pandas is not installed.
        """
        try:
            import pandas as pd
        except ModuleNotFoundError as error:
            raise missing(error.name, "to_pandas") from None
        rows = [{**asdict(each), "reasons": ", ".join(each.reasons)} for each in self.changed]
        columns = list(ChangedTarget.__dataclass_fields__)
        return pd.DataFrame(rows, columns=columns).set_index("target")

    @property
    def headline(self) -> str:
        """How many targets changed in which way, in one sentence."""
        listed = [f"{number:,} {CHANGES[change]}" for change, number in self.counts.items() if number]
        if not listed:
            return f"Nothing changed at {self.asked}: all {self.num_same:,} targets are as before."
        return f"At {self.asked}: {', '.join(listed)}; {self.num_same:,} are as before."

    @property
    def asked(self) -> str:
        """The budget or size in words."""
        return str(self.at) if isinstance(self.at, Budget) else f"size {self.at:g}"

    def __str__(self) -> str:
        same = "Graph, model, threshold and defence are the same." if not self.reasons else ""
        why = f"Not the same as before: {', '.join(self.reasons)}." if self.reasons else same
        return "\n".join([self.headline, why, *self.notes])


@suggests_arguments
def diff(
    old: Certificate, new: Certificate, at: Budget | float | None = None, *, same_weights: bool | None = None
) -> Difference:
    """Compares two certificates target by target.

    Targets are the same if they have the same id. Classes are compared by their names if both certificates have names.

    A target's reasons are exact as far as certificates tell: if its votes without the prior are the same in both, the
    threshold alone can be the reason. Otherwise all of graph, model, threshold and defence that are not the same are
    named, because certificates do not tell which of them it was.

    Args:
        old: The earlier certificate.
        new: The later one.
        at: The budget, or the size in steps of the claim's unit, at which labels count as certified. Defaults to
            size 1, and to 0 where both count what comes on top of any number of additions.
        same_weights: Whether both models have the same trained weights, so that models which differ differ in their
            threshold. Defaults to None, which means that this is unknown.

    Raises:
        SettingsError: One is about nodes and the other about graphs, or the arguments are no certificates.
    """
    for certificate in (old, new):
        if not isinstance(certificate, Certificate):
            raise SettingsError(
                f"diff takes two certificates, got a {type(certificate).__name__}: load_certificate(file)."
            )
    if old.claim.task != new.claim.task:
        raise SettingsError(f"the certificates are about {old.claim.task}s and {new.claim.task}s: nothing to compare.")
    if at is None:
        at = max(least_times(deed_of(each)) for each in (old, new))
    by_name = bool(old.class_names) and bool(new.class_names)
    return _Comparison(_Side.of(old, at, by_name), _Side.of(new, at, by_name), same_weights).difference(at)


@dataclass(frozen=True)
class _Side:
    """One of two certificates, with what is asked of all its targets at once.

    Attributes:
        certificate: The certificate.
        holds: Whether each label is certified at the budget, shape ``[n]``.
        votes: The votes of each target without a prior, shape ``[n, num_classes]``.
        names: What classes are called in the comparison.
    """

    certificate: Certificate
    holds: BoolArray
    votes: npt.NDArray[np.int64]
    names: tuple[str, ...]

    @classmethod
    def of(cls, certificate: Certificate, at: Budget | float, by_name: bool) -> "_Side":
        holds = certificate.holds_against(at) if isinstance(at, Budget) else certificate.radius >= at
        votes = certificate.counts
        rule = certificate.voting_rule
        if rule is not None and rule.class_prior:
            votes = votes - np.asarray(rule.class_prior, dtype=np.int64)
        names = certificate.class_names
        if not by_name:
            names = tuple(f"class {k}" for k in range(certificate.num_classes))
        return cls(certificate, np.asarray(holds), votes, names)

    def label_name(self, position: int) -> str:
        """Returns the label of a target by its name."""
        return self.names[int(self.certificate.label[position])]

    def numbers(self, name: str) -> tuple[int, int]:
        """Returns how many targets have a label, and how many of these labels are certified."""
        if name not in self.names:
            return 0, 0
        here = self.certificate.label == self.names.index(name)
        return int(here.sum()), int((here & self.holds).sum())

    def degree(self, position: int) -> int | None:
        """Returns the degree of a target, if it is known."""
        degree = self.certificate.degree
        return None if degree is None else int(degree[position])


@dataclass(frozen=True)
class _Comparison:
    """Two certificates side by side.

    Attributes:
        old: The earlier one.
        new: The later one.
        same_weights: Whether both have the same trained weights, if that is known.
    """

    old: _Side
    new: _Side
    same_weights: bool | None

    def difference(self, at: Budget | float) -> Difference:
        """Returns what is not the same."""
        changed: list[ChangedTarget] = []
        num_same = 0
        for target, before in self.old.certificate.position.items():
            now = self.new.certificate.position.get(target)
            if now is None:
                changed.append(self._gone(target, before))
                continue
            change = self._change(before, now)
            if change is None:
                num_same += 1
            else:
                changed.append(self._in_both(target, change, before, now))
        known = self.old.certificate.position
        changed += [
            self._new(target, now) for target, now in self.new.certificate.position.items() if target not in known
        ]
        changed.sort(key=lambda each: list(CHANGES).index(each.change))
        return Difference(
            at=at,
            changed=tuple(changed),
            num_same=num_same,
            classes=tuple(self._classes(changed)),
            reasons=self._reasons,
            notes=tuple(self._notes()),
        )

    def _change(self, before: int, now: int) -> Change | None:
        if self.old.label_name(before) != self.new.label_name(now):
            return "label"
        if self.old.holds[before] == self.new.holds[now]:
            return None
        return "gained" if self.new.holds[now] else "lost"

    def _in_both(self, target: int | str, change: Change, before: int, now: int) -> ChangedTarget:
        return ChangedTarget(
            target=target,
            change=change,
            old_label=self.old.label_name(before),
            new_label=self.new.label_name(now),
            old_radius=int(self.old.certificate.radius[before]),
            new_radius=int(self.new.certificate.radius[now]),
            held=bool(self.old.holds[before]),
            holds=bool(self.new.holds[now]),
            old_degree=self.old.degree(before),
            new_degree=self.new.degree(now),
            reasons=self._reasons_of(before, now),
        )

    def _gone(self, target: int | str, before: int) -> ChangedTarget:
        radius = int(self.old.certificate.radius[before])
        label = self.old.label_name(before)
        held = bool(self.old.holds[before])
        return ChangedTarget(target, "gone", label, None, radius, None, held, None, self.old.degree(before))

    def _new(self, target: int | str, now: int) -> ChangedTarget:
        radius = int(self.new.certificate.radius[now])
        label = self.new.label_name(now)
        holds = bool(self.new.holds[now])
        return ChangedTarget(target, "new", None, label, None, radius, None, holds, None, self.new.degree(now))

    def _reasons_of(self, before: int, now: int) -> tuple[str, ...]:
        """Returns what can be the reason for one target."""
        if self._prior_is_all and np.array_equal(self.old.votes[before], self.new.votes[now]):
            return ("threshold",)
        return self._reasons

    @cached_property
    def _prior_is_all(self) -> bool:
        """Whether votes without the prior tell all that graph, model and defence contribute."""
        old, new = self.old.certificate, self.new.certificate
        if old.voting_rule is None or new.voting_rule is None or "threshold" not in self._reasons:
            return False
        fixed = not old.voting_rule.no_edge_prior and not new.voting_rule.no_edge_prior
        return fixed and "defence" not in self._reasons and old.voting_rule.empty == new.voting_rule.empty

    @cached_property
    def _reasons(self) -> tuple[str, ...]:
        """Returns what is not the same in both."""
        old, new = self.old.certificate.claim, self.new.certificate.claim
        differs = {name: old.digests.get(name) != new.digests.get(name) for name in ("graph", "model")}
        differs["threshold"] = self.old.certificate.voting_rule != self.new.certificate.voting_rule
        differs["defence"] = (old.method, old.division) != (new.method, new.division)
        if differs["model"] and self.same_weights:
            differs["model"] = False
            differs["threshold"] = True
        return tuple(name for name in REASONS if differs[name])

    def _classes(self, changed: Sequence[ChangedTarget]) -> list[ClassChange]:
        """Returns the numbers of each label, by its name."""
        names = dict.fromkeys((*self.old.names, *self.new.names))
        return [self._class(name, changed) for name in names]

    def _class(self, name: str, changed: Sequence[ChangedTarget]) -> ClassChange:
        in_both = [each for each in changed if each.change == "label"]
        kept = [each.change for each in changed if each.new_label == name]
        old, old_certified = self.old.numbers(name)
        new, new_certified = self.new.numbers(name)
        return ClassChange(
            name=name,
            old=old,
            new=new,
            old_certified=old_certified,
            new_certified=new_certified,
            came=sum(each.new_label == name for each in in_both),
            went=sum(each.old_label == name for each in in_both),
            lost=kept.count("lost"),
            gained=kept.count("gained"),
        )

    def _notes(self) -> list[str]:
        """Returns what has to be known to read the comparison."""
        old, new = self.old.certificate, self.new.certificate
        notes = []
        if bool(old.class_names) != bool(new.class_names):
            notes.append("Only one of the certificates names its classes, so labels are compared by number.")
        if old.claim.unit != new.claim.unit:
            notes.append(f"Sizes do not count the same: before, {old.claim.unit}; now, {new.claim.unit}.")
        if old.claim.ids != new.claim.ids or "row" in (old.claim.ids, new.claim.ids):
            notes.append("Row numbers stand for ids: if rows moved, targets are compared with others.")
        return notes
