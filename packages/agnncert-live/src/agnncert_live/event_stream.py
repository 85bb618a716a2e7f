"""A request that brings one event per line: read line by line, applied in batches."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from fastapi import Request
from starlette.concurrency import run_in_threadpool

from agnncert import storage
from agnncert_live.guard import Refusal
from agnncert_live.service import Service, Unreadable

LINES = 500  # of a stream that are applied together
MOST_LISTED = 1_000  # refused events, or flipped labels, that one answer lists
_EMPTY = "the line is empty."


def parse_json(text: bytes) -> Any:
    """Returns what a text of JSON says.

    Raises:
        Refusal: It is no JSON.
    """
    try:
        return storage.parse_json(text, strict=True)
    except (ValueError, RecursionError) as error:
        raise Refusal(400, f"this is not JSON: {str(error)[:200]}.") from None


async def lines_of(request: Request, longest: int) -> AsyncIterator[bytes]:
    """Yields the lines of a request.

    Raises:
        Refusal: A line is longer than ``longest`` bytes.
    """
    rest = b""
    async for chunk in request.stream():
        *lines, rest = (rest + chunk).split(b"\n")
        if any(len(line) > longest for line in (*lines, rest)):
            raise Refusal(413, f"a line has at most {longest:,} bytes.")
        for line in lines:
            yield line
    yield rest


@dataclass
class _Answer:
    """What is answered to a stream: the sums over its batches."""

    applied: int = 0
    known: int = 0
    repeated: int = 0
    refused_in_all: int = 0
    batches: int = 0
    refused: list[Any] = field(default_factory=list)
    flipped: list[Any] = field(default_factory=list)
    number: int = 0

    def add(self, part: dict[str, Any]) -> None:
        self.applied += part["applied"]
        self.known += part["known"]
        self.repeated += part["repeated"]
        self.refused_in_all += part["refused_in_all"]
        self.refused = [*self.refused, *part["refused"]][:MOST_LISTED]
        self.flipped = [*self.flipped, *part["flipped"]][:MOST_LISTED]
        self.number = part["number"]
        self.batches += 1


async def apply_stream(service: Service, lines: AsyncIterator[bytes], batch_id: str | None) -> dict[str, Any]:
    """Applies a stream in batches. Each is on disk before the next is read.

    Args:
        service: Applies them.
        lines: One event per line.
        batch_id: Names the stream: sent again, it is not applied again.
    """
    answer = _Answer()
    waiting: list[Any] = []
    first = 0

    async def send() -> None:
        nonlocal waiting, first
        answer.add(await run_in_threadpool(service.post, waiting, batch_id, first, answer.batches))
        first += len(waiting)
        waiting = []

    async for line in lines:
        waiting.append(_stated_event(line))
        if len(waiting) >= LINES:
            await send()
    if waiting and isinstance(waiting[-1], Unreadable) and waiting[-1].reason == _EMPTY:
        waiting.pop()  # what follows the last line end
    if waiting or not answer.batches:
        await send()
    return vars(answer)


def _stated_event(line: bytes) -> Any:
    if not line.strip():
        return Unreadable(_EMPTY)
    try:
        return parse_json(line)
    except Refusal as refusal:
        return Unreadable(refusal.reason)
