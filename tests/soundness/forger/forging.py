"""What a forger has: a certificate file laid open, every statement derived again from altered evidence, a new seal.

A :class:`Draft` is the header and the arrays of a file, as they are stored. Nothing here knows which fields a version of
the format has, beyond those that the library's own functions are asked for.
"""

import hashlib
import inspect
import json
import math
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.claim import Claim, make_claim
from agnncert.certificates.file import FORMAT, MOST_EXCLUSIONS, VERSION, Contents, read_contents, write_contents
from agnncert.divided.evidence import VoteEvidence
from agnncert.errors import AgnncertError
from agnncert.proving import certificate as proving
from agnncert.proving.certificate import Certificate
from agnncert.storage import read_sealed, write_sealed
from agnncert_peers.sample_claim import make_sample_claim
from tests.support.certificates import certificate_of, random_evidence

PREFIX = "evidence."
LISTED = ("group", "vote", "stable", "reached", "one_way")  # the last one only where pairs have groups of their own
WHOLE = ("targets_per_node",)  # about all targets together, so it does not follow them
# What a senseless draft may raise while its statements are derived; such a draft keeps the statements it had.
IMPOSSIBLE = (AgnncertError, KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError, MemoryError)


@dataclass
class Draft:
    """A file laid open: its header (without the seal) and its arrays."""

    header: dict[str, Any]
    arrays: dict[str, Any]

    def copy(self) -> "Draft":
        """A draft of its own, down to the arrays."""
        return Draft(json.loads(json.dumps(self.header)), {name: array.copy() for name, array in self.arrays.items()})

    @property
    def claim(self) -> dict[str, Any]:
        """The claim, as stored."""
        return self.header["claim"]

    @property
    def settings(self) -> dict[str, Any]:
        """The settings of the evidence, as stored."""
        return self.header["settings"]

    @property
    def num_targets(self) -> int:
        """How many targets there are."""
        return len(self.arrays["row"])

    def has(self, name: str) -> bool:
        """Whether there is an array of the evidence with this name."""
        return PREFIX + name in self.arrays

    def __getitem__(self, name: str) -> Any:
        return self.arrays[PREFIX + name]

    def __setitem__(self, name: str, array: Any) -> None:
        old = self.arrays.get(PREFIX + name)
        self.arrays[PREFIX + name] = np.asarray(array, dtype=None if old is None else old.dtype)

    @property
    def owner(self) -> Any:
        """Target of each listed vote."""
        return np.repeat(np.arange(self.num_targets), np.diff(self["indptr"]))


def scratch_folder() -> "tempfile.TemporaryDirectory[str]":
    """A folder for files that live for milliseconds."""
    return tempfile.TemporaryDirectory(prefix="forger-")


def lay_open(path: Path) -> Draft:
    """The draft of a file."""
    header, arrays = read_sealed(path, FORMAT, VERSION)
    header.pop("file_sha256")
    return Draft(header, dict(sorted(arrays.items())))  # a file has its arrays in no order


def seal(draft: Draft, path: Path) -> bool:
    """Writes the draft as a sealed file; False if it cannot be written at all."""
    try:
        write_sealed(path, draft.header, draft.arrays)
    except (ValueError, TypeError, AgnncertError):
        return False
    return True


def drafted(certificate: Certificate, budgets: tuple[Budget, ...] | None = None) -> Draft:
    """The draft of the file that an honest certificate is saved as."""
    with scratch_folder() as folder:
        path = Path(folder) / "honest.cert"
        certificate.save(path, budgets)
        return lay_open(path)


def ids_of(draft: Draft) -> list[int | str]:
    """The ids of the targets, read as the library reads them."""
    with scratch_folder() as folder:
        path = Path(folder) / "ids.cert"
        seal(draft, path)
        names: list[int | str] = read_contents(path).arrays["target"].tolist()
        return names


def set_ids(draft: Draft, names: list[int | str]) -> None:
    """Names the targets, written as the library writes them."""
    ids = np.array(names if len({type(name) for name in names}) < 2 else list(map(str, names)))
    ids = ids if len(names) else np.zeros(0, dtype=np.int64)
    template = _template()
    kept = {name: np.resize(array, (*array.shape[:-1], len(ids))) for name, array in template.arrays.items()}
    with scratch_folder() as folder:
        path = Path(folder) / "ids.cert"
        write_contents(path, replace(template, arrays=kept | {"target": ids}))
        written = lay_open(path)
    draft.arrays = {name: array for name, array in draft.arrays.items() if not name.startswith("target")}
    draft.arrays |= {name: array for name, array in written.arrays.items() if name.startswith("target")}


@cache
def _template() -> Contents:
    """What some file says, as the library reads it."""
    with scratch_folder() as folder:
        path = Path(folder) / "template.cert"
        certificate_of(random_evidence(np.random.default_rng(0), "node-centric/node")).save(path)
        return read_contents(path)


def budget_of(stored: dict[str, Any]) -> Budget:
    """The budget of a statement."""
    return Budget(**{name: math.inf if value == "inf" else value for name, value in stored.items()})


def select(draft: Draft, order: Any) -> None:
    """Keeps these targets, in this order, in all arrays alike; a target may be named twice."""
    order, n = np.asarray(order, dtype=np.int64), draft.num_targets
    rows = {"indptr": LISTED, "reach_ptr": ("reach",), "start": ("paths",)}
    ids = ids_of(draft)
    pointed = {PREFIX + name for ptr, names in rows.items() for name in (ptr, *names)} | {PREFIX + n for n in WHOLE}
    for ptr, names in rows.items():
        if draft.has(ptr):
            ends = draft[ptr]
            places = [np.arange(ends[k], ends[k + 1]) for k in order.tolist()]
            where = np.concatenate([np.zeros(0, dtype=np.int64), *places])
            for name in filter(draft.has, names):
                draft[name] = draft[name][where]
            draft[ptr] = np.cumsum([0, *map(len, places)])
    for name, array in draft.arrays.items():
        if name not in pointed and not name.startswith("target") and name != "holds" and array.shape[:1] == (n,):
            draft.arrays[name] = array[order]
    draft.arrays["holds"] = draft.arrays["holds"][:, order]
    set_ids(draft, [ids[k] for k in order.tolist()])


def derive(draft: Draft) -> bool:
    """Makes every statement and every word follow from the evidence, by the code of the half that proves.

    Returns:
        False if nothing follows from such evidence; the draft then keeps the statements that it had.
    """
    try:
        tensors = {name.removeprefix(PREFIX): array for name, array in draft.arrays.items() if name.startswith(PREFIX)}
        evidence = proving._evidence_class(draft.header["kind"]).load(tensors, draft.settings)
        claim = rewritten_claim(draft, evidence)
        stated = [budget_of(statement["budget"]) for statement in draft.header["statements"]]
        certificate = Certificate(claim, evidence, np.arange(evidence.num_targets))
        answers = [certificate.holds_against(budget) for budget in stated]
        broken = [certificate.broken_at_most(budget) for budget in stated]
        excluded = [_excluded(evidence, statement) for statement in draft.header["statements"]]
        derived = {name: getattr(certificate, name) for name in ("label", "radius", "new_neighbours")}
        alone = evidence.structure_radius() if isinstance(evidence, VoteEvidence) else None
    except IMPOSSIBLE:
        return False
    draft.arrays.pop("structure_radius", None)
    draft.arrays |= derived | ({} if alone is None else {"structure_radius": alone})
    draft.arrays["holds"] = np.array(answers, dtype=bool).reshape(len(stated), certificate.num_targets)
    for statement, number, out in zip(draft.header["statements"], broken, excluded, strict=True):
        statement |= {"broken_at_most": number} | ({"excluded": out} if "excluded" in statement else {})
    stored = claim.to_json() | {"library_version": draft.claim["library_version"]}
    draft.header["claim"] = stored
    return True


def _excluded(evidence: Any, statement: dict[str, Any]) -> Any:
    """How many targets cannot get each label, where a statement says it, else None."""
    stated = "excluded" in statement
    return (~evidence.possible(budget_of(statement["budget"]))).sum(axis=0).tolist() if stated else None


def state_exclusions(draft: Draft) -> None:
    """Lets a draft also state, for as many budgets as are read, how many targets cannot get each label."""
    tensors = {name.removeprefix(PREFIX): array for name, array in draft.arrays.items() if name.startswith(PREFIX)}
    evidence = proving._evidence_class(draft.header["kind"]).load(tensors, draft.settings)
    for statement in draft.header["statements"][:MOST_EXCLUSIONS]:
        statement["excluded"] = _excluded(evidence, statement | {"excluded": []})


def rewritten_claim(draft: Draft, evidence: Any) -> Claim:
    """The claim that the library writes for the facts in a draft."""
    told, settings = dict(draft.claim), dict(draft.settings)
    digests = dict(told["digests"])
    if "division" in digests:
        digests["division"] = hashlib.sha256(told["division"].encode()).hexdigest()
    facts = told | settings | {"digests": digests, "notes": tuple(told["notes"])}
    if draft.header["kind"] == "votes":
        facts |= {"record": evidence}
    write = make_claim if draft.header["kind"] == "votes" else make_sample_claim
    wanted = inspect.signature(write).parameters
    return write(**{name: facts[name] for name in wanted if name in facts})


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where the header holds something that can be altered: every value, and every list and dict itself."""
    if path:
        yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inside:
        yield from leaves(child, (*path, key))


def at(value: Any, path: tuple[Any, ...]) -> Any:
    """What is stored at a place of the header."""
    for key in path:
        value = value[key]
    return value


def put(value: Any, path: tuple[Any, ...], new: Any) -> None:
    """Stores something at a place of the header."""
    at(value, path[:-1])[path[-1]] = new
