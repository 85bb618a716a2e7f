"""What a comparison runs: defences by name, each with its voting rule and its model."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import torch

from agnncert.certificates.voting_rule import VotingRule
from agnncert.defence import Defence, as_defence
from agnncert.errors import SettingsError
from agnncert.graphs.graph import Task
from agnncert.models.build import count_classes
from agnncert.study import BaseModel, Study
from agnncert.undefended import REFERENCES
from agnncert_peers.defences import defence_named
from agnncert_peers.runner import vote_in_words
from agnncert_peers.threat import Threat

log = logging.getLogger(__name__)

# A defence or a division; or a tuple that begins with one, and goes on with its voting rule, its model, or both.
Choice: TypeAlias = Any


@dataclass(frozen=True)
class Entry:
    """One row to run."""

    name: str
    study: Study
    control: bool = False


@dataclass(frozen=True)
class Listed:
    """A defence that is compared.

    Attributes:
        defence: The defence, or a reference.
        voting_rule: Its voting rule; ``None`` for the usual one, or one that is chosen.
        model: A model of its own; ``None`` for the one of the comparison.
    """

    defence: Defence
    voting_rule: VotingRule | None = None
    model: BaseModel | None = None

    def takes(self, voting_rule: VotingRule, task: Task) -> bool:
        """Tells whether it can be given a voting rule."""
        try:
            self.defence.with_voting_rule(voting_rule).require_task(task)
        except SettingsError:
            return False
        return True


def list_defences(defences: Mapping[str, Choice] | Sequence[Choice]) -> dict[str, Listed]:
    """Returns what to compare, by name.

    Args:
        defences: Defences by name, or in a list, which gives them names.

    Raises:
        SettingsError: Something is no defence, or a tuple holds something else than a defence, a voting rule and a
            model.
    """
    if isinstance(defences, Mapping):
        return {name: _listed(name, choice) for name, choice in defences.items()}
    listed = {}
    for choice in defences:
        name = _name(choice)
        listed[name] = _listed(name, choice)
    return listed


def usual_defences(task: Task, threat: Threat) -> list[Defence]:
    """Returns the defences that cover an attack, with their default settings."""
    names = ["gated"] if threat.own_features and task == "node" else ["edge", "node"]
    if threat.kind == "edges":
        names += ["gnncert-e", "sparse-rs"]
    elif threat.kind == "features":
        names.append("gnncert-n")
    elif threat.kind == "edges and features":
        names.append("gnncert-en")
    elif task == "node":
        names.append("bi-rs")
    return [defence_named(name, task, {}) for name in names]


def _listed(name: str, choice: Choice) -> Listed:
    defence, *rest = choice if isinstance(choice, tuple) and choice else (choice,)
    defence = _reference_or(defence)
    if not hasattr(defence, "as_defence"):
        raise SettingsError(
            f'"{name}" is not a defence: expected a division such as NodeCentric(300), your own division or defence, '
            "or a smoothing defence such as ac.baselines.BiRS()."
        )
    rules = [part for part in rest if isinstance(part, VotingRule)]
    models = [part for part in rest if _is_model(part)]
    if len(rest) != len(rules) + len(models) or len(rules) > 1 or len(models) > 1:
        raise SettingsError(
            f'"{name}": expected a defence, or a tuple of a defence with its VotingRule, its model, or both: '
            "(division, model), (division, voting_rule, model)."
        )
    return Listed(as_defence(defence), rules[0] if rules else None, models[0] if models else None)


def _is_model(part: Any) -> bool:
    """Tells whether something stands for a model: a name, a module, or a function that makes one."""
    if isinstance(part, VotingRule) or hasattr(part, "as_defence"):
        return False
    return isinstance(part, str | torch.nn.Module) or callable(part)


def _name(choice: Choice) -> str:
    """Returns the name of a choice in a table: the defence, its voting rule, its model."""
    if not isinstance(choice, tuple):
        return _name_of_defence(choice)
    if not choice:
        return "()"
    words = [_name_of_defence(choice[0])]
    for part in choice[1:]:
        if isinstance(part, VotingRule):
            words.append(vote_in_words(part))
        elif _is_model(part):
            words.append(_name_of_model(part))
    return ", ".join(word for word in words if word)


def _name_of_defence(defence: Any) -> str:
    """Returns the name of a defence in a table: its printed form without default settings.

    Example:
        >>> _name_of_defence(defence_named("bi-rs", "node", {"p_edge": 0.7}))
        'bi-rs(p_edge=0.7, p_node=0.9)'
    """
    named = _reference_or(defence)
    return as_defence(named).short_name() if hasattr(named, "as_defence") else str(named)


def _reference_or(defence: Any) -> Any:
    """Returns the reference that a name stands for, or what was given."""
    return REFERENCES.get(defence, defence) if isinstance(defence, str) else defence


def _name_of_model(model: BaseModel) -> str:
    if isinstance(model, str):
        return model
    if isinstance(model, torch.nn.Module):
        return type(model).__name__
    return getattr(model, "__name__", type(model).__name__)


def make_entries(
    study: Study,
    listed: Mapping[str, Listed],
    threat: Threat,
    designs: Sequence[int],
    with_model: Callable[[BaseModel], Study],
) -> list[Entry]:
    """Returns what to run for each defence: once, or once for each design size.

    Args:
        study: The data, the targets and the model of the comparison.
        listed: The defences.
        threat: The kind of attack.
        designs: Sizes for which voting rules are chosen.
        with_model: Returns the study with another model.

    Raises:
        SettingsError: A voting rule does not fit its division, or design sizes are given and no defence can use them.
    """
    entries: list[Entry] = []
    for name, choice in listed.items():
        own_study = study if choice.model is None else with_model(choice.model)
        entries += _entries_of(name, choice, own_study, threat, designs)
    if designs and all(entry.study.design_size is None for entry in entries):
        raise SettingsError(
            f"size={list(designs)}: votes are chosen for EdgeCentric and NodeCentric without gated features, "
            "and none of these is among the defences that come without a vote."
        )
    if designs and study.task == "node" and study.fit_args.get("protocol", "transductive") == "transductive":
        log.warning(
            "models are trained with the validation nodes in the graph, so that priors become too large: use "
            'fit={"protocol": "held-out"}.'
        )
    return entries


def _entries_of(name: str, choice: Listed, study: Study, threat: Threat, designs: Sequence[int]) -> list[Entry]:
    defence = choice.defence
    defence.require_data(study.data)
    voting_rule = choice.voting_rule
    if voting_rule is not None:
        num_classes = count_classes(study.data) if isinstance(study.model, str) else None
        defence.with_voting_rule(voting_rule).require_task(study.task, num_classes)
        return [Entry(name, replace(study, defence=defence, voting_rule=voting_rule))]
    plain = replace(study, defence=defence)
    if not designs or not defence.chooses_voting_rule:
        return [Entry(name, plain)]
    entries = []
    for size in designs:
        designed = replace(plain, design_size=size, against=threat.against)
        entries.append(Entry(f"{name}, for size {size}", designed))
    return entries
