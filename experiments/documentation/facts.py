"""Numbers for the sentences and short tables of the results page, each read from the committed rows."""

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from agnncert.datasets.catalog import dataset_info
from experiments.benchmarks import taught as taught_runs
from experiments.benchmarks.field import CONTROLS, TAUGHT, UNTAUGHT, defences_under
from experiments.benchmarks.field import SIZES as FIELD_SIZES
from experiments.benchmarks.interception_curve import PUBLISHED
from experiments.documentation import sources
from experiments.documentation.sources import Row, document, mean, rows, some
from experiments.documentation.tables import STACKED_SIZES, certified, fraud_rows
from experiments.paper import designed, votes
from experiments.paper import tables as paper
from experiments.paper.rows import NAMES, certified_at, spread_of
from experiments.paper.spec import DIVISIONS, GRAPH_SETS, NODE_SETS, Contest, Setting, main_setting

# Parts of the released program that were tried in place of ours, and the defences that were tried with them.
DIFFERENCES = {
    "none": "ours",
    "edges": "the edges of its file",
    "features": "its features",
    "split": "its split",
    "training": "its model and training",
    "all of them": "all four",
}
VOTERS = ("undefended", "E", "N")
NEVER_PROVES = "RS"  # anything about the field's attacks; on the larger graphs it was not run on every split
NODE_TYPES = "node types, any change of nodes"


def percent(value: float) -> str:
    """Returns a share in percent with one digit, without the sign.

    Example:
        >>> percent(0.9123), percent(1.0)
        ('91.2', '100.0')
    """
    return f"{100 * value:.1f}"


def ends(values: Iterable[float], form: Any = percent) -> str:
    """Returns the smallest and the largest value, as "72.3 to 86.9"."""
    known = list(values)
    return f"{form(min(known))} to {form(max(known))}"


def table(titles: Sequence[str], lines: Iterable[Sequence[str]], words: int = 1) -> str:
    """Returns a Markdown table; the first columns, which hold ``words``, are aligned left, all others right."""
    body = [titles, [*["---"] * words, *["---:"] * (len(titles) - words)], *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in body)


def accuracy(dataset: str, division: str) -> float:
    """Accuracy of the vote, GCN, the paper's number of subgraphs; of the undefended GCN if the division is "none"."""
    field = "accuracy_whole_graph" if division == "none" else "accuracy"
    found = sources.paper().spread(main_setting(dataset, division), field)
    return _known(found)


def other(dataset: str, field: str) -> float:
    """A number of the edge-centric main run, such as the accuracy of the majority class."""
    return _known(sources.paper().spread(main_setting(dataset, "edge"), field))


def mlp(dataset: str) -> float:
    """Accuracy of one MLP that was trained with the paper's settings."""
    return _known(sources.paper().spread(Setting(dataset, model="mlp"), "accuracy_whole_graph"))


def _known(spread: Any) -> float:
    if spread is None:
        raise LookupError("no row has this number")
    return float(spread.mean)


def at(dataset: str, division: str, size: int, **changes: Any) -> float:
    """Certified accuracy of a division at a size."""
    return _known(certified_at(sources.paper().of(main_setting(dataset, division, **changes)), size))


def accuracy_table() -> str:
    """The paper's Table 3 beside ours, GCN."""
    lines = []
    for dataset in (*NODE_SETS, *GRAPH_SETS):
        cells = []
        for division in ("none", *DIVISIONS):
            theirs = paper.accuracy(dataset, "gcn", division)
            cells += ["–" if theirs is None else f"{100 * theirs:.0f}", percent(accuracy(dataset, division))]
        lines.append([NAMES[dataset], *cells])
    kinds = ("undefended", "AGNNCert-E", "AGNNCert-N")
    return table(["%", *(f"{kind}, {who}" for kind in kinds for who in ("paper", "ours"))], lines)


def differences_table() -> str:
    """Accuracy on Cora-ML with one part of the released program in place of ours, and with all of them."""
    published = [f"{100 * (paper.accuracy('cora-ml', 'gcn', each) or 0):.0f}" for each in ("none", *DIVISIONS)]
    lines = []
    for name, words in DIFFERENCES.items():
        found = some(rows("paper-differences"), differences=name)
        measured = [percent(mean(some(found, defence=defence), lambda row: row["accuracy"])) for defence in VOTERS]
        lines.append([words, *measured])
    titles = ["%, Cora-ML", "undefended", "AGNNCert-E", "AGNNCert-N"]
    return table(titles, [*lines, ["the paper's Table 3", *published]])


def nodes_at(size: int) -> str:
    """Certified accuracy of nodes at a size, from the lowest to the highest over datasets and divisions."""
    return ends(at(dataset, division, size) for dataset in NODE_SETS for division in DIVISIONS)


def nodes_of_400(size: int) -> str:
    """The same with 400 subgraphs."""
    return ends(at(dataset, d, size, num_groups=400) for dataset in NODE_SETS for d in DIVISIONS)


def graphs_at(size: int) -> str:
    """Certified accuracy of graphs at a size, T = 30."""
    return ends(at(dataset, division, size) for dataset in GRAPH_SETS for division in DIVISIONS)


def best_graphs_at(size: int) -> str:
    """The best over numbers of subgraphs and divisions for every dataset of graphs, in words."""
    parts = []
    for dataset in GRAPH_SETS:
        found = [
            _known(certified_at(of, size))
            for division in DIVISIONS
            for of in sources.paper().varied(main_setting(dataset, division), "num_groups").values()
        ]
        parts.append(f"{percent(max(found))} % on {NAMES[dataset]}")
    return ", ".join(parts[:-1]) + f" and {parts[-1]}"


def reached() -> str:
    """In how many of the defended cells our accuracy is at least the paper's, rounded to its two digits."""
    both = [
        (accuracy(dataset, division), paper.accuracy(dataset, "gcn", division))
        for dataset in (*NODE_SETS, *GRAPH_SETS)
        for division in DIVISIONS
    ]
    return f"{sum(theirs is not None and paper.reaches(ours, theirs) for ours, theirs in both)} of {len(both)}"


def degrees() -> str:
    """Mean degrees of the node datasets."""
    return ends((_degree(dataset) for dataset in NODE_SETS), lambda value: f"{value:.1f}")


def degree(dataset: str) -> str:
    """Mean degree of a node dataset."""
    return f"{_degree(dataset):.1f}"


def functions() -> int:
    """Number of functions of Big-Vul, half of them listed as vulnerable."""
    return dataset_info("big-vul").size


def _degree(dataset: str) -> float:
    info = dataset_info(dataset)
    return 2 * info.edges / info.size


def differs() -> str:
    """The largest share of test nodes whose vote is not the prediction without edges, T = 300."""
    shares = [
        _known(spread_of(sources.paper().of(main_setting(dataset, division)), "vote_differs_from_no_edge"))
        for dataset in NODE_SETS
        for division in DIVISIONS
    ]
    return f"{100 * max(shares):.2f}"


def seconds_of_certification() -> str:
    """Seconds to certify all test targets of a dataset."""
    times = [
        _known(sources.paper().spread(main_setting(dataset, division), "seconds_certification"))
        for dataset in (*NODE_SETS, *GRAPH_SETS)
        for division in DIVISIONS
    ]
    return ends(times, lambda value: f"{value:.2f}")


def paper_seconds() -> str:
    """Seconds that the paper states for the same, on its graphics card."""
    return ends((one for both in paper.CERTIFICATION_SECONDS.values() for one in both), lambda value: f"{value:g}")


def chosen_table(cases: Sequence[tuple[str, int]]) -> str:
    """Rules chosen for a size beside what knows less."""
    lines = []
    for dataset, size in cases:
        best, by_size = designed.winner(sources.paper(), dataset, size), _by_size(dataset, size)
        values = [max(at(dataset, d, size) for d in DIVISIONS), _at_size(best, size), _at_size(by_size, size)]
        lines.append([f"{NAMES[dataset]}, {size}", *map(percent, (*values, other(dataset, "accuracy_majority")))])
    return table(["%, dataset and changes", "30 subgraphs", "chosen rule", "counts nodes or edges only", "most frequent class"], lines)  # fmt: skip


def _by_size(dataset: str, size: int) -> list[Row]:
    return designed.chosen(sources.paper(), dataset, size, designed.BY_SIZE)


def _at_size(found: Sequence[Row], size: int) -> float:
    return float(np.mean([row["test_certified"][row["sizes"].index(size)] for row in found]))


def trained_gain(dataset: str, size: int) -> str:
    """By how many points a trained model is above counting alone, with the standard error."""
    ours = designed.chosen(sources.paper(), dataset, size, designed.TRAINED)
    gain = designed.gain(ours, _by_size(dataset, size))
    return f"{100 * gain.mean:.1f} ± {100 * gain.error:.1f}"


def sums(dataset: str) -> float:
    """Accuracy of a classifier of sums of node features."""
    return _known(votes.control(sources.paper(), dataset))


def possible(dataset: str, what: str, size: int) -> float:
    """What no classifier of a statistic can exceed."""
    return float(some(rows("ceilings"), dataset=dataset, what=what)[0]["possible"][STACKED_SIZES.index(size)])


def reference(dataset: str, size: int) -> float:
    """What votes would certify that know the true classes of all neighbours, seed 0."""
    found = some(rows("ceilings"), dataset=dataset, what=votes.REFERENCE)[0]["reference"]
    return float(found[STACKED_SIZES.index(size)])


def reference_alone(dataset: str) -> float:
    """The models without edges beside that reference."""
    return float(some(rows("ceilings"), dataset=dataset, what=votes.REFERENCE)[0]["without edges"])


def stacked(
    dataset: str, size: int, *, made_for: int | None = None, kind: str = "levels=1, sum", more: str = "",
    trusted: float | None = None, attack: str = "structure",
) -> float:  # fmt: skip
    """Certified accuracy of stacked votes that were made for a size, without test nodes in training."""
    found = some(
        rows("stacked"), dataset=dataset, protocol="inductive", rule=f"stacked-votes({kind}){more}",
        size=size if made_for is None else made_for, trusted=trusted,
    )  # fmt: skip
    return float(mean(found, lambda row: row[attack])[STACKED_SIZES.index(size)])


def without_edges(dataset: str) -> float:
    """Accuracy of the best models that read no edges."""
    return float(votes.without_edges(sources.paper(), dataset)[0][1].mean)


STANDARD = ", standardised features"


def gain(dataset: str, size: int, *, kind: str = "levels=1, sum", more: str = "", attack: str = "structure") -> str:
    """Returns by how many points stacked votes that were made for a size are above the best model without edges."""
    votes_at = stacked(dataset, size, kind=kind, more=more, attack=attack)
    return f"{100 * (votes_at - without_edges(dataset)):.1f}"


def trusted(dataset: str, share: float, size: int) -> float:
    """Stacked votes where a share of the edges is out of reach."""
    return stacked(dataset, size, made_for=1, kind="levels=1, sum, edges trusted by column 0", trusted=share)


def first_splits() -> list[Row]:
    """Returns the rows about few labels on the splits that all four datasets have."""
    return [row for row in rows("taught") if row["seed"] in taught_runs.FRESH]


def taught(dataset: str, method: str, labels: str, size: int = 0) -> float:
    """Certified accuracy with 20 labels per class, against added edges."""
    found = some(first_splits(), dataset=dataset, method=method, labels=labels)
    return float(mean(found, lambda row: row["test"]["added edges"])[STACKED_SIZES.index(size)])


def taught_undefended(dataset: str) -> float:
    """Accuracy of undefended GCNs on the same splits."""
    found = some(first_splits(), dataset=dataset, method=taught_runs.UNDEFENDED)
    return float(mean(found, lambda row: np.mean(row["test"])))


def few_labels(what: str) -> list[float]:
    """Returns the accuracy of models without edges ("given" labels or "taught") or of undefended GCNs, by dataset."""
    labels = {"given": taught_runs.GIVEN, "taught": taught_runs.TAUGHT}
    if what == "undefended":
        return [taught_undefended(dataset) for dataset in taught_runs.NAMES]
    return [taught(dataset, taught_runs.MLP, labels[what]) for dataset in taught_runs.NAMES]


def fraud(
    dataset: str, method: str, measure: str = "recall@0.1", size: int = 0, *, times: bool = True, threat: str = "added"
) -> float:
    """A measure on one of the four graphs with a real adversary, certified if the size is not 0."""
    found = some(fraud_rows(), dataset=dataset, method=method, times=times)
    if size == 0:
        return float(mean(found, lambda row: row["clean"][measure]))
    return float(mean(found, lambda row: certified(row, threat, size, measure)))


def accused(dataset: str, method: str, rate: str = "0.1") -> float:
    """The share of honest test accounts above the threshold."""
    return float(
        mean(some(fraud_rows(), dataset=dataset, method=method, times=True), lambda row: row["clean"][f"false@{rate}"])
    )


def fraud_table() -> str:
    """Recall at 10 % false positives, certified by size, beside what reads no edges and what has no proof."""
    names = {
        "ethereum-phishing": "Ethereum", "bitcoin-otc": "Bitcoin-OTC", "cresci-15": "Cresci-15", "tolokers": "Tolokers",
    }  # fmt: skip
    lines = []
    for dataset, name in names.items():
        for times in (False, True) if dataset == "ethereum-phishing" else (True,):
            plain = [fraud(dataset, method, times=times) for method in ("undefended GNN", "trees on aggregates")]
            votes_ = [fraud(dataset, "stacked votes", size=size, times=times) for size in (0, 1, 3, 10)]
            dated = f", {'with' if times else 'without'} time stamps" if dataset == "ethereum-phishing" else ""
            lines.append([name + dated, *map(percent, (*plain, fraud(dataset, "no edges"), *votes_))])
    titles = [
        "recall in %",
        "undefended GNN",
        "undefended trees",
        "best without edges",
        "stacked votes",
        *(f"… against {k}" for k in (1, 3, 10)),
    ]
    return table(titles, lines)


def append_only(method: str, measure: str = "recall@0.1", times: bool = False) -> float:
    """A measure of append-only scores, or of what stands beside them, on Ethereum."""
    found = some(rows("append-only"), dataset="ethereum-phishing", method=method, times=times)
    return float(mean(found, lambda row: row[measure]))


def fraud_attacks() -> dict[str, int]:
    """How many accounts were attacked within and beyond their certificates, and how many labels flipped."""
    tried = [row["about"]["attacks"] for row in fraud_rows() if "attacks" in row["about"]]
    return {name: sum(one[name] for one in tried) for name in ("within", "flipped within", "beyond", "flipped beyond")}


def history(dataset: str, share: float, size: int) -> float:
    """Recall with a trusted history."""
    found = some(rows("fraud-trusted"), dataset=dataset, share=share)
    return float(mean(found, lambda row: row["recall"])[found[0]["sizes"].index(size)])


def history_accused(dataset: str, share: float) -> float:
    """The share of honest test accounts above the threshold there."""
    return float(mean(some(rows("fraud-trusted"), dataset=dataset, share=share), lambda row: row["false"][0]))


def history_date(dataset: str, share: float) -> str:
    """The day from which edges are the attacker's."""
    return str(some(rows("fraud-trusted"), dataset=dataset, share=share)[0]["before"])


def field_rows(dataset: str, protocol: str, defence: str) -> list[Row]:
    """Returns the rows of a defence in the table of the field."""
    wanted = (dataset, protocol, defence)
    return [row for row in rows("field") if (row["dataset"], row["protocol"], row["defence"]) == wanted]


def field(dataset: str, protocol: str, defence: str, threat: str, size: int) -> float:
    """Certified accuracy in the table of the field; of an undefended model the accuracy without an attack."""
    at = 0 if defence == "undefended GCN" else FIELD_SIZES.index(size)
    return float(mean(some(field_rows(dataset, protocol, defence)), lambda row: row[threat][at]))


def field_table(threat: str, size: int, defences: dict[str, str], *, taught: bool = False) -> str:
    """One size of one attack for all datasets, with 30 % of the labels, or with 20 per class, untaught → taught.

    The best defence is bold; controls are not counted. Defences that certify nothing are left out. What exists with a
    teacher only has one number, as an undefended model has.
    """
    protocol = TAUGHT if taught else "30 %"
    known = [name for name in defences if field_rows(NODE_SETS[0], protocol, name)]
    values = {name: [field(dataset, protocol, name, threat, size) for dataset in NODE_SETS] for name in known}
    best = np.max([found for name, found in values.items() if name not in CONTROLS], axis=0)
    lines = []
    for name, found in values.items():
        if name not in CONTROLS and not any(found):
            continue
        line = [defences[name]]
        for dataset, value, highest in zip(NODE_SETS, found, best, strict=True):
            is_best = name not in CONTROLS and value >= highest - 1e-9
            cell = f"**{percent(value)}**" if is_best else percent(value)
            if taught and name != "undefended GCN" and field_rows(dataset, UNTAUGHT, name):
                cell = f"{percent(field(dataset, UNTAUGHT, name, threat, size))} → {cell}"
            line.append(cell)
        lines.append(line)
    return table(["%", *(NAMES[dataset] for dataset in NODE_SETS)], lines)


def lead_over_mlps(protocol: str, defence: str = "AGNNCert-N") -> float:
    """Returns by how much a defence is above models that read no edges against one added edge, where it is most."""
    leads = [
        field(dataset, protocol, defence, "added edges", 1)
        - field(dataset, protocol, "graph-free MLP ensemble", "added edges", 1)
        for dataset in NODE_SETS
    ]
    return max(leads)


def num_taught_splits() -> int:
    """Returns on how many splits every defence has a row, with and without a teacher.

    Raises:
        LookupError: Some rows are missing, so that numbers side by side would be about different splits.
    """
    first = sorted(row["seed"] for row in field_rows(NODE_SETS[0], TAUGHT, "undefended GCN"))
    for dataset, protocol in itertools.product(NODE_SETS, (UNTAUGHT, TAUGHT)):
        for defence in defences_under(protocol):
            if defence == NEVER_PROVES:
                continue
            seeds = sorted(row["seed"] for row in field_rows(dataset, protocol, defence))
            if seeds != first:
                where = f"{dataset}, {protocol}, {defence}"
                raise LookupError(f"rows of {where} are about the splits {seeds}, others about {first}")
    return len(first)


def curve(of: str, count: str = "as published") -> list[float]:
    """The curve of message interception, mean over rows."""
    found = some(rows("interception_curve"), weights=of)
    return [float(value) for value in mean(found, lambda row: row[count])]


def curve_differs() -> float:
    """The largest distance between the published curve and ours with the published weights."""
    both = zip(PUBLISHED.values(), curve("published"), strict=True)
    return max(abs(theirs - ours) for theirs, ours in both)


def together(groups: int, edges: int, key: str = "certified_together") -> float:
    """What is certified together against 5 % injected nodes, node-centric."""
    (found,) = (row for row in document("collective")["rows"] if row["division"].startswith(f"node-centric(T={groups},") and row["edges_per_injected"] == edges)  # fmt: skip
    return float(found[key])


def exact(dataset: str, size: int, key: str) -> float:
    """What an undefended GCN withstands, tried exhaustively."""
    (found,) = (row for row in document("exact")["rows"] if (row["dataset"], row["size"]) == (dataset, size))
    return float(found[key])


def contest(dataset: str, defence: str, attack: str, size: int, rule: str = "certified") -> float:
    """Certified accuracy of a defence in the comparison of the paper; of Bi-RS the best noise at that size."""
    found = [row for run, row in sources.paper().comparisons.items() if _same(run, dataset, defence)]
    values = [dict(zip(row["sizes"], row["certified"][rule][attack], strict=True))[size] for row in found]
    return float(max(values))


def _same(run: Contest, dataset: str, defence: str) -> bool:
    return (run.dataset, run.defence) == (dataset, defence)


def contest_seconds(dataset: str, defence: str) -> str:
    """Seconds of certification; of Bi-RS all noise levels together."""
    found = [row for run, row in sources.paper().comparisons.items() if _same(run, dataset, defence)]
    return f"{sum(row['seconds_certification'] for row in found):.1f}"


def detector(method: str, protocol: str, stage: str = "controls") -> float:
    """Accuracy of a detector on Big-Vul."""
    return float(mean(some(rows("bigvul"), stage=stage, protocol=protocol, method=method), lambda row: row["accuracy"]))


def code_table() -> str:
    """Detectors on Big-Vul."""
    kinds = (
        ("statements", "statements 0", "vote of statements"), ("controls", "tokens", "bag of tokens, nothing proved"),
        ("controls", "statements", "number of statements alone"), ("networks", "undefended", "GCN, undefended"),
        ("networks", "E30", "GCN, AGNNCert-E, 30 subgraphs"), ("networks", "N30", "GCN, AGNNCert-N, 30 subgraphs"),
    )  # fmt: skip
    lines = [
        [words, *(percent(detector(method, protocol, stage)) for protocol in ("big-vul", "big-vul-matched"))]
        for stage, method, words in kinds
    ]
    return table(["accuracy in %", "balanced", "equal lengths"], lines)


def code_attacks() -> dict[str, int]:
    """Functions that were attacked within their certificate, and verdicts that changed."""
    found = [row for row in rows("bigvul") if row["stage"] == "attacks"]
    ways = sum(int(counts[0]) for row in found for counts in row["attacks"].values())
    return {
        "attacked": sum(row["attacked"] for row in found),
        "flips": sum(len(row["flips"]) for row in found),
        "ways": ways,
    }


def engines(key: str) -> list[float]:
    """A column of ``make bench`` on the node datasets with 300 subgraphs."""
    found = [row for row in document("engines")["rows"] if row["dataset"] in NODE_SETS and "T=300" in row["division"]]
    return [float(row[key]) for row in found if key in row]


def full_size(division: str) -> Row:
    """What certifying the synthetic graph of Amazon2M's size takes, with an untrained model."""
    return some(document("large-full-size")["rows"], cell=f"certify:1:{division}:80")[0]


def live(key: str) -> list[float]:
    """A column of what an event costs a live graph."""
    return [float(row[key]) for row in document("live")]


def replay() -> dict[str, Any]:
    """Six years of ratings on Bitcoin-OTC, replayed."""
    found = document("fraud-live")
    again, last = found["replay"], found["replay"]["quarters"][-1]
    later = [row for row in again["quarters"] if "still proved" in row]
    return {
        "ratings": f"{found['ratings']:,}", "per_second": f"{again['events'] / again['seconds']:,.0f}",
        "http": f"{found['service']['events'] / found['service']['seconds']:,.0f}",
        "right": percent(last["right"]), "certified": {size: percent(last["certified"][str(size)]) for size in (1, 3, 5)},
        "wrong": sum(row["changed though proved"] for row in later),
    }  # fmt: skip


def attacked(name: str) -> dict[str, int]:
    """Targets that were attacked within what is certified, and labels that changed although they were."""
    found = document(name)["rows"]
    return {
        "within": sum(row.get("attacked_while_certified", 0) for row in found),
        "refuted": sum(row.get("refuted", 0) for row in found),
    }


def tried(dataset: str) -> Row:
    """Every change of one edge, recomputed without the prover."""
    return some(rows("stacked_attacks"), dataset=dataset)[0]


def interception() -> Row:
    """Attacks on certificates of message interception."""
    found: Row = document("interception")
    return found
