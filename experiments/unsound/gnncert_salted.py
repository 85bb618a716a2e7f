"""GNNCert offers Python's own hash, which is another one in every process.

Published rule: the group of an edge depends on its ends alone. With the option ``hash`` it is ``hash(text) mod T``, and
Python salts the hash of texts when it starts.
"""

import os
import subprocess
import sys

from experiments.unsound.common import Broken, amount, radius, winner

GROUPS = 7
EDGES = [(0, other) for other in range(1, 6)]
_SCRIPT = "import sys; print(*(hash(text) % {groups} for text in sys.argv[1:]))"


def votes(salt: int) -> list[int]:
    """Returns the votes of a graph in a process that was started with this salt: whether a subgraph has an edge."""
    texts = [f"{source};{head}" for source, head in EDGES]
    command = [sys.executable, "-c", _SCRIPT.format(groups=GROUPS), *texts]
    environment = {**os.environ, "PYTHONHASHSEED": str(salt)}
    printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    groups = [int(word) for word in printed.split()]
    return [int(groups.count(index) >= 1) for index in range(GROUPS)]


def demonstrate() -> Broken:
    """Finds two processes that give the same graph different certified labels."""
    by_salt = {salt: votes(salt) for salt in range(1, 60)}
    certified = {salt: cast for salt, cast in by_salt.items() if radius(cast, 2) >= 1}
    first = next(iter(certified.values()))
    second = next(cast for cast in certified.values() if winner(cast, 2) != winner(first, 2))
    return Broken(
        method="GNNCert, hash=hash",
        rule="the label withstands changes of up to M edges",
        certified=amount(first, "edge"),
        attack="nothing is changed; the program is started again",
        before=winner(first, 2),
        after=winner(second, 2),
        why="Python salts the hash of texts in every process, so that the next process has another classifier",
    )
