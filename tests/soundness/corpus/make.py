"""Makes the corpus of true and false certificates: ``python -m tests.soundness.corpus.make``.

Only when the format or the words of a claim change. Everything is drawn with fixed seeds.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from agnncert.certificates.budget import Budget
from agnncert.certificates.voting_rule import VotingRule
from agnncert.proving.certificate import everything_but_additions
from tests.soundness.corpus.faults import FAULTS
from tests.soundness.forger.forging import Draft, drafted, lay_open, seal, state_exclusions
from tests.soundness.forger.hostile import open_up, sealed
from tests.soundness.golden.make import FOLDER as GOLDEN
from tests.support.certificates import certificate_of, random_evidence
from tests.support.theorems import THEOREMS

HERE = Path(__file__).parent
INF = float("inf")
BUDGETS = (
    Budget(),
    Budget(add_edges=1),
    Budget(add_edges=2, delete_edges=3),
    Budget(change_edges=1, delete_edges=1),
    Budget(delete_nodes=1),
    Budget(delete_nodes=2, change_features=1),
    Budget(inject_nodes=1, edges_per_injected=2),
    Budget(inject_nodes=2, edges_per_injected=INF, delete_edges=INF),
    Budget(change_features=INF, delete_edges=INF, change_edges=INF),
    Budget(target_features=True, change_features=1),
    everything_but_additions("node_id"),
)
VOTED = {
    "edge-centric/node": VotingRule("abstain", 2),
    "node-centric/node": VotingRule(prior=2),
    "gated/node": VotingRule(1, [0, 2, -1]),
    "node-centric/graph": VotingRule(0, [0, 3, 1]),
    "per-pair/node": VotingRule(1, 3),
    "per-neighbour/graph": VotingRule(2, [5, 0, 4]),
}


def made_up(theorem: str, voting_rule: VotingRule | None = None) -> Draft:
    """A certificate with votes drawn at random: about no graph, but its arithmetic is right."""
    rng = np.random.default_rng(list(f"{theorem} {voting_rule}".encode()))
    shape: dict[str, Any] = {"num_targets": 24, "num_groups": 12, "unstable": 0.06}
    evidence = random_evidence(rng, theorem, **shape, voting_rule=voting_rule)
    return drafted(certificate_of(evidence, truth=rng.integers(0, 3, 24), degree=rng.integers(0, 9, 24)), BUDGETS)


def honest() -> dict[str, Draft]:
    """The true certificates that are made here, by name."""
    plain = {f"{theorem}": made_up(theorem) for theorem in THEOREMS}
    stated = {f"{theorem} excluded": made_up(theorem) for theorem in ("node-centric/node", "per-neighbour/node")}
    for draft in stated.values():
        state_exclusions(draft)
    return (
        plain | {f"{theorem} voted": made_up(theorem, voting_rule) for theorem, voting_rule in VOTED.items()} | stated
    )


def file_name(name: str) -> str:
    """The name of a rule in the name of a file."""
    return name.replace("/", "-").replace(" ", "-")


def damaged(blob: bytes) -> Iterator[tuple[str, str, str, bytes]]:
    """Files that no reader should accept: name, reason, what the verifier says, and the bytes."""
    header, arrays = open_up(blob)
    text = json.dumps({**header, "file_sha256": "0" * 64}, sort_keys=True, separators=(",", ":"))
    flipped = bytearray(blob)
    flipped[-1] ^= 1
    yield (
        "a-bit-flipped",
        "One bit of an array is another one; the digest is the old one.",
        "altered or damaged",
        bytes(flipped),
    )
    yield "cut-short", "The last array is not complete.", "altered or damaged", blob[:-10]
    yield "empty", "There is nothing in the file.", "is not a certificate", b""
    alter: dict[str, tuple[str, str, Callable[[], str | dict[str, Any]]]] = {
        "a-key-twice": (
            "The header says two things under one name; readers may differ about which one counts.",
            "says the same thing twice",
            lambda: text.replace('"kind":"votes"', '"kind":"samples","kind":"votes"', 1),
        ),
        "not-a-number": (
            "The tolerance is NaN, with which every comparison is false.",
            "is not a certificate",
            lambda: text.replace('"tolerance":1e-06', '"tolerance":NaN', 1),
        ),
        "another-version": (
            "The file is of a version that does not exist.",
            "version",
            lambda: {**header, "version": 99},
        ),
        "an-unknown-field": (
            "The header has a field that nobody knows.",
            "the header has the fields",
            lambda: {**header, "more": 1},
        ),
        "a-budget-of-minus-one": (
            "A statement is about a budget that makes no sense.",
            "budget that makes no sense",
            lambda: {
                **header,
                "statements": [{"budget": {"add_edges": -1}, "broken_at_most": 0}, *header["statements"][1:]],
            },
        ),
    }
    for name, (why, says, change) in alter.items():
        yield name, why, says, sealed(change(), arrays)


def make_all(folder: Path = HERE) -> None:
    """Writes all files and the index."""
    for part in ("true", "false"):
        shutil.rmtree(folder / part, ignore_errors=True)
        (folder / part).mkdir()
    index, drafts = [], honest()
    for name, draft in drafts.items():
        path = f"true/{file_name(name)}.cert"
        assert seal(draft, folder / path)
        why = "Votes drawn at random, of no graph; every statement follows from them."
        index.append({"file": path, "true": True, "theorem": draft.settings["theorem"], "why": why})
    for file in sorted(GOLDEN.glob("*.cert")):
        draft = drafts[file.stem] = lay_open(file)
        why = f'Made by certify; graph and model are those of "{file.stem}" in tests/soundness/golden/examples.py.'
        path = f"../golden/{GOLDEN.name}/{file.name}"
        index.append(
            {"file": path, "true": True, "theorem": draft.settings.get("theorem"), "why": why, "example": file.stem}
        )
    for name, fault in FAULTS.items():
        for base in ("rs", "bi-rs") if fault.rules == ("samples",) else fault.rules:
            draft = drafts[base].copy()
            fault.alter(draft)
            path = f"false/{name}--{file_name(base)}.cert"
            assert seal(draft, folder / path), path
            entry = {
                "file": path,
                "true": False,
                "theorem": draft.settings.get("theorem"),
                "fault": name,
                "why": fault.why,
            }
            entry |= {"found_with": fault.found_with, "says": fault.says}
            entry |= {"understates": True} if fault.understates else {}
            index.append(entry | ({} if "/" in base else {"example": base}))
    for name, why, says, blob in damaged((folder / "true/node-centric-node.cert").read_bytes()):
        (folder / f"false/{name}.cert").write_bytes(blob)
        index.append(
            {"file": f"false/{name}.cert", "true": False, "theorem": "node-centric/node", "fault": name, "why": why}
            | {"found_with": "file", "says": says}
        )
    lines = ",\n".join(" " + json.dumps(entry, ensure_ascii=False) for entry in index)
    (folder / "index.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")


if __name__ == "__main__":
    make_all()
