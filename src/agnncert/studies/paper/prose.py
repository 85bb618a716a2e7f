"""The paragraphs of the results page. Every number in them is computed from the rows or quoted from the paper."""

from collections.abc import Iterable, Sequence
from typing import Any

from agnncert.datasets.catalog import dataset_info
from agnncert.studies.paper import published as paper
from agnncert.studies.paper.rows import LETTER, NAMES, Results, certified_at, share, spread_of
from agnncert.studies.paper.spec import DIVISIONS, GRAPH_SETS, NODE_SETS, Setting, main_setting
from agnncert.studies.paper.tables import above_until, reaches, seconds, two_digits

Cell = tuple[str, str]  # dataset, division


def cells(results: Results, datasets: Iterable[str]) -> list[Cell]:
    """Datasets and divisions that have a main result."""
    return [(name, d) for name in datasets for d in DIVISIONS if results.of(main_setting(name, d))]


def named(cell: Cell) -> str:
    """How a dataset and a division are called."""
    return f"{NAMES[cell[0]]}, {LETTER[cell[1]]}"


def value(results: Results, cell: Cell, field: str) -> float | None:
    """Mean over seeds of one number of the main result."""
    found = results.spread(main_setting(*cell), field)
    return None if found is None else found.mean


def accuracy_words(results: Results) -> str:
    """Where the paper's accuracy is reached."""
    compared = []
    for cell in cells(results, (*NODE_SETS, *GRAPH_SETS)):
        ours, theirs = value(results, cell, "accuracy"), paper.accuracy(cell[0], "gcn", cell[1])
        if ours is not None and theirs is not None:
            compared.append((cell, ours, theirs))
    if not compared:
        return ""
    short = [one for one in compared if not reaches(one[1], one[2])]
    told = f"With GCN, the vote reaches the paper's accuracy in {len(compared) - len(short)} of {len(compared)} cases"
    if not short:
        return f"{told}."
    return f"{told}; not on {listed(f'{named(c)} ({share(a)} against {two_digits(b)})' for c, a, b in short)}."


def certified_words(results: Results) -> str:
    """What is certified at a size that the paper's figures show, for both tasks."""
    told = []
    for names, size, level in ((NODE_SETS, 100, "the paper's undefended GCN"), (GRAPH_SETS, 10, "majority class")):
        parts = []
        for name in names:
            found = [certified_at(results.of(main_setting(name, d)), size) for d in DIVISIONS]
            beside = (
                paper.accuracy(name, "gcn", "none")
                if names is NODE_SETS
                else value(results, (name, "edge"), "accuracy_majority")
            )
            if found[0] is not None and found[1] is not None and beside is not None:
                pair = f"{share(found[0].mean)} / {share(found[1].mean)}"
                parts.append(f"{pair} on {NAMES[name]} ({level} {share(beside)})")
        if parts:
            thing = "nodes" if names is NODE_SETS else "graphs"
            groups = main_setting(names[0], "edge").num_groups
            told.append(f"At size {size} with T={groups}, E / N certify of the test {thing}: {listed(parts)}.")
    return " ".join(told)


def claim_words(results: Results) -> str:
    """The two statements of the paper that can be compared with a number."""
    return "\n\n".join(filter(None, (_node_claim(results), _graph_claim(results))))


def _node_claim(results: Results) -> str:
    size, theirs = paper.CLAIMED["node"]
    parts = []
    for name in NODE_SETS:
        both = [results.of(main_setting(name, d, num_groups=2 * size)) for d in DIVISIONS]
        if all(both):
            before, at = ([certified_at(rows, s) for rows in both] for s in (size - 10, size))
            parts.append(f"{_pair(before)} at {size - 10} and {_pair(at)} at {size} on {NAMES[name]}")
    if not parts:
        return ""
    return (
        f"**Nodes.** The paper states that about {100 * theirs:.0f} % are certified at size {size}. T ballots "
        f"withstand at most T/2 changes, so this takes T={2 * size}. There E / N certify {listed(parts)}. At "
        f"{size} itself only one class is left: if all {2 * size} ballots agree, the radius is {size} for the "
        f"class with the smallest index, which wins ties, and {size - 1} for all others."
    )


def _graph_claim(results: Results) -> str:
    size, theirs = paper.CLAIMED["graph"]
    parts = [part for name in GRAPH_SETS if (part := _best_graph(results, name, size))]
    if not parts:
        return ""
    return (
        f"**Graphs.** The paper states about {100 * theirs:.0f} % at size {size}. Our best over T and division "
        f"at size {size}: {listed(parts)}."
    )


def _best_graph(results: Results, name: str, size: int) -> str:
    best = (-1.0, "", 0)
    for division in DIVISIONS:
        for groups, rows in results.varied(main_setting(name, division), "num_groups").items():
            at = certified_at(rows, size)
            if at is not None and at.mean > best[0]:
                best = (at.mean, LETTER[division], groups)
    majority = value(results, (name, "edge"), "accuracy_majority")
    if best[0] < 0 or majority is None:
        return ""
    return f"{share(best[0])} on {NAMES[name]} ({best[1]}, T={best[2]}; majority class {share(majority)})"


def degree_words(results: Results) -> str:
    """How many edges a node has, to be held against certified sizes."""
    infos = [dataset_info(name) for name in NODE_SETS if name in results.datasets]
    parts = [f"{2 * info.edges / info.size:.1f} on {NAMES[info.name]}" for info in infos]
    return f"The mean degree is {listed(parts)}." if parts else ""


def differs_words(results: Results) -> str:
    """On how many nodes the vote says anything else than the model without edges."""
    found = cells(results, NODE_SETS)
    differs = [(v, c) for c in found if (v := value(results, c, "vote_differs_from_edgeless")) is not None]
    if not differs:
        return ""
    most, cell = max(differs)
    if most == 0:
        return "At T=300 the vote is the edgeless prediction on every single test node of every node dataset."
    return (
        f"At T=300 the vote differs from the edgeless prediction on {100 * most:.2f} % of the test nodes at most "
        f"({named(cell)})."
    )


def gain_words(results: Results) -> str:
    """What the vote is ahead of a model without a graph."""
    gains = []
    for cell in cells(results, NODE_SETS):
        mlp = results.spread(Setting(cell[0], model="mlp"), "accuracy_whole_graph")
        ours = value(results, cell, "accuracy")
        if mlp is not None and ours is not None:
            gains.append((ours - mlp.mean, cell))
    if not gains:
        return ""
    low, high = min(gains), max(gains)
    verdict = "more" if low[0] > 0 else "no more" if high[0] <= 0 else "not always more"
    return (
        "The model to beat for nodes is an MLP on their own features, which needs no certificate against changes "
        f"of the graph. The vote is {verdict} accurate than an MLP trained with the same settings: "
        f"{_from_to(low, high)}. The difference is due to training on the graph."
    )


def inductive_words(results: Results) -> str:
    """The same lead where the test nodes were not seen in training, with one seed."""
    gains = []
    for cell in cells(results, NODE_SETS):
        mlp = results.rows.get(Setting(cell[0], model="mlp", protocol="inductive"))
        ours = results.rows.get(main_setting(*cell, protocol="inductive"))
        if mlp is not None and ours is not None:
            gains.append((ours["accuracy"] - mlp["accuracy_whole_graph"], cell))
    if not gains:
        return ""
    return (
        "With inductive training (test nodes and their edges absent) the accuracy of the vote differs from that of "
        f"an MLP by {_from_to(min(gains), max(gains))}: where this is less than with transductive training, the lead "
        "came from having seen the test nodes among the neighbours of others."
    )


def loss_words(results: Results) -> str:
    """What is given up against the undefended model."""
    losses = []
    for cell in cells(results, NODE_SETS):
        plain = results.spread(Setting(cell[0]), "accuracy_whole_graph")
        ours = value(results, cell, "accuracy")
        if plain is not None and ours is not None:
            losses.append((ours - plain.mean, cell))
    if not losses:
        return ""
    return f"Against an undefended GCN the accuracy of the vote differs by {_from_to(min(losses), max(losses))}."


def above_majority_words(results: Results) -> str:
    """Up to which size a curve lies above a constant answer."""
    parts = []
    for cell in cells(results, GRAPH_SETS):
        rows, majority = results.of(main_setting(*cell)), value(results, cell, "accuracy_majority")
        if majority is not None:
            above = above_until(rows, majority)
            parts.append(f"{named(cell)}: {'nowhere' if above is None else f'up to size {above}'}")
    return (
        f"At T=30 certified accuracy is above that of the majority class as follows. {'; '.join(parts)}."
        if parts
        else ""
    )


def bag_words(results: Results) -> str:
    """Where a model without edges does as well for graphs."""
    parts = []
    for cell in cells(results, GRAPH_SETS):
        bag = results.spread(Setting(cell[0], model="mlp"), "accuracy_whole_graph")
        ours = value(results, cell, "accuracy")
        if bag is not None and ours is not None and bag.mean >= ours:
            parts.append(f"{named(cell)} ({share(bag.mean)} against {share(ours)})")
    if not parts:
        return ""
    return (
        "A model that adds up its nodes and ignores edges is certified against any change of edges, though not of "
        f"nodes; it is at least as accurate as the vote on {listed(parts)}."
    )


def edge_words(results: Results) -> str:
    """Where the graphs themselves are not the paper's."""
    parts = [
        f"{dataset_info(name).edges:,.0f} on {NAMES[name]} (paper: {theirs:,})"
        for name, theirs in paper.EDGES.items()
        if name in results.datasets
    ]
    return f"We count each pair of nodes once, without self-loops: {listed(parts)}." if parts else ""


def time_words(results: Results) -> str:
    """The time for certification and training, in one sentence each."""
    told = []
    for field, theirs, what in (
        ("seconds_certification", paper.CERTIFICATION_SECONDS, "Certifying all test targets took"),
        ("seconds_per_epoch", paper.EPOCH_SECONDS, "An epoch on graph and subgraphs took"),
    ):
        found = [
            (spread, cell)
            for cell in cells(results, theirs)
            if (spread := results.spread(main_setting(*cell), field)) is not None
        ]
        if found:
            low, high = (pick(found, key=lambda one: one[0].mean) for pick in (min, max))
            faster = [theirs[c[0]][DIVISIONS.index(c[1])] / s.mean for s, c in found if s.mean > 0]
            told.append(
                f"{what} {seconds(low[0])} ({named(low[1])}) to {seconds(high[0])} ({named(high[1])}), "
                f"{min(faster):,.0f} to {max(faster):,.0f} times less than the paper reports on an RTX 4090."
            )
    return " ".join(told)


def machine_words(results: Results) -> str:
    """On what the rows were made, and how long all of it took."""
    rows = results.rows.values()
    total = sum(row["seconds_training"] + row.get("seconds_certification", 0.0) for row in rows)
    found = [row["environment"] for row in rows if "environment" in row]
    told = f"{len(results.rows)} runs, {total / 3600:.1f} hours of training and certification in all."
    kinds = dict.fromkeys(
        f"{e['cpus']} CPU cores ({e['system']}), {e['threads']} of them used, torch {e['torch']}, Python {e['python']}"
        for e in found
    )
    loads = [float(e["load"]) for e in found if "load" in e]
    if kinds:
        told += f" Machine: {'; '.join(kinds)}."
    if loads:
        told += (
            f" Its load was between {min(loads):g} and {max(loads):g} when training ended; where that is more than "
            "the number of cores, seconds are higher than on an idle machine."
        )
    if len(found) < len(results.rows):
        told += f" {len(results.rows) - len(found)} rows do not say where they were made."
    return told


def unstable_words(results: Results) -> str:
    """How many ballots were too close to call."""
    rows = [row for row in results.rows.values() if "unstable_ballots" in row]
    most = max(rows, key=lambda row: int(row["unstable_ballots"]), default=None)
    if most is None:
        return ""
    ballots = most["targets"] * most["setting"]["num_groups"]
    part = f"{most['unstable_ballots']:,} of {ballots:,} ballots ({NAMES[most['setting']['dataset']]})"
    return f"In the worst run these were {part}."


def variation_words(results: Results, field: str, pair: tuple[Any, Any], what: str) -> str:
    """How much accuracy and certified accuracy change between two values of a field, with the same seed."""
    changes = []
    for cell in cells(results, results.datasets):
        a, b = (results.rows.get(main_setting(*cell, **{field: one})) for one in pair)
        if a is not None and b is not None:
            changes.append((b["accuracy"] - a["accuracy"], cell))
    if not changes:
        return ""
    low, high = min(changes), max(changes)
    return f"{what} changes the accuracy of the vote by {_from_to(low, high)}."


def cast_words(results: Results) -> str:
    """How many ballots of a graph are cast at all, which bounds what can be certified."""
    parts = []
    for name in GRAPH_SETS:
        rows = results.of(main_setting(name, "edge"))
        cast = spread_of(rows, "reached_ballots")
        if cast is not None:
            number = cast.mean * rows[0]["setting"]["num_groups"]
            parts.append(f"{number:.0f} on {NAMES[name]}")
    if not parts:
        return ""
    return f"Of 30 ballots (E) a graph casts on average {listed(parts)}; no more than half of them can be a radius."


def _pair(found: Sequence[Any]) -> str:
    return " / ".join(share(one.mean) for one in found)


def _from_to(low: tuple[float, Cell], high: tuple[float, Cell]) -> str:
    if low[1] == high[1]:
        return f"{_signed(low[0])} ({named(low[1])})"
    return f"{_signed(low[0])} ({named(low[1])}) to {_signed(high[0])} ({named(high[1])})"


def _signed(change: float) -> str:
    sign = "±" if round(change, 3) == 0 else "+" if change > 0 else "−"
    return f"{sign}{share(abs(change))}"


def listed(parts: Iterable[str]) -> str:
    """Parts of a sentence, joined.

    Example:
        >>> listed(["a", "b", "c"])
        'a, b and c'
    """
    words = list(parts)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
