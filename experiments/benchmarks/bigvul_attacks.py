"""Attacks on the source of functions of Big-Vul, within their certificates and beyond; with ``--edits``, random edits.

    python -m experiments.benchmarks.bigvul_attacks --data .cache/data

Functions that the model has not seen are certified, attacked in their text, read and certified again: everything
between the two texts is the library as users have it. Chunks of functions that are in the file of results already are
not attacked again.
"""

import argparse
import gzip
import json
import random
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

import agnncert as ac
import agnncert_code
from agnncert.datasets.catalog import SOURCES
from agnncert_code.bigvul import load_big_vul
from agnncert_code.rewrites import greedy_rewrite, worst_edits
from agnncert_code.syntax import parse
from experiments.benchmarks.bigvul import PROTOCOLS, Row
from experiments.paper.rows import append_row, read_rows

FUNCTIONS, CHUNK = 5600, 100  # attacked for each protocol, and at a time
EDITED = 32000  # random edits: functions are drawn again and again
EDITS = 500  # at a time
SEARCHED = 10  # every tenth function is also rewritten step by step
KINDS = ("inserted", "deleted", "replaced")
LARGEST = 50  # edits of one function at most


class Voter:
    """A vote of statements that was fitted to one protocol, and its votes by text."""

    def __init__(self, root: Path, protocol: str) -> None:
        self.data = load_big_vul(root, 0, protocol == "big-vul-matched", embed=agnncert_code.pieces)
        self.found = agnncert_code.fit_statements(self.data, 0)
        self.seen = {self.data[int(k)].graph_id for part in (self.data.train, self.data.val) for k in part}
        self._votes: dict[str, int] = {}

    def vote(self, text: str) -> int:
        """What a statement votes for; 2 for nothing."""
        if text not in self._votes:
            x = torch.from_numpy(agnncert_code.pieces([text]))
            with torch.no_grad():
                logits = self.found.model(x, torch.zeros(2, 0, dtype=torch.long), torch.zeros(1, dtype=torch.long))
            self._votes[text] = int(logits.argmax())
        return self._votes[text]

    def lead(self, text: str, label: int) -> int:
        """By how many votes a label is ahead in a text; below 0 it has lost."""
        prior = self.found.voting_rule.class_prior
        count = Counter(self.vote(s.text) for s in parse(text).statements if s.text)
        return prior[label] + count[label] - prior[1 - label] - count[1 - label] - (label == 1)

    def certify(self, texts: list[str]) -> Any:
        """The certificate of these texts."""
        graphs = [agnncert_code.graph(text).to_data(agnncert_code.pieces) for text in texts]
        return ac.certify(
            self.found.model, ac.GraphSet(graphs), self.found.division, voting_rule=self.found.voting_rule
        )

    def rivals(self) -> list[str]:
        """For each label a statement that can stand anywhere and votes against it, or for nothing if none can."""
        found: dict[int, str] = {}
        for text in ("gets ( buf ) ;", "x = 0 ;", "return ;", "break ;", *sorted({name.split(" ", 1)[1] for k in
                     self.data.train[:200] for name in self.data[int(k)].node_id})):  # fmt: skip
            voting_rule = self.vote(text)
            plain = text.endswith(";") and "case" not in text and "#" not in text
            if plain and voting_rule < 2 and 1 - voting_rule not in found:
                alone = parse(f"void f() {{ {text} {text} }}")
                if not alone.partial and [s.text for s in alone.statements if s.text][1:] == [text] * 2:
                    found[1 - voting_rule] = text
        return [found.get(label, "x = 0 ;") for label in (0, 1)]


def limits(cert: Any) -> dict[str, Any]:
    """How many statements may be inserted, deleted or replaced, each alone."""
    return {
        "inserted": cert.max_certified("inject_nodes", edges_per_injected=float("inf"), **FREE),
        "deleted": cert.max_certified("delete_nodes", **FREE),
        "replaced": cert.radius,
    }


FREE = {"add_edges": float("inf"), "delete_edges": float("inf"), "change_edges": float("inf")}


def attacked(
    voter: Voter, cert: Any, texts: list[str], numbers: list[int], rivals: list[str]
) -> Iterator[tuple[str, int, int, str]]:
    """Attacks on some functions: their name, the function, 0 within its certificate or 1 beyond, and the new text."""
    amounts = limits(cert)
    for k, text in enumerate(texts):
        label = int(cert.label[k])
        for beyond in (0, 1):
            for kind in KINDS:
                amount = int(min(amounts[kind][k], LARGEST)) + beyond
                if not 1 <= amount <= LARGEST:
                    continue
                edited = worst_edits(text, voter.vote, label, rivals[label], **{kind: amount})
                if edited is not None and edited[1].within(**{kind: amount}):
                    yield f"worst {kind}", k, beyond, edited[0]
            if numbers[k] % SEARCHED == 0:
                allowed = int(min(amounts["inserted"][k], LARGEST)) + beyond
                if not 1 <= allowed <= LARGEST:
                    continue
                best, _ = greedy_rewrite(text, lambda new, label=label: voter.lead(new, label), inserted=allowed,
                                         seed=numbers[k], rounds=min(allowed, 4), tries=6)  # fmt: skip
                if best != text:
                    yield "rewritten, inserted", k, beyond, best


def chunk(voter: Voter, texts: list[str], numbers: list[int], rivals: list[str]) -> Row:
    """Attacks on some functions, counted: how many of each kind, and how many changed the verdict."""
    before = voter.certify(texts)
    done = list(attacked(voter, before, texts, numbers, rivals))
    after = voter.certify([new for *_, new in done])
    counts: dict[str, list[int]] = {}
    flips = []
    for (name, k, beyond, new), label in zip(done, after.label, strict=True):
        entry = counts.setdefault(name, [0, 0, 0, 0])
        entry[2 * beyond] += 1
        entry[2 * beyond + 1] += int(label != before.label[k])
        if label != before.label[k] and not beyond:
            flips.append({"function": numbers[k], "attack": name, "text": new})
    held = [int((before.radius >= n).sum()) for n in range(4)]
    return {"functions": len(texts), "attacked": len({k for _, k, beyond, _ in done if not beyond}), "held": held,
            "attacks": counts, "flips": flips}  # fmt: skip


def sources(root: Path) -> dict[int, str]:
    """Texts of all functions by their number."""
    source = SOURCES["big-vul"]
    with gzip.open(source.raw(root) / source.files[0]) as file:
        return {row["id"]: row["func"] for row in map(json.loads, file)}


def random_edits(texts: list[str], seed: int) -> Row:
    """Random edits of functions: is the difference of the two graphs, as nodes with features, exactly the edit?"""
    sys.path.insert(0, str(Path(__file__).parent.parent))
    from tests.support.functions import edited

    found: Counter[str] = Counter()
    rng = random.Random(seed)
    for text in texts:
        whole = not parse(text).partial
        after, inserted, deleted = edited(text, rng)
        if after == text:
            found["nothing to edit"] += 1
            continue
        if whole and parse(after).partial:
            found["left an error"] += 1
            continue
        old, new = (nodes(one) for one in (text, after))
        same = Counter(id.split(" ", 1)[1] for id, _ in new - old) == inserted
        same &= Counter(id.split(" ", 1)[1] for id, _ in old - new) == deleted
        found[f"{'whole' if whole else 'partial'}, {'exactly' if same else 'otherwise'}"] += 1
    return {"functions": len(texts), "found": dict(found)}


def nodes(text: str) -> set[tuple[str, bytes]]:
    """The nodes of a function as pairs of id and features."""
    graph = agnncert_code.graph(text)
    rows = np.hstack([agnncert_code.features(graph.texts), agnncert_code.pieces(graph.texts)])
    return {(id, row.tobytes()) for id, row in zip(graph.ids, rows, strict=True)}


def main() -> None:
    """Attacks the chunks that are missing."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default=".cache/data", type=Path)
    parser.add_argument("--out", default="experiments/results/bigvul.jsonl", type=Path)
    parser.add_argument("--edits", action="store_true")
    parser.add_argument("--protocols", nargs="*", default=PROTOCOLS)
    options = parser.parse_args()
    torch.set_num_threads(1)
    texts = sources(options.data)
    done = {(row["stage"], row["protocol"], row.get("chunk")) for row in read_rows(options.out)}
    if options.edits:
        order = random.Random(0).choices(sorted(texts), k=EDITED)
        for start in range(0, EDITED, EDITS):
            if ("edits", "big-vul", start) not in done:
                found = random_edits([texts[k] for k in order[start : start + EDITS]], start)
                write(options.out, {"stage": "edits", "protocol": "big-vul", "seed": 0, "chunk": start, **found})
        return
    for protocol in options.protocols:
        missing = [start for start in range(0, FUNCTIONS, CHUNK) if ("attacks", protocol, start) not in done]
        voter = Voter(options.data, protocol) if missing else None
        for start in missing:
            assert voter is not None
            unseen = random.Random(0).sample(sorted(set(texts) - voter.seen), 2 * FUNCTIONS)
            whole = [k for k in unseen[2 * start : 2 * (start + CHUNK)] if not parse(texts[k]).partial][:CHUNK]
            found = chunk(voter, [texts[k] for k in whole], whole, voter.rivals())
            write(options.out, {"stage": "attacks", "protocol": protocol, "seed": 0, "chunk": start, **found})


def write(path: Path, row: Row) -> None:
    """One more row."""
    append_row(path, row)
    print({name: value for name, value in row.items() if name != "flips"}, len(row.get("flips", ())), flush=True)


if __name__ == "__main__":
    main()
