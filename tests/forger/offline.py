"""The forger's fuzz for as long as one likes: ``python -m tests.forger.offline --count 100000 --seed 0``.

Goes on where it stopped: what was tried is kept in a file. Prints a table of what was tried and what became of it, and
every forgery that was accepted although it lies, with the number under which ``--show`` tries it again.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path

from tests.support.forgers_world import all_cases
from tests.support.forging import scratch_folder
from tests.support.judging import Outcome, numbered

FATES = ("tried", "refused", "true", "unchanged", "unwritable", "LIE", "CRASH")
EVERY = 500


def row_of(outcome: Outcome) -> str:
    """The row of the table in which a forgery is counted."""
    return outcome.alterations[0] if len(outcome.alterations) == 1 else f"{len(outcome.alterations)} together"


def table(counts: Counter[str], full: bool) -> str:
    """What was tried and what became of it, by alteration, and by kind of certificate if ``full``."""
    rows: dict[str, Counter[str]] = {}
    for key, number in counts.items():
        kind, alteration, fate = key.split("|")
        for label in [alteration, "all", *([f"{alteration}, {kind}"] if full else [f"of kind {kind}"])]:
            rows.setdefault(label, Counter()).update({fate: number, "tried": number})
    width = max(map(len, rows))
    lines = [" ".join([" " * width, *(f"{fate:>10}" for fate in FATES)])]
    for label in sorted(rows, key=lambda label: (label == "all", label.startswith("of kind"), label)):
        lines.append(" ".join([f"{label:<{width}}", *(f"{rows[label][fate]:>10,}" for fate in FATES)]))
    return "\n".join(lines)


def run(count: int, seed: int, state: Path, progress: bool = True) -> tuple[Counter[str], list[str]]:
    """Tries forgeries up to number ``count``, from where the state stands; counts and what was wrongly accepted."""
    kept = json.loads(state.read_text()) if state.exists() else {"seed": seed, "done": 0, "counts": {}, "bad": []}
    if kept["seed"] != seed:
        raise SystemExit(f"{state} belongs to seed {kept['seed']}: give another --state, or that seed.")
    counts, bad, names = Counter(kept["counts"]), kept["bad"], list(all_cases())
    start, first = time.time(), kept["done"]
    with scratch_folder() as folder:
        for number in range(first, count):
            name, outcome = numbered(seed, number, Path(folder) / "forged.cert", names)
            counts[f"{name}|{row_of(outcome)}|{outcome.fate}"] += 1
            if outcome.fate in ("LIE", "CRASH"):
                bad.append(f"{number} {name}: {outcome.fate} after {', '.join(outcome.alterations)}: {outcome.why}")
            if (number + 1) % EVERY == 0 or number + 1 == count:
                state.write_text(json.dumps({"seed": seed, "done": number + 1, "counts": counts, "bad": bad}))
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
    parser.add_argument("--full", action="store_true", help="one row for each kind and alteration")
    parser.add_argument("--show", type=int, metavar="NUMBER", help="try one forgery again and say what became of it")
    given = parser.parse_args()
    if given.show is not None:
        with scratch_folder() as folder:
            print(*numbered(given.seed, given.show, Path(folder) / "forged.cert", list(all_cases())), sep="\n")
        return 0
    state = given.state or Path(".cache") / f"forger-{given.seed}.json"
    state.parent.mkdir(exist_ok=True)
    counts, bad = run(given.count, given.seed, state)
    print(table(counts, given.full))
    print(*bad[:200], sep="\n")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
