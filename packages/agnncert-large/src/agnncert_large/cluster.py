"""``ac.Ray``: lets a Ray cluster do the work of ``certify`` and of random sampling, with the same result."""

import importlib
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from agnncert.engine.workers import Part, Prepared, Result, Shared, versions
from agnncert.errors import WorkersError, missing

RETRIES = 8  # how often a part is begun again whose worker died
SECONDS_TO_ANSWER = 5.0


@dataclass(frozen=True)
class Ray:
    """Lets a Ray cluster do the work: ``ac.certify(model, data, division, workers=ac.Ray())``.

    The certificate is the one that a single process makes. A worker that dies is replaced and its part done again;
    with ``checkpoint=`` of ``certify``, a driver that was stopped goes on with the parts that are left. Every worker
    must have the same version of agnncert, torch and PyTorch Geometric as the driver, and the code of the model.

    Args:
        address: Of the cluster: ``"auto"``, ``"host:port"`` or ``"ray://host:port"``. When not given, the cluster that
            this process is connected to, or one that is started on this machine for as long as it is needed.
        cpus_per_part: Cores that one part may take.
        gpus_per_part: GPUs that one part takes; a fraction lets several share one.
        runtime_env: As in ``ray.init``: code and packages that the workers need.
    """

    address: str | None = None
    cpus_per_part: float = 1
    gpus_per_part: float = 0
    runtime_env: dict[str, Any] | None = field(default=None)

    def parts_at_once(self) -> int:
        """As many as the cluster has room for now."""
        with self._connected() as ray:
            return self._room(ray)

    def run(
        self,
        shared: Shared,
        prepare: Callable[[Shared], Prepared],
        task: Callable[[Prepared, Part], Result],
        parts: Sequence[Part],
    ) -> Iterator[tuple[Part, Result]]:
        """As in ``Workers``.

        Raises:
            WorkersError: The cluster is not there, its workers are others than the driver, or a part keeps failing.
        """
        with self._connected() as ray:
            options = {"num_cpus": self.cpus_per_part, "num_gpus": self.gpus_per_part, "max_retries": RETRIES}
            remote = ray.remote(**options)(_part_in_worker)
            store = ray.put((shared, prepare, task))
            waiting = list(reversed(parts))
            running: dict[Any, Part] = {}
            while waiting or running:
                while waiting and len(running) < 2 * self._room(ray):  # one is done, the next is there already
                    part = waiting.pop()
                    running[remote.remote([store], versions(), part)] = part
                done, _ = ray.wait(list(running), num_returns=1)
                yield running.pop(done[0]), _result(ray, done[0])

    def _room(self, ray: Any) -> int:
        has = ray.cluster_resources()
        room = has.get("CPU", 0) / self.cpus_per_part if self.cpus_per_part else float("inf")
        if self.gpus_per_part:
            room = min(room, has.get("GPU", 0) / self.gpus_per_part)
        if room < 1:
            raise WorkersError(
                f"the Ray cluster has {has.get('CPU', 0):g} cores and {has.get('GPU', 0):g} GPUs, and one part needs "
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


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is reported to anybody
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        return importlib.import_module("ray")
    except ModuleNotFoundError as error:
        raise missing("ray", "working on a Ray cluster") from error


def _connect(ray: Any, address: str | None, runtime_env: dict[str, Any] | None) -> None:
    advice = "start one with `ray start --head`, or leave the address out to use this machine alone."
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if host and port.isdigit():  # ray itself asks for a minute before it gives up
        try:
            socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_ANSWER).close()
        except OSError as error:
            raise WorkersError(f"no Ray cluster answers at {address} ({error.strerror or error}): {advice}") from error
    local = {} if address else {"include_dashboard": False}
    try:
        ray.init(address=address, runtime_env=runtime_env, log_to_driver=False, logging_level="error", **local)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise WorkersError(f"no Ray cluster answers at {address or 'this machine'} ({error}): {advice}") from error


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


_held: dict[Any, tuple[Any, Any]] = {}  # in a worker: what was prepared last, and the task


def _part_in_worker(store: list[Any], driver: dict[str, str], part: Any) -> tuple[str, Any]:
    """What a worker does: a refusal, or an empty one and the result."""
    import ray

    different = [
        f"{name} {own} here, {driver.get(name)} there" for name, own in versions().items() if own != driver.get(name)
    ]
    where = f"the worker on {socket.gethostname()}"
    if different:
        return (
            f"{where} differs from the driver ({'; '.join(different)}): install the same versions on every machine.",
            None,
        )
    if store[0] not in _held:
        try:
            shared, prepare, task = ray.get(store[0])
        except (ImportError, AttributeError, ray.exceptions.RaySystemError) as error:
            reason = str(error).splitlines()[0].removeprefix("System error: ")
            return (
                f"{where} cannot load what it is to run: {reason}. The code of the model must be importable on every "
                "machine: install it there, or pass Ray(runtime_env={'working_dir': ...})."
            ), None
        _held.clear()
        _held[store[0]] = prepare(shared), task
    ready, task = _held[store[0]]
    return "", task(ready, part)
