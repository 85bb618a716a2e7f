"""Tables and sentences of the guides, made from the committed rows: what stands between ``<!-- rows: NAME -->`` and ``<!-- end -->``.

To show a result on a page, add a function here, name it in ``BLOCKS``, and put the two comments on the page.
``python -m experiments.documentation`` fills them in. Rows that are added later flow in.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from experiments.documentation import append_only, attacked, sources
from experiments.documentation.choosing import choosing, costs
from experiments.documentation.facts import table
from experiments.documentation.pyg_models import pyg_accepted, pyg_counted, pyg_refused
from experiments.documentation.rates import rate_monitor, rate_splits
from experiments.documentation.sources import PROJECT, Row, mean, some
from experiments.documentation.tables import LABEL_SIZES, PAIR_SIZES
from experiments.paper.rows import NAMES, share

PAGES = [
    PROJECT / "README.md",
    PROJECT / "CONTRIBUTING.md",
    PROJECT / "CHANGELOG.md",
    PROJECT / "SECURITY.md",
    *sorted((PROJECT / "docs").rglob("*.md")),
    *sorted((PROJECT / "packages").glob("*/README.md")),
]
_BLOCK = re.compile(r"<!-- rows: (.+?) -->\n.*?<!-- end -->", re.DOTALL)
_COUNTS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def filled(text: str) -> str:
    """Returns a page whose blocks are what the rows give.

    Raises:
        LookupError: A block has a name that ``BLOCKS`` does not have.
    """
    return _BLOCK.sub(lambda found: f"<!-- rows: {found[1]} -->\n{_made(found[1])}\n<!-- end -->", text)


def _made(name: str) -> str:
    if name not in BLOCKS:
        raise LookupError(f"no block is called {name!r}; there are {', '.join(BLOCKS)}")
    return BLOCKS[name]()


# ---- Words ----


def in_words(number: int) -> str:
    """Returns a small number in letters.

    Example:
        >>> in_words(3), in_words(12)
        ('three', '12')
    """
    return _COUNTS[number] if number < len(_COUNTS) else str(number)


def listed(parts: Sequence[str]) -> str:
    """Returns parts as a list in a sentence.

    Example:
        >>> listed(["a"]), listed(["a", "b", "c"])
        ('a', 'a, b and c')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def points(gain: float) -> str:
    """Returns a difference of two shares in points, with its sign.

    Example:
        >>> points(0.0351), points(-0.002), points(-0.0001)
        ('+3.5', '−0.2', '0.0')
    """
    text = f"{100 * gain:.1f}"
    if float(text) == 0:
        return "0.0"
    return text.replace("-", "−") if text.startswith("-") else f"+{text}"


def _curve(found: list[Row], sizes: Sequence[int], places: Sequence[int]) -> list[str]:
    values = mean(found, lambda row: row["certified"])
    return [share(values[sizes.index(size)]) for size in places]


def _splits(found: list[Row]) -> int:
    return len({row["seed"] for row in found})


def _splits_in_words(found: list[Row]) -> str:
    """Describes how many splits each dataset has, as "two splits of Amazon-C and one of PubMed"."""
    counts = {name: _splits(some(found, dataset=name)) for name in _datasets(found)}
    if len(set(counts.values())) == 1:
        (number,) = set(counts.values())
        return f"{in_words(number)} split{'s' if number > 1 else ''}"
    (first, number), *others = counts.items()
    parts = [f"{in_words(number)} split{'s' if number > 1 else ''} of {NAMES[first]}"]
    return listed([*parts, *(f"{in_words(number)} of {NAMES[name]}" for name, number in others)])


def _datasets(found: list[Row]) -> list[str]:
    return list(dict.fromkeys(row["dataset"] for row in found))


def _method_table(
    methods: Mapping[str, Mapping[str, str]],
    title: str,
    columns: Sequence[object],
    cells: Callable[[str, str], list[str]],
) -> str:
    """Returns a table with a line for each dataset and method, in which a dataset is named once.

    Args:
        methods: The methods of each dataset, and what they are called on the page.
        title: What stands above the methods.
        columns: What stands above the cells.
        cells: Returns the cells of a dataset and a method.
    """
    lines = []
    for dataset, words_of_method in methods.items():
        name = f"**{NAMES[dataset]}**"
        for method, words in words_of_method.items():
            lines.append([name, words, *cells(dataset, method)])
            name = ""
    return table(["", title, *map(str, columns)], lines, words=2)


def _count_or_none(number: int) -> str:
    return "none" if number == 0 else f"{number:,}"


# ---- Pairs ----

PAIR_FEATURES = "features alone"
PAIR_VOTES = "features + common neighbours, come or go"
PAIR_METHODS = {
    PAIR_FEATURES: "own features alone",
    "common neighbours alone, come or go": "number of common neighbours alone",
    PAIR_VOTES: "**`PairVotes`**",
    "undefended": "undefended trees, no attack",
}
NEGATIVES = {"uniform": "uniform", "degree": "by degree"}
RATINGS = {
    "ratings of v, fake ones added": "ratings of v, fake ones added",
    "ratings of v + u's own habit, fake ones added": "ratings of v and u's own habit, fake ones added",
    "u's own habit alone": "u's own habit alone",
    "contacts whom u trusts + habit, any number of injected accounts": "**contacts whom u trusts, and habit** (`trusted=`), any number of fake accounts",
    "the same, edges of contacts changed": "the same, edges of this many contacts changed",
}


def pair_links() -> str:
    """Certified accuracy of links by dataset and method, for each way to draw pairs that are not links."""
    found = sources.rows("pair_votes_links")

    def cells(dataset: str, method: str) -> list[str]:
        curves = []
        for negatives in NEGATIVES:
            rows = some(found, dataset=dataset, method=method, negatives=negatives)
            curves.append(_curve(rows, PAIR_SIZES, PAIR_SIZES[: len(rows[0]["certified"])]))
        known = [" / ".join(values) for values in zip(*curves, strict=True)]
        return [*known, *["–"] * (len(PAIR_SIZES) - len(known))]

    return _method_table(dict.fromkeys(_datasets(found), PAIR_METHODS), "", PAIR_SIZES, cells)


def _methods_of(found: list[Row], words: dict[str, str]) -> dict[str, dict[str, str]]:
    """Returns the methods of each dataset: those with words of their own first, then any other that has rows."""
    methods: dict[str, dict[str, str]] = {}
    for dataset in _datasets(found):
        present = dict.fromkeys(row["method"] for row in found if row["dataset"] == dataset and "certified" in row)
        known = {name: text for name, text in words.items() if name in present}
        methods[dataset] = known | {name: name for name in present if name not in words}
    return methods


def pair_setting() -> str:
    """Describes the splits and the numbers of pairs."""
    found = sources.rows("pair_votes_links")
    most = max(row["pairs"] for row in found)
    fewer = {NAMES[row["dataset"]]: row["pairs"] for row in found if row["pairs"] < most}
    others = "".join(f", {number:,} on {name}" for name, number in fewer.items())
    return f"Means of {_splits_in_words(found)}; {most:,} tested pairs in each{others}."


def pair_gains() -> str:
    """Says by how much common neighbours are above own features at one and two changes."""
    found = sources.rows("pair_votes_links")
    parts = []
    for dataset in _datasets(found):
        gains = {}
        for negatives in NEGATIVES:
            both = [
                mean(some(found, dataset=dataset, negatives=negatives, method=method), lambda row: row["certified"])
                for method in (PAIR_VOTES, PAIR_FEATURES)
            ]
            gains[negatives] = [points(both[0][PAIR_SIZES.index(size)] - both[1][PAIR_SIZES.index(size)]) for size in (1, 2)]  # fmt: skip
        uniform, degree = gains["uniform"], gains["degree"]
        parts.append(f"{' and '.join(uniform)} on {NAMES[dataset]} (by degree {' and '.join(degree)})")
    return f"Points above own features alone, at 1 and 2 changes: {'; '.join(parts)}."


def pair_ratings() -> str:
    """Balanced accuracy on the later ratings of Bitcoin-OTC."""
    found = sources.rows("pair_votes_ratings")
    words = RATINGS | {row["method"]: row["method"] for row in found if row["method"] not in RATINGS}
    lines = [[text, *_curve(some(found, method=method), PAIR_SIZES, PAIR_SIZES)] for method, text in words.items()]
    return table([f"means of {in_words(_splits(found))} seeds", *map(str, PAIR_SIZES)], lines)


def pair_events() -> str:
    """Says what becomes of the ratings if each event is decided with all that was known right before it."""
    by_method = {row["method"]: share(row["certified"][0]) for row in sources.rows("pair_votes_events")}
    trusted, habit = (
        by_method["contacts whom u trusts + habit, any number of injected accounts"],
        by_method["u's own habit alone"],
    )
    return (
        f"If each rating is predicted from all ratings before it, instead of those before its window, contacts and habit have {trusted}, and habit alone "
        f"{habit} (one seed)."
    )


def pair_attacks() -> str:
    """Says how many random attacks were tried within the radius and beyond."""
    found = sources.document("pair_votes_attacks")
    within, changed, beyond, flipped = (
        sum(row[place][what] for row in found)
        for place, what in (("within", "attacks"), ("within", "changed"), ("beyond", "attacks"), ("beyond", "changed"))
    )
    names = listed([NAMES[row["dataset"]] for row in found])
    return (
        f"Of {within:,} random attacks within the radius on {names}, {_count_or_none(changed)} changed a label. "
        f"With one more change, {flipped:,} of {beyond:,} did."
    )


def pair_costs() -> str:
    """Says how large certificates are, and how long it takes to verify them."""
    found = some(sources.rows("pair_votes_links"), method=PAIR_VOTES)
    most = max(row["pairs"] for row in found)
    full = [cost for row in found if row["pairs"] == most for cost in row["costs"]]
    sizes = [cost["bytes"] / 1e6 for cost in full]
    seconds = [cost["verifying"] for cost in full]
    return (
        f"A certificate of {most:,} pairs has {min(sizes):.1f} to {max(sizes):.1f} MB. Verifying it from the file alone takes {min(seconds):.1f} to "
        f"{max(seconds):.1f} s on a busy machine."
    )


# ---- Poisoned labels ----

LABEL_COLUMNS = (0, 1, 5, 20)
CHOSEN_PARTS = {"30": "DPA, same vectors, T=50", "20": "DPA, same vectors, T=10"}
LABEL_METHODS = {
    "LabelVotes few": '`preset="few"`',
    "LabelVotes many": '`preset="many"`',
    CHOSEN_PARTS["30"]: "partition ensemble (DPA)",
    "single ridge, same vectors, no cap": "undefended ridge",
}


def _labels(dataset: str, protocol: str, method: str, size: int) -> str:
    found = some(sources.rows("label_votes"), dataset=dataset, protocol=protocol, method=method)
    return _curve(found, LABEL_SIZES, [size])[0]


def label_table() -> str:
    """Certified accuracy against flipped training labels, 30 % of the nodes being labelled."""
    found = some(sources.rows("label_votes"), protocol="30")
    methods = dict.fromkeys(_datasets(found), LABEL_METHODS)

    def cells(dataset: str, method: str) -> list[str]:
        return [_labels(dataset, "30", method, size) for size in LABEL_COLUMNS]

    return _method_table(methods, f"mean of {_splits_in_words(found)}", LABEL_COLUMNS, cells)


def label_few() -> str:
    """Says what votes of all nodes cost where few nodes are labelled, and up to where anything is certified there."""
    both = [
        _labels("amazon-c", "20", f"LabelVotes few{more}", 1) for more in ("", ", all candidates")
    ]  # the preset for one changed label
    found = [row for row in some(sources.rows("label_votes"), protocol="20") if row["method"].startswith("LabelVotes")]
    best = max(mean(rows, lambda row: row["certified"])[LABEL_SIZES.index(10)] for rows in _by_method(found))
    return (
        f"With few labels, prefer flips. On Amazon-C with 20 labels per class, {both[0]} of the nodes are certified against one flipped label, and only "
        f"{both[1]} against one label that is flipped, added or removed. Against 10 changed labels, no setting certifies more than {share(best)} on any dataset."
    )


def _by_method(found: list[Row]) -> list[list[Row]]:
    groups = dict.fromkeys((row["dataset"], row["method"]) for row in found)
    return [some(found, dataset=dataset, method=method) for dataset, method in groups]


def label_attacks() -> str:
    """Says how many attacks on labels were tried within the radius and beyond."""
    found = sources.rows("label_votes_attacks")
    within, changed, beyond, flipped = (
        sum(row[name] for row in found)
        for name in ("attacks within the radius", "labels changed", "one beyond", "labels changed beyond")
    )
    names = listed([NAMES[row["dataset"]] for row in found])
    return f"Of {within:,} attacks within the radius on {names}, {_count_or_none(changed)} changed a decision. With one more label, {flipped:,} of {beyond:,} did."


# ---- Labels and edges together ----

JOINT_LABELS, JOINT_EDGES = (0, 1, 2, 5, 10, 20), (0, 1, 2, 3, 5)  # as in the script
JOINT_COLUMNS = ((0, 0), (1, 0), (5, 0), (0, 1), (1, 1), (5, 1), (5, 3))
JOINT_METHODS = {
    "few, no edges": "`neighbour_votes=0`",
    "few, 2 votes": "`neighbour_votes=2`",
    "few, 6 votes": "`neighbour_votes=6`",
    "few, 15 votes": "`neighbour_votes=15`",
}


def joint_table() -> str:
    """Certified accuracy against flipped labels and changed edges together."""
    found = sources.rows("labels_and_edges")

    def certified(row: Row) -> list[float]:
        return [
            row["certified"][JOINT_LABELS.index(labels)][JOINT_EDGES.index(edges)] for labels, edges in JOINT_COLUMNS
        ]

    def cells(dataset: str, method: str) -> list[str]:
        return [share(value) for value in mean(some(found, dataset=dataset, method=method), certified)]

    methods = dict.fromkeys(_datasets(found), JOINT_METHODS)
    columns = [f"{labels} + {edges}" for labels, edges in JOINT_COLUMNS]
    return _method_table(methods, f"labels + edges, mean of {_splits_in_words(found)}", columns, cells)


def joint_attacks() -> str:
    """Says how many attacks on labels and edges together were tried, within what is certified and beyond."""
    (row,) = sources.rows("labels_and_edges_attacks")
    changed = row["labels changed within"]
    return (
        f"Of {row['attacks within']:,} attacks on {NAMES[row['dataset']]} within the certified budgets, {_count_or_none(changed)} changed a decision. With one more edge, "
        f"{row['labels changed by it']:,} of {row['one edge beyond']:,} decisions were changed, and with one more label {row['labels changed by that']:,} of "
        f"{row['one label beyond']:,}: here the theorem is a bound."
    )


# ---- Poisoned graphs and edges ----

GRAPH_SIZES = (0, 1, 2, 5, 10, 20)
GRAPH_METHODS = {
    "50 models, one view": "50 models",
    "50 models, 5 views": "50 models, 5 views",
    "undefended gin": "one undefended model",
    "constant": "the most frequent class",
}
MIXED = ((0, 1), (1, 1), (2, 1), (5, 1), (1, 2))  # as in the script: poisoned graphs, changed nodes of the test graph


def graph_table() -> str:
    """Certified accuracy against poisoned training graphs."""
    found = sources.rows("poisoned_graphs")
    measured = [row for row in found if "certified" in row]

    def cells(dataset: str, method: str) -> list[str]:
        accuracy, *certified = _curve(some(found, dataset=dataset, method=method), GRAPH_SIZES, GRAPH_SIZES)
        if method.startswith("undefended"):
            certified = ["–"] * len(certified)
        return [accuracy, *certified]

    methods = _methods_of(found, GRAPH_METHODS)
    return _method_table(methods, f"mean of {_splits_in_words(measured)}", GRAPH_SIZES, cells)


def graph_mixed() -> str:
    """Says what is left if one node of the test graph changes as well."""
    found = [row for row in sources.rows("poisoned_graphs") if "mixed" in row]
    parts = []
    for dataset in _datasets(found):
        values = mean(some(found, dataset=dataset), lambda row: row["mixed"])
        one, five = (share(values[MIXED.index((poisoned, 1))]) for poisoned in (1, 5))
        parts.append(f"{one} at 1 poisoned graph and {five} at 5 on {NAMES[dataset]}")
    return (
        f"With 5 views, if one node of the test graph is changed or deleted as well, this share is {'; '.join(parts)}."
    )


def graph_attacks() -> str:
    """Says how many ways of poisoning were tried within the radius and beyond."""
    sentences = []
    for row in (row for row in sources.rows("poisoned_graphs") if "attack" in row):
        within, beyond = row["attack"]["within"], row["attack"]["one beyond"]
        changed = (
            "no label changed" if within["labels changed"] == 0 else f"{within['labels changed']:,} labels changed"
        )
        sentences.append(
            f"On {NAMES[row['dataset']]}, we trained models on parts with one poisoned graph each and combined them in {within['attacks']:,} ways within the "
            f"radius of a target: {changed}. With one more poisoned graph, {beyond['labels changed']:,} of {beyond['attacks']:,} labels changed."
        )
    return " ".join(sentences)


BLIND_SIZES = (0, 1, 2, 3, 5)
BLIND_METHODS = {
    "no edges": "models on features, no edges",
    "edge-blind, weight 0.25": "edge-blind, weight 0.25",
    "edge-blind, weight 0.5": "edge-blind, weight 0.5",
    "stacked votes, trained on edges": "votes trained on edges, not edge-blind",
}


def blind_table() -> str:
    """Certified accuracy of votes whose training reads no edge."""
    found = sources.rows("edge_blind")

    def cells(dataset: str, method: str) -> list[str]:
        return _curve(some(found, dataset=dataset, method=method), BLIND_SIZES, BLIND_SIZES)

    methods = _methods_of(found, BLIND_METHODS)
    return _method_table(methods, f"mean of {_splits_in_words(found)}", BLIND_SIZES, cells)


BLOCKS: dict[str, Callable[[], str]] = {
    **append_only.BLOCKS,
    "pairs, setting": pair_setting, "pairs, links": pair_links, "pairs, gains": pair_gains,
    "pairs, ratings": pair_ratings, "pairs, events": pair_events, "pairs, attacks": pair_attacks, "pairs, costs": pair_costs,
    "rates, splits": rate_splits, "rates, monitor": rate_monitor,
    "labels": label_table, "labels, few": label_few, "labels, attacks": label_attacks,
    "labels and edges": joint_table, "labels and edges, attacks": joint_attacks,
    "poisoned graphs": graph_table, "poisoned graphs, mixed": graph_mixed, "poisoned graphs, attacks": graph_attacks,
    "attacked, nettack": attacked.nettack, "attacked, metattack": attacked.metattack, "attacked, pairs": attacked.pairs,
    "attacked, together": attacked.together, "attacked, first": attacked.first, "attacked, line": attacked.line,
    "attacked, outside": attacked.outside,
    "attacked, settled": attacked.settled, "of neighbours": attacked.of_neighbours,
    "edge-blind": blind_table, "choosing": choosing, "costs": costs,
    "pyg, counted": pyg_counted, "pyg, accepted": pyg_accepted, "pyg, refused": pyg_refused,
}  # fmt: skip
