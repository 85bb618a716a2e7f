"""What ``compare`` runs: defences by name, each with a vote, with a design size for which one is chosen, or plain."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from agnncert.baselines import defence_named
from agnncert.baselines.smoothing import Smoothing
from agnncert.divisions import Division, EdgeCentric, NodeCentric
from agnncert.errors import SettingsError
from agnncert.models.build import count_classes
from agnncert.proof.vote import Vote
from agnncert.studies.rows import vote_in_words
from agnncert.studies.run import Defence, Study
from agnncert.studies.settings import GRAPH_FREE, MAJORITY, UNDEFENDED
from agnncert.studies.threat import Threat
from agnncert.training.preparation import require_vote

log = logging.getLogger(__name__)

Voted: TypeAlias = Defence | tuple[Division, Vote]


@dataclass(frozen=True)
class Entry:
    """One row that is to be run.

    Attributes:
        name: What it is called.
        study: What to run.
        control: Whether defences are measured by it, instead of being one.
        family: Name without the design size; rows of one family have an envelope.
    """

    name: str
    study: Study
    control: bool = False
    family: str = ""


def entries_of(
    study: Study, chosen: Mapping[str, tuple[Defence, Vote | None]], threat: Threat, designs: Sequence[int]
) -> list[Entry]:
    """What to run for each defence: once, or once for each design size.

    Raises:
        SettingsError: A vote does not fit its division, or a design size finds none that it could choose for.
    """
    entries = []
    num_classes = count_classes(study.data) if isinstance(study.model, str) else None
    for name, (defence, vote) in chosen.items():
        if vote is not None and not isinstance(defence, str | Smoothing):
            require_vote(vote, defence, study.task, num_classes)
        if vote is not None or not _can_choose(defence):
            entries.append(Entry(name, replace(study, defence=defence, vote=vote)))
            continue
        plain = replace(study, defence=defence)
        for size in designs:
            designed = replace(plain, design_size=size, against=threat.against)
            entries.append(Entry(f"{name}, for size {size}", designed, family=name))
        if not designs:
            entries.append(Entry(name, plain))
    if designs and not any(entry.family for entry in entries):
        raise SettingsError(
            f"design_size={list(designs)}: votes are chosen for EdgeCentric and NodeCentric without gated features, "
            "and none of these is among the defences that come without a vote."
        )
    if designs and study.task == "node" and study.fit_args.get("protocol", "transductive") == "transductive":
        log.warning(
            "validation nodes are in the graph on which models are trained, so that priors come out too large: "
            'fit_args={"protocol": "held-out"} hides them.'
        )
    return entries


def _can_choose(defence: Any) -> bool:
    return isinstance(defence, EdgeCentric | NodeCentric) and not getattr(defence, "gate_features", False)


def with_vote(
    chosen: Mapping[str, tuple[Defence, Vote | None]], vote: Vote, everywhere: bool
) -> dict[str, tuple[Defence, Vote | None]]:
    """The defences with a vote where they have none; usual ones that are not ours stay as they are."""
    wanted = {
        name: own if own is not None else vote if everywhere or isinstance(defence, EdgeCentric | NodeCentric) else None
        for name, (defence, own) in chosen.items()
    }
    return {name: (defence, wanted[name]) for name, (defence, _) in chosen.items()}


def usual_defences(task: str, threat: Threat) -> list[Defence]:
    """The defences that cover an attack, with their usual settings."""
    ours = ("gated",) if threat.own_features and task == "node" else ("edge", "node")
    others = {
        "edges": ("gnncert-e", "sparse-rs"), "injection": ("bi-rs",) if task == "node" else (),
        "features": ("gnncert-n",), "edges and features": ("gnncert-en",),
    }  # fmt: skip
    return [defence_named(name, task, {}) for name in (*ours, *others[threat.kind])]


def checked_designs(sizes: int | Sequence[int] | None) -> tuple[int, ...]:
    """Design sizes, ascending.

    Raises:
        SettingsError: They are no whole numbers.
    """
    given = [] if sizes is None else [sizes] if isinstance(sizes, int) else list(sizes)
    if any(isinstance(size, bool) or not isinstance(size, int) or size < 0 for size in given) or sizes == []:
        raise SettingsError(f"design_size={sizes!r}: expected one or several whole numbers from 0 on.")
    return tuple(sorted(set(given)))


def named(defences: Mapping[str, Voted] | Sequence[Voted]) -> dict[str, tuple[Defence, Vote | None]]:
    """Each defence by name, with its vote if it came with one.

    Raises:
        SettingsError: Something else is among them.
    """
    given = defences if isinstance(defences, Mapping) else {_full_name(defence): defence for defence in defences}
    listed = {name: defence if isinstance(defence, tuple) else (defence, None) for name, defence in given.items()}
    for name, (defence, *votes) in listed.items():
        if len(votes) != 1 or not isinstance(votes[0], Vote | None):
            raise SettingsError(f'"{name}": expected a defence, or a pair of a division and its Vote.')
        known = (GRAPH_FREE, UNDEFENDED, MAJORITY)
        if not hasattr(defence, "subgraph") and not hasattr(defence, "noisy") and defence not in known:
            raise SettingsError(
                f'"{name}" is no defence: expected a division such as NodeCentric(300), or a smoothing defence '
                "such as ac.baselines.BiRS()."
            )
    return dict(listed)


def _full_name(defence: Voted) -> str:
    if not isinstance(defence, tuple):
        return _name(defence)
    votes = [vote_in_words(vote) for vote in defence[1:] if isinstance(vote, Vote)]
    return ", ".join([_name(defence[0]), *votes]) if defence else "()"


def _name(defence: Defence) -> str:
    """What a defence is called in a table: as printed, without settings that have their usual value.

    Example:
        >>> _name(defence_named("bi-rs", "node", {"p_edge": 0.7})), _name(defence_named("node", "node", {}))
        ('bi-rs(p_edge=0.7, p_node=0.9)', 'node-centric(T=300)')
    """
    if isinstance(defence, Smoothing):
        shown = {key: value for key, value in defence.drawn().items() if value}
        test = getattr(defence, "test", "B2")
        shown |= {"test": test} if test != "B2" else {}
        return f"{defence.method}({', '.join(f'{key}={value}' for key, value in shown.items())})"
    return str(defence).replace(", hash=md5", "").replace(", key=u64le", "")
