"""Says the values of edges in words of the table that they come from: "3 events, sum of amount 778.3".

Values are stored as models read them, with logarithms and points on a circle. Here these are undone as far as that is
exact. "Typical" is what the mean of logarithms stands for.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from agnncert.datasets.encoding import encoding_of
from agnncert.datasets.event_summary import CLOCK, HOUR, WEEKDAY, EventSummary, Term
from agnncert.datasets.table_edges import TRUSTED
from agnncert.explanation import VoteExplanation, Voter, VotingEdge
from agnncert.graphs.targets import CanonicalData

BACK = ", back"  # ends the names of the values of the other direction
_WAYS = {"sum": "sum of", "mean": "mean", "last": "last", "max": "largest", "min": "smallest"}
_NO_HOUR = 0.3  # hours whose mean lies so close to the middle of the circle have no mean


def in_words_of_the_table(explanation: VoteExplanation, data: Any) -> VoteExplanation:
    """Returns an explanation whose edges say their values in words. Without names of the values it stays as it is.

    Args:
        explanation: The explanation.
        data: The graph or graphs that it is about.
    """
    names = edge_names_of(data, explanation)
    if not names:
        return explanation
    encoding = encoding_of(_described(data))
    events = None if encoding is None else encoding.events
    voters = [replace(voter, edges=tuple(_with_words(voter, names, events))) for voter in explanation.voters]
    return replace(explanation, voters=tuple(voters), edge_names=names)


def edge_names_of(data: Any, explanation: VoteExplanation) -> tuple[str, ...]:
    """Returns the names of the columns of ``edge_attr``, or none if the data does not name all of them."""
    edges = (edge for voter in explanation.voters for edge in voter.edges)
    first = next(edges, None)
    width = 0 if first is None else len(first.values.get("edge_attr", ()))
    names = tuple(str(name) for name in getattr(_described(data), "edge_names", None) or ())
    if len(names) + 1 == width:
        names = (*names, TRUSTED)  # mark_trusted puts its marks behind the values that were there
    return names if width and len(names) == width else ()


def _described(data: Any) -> Any:
    """Returns what says how the values of edges were made: the graph, the set of graphs, or the first one of a list."""
    plain = data.data if isinstance(data, CanonicalData) else data
    return plain[0] if type(plain) is list else plain


def _with_words(voter: Voter, names: Sequence[str], events: EventSummary | None) -> Iterable[VotingEdge]:
    """Returns the edges of a voter. Each says the other direction too if that is not among them."""
    arcs = {(edge.source, edge.head) for edge in voter.edges}
    for edge in voter.edges:
        back_is_there = (edge.head, edge.source) in arcs
        yield replace(edge, words=words_of_values(names, edge.values["edge_attr"], events, with_back=not back_is_there))


def words_of_values(
    names: Sequence[str], values: Sequence[float], events: EventSummary | None = None, *, with_back: bool = False
) -> str:
    """Returns what the values of one edge say; empty if there is nothing in this direction.

    Args:
        names: The names of the values.
        values: The values, one for each name.
        events: How events became values. ``None`` if edges do not stand for events.
        with_back: Whether values of the other direction are said, too. Defaults to False.
    """
    forth = [number for name, number in zip(names, values, strict=True) if not _is_other(name)]
    back = [number for name, number in zip(names, values, strict=True) if name.endswith(BACK)]
    own_names = [name for name in names if not _is_other(name)]
    parts = _one_direction(own_names, forth, events, is_directed=bool(back))
    if back and with_back:
        other = _one_direction(own_names, back, events, is_directed=True)
        parts += [f"back: {other[0]}", *other[1:]] if other else []
    if parts and TRUSTED in names and values[list(names).index(TRUSTED)] > 0:
        parts.append(TRUSTED)
    return ", ".join(parts)


def _is_other(name: str) -> bool:
    return name.endswith(BACK) or name == TRUSTED


def _one_direction(
    names: Sequence[str], values: Sequence[float], events: EventSummary | None, is_directed: bool
) -> list[str]:
    if (is_directed or events is not None) and not any(values):
        return []
    if events is None:
        return _named(names, values)
    parts = []
    start = 0
    for term in events.terms:
        if term.quantity is None:
            parts.append(_count(term, values[start]))
            start += 1
            continue
        features = events.features(term.quantity)
        parts += _words_of_term(term, features, values[start : start + len(features)])
        start += len(features)
    return parts


def _named(names: Sequence[str], values: Sequence[float]) -> list[str]:
    """Returns names and numbers. Of marks such as ``channel=web``, those that are not there are left out."""
    parts = []
    for name, value in zip(names, values, strict=True):
        if "=" not in name:
            parts.append(f"{name} {_number(value)}")
        elif value == 1:
            parts.append(name)
        elif value:
            parts.append(f"{name} {_number(value)}")
    return parts


def _count(term: Term, value: float) -> str:
    count = round(_without_log(value) if term.is_log else value)
    return f"{count:,} event{'s' * (count != 1)}"


def _words_of_term(term: Term, features: Sequence[str], values: Sequence[float]) -> list[str]:
    """Returns what one term about a column says: an hour, or a number, mark or share for each feature."""
    assert term.quantity is not None
    plain = [_without_log(value) for value in values] if term.is_log else list(values)
    is_clock = features == list(CLOCK[HOUR])
    if is_clock and not term.quantity.is_log and term.way in ("mean", "last"):
        return [_hour(term.way, *plain)]
    parts = []
    for feature, value in zip(features, plain, strict=True):
        is_mark = feature in CLOCK[WEEKDAY] or "=" in feature
        if not is_mark:
            parts.append(_one_number(term, feature, value))
        elif value:
            parts.append(_mark(term, feature, value))
    return parts


def _one_number(term: Term, feature: str, value: float) -> str:
    """Returns a number of one column. Logarithms are undone, but not in a sum."""
    assert term.quantity is not None
    if not term.quantity.is_log:
        return f"{_WAYS[term.way]} {feature} {_number(value)}"
    if term.way == "sum":
        return f"sum of log({feature}) {_number(value)}"
    way = "typical" if term.way == "mean" else _WAYS[term.way]
    return f"{way} {feature} {_number(_without_log(value))}"


def _mark(term: Term, feature: str, value: float) -> str:
    """Returns the share of events that have a mark, how many have it, or which one the last has."""
    assert term.quantity is not None
    share = value / math.log(2) if term.quantity.is_log else value  # a mark is 1, whose logarithm is that of 2
    if term.way == "mean":
        return f"{feature} {100 * share:.0f} %"
    if term.way == "sum":
        return f"{_number(share)} of {feature}"
    return f"{_WAYS[term.way]} {feature}"


def _hour(way: str, sine: float, cosine: float) -> str:
    """Returns the hour that a point on the circle stands for. Hours all round the clock have none."""
    if math.hypot(sine, cosine) < _NO_HOUR:
        return "no usual hour"
    minutes = round(math.atan2(sine, cosine) / (2 * math.pi) * 24 * 60) % (24 * 60)
    clock = f"{minutes // 60:02}:{minutes % 60:02}"
    return f"around {clock}" if way == "mean" else f"last at {clock}"


def _without_log(value: float) -> float:
    """Returns the number whose logarithm ``signed_log`` took."""
    return math.copysign(math.expm1(abs(value)), value)


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
