"""A certificate read target by target: one decision, a table of all, and what a notebook shows."""

import html
import math
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np

from agnncert.errors import AgnncertError, IdError, SettingsError
from agnncert.proof.ballots import BoolArray, IntArray
from agnncert.proof.budget import Budget
from agnncert.proof.ids import id_array

if TYPE_CHECKING:
    from agnncert.proof.certificate import Certificate

SHOWN_ROWS = 8  # in a notebook
KINDS: dict[str, dict[str, float]] = {  # what `withstands` tells: a field of a budget, and the rest of it
    "add_edges": {},
    "delete_edges": {},
    "inject_nodes": {"edges_per_injected": math.inf},
    "delete_nodes": {},
    "change_features": {},
}


@dataclass(frozen=True)
class Decision:
    """What is proved about one target.

    Attributes:
        target: Its id.
        row: Its row in the data.
        label: The proved label.
        radius: The largest attack, in steps of the claim's unit, that cannot change it; -1 if nothing is proved.
        votes: Votes for each class, shape ``[num_classes]``.
        truth: Its true class; None if unknown.
        degree: Its neighbours, or edges if it is a graph; None if unknown.
    """

    target: int | str
    row: int
    label: int
    radius: int
    votes: IntArray
    truth: int | None
    degree: int | None
    _certificate: "Certificate"
    _place: int

    def holds_against(self, budget: Budget) -> bool:
        """Whether it keeps its label whatever an attacker with ``budget`` does."""
        return bool(self._certificate.holds_against(budget)[self._place])

    def largest(self, kind: str, **other_fields: Any) -> float:
        """The most of one kind of change that it withstands; as ``Certificate.largest``, for this target."""
        return float(self._certificate.largest(kind, **other_fields)[self._place])

    @property
    def withstands(self) -> dict[str, float]:
        """How much it withstands of each kind of change alone; injected nodes may have any number of edges.

        ``math.inf`` for any amount, -1 where nothing is proved.
        """
        return {kind: self.largest(kind, **rest) for kind, rest in KINDS.items()}

    def __repr__(self) -> str:
        known = "" if self.truth is None else f", truth={self.truth}"
        return (
            f"Decision({self.target!r}, label={self.label}, radius={self.radius}, votes={self.votes.tolist()}{known})"
        )


def decision_of(certificate: "Certificate", target: Any) -> Decision:
    """The decision about the target with this id.

    Raises:
        IdError: There is no such target; names ones with similar ids.
    """
    place = place_of(certificate, target)
    if place is None:
        raise IdError(_unknown(certificate, target))
    return Decision(
        target=certificate.target[place : place + 1].tolist()[0],
        row=int(certificate.row[place]),
        label=int(certificate.label[place]),
        radius=int(certificate.radius[place]),
        votes=certificate.counts[place],
        truth=int(certificate.truth[place]) if certificate.truth is not None and certificate.labelled[place] else None,
        degree=None if certificate.degree is None else int(certificate.degree[place]),
        _certificate=certificate,
        _place=place,
    )


def place_of(certificate: "Certificate", target: Any) -> int | None:
    """Position of a target among all; None if there is none with this id, or this is no id."""
    try:
        wanted = id_array([target.item() if hasattr(target, "item") else target]).tolist()[0]
    except (AgnncertError, TypeError, ValueError):
        return None
    return certificate.place.get(wanted)


def _unknown(certificate: "Certificate", target: Any) -> str:
    near = get_close_matches(str(target), [str(one) for one in certificate.target.tolist()], n=3, cutoff=0.6)
    hint = f" Similar: {', '.join(near)}." if near else ""
    return f"the certificate has no target {target!r:.60}: it has {certificate.num_targets:,}, by their ids.{hint}"


def frame_of(certificate: "Certificate") -> Any:
    """A pandas table, one row per target."""
    try:
        import pandas as pd
    except ImportError:
        raise SettingsError('to_pandas needs pandas: pip install "agnncert[data]".') from None
    columns: dict[str, Any] = {"label": certificate.label, "radius": certificate.radius}
    if certificate.truth is not None:
        columns["truth"] = pd.array(np.where(certificate.labelled, certificate.truth, 0), dtype="Int64")
        columns["truth"][~certificate.labelled] = pd.NA
    if certificate.degree is not None:
        columns["degree"] = certificate.degree
    if (certificate.new_neighbours >= 0).any():
        columns["new_neighbours"] = certificate.new_neighbours
    columns |= {f"votes_{k}": votes for k, votes in enumerate(certificate.counts.T)}
    return pd.DataFrame(columns, index=pd.Index(certificate.target, name="target"))


def html_of(certificate: "Certificate", title: str) -> str:
    """A small table for notebooks: what it is about, and the first targets."""
    correct: BoolArray = certificate.labelled & (certificate.label == certificate.truth)
    names = ["target", "label", *(["truth"] if certificate.truth is not None else []), "radius", "votes"]
    rows = []
    for k in range(min(SHOWN_ROWS, certificate.num_targets)):
        one = decision_of(certificate, certificate.target[k : k + 1].tolist()[0])
        truth = ["–" if one.truth is None else f"{one.truth}{'' if correct[k] else ' ✗'}"] if "truth" in names else []
        radius = "none" if one.radius < 0 else f"{one.radius:,}"
        rows.append([one.target, one.label, *truth, radius, " : ".join(str(count) for count in one.votes.tolist())])
    rest = certificate.num_targets - len(rows)
    more = f"<p>… and {rest:,} more: <code>to_pandas()</code>, <code>certificate[id]</code></p>" if rest else ""
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join("<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in row) + "</tr>" for row in rows)
    lines = html.escape(title).replace("\n", "<br>")
    return f"<div><p>{lines}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</div>"
