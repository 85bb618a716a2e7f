"""The pictures of the results page, drawn from the committed rows. Each SVG file says in words what it shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agnncert.report.drawing import Curve, Level, Panel, Spoken, draw_panels
from experiments.benchmarks import bigvul, fraud, taught
from experiments.documentation import attacked
from experiments.documentation.sources import Row, mean, paper, rows, some
from experiments.documentation.tables import STACKED_SIZES, certified, fraud_rows
from experiments.paper import designed, votes
from experiments.paper.page import curve_of
from experiments.paper.rows import NAMES, share
from experiments.paper.spec import DIVISIONS, GRAPH_SETS, NODE_SETS, Setting, main_setting

FRAUD_NAMES = {
    "ethereum-phishing": "Phishing on Ethereum", "bitcoin-otc": "Paid ratings (Bitcoin-OTC)",
    "cresci-15": "Twitter bots (Cresci-15)", "tolokers": "Banned workers (Tolokers)",
}  # fmt: skip
FRAUD_LOOKS = {"stacked votes": 0, "one vote per neighbour": 1, "AGNNCert-E": 2}
LETTERS = {"edge": "AGNNCert-E", "node": "AGNNCert-N"}


@dataclass(frozen=True)
class Picture:
    """A picture of the page.

    Attributes:
        name: Its file is ``docs/results/NAME.svg``.
        title: What it shows, in a few words.
        x_label: What the horizontal axis counts.
        panels: What is drawn.
        y_label: What the vertical axis shows.
    """

    name: str
    title: str
    x_label: str
    panels: Sequence[Panel]
    y_label: str = "certified accuracy"

    @property
    def about(self) -> str:
        """Returns the picture in words, with the numbers at both ends of every curve."""
        return f"{self.title}. " + " ".join(_spoken(panel) for panel in self.panels)


def _spoken(panel: Panel) -> str:
    curves = [
        f"{c.label} {share(c.mean[0])} at {c.sizes[0]:g} and {share(c.mean[-1])} at {c.sizes[-1]:g}"
        for c in panel.curves
    ]
    levels = [f"{level.label} {share(level.value)}" for level in panel.levels]
    return f"{panel.title}: {'; '.join(curves + levels)}."


def draw(picture: Picture, folder: Path) -> Path:
    """Draws a picture, with a role, a title and a description for screen readers."""
    return draw_panels(
        picture.panels,
        folder / f"{picture.name}.svg",
        picture.x_label,
        Spoken(picture.title, picture.about),
        y_label=picture.y_label,
    )


def _level(kind: str, label: str, dataset: str, model: str) -> list[Level]:
    accuracy = paper().spread(Setting(dataset, model=model), "accuracy_whole_graph")
    return [] if accuracy is None else [Level(kind, label, accuracy.mean)]


def _divisions(dataset: str, last: int) -> list[Curve]:
    found = []
    for look, division in enumerate(DIVISIONS):
        whole = curve_of(LETTERS[division], look, paper().of(main_setting(dataset, division)))
        end = sum(size <= last for size in whole.sizes)
        low, high = whole.low or whole.mean, whole.high or whole.mean
        found.append(Curve(whole.label, look, whole.sizes[:end], whole.mean[:end], low[:end], high[:end]))
    return found


def paper_nodes() -> Picture:
    """The paper's main figure for nodes, T = 300."""
    panels = [
        Panel(
            NAMES[dataset],
            _divisions(dataset, 160),
            _level("undefended", "GCN, undefended", dataset, "gcn")
            + _level("mlp", "MLP, reads no edges", dataset, "mlp"),
        )
        for dataset in NODE_SETS
    ]
    return Picture(
        "paper-nodes", "Certified accuracy of nodes, 300 subgraphs", "changes (E: edges, N: edges or nodes)", panels
    )


def paper_graphs() -> Picture:
    """The paper's main figure for graphs, T = 30, and the rules chosen for a size."""
    panels = []
    for dataset in GRAPH_SETS:
        sizes = designed.graph_sizes(paper(), dataset)
        chosen = [_chosen(dataset, size) for size in sizes]
        curves = [*_divisions(dataset, 15), Curve("rule chosen for that size", 2, sizes, chosen, envelope=True)]
        majority = paper().spread(main_setting(dataset, "edge"), "accuracy_majority")
        levels = _level("undefended", "GCN, undefended", dataset, "gcn")
        levels += [] if majority is None else [Level("majority", "always the most frequent class", majority.mean)]
        panels.append(Panel(NAMES[dataset], curves, levels))
    return Picture(
        "paper-graphs", "Certified accuracy of graphs, 30 subgraphs", "changes (E: edges, N: edges or nodes)", panels
    )


def _chosen(dataset: str, size: int) -> float:
    best = designed.winner(paper(), dataset, size)
    return float(np.mean([row["test_certified"][row["sizes"].index(size)] for row in best]))


def edges_pay() -> Picture:
    """Stacked votes beside models without edges."""
    panels = []
    for dataset in NODE_SETS:
        curves = []
        for look, (rule, size) in enumerate(_best_rules(dataset)):
            found = votes.stacked(paper(), dataset, "inductive", rule, size, None)
            curve = curve_of(f"stacked votes made for {size:g}", look, found)
            curves.append(curve)
        _, without = votes.without_edges(paper(), dataset)[0]
        levels = _level("undefended", "GCN, undefended", dataset, "gcn")
        panels.append(
            Panel(NAMES[dataset], curves, [*levels, Level("mlp", "best model without edges", without.mean)], bottom=0.4)
        )
    return Picture(
        "edges", "Stacked votes beside the best model that reads no edges", "edges or nodes that come or go", panels
    )


def _best_rules(dataset: str) -> list[tuple[str, float]]:
    """For each size the rule of one level that the page states."""
    kind = "stacked-votes(levels=1, sum)"
    standard = f"{kind}, standardised features"
    found = votes.models(paper(), dataset, "inductive")
    rule = standard if any(name == standard for name, _ in found) else kind
    return [(name, size) for name, size in found if name == rule and size in (1, 3)]


def frauds() -> Picture:
    """Recall at 10 % false positives on the four graphs with a real adversary."""
    panels = []
    for dataset, title in FRAUD_NAMES.items():
        every = [row for row in fraud_rows() if row["dataset"] == dataset]
        here = [row for row in every if not row["times"]] or every  # dates tell phishing apart by themselves
        tried = {row["method"] for row in here}
        curves = [
            _recall(method, look, some(here, method=method)) for method, look in FRAUD_LOOKS.items() if method in tried
        ]
        if here != every:
            title += ", no time stamps"
            flat = mean(some(rows("append-only"), dataset=dataset, method="ledger"), lambda row: row["recall@0.1"])
            curves.append(Curve("append-only scores", len(FRAUD_LOOKS), fraud.SIZES, [float(flat)] * len(fraud.SIZES)))
        plain = mean(some(here, method="undefended GNN"), lambda row: row["clean"]["recall@0.1"])
        trees = mean(some(here, method="trees on aggregates"), lambda row: row["clean"]["recall@0.1"])
        without = mean(some(every, method="no edges"), lambda row: row["clean"]["recall@0.1"])
        levels = [
            Level("undefended", "GNN, undefended", float(plain)),
            Level("trees", "trees on aggregates, undefended", float(trees)),
            Level("mlp", "best model without edges", float(without)),
        ]
        panels.append(Panel(title, curves, levels))
    return Picture(
        "fraud", "Recall at 10 % false positives, certified", "edges added at each account", panels, "certified recall"
    )


def _recall(label: str, look: int, found: Sequence[Row]) -> Curve:
    values = np.array([
        [row["clean"]["recall@0.1"], *(certified(row, "added", size, "recall@0.1") for size in fraud.SIZES[1:])]
        for row in found
    ])  # fmt: skip
    ranges = [edge(axis=0).tolist() for edge in (values.min, values.max)] if look == 0 else []  # others would hide it
    return Curve(label, look, fraud.SIZES, values.mean(axis=0).tolist(), *ranges)


def few_labels() -> Picture:
    """Twenty labels per class."""
    kinds = (
        ("models without edges, taught by a GCN", taught.MLP, taught.TAUGHT),
        ("models without edges", taught.MLP, taught.GIVEN),
        ("stacked votes made for 1, taught", "stacked 1", taught.TAUGHT),
        ("AGNNCert-N, 300 subgraphs", "agnncert-n 300", taught.GIVEN),
    )
    panels = []
    splits = [row for row in rows("taught") if row["seed"] in taught.FRESH]
    for dataset in ("cora-ml", "citeseer", "pubmed", "amazon-c"):
        curves = []
        for look, (label, method, labels) in enumerate(kinds):
            here = [r for r in splits if (r["dataset"], r["method"], r["labels"]) == (dataset, method, labels)]
            if here:
                values = np.array([row["test"]["added edges"] for row in here])
                curves.append(Curve(label, look, STACKED_SIZES, values.mean(axis=0).tolist()))
        plain = mean(some(splits, dataset=dataset, method=taught.UNDEFENDED), lambda row: np.mean(row["test"]))
        panels.append(Panel(NAMES[dataset], curves, [Level("undefended", "GCN, undefended", float(plain))], bottom=0.4))
    return Picture("few-labels", "Twenty labels per class", "edges added at each node", panels)


def code() -> Picture:
    """Big-Vul over edited statements."""
    names = {"big-vul": "Balanced functions", "big-vul-matched": "Functions of equal length"}
    kinds = (
        ("vote of statements", "statements", "statements 0", "certified"),
        ("vote of statements, made for 3", "statements", "statements 3", "certified"),
        ("number of statements", "controls", "size only", "designed"),
    )
    panels = []
    for protocol, title in names.items():
        curves = []
        for look, (label, stage, method, key) in enumerate(kinds):
            here = some(rows("bigvul"), stage=stage, protocol=protocol, method=method)
            values = np.array([row[key] for row in here])
            curves.append(
                Curve(label, look, bigvul.SIZES, *(e(axis=0).tolist() for e in (values.mean, values.min, values.max)))
            )
        tokens = mean(
            some(rows("bigvul"), stage="controls", protocol=protocol, method="tokens"), lambda row: row["accuracy"]
        )
        panels.append(Panel(title, curves, [Level("mlp", "bag of tokens, nothing proved", float(tokens))]))
    return Picture("code", "Certified accuracy on Big-Vul", "edited statements", panels)


def attacked_nodes() -> Picture:
    """Accuracy under Nettack, and what was proved about the real change."""
    title = "Accuracy on nodes that Nettack attacked, and what was proved"
    return Picture("attacked", title, "edges changed at each node, after training", attacked.panels(), "accuracy")


PICTURES: tuple[Callable[[], Picture], ...] = (
    paper_nodes,
    paper_graphs,
    edges_pay,
    frauds,
    few_labels,
    code,
    attacked_nodes,
)
