"""``IdleLimit``: HTTP connections that are closed when they are idle for long, or when there are too many of them."""

from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from agnncert_live.guard import AT_WORK

MOST_CONNECTIONS = 200  # beyond that, the one that has been idle for longest is closed


class IdleLimit(H11Protocol):
    """A connection that is closed when it is idle for long, or when there are too many connections.

    uvicorn waits without end for the head of a request, and its limit of connections turns everybody away. When there
    are too many, any connection may go whose request has not passed the guard, also if it is about to be refused. At
    most ``MOST_AT_WORK`` requests have passed it at a time, so there is always one to close, and newcomers get in.

    Attributes:
        patience: Seconds that a connection may be idle.
    """

    patience = 15.0

    def connection_made(self, transport: Any) -> None:
        """Begins to look at the clock."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        self._next_check = self.loop.call_later(self.patience, self._close_if_idle)
        open_connections: Any = [each for each in self.connections if not each.transport.is_closing()]
        if len(open_connections) > MOST_CONNECTIONS:
            waiting = [each for each in open_connections if each is not self and not _is_at_work(each)]
            idle_for_longest = min(waiting, key=lambda each: each._idle_since)
            idle_for_longest.transport.abort()

    def on_response_complete(self) -> None:
        """Begins a new time of waiting after each answer, so that busy connections stay open."""
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def _close_if_idle(self) -> None:
        if self.transport.is_closing():
            return
        if not (self.cycle is None or self.cycle.response_complete):
            self._idle_since = self.loop.time()
        elif self.loop.time() - self._idle_since >= self.patience:
            self.transport.close()
            return
        self._next_check = self.loop.call_later(self.patience / 3, self._close_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops looking at the clock."""
        self._next_check.cancel()
        super().connection_lost(exc)


def _is_at_work(connection: Any) -> bool:
    """Whether the request of a connection has passed the guard and is being answered."""
    scope = connection.scope or {}
    return bool(scope.get(AT_WORK))
