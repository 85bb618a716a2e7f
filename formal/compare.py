"""Compares three derivations of the same statements: the prover's, the verifier's recount, and the extracted checker's.

    python -m formal.compare [--answers 1000000] [--seed 0] [FILE ...]

First every file (by default the golden ones and the corpus of false certificates), with the budgets that it states and with random
ones; then random votes of every rule, until enough answers were compared. In random votes some statements are made
false, which verifier and checker must both notice. Prices (Theorem 13) are asked, too: the checker must find that what the prover
states is the least price, and nothing where it is raised by one; the recount tries attacks in the order of their price, as far as
it gets. How many targets cannot get which label (Theorem 12) is derived by all three, and must be the same number for every class.
Any difference is printed, and the exit status is 1.
"""

import argparse
import math
import sys
import time
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from agnncert.certificates.budget import COUNTS, PRICED, Budget, Prices
from agnncert.certificates.file import read_contents
from agnncert.certificates.theorem_facts import EDGES_ONLY, known_theorems
from agnncert.certificates.votes import VoteRecord, Votes
from agnncert.certificates.voting_rule import VotingRule
from agnncert.divided.evidence import VoteEvidence
from agnncert.errors import AgnncertError
from agnncert.pairs.evidence import PairEvidence
from agnncert.pairs.record import PairRecord, plain_record
from agnncert.stacked.evidence import StackedEvidence
from agnncert.stacked.record import STEPS, StackedRecord
from agnncert.verdict import verify
from agnncert.verifier import recount, recount_pairs, recount_possible, recount_prices, recount_stacked
from agnncert.verifier.piles import sort_votes
from formal.extracted import Answer, ask_checker

PROJECT = Path(__file__).resolve().parents[1]
STACKED = ("stacked/sum", "stacked/mean", "stacked/gated", "stacked/edges", "stacked/two-levels")
PAIRS = ("pairs/common", "pairs/both", "pairs/trusted")
LARGEST_PRICE = 300  # the checker tries all amounts that cost less
AMOUNTS = [0, 0, 0, 0, 1, 2, 3, 5, 7, 20, 400, 10**12, math.inf]


def random_budgets(rng: np.random.Generator, number: int) -> list[Budget]:
    """Budgets with most fields zero, some small, some huge or infinite."""
    drawn = []
    for _ in range(number):
        counts = {name: float(rng.choice(AMOUNTS)) for name in COUNTS if rng.random() < rng.choice([0.15, 0.5, 1.0])}
        drawn.append(Budget(**counts, target_features=bool(rng.random() < 0.2)))
    return drawn


def small_budgets(rng: np.random.Generator, number: int) -> list[Budget]:
    """A few changes of one kind: between nothing and everything, where some classes are possible and others are not."""
    kinds = rng.choice(["add_edges", "delete_edges", "change_edges", "delete_nodes", "change_features"], number)
    return [Budget(**{str(kind): int(rng.integers(0, 8))}) for kind in kinds]


def random_prices(rng: np.random.Generator, number: int) -> list[Prices]:
    """Prices in whole units, of which at most three are positive and finite."""
    kinds, drawn = [*PRICED, "injected_edges", "target_features"], []
    for _ in range(number):
        paid = rng.choice(kinds, int(rng.integers(1, 4)), replace=False)
        free = rng.choice(kinds, int(rng.choice([0, 0, 0, 1, 2])), replace=False)
        costs = {"injected_edges": math.inf if rng.random() < 0.2 else 0} | dict.fromkeys(free, 0)
        drawn.append(Prices(**{**costs, **{str(kind): int(rng.integers(2, 10)) for kind in paid}}))
    return drawn


def is_least(counts: VoteRecord | StackedRecord, prices: Prices) -> bool:
    """Whether the prover's price is exact: the page says of some that they are lower bounds."""
    if isinstance(counts, PairRecord):
        return False
    if isinstance(counts, StackedRecord):
        return not counts.second and not (counts.by_edge and counts.pseudo)
    return not (counts.theorem == "per-pair/graph" and prices.delete_nodes < prices.change_features < math.inf)


def random_votes(rng: np.random.Generator, theorem: str, n: int) -> VoteRecord:
    """Votes that the rule allows: any classes, tiers, flags, priors, reach tables and hubs."""
    facts, division = known_theorems()[theorem], theorem.partition("/")[0]
    groups = int(rng.choice([1, 2, 5, 12, 40])) if division != "gnncert-en" else 12
    classes = int(rng.choice([1, 2, 3, 7]))
    sizes = rng.integers(0, groups + 1, n)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    group = np.concatenate([np.zeros(0, int), *(np.sort(rng.choice(groups, size, False)) for size in sizes)])
    m, favourite = len(group), np.repeat(rng.integers(-1, classes, n), sizes)
    vote = np.where(rng.random(m) < rng.choice([0.3, 0.8]), favourite, rng.integers(-1, classes, m))
    stable = rng.random(m) < rng.choice([0.7, 1.0])
    reached = np.ones(m, bool) if facts.most_unreached == 0 else rng.random(m) < 0.6
    if facts.most_unreached == 1:  # a target has one group of its own
        reached[:] = True
        reached[indptr[:-1][sizes > 0]] = rng.random((sizes > 0).sum()) < 0.5
    kinds = [kind for kind in facts.empty for _ in range(2)]
    empty: Any = kinds[rng.integers(len(kinds))]
    empty = int(rng.integers(classes)) if empty == "class" else empty
    prior: Any = 0
    if rng.random() < 0.5:
        spread = int(rng.choice([2, 10, 2**28]))  # the checker takes numbers from 2**30 on for infinite
        prior = [int(x) for x in rng.integers(-spread, spread + 1, classes)]
        prior = int(prior[0]) if facts.no_edge_prior and rng.random() < 0.5 else prior
    voting_rule = VotingRule(empty=empty, prior=prior).under(theorem, classes)
    default, default_stable = rng.integers(-1, classes, n), rng.random(n) < 0.8
    extra: dict[str, Any] = {}
    if voting_rule.no_edge_prior:
        default = rng.integers(0, classes, n)
        extra = {"no_edge": default.astype(np.int16), "no_edge_stable": default_stable}
    if voting_rule.constant is not None:
        default, default_stable = np.full(n, voting_rule.constant), np.ones(n, bool)
    if facts.one_way:
        extra["one_way"] = rng.random(m) < 0.4
    if facts.targets_per_node:
        extra["targets_per_node"] = np.sort(rng.integers(1, 6, int(rng.integers(0, 8))))[::-1].astype(np.int32)
    parameters: dict[str, int] = {"edge_groups": 3, "feature_groups": 4} if facts.parameters else {}
    if facts.prices:
        stated = {name: int(rng.choice([0, 1, 2, 9, 2**40])) for name in facts.prices if rng.random() < 0.7}
        parameters = EDGES_ONLY if rng.random() < 0.2 else stated
    reach_ptr, reach = np.zeros(n + 1, np.int64), np.zeros(0, np.int32)
    if facts.uses_reach:
        rows = [_cover_row(rng, int(reached[indptr[j] : indptr[j + 1]].sum())) for j in range(n)]
        reach_ptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
        reach = np.array([x for row in rows for x in row], dtype=np.int32)
    votes = Votes(
        groups, classes, default.astype(np.int16), default_stable, indptr, group.astype(np.int32),
        vote.astype(np.int16), stable, reached,
    )  # fmt: skip
    ids = "row" if rng.random() < 0.2 else "node_id"
    return VoteRecord(votes, theorem, reach_ptr, reach, ids, parameters, voting_rule, **extra)


def _cover_row(rng: np.random.Generator, reached: int) -> list[int]:
    if reached == 0:
        return []
    below = np.sort(rng.integers(0, reached, int(rng.integers(0, 4)))).tolist()
    return [*below, reached]


def random_stacked(rng: np.random.Generator, theorem: str, n: int) -> StackedRecord:
    """Stacked votes of a kind in STACKED: any scores, votes, gates, pseudo-counts and hubs."""
    classes, kind = int(rng.choice([2, 3, 6])), theorem.partition("/")[2]
    degree = rng.integers(0, int(rng.choice([2, 6, 20])), n)
    spread, m = STEPS * int(rng.choice([1, 4, 12])), int(degree.sum())
    shares = rng.dirichlet(np.full(classes + 1, rng.choice([0.1, 1.0])), int(rng.integers(1, 30)))[:, :classes]
    table = np.floor(shares * STEPS).astype(np.int32)
    if rng.random() < 0.3:
        table[0] = np.where(np.arange(classes) == rng.integers(classes), STEPS, 0)
    gate = np.full((n, classes), STEPS if rng.random() < 0.9 else 0, dtype=np.int64)
    settings: dict[str, Any] = {"slack": int(rng.choice([1, 1, 3, 100])), "ids": str(rng.choice(["node_id", "row"]))}
    if kind == "gated":
        gate, settings["gated"] = rng.integers(0, 2 * STEPS, (n, classes)), True
    if kind == "mean" or (kind == "edges" and rng.random() < 0.6):
        settings["pseudo"] = int(rng.integers(1, 5 * STEPS))
        settings["pseudo_votes"] = tuple(int(x) for x in rng.integers(0, STEPS, classes))
        spread = spread // 8 + 1
    if kind == "edges":
        settings["by_edge"] = True
    if kind in ("mean", "edges") and rng.random() < 0.3:
        gate, settings["gated"] = np.repeat(rng.integers(0, 2 * STEPS, (n, 1)), classes, 1), True
    if kind == "two-levels":
        settings["second"] = int(rng.choice([1, 700, 20000, STEPS // 2, STEPS - 16]))
        settings["slack"] = int(rng.choice([1, 1, 2, 3]))
    targets_per_node = np.bincount(rng.integers(0, max(m // 3, 1), m)) if m else np.zeros(0, np.int64)
    return StackedRecord(
        prior=rng.integers(-spread, spread + 1, (n, classes)), gate=gate, indptr=np.concatenate([[0], np.cumsum(degree)]),
        which=rng.integers(0, len(table), m), table=table, targets_per_node=np.sort(targets_per_node[targets_per_node > 0])[::-1].astype(np.int32), **settings,
    )  # fmt: skip


def random_pairs(rng: np.random.Generator, theorem: str, n: int) -> PairRecord:
    """Votes about pairs of a kind in PAIRS: those of stacked votes, and who votes."""
    rule = theorem.partition("/")[2]
    votes = random_stacked(rng, "stacked/sum" if rule == "trusted" or rng.random() < 0.5 else "stacked/gated", n)
    settings: dict[str, Any] = {each.name: getattr(votes, each.name) for each in fields(votes)}
    if rule == "trusted":
        settings |= {"by_edge": True, "trusted": int(rng.integers(0, 3))}
    settings["blind"] = bool(rule != "trusted" and rng.random() < 0.5)
    ends = np.stack([np.arange(n), n + rng.integers(0, 3, n)], axis=1)
    return PairRecord(**settings, pairs=ends, rule=rule, mask=str(rng.choice(["own", "targets"])))


def random_record(rng: np.random.Generator, theorem: str, n: int) -> Any:
    """Votes that a rule allows, whatever its kind."""
    if theorem in PAIRS:
        return random_pairs(rng, theorem, n)
    return random_stacked(rng, theorem, n) if theorem in STACKED else random_votes(rng, theorem, n)


def prove(record: VoteRecord | StackedRecord, budgets: list[Budget]) -> tuple[dict[str, Any], tuple[int, ...]]:
    """What the prover states about votes, or about stacked votes."""
    evidence = evidence_of(record)
    label, radius = evidence.label_and_radius()
    every = math.inf
    rest = Budget(
        delete_edges=every, change_edges=every, delete_nodes=every if record.ids == "node_id" else 0,
        change_features=every,
    )  # fmt: skip
    holds, broken, neighbours = evidence.answers(budgets, rest)
    if isinstance(record, VoteRecord) and record.task == "graph":
        neighbours = np.full(len(label), -1.0)
    stated = {"label": label, "radius": radius, "new_neighbours": neighbours, "holds": holds}
    alone = evidence.structure_radius()
    return stated | ({} if alone is None else {"structure_radius": alone}), broken


def recounted(record: VoteRecord | StackedRecord, stated: dict[str, Any], budgets: list[Budget]) -> Answer:
    """What the verifier's recount says about the same statements."""
    if isinstance(record, PairRecord):
        return recounted_pairs(record, stated, budgets)
    if isinstance(record, StackedRecord):
        return recounted_stacked(record, stated, budgets)
    wrong = dict.fromkeys(("label", "radius", "new_neighbours", "structure_radius"), 0)
    answers: list[list[recount.Answers]] = [[] for _ in budgets]
    for piles in sort_votes(record):
        part = piles.part.targets
        wrong["label"] += int((stated["label"][part] != piles.label).sum())
        wrong["radius"] += int((stated["radius"][part] != recount.radius(piles)).sum())
        wrong["new_neighbours"] += int((~recount.right_neighbours(piles, stated["new_neighbours"][part])).sum())
        structure_radius = recount.structure_radius(piles)
        if structure_radius is not None:
            wrong["structure_radius"] += int((stated["structure_radius"][part] != structure_radius).sum())
        for budget, of_budget in zip(budgets, answers, strict=True):
            of_budget.append(recount.answers(piles, budget))
    joined = [recount.join_answers(of_budget) for of_budget in answers]
    wrong_budgets = [int((stated["holds"][i] != answer.holds).sum()) for i, answer in enumerate(joined)]
    broken = [recount.broken(record, budget, answer) for budget, answer in zip(budgets, joined, strict=True)]
    return Answer(wrong, wrong_budgets, broken)


def recounted_stacked(counts: StackedRecord, stated: dict[str, Any], budgets: list[Budget]) -> Answer:
    """The same for stacked votes."""
    again = recount_stacked
    tables, rest = again.tables_of(counts), again.but_additions(counts)
    right = {
        "label": stated["label"] == again.label_is(counts, tables),
        "radius": again.right_radius(tables, stated["radius"], structure=False),
        "new_neighbours": again.right_neighbours(counts, tables, rest, stated["new_neighbours"]),
        "structure_radius": again.right_radius(tables, stated["structure_radius"], structure=True),
    }
    holds = [again.holds(counts, tables, budget) for budget in budgets]
    radii = stated["radius"], stated["structure_radius"]
    broken = [again.broken(counts, b, ~held, *radii) for b, held in zip(budgets, holds, strict=True)]
    differ = [int((stated["holds"][i] != held).sum()) for i, held in enumerate(holds)]
    return Answer({name: int((~where).sum()) for name, where in right.items()}, differ, broken)


def recounted_pairs(counts: PairRecord, stated: dict[str, Any], budgets: list[Budget]) -> Answer:
    """The same for votes about pairs."""
    tables = recount_stacked.tables_of(counts)
    right = {
        "label": stated["label"] == recount_stacked.label_is(counts, tables),
        "radius": recount_pairs.right_radius(counts, tables, stated["radius"], altering=not counts.blind),
        "new_neighbours": recount_pairs.right_additions(counts, tables, stated["new_neighbours"]),
        "structure_radius": recount_pairs.right_radius(counts, tables, stated["structure_radius"], altering=False),
    }
    holds = [recount_stacked.holds(counts, tables, recount_pairs.in_votes(counts, budget)) for budget in budgets]
    differ = [int((stated["holds"][i] != held).sum()) for i, held in enumerate(holds)]
    wrong = {name: int((~where).sum()) for name, where in right.items()}
    return Answer(wrong, differ, [int((~held).sum()) for held in holds])


def falsify(rng: np.random.Generator, stated: dict[str, Any]) -> dict[str, Any]:
    """The statements, some of them altered."""
    altered = {}
    for name, values in stated.items():
        hit = rng.random(values.shape) < 0.1
        other = ~values if values.dtype == bool else values + rng.choice([-2, -1, 1, 3], values.shape)
        altered[name] = np.where(hit, other, values)
    return altered


def evidence_of(counts: VoteRecord | StackedRecord) -> Any:
    """The same numbers in the hands of the prover."""
    stored = {each.name: getattr(counts, each.name) for each in fields(counts)}
    if isinstance(counts, PairRecord):
        return PairEvidence(**stored)
    return (VoteEvidence if isinstance(counts, VoteRecord) else StackedEvidence)(**stored)


def excluded_by_two(
    counts: VoteRecord | StackedRecord, budget: Budget, evidence: Any = None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How many targets cannot get each label, as the prover (given ``evidence_of(counts)``) and as the recount derive it."""
    again: Any = recount_possible.of_votes if isinstance(counts, VoteRecord) else recount_stacked.possible
    if isinstance(counts, PairRecord):
        again = in_pairs
    evidence = evidence_of(counts) if evidence is None else evidence
    answers = (np.asarray(evidence.possible(budget)), np.asarray(again(counts, budget)))
    proved, recounted = (tuple(int(x) for x in (~possible).sum(axis=0)) for possible in answers)
    return proved, recounted


def in_pairs(counts: PairRecord, budget: Budget) -> Any:
    """Which classes each pair may get, as the recount derives it."""
    return recount_stacked.possible(plain_record(counts), recount_pairs.in_votes(counts, budget))


class Comparison:
    """Counts answers, and tells where two derivations differ."""

    def __init__(self) -> None:
        self.answers = self.exclusions = self.differ = 0

    def add(
        self,
        what: str,
        record: VoteRecord | StackedRecord,
        stated: dict[str, Any],
        budgets: list[Budget],
        broken: Any = None,
    ) -> None:
        """Compares recount and extracted checker about these statements, and ``broken`` with both if it is given."""
        extracted, again = ask_checker(record, stated, budgets), recounted(record, stated, budgets)
        self.answers += record.num_targets * (len(stated) - 1 + len(budgets)) + len(budgets)
        for name, number in again.wrong.items():
            if extracted.wrong[name] != number:
                self.report(
                    f"{what}: {name} wrong {number} times by the recount, {extracted.wrong[name]} by the checker"
                )
        refused = sum(again.wrong.values()) + sum(again.wrong_budgets)
        if broken is not None and refused:  # what the prover states, and nobody altered
            self.report(f"{what}: the recount refuses {refused} statements of the prover")
        for i, budget in enumerate(budgets):
            if extracted.wrong_budgets[i] != again.wrong_budgets[i]:
                self.report(f"{what}: {budget} wrong {again.wrong_budgets[i]} and {extracted.wrong_budgets[i]} times")
            numbers = {extracted.broken[i], again.broken[i], *([] if broken is None else [broken[i]])}
            # Of stacked votes the number follows from the stated radii: from false ones it says nothing.
            if len(numbers) > 1 and not (broken is None and isinstance(record, StackedRecord)):
                self.report(
                    f"{what}: {budget} breaks {again.broken[i]} and {extracted.broken[i]}, or {broken and broken[i]}"
                )

    def add_prices(
        self, what: str, counts: VoteRecord | StackedRecord, stated: dict[str, Any], asked: list[Prices]
    ) -> None:
        """Compares what the prover states as prices with the extracted checker, and with the recount as far as it gets."""
        evidence = evidence_of(counts)
        price = np.stack([evidence.cheapest(prices) for prices in asked])
        if price.max(initial=0, where=np.isfinite(price)) > LARGEST_PRICE:
            return
        least = [(prices, is_least(counts, prices)) for prices in asked]
        base, zero = {**stated, "holds": np.zeros((0, counts.num_targets), bool)}, [0] * len(asked)
        for raised, expected in ((0, zero), (1, [counts.num_targets - int(np.isinf(row).sum()) for row in price])):
            answer = ask_checker(counts, base | {"price": price + raised}, (), least)
            for prices, exact, wrong, right in zip(
                asked, (e for _, e in least), answer.wrong_prices, expected, strict=True
            ):
                self.answers += counts.num_targets
                if wrong != right and (exact or not raised):
                    self.report(f"{what}: {prices} wrong {wrong} times, raised by {raised}")
        if counts.num_targets > 5:
            return
        kind = "votes" if isinstance(counts, VoteRecord) else evidence.kind
        contents: Any = SimpleNamespace(kind=kind, evidence=counts.tensors(), settings=counts.settings())
        for prices, row in zip(asked, price, strict=True):
            again = recount_prices.cheapest(contents, prices, tries=300)
            shared = math.isfinite(prices.inject_nodes) and 0 < prices.injected_edges < math.inf  # all have as many
            bound = isinstance(counts, PairRecord) and counts.rule == "both"  # an edge pays for two votes at once
            if not shared and not bound and (again > row).any():
                self.report(f"{what}: {prices} cost {row.tolist()}, {again.tolist()} by the recount")

    def add_exclusions(
        self, what: str, counts: VoteRecord | StackedRecord, stated: dict[str, Any], budgets: list[Budget]
    ) -> None:
        """Compares how many targets cannot get each label, by prover, recount and extracted checker: one answer for each class."""
        base, every = {**stated, "holds": np.zeros((len(budgets), counts.num_targets), bool)}, [True] * len(budgets)
        evidence = evidence_of(counts)
        for budget, found in zip(budgets, ask_checker(counts, base, budgets, (), every).excluded, strict=True):
            proved, again = excluded_by_two(counts, budget, evidence)
            self.answers, self.exclusions = self.answers + len(proved), self.exclusions + len(proved)
            if not proved == again == found:
                self.report(
                    f"{what}: {budget} cannot give {proved} targets each label, {again} by the recount, {found} by the checker"
                )

    def report(self, text: str) -> None:
        """Notes a difference."""
        self.differ += 1
        print("DIFFERS", text)


def compare_files(files: list[Path], rng: np.random.Generator, found: Comparison) -> Iterator[str]:
    """Compares what files state, and answers to random budgets about their votes."""
    for file in files:
        try:
            contents = read_contents(file)
            if contents.kind not in ("votes", "stacked"):
                continue
            kind: Any = VoteRecord if contents.kind == "votes" else StackedRecord
            record = kind.load(contents.evidence, contents.settings)
        except (AgnncertError, ArithmeticError, LookupError, TypeError, ValueError):
            yield f"{file.name}: refused before anything is derived from it"
            continue
        if len(contents.arrays["target"]) != record.num_targets:
            yield f"{file.name}: refused, it is not about the targets that it names"
            continue
        stated = {name: contents.arrays[name] for name in ("label", "radius", "new_neighbours")}
        if contents.kind == "stacked" or record.theorem.startswith("per-"):
            if "structure_radius" not in contents.arrays:
                yield f"{file.name}: refused, a radius is missing"
                continue
            stated["structure_radius"] = contents.arrays["structure_radius"]
        found.add(file.name, record, stated | {"holds": contents.arrays["holds"]}, list(contents.budgets))
        budgets = random_budgets(rng, 40)
        proved, broken = prove(record, budgets)
        found.add(f"{file.name}, random budgets", record, proved, budgets, broken)
        found.add_prices(f"{file.name}, prices", record, proved, random_prices(rng, 4))
        found.add_exclusions(
            f"{file.name}, exclusions", record, proved, [*contents.budgets, *budgets, *small_budgets(rng, 20)]
        )
        yield f"{file.name}: {'accepted' if verify(file).holds else 'refused'}"


def main() -> int:
    """Runs the comparison, and prints what was compared."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--answers", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    begin, rng, found = time.perf_counter(), np.random.default_rng(asked.seed), Comparison()
    files = asked.files or sorted(PROJECT.glob("tests/soundness/golden/v*/*.cert")) + sorted(
        PROJECT.glob("tests/soundness/corpus/**/*.cert")
    )
    lines = list(compare_files(files, rng, found))
    refused = sum("refused" in line for line in lines)
    print(f"{len(lines)} files of votes, {refused} refused by the verifier: {found.answers:,} answers")
    rules = [*known_theorems(), *STACKED, *PAIRS]
    rounds, by_rule = 0, dict.fromkeys(rules, 0)
    while found.answers < asked.answers:
        theorem, before = rules[rounds % len(rules)], found.answers
        record, budgets = random_record(rng, theorem, int(rng.choice([1, 5, 60, 200]))), random_budgets(rng, 25)
        stated, broken = prove(record, budgets)
        what = f"seed {asked.seed}, round {rounds}, {theorem}"
        if rng.random() < 0.3:
            found.add(f"{what}, falsified", record, falsify(rng, stated), budgets)
        else:
            found.add(what, record, stated, budgets, broken)
            found.add_prices(what, record, stated, random_prices(rng, 6))
            found.add_exclusions(what, record, stated, [*budgets, *small_budgets(rng, 25)])
        by_rule[theorem] += found.answers - before
        rounds += 1
    for theorem, number in by_rule.items():
        print(f"  {theorem}: {number:,}")
    print(f"{found.exclusions:,} numbers of targets that cannot get a label are among them")
    print(f"{found.answers:,} answers compared, {found.differ} differ, {time.perf_counter() - begin:.0f} s")
    return 1 if found.differ else 0


if __name__ == "__main__":
    sys.exit(main())
