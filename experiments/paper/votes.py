"""Stacked votes, raised controls and what is possible, for the results page.

Rows are those of ``experiments.benchmarks.stacked`` and ``experiments.benchmarks.ceilings``. A model of two levels is
held against edges anywhere, one of one level against edges and nodes that come or go.
"""

from agnncert.report.drawing import Curve, Level, Panel
from experiments.paper.defences import Line
from experiments.paper.defences import curve as defended
from experiments.paper.prose import listed
from experiments.paper.rows import NAMES, Results, Row, Spread, certified_at, share, spread_of
from experiments.paper.spec import DIVISIONS, GRAPH_SETS, NODE_SETS, Setting, main_setting
from experiments.paper.tables import NOTHING, markdown, shown

SIZES = (0, 1, 2, 3, 5, 10)
PROTOCOLS = ("inductive", "transductive")
CONTROL = "sums of node features"
REFERENCE = "true classes of all neighbours, reference"
KINDS = {
    "stacked-votes(levels=1, sum)": "one level",
    "stacked-votes(levels=2, sum)": "two levels",
    "stacked-votes(levels=1, sum, gated)": "one level, gated",
    "stacked-votes(levels=1, sum), standardised features": "one level, standardised features",
}
WORTH = 0.003  # a difference that is told from none


def stacked(results: Results, dataset: str, protocol: str, rule: str, size: float, trusted: float | None) -> list[Row]:
    """The rows of one model, one per seed, with the curve that belongs to its number of levels."""
    wanted = (dataset, protocol, rule, size, trusted)
    names = ("dataset", "protocol", "rule", "size", "trusted")
    curve = "edges" if "levels=2" in rule else "structure"
    found = [row for row in results.stacked if tuple(row[name] for name in names) == wanted]
    return [{**row, "sizes": SIZES, "certified": row[curve]} for row in found]


def models(results: Results, dataset: str, protocol: str) -> list[tuple[str, float]]:
    """Rules and the sizes that they were made for, without trusted edges."""
    rows = [r for r in results.stacked if (r["dataset"], r["protocol"], r["trusted"]) == (dataset, protocol, None)]
    return sorted({(row["rule"], row["size"]) for row in rows if row["rule"] in KINDS}, key=lambda one: (*one[::-1],))


def ensemble(results: Results, dataset: str, standard: bool = False) -> Spread | None:
    """Accuracy of the cross-fitted models without edges; ``standard``: of those on standardised features."""
    rows = [row for row in results.stacked if row["dataset"] == dataset and ("standard" in row["rule"]) == standard]
    return spread_of({row["seed"]: row for row in rows}.values(), "without edges")


def without_edges(results: Results, dataset: str) -> list[tuple[str, Spread]]:
    """Models that read no edges, by name, best first: no change of edges or of other nodes alters them."""
    single = {row["seed"]: row for row in results.designs if row["dataset"] == dataset and "accuracy_mlp" in row}
    known = (
        ("five MLPs", ensemble(results, dataset)),
        ("five MLPs, standardised features", ensemble(results, dataset, standard=True)),
        ("one MLP, trained as for votes designed for a size", spread_of(single.values(), "accuracy_mlp")),
    )
    return sorted(((name, found) for name, found in known if found is not None), key=lambda one: -one[1].mean)


def control(results: Results, dataset: str) -> Spread | None:
    """Accuracy of a classifier of sums of node features, which no edge alters."""
    return spread_of([r for r in results.ceilings if (r["dataset"], r["what"]) == (dataset, CONTROL)], "accuracy")


def raised(results: Results, dataset: str) -> list[Level]:
    """The best control without edges as a line of a figure."""
    known = (("five MLPs", ensemble(results, dataset)), ("node sums", control(results, dataset)))
    return [Level("mlp", label, spread.mean) for label, spread in known if spread is not None]


def node_table(results: Results) -> str:
    """Certified accuracy of stacked votes by size, beside the models without edges and the reference."""
    rows = []
    for dataset in NODE_SETS:
        for protocol in PROTOCOLS:
            for rule, size in models(results, dataset, protocol):
                found = stacked(results, dataset, protocol, rule, size, None)
                at = [shown(certified_at(found, s)) for s in SIZES]
                at = [f"**{value}**" if s == size else value for s, value in zip(SIZES, at, strict=True)]
                rows.append([f"{NAMES[dataset]}, {KINDS[rule]}, {protocol}", f"{size:g}", *at, str(len(found))])
        for name, alone in without_edges(results, dataset) if models(results, dataset, "inductive") else ():
            rows.append([f"{NAMES[dataset]}, {name}", NOTHING, *[share(alone.mean)] * len(SIZES), str(alone.count)])
        for row in _reference(results, dataset):
            name = f"{NAMES[dataset]}, true classes of all neighbours: reference, not a bound"
            rows.append([name, NOTHING, *map(share, row["reference"]), "1"])
    return markdown(["", "made for", *map(str, SIZES), "seeds"], rows)


def trusted_table(results: Results) -> str:
    """The same where a share of the edges is out of reach."""
    rows = []
    keys = {(r["dataset"], r["trusted"], r["rule"], r["size"]) for r in results.stacked if r["trusted"] is not None}
    for dataset, trusted, rule, size in sorted(keys):
        found = stacked(results, dataset, "inductive", rule, size, trusted)
        curve = [shown(certified_at(found, s)) for s in SIZES]
        rows.append([f"{NAMES[dataset]}, {100 * trusted:.0f} %", *curve, str(len(found))])
    return markdown(["edges trusted", *map(str, SIZES), "seeds"], rows)


def graph_table(results: Results) -> str:
    """Against edges alone: what reads no edge, beside certificates and the undefended model."""
    rows = []
    for dataset in GRAPH_SETS:
        found = control(results, dataset)
        if found is not None:
            mains = [results.of(main_setting(dataset, division)) for division in DIVISIONS]
            unlimited = [spread_of(each, "certified_unlimited_edges") for each in mains]
            rows.append([
                NAMES[dataset], str(found), str(found.count),
                shown(results.spread(Setting(dataset, model="mlp"), "accuracy_whole_graph")),
                _gnncert(results, dataset), " / ".join(map(shown, unlimited)),
                shown(results.spread(Setting(dataset), "accuracy_whole_graph")),
                shown(spread_of(mains[0], "accuracy_majority")),
            ])  # fmt: skip
    titles = [
        "any number of edges", "sums of node features", "seeds", "bag of nodes (GNN)", "GNNCert-E at 1 / 10",
        "vote, E / N", "undefended GCN (no proof)", "majority class",
    ]  # fmt: skip
    return markdown(titles, rows)


def _gnncert(results: Results, dataset: str) -> str:
    rows = [row for row in results.comparisons.values() if row["setting"]["dataset"] == dataset]
    at = defended(rows, Line("", "gnncert-e"), "edges") if rows else {}
    return " / ".join(share(at[size]) for size in (1, 10)) if {1, 10} <= set(at) else NOTHING


def possible_table(results: Results) -> str:
    """What no classifier of a statistic can exceed, by size."""
    rows = [
        [f"{NAMES[row['dataset']]}: {row['what']}", *map(share, row["possible"])]
        for dataset in GRAPH_SETS
        for row in results.ceilings
        if row["dataset"] == dataset and "possible" in row
    ]
    return markdown(["at most possible", *map(str, SIZES)], rows)


def panels(results: Results, dataset: str) -> list[Panel]:
    """Stacked votes of one dataset, by protocol; the reference as hollow points, for each size has its own weight."""
    found = []
    for protocol in PROTOCOLS:
        curves = []
        for look, (rule, size) in enumerate(models(results, dataset, protocol)):
            rows = stacked(results, dataset, protocol, rule, size, None)
            at = [spread for s in SIZES if (spread := certified_at(rows, s)) is not None]
            label = f"{KINDS[rule]}, for {size:g}"
            mean, low, high = ([float(getattr(s, end)) for s in at] for end in ("mean", "low", "high"))
            curves.append(Curve(label, look, SIZES, mean, low, high))
        if curves:
            for row in _reference(results, dataset):
                curves.append(Curve("reference", len(curves), SIZES, row["reference"], envelope=True))
            undefended = results.spread(Setting(dataset), "accuracy_whole_graph")
            levels = [] if undefended is None else [Level("undefended", "undefended", undefended.mean)]
            found.append(Panel(f"{NAMES[dataset]}, {protocol}", curves, [*levels, *raised(results, dataset)]))
    return found


def _reference(results: Results, dataset: str) -> list[Row]:
    return [row for row in results.ceilings if (row["dataset"], row["what"]) == (dataset, REFERENCE)]


def gains(results: Results, dataset: str, protocol: str = "inductive") -> list[tuple[float, float, float]]:
    """For each size that models were made for: the size, the best of them there, and its gain over no edges."""
    alone, best = without_edges(results, dataset), dict[float, float]()
    for rule, size in models(results, dataset, protocol):
        at = certified_at(stacked(results, dataset, protocol, rule, size, None), int(size))
        if at is not None and "gated" not in rule:
            best[size] = max(best.get(size, 0.0), at.mean)
    return [(size, value, value - alone[0][1].mean) for size, value in sorted(best.items())] if alone else []


def node_words(results: Results) -> str:
    """Where edges pay, and where they cannot."""
    pays, not_, cannot = list[str](), list[str](), list[str]()
    for dataset in NODE_SETS:
        for words, found in (
            (pays, [one for one in gains(results, dataset) if one[2] > WORTH]),
            (not_, [one for one in gains(results, dataset) if one[2] <= WORTH]),
        ):
            if found:
                told = listed([f"{share(value)} at {size:g}" for size, value, _ in found])
                words.append(f"{NAMES[dataset]} ({told}; without edges {share(found[0][1] - found[0][2])})")
        for row in _reference(results, dataset):
            low = [s for s, value in zip(SIZES, row["reference"], strict=True) if value - row["without edges"] <= WORTH]
            if low:
                cannot.append(
                    f"On {NAMES[dataset]} even votes that know the true classes of all neighbours certify no more than "
                    f"models without edges from {low[0]} on (seed 0)."
                )
    parts = [f"Edges pay on {listed(pays)}."] if pays else []
    parts += [f"They do not on {listed(not_)}."] if not_ else []
    return " ".join([*parts, *cannot])


def graph_words(results: Results) -> str:
    """What reading no edge at all is worth for graphs."""
    above, below = list[str](), list[str]()
    for dataset in GRAPH_SETS:
        found, plain = control(results, dataset), results.spread(Setting(dataset), "accuracy_whole_graph")
        if found is not None and plain is not None:
            side = above if found.mean >= plain.mean else below
            side.append(f"{NAMES[dataset]} ({share(found.mean)} against {share(plain.mean)})")
    if not above and not below:
        return ""
    parts = [f"is at least as accurate as the undefended GCN on {listed(above)}"] if above else []
    parts += [f"less accurate on {listed(below)}"] if below else []
    return f"A classifier that reads sums of node features and no edge {'; '.join(parts)}."


def first_words(results: Results) -> dict[str, str]:
    """What the ten sentences at the beginning of the page say about all this; empty without rows."""
    alone = [found[0][1].mean for dataset in NODE_SETS if (found := without_edges(results, dataset))]
    sums = [spread.mean for dataset in GRAPH_SETS if (spread := control(results, dataset)) is not None]
    gained = [(gain, dataset, value) for dataset in NODE_SETS for _, value, gain in gains(results, dataset)[:1]]
    words = {"ensemble": "", "control": "", "edges": ""}
    if alone:
        words["ensemble"] = (
            f"; the best of these, mostly the mean of five MLPs, has {share(min(alone))} to {share(max(alone))}"
        )
    if sums:
        told = f"{share(min(sums))} to {share(max(sums))}"
        words["control"] = (
            f", and one that only sums the features of nodes has accuracy {told} whatever happens to edges"
        )
    if gained:
        gain, dataset, value = max(gained)
        words["edges"] = (
            f"Edges [pay where nodes have many neighbours](#beyond-the-paper-where-edges-pay-and-where-they-cannot): on "
            f"{NAMES[dataset]} stacked votes certify {share(value)} at size 1, {share(gain)} more than the best model without edges. "
        )
    return words
