"""Which settings of ``fit`` go with which defence and voting rule."""

from agnncert.certificates.voting_rule import VotingRule
from agnncert.divisions.base import Division, RandomDefence
from agnncert.errors import SettingsError
from agnncert.graphs.graph import Task
from agnncert.training.settings import FitSettings
from agnncert.training.validation import Defence


def require_possible(division: Defence, settings: FitSettings, voting_rule: VotingRule | None, task: Task) -> None:
    """Raises SettingsError if settings do not go with the defence or with the voting rule."""
    if isinstance(division, Division):
        require_voting_rule(voting_rule, division, task)
    elif voting_rule is not None:
        raise SettingsError(
            f"{voting_rule}: only the votes of a division are added up; leave it out, or give a division."
        )
    is_per_neighbour = isinstance(division, Division) and division.is_per_neighbour
    if settings["objective"] == "certified":
        _require_known_empty_groups(division, voting_rule)
    elif not is_per_neighbour and (voting_rule is None or not voting_rule.prior):
        _require_enough_groups(division, settings["size"])
    if settings["objective"] == "paper" and is_per_neighbour:
        raise SettingsError(
            'objective="paper" is a sum over all groups, which are beyond number here: choose "balanced".'
        )
    if isinstance(division, RandomDefence) and settings["clusters"] is not None:
        raise SettingsError(
            f"clusters={settings['clusters']}: training under noise sees the whole graph at once; leave it out."
        )


def _require_known_empty_groups(division: Defence, voting_rule: VotingRule | None) -> None:
    """Raises SettingsError if ``objective="certified"`` does not go with the defence or the voting rule."""
    if voting_rule is not None:
        raise SettingsError(
            f'{voting_rule}: objective="certified" scores weights by the best prior, and choose_voting_rule finds '
            "it; leave it out."
        )
    if not isinstance(division, Division) or not division.knows_empty_groups:
        raise SettingsError(
            f'objective="certified" counts the empty groups of EdgeCentric or NodeCentric, not of {division}: '
            "choose one of these without gated features, or another objective."
        )


def _require_enough_groups(division: Defence, size: int) -> None:
    """Raises SettingsError if no vote of so few groups can be certified at this size."""
    num_groups = division.num_groups if isinstance(division, Division) else 0
    if 2 * size <= num_groups:
        return
    reason = f"{num_groups} votes certify at most size {num_groups // 2}" if num_groups else "there is no division"
    raise SettingsError(f"size={size}, but {reason}: choose a smaller size, or more groups.")


def require_voting_rule(
    voting_rule: VotingRule | None, division: Division, task: Task, num_classes: int | None = None
) -> None:
    """Raises SettingsError if ``voting_rule`` is not a VotingRule that this division can use."""
    if voting_rule is None:
        return
    if not isinstance(voting_rule, VotingRule):
        raise SettingsError(
            f'rule={voting_rule!r:.60}: expected a VotingRule, such as VotingRule(empty="abstain", prior=5).'
        )
    if num_classes is None:
        num_classes = _least_classes(voting_rule)
    voting_rule.under(division.theorem(task), num_classes)


def _least_classes(voting_rule: VotingRule) -> int:
    """Returns the smallest number of classes for which a voting rule makes sense."""
    least = max(2, len(voting_rule.class_prior))
    if voting_rule.constant is None:
        return least
    return max(least, voting_rule.constant + 1)
