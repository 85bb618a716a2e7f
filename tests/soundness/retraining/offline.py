"""Attacks on whole ways to a certificate: ``python -m tests.soundness.retraining.offline --attacks 100000``.

Small accounts, scans and payments are certified as the guides do it: read, split, fitted by the name of a model, with a
threshold or a voting rule where a guide has one, and certified. Then their source is attacked and the same calls are
made again. Of attacks before training everything is called again, of attacks afterwards what the guides call when a
graph has changed. A target that was certified against what the attack cost must have the same label.

Two things show that this is no idle search: labels that hold against one change less than an attack spent do change,
and errors of old, planted one at a time, are found (``--plant``). Each case is written to a file of rows when it is done,
and each planted error when it is found; the same command goes on where it stopped. Several may run beside each other:
``--share 1/2`` and ``--share 2/2``.
"""

import argparse
import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import agnncert as ac
from agnncert import evaluation_mode, recipes
from agnncert.datasets import splits, table_roles
from agnncert.errors import AgnncertError
from agnncert.isolated import parts
from agnncert.stacked.defence import StackedVotes
from tests.soundness.retraining.attackers import attacked
from tests.soundness.retraining.source import Accounts, Payments, Scans, cost_of_accounts, cost_of_scans
from tests.soundness.retraining.ways import WAYS, Outcome, Source, Way, be_quiet
from tests.support.paths import PROJECT

RESULT = PROJECT / "experiments" / "results" / "retraining.json"
ROWS = PROJECT / "experiments" / "results" / "retraining.jsonl"
MOST_UNTIL_FOUND = 4_000
LOOKS = 20
SPENT = (
    "add_edges", "delete_edges", "inject_nodes", "delete_nodes", "change_features",
    "flip_labels", "add_labels", "remove_labels", "poison_graphs",
)  # fmt: skip


def source_of(way: Way, random: Random) -> Source:
    if way.source == "scans":
        return Scans.random(random, way.size)
    if way.source == "payments":
        return Payments.random(random, way.size)
    return Accounts.random(random, way.size, way.labelled)


def cost(before: Source, after: Source, trained: frozenset[int], by_content: bool) -> ac.Budget:
    if isinstance(before, Scans):
        return cost_of_scans(before, after, by_content)
    if isinstance(before, Payments):
        return cost_of_accounts(before.accounts, after.accounts, trained)
    return cost_of_accounts(before, after, trained)


def own_features(before: Source, after: Source) -> set[int]:
    """Ids of accounts whose own features were changed."""
    if isinstance(before, Payments):
        return own_features(before.accounts, after.accounts)
    if not isinstance(before, Accounts):
        return set()
    return {each for each in before.ids if after.features.get(each, before.features[each]) != before.features[each]}


@contextmanager
def small_recipes() -> Iterator[None]:
    """Recipes that depend on every single node, as those for large graphs do on thousands."""
    steps = tuple((least, 1 + least % 4) for least in range(1, 2_000))
    with patch.object(recipes, "NODE_EPOCHS", steps), patch.object(recipes, "GRAPH_EPOCHS", steps):
        yield


@contextmanager
def hidden_layers_now_and_then() -> Iterator[None]:
    """Looks for layers in training mode outside of a model once in ``LOOKS`` times: it takes half of the time.

    All it can do is refuse a model, and these are models of the library.
    """
    every = itertools.count()
    look = evaluation_mode._require_no_hidden_training

    def seldom(model: object) -> None:
        if next(every) % LOOKS == 0:
            look(model)

    with patch.object(evaluation_mode, "_require_no_hidden_training", seldom):
        yield


def case(name: str, seed: int) -> Iterator[dict[str, Any]]:
    """What each attack on one source did: checks, labels that fell, and false statements."""
    way = WAYS[name]
    random = Random(f"{name} {seed}")
    source = source_of(way, random)
    try:
        before = way.certify(source)
    except AgnncertError as error:
        yield {"refused": f"{type(error).__name__}: {error}"}
        return
    by_content = name == "isolated, content"
    for _ in range(way.attacks):
        changed = attacked(source, before, way.moves, random)
        try:
            after = way.certify(changed) if way.retrains or before.again is None else before.again(changed)
        except AgnncertError as error:
            yield {"stopped": f"{type(error).__name__}: {error}"}
            continue
        spent = cost(source, changed, before.trained | after.trained, by_content)
        yield judged(before, after, spent, own_features(source, changed))


def judged(before: Outcome, after: Outcome, spent: ac.Budget, own: set[int]) -> dict[str, Any]:
    """Compares the labels after an attack with what was certified against its cost."""
    position = {target: row for row, target in enumerate(after.targets)}
    kept = [row for row, target in enumerate(before.targets) if target in position]
    label = before.certificate.label[kept]
    now = after.certificate.label[[position[before.targets[row]] for row in kept]]
    holds = _holds(before, spent, own)[kept]
    changed = np.asarray(label != now)
    false = [kept[k] for k in np.flatnonzero(changed & holds)]
    fell = np.asarray(changed & ~holds)
    sharp = bool(fell.any()) and any((fell & _holds(before, less, own)[kept]).any() for less in _one_less(spent))
    return {
        "spent": str(spent),
        "checks": int(holds.sum()),
        "fell": int(fell.sum()),
        "sharp": int(sharp),
        "false": [f"{before.targets[row]} of radius {int(before.certificate.radius[row])}, {spent}" for row in false],
    }


def _holds(before: Outcome, spent: ac.Budget, own: set[int]) -> np.ndarray[Any, Any]:
    """Which targets are certified against a cost. Features of a target itself are another field of a budget."""
    holds = np.array(before.certificate.holds_against(spent))
    for row, target in enumerate(before.targets):
        ends = own & {*target} if isinstance(target, tuple) else own & {target}
        if ends and spent.change_features:
            others = spent.but(change_features=max(0, spent.change_features - len(ends)), target_features=True)
            holds[row] = before.certificate.holds_against(others)[row]
    return holds


def _one_less(spent: ac.Budget) -> Iterator[ac.Budget]:
    for name in SPENT:
        if getattr(spent, name):
            yield spent.but(**{name: getattr(spent, name) - 1})


def cases(attacks: int) -> list[tuple[str, int]]:
    """All cases of so many attacks. Each way gets on with its share, so that half of the cases are half of each."""
    share = sum(way.share for way in WAYS.values())
    number = {name: -(-attacks * way.share // (share * way.attacks)) for name, way in WAYS.items()}
    placed = [((seed + 0.5) / number[name], name, seed) for name in WAYS for seed in range(number[name])]
    return [(name, seed) for _, name, seed in sorted(placed)]


def summed(name: str, seed: int) -> dict[str, Any]:
    """One case as a row."""
    begin = time.process_time()
    tried = list(case(name, seed))
    done = [each for each in tried if "spent" in each]
    return {
        "way": name,
        "seed": seed,
        "attacks": len(done),
        "checks": sum(each["checks"] for each in done),
        "fell": sum(each["fell"] for each in done),
        "sharp": sum(each["sharp"] for each in done),
        "false": [text for each in done for text in each["false"]],
        "stopped": [each["stopped"] for each in tried if "stopped" in each],
        "refused": [each["refused"] for each in tried if "refused" in each],
        "seconds": round(time.process_time() - begin, 2),
    }


# Errors of old, planted again


def by_class(*drawn: Any) -> Any:
    """Draws a split by class where one by ids is asked for."""
    y, fractions, seed, *_ = drawn
    return splits.stratified_split(y, fractions, seed)


@contextmanager
def split_by_class() -> Iterator[None]:
    with patch.object(splits, "drawn_parts", by_class), patch.object(table_roles, "drawn_parts", by_class):
        yield


@contextmanager
def recipe_of_all_nodes() -> Iterator[None]:
    with patch.object(StackedVotes, "trusted_in_training", lambda self, data: data):
        yield


@contextmanager
def parts_by_position() -> Iterator[None]:
    """Sorts training graphs into parts by their places among the others."""

    def by_position(keys: Any, num_groups: int, hash: str) -> Any:
        return np.arange(len(keys)) % num_groups

    with patch.object(parts, "node_groups", by_position):
        yield


@contextmanager
def one_change_less() -> Iterator[None]:
    """Answers about one change less than was asked about."""
    exact = ac.Certificate.holds_against

    def generous(self: ac.Certificate, budget: ac.Budget) -> Any:
        answers = [exact(self, less) for less in _one_less(budget)]
        return np.any(answers, axis=0) if answers else exact(self, budget)

    with patch.object(ac.Certificate, "holds_against", generous):
        yield


PLANTED: dict[str, tuple[Callable[[], Any], tuple[str, ...]]] = {
    "a split by class": (
        split_by_class,
        ("label votes", "label votes, few", "labels and edges", "label votes, tables", "labels and edges, tables"),
    ),
    "a recipe that counts all nodes": (recipe_of_all_nodes, ("edge-blind", "edge-blind, tables")),
    "parts by position": (parts_by_position, ("isolated", "isolated, views")),
    "one change less": (one_change_less, tuple(WAYS)),
}


def until_found(fault: str, name: str, most: int = MOST_UNTIL_FOUND) -> int | None:
    """After how many attacks a planted error makes a statement false, or stops what has to go on."""
    plant, _ = PLANTED[fault]
    tried = 0
    with plant():
        for seed in itertools.count(1_000_000):
            for each in case(name, seed):
                tried += 1
                if each.get("false") or (name.startswith("isolated") and "stopped" in each):
                    return tried
                if tried >= most:
                    return None
    raise AssertionError("unreachable")


def plant_all(out: Path) -> None:
    """Plants each error in each way that it concerns, and writes after how many attacks it was found.

    What was found before is not looked for again.
    """
    for fault, (_, names) in PLANTED.items():
        for name in names:
            found = json.loads(out.read_text()) if out.exists() else {}
            planted = found.setdefault("planted_found_after", {}).setdefault(fault, {})
            if name not in planted:
                planted[name] = until_found(fault, name)
                out.write_text(json.dumps(found, indent=1) + "\n")


def rows_in(*files: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in files if file.exists() for line in file.read_text().splitlines()]


def summary(rows: list[dict[str, Any]], planted: dict[str, Any]) -> dict[str, Any]:
    """What all rows say together, way by way."""
    of_way: dict[str, Counter[str]] = {name: Counter() for name in WAYS}
    for row in rows:
        for key in ("attacks", "checks", "fell", "sharp", "seconds"):
            of_way[row["way"]][key] += row[key]
        for key in ("stopped", "refused", "false"):
            of_way[row["way"]][key] += len(row[key])
    ways = {name: {key: round(value) for key, value in counts.items()} for name, counts in of_way.items()}
    keys = ("attacks", "checks", "fell", "sharp", "stopped", "refused", "false")
    total = {key: sum(way.get(key, 0) for way in ways.values()) for key in keys}
    retrained = sum(ways[name].get("attacks", 0) for name, way in WAYS.items() if way.retrains)
    return {"total": {**total, "retrained": retrained}, "planted_found_after": planted, "ways": ways}


def main() -> None:
    """Attacks, plants errors, and writes what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attacks", type=int, default=100_000, help="attacks in all")
    parser.add_argument("--share", default="1/1", help="which share of the cases, such as 1/2")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="no case begins after so many seconds")
    parser.add_argument("--rows", type=Path, default=ROWS, help="file of finished cases; further shares add a number")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--plant", action="store_true", help="plant errors instead of attacking the code as it is")
    given = parser.parse_args()
    be_quiet()
    torch.set_num_threads(1)  # many small products
    with small_recipes(), hidden_layers_now_and_then():
        if given.plant:
            plant_all(given.out)
            return
        mine, of = (int(part) for part in given.share.split("/"))
        begin = time.monotonic()
        done = {(row["way"], row["seed"]) for row in rows_in(given.rows)}
        for number, (name, seed) in enumerate(cases(given.attacks)):
            if time.monotonic() - begin > given.seconds:
                print("time is over: the same command goes on", flush=True)
                return
            if number % of == mine % of and (name, seed) not in done:
                row = summed(name, seed)
                with given.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                if row["false"]:
                    print(f"{name}, seed {seed}: {row['false'][:3]}", flush=True)
    before = json.loads(given.out.read_text()) if given.out.exists() else {}
    found = summary(rows_in(given.rows), before.get("planted_found_after", {}))
    given.out.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found["total"]))
    if found["total"]["false"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
