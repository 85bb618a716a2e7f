"""A service on this machine, answering for as long as a test needs it."""

import asyncio
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from torch_geometric.data import Data

import agnncert as ac
import agnncert_live
from agnncert_live.guard import Limits
from agnncert_live.http import make_app
from agnncert_live.run import listen, run_until
from agnncert_live.service import Service

NODES = 30
TOKEN = "a token that nobody guesses"
Answer = TypeVar("Answer")


def a_graph(seed: int = 0) -> Data:
    random = torch.Generator().manual_seed(seed)
    return Data(
        x=torch.randn(NODES, 4, generator=random),
        edge_index=torch.randint(NODES, (2, 60), generator=random),
        y=torch.arange(NODES) % 3,
        node_id=[f"user-{k}" for k in range(NODES)],
    )


def a_model(data: Data) -> Any:
    return ac.build_model("gcn", data, hidden_channels=8, num_layers=2).eval()


def a_service(journal: Any = None) -> Service:
    data = a_graph()
    live = agnncert_live.LiveGraph(a_model(data), data, ac.NodeCentric(8), journal=journal)
    return Service(live, live.reference(), "users", ["honest", "fake", "bot"])


@contextmanager
def served(service: Service, token: str | None = None, limits: Limits | None = None) -> Iterator[str]:
    """The address of a real server in a thread."""
    listening = listen("127.0.0.1", 0)
    ready, stop = threading.Event(), threading.Event()
    app = make_app(service, token, limits or Limits(rate=10_000))
    thread = threading.Thread(target=run_until, args=(app, listening, ready.set, stop), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        stop.set()
        thread.join(20)
        listening.close()


def run_elsewhere(work: Callable[[], Coroutine[Any, Any, Answer]]) -> Answer:
    """Runs it in a thread of its own, because an open browser of another test has a loop in this one."""

    async def in_time() -> Answer:
        return await asyncio.wait_for(work(), 30)

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, in_time()).result()


def sent(address, path, body=None, headers=None) -> tuple[int, bytes]:
    request = urllib.request.Request(address + path, body, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        try:
            return error.code, error.read()
        except ConnectionResetError:  # the service answers and closes before it has read a body that is too large
            return error.code, b""
