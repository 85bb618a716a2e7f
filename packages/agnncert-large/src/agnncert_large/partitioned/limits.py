"""How much memory this process may still take, as far as the operating system says."""

import resource
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")


def memory_left() -> int | None:
    """Returns how many bytes this process may still take: of its address space, its cgroup and its machine.

    It is None where nothing says so.
    """
    limits = [limit for limit in (_address_space(), _cgroup(), _machine()) if limit is not None]
    return min(limits, default=None)


def _address_space() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    if soft == resource.RLIM_INFINITY:
        return None
    used = _number(Path("/proc/self/statm"))
    return None if used is None else max(0, soft - used * resource.getpagesize())


def _cgroup() -> int | None:
    most = _number(_CGROUP / "memory.max")
    used = _number(_CGROUP / "memory.current")
    return None if most is None or used is None else max(0, most - used)


def _machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable:")]
    return int(found[0]) * 1024 if found else None


def _number(file: Path) -> int | None:
    """Returns the number that a file begins with, if it does."""
    try:
        first = file.read_text().split()[0]
    except (OSError, IndexError):
        return None
    return int(first) if first.isdigit() else None
