"""No attack within a certified budget changes a label; beyond it attacks succeed."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import agnncert as ac
from agnncert.attacks import AttackReport, VoteProblem, attack, greedy, random
from agnncert.attacks.api import SEEDED
from agnncert.divided.evidence import VoteEvidence
from agnncert.graphs.canonical import canonical
from agnncert.proving.certificate import Certificate
from experiments.benchmarks.hubs import hubs
from tests.support.neighbour_graphs import MIXED, fits, setting

# Attacks, and what each is given to spend, and with what else.
SPENDS = [
    ("greedy", "add_edges", {}),
    ("greedy", "inject_nodes", {"edges_per_injected": 2}),
    ("greedy", "delete_edges", {"delete_nodes": 1}),
    ("greedy", "change_features", {}),
    ("random", "add_edges", {"delete_edges": 1}),
]


def budgets_of(certificate: Certificate, field: str, rest: dict[str, int], more: int) -> list[ac.Budget]:
    """The largest certified budget of each target, and ``more``."""
    largest = np.clip(certificate.max_certified(field, **rest), 0, 20)
    return [ac.Budget(**{field: int(size) + more}, **rest) for size in largest]


def report_of(arena: dict[str, Any], kind: str, budgets: list[ac.Budget], certificate: Certificate) -> AttackReport:
    """As ``attack`` gives it, for a problem and adversarial features that were found once."""
    if kind == "greedy":
        results = greedy(arena["problem"], None, budgets, features=arena["features"])
    else:
        results = SEEDED[kind](arena["problem"], None, budgets, seed=0)
    return AttackReport(tuple(results), tuple(budgets), certificate)


@pytest.mark.parametrize(("kind", "field", "rest"), SPENDS)
@pytest.mark.parametrize("more", [0, 2])
def test_attacks_stay_within_their_budget_and_never_refute_a_certificate(
    arena: dict[str, Any], kind: str, field: str, rest: dict[str, int], more: int
) -> None:
    certificate = arena["certificate"]
    budgets = budgets_of(certificate, field, rest, more)
    report = report_of(arena, kind, budgets, certificate)
    assert all(fits(result.cost, budget) for result, budget in zip(report.results, budgets, strict=True))
    assert not report.violations
    assert not (report.succeeded & report.certified).any()


def test_what_is_reported_is_what_the_plain_engine_votes_on_the_whole_attacked_graph(arena: dict[str, Any]) -> None:
    problem = arena["problem"]
    rows = problem.rows(None)
    before = problem.outcomes(rows)
    results = [*random(problem, None, MIXED), *greedy(problem, None, MIXED, features=arena["features"])]
    assert sum(result.succeeded for result in results) > 0
    for k, result in enumerate(results):
        again = problem.outcomes_in_whole_graph([result.row], result.perturbation, engine="naive")[0]
        assert result.label_after == problem.winner(again)
        assert result.moved == (again != before[k % len(rows)]).sum()
        moved = arena["division"].moved_groups(
            result.perturbation,
            problem.graph if problem.task == "node" else canonical(arena["data"][result.row]),
            result.row if problem.task == "node" else None,
        )
        assert set(np.flatnonzero(again != before[k % len(rows)])) <= moved


def test_mixed_attacks_of_any_kind_never_refute_a_certificate(arena: dict[str, Any]) -> None:
    certificate = arena["certificate"]
    for kind in ("greedy", "random", ["greedy", "random"]):
        report = attack(arena["model"], arena["data"], budget=MIXED, kind=kind, certificate=certificate)
        assert not report.violations
        assert all(fits(result.cost, MIXED) for result in report.results)
        if kind == "greedy":
            assert report == report_of(arena, kind, [MIXED] * len(report.results), certificate)


def test_one_step_beyond_the_certified_number_injection_breaks_most_targets(arena: dict[str, Any]) -> None:
    certificate = arena["certificate"]
    largest = certificate.max_certified("inject_nodes", edges_per_injected=1)
    budgets = [ac.Budget(inject_nodes=int(size) + 1, edges_per_injected=1) for size in largest]
    results = greedy(arena["problem"], None, budgets, features=arena["features"])
    assert np.mean([result.succeeded for result in results]) > 0.6


def test_greedy_is_stronger_than_random(arena: dict[str, Any]) -> None:
    budget = ac.Budget(add_edges=2, inject_nodes=1, edges_per_injected=2, change_features=1)
    wins = {
        "greedy": np.array([r.succeeded for r in greedy(arena["problem"], None, budget, features=arena["features"])]),
        "random": np.array([r.succeeded for r in random(arena["problem"], None, budget)]),
    }
    assert wins["greedy"].sum() > wins["random"].sum()


class Boastful(VoteEvidence):
    """Evidence that promises three steps more than it proves."""

    def holds(self, budget: ac.Budget) -> Any:
        spent = {name: max(0, getattr(budget, name) - 3) for name in ("add_edges", "inject_nodes", "change_features")}
        return super().holds(budget.but(**spent))


def test_a_certificate_that_promises_three_steps_too_many_is_refuted(arena: dict[str, Any]) -> None:
    honest = arena["certificate"]
    parts = honest.evidence
    boast = Certificate(
        honest.claim,
        Boastful(parts.votes, parts.theorem, parts.reach_ptr, parts.reach, parts.ids, parts.parameters),
        honest.target,
        honest.row,
    )
    for field, rest in [("inject_nodes", {"edges_per_injected": 1}), ("add_edges", {"change_features": 1})]:
        largest = np.clip(honest.max_certified(field, **rest), 0, 9)
        budgets = [ac.Budget(**{field: int(size) + 3}, **rest) for size in largest]
        report = report_of(arena, "greedy", budgets, boast)
        assert len(report.violations) > 0, field
        # The attack knows the division, the rule and the targets alone, which both certificates share.
        assert not replace(report, certificate=honest).violations


@pytest.mark.parametrize("division", ["E", "N"])
@pytest.mark.parametrize("each", [4, math.inf])
def test_hubs_break_no_more_targets_than_the_collective_bound(division: str, each: float) -> None:
    model, data, division = setting("node", division, num_groups=9)
    certificate, problem = ac.certify(model, data, division), VoteProblem(model, data, division)
    broken = 0
    for count in (1, 3, 5):
        budget = ac.Budget(inject_nodes=count, edges_per_injected=each)
        report = AttackReport(tuple(hubs(problem, None, budget)), (budget,) * data.num_nodes, certificate)
        assert not report.violations
        shared: dict[int, list[Any]] = {}
        for result in report.results:
            assert fits(result.cost, budget)
            shared.setdefault(id(result.perturbation), []).append(result)
        assert len(shared) < len(report.results)
        for results in shared.values():
            fallen = sum(result.succeeded for result in results)
            assert fallen <= certificate.broken_at_most(results[0].cost)
            broken += fallen
    assert broken > 0
