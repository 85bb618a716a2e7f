"""The forger's fuzz for as long as one likes: ``python -m tests.soundness.forger.offline --count 100000 --seed 0``.

Goes on where it stopped: what was tried is kept in a file. Prints a table of what was tried and what became of it, and
every forgery that was accepted although it lies, with the number under which ``--show`` tries it again.
"""

import argparse
import json
import platform
import sys
import time
from collections import Counter
from importlib.metadata import version
from pathlib import Path

from tests.soundness.forger.forging import scratch_folder
from tests.soundness.forger.judging import Outcome, numbered
from tests.soundness.forger.world import all_cases, all_golden_cases

FATES = ("tried", "refused", "true", "unchanged", "unwritable", "LIE", "CRASH")
EVERY = 500
NAMES = [*all_cases(), *all_golden_cases()]


def row_of(outcome: Outcome) -> str:
    """The row of the table in which a forgery is counted."""
    return outcome.alterations[0] if len(outcome.alterations) == 1 else f"{len(outcome.alterations)} together"


def table(counts: Counter[str], kinds: bool) -> str:
    """What was tried and what became of it, by alteration or by kind of certificate."""
    rows: dict[str, Counter[str]] = {}
    for key, number in counts.items():
        kind, alteration, fate = key.split("|")
        for label in (kind if kinds else alteration, "all"):
            rows.setdefault(label, Counter()).update({fate: number, "tried": number})
    lines = [f"| {'kind' if kinds else 'altered'} | {' | '.join(FATES)} |", "|---" * (len(FATES) + 1) + "|"]
    for label in sorted(rows, key=lambda label: (label == "all", label[0].isdigit(), label)):
        lines.append(f"| {label} | {' | '.join(f'{rows[label][fate]:,}' for fate in FATES)} |")
    return "\n".join(lines)


def page(states: list[Path]) -> str:
    """All that the states tell, as a page."""
    kept = [json.loads(state.read_text()) for state in states]
    counts = sum((Counter(one["counts"]) for one in kept), Counter())
    seeds = ", ".join(f"{one['done']:,} with seed {one['seed']}" for one in kept)
    total = sum(counts.values())
    idle = sum(number for key, number in counts.items() if key.endswith(("|unchanged", "|unwritable")))
    bad = [f"* seed {one['seed']}, {entry}" for one in kept for entry in one["bad"]]
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "torch", "torch_geometric", "agnncert"))
    return "\n".join(
        [
            "# A forger's fuzz",
            "",
            f"{total:,} attempts ({seeds}), of which {total - idle:,} altered a file that was then sealed and verified with",
            "graph, model and all votes.",
            "*Refused*: not accepted. *True*: accepted, and what `certify` itself would have written for the targets, division,",
            "tolerance and budgets that the file states. *Unchanged*: the alterations undid each other. *LIE*: accepted, and",
            "not what `certify` would have written. *CRASH*: neither accepted nor refused.",
            "",
            f"`python -m tests.soundness.forger.offline --count N --seed S` for each seed; Python {platform.python_version()}, {versions}.",
            "What follows from graph and model alone (audits, votes cast again, samples drawn again) is computed once and remembered.",
            "",
            "## By what was altered",
            "",
            table(counts, kinds=False),
            "",
            "## By kind of certificate",
            "",
            table(counts, kinds=True),
            "",
            *bad,
        ]
    )


def run(
    count: int, seed: int, state: Path, names: list[str] = NAMES, progress: bool = True
) -> tuple[Counter[str], list[str]]:
    """Tries forgeries up to number ``count``, from where the state stands; counts and what was wrongly accepted."""
    kept = json.loads(state.read_text()) if state.exists() else {"seed": seed, "done": 0, "counts": {}, "bad": []}
    if kept["seed"] != seed or kept.get("cases", names) != names:
        raise SystemExit(f"{state} belongs to seed {kept['seed']}, or to other cases: give another --state.")
    counts, bad = Counter(kept["counts"]), kept["bad"]
    start, first = time.time(), kept["done"]
    with scratch_folder() as folder:
        for number in range(first, count):
            name, outcome = numbered(seed, number, Path(folder) / "forged.cert", names)
            counts[f"{name}|{row_of(outcome)}|{outcome.fate}"] += 1
            if outcome.fate in ("LIE", "CRASH"):
                bad.append(f"{number} {name}: {outcome.fate} after {', '.join(outcome.alterations)}: {outcome.why}")
            if (number + 1) % EVERY == 0 or number + 1 == count:
                kept = {"seed": seed, "cases": names, "done": number + 1, "counts": counts, "bad": bad}
                state.write_text(json.dumps(kept))
                rate = (number + 1 - first) / (time.time() - start)
                if progress:
                    print(f"{number + 1:,} tried, {len(bad)} wrong, {rate:.0f} a second", file=sys.stderr)
    return counts, bad


def main() -> int:
    """Runs, prints, and tells by its exit code whether nothing false was accepted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="how many forgeries in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--state", type=Path, help="where to keep what was tried; .cache/forger-SEED.json")
    parser.add_argument("--page", type=Path, help="write a page about --state and all of --with to this file")
    parser.add_argument("--with", type=Path, nargs="*", default=[], dest="others", help="states of other seeds")
    parser.add_argument("--cases", nargs="*", default=NAMES, choices=NAMES, help="kinds of certificates; all of them")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="try one forgery again and say what became of it")
    given = parser.parse_args()
    if given.show is not None:
        with scratch_folder() as folder:
            print(*numbered(given.seed, given.show, Path(folder) / "forged.cert", given.cases), sep="\n")
        return 0
    state = given.state or Path(".cache") / f"forger-{given.seed}.json"
    state.parent.mkdir(exist_ok=True)
    counts, bad = run(given.count, given.seed, state, given.cases)
    print(table(counts, kinds=False), table(counts, kinds=True), *bad[:200], sep="\n")
    if given.page:
        given.page.write_text(page([state, *given.others]).rstrip() + "\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
