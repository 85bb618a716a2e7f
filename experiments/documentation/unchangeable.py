"""Tables about models of graphs that read only what an attacker cannot change, and about what was tried beside them."""

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from experiments.benchmarks.graph_field import RULES, SIZES_OF
from experiments.benchmarks.graph_trials import CHOICE_SEED
from experiments.documentation.facts import NODE_TYPES, ends, percent, table
from experiments.documentation.sources import Row, rows, some
from experiments.paper.rows import NAMES

SPLITS = 5
SIZES = (0, 1, 2, 3, 5, 10, 20)
CEILING_SIZES = (0, 1, 2, 3, 5, 10)
SETS = ("mutag", "nci1", "proteins", "aids", "dd")
TRAINED = ("AGNNCert-E", "AGNNCert-N", *RULES.values())
COUNTING = "counting nodes, for each size"
BY_STRUCTURE = "structure, any features"
IN_OR_OUT = "node types, nodes injected or deleted"
# What each threat is called in ``graph_field``, and the sizes that are shown.
SHOWN = {"edges": (1, 3, 10), "features": (1, 3, 10), "nodes": (1, 3, 10), "any changes": (1, 3)}
NOTHING = "–"


def name_of(dataset: str) -> str:
    """Returns the name of a dataset as the field writes it."""
    return NAMES.get(dataset, dataset.upper())


def of_graph_votes(dataset: str, at: int, what: str = "graph votes", **model: Any) -> list[float]:
    """What a model of graph votes, or a control beside it, certifies at a size, split by split."""
    found = some(rows("graph_votes"), dataset=dataset, what=what)
    return [row["certified"][SIZES.index(at)] for row in found if model.items() <= row.items()]


def undefended(dataset: str, kind: str) -> list[float]:
    """The accuracy of an undefended model, split by split."""
    tested = [row for row in rows("graph_undefended") if (row["dataset"], row["model"]) == (dataset, kind)]
    return [row["accuracy"] for row in tested if row["what"] == "test"]


def undefended_training() -> dict[str, int]:
    """How many undefended models were trained, how many of them converged, and after how many epochs the last one did."""
    tested = [row for row in rows("graph_undefended") if row["what"] == "test"]
    converged = [row["epochs"] for row in tested if row["converged"]]
    return {"models": len(tested), "converged": len(converged), "most": max(converged)}


def unchangeable_table() -> str:
    """What is right on graphs that nobody attacks, of models that read only a half, beside models without a proof."""
    titles = ["%, mean (lowest to highest split)", "most frequent class", "counting nodes"]
    titles += ["bag of nodes: any edges", "structure only: any features", "undefended GIN", "undefended GCN"]
    lines = []
    for dataset in SETS:
        cells = [
            of_graph_votes(dataset, 0, "majority"),
            of_graph_votes(dataset, 0, COUNTING),
            of_graph_votes(dataset, 0, trusted="nodes", size=None),
            of_graph_votes(dataset, 0, trusted="structure", size=None),
            *(undefended(dataset, kind) for kind in ("gin", "gcn")),
        ]
        lines.append([name_of(dataset), *map(_with_range, cells)])
    return table(titles, lines)


def _with_range(values: Sequence[float]) -> str:
    """Returns a mean with the lowest and the highest value; a dash if nothing was run."""
    if not values:
        return NOTHING
    if len(values) == 1:
        return f"{percent(values[0])}, one split"
    spread = percent(values[0]) if max(values) == min(values) else ends(values).replace(" to ", "–")
    few = "" if len(values) == SPLITS else f", {len(values)} splits only"
    return f"{percent(float(np.mean(values)))} ({spread}{few})"


# ---- By threat ----


def splits() -> tuple[int, ...]:
    """The splits on which every defence was run on every dataset; all means by threat are over these."""
    there = {(row["dataset"], row["defence"], row["seed"]) for row in rows("graph_field")}
    wanted = list(itertools.product(SETS, TRAINED))
    return tuple(seed for seed in sorted({seed for *_, seed in there}) if all((*one, seed) in there for one in wanted))


def means_over_splits() -> str:
    """Says how many splits these tables are about."""
    number = len(splits())
    return f"The tables are means over {number} splits." if number > 1 else "The tables are about one split."


def threat_table(threat: str) -> str:
    """What is certified against one threat at several sizes, on the same splits, beside the ceiling."""
    sizes = SHOWN[threat]
    untouched = {"edges": "bag of nodes", "features": "structure only"}.get(threat, "node votes")
    titles = [f"at {_sizes(sizes)}", "most frequent class", "counting nodes", untouched, "AGNNCert-E", "AGNNCert-N"]
    titles += ["chosen rule, E", "chosen rule, N", "ceiling"]
    lines = []
    for dataset in SETS:
        curves = [
            [_mean(_of_splits(dataset, 0, "majority"))] * len(sizes),
            [_counted(dataset, threat, at) for at in sizes],
            [_untouched(dataset, threat, at) for at in sizes],
            *([_mean(_defended(dataset, name, threat, at)) for at in sizes] for name in TRAINED),
        ]
        most = [max(map(_shown, at)) for at in zip(*curves, strict=True)]
        ceiling = [_ceiling(dataset, threat, at) for at in sizes]
        lines.append([name_of(dataset), *(_cell(curve, most) for curve in curves), _cell(ceiling)])
    return table(titles, lines)


def _sizes(sizes: Sequence[int]) -> str:
    return " / ".join(map(str, sizes))


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if len(values) else None


def _shown(share: float | None) -> float:
    """Returns a share as a page shows it, as a number."""
    return -1.0 if share is None else float(percent(share))


def _cell(curve: Sequence[float | None], most: Sequence[float] | None = None) -> str:
    """Returns a curve, one number if it is the same everywhere; what nothing in its line exceeds is bold."""
    shown = []
    for place, share in enumerate(curve):
        is_most = most is not None and share is not None and _shown(share) == most[place]
        written = NOTHING if share is None else percent(share)
        shown.append(f"**{written}**" if is_most else written)
    return shown[0] if len(set(shown)) == 1 else " / ".join(shown)


def _of_splits(
    dataset: str, at: int, what: str = "graph votes", column: str = "certified", **model: Any
) -> list[float]:
    """What a row of graph votes certifies at a size on the splits of these tables; empty if one of them was not run."""
    wanted = splits()
    found = [row for row in some(rows("graph_votes"), dataset=dataset, what=what) if row["seed"] in wanted]
    made = [row[column][SIZES.index(at)] for row in found if model.items() <= row.items()]
    return made if len(made) == len(wanted) else []


def _defended(dataset: str, defence: str, threat: str, at: int) -> list[float]:
    wanted, place = splits(), SIZES_OF[threat].index(at)
    found = some(rows("graph_field"), dataset=dataset, defence=defence)
    return [row[threat][place] for row in found if row["seed"] in wanted]


def _counted(dataset: str, threat: str, at: int) -> float | None:
    """Counting: nobody changes the number of nodes unless nodes come and go."""
    return _mean(_of_splits(dataset, at if threat in ("nodes", "any changes") else 0, COUNTING))


def _untouched(dataset: str, threat: str, at: int) -> float | None:
    """The model that reads only what the threat leaves alone; votes of nodes made for the size where nothing is."""
    if threat in ("edges", "features"):
        trusted = {"edges": "nodes", "features": "structure"}[threat]
        return _mean(_of_splits(dataset, 0, trusted=trusted, size=None))
    against, column = {"nodes": ("structure", "certified_structure"), "any changes": ("any", "certified")}[threat]
    return _mean(_of_splits(dataset, at, column=column, trusted="none", size=at, against=against))


def _ceiling(dataset: str, threat: str, at: int) -> float:
    """What no classifier of its kind exceeds."""
    what, size = {
        "edges": (NODE_TYPES, 0),
        "features": (BY_STRUCTURE, 0),
        "nodes": (IN_OR_OUT, at),
        "any changes": (NODE_TYPES, at),
    }[threat]
    (found,) = some(rows("ceilings"), dataset=dataset, what=what)
    return float(found["possible"][CEILING_SIZES.index(size)])


def node_votes(dataset: str, size: int, against: str = "structure") -> dict[str, Any]:
    """Votes of nodes at the size that they are made for: on how many splits they were kept, and what they certify.

    ``kept`` is what the library certifies; ``votes`` what votes certify whether they were kept or not, if that is known.
    """
    wanted = dataset, "none", size, against
    made = [row for row in rows("graph_votes") if _about(row) == wanted]
    seeds = {row["seed"] for row in made}
    counted = [row for row in some(rows("graph_votes"), dataset=dataset, what=COUNTING) if row["seed"] in seeds]
    column = "certified_structure" if against == "structure" else "certified"
    of_votes = [row[column] if row["kept"] == "votes" else row.get("certified_by_votes_not_kept") for row in made]
    at = SIZES.index(size)
    return {
        "splits": len(made),
        "times": sum(row["kept"] == "votes" for row in made),
        "kept": _mean([row[column][at] for row in made]),
        "votes": _mean([curve[at] for curve in of_votes]) if all(of_votes) else None,
        "counting": _mean([row["certified"][at] for row in counted]),
    }


def _about(row: Row) -> tuple[Any, ...]:
    return row["dataset"], row.get("trusted"), row.get("size"), row.get("against")


def over_counting(size: int) -> dict[str, Any]:
    """How often votes of nodes made for a size were kept, and by how many points what is kept is above counting at most."""
    compared = [one for one in (node_votes(dataset, size) for dataset in SETS) if one["splits"]]
    return {
        "datasets": len(compared),
        "splits": sum(one["splits"] for one in compared),
        "times": sum(one["times"] for one in compared),
        "points": max((100 * (one["kept"] - one["counting"]) for one in compared), default=None),
    }


def seconds_of_parts() -> dict[str, float]:
    """Median seconds of one core: training what reads a trusted part, and votes of nodes; certifying; other models."""
    made = [row for row in rows("graph_votes") if row["what"] == "graph votes"]
    plain, voting = ([row for row in made if (row["trusted"] == "none") is of_nodes] for of_nodes in (False, True))
    seconds = {
        "trusted part": [row["seconds_training"] for row in plain if row["size"] is None],
        "node votes": [row["seconds_training"] for row in voting],
        "certifying": [row["seconds_certifying"] for row in made],
        "AGNNCert": [row["seconds"]["training"] for row in rows("graph_field") if row["defence"] in TRAINED],
        "undefended": [row["processor_seconds"] for row in rows("graph_undefended") if row["what"] == "test"],
    }
    return {name: float(np.median(values)) for name, values in seconds.items()}


# ---- Attacks and trials ----


def attacked_graphs() -> dict[str, int]:
    """Random attacks on graph votes within the radius, and the worst attacks within and beyond it, added up."""
    names = ("attacks", "flipped", "worst_within", "worst_within_flipped", "worst_beyond", "worst_beyond_flipped")
    return {name: sum(row[name] for row in rows("graph_attacks")) for name in names}


TRIED = {
    "spectral counts": ("spectral counts", "a node of any degree", "counting nodes"),
    "embeddings as roles": ("a GNN's embeddings as roles", "a node's features", "structure only"),
    "stars": ("stars", "an edge", "bag of nodes"),
    "ensemble, none trusted": ("ten tables of node votes, averaged", "a node of any degree", "counting nodes"),
    "ensemble, structure trusted": ("ten tables of votes by role, averaged", "a node's features", "structure only"),
}


def trial_table() -> str:
    """Designs that were tried and are not part of the library: what they certify at one change of validation graphs."""
    lines = []
    for what, (name, change, bar) in TRIED.items():
        for dataset in SETS:
            wanted = what, dataset, CHOICE_SEED
            tried = [row for row in rows("graph_trials") if (row["trial"], row["dataset"], row["seed"]) == wanted]
            if not tried:
                continue
            best = max(tried, key=lambda row: row["val"]["certified"])["val"]
            numbers = [percent(best[key]) for key in ("no change", "certified", "to beat", "standard error")]
            numbers[2] += f" ({bar})"
            lines.append([f"{name}, {name_of(dataset)}", change, str(len(tried)), *numbers])
    titles = ["% of validation graphs", "one change of", "settings", "no change", "certified", "to beat"]
    return table([*titles, "standard error of the difference"], lines, words=2)


def tried_again(what: str, dataset: str) -> dict[str, Any]:
    """What a design that certified more on validation graphs certifies of the test graphs of other splits."""
    made = [row for row in rows("graph_trials") if (row["trial"], row["dataset"]) == (what, dataset) and "test" in row]
    found = {name: _mean([row["test"][name] for row in made]) for name in ("certified", "to beat")}
    return {
        "splits": len(made),
        "more": sum(row["test"]["certified"] > row["test"]["to beat"] for row in made),
        **found,
    }
