"""The paragraphs of the results page. Every number in them is computed from the rows or quoted from the paper."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from experiments.paper import tables as paper
from experiments.paper.rows import LETTER, NAMES, Results, certified_at, share
from experiments.paper.spec import DIVISIONS, GRAPH_SETS, NODE_SETS, Setting, main_setting
from experiments.paper.tables import Cell, cells, named, reaches, seconds, shown, two_digits


def _mean(results: Results, setting: Setting, field: str) -> float | None:
    """Mean over seeds of one number."""
    spread = results.spread(setting, field)
    return None if spread is None else spread.mean


def _main(results: Results, cell: Cell, field: str) -> float | None:
    """Mean over seeds of one number of the main result."""
    return _mean(results, main_setting(*cell), field)


def _one_seed(results: Results, setting: Setting, field: str) -> float | None:
    row = results.rows.get(setting)
    return None if row is None else row[field]


def _compared(results: Results) -> list[tuple[Cell, float, float]]:
    """Our accuracy and the paper's, wherever both are known."""
    compared = []
    for cell in cells(results, (*NODE_SETS, *GRAPH_SETS)):
        ours, theirs = _main(results, cell, "accuracy"), paper.accuracy(cell[0], "gcn", cell[1])
        if ours is not None and theirs is not None:
            compared.append((cell, ours, theirs))
    return compared


def accuracy_words(results: Results) -> str:
    """Where the paper's accuracy is reached."""
    compared = _compared(results)
    if not compared:
        return ""
    short = [
        f"{named(*cell)} ({share(ours)} against {two_digits(theirs)})"
        for cell, ours, theirs in compared
        if not reaches(ours, theirs)
    ]
    missed = f"; not on {listed(short)}" if short else ""
    reached = f"{len(compared) - len(short)} of {len(compared)} cases"
    return f"With GCN, the vote reaches the paper's accuracy in {reached}{missed}."


def _pair(results: Results, size: int, settings: Iterable[Setting]) -> str:
    """Certified accuracy of both divisions at a size."""
    return " / ".join(shown(certified_at(results.of(setting), size)) for setting in settings)


def claim_words(results: Results) -> str:
    """The two statements of the paper that can be compared with a number."""
    return "\n\n".join(filter(None, (_node_claim(results), _graph_claim(results))))


def _node_claim(results: Results) -> str:
    size, theirs = paper.CLAIMED["node"]
    parts = []
    for name in NODE_SETS:
        both = [main_setting(name, d, num_groups=2 * size) for d in DIVISIONS]
        if all(results.of(setting) for setting in both):
            before, at = (_pair(results, s, both) for s in (size - 10, size))
            parts.append(f"{before} at {size - 10} and {at} at {size} on {NAMES[name]}")
    return _if_any(
        parts,
        f"**Nodes.** The paper states that about {100 * theirs:.0f} % are certified at size {size}. T votes "
        f"withstand at most T/2 changes, so this takes T={2 * size}. There E / N certify {{}}. At "
        f"{size} itself only one class is left: if all {2 * size} votes agree, the radius is {size} for the "
        f"class with the smallest index, which wins ties, and {size - 1} for all others.",
    )


def _graph_claim(results: Results) -> str:
    size, theirs = paper.CLAIMED["graph"]
    parts = [part for name in GRAPH_SETS if (part := _best_graph(results, name, size))]
    return _if_any(
        parts,
        f"**Graphs.** The paper states about {100 * theirs:.0f} % at size {size}. Our best over T and division "
        f"at size {size}: {{}}.",
    )


def _best_graph(results: Results, name: str, size: int) -> str:
    certified = [
        (at.mean, LETTER[division], groups)
        for division in DIVISIONS
        for groups, rows in results.varied(main_setting(name, division), "num_groups").items()
        if (at := certified_at(rows, size)) is not None
    ]
    majority = _main(results, (name, "edge"), "accuracy_majority")
    if not certified or majority is None:
        return ""
    best, letter, groups = max(certified, key=lambda one: one[0])
    return f"{share(best)} on {NAMES[name]} ({letter}, T={groups}; majority class {share(majority)})"


Number = Callable[[Cell], float | None]
Differences = list[tuple[float, Cell]]


def _differences(results: Results, datasets: Iterable[str], ours: Number, theirs: Number) -> Differences:
    """By how much one number is above another, wherever both are known."""
    pairs = [(ours(cell), theirs(cell), cell) for cell in cells(results, datasets)]
    return [(a - b, cell) for a, b, cell in pairs if a is not None and b is not None]


def inductive_words(results: Results) -> str:
    """The same where the test nodes were not seen in training, with one seed."""
    gains = _differences(
        results,
        NODE_SETS,
        lambda cell: _one_seed(results, main_setting(*cell, protocol="inductive"), "accuracy"),
        lambda cell: _one_seed(results, Setting(cell[0], model="mlp", protocol="inductive"), "accuracy_whole_graph"),
    )
    if not gains:
        return ""
    return (
        "With inductive training (test nodes and their edges absent) the accuracy of the vote differs from that of "
        f"an MLP by {_from_to(gains)}: where this is less than with transductive training, the lead "
        "came from having seen the test nodes among the neighbours of others."
    )


def variation_words(results: Results, field: str, pair: tuple[Any, Any], what: str) -> str:
    """How much the accuracy of the vote changes between two values of a field, with the same seed."""
    before, after = (
        lambda cell, value=value: _one_seed(results, main_setting(*cell, **{field: value}), "accuracy")
        for value in pair
    )
    changes = _differences(results, results.datasets, after, before)
    return f"{what} changes the accuracy of the vote by {_from_to(changes)}." if changes else ""


def _from_to(differences: Differences) -> str:
    ends = dict.fromkeys(f"{_signed(value)} ({named(*cell)})" for value, cell in (min(differences), max(differences)))
    return " to ".join(ends)


def _signed(change: float) -> str:
    sign = "±" if round(change, 3) == 0 else "+" if change > 0 else "−"
    return f"{sign}{share(abs(change))}"


def time_words(results: Results) -> str:
    """The time for certification and training, in one sentence each."""
    sentences = []
    for field, theirs, what in (
        ("seconds_certification", paper.CERTIFICATION_SECONDS, "Certifying all test targets took"),
        ("seconds_per_epoch", paper.EPOCH_SECONDS, "An epoch on graph and subgraphs took"),
    ):
        times = {c: time for c in cells(results, theirs) if (time := _main(results, c, field)) is not None}
        if times:
            ends = [pick(times, key=times.__getitem__) for pick in (min, max)]
            low, high = (f"{seconds(times[cell])} ({named(*cell)})" for cell in ends)
            faster = [theirs[c[0]][DIVISIONS.index(c[1])] / time for c, time in times.items() if time > 0]
            sentences.append(
                f"{what} {low} to {high}, {min(faster):,.0f} to {max(faster):,.0f} times less than the paper "
                "reports on an RTX 4090."
            )
    return " ".join(sentences)


def machine_words(results: Results) -> str:
    """On what the rows were made, and how long all of it took."""
    rows = results.rows.values()
    total = sum(row["seconds_training"] + row.get("seconds_certification", 0.0) for row in rows)
    machines = [row["environment"] for row in rows if "environment" in row]
    kinds = dict.fromkeys(
        f"{e['cpus']} CPU cores ({e['system']}), {e['threads']} of them used, torch {e['torch']}, Python {e['python']}"
        for e in machines
    )
    loads = [float(e["load"]) for e in machines if "load" in e]
    sentences = [f"{len(rows)} runs, {total / 3600:.1f} hours of training and certification in all."]
    if kinds:
        sentences.append(f"Machine: {'; '.join(kinds)}.")
    if loads:
        sentences.append(
            f"Its load was between {min(loads):g} and {max(loads):g} when training ended; where that is more than "
            "the number of cores, seconds are higher than on an idle machine."
        )
    if len(machines) < len(rows):
        sentences.append(f"{len(rows) - len(machines)} rows do not say where they were made.")
    return " ".join(sentences)


def _if_any(parts: Sequence[str], sentence: str) -> str:
    """The sentence with the parts listed in the place of its braces; empty without parts."""
    return sentence.format(listed(parts)) if parts else ""


def listed(parts: Sequence[str]) -> str:
    """Parts of a sentence, joined.

    Example:
        >>> listed(["a", "b", "c"])
        'a, b and c'
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
