"""``ac.Ray``: lets a Ray cluster do the work of ``certify`` and of random sampling, with the same result."""

import importlib
import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from agnncert.engine.workers import Part, Prepared, Result, Shared, versions
from agnncert.errors import WorkersError, missing

RETRIES = 8  # how often a part is begun again whose worker died
SECONDS_TO_ANSWER = 5.0
SLOW = 3.0  # times the usual time after which a part is begun a second time, if there is room
LEAST_SECONDS = 30.0  # that a part may take in any case
SECONDS_BETWEEN_LOOKS = 5.0

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ray:
    """Lets a Ray cluster do the work: ``ac.certify(model, data, division, workers=ac.Ray())``.

    The certificate is the one that a single process makes. A worker that dies is replaced and its part done again. A
    part that takes three times as long as others is begun a second time where there is room, and the faster one counts.
    With ``checkpoint=`` of ``certify``, a driver that was stopped goes on with the parts that are left. Every worker
    must have the same version of agnncert, torch and PyTorch Geometric as the driver, and the code of the model.

    Args:
        address: Of the cluster: ``"auto"``, ``"host:port"`` or ``"ray://host:port"``. When not given, the cluster that
            this process is connected to, the one that ``RAY_ADDRESS`` names, the one that runs on this machine, or one
            that is started here for as long as it is needed.
        cpus_per_part: Cores that one part may take.
        gpus_per_part: GPUs that one part takes; a fraction lets several share one.
        runtime_env: As in ``ray.init``: code and packages that the workers need.
    """

    address: str | None = None
    cpus_per_part: float = 1
    gpus_per_part: float = 0
    runtime_env: dict[str, Any] | None = field(default=None)

    def parts_at_once(self) -> int:
        """Returns how many parts the cluster has room for now."""
        with self._connected() as ray:
            return self._room(ray)

    def run(
        self,
        shared: Shared,
        prepare: Callable[[Shared], Prepared],
        task: Callable[[Prepared, Part], Result],
        parts: Sequence[Part],
    ) -> Iterator[tuple[Part, Result]]:
        """Yields each part with its result, in any order, as ``Workers`` says.

        Raises:
            WorkersError: The cluster is not there, its workers are others than the driver, or a part keeps failing.
        """
        with self._connected() as ray:
            options = {"num_cpus": self.cpus_per_part, "num_gpus": self.gpus_per_part, "max_retries": RETRIES}
            remote = ray.remote(**options)(_part_in_worker)
            store = ray.put((shared, prepare, task))
            yield from self._results(ray, lambda part: remote.remote([store], versions(), part), parts)

    def _results(self, ray: Any, begin: Callable[[Part], Any], parts: Sequence[Part]) -> Iterator[tuple[Part, Any]]:
        """Yields each part with its result. A part that takes much longer than others is begun a second time."""
        waiting = list(reversed(range(len(parts))))
        begun: dict[int, float] = {}  # when each part was begun that is not done
        number_of: dict[Any, int] = {}  # part of each task that runs
        seconds: list[float] = []  # that finished parts took
        while begun or waiting:
            while waiting and len(begun) < 2 * self._room(ray):  # one is done, the next is there already
                number = waiting.pop()
                begun[number] = time.monotonic()
                number_of[begin(parts[number])] = number
            done, _ = ray.wait(list(number_of), num_returns=1, timeout=None if waiting else SECONDS_BETWEEN_LOOKS)
            if not done:
                if len(number_of) < self._room(ray):
                    for number in _stragglers(begun, seconds, list(number_of.values())):
                        log.info("a part takes long, and is begun again elsewhere: %s", parts[number])
                        number_of[begin(parts[number])] = number
                continue
            number = number_of.pop(done[0])
            if number not in begun:  # the other one of two was faster
                continue
            result = _result(ray, done[0])
            seconds.append(time.monotonic() - begun.pop(number))
            for slower in [task for task, its in number_of.items() if its == number]:
                ray.cancel(slower, force=True)
                del number_of[slower]
            yield parts[number], result

    def _room(self, ray: Any) -> int:
        """Returns how many parts fit into the cluster at once."""
        resources = ray.cluster_resources()
        cpus = resources.get("CPU", 0)
        gpus = resources.get("GPU", 0)
        room = float("inf")
        if self.cpus_per_part:
            room = cpus / self.cpus_per_part
        if self.gpus_per_part:
            room = min(room, gpus / self.gpus_per_part)
        if room < 1:
            raise WorkersError(
                f"the Ray cluster has {cpus:g} cores and {gpus:g} GPUs, and one part needs "
                f"{self.cpus_per_part:g} and {self.gpus_per_part:g}: add machines, or ask for less per part."
            )
        return int(min(room, 10_000))

    @contextmanager
    def _connected(self) -> Iterator[Any]:
        ray = _ray()
        if ray.is_initialized():  # the caller's connection, which stays
            yield ray
            return
        _connect(ray, self.address, self.runtime_env)
        try:
            yield ray
        finally:
            ray.shutdown()


def _stragglers(begun: dict[int, float], seconds: list[float], running: list[int]) -> list[int]:
    """Returns the parts that take much longer than those that are done, and that run once only."""
    if not seconds:
        return []
    too_long = max(LEAST_SECONDS, SLOW * median(seconds))
    now = time.monotonic()
    return [number for number, start in begun.items() if now - start > too_long and running.count(number) == 1]


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise missing("ray", "working on a Ray cluster") from error


_ADVICE = "start one with `ray start --head`, or leave the address out to use this machine alone."


def _connect(ray: Any, address: str | None, runtime_env: dict[str, Any] | None) -> None:
    if address is not None:
        _require_answer(address)
    local = {} if address else {"include_dashboard": False}
    try:
        ray.init(address=address, runtime_env=runtime_env, log_to_driver=False, logging_level="error", **local)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise WorkersError(f"no Ray cluster answers at {address or 'this machine'} ({error}): {_ADVICE}") from error


def _require_answer(address: str) -> None:
    """Refuses an address with a port where nobody listens; Ray itself asks for a minute before it gives up."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_ANSWER).close()
    except OSError as error:
        raise WorkersError(f"no Ray cluster answers at {address} ({error.strerror or error}): {_ADVICE}") from error


def _result(ray: Any, reference: Any) -> Any:
    try:
        refusal, result = ray.get(reference)
    except ray.exceptions.RayTaskError as error:
        raise error.as_instanceof_cause() from error  # what this process would have raised
    except ray.exceptions.RayError as error:
        raise WorkersError(
            f"a part failed {RETRIES + 1} times on the Ray cluster: {error} Workers that keep dying mostly lack "
            "memory: give memory_limit=, or more cpus_per_part."
        ) from error
    if refusal:
        raise WorkersError(refusal)
    return result


# In a worker: what was prepared last, and the task, by the reference to what is shared.
_held: dict[Any, tuple[Any, Callable[[Any, Any], Any]]] = {}


def _part_in_worker(store: list[Any], driver: dict[str, str], part: Any) -> tuple[str, Any]:
    """Does one part in a worker; returns a refusal, or an empty one and the result."""
    reference = store[0]
    refusal = _differs_from(driver) or _hold(reference)
    if refusal:
        return refusal, None
    prepared, task = _held[reference]
    return "", task(prepared, part)


def _differs_from(driver: dict[str, str]) -> str:
    """Says in which versions this worker differs from the driver; empty if in none."""
    different = []
    for name, version in versions().items():
        if version != driver.get(name):
            different.append(f"{name} {version} here, {driver.get(name)} there")
    if not different:
        return ""
    listed = "; ".join(different)
    return f"{_this_worker()} differs from the driver ({listed}): install the same versions on every machine."


def _hold(reference: Any) -> str:
    """Loads and prepares what all parts share, unless it is held already; says why if it cannot be loaded."""
    import ray

    if reference in _held:
        return ""
    try:
        shared, prepare, task = ray.get(reference)
    except (ImportError, AttributeError, ray.exceptions.RaySystemError) as error:
        reason = str(error).splitlines()[0].removeprefix("System error: ")
        return (
            f"{_this_worker()} cannot load what it is to run: {reason}. The code of the model must be importable on "
            "every machine: install it there, or pass Ray(runtime_env={'working_dir': ...})."
        )
    _held.clear()
    _held[reference] = (prepare(shared), task)
    return ""


def _this_worker() -> str:
    return f"the worker on {socket.gethostname()}"
