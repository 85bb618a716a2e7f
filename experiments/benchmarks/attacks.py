"""Attacks on real certificates: at the certified budget none may succeed, just beyond it most should.

    python -m experiments.benchmarks.attacks [--root FOLDER] [--scale 1.0] [--fresh] [--only NAME ...] [--votes | --undefended]

trains small models on Cora-ML and PROTEINS, certifies them, attacks them, and writes experiments/benchmarks/results/attacks.json
and attacks.md. Every row is stored as soon as it is measured; a run that was cut goes on where it stopped. With
``--votes`` the same for votes with a prior, for constants of empty groups and for one group per neighbour:
attacks_votes.json and attacks_votes.md. With ``--undefended`` only the attacks on the same weights without a vote.
"""

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import torch

import agnncert as ac
from agnncert import attacks
from agnncert.attacks.api import holds_each
from agnncert.training.settings import tuned_arguments
from experiments.benchmarks import hubs as hub_attack

RESULTS = Path(__file__).parent / "results"
INF = math.inf
BEYOND = (0, 1, 4)

SETTINGS = [("cora-ml", 30), ("cora-ml", 10), ("proteins", 30)]
TARGETS = 300  # attacked one by one at the certified budget
FEWER = 80  # attacked beyond it

# Votes with a prior: dataset, division, vote. Constants for graphs are those that choose_vote finds for size 2. The
# committed rows of MUTAG are of models that were trained for size 2, by an objective that the library no longer has.
VOTES = [
    ("cora-ml", ac.PerNeighbour(), ac.VotingRule(prior=4)),
    ("cora-ml", ac.PerEdge(), ac.VotingRule(prior=4)),
    ("cora-ml", ac.NodeCentric(30), ac.VotingRule(empty="abstain", prior=4)),
    ("mutag", ac.NodeCentric(300), 2),
    ("mutag", ac.EdgeCentric(100), 2),
]

UNLIMITED = {"delete_edges": INF, "change_edges": INF, "delete_nodes": INF, "change_features": INF}
MIX = {"delete_edges": 2, "inject_nodes": 1, "edges_per_injected": 3, "change_features": 1}

# Attack (what a greedy one spends, or how it searches), the field of the budget that is raised beyond what is certified,
# the rest of the budget.
NODE_PLANS = [
    ("greedy", "add_edges", {}),
    ("greedy", "add_edges", UNLIMITED),
    ("greedy", "add_edges", MIX),
    ("injection", "inject_nodes", {"edges_per_injected": 5}),
    ("injection", "inject_nodes", {"edges_per_injected": INF}),
    ("deletions", "delete_edges", {}),
    ("features", "change_features", {}),
    ("random", "add_edges", MIX),
]
GRAPH_PLANS = [
    ("greedy", "add_edges", {}),
    ("greedy", "add_edges", MIX),
    ("injection", "inject_nodes", {"edges_per_injected": 1}),
    ("injection", "inject_nodes", {"edges_per_injected": 5}),
    ("deletions", "delete_edges", {}),
    ("deletions", "delete_nodes", {}),
    ("features", "change_features", {}),
    ("random", "add_edges", MIX),
]
TINY_PLANS = [("exhaustive", "delete_edges", {}), ("exhaustive", "add_edges", {})]
HUBS = (1, 3, 5, 10, 14, 16)
GRADIENT_TARGETS = 10
ON_MODEL, ON_LABEL = "greedy on the model", "gradient on the model"  # by the margin of logits; by the hard label
SMALL, EXHAUSTED = 16, 20  # nodes of a graph, and number of such graphs, on which all sets of edges are tried
RECAST = 1  # results of every row that the plain engine votes on again, on the whole attacked graph


class Store:
    """Rows by key, written after each one."""

    def __init__(self, file: Path, fresh: bool) -> None:
        self.file = file
        self.rows = json.loads(file.read_text())["rows"] if file.exists() and not fresh else []

    def has(self, key: dict) -> bool:  # type: ignore[type-arg]
        return any(all(row.get(name) == value for name, value in key.items()) for row in self.rows)

    def add(self, row: dict) -> None:  # type: ignore[type-arg]
        self.rows.append(row)
        self.file.parent.mkdir(exist_ok=True)
        self.file.write_text(
            json.dumps({"command": "python -m experiments.benchmarks.attacks", "rows": self.rows}, indent=1) + "\n"
        )
        print(
            {name: row[name] for name in ("division", "attack", "field", "beyond", "targets", "changed", "refuted")},
            flush=True,
        )


class Arena:
    """One trained model with its certificate."""

    def __init__(self, dataset, division, options, count, voting_rule=None) -> None:  # type: ignore[no-untyped-def]
        self.dataset, self.division = dataset, division
        self.data = ac.load_dataset(dataset, root=options.root)
        self.task = "graph" if dataset in ("proteins", "mutag") else "node"
        model_args, fit_args = tuned_arguments(dataset, self.task)
        model = ac.build_model("gcn", self.data, **model_args)
        options.models.mkdir(parents=True, exist_ok=True)
        state = (
            options.models
            / f"{dataset}-{type(division).__name__}-{'' if division.is_per_neighbour else division.num_groups}.state"
        )
        self.model = ac.fit(model, self.data, division, checkpoint=state, **fit_args)
        if isinstance(voting_rule, int):  # a design size
            choice = ac.choose_voting_rule(
                self.model, self.data, division, voting_rule, candidates=[division.num_groups]
            )
            voting_rule = max(
                (one for one in choice.candidates if one.label is None), key=lambda one: one.score
            ).theorem
        self.voting_rule = voting_rule
        total = len(self.data) if self.task == "graph" else self.data.num_nodes
        self.rows = np.sort(np.random.default_rng(0).choice(total, min(count, total), replace=False))
        self.certificate = ac.certify(self.model, self.data, division, targets=self.rows, voting_rule=voting_rule)
        self.everyone = self.certificate if voting_rule else ac.certify(self.model, self.data, division)
        self.digest = self.everyone.claim.digests["model"][:12]
        self.problem = attacks.VoteProblem(self.model, self.data, division, voting_rule)
        self.features = attacks.AdversarialFeatures.of(self.problem)
        self.recasts = 0 if division.is_per_neighbour else RECAST  # one subgraph for each node of the graph: minutes

    def key(self, attack: str, field: str, rest: dict, beyond: object) -> dict:  # type: ignore[type-arg]
        stated = {name: str(value) for name, value in rest.items()}
        return {
            "dataset": self.dataset, "division": str(self.division), "model": self.digest,
            "attack": attack, "field": field, "rest": stated, "beyond": beyond,
            **({} if self.voting_rule is None else {"vote": str(self.voting_rule)}),
        }  # fmt: skip

    def measured(self, key, results, budgets, chosen, started) -> dict:  # type: ignore[no-untyped-def,type-arg]
        """What came of one attack, and whether it refutes anything."""
        for result, budget in zip(results, budgets, strict=True):
            assert budget.allows(result.cost)
        changed = np.array([result.succeeded for result in results])
        real = np.array([result.cost != ac.Budget() for result in results])
        certified = self.holds(budgets, chosen)
        refuted = changed & self.holds([result.cost for result in results], chosen)
        sizes = [getattr(budget, key["field"]) for budget in budgets]
        return {
            **key,
            "targets": len(results),
            "attacked_while_certified": int((certified & real).sum()),
            "changed": int(changed.sum()),
            "refuted": int(refuted.sum()),
            "median_size": float(np.median(sizes)),
            "votes_moved": round(float(np.mean([result.moved for result in results])), 2),
            "recast_in_full": min(self.recasts, len(results)),
            "recast_otherwise": self.recast(results),
            "seconds": round(time.perf_counter() - started, 1),
        }

    def holds(self, budgets, chosen):  # type: ignore[no-untyped-def]
        """Whether some targets are certified, each against a budget of its own; all nodes if ``chosen`` is None."""
        if chosen is None:
            return holds_each(self.everyone, budgets)
        spread = [ac.Budget()] * len(self.rows)
        for k, budget in zip(chosen.tolist(), budgets, strict=True):
            spread[k] = budget
        return holds_each(self.certificate, spread)[chosen]

    def recast(self, results) -> int:  # type: ignore[no-untyped-def]
        """How many of a few results the plain engine contradicts on the whole attacked graph."""
        step = max(1, len(results) // RECAST)
        wrong = 0
        for result in results[::step][: self.recasts]:
            votes = self.problem.outcomes_in_whole_graph([result.row], result.perturbation, engine="naive")[0]
            wrong += self.problem.winner(votes) != result.label_after
        return wrong


def plans_of(arena: Arena):  # type: ignore[no-untyped-def]
    """What is tried; all sets of edges too, where graphs are small and votes are designed."""
    if arena.task == "node":
        return NODE_PLANS
    return [*GRAPH_PLANS, *TINY_PLANS] if arena.voting_rule else GRAPH_PLANS


def one_by_one(arena: Arena, store: Store) -> None:
    """Every target with a budget of its own: what it withstands, and (fewer of them) a little more."""
    for attack, field, rest in plans_of(arena):
        largest = arena.certificate.max_certified(field, **rest)
        if attack == "exhaustive":
            largest = np.where(largest <= 1, largest, -1)
        cases = [(beyond, np.flatnonzero((largest >= 0) & (largest < INF))) for beyond in BEYOND]
        for beyond, chosen in [*cases, ("any number", np.flatnonzero(largest == INF))]:
            chosen = chosen[: FEWER if beyond in BEYOND[1:] else None]
            key = arena.key(attack, field, rest, beyond)
            if not len(chosen) or store.has(key) or (attack == "random" and beyond not in (0, 4)):
                continue
            if attack == "exhaustive" and beyond not in (0, 1):
                continue
            sizes = [INF if beyond == "any number" else int(largest[k]) + beyond for k in chosen]
            run(arena, store, key, attack, chosen, [ac.Budget(**{field: size}, **rest) for size in sizes])


def run(arena: Arena, store: Store, key, attack, chosen, budgets) -> None:  # type: ignore[no-untyped-def]
    started, rows = time.perf_counter(), arena.rows[chosen]
    if attack == "random":
        results = attacks.random(arena.problem, rows, budgets)
    elif attack == "exhaustive":
        small = [k for k, row in enumerate(rows) if arena.data[int(row)].num_nodes <= SMALL][:EXHAUSTED]
        chosen, budgets = chosen[small], [budgets[k] for k in small]
        if not small:
            return
        results = attacks.exhaustive(arena.problem, rows[small], budgets)
    else:
        results = attacks.greedy(arena.problem, rows, budgets, features=arena.features)
    store.add(arena.measured(key, results, budgets, chosen, started))


def hubs(arena: Arena, store: Store) -> None:
    """All nodes of the graph at once."""
    for count in HUBS:
        rest = {"edges_per_injected": INF}
        key = arena.key("hubs", "inject_nodes", rest, f"{count} hubs")
        if count > arena.division.num_groups or store.has(key):
            continue
        started, budget = time.perf_counter(), ac.Budget(inject_nodes=count, **rest)
        results = hub_attack.hubs(arena.problem, None, budget, features=arena.features)
        row = arena.measured(key, results, [budget] * len(results), None, started)
        shared: dict[int, list] = {}  # type: ignore[type-arg]
        for result in results:
            shared.setdefault(id(result.perturbation), []).append(result)
        above = sum(
            sum(result.succeeded for result in group) > arena.everyone.broken_at_most(group[0].cost)
            for group in shared.values()
        )
        store.add({**row, "graphs": len(shared), "above_collective_bound": above})


def gradient(arena: Arena, store: Store) -> None:
    """PRBCD on the vote beyond what is certified."""
    largest = arena.certificate.max_certified("add_edges")
    chosen = np.flatnonzero((largest >= 0) & (largest < INF))[:GRADIENT_TARGETS]
    rows = arena.rows[chosen]
    for beyond in BEYOND:
        key = arena.key("gradient on the vote", "add_edges", {}, beyond)
        if not store.has(key):
            started = time.perf_counter()
            budgets = [ac.Budget(add_edges=int(largest[k]) + beyond) for k in chosen]
            store.add(arena.measured(key, attacks.gradient(arena.problem, rows, budgets), budgets, chosen, started))


def undefended(arena: Arena, store: Store) -> None:
    """The undefended model with three edges added and three deleted: by its margin, and by PRBCD on its hard label."""
    largest = arena.certificate.max_certified("add_edges")
    chosen = np.flatnonzero((largest >= 0) & (largest < INF))[:GRADIENT_TARGETS]
    rows = arena.rows[chosen]
    budget = ac.Budget(add_edges=3, delete_edges=3)

    def by_margin():  # type: ignore[no-untyped-def]
        return ac.attack(arena.model, arena.data, ac.Undefended(), budget=budget, targets=rows).results

    def by_label():  # type: ignore[no-untyped-def]
        return attacks.gradient(attacks.VoteProblem(arena.model, arena.data, ac.EdgeCentric(1)), rows, budget)

    for attack, found in ((ON_MODEL, by_margin), (ON_LABEL, by_label)):
        key = arena.key(attack, "add_edges", {"delete_edges": 3}, "3 edges")
        if store.has(key):
            continue
        started = time.perf_counter()
        fallen = found()
        changes = [(result.row, result.perturbation) for result in fallen]
        budgets = [budget] * len(rows)
        results = arena.problem.results(changes, arena.problem.outcomes(rows), budgets, attack)
        fell = sum(result.succeeded for result in fallen)
        store.add({**arena.measured(key, results, budgets, chosen, started), "undefended_changed": fell})


def curve(arena: Arena, store: Store) -> None:
    """Accuracy between what is certified and what is left after the attacks."""
    field, rest = "inject_nodes", {"edges_per_injected": INF if arena.task == "node" else 5}
    key = arena.key("curve", field, rest, "all sizes")
    if store.has(key):
        return
    started = time.perf_counter()
    top = arena.division.num_groups // 2 + 1
    sizes = sorted({0, 1, 2, *range(0, top + 1, max(1, top // 6)), top})
    count = len(arena.rows) // 4
    few = ac.certify(arena.model, arena.data, arena.division, targets=arena.rows[:count])
    correct, fallen, refuted = few.label == few.truth, np.zeros(count, dtype=bool), 0
    certified, attacked = [], []
    for size in sizes:
        budget = ac.Budget(**{field: size}, **rest)
        standing = np.flatnonzero(correct & ~fallen)  # a label that has changed is not attacked again
        results = attacks.greedy(arena.problem, few.row[standing], budget, features=arena.features)
        fallen[standing] = [result.succeeded for result in results]
        holds = few.holds_against(budget)
        certified.append(float((correct & holds).sum() / few.labelled.sum()))
        attacked.append(float((correct & ~fallen).sum() / few.labelled.sum()))
        refuted += int((holds & fallen).sum())
    seconds = round(time.perf_counter() - started, 1)
    store.add({
        **key, "targets": count, "changed": None, "refuted": refuted, "sizes": sizes,
        "certified": certified, "attacked": attacked, "seconds": seconds,
    })  # fmt: skip


def one_target_at_a_time(alone: list[dict]) -> list[str]:  # type: ignore[type-arg]
    lines = [
        "## One target at a time", "",
        "Share of labels changed when the budget is the largest certified one, and when it is 1 and 4 larger. The size is",
        "the median of the certified amounts. *Any number*: targets certified against any amount, attacked without limit.", "",
        "| dataset | division | attack | spends | besides | targets | size | certified | +1 | +4 | any number |",
        "|" + "---|" * 11,
    ]  # fmt: skip
    for row in (row for row in alone if row["beyond"] == 0):
        same = {
            r["beyond"]: r
            for r in alone
            if all(r[n] == row[n] for n in ("dataset", "division", "attack", "field", "rest"))
        }
        lines.append("| " + " | ".join([*names(row), str(row["targets"]), f"{row['median_size']:.0f}",
            *(share(same.get(beyond)) for beyond in (*BEYOND, "any number"))]) + " |")  # fmt: skip
    never = [row for row in alone if row["beyond"] == "any number" and not any(
        r["beyond"] == 0 and all(r[n] == row[n] for n in ("dataset", "division", "attack", "field", "rest")) for r in alone)]  # fmt: skip
    for row in never:
        lines.append("| " + " | ".join([*names(row), str(row["targets"]), "∞", "–", "–", "–", share(row)]) + " |")
    return lines


def votes_markdown(rows: list[dict]) -> str:  # type: ignore[type-arg]
    within = sum(row["attacked_while_certified"] for row in rows)
    recast, otherwise = (sum(row[name] for row in rows) for name in ("recast_in_full", "recast_otherwise"))
    beyond = [row for row in rows if row["beyond"] in (1, 4) and row["attack"] != "random"]
    changed, targets = (sum(row[name] for row in beyond) for name in ("changed", "targets"))
    return "\n".join([
        "# Attacks on votes with a prior", "",
        "Made by `python -m experiments.benchmarks.attacks --votes`: priors, constants for empty groups, and one group per neighbour (T=∞).",
        "On MUTAG model and constants were trained and chosen for size 2. The attacks know prior and constants. At most",
        f"{max(row['targets'] for row in rows)} targets each.", "",
        f"- Attacked within a certified budget: **{within:,}** targets.",
        f"- Labels changed although certified against what the attack cost: **{sum(row['refuted'] for row in rows)}**.",
        f"- Beyond it by 1 or 4, all attacks but the random one: {changed:,} of {targets:,} labels changed.",
        f"- Results recast one subgraph at a time on the whole attacked graph: {recast}; {otherwise} came out otherwise.", "",
        *one_target_at_a_time(rows),
    ]) + "\n"  # fmt: skip


def markdown(rows: list[dict]) -> str:  # type: ignore[type-arg]
    plain = [row for row in rows if row["attack"] != "curve"]
    alone = [row for row in plain if row["attack"] != "hubs"]
    within = sum(row["attacked_while_certified"] for row in plain)
    refuted = sum(row["refuted"] for row in rows)
    recast, otherwise = (sum(row[name] for row in plain) for name in ("recast_in_full", "recast_otherwise"))
    lines = [
        "# Attacks on real certificates", "",
        "Made by `python -m experiments.benchmarks.attacks`: GCNs trained with the recipes of the library, seed 0. A target counts as",
        "attacked when the attack really changed the graph; its label is voted anew on the attacked graph.", "",
        f"- Attacked within a certified budget: **{within:,}** targets, {sum(r['attacked_while_certified'] for r in alone):,}",
        "  of them one by one, the others by shared hubs.",
        f"- Labels changed although certified against what the attack cost: **{refuted}**.",
        f"- Results recast one subgraph at a time on the whole attacked graph: {recast}; {otherwise} came out otherwise.", "",
    ]  # fmt: skip
    lines += one_target_at_a_time(alone)
    lines += ["", "## Hubs: all nodes of the graph at once", "",
        "Injected nodes joined to every node with the same closest rival.", "",
        "| dataset | division | hubs | nodes | certified | changed | above the collective bound |", "|" + "---|" * 7]  # fmt: skip
    for row in (row for row in plain if row["attack"] == "hubs"):
        lines.append(f"| {row['dataset']} | {short(row)} | {row['beyond'].split()[0]} | {row['targets']:,} | "
            f"{row['attacked_while_certified']:,} | {row['changed']:,} | {row['above_collective_bound']} of {row['graphs']} graphs |")  # fmt: skip
    lines += ["", "## The same weights without a vote", "",
        "Up to three edges added and three deleted at the target, without looking at the vote. *Margin*: `ac.attack` on",
        "`Undefended()`, which follows the margin of the logits. *Hard label*: PRBCD on the model as one vote, a lower",
        "bound that says little. Voted labels are those that the same changes move in the vote.", "",
        "| dataset | division | targets | undefended labels changed: margin | hard label | voted labels changed: margin | hard label |",
        "|" + "---|" * 7]  # fmt: skip
    counted = [row for row in plain if row["attack"] in (ON_MODEL, ON_LABEL)]
    for model in dict.fromkeys(row["model"] for row in counted):
        by_attack = {row["attack"]: row for row in counted if row["model"] == model}
        row = next(iter(by_attack.values()))
        labels = [
            str(by_attack[attack][name]) if attack in by_attack else "–"
            for name in ("undefended_changed", "changed")
            for attack in (ON_MODEL, ON_LABEL)
        ]
        lines.append(f"| {row['dataset']} | {short(row)} | {row['targets']} | {' | '.join(labels)} |")
    lines += ["", "## Accuracy under attack: certified below, attacked above", "",
        "| dataset | division | injected nodes | edges each | at least | at most |", "|" + "---|" * 6]  # fmt: skip
    for row in (row for row in rows if row["attack"] == "curve"):
        for size, low, high in zip(row["sizes"], row["certified"], row["attacked"], strict=True):
            each = row["rest"]["edges_per_injected"].replace("inf", "any")
            lines.append(f"| {row['dataset']} | {short(row)} | {size:.0f} | {each} | {low:.3f} | {high:.3f} |")
    return "\n".join(lines) + "\n"


def names(row: dict) -> list[str]:  # type: ignore[type-arg]
    besides = ", ".join(f"{name}={value}" for name, value in row["rest"].items()).replace("inf", "∞")
    return [row["dataset"], short(row), row["attack"], row["field"], besides]


def short(row: dict) -> str:  # type: ignore[type-arg]
    division = row["division"].split(", hash")[0].removesuffix(")") + ")"
    return f"{division}, {row['vote'].removeprefix('VotingRule')}" if "vote" in row else division


def share(row: dict | None) -> str:  # type: ignore[type-arg]
    return "–" if row is None else f"{row['changed'] / row['targets']:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", default=".cache/data")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the targets to attack")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder to write to")
    parser.add_argument("--fresh", action="store_true", help="forget stored rows")
    parser.add_argument("--models", type=Path, default=Path(".cache") / "attacked_models", help="trained models")
    parser.add_argument("--only", nargs="*", default=[], help='such as "cora-ml/edge-centric(T=10"')
    parser.add_argument("--votes", action="store_true", help="attack votes with a prior")
    parser.add_argument("--undefended", action="store_true", help="attack only the same weights without a vote")
    options = parser.parse_args()
    torch.set_num_threads(1)
    count = max(4, int(TARGETS * options.scale))
    store = Store(options.out / ("attacks_votes.json" if options.votes else "attacks.json"), options.fresh)
    if options.votes:
        for dataset, division, voting_rule in VOTES:
            if wanted(options, dataset, division):
                one_by_one(Arena(dataset, division, options, count, voting_rule), store)
                (options.out / "attacks_votes.md").write_text(votes_markdown(store.rows))
        return
    for dataset, groups in SETTINGS:
        for division in (ac.EdgeCentric(groups), ac.NodeCentric(groups)):
            if not wanted(options, dataset, division):
                continue
            arena = Arena(dataset, division, options, count)
            if not options.undefended:
                one_by_one(arena, store)
                if arena.task == "node":
                    hubs(arena, store)
                gradient(arena, store)
                curve(arena, store)
            undefended(arena, store)
            (options.out / "attacks.md").write_text(markdown(store.rows))
    print(markdown(store.rows))


def wanted(options, dataset, division) -> bool:  # type: ignore[no-untyped-def]
    name = f"{dataset}/{division}"
    return not options.only or any(name.startswith(start) for start in options.only)


if __name__ == "__main__":
    main()
