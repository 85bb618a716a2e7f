"""Attacks on stacked votes for as long as one likes: ``python -m tests.soundness.attacks.offline_stacked --attacks 50000 --seeds 1 2 3 4``.

Models with random weights under every rule, on random graphs of four nodes. Each attack changes the graph, all scores
are computed again on the changed graph, and the class that wins must be one that the evidence of the graph before the
attack calls possible, and the verifier too. Before that, errors are planted in the prover, one at a time, and each has to
be found: a search that finds no error that is there proves nothing by finding none. What was tried is written to
``experiments/results/stacked-fuzz.json``.
"""

import argparse
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import agnncert as ac
from agnncert.stacked import evidence as prover
from agnncert.verifier import recount_stacked as recount
from tests.soundness.laws.test_stacked_graphs import KINDS, NODES, RULES, cases, counted, edited, winners
from tests.support.mutations import plant_text
from tests.support.paths import PROJECT

RESULT = PROJECT / "experiments" / "results" / "stacked-fuzz.json"
MOST_UNTIL_FOUND = 50_000
# What is planted, and the rules that it breaks.
PLANTED = {
    "lost neighbours are free": (
        "rival.sum_of_largest[entry] - self._slack(rival.k)[owner]", "self._slack(rival.k)[owner]", ["sum", "edge values"],
    ),
    "a new neighbour costs half": (
        "num_for_rival * rival.cap[owner]", "num_for_rival * (rival.cap[owner] // 2)", ["sum", "gated", "trusted"],
    ),
    "new neighbours leave a mean as it is": (
        "[Growth(none, none), Growth(num_new, num_new)]", "[Growth(none, none)]", ["mean"],
    ),
    "nodes of a second level move nothing": (
        "loss = moved_by_nodes(self._vote_for_label, self.vote[:, k], record.second, nodes, record.slack)",
        "loss = 0 * self._vote_for_label", ["two levels"],
    ),
    "an altered neighbour costs as a new one": (" + num_lost + num_altered", " + num_lost", ["sum", "mean"]),
}  # fmt: skip

World = tuple[ac.Budget, dict[int, int], dict[tuple[int, int], Any]]


def attacked(
    kinds: dict[int, int], pairs: dict[tuple[int, int], Any], trusted: set[tuple[int, int]]
) -> Iterator[World]:
    """Attacked graphs, each with the budget that it takes. Node 0 is the target; what is trusted stays as it is."""
    for after, added, deleted in edited(pairs, trusted, 2, range(NODES)):
        yield ac.Budget(add_edges=added, delete_edges=deleted), kinds, after
    inject = ac.Budget(inject_nodes=1, edges_per_injected=math.inf)
    for kind, size in itertools.product(range(KINDS), range(NODES + 1)):
        for joined in itertools.combinations(range(NODES), size):
            brought = {(node, NODES): (1.0, -1.0) for node in joined}
            yield inject, {**kinds, NODES: kind}, {**pairs, **brought}
    for node in set(range(1, NODES)) - set(itertools.chain(*trusted)):
        kept = {pair: value for pair, value in pairs.items() if node not in pair}
        yield ac.Budget(delete_nodes=1), {one: kind for one, kind in kinds.items() if one != node}, kept
        for kind in range(KINDS):
            for after, added, deleted in edited(pairs, trusted, 1, range(NODES)):
                budget = ac.Budget(change_features=1, add_edges=added, delete_edges=deleted)
                yield budget, {**kinds, node: kind}, after


def tries(rules: list[str], seed: int) -> Iterator[tuple[str, ac.Budget, bool, str]]:
    """Rule, budget, whether the label was certified against it, and what is wrong ("" if nothing), attack by attack."""
    for number in itertools.count(1_000_000 * (seed + 1)):
        for rule in rules:
            ((model, kinds, pairs, trusted),) = cases(rule, [number])
            evidence = counted(model, kinds, pairs, trusted)
            worlds = list(attacked(kinds, pairs, trusted))
            found = winners(model, [(of_nodes, of_pairs, trusted) for _, of_nodes, of_pairs in worlds])
            answers: dict[ac.Budget, Any] = {}
            for (budget, _, _), winner in zip(worlds, found, strict=True):
                if budget not in answers:
                    answers[budget] = evidence.possible(budget)[0], recount.possible(evidence, budget)[0]
                possible, again = answers[budget]
                wrong = ""
                if not possible[winner]:
                    wrong = "a class won that was called impossible"
                elif possible.tolist() != again.tolist():
                    wrong = "the verifier names other classes"
                yield rule, budget, possible.sum() == 1, wrong


def until_found(mistake: str, seed: int) -> int | None:
    """After how many attacks a planted error is found."""
    old, new, rules = PLANTED[mistake]
    with pytest.MonkeyPatch.context() as patch:
        plant_text(patch, prover, old, new)
        for number, (_, _, _, wrong) in enumerate(tries(rules, seed), start=1):
            if wrong == "a class won that was called impossible":
                return number
            if number >= MOST_UNTIL_FOUND:
                return None
    raise AssertionError("unreachable")


def search(attacks: int, seed: int) -> dict[str, Any]:
    """Tries this many attacks on the code as it is."""
    by_rule: Counter[str] = Counter()
    certified: Counter[str] = Counter()
    wrong: list[str] = []
    for rule, budget, held, reason in itertools.islice(tries(list(RULES), seed), attacks):
        by_rule[rule] += 1
        certified[rule] += bool(held)
        if reason:
            wrong.append(f"{rule}, {budget}: {reason}")
    return {
        "attacks": attacks,
        "by_rule": dict(by_rule),
        "against_certified": dict(certified),
        "wrong": wrong[:20],
        "number_wrong": len(wrong),
    }


def main() -> None:
    """Plants errors, then searches, and writes what was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--attacks", type=int, default=50_000, help="attacks for each seed")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3, 4])
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    torch.set_num_threads(1)  # many small products
    planted = {}
    for mistake in PLANTED:
        planted[mistake] = until_found(mistake, seed=0)
        print(f"{mistake}: found after {planted[mistake]} attacks", flush=True)
    if None in planted.values():
        raise SystemExit("a planted error was not found: the search is too weak to say anything.")
    shares = []
    for seed in given.seeds:
        shares.append({"seed": seed, **search(given.attacks, seed)})
        print(f"seed {seed}: {given.attacks:,} attacks, {shares[-1]['number_wrong']} wrong", flush=True)
    text = json.dumps({"planted_found_after": planted, "shares": shares}, indent=1)
    given.out.write_text(text + "\n", encoding="utf-8")
    if any(share["number_wrong"] for share in shares):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
