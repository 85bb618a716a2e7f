"""What ``verify`` computes from graph, model and division alone, computed once: a forger tries thousands of files on them.

Nothing here depends on what a file says beyond the arguments by which it is remembered. Comparisons are made anew.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any
from unittest import mock

from agnncert import certifier
from agnncert import recompute as replay
from agnncert.engine import naive as recast
from agnncert.graphs.graph import graph_digest
from agnncert.models.digest import model_digest
from agnncert_peers import recheck, recount_samples, smoothing

MOST = 3000


class _Remembered:
    """A function with a memory of its last results; ``told`` makes from its arguments what they are known by."""

    def __init__(self, function: Callable[..., Any], told: Callable[..., Any]) -> None:
        self.function, self.told = function, told
        self.known: OrderedDict[Any, Any] = OrderedDict()

    def __call__(self, *given: Any, **to_tell: Any) -> Any:
        key = self.told(*given)
        if key not in self.known:
            how = {name: value for name, value in to_tell.items() if name != "report_progress"}
            self.known[key] = (self.function(*given, **how), given)  # arguments are kept, so that no other has their id
            if len(self.known) > MOST:
                self.known.popitem(last=False)
        return self.known[key][0]


def _division(division: Any) -> tuple[str, str]:
    return type(division).__name__, str(division)


def _call(call: Any) -> tuple[int, int]:
    return id(call.model), call.strictness


@cache
def _memories() -> dict[str, _Remembered]:
    audited = _Remembered(replay.audited, lambda model, data, division, _: (id(model), _division(division), id(data)))
    reported = _Remembered(smoothing.audit, lambda model, data, division: (id(model), _division(division), id(data)))
    prepared = _Remembered(replay.prepared, lambda data, rows: (id(data), rows.tobytes()))
    cast = _Remembered(
        replay.cast,
        lambda call, graph, division, places, engine, tolerance: (
            _call(call), id(graph), _division(division), places.tobytes(), engine, tolerance
        ),
    )  # fmt: skip
    plain = _Remembered(
        recast._cast,
        lambda call, graph, division, rows, pairs, shuffle=None: (
            _call(call), id(graph), _division(division), rows.tobytes(), pairs.tobytes()
        ),
    )  # fmt: skip
    drawn = _Remembered(
        recheck._drawn_again,
        lambda evidence, model, ready, rows: (
            repr(evidence.settings()), int(evidence.selection[0].sum()), int(evidence.estimation[0].sum()),
            id(model), id(ready), rows.tobytes(),
        ),
    )  # fmt: skip
    solved = _Remembered(
        recount_samples._solve, lambda successes, trials, log_alpha: (successes.tobytes(), trials, log_alpha)
    )
    return {
        "audited": audited,
        "audit": reported,
        "prepared": prepared,
        "cast": cast,
        "_cast": plain,
        "_drawn_again": drawn,
        "_solve": solved,
    }


@contextmanager
def remembering() -> Iterator[None]:
    """Within, audits, canonical graphs, votes cast again, samples drawn again and their bounds are remembered."""
    known = _memories()
    with ExitStack() as patches:
        for module, name in (
            (certifier, "audited"),
            (replay, "audited"),
            (smoothing, "audit"),
            (replay, "prepared"),
            (replay, "cast"),
            (recheck, "_drawn_again"),
            (recount_samples, "_solve"),
            (recast, "_cast"),
        ):
            patches.enter_context(mock.patch.object(module, name, known[name]))
        yield


@contextmanager
def casting_once() -> Iterator[None]:
    """Within, ``certify`` casts the votes of a model, a graph and a division once, whatever rule then counts them."""
    cast, look_again, known, seen = certifier.cast, certifier.look_again, {}, set()

    def cast_once(
        call: Any, graph: Any, division: Any, places: Any, engine: str, tolerance: float, *more: Any, **how: Any
    ):
        model = id(call.model), model_digest(call.model)
        key = (*model, graph_digest(graph), *_division(division), places.tobytes(), engine, tolerance)
        if key not in known:  # with the call, so that no other model has its id
            known[key] = cast(call, graph, division, places, engine, tolerance, *more, **how), call
        return known[key][0]

    def look_again_once(votes: Any, *rest: Any) -> None:
        if id(votes) not in seen:
            look_again(votes, *rest)
            seen.add(id(votes))

    with mock.patch.multiple(certifier, cast=cast_once, look_again=look_again_once):
        yield
